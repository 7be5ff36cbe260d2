"""Keep calls to an API under way: many at once, within a budget, each written down first."""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from math import ceil

from masa.clients import Client, batch_size
from masa.clients.deadline import deadline
from masa.errors import ApiError, CallError, Failed, Fatal, MasaError, Refused, Rejected
from masa.records import ERROR, Answer, Item, Query, Reply, Stopped
from masa.runs.budget import Budget, Hold
from masa.runs.pace import Pace, Width
from masa.runs.replies import cleaned
from masa.runs.tries import Call, Count, Tries
from masa.runs.unread import is_name
from masa.sampling.source import Source
from masa.settings import Limits
from masa.storage.journal import Journal

log = logging.getLogger(__name__)

HEAD_START = 2.0
"""Seconds for which the first call goes alone."""

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

BY_CHANCE = 1e-6
"""An item that is refused as often as would happen with a smaller probability, at the rate at which
other items are refused, is refused for good."""

PERHAPS_BY_CHANCE = 1e-3
"""One that is refused as often as would happen with a smaller probability than this says nothing
about how fast the API can be asked."""

REFUSALS = 200
"""The rate at which items are refused is counted over so many items."""

DELAYED_AFTER = 2
"""Calls without an answer after which an item is not waited for, if others are answered."""

