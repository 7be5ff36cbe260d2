"""A time limit that does not count the time for which this process stood still."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LATE = 1.0
"""Seconds by which a timer may be late before the process is taken to have stood still."""

SPARE = 10.0
"""Seconds that calls under way are given after that, at most."""


@asynccontextmanager
async def deadline(seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError after so many seconds.

    A process that was stopped (Ctrl-Z, a suspended machine) wakes up with all its timers due, and
    with answers that wait in its connections. These are paid for, so they are read first.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None
    async with asyncio.timeout(None) as limit:

        def wait(time: float) -> None:
            nonlocal timer
            timer = loop.call_later(time, due, loop.time() + time)

        def due(when: float) -> None:
            now = loop.time()
            if now - when > LATE:
                wait(min(seconds, SPARE))
            else:
                limit.reschedule(now)

        wait(seconds)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
