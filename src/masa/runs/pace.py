"""How fast and how many at once: the pace and the width of calls to an API."""

import time
from collections import deque

FIRST_CALLS = 4
"""How many calls are sent at once before anything is known about the API."""

SLACK = 0.25
"""Seconds of a rate that are caught up with, such as those while a batch was waited for."""


class Pace:
    """Let calls through at a steady rate, and never more of them in any second.

    Of what was missed only a moment is caught up with.
    """

    def __init__(self, rate: float | None, *, together: int = 1) -> None:
        """Let so many calls a second through, each of which carries up to `together` items."""
        self._gap = 0.0 if rate is None else 1.0 / rate
        self._next = self._last = 0.0
        self._lately: deque[float] = deque(maxlen=max(1, int(rate or 1)))
        """when the last calls were let through, as many as a second has"""
        self._paused_until = 0.0
        self._together = together
        self._places = 0
        """items that may still go along with the last turn"""

    def turn(self) -> float:
        """Take the next turn, and give the seconds until it comes."""
        now = time.monotonic()
        if self._places and self._last > now and self._last >= self._paused_until:
            self._places -= 1
            return self._last - now
        slack = max(self._gap, SLACK)
        if not self._next:
            slack = 0.0  # Nothing was missed before the first call.
        mine = max(self._next, now - slack, self._paused_until)
        # What this second has no room for is not lost to the pace: it comes in the next one.
        self._next = mine + self._gap
        if self._gap and len(self._lately) == self._lately.maxlen:
            mine = max(mine, self._lately[0] + max(self._gap, 1.0))
        if self._gap:
            self._lately.append(max(mine, now))
        self._last, self._places = mine, self._together - 1
        return mine - now

    def pause(self, seconds: float) -> None:
        """Send nothing for a while."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    @property
    def paused(self) -> float:
        """Seconds for which nothing is to be sent."""
        return max(0.0, self._paused_until - time.monotonic())


class Width:
    """How many calls may be under way: more while answers come, half when the API refuses."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._width = float(min(FIRST_CALLS, most))
        self._doubling = True
        """until the first refusal the width grows with every answer; then by one per width"""
        self._last_push = 0.0

    @property
    def now(self) -> int:
        """Calls that may be under way."""
        return max(1, int(self._width))

    def good(self) -> None:
        """Note that an answer came."""
        step = 1.0 if self._doubling else 1.0 / self._width
        self._width = min(float(self._most), self._width + step)

    def pushed(self, since: float) -> None:
        """Note that a call sent at a time was refused.

        One that was sent before the last refusal says nothing new.
        """
        if since >= self._last_push:
            self._doubling = False
            self._width = max(1.0, self._width / 2)
            self._last_push = time.monotonic()