MOST_DELAYED = 16
"""The most items that are tried again while nobody waits for them: their calls come on top."""


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
        keep_said: bool = False,
    ) -> None:
        """Take the item at a place from `item`, and its key from `key`.

        `answered_before` is how many answers the journal has of earlier sessions. `keep_said`
        writes down what the API said in its own words.
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
        self._keep_said = keep_said
        self._reads_labels = False
        """whether any answer was read as a label"""
        self._dearer = 1.0
        """how many times its worst price the API has cost"""
        self._kept_price = 0
        """answers in a row that cost no more than was reserved for them"""
        self._put_off: deque[Query] = deque()
        """items that come last: they failed in an earlier session, or were refused before anything
        was answered and perhaps they alone are"""
        self._failed_before: set[int] = set()
        """items that failed in an earlier session"""
        self._open: dict[int, Tries] = {}
        """items that wait for an answer"""
        self._delayed: set[int] = set()
        """those of them that nothing waits for"""
        self._fatal_in_a_row = 0
        """items in a row that the API will not answer about"""
        self._first_refused: deque[bool] = deque(maxlen=REFUSALS)
        """whether the first call about each of the last items was refused"""
        self._last_answer = 0.0
        """when the last answer came, on the monotonic clock"""
        together = batch_size(client)
        self._pace = Pace(limits.rate, together=together)
        self._width = Width(limits.concurrency * together)
        self._heard = answered_before > 0
        """whether anything has come back: until then the first call goes alone"""
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
        self,
        source: Source,
        *,
        first: Iterable[Query] = (),
        last: Iterable[Query] = (),
        repeat: bool = False,
    ) -> Stopped:
        """Ask until something stops it: first these queries, then those of the source.

        The last ones are those that failed in an earlier session. The source is told each answer.
        """
        waiting = deque(first)
        self._put_off.extend(last)
        self._failed_before = {query.item for query in self._put_off}
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
            if not self._heard and self._under_way:
                await self._wait_for_the_first()
                continue
            self._journal.gather = GATHER if width >= MANY else 0.0
            if len(self._under_way) - len(self._delayed) >= width:
                await self._something_unless_delayed(source)
                continue
            query = self._next(source, waiting)
            if query is None and self._under_way:
                # An answer may make the source want more, or a put-off item worth asking.
                await self._something_unless_delayed(source)
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
            # A task that is cancelled before it began closes nothing by itself.
            task.add_done_callback(_closing(hold))

    def _next(self, source: Source, waiting: deque[Query]) -> Query | None:
        """Give the next query; items that were put off come when all others are answered."""
        if waiting:
            return waiting.popleft()
        queries = source.ask(1)
        if queries:
            return queries[0]
        nothing_else = len(self._open) == len(self._delayed) < MOST_DELAYED
        if self._put_off and self._others_answered and nothing_else:
            return self._put_off.popleft()
        return None

    @property
    def _others_answered(self) -> bool:
        """Whether the API has answered about anything, in this session or before."""
        return bool(self.count.answers or self._answered_before)

    async def _something_unless_delayed(self, source: Source) -> None:
        """Wait for something, unless all that could come is answers that nobody waits for."""
        in_trouble = len(self._delayed) < len(self._open) <= MOST_DELAYED and all(
            item in self._delayed or self._is_in_trouble(tries)
            for item, tries in self._open.items()
        )
        if not in_trouble:
            await self._something()
            return
        for item in self._open.keys() - self._delayed:
            log.info("an item is not waited for: it failed while others were answered")
            self._delayed.add(item)
            source.delayed(item)

    def _is_in_trouble(self, tries: Tries) -> bool:
        """Say whether an item fails again and again while others are answered."""
        return tries.all >= DELAYED_AFTER and self.count.answers > tries.answers_before

    async def _wait_for_the_first(self) -> None:
        """Wait until the first call has come back: a wrong key then costs one call.

        An API that is slow is not waited for.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(self._something(), timeout=HEAD_START)
            return
        self._heard = True

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
            hold = None
            if not self._price_in_doubt:
                hold = self._budget.reserve(price)
            if hold is not None:
                hold.worst = worst
                return hold
            if self._budget.hopeless(price):
                self.stop("budget")
                break
            await self._something()
        return None

    @property
    def _price_in_doubt(self) -> bool:
        """Whether one more call at once could cost more than the budget has.

        No more are under way than have kept to their price: the first go out one by one, and so
        does what follows a call that cost more than was reserved for it.
        """
        if self._budget.money is None or not self._client.priced:
            return False
        return self._budget.held_queries >= max(1, self._kept_price)

    async def _settle(
        self, query: Query, item: Item, hold: Hold | None, source: Source, *, repeat: bool
    ) -> None:
        """Ask about one item until it is answered, has failed for good, or the budget is spent."""
        answers = self.count.answers
        tries = Tries(answers_before=answers, answers_at_refusal=answers)
        self._open[query.item] = tries
        if query.item in self._failed_before:
            self._delayed.add(query.item)
        try:
            while hold is not None:
                try:
                    wait = await self._try(query, item, hold, source, tries, repeat=repeat)
                finally:
                    # Whatever happened, nothing stays reserved, and those who wait are told.
                    hold.close()
                    self._event.set()
                if wait is None:
                    return
                if self._patience_left <= 0.0 and await self._lost_patience(tries, query, source):
                    return
                await self._sleep(wait)
                hold = await self._reserve(item)
        finally:
            del self._open[query.item]
            self._delayed.discard(query.item)

    @property
    def _patience_left(self) -> float:
        """Seconds for which an API in trouble is waited for."""
        since = self._trouble_since
        waited = 0.0 if since is None else time.monotonic() - since
        return self._limits.patience - waited

    async def _lost_patience(self, tries: Tries, query: Query, source: Source) -> bool:
        """Give up the item where only few like it are left, otherwise stop the run; say which."""
        answers = self.count.answers + self._answered_before
        few = len(self._open) <= self._limits.failures * answers
        if len(self._delayed) < len(self._open) or not few or tries.last is None:
            self.stop("failures")
            return False
        call, exc = tries.last
        await self._journal.gave_up(call.number, str(exc), prediction=ERROR, billed=_billed(exc))
        self._finish(Answer(query.item, ERROR), source, good=False)
        return True

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
            self._heard = True
        except Fatal as exc:
            await self._fatal(call, exc, hold, query, source)
            return None
        except (Refused, Failed) as exc:
            return await self._failed(call, exc, hold, query, source, tries)
        except CallError as exc:
            self._heard = True
            await self._give_up(call, exc, hold, query, source)
            return None
        if not tries.all:
            self._first_refused.append(False)
        await self._answered(call, cleaned(reply, hold.price), hold, query, source)
        return None

    async def _failed(
        self,
        call: Call,
        exc: Refused | Failed,
        hold: Hold,
        query: Query,
        source: Source,
        tries: Tries,
    ) -> float | None:
        """Give the seconds to wait before the item is tried again, or None if it is given up."""
        refused = isinstance(exc, Refused)
        self._heard = True
        if not tries.all:
            self._first_refused.append(refused)
        tries.last = call, exc
        if refused:
            self._count_refusal(tries)
            hopeless = tries.refused >= self._limits.tries and self._chance(tries) < BY_CHANCE
        else:
            tries.failed += 1
            hopeless = tries.failed >= self._limits.tries
        if hopeless:
            await self._give_up(call, exc, hold, query, source)
            return None
        await self._note(call, exc, hold, billed=_billed(exc))
        overloaded = isinstance(exc, Refused) or exc.overloaded
        if overloaded and self._chance(tries) >= PERHAPS_BY_CHANCE:
            self._push_back(call, exc.retry_after)
        return self._wait_after(tries.refused if refused else tries.failed, exc.retry_after)

    def _count_refusal(self, tries: Tries) -> None:
        """Count a refusal; it is the item's own only if others are answered, or none are left."""
        tries.refused += 1
        others = self.count.answers > tries.answers_at_refusal
        if others or len(self._open) == len(self._delayed):
            tries.refused_alone += 1
        tries.answers_at_refusal = self.count.answers

    def _chance(self, tries: Tries) -> float:
        """Give the probability of an item's refusals at the rate at which others are refused.

        An API that refuses many items, because they come too fast, refuses some of them often.
        """
        if not self._others_answered:
            return 1.0
        rate = (sum(self._first_refused) + 1) / (len(self._first_refused) + 2)
        return float(rate**tries.refused_alone)

    async def _answered(
        self, call: Call, reply: Reply, hold: Hold, query: Query, source: Source
    ) -> None:
        """Write an answer down, then pay for it, then tell the source."""
        prediction, cost = str(reply.label), int(reply.cost or 0)
        if cost > hold.worst and self._client.priced:
            self.count.overcharged += 1
            self._dearer = max(self._dearer, cost / max(hold.worst, 1))
        self._kept_price = self._kept_price + 1 if cost <= hold.price else 0
        self._reads_labels |= reply.unread is None
        keep_said = self._keep_said or (not self._reads_labels and is_name(reply))
        kept = reply if keep_said else replace(reply, said=None)
        await self._journal.answered(call.number, kept, prediction=prediction, cost=cost)
        hold.settle(cost)
        self.count.answer(reply)
        self._width.good()
        self._fatal_in_a_row, self._last_answer = 0, time.monotonic()
        self._finish(Answer(query.item, prediction, reply.confidence), source, good=True)

    async def _fatal(
        self, call: Call, exc: Fatal, hold: Hold, query: Query, source: Source
    ) -> None:
        """Give up the item, or the run: the API refuses to answer about it, or about any."""
        if exc.unless_answered and self._others_answered:
            self._fatal_in_a_row += query.item not in self._failed_before
            if self._fatal_in_a_row < LEAST_FAILED:
                # It answers about other items: this one alone is refused.
                await self._give_up(call, exc, hold, query, source)
                return
        await self._note(call, exc, hold, billed=exc.billed)
        if exc.unless_answered and not self._others_answered and len(self._put_off) < exc.others:
            self._put_off.append(query)
            return
        hint = "Then run the same command again: what was answered is kept."
        if exc.hint:
            hint = f"{exc.hint.rstrip('.')}. {hint}"
        raise ApiError(f"the API refuses to work: {exc}", hint=hint) from exc

    async def _ask(self, item: Item) -> Reply:
        longest = min(self._limits.longest_call, max(self._patience_left, SHORT))
        try:
            async with deadline(longest):
                return await self._client.ask(item)
        except TimeoutError as exc:
            raise Failed(f"no answer in {longest:.3g} s") from exc
        except (CallError, MasaError):
            raise
        except Exception as exc:
            log.debug("the client raised", exc_info=exc)
            raise Rejected(f"the client raised {type(exc).__name__}") from exc

    async def _note(self, call: Call, exc: CallError, hold: Hold, *, billed: bool) -> None:
        """Write down a call without an answer, and pay for it if it may have been billed."""
        log.debug("call %d: %s", call.number, exc)
        self.count.trouble(exc)
        self._trouble_since = self._trouble_since or max(call.began, self._last_answer)
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
        billed = _billed(exc)
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
        if answer.item not in self._delayed:
            # Delayed items end all at once: the last ones say nothing about the API as a whole.
            self._recent.append(good)
        if good:
            self._trouble_since = None
        else:
            self.count.errors += 1
            failed = self._recent.count(False)
            too_many = failed > self._limits.failures * len(self._recent)
            if failed >= LEAST_FAILED and too_many:
                self.stop("failures")
        self._on_answer()


def _closing(hold: Hold) -> Callable[[asyncio.Task[None]], None]:
    return lambda _: hold.close()


def _billed(exc: CallError) -> bool:
    """Say whether a call without an answer may have been billed."""
    if isinstance(exc, Refused):
        # "Not now": the API did no work.
        return False
    return not isinstance(exc, Failed | Rejected | Fatal) or exc.billed
