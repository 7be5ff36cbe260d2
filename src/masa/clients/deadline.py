"""A time limit that does not count the time for which this process stood still."""

import asyncio
from types import TracebackType

LATE = 1.0
"""Seconds by which a timer may be late before the process is taken to have stood still."""

SPARE = 10.0
"""Seconds that calls under way are given after that, at most."""


class deadline:  # noqa: N801 - used like a function, as asyncio.timeout is
    """Raise TimeoutError after so many seconds: `async with deadline(30): ...`.

    A process that was stopped (Ctrl-Z, a suspended machine) wakes up with all its timers due, and
    with answers that wait in its connections. These are paid for, so they are read first.
    """

    __slots__ = ("_limit", "_loop", "_seconds", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._limit = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        """Begin to count."""
        self._loop = asyncio.get_running_loop()
        await self._limit.__aenter__()
        self._wait(self._seconds)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop counting."""
        self._timer.cancel()
        await self._limit.__aexit__(kind, exc, traceback)

    def _wait(self, seconds: float) -> None:
        when = self._loop.time() + seconds
        self._timer = self._loop.call_at(when, self._due, when)

    def _due(self, when: float) -> None:
        now = self._loop.time()
        if now - when > LATE:
            self._wait(min(self._seconds, SPARE))
        else:
            self._limit.reschedule(now)
