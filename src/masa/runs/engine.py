"""Keep calls to an API under way: many at once, within a budget, each written down first."""

import asyncio
import logging
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil

from masa.clients import Client
from masa.errors import ApiError, CallError, Failed, Fatal, MasaError, Refused, Rejected
from masa.records import ERROR, Answer, Item, Query, Reply, Stopped
from masa.runs.budget import Budget, Hold
from masa.runs.pace import FIRST_CALLS, Pace, Width
from masa.runs.replies import cleaned
from masa.sampling.source import Source
from masa.settings import Limits
from masa.storage.journal import Journal

log = logging.getLogger(__name__)

MANY = 8
"""From so many calls under way on, their writes are gathered."""

GATHER = 0.004
"""Seconds for which writes are gathered: one write to the disk per call would cost more."""

SHORT = 0.2
"""Waits of fewer seconds are not worth interrupting."""

WINDOW = 50
"""The failures that stop a run are counted over so many items."""

LEAST_FAILED = 10
"""Fewer failed items than this never stop a run."""


@dataclass(slots=True)
class Count:
    """What a run has done so far."""

    answers: int = 0
    errors: int = 0
    """items that failed for good"""
    overcharged: int = 0
    """calls that cost more than the worst price that was reserved for them"""
    reasons: Counter[str] = field(default_factory=Counter)
    """why calls gave no answer"""
    said: dict[str, str] = field(default_factory=dict)
    """by reason, what the API or the function said about it; shown, never stored"""
    last_trouble: str = ""

    def trouble(self, exc: CallError) -> None:
        """Count a call without an answer."""
        self.last_trouble = str(exc)
        self.reasons[str(exc)] += 1
        if exc.said:
            self.said.setdefault(str(exc), exc.said)

    @property
    def in_words(self) -> str:
        """The most frequent reasons, with what was said about them."""
        parts = []
        for reason, times in self.reasons.most_common(3):
            part = f"{reason} ({times:,}x)"
            if reason in self.said:
                part += f": {self.said[reason]}"
            parts.append(part)
        return "; ".join(parts)


