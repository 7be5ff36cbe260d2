"""One run against an API: begun or resumed, asked, journalled, and read back."""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from masa.clients import Client
from masa.clients.replay import ReplayClient
from masa.data.dataset import Dataset
from masa.errors import ApiError, MasaError, UsageError
from masa.records import ERROR, Progress, Query, Stopped, amount
from masa.runs import renamed, unread
from masa.runs.budget import Budget
from masa.runs.engine import Engine
from masa.runs.journalled import answered, keys, unanswered
from masa.runs.memory import SELDOM_COLLECTED
from masa.runs.misread import LabelCheck, unmapped
from masa.runs.options import RunOptions
from masa.runs.tries import Count
from masa.runs.watch import Watch
from masa.sampling.source import Source
from masa.settings import Limits
from masa.storage import history, journal
from masa.storage.history import Draft, Run
from masa.storage.journal import Journal, Past
from masa.storage.store import Store

log = logging.getLogger(__name__)

NOT_FINISHED = ("interrupted", "failures")
"""Ends after which the same command resumes the run."""

MOST_LAST = 0.1
"""Items that failed in an earlier session come last if they are few: this share of the answers."""

FOLLOWS_FROM_OTHERS = "turns"
"""A setting in the store that follows from others, so a difference in it explains nothing."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run may spend: calls, and money in billionths."""

    queries: int | None = None
    money: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("queries", self.queries), ("money", self.money)):
            if value is not None and (not isinstance(value, int) or value <= 0):
                raise UsageError(
                    f"the budget is {value} {name}",
                    hint="give at least one query, or an amount above 0",
                )

    def over(self, spent: int) -> float:
        """Give the money that was spent above the budget."""
        if self.money is None:
            return 0.0
        return amount(max(0, spent - self.money))


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """A run while it is worked on."""

    store: Store
    run: Run
    data: Dataset
    client: Client
    spending: Spending
    limits: Limits
    progress: Progress | None = None
    interruptible: bool = False
    keep_said: bool = False
    """whether what the API said in its own words is stored"""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Worked:
    """What came of working on a run."""

    stopped: Stopped
    past: Past
    """the journal, read back"""
    notes: tuple[str, ...] = ()
    asides: tuple[str, ...] = ()
    """notes that may quote the API or the user's function: shown, not stored"""

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return self.stopped not in NOT_FINISHED

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes that are stored and those that are only shown."""
        return (*self.notes, *self.asides)

    def stored(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Give what of a result is stored.

        No quotes, and no names of items, which may be anything.
        """
        notes = [note for note in result["notes"] if note not in self.asides]
        kept = {**result, "notes": notes}
        if "changed_items" in result:
            kept["changed_items"] = []
        return kept


def choose(store: Store, draft: Draft, wanted: RunOptions) -> tuple[Run, tuple[str, ...]]:
    """Find the run to resume or begin a new one, and say which."""
    if wanted.resume is not None and wanted.fresh:
        raise UsageError(
            f"run {wanted.resume} is to be resumed, and a fresh one begun",
            hint="give --resume or --fresh",
        )
    if wanted.resume is not None:
        found = history.find(store, wanted.resume)
        _check_same_command(found, draft)
        return found, (f"resuming run {found.id}",)
    corrected = None if wanted.fresh else renamed.take_over(store, draft)
    begun = history.begin(store, draft, fresh=wanted.fresh)
    if begun.resumed and corrected is not None:
        return begun.run, (f"resuming run {begun.run.id}: {corrected}",)
    if begun.resumed:
        note = f"resuming run {begun.run.id}, which was not finished (--fresh begins a new one)"
        return begun.run, (note,)
    if begun.too_old is not None:
        old = begun.too_old
        note = (
            f"run {old.id} of {old.touched[:10]} was never finished and is too old to be mixed "
            f"with new answers; --resume {old.id} resumes it all the same"
        )
        return begun.run, (note,)
    return begun.run, ()


def _check_same_command(found: Run, draft: Draft) -> None:
    """Raise where a run that is to be resumed was another command."""
    if found.identity == draft.identity:
        return
    unset = dict.fromkeys({*found.settings, *draft.settings})
    before = {**found.comparable, **unset, **found.settings}
    before.pop(history.DRAWN_SEED, None)
    now = {**draft.comparable, **unset, **draft.settings}
    follows = before.pop(FOLLOWS_FROM_OTHERS, None), now.pop(FOLLOWS_FROM_OTHERS, None)
    what = history.differences(before, now)
    if found.data != draft.data:
        what.append("the data is not the same")
    if not what and follows[0] != follows[1]:
        what.append("whether it may switch to strata")
    raise UsageError(
        f"run {found.id} was another command: "
        f"{'; '.join(what) or 'another name, kind or baseline'}",
        hint="give the same data and options as then; "
        "budget, tolerance, confidence, target error and canary may differ",
    )


@contextmanager
def claimed(store: Store, run: Run, wanted: RunOptions) -> Iterator[None]:
    """Hold a run; a second process is told so."""
    with store.claim(run.id):
        history.claim(store, run.id, even_without_log=wanted.resume == run.id)
        try:
            yield
        finally:
            with suppress(MasaError):
                history.release(store, run.id)


