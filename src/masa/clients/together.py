"""Several items in one call: what is asked at about the same time is gathered."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Final, Literal

from masa.errors import CallError, Failed, MasaError, Rejected
from masa.records import Item, Reply

GATHER = 0.005
"""Seconds that a call waits for more items."""


class _Outcome(Enum):
    NO_ROOM = "no room"


NO_ROOM: Final = _Outcome.NO_ROOM
"""In place of a reply: the item did not fit into the call and belongs into another one."""

NoRoom = Literal[_Outcome.NO_ROOM]

CallForAll = Callable[[list[Item]], Awaitable[Sequence[Reply | CallError | NoRoom]]]
"""Sends one call about some items; gives a reply or an error for each, or raises for all."""


class Together:
    """Gather items into calls; each item gets its own reply or error."""

    def __init__(self, call: CallForAll, most: int) -> None:
        self._call = call
        self._most = most
        self._waiting: list[tuple[Item, asyncio.Future[Reply]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._alone: set[int] = set()
        """places of items that were in a call that was rejected as a whole"""

    async def ask(self, item: Item) -> Reply:
        """Add an item to the next call and wait for its reply."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Reply] = loop.create_future()
        if item.place in self._alone:
            self._start([(item, reply)])
            return await reply
        self._waiting.append((item, reply))
        if len(self._waiting) >= self._most:
            self._start_waiting()
        elif len(self._waiting) == 1:
            loop.call_later(GATHER, self._start_waiting)
        return await reply

    def _start_waiting(self) -> None:
        """Send what is gathered so far."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._start(waiting)

    def _start(self, asked: list[tuple[Item, "asyncio.Future[Reply]"]]) -> None:
        task = asyncio.create_task(self._settle(asked))
        # A task that nobody refers to may be garbage collected before it is done.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, asked: list[tuple[Item, "asyncio.Future[Reply]"]]) -> None:
        """Send one call and give each item what came back about it."""
        outcomes = await self._outcomes([item for item, _ in asked])
        others = []
        for (item, reply), outcome in zip(asked, outcomes, strict=True):
            if reply.done():  # Nobody waits for it any more.
                continue
            if outcome is NO_ROOM:
                others.append((item, reply))
            elif isinstance(outcome, Reply):
                reply.set_result(outcome)
            else:
                reply.set_exception(outcome)
        if others:
            self._start(others)

    async def _outcomes(self, items: list[Item]) -> Sequence[Reply | BaseException | NoRoom]:
        try:
            outcomes = await self._call(items)
        except Rejected as exc:
            if len(items) == 1:
                return [exc]
            # One of them may have spoiled it for the others: each is asked again, alone.
            self._alone |= {item.place for item in items}
            return [Failed(f"{exc}, for all of a batch", billed=exc.billed) for _ in items]
        except Exception as exc:
            # Each item gets an error of its own: a traceback grows wherever one is raised.
            return [_copy(exc) for _ in items]
        if len(outcomes) != len(items) or all(outcome is NO_ROOM for outcome in outcomes):
            return [Rejected("not one answer for each item of a batch") for _ in items]
        return outcomes


def _copy(exc: Exception) -> Exception:
    """Make another error like this one."""
    if not isinstance(exc, CallError | MasaError):
        return Rejected(f"the client raised {type(exc).__name__}")
    copy = type(exc).__new__(type(exc), *exc.args)
    copy.args = exc.args
    copy.__dict__.update(exc.__dict__)
    return copy