@dataclass(slots=True)
class Tries:
    """How often an item was asked about without an answer."""

    failed: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is written down."""

    number: int
    began: float
    """when it was sent, on the monotonic clock"""


class Engine:
    """Keep calls under way until the source has nothing more to ask or something stops the run."""

    def __init__(
        self,
        *,
        client: Client,
        journal: Journal,
        budget: Budget,
        limits: Limits,
        item: Callable[[int], Item],
        key: Callable[[int], int],
        on_answer: Callable[[], None] = lambda: None,
        answered_before: int = 0,
    ) -> None:
        """Take the item at a place from `item`, and its key from `key`.

        `answered_before` is how many answers the journal has of earlier sessions.
        """
        self.count = Count()
        self._client = client
        self._journal = journal
        self._budget = budget
        self._limits = limits
        self._item = item
        self._key = key
        self._on_answer = on_answer
        self._answered_before = answered_before
        self._dearer = 1.0
        """how many times its worst price the API has cost"""
        self._put_off: list[Query] = []
        """items that were refused before anything was answered: perhaps they alone are refused"""
        self._pace = Pace(limits.rate)
        self._width = Width(limits.concurrency)
        self._recent: deque[bool] = deque(maxlen=WINDOW)
        """whether each of the last items was answered"""
        self._trouble_since: float | None = None
        self._stopped: Stopped | None = None
        self._broken: BaseException | None = None
        self._stop = asyncio.Event()
        self._event = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def under_way(self) -> int:
        """How many calls are being waited for."""
        return len(self._under_way)

    def stop(self, why: Stopped = "interrupted") -> None:
        """Send nothing more; calls under way are waited for."""
        self._stopped = self._stopped or why
        self._stop.set()
        self._event.set()

    def abandon(self) -> None:
        """Do not even wait for calls under way; they stay written down as sent."""
        self.stop()
        for task in self._under_way:
            task.cancel()

    async def run(
        self, source: Source, *, first: Iterable[Query] = (), repeat: bool = False
    ) -> Stopped:
        """Ask until something stops it: first these queries, then those of the source.

        The source is told each answer.
        """
        waiting = deque(first)
        try:
            await self._ask_all(source, waiting, repeat=repeat)
            while self._under_way:
                await self._something()
        except asyncio.CancelledError:
            self.abandon()
            raise
        finally:
            await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._broken is not None:
            raise self._broken
        return self._stopped or "exhausted"

    async def _ask_all(self, source: Source, waiting: deque[Query], *, repeat: bool) -> None:
        """Start calls while there is room for one more and something to ask."""
        while self._stopped is None:
            width = self._width.now
            self._journal.gather = GATHER if width >= MANY else 0.0
            if len(self._under_way) >= width:
                await self._something()
                continue
            query = self._next(source, waiting)
            if query is None and self._under_way:
                # An answer may make the source want more, or a put-off item worth asking.
                await self._something()
                continue
            if query is None:
                return
            item = self._item(query.item)
            hold = await self._reserve(item)
            if hold is None:
                return
            task = asyncio.create_task(self._settle(query, item, hold, source, repeat=repeat))
            self._under_way.add(task)
            task.add_done_callback(self._done)

    def _next(self, source: Source, waiting: deque[Query]) -> Query | None:
        """Give the next query; items that were put off come when others have been answered."""
        if waiting:
            return waiting.popleft()
        queries = source.ask(1)
        if queries:
            return queries[0]
        if self._put_off and self.count.answers:
            return self._put_off.pop()
        return None

    async def _something(self) -> None:
        """Wait until a call ended or gave budget back, or the run is stopping."""
        self._event.clear()
        await self._event.wait()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._event.set()
        if task.cancelled():
            return
        broken = task.exception()
        if broken is not None:
            self._broken = self._broken or broken
            self.stop("failures")

    async def _reserve(self, item: Item) -> Hold | None:
        """Take a call from the budget, waiting for calls under way where that may make room.

        None where the run must end.
        """
        worst = self._client.price(item)
        # An API that once cost more than its worst price is believed to do so again.
        price = ceil(worst * self._dearer)
        while self._stopped is None:
            hold = self._budget.reserve(price)
            if hold is not None:
                hold.worst = worst
                return hold
            if self._budget.hopeless(price):
                self.stop("budget")
                break
            await self._something()
        return None

    async def _settle(
        self, query: Query, item: Item, hold: Hold | None, source: Source, *, repeat: bool
    ) -> None:
        """Ask about one item until it is answered, has failed for good, or the budget is spent."""
        tries = Tries()
        while hold is not None:
            try:
                wait = await self._try(query, item, hold, source, tries, repeat=repeat)
            finally:
                # Whatever happened, nothing stays reserved, and those who wait for it are told.
                hold.close()
                self._event.set()
            if wait is None:
                return
            self._trouble_since = self._trouble_since or time.monotonic()
            if time.monotonic() - self._trouble_since > self._limits.patience:
                self.stop("failures")
            await self._sleep(wait)
            hold = await self._reserve(item)

    async def _try(
        self,
        query: Query,
        item: Item,
        hold: Hold,
        source: Source,
        tries: Tries,
        *,
        repeat: bool,
    ) -> float | None:
        """Send one call; give the seconds to wait before another try, or None for no other."""
        call = await self._send(query, hold, repeat=repeat)
        if call is None:
            return None
        try:
            reply = await self._ask(item)
        except Refused as exc:
            # "Not now": the API did no work, so the call is not billed.
            await self._note(call, exc, hold, billed=False)
            tries.refused += 1
            self._push_back(call, exc.retry_after)
            return self._wait_after(tries.refused, exc.retry_after)
        except Fatal as exc:
            await self._fatal(call, exc, hold, query, source)
            return None
        except Failed as exc:
            tries.failed += 1
            if tries.failed >= self._limits.tries:
                await self._give_up(call, exc, hold, query, source)
                return None
            await self._note(call, exc, hold, billed=exc.billed)
            if exc.overloaded:
                self._push_back(call, exc.retry_after)
            return self._wait_after(tries.failed, exc.retry_after)
        except CallError as exc:
            await self._give_up(call, exc, hold, query, source)
            return None
        await self._answered(call, cleaned(reply, hold.price), hold, query, source)
        return None

    async def _answered(
        self, call: Call, reply: Reply, hold: Hold, query: Query, source: Source
    ) -> None:
        """Write an answer down, then pay for it, then tell the source."""
        prediction, cost = str(reply.label), int(reply.cost or 0)
        if cost > hold.worst and self._client.priced:
            self.count.overcharged += 1
            self._dearer = max(self._dearer, cost / max(hold.worst, 1))
        await self._journal.answered(call.number, reply, prediction=prediction, cost=cost)
        hold.settle(cost)
        self._width.good()
        self._finish(Answer(query.item, prediction, reply.confidence), source, good=True)

    async def _fatal(
        self, call: Call, exc: Fatal, hold: Hold, query: Query, source: Source
    ) -> None:
        """Give up the item, or the run: the API refuses to answer about it, or about any."""
        if exc.unless_answered and (self.count.answers or self._answered_before):
            # It answers about other items: this one alone is refused.
            await self._give_up(call, exc, hold, query, source)
            return
        await self._note(call, exc, hold, billed=True)
        if exc.unless_answered and len(self._put_off) < FIRST_CALLS:
            self._put_off.append(query)
            return
        hint = "then run the same command again: what was answered is kept"
        if exc.hint:
            hint = f"{exc.hint}; {hint}"
        raise ApiError(f"the API refuses to work: {exc}", hint=hint) from exc

    async def _ask(self, item: Item) -> Reply:
        try:
            async with asyncio.timeout(self._limits.longest_call):
                return await self._client.ask(item)
        except TimeoutError as exc:
            raise Failed(f"no answer in {self._limits.longest_call:g} s") from exc
        except (CallError, MasaError):
            raise
        except Exception as exc:
            log.debug("the client raised", exc_info=exc)
            raise Rejected(f"the client raised {type(exc).__name__}") from exc

    async def _note(self, call: Call, exc: CallError, hold: Hold, *, billed: bool) -> None:
        """Write down a call without an answer, and pay for it if it may have been billed."""
        log.debug("call %d: %s", call.number, exc)
        self.count.trouble(exc)
        await self._journal.failed(call.number, str(exc), billed=billed)
        hold.settle(hold.price if billed else None)

    async def _give_up(
        self, call: Call, exc: CallError, hold: Hold, query: Query, source: Source
    ) -> None:
        """Write down that an item failed for good.

        That is an outcome like any other: leaving the item out would bias the estimate.
        """
        log.info("call %d, the last about its item: %s", call.number, exc)
        self.count.trouble(exc)
        billed = not isinstance(exc, Failed) or exc.billed
        await self._journal.gave_up(call.number, str(exc), prediction=ERROR, billed=billed)
        hold.settle(hold.price if billed else None)
        self._finish(Answer(query.item, ERROR), source, good=False)

    async def _send(self, query: Query, hold: Hold, *, repeat: bool) -> Call | None:
        """Wait for this call's turn and write it down; None where the run is stopping."""
        await self._sleep(self._pace.turn())
        while self._pace.paused and self._stopped is None:
            await self._sleep(self._pace.turn())
        if self._stopped is not None:
            return None
        began = time.monotonic()
        hold.sent = True
        number = await self._journal.sent(
            self._key(query.item), reserved=hold.price, repeat=repeat, query=query
        )
        return Call(number, began)

    async def _sleep(self, seconds: float) -> None:
        """Wait, but not once the run is stopping."""
        if 0 < seconds < SHORT:
            await asyncio.sleep(seconds)
        elif seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), timeout=seconds)

    def _push_back(self, call: Call, retry_after: float | None) -> None:
        """Send fewer calls at once, and none for as long as the API asks."""
        self._width.pushed(call.began)
        if retry_after is not None:
            self._pace.pause(min(retry_after, self._limits.patience))

    def _wait_after(self, times: int, retry_after: float | None) -> float:
        """Give the seconds to wait after so many tries: doubled each time, up to a limit."""
        wait = min(self._limits.longest_wait, self._limits.first_wait * 2.0 ** min(times - 1, 30))
        # At random: calls that failed together must not come back together.
        wait *= random.uniform(0.5, 1.0)  # noqa: S311
        return max(wait, min(retry_after or 0.0, self._limits.patience))

    def _finish(self, answer: Answer, source: Source, *, good: bool) -> None:
        """Tell the source how an item ended; stop the run if too many fail."""
        source.tell(answer)
        self._recent.append(good)
        if good:
            self.count.answers += 1
            self.count.last_trouble = ""
            self._trouble_since = None
        else:
            self.count.errors += 1
            failed = self._recent.count(False)
            too_many = failed > self._limits.failures * len(self._recent)
            if failed >= LEAST_FAILED and too_many:
                self.stop("failures")
        self._on_answer()