async def ask(
    session: Session,
    source: Source,
    past: Past,
    *,
    repeat: bool = False,
    check_labels: bool = True,
    stopped: "Callable[[], Stopped | None]" = lambda: None,
    error: Callable[[], float | None] = lambda: None,
) -> Worked:
    """Ask what the source wants to know, after telling it what the journal has.

    `past` is the journal so far; `stopped` says after each answer why to stop, or None. `repeat`
    asks items a second time. `check_labels` ends the run when none of the first answers is a label
    of the data. `error` gives the current error of the estimate, for those who watch.
    """
    waiting = Waiting() if repeat else _tell(source, session.data, past)
    budget = Budget(session.spending.queries, session.spending.money, past.queries, past.money)
    writer = Journal(session.store, session.run.id, next_number=past.next_number)
    item_keys = keys(session.data)

    def on_answer() -> None:
        watch.show()
        reason = stopped()
        if reason is not None:
            engine.stop(reason)

    engine = Engine(
        client=session.client,
        journal=writer,
        budget=budget,
        limits=session.limits,
        item=session.data.item,
        key=lambda item: int(item_keys[item]),
        on_answer=on_answer,
        answered_before=len(past.answers),
        keep_said=session.keep_said,
    )
    already = stopped()
    if already is not None:
        engine.stop(already)
    watch = Watch(
        budget,
        engine.count,
        len(session.data),
        session.client.priced,
        session.progress,
        error,
    )
    if check_labels and not costs_nothing(session.client):
        source = LabelCheck(source, session.data.labels, lambda: _why_unread(session, engine.count))
    interrupts: AbstractContextManager[None] = nullcontext()
    if session.interruptible:
        interrupts = _interrupts(engine, session.progress)
    watching = asyncio.create_task(watch.keep_showing())
    try:
        try:
            with interrupts, SELDOM_COLLECTED:
                ended = await engine.run(
                    source, first=waiting.first, last=waiting.last, repeat=repeat
                )
        finally:
            watching.cancel()
            await writer.close()
    except ApiError:
        # The items that failed before this was noticed did not fail by themselves.
        journal.reopen_errors(session.store, session.run.id)
        raise
    return _worked(session, ended, engine.count)


def _why_unread(session: Session, count: Count) -> str:
    """Say why answers are no label, with an example, where none is one."""
    past = journal.past(session.store, session.run.id)
    found = [*unread.notes(past, session.client), *unread.examples(past, count.unread)]
    return "; ".join(found)


class Waiting(NamedTuple):
    """Queries of a journal that still wait for an answer."""

    first: Sequence[Query] = ()
    last: Sequence[Query] = ()
    """those whose calls failed: they are not waited for"""


def _tell(source: Source, data: Dataset, past: Past) -> Waiting:
    """Tell a source what the journal has; give the queries that still wait for an answer."""
    for sent, answer in answered(data, past):
        source.sent(sent)
        source.tell(answer)
    waiting = list(unanswered(data, past))
    for query in waiting:
        source.sent(query)
    failed = [query for query in waiting if int(keys(data)[query.item]) in past.failed]
    if len(failed) > MOST_LAST * len(past.answers):
        # The API was down: any items that were under way have failed.
        return Waiting(waiting)
    for query in failed:
        source.delayed(query.item)
    return Waiting([query for query in waiting if query not in failed], failed)


def _worked(session: Session, stopped: Stopped, count: Count) -> Worked:
    """Read the journal back; a run of which too many items failed did not come to its end."""
    past = journal.past(session.store, session.run.id)
    if stopped not in NOT_FINISHED and _mostly_failed(past, session.limits):
        stopped = "failures"
    if stopped == "failures":
        journal.reopen_errors(session.store, session.run.id)
        past = journal.past(session.store, session.run.id)
    notes = [*session.notes, *unread.notes(past, session.client)]
    notes += unmapped([one.prediction for one in past.answers.values()], session.data.label.values)
    asides = list(unread.examples(past, count.unread))
    if count.overcharged:
        notes.append(
            f"{count.overcharged:,} calls cost more than the worst price that was reserved "
            "for them; check the prices"
        )
    if stopped == "failures":
        asides.append(f"too many calls failed: {count.in_words}")
    elif count.errors:
        asides.append(
            f"{count.errors:,} items failed for good; calls without an answer: {count.in_words}"
        )
    return Worked(stopped, past, tuple(notes), tuple(asides))


def _mostly_failed(past: Past, limits: Limits) -> bool:
    """Say whether too many of the items failed for the other answers to mean much."""
    errors = sum(recorded.prediction == ERROR for recorded in past.answers.values())
    # A call that was under way when masa was killed says nothing about the API.
    failed = errors + sum(key in past.failed for key in past.unanswered)
    return failed > limits.failures * (len(past.answers) + len(past.unanswered))


def costs_nothing(client: Client) -> bool:
    """Say whether asking costs nothing."""
    return isinstance(client, ReplayClient)


@contextmanager
def _interrupts(engine: Engine, progress: Progress | None) -> Iterator[None]:
    """Stop cleanly at the first Ctrl-C, at once at the second."""
    loop = asyncio.get_running_loop()
    times = 0

    def interrupted() -> None:
        nonlocal times
        times += 1
        if times > 1:
            engine.abandon()
            return
        engine.stop("interrupted")
        if progress is not None:
            waiting = f"stopping; waiting for {engine.under_way} answers"
            progress(f"{waiting}, Ctrl-C again does not wait", 1.0)

    signals = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP"):
        signals.append(signal.SIGHUP)  # The terminal was closed.
    with suppress(NotImplementedError, RuntimeError):
        for number in signals:
            loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        with suppress(NotImplementedError, RuntimeError):
            for number in signals:
                loop.remove_signal_handler(number)
