"""One run against an API: begun or gone on with, asked, journalled, and read back."""

import asyncio
import logging
import signal
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from masa.clients import Client
from masa.clients.replay import ReplayClient
from masa.data.dataset import Dataset
from masa.errors import UsageError
from masa.records import ERROR, Answer, Column, Progress, Query, Stopped, in_order
from masa.runs.budget import Budget
from masa.runs.engine import Count, Engine, Source
from masa.runs.misread import LabelCheck
from masa.runs.watch import Watch
from masa.settings import Limits
from masa.storage import history, journal
from masa.storage.history import Draft, Run
from masa.storage.journal import Journal, Past
from masa.storage.store import Store

log = logging.getLogger(__name__)


class Sampling(Source, Protocol):
    """A source of queries that can be told what was asked before it was there."""

    def sent(self, query: Query) -> None:
        """Count a query as asked."""


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
                    hint="give at least one query, or more than no money",
                )


@dataclass(frozen=True, slots=True)
class Choice:
    """Which run to go on with: a given one, none, or the unfinished one of the same command."""

    resume: int | None = None
    fresh: bool = False


@dataclass(slots=True, eq=False)
class Session:
    """A run while it is worked on."""

    run: Run
    data: Dataset
    client: Client
    limits: Limits
    spending: Spending
    past: Past
    notes: list[str] = field(default_factory=list)
    asides: list[str] = field(default_factory=list)
    """notes that may quote the API or the user's function: told, not kept"""
    progress: Progress | None = None
    error: Callable[[], float | None] = lambda: None
    """the current error of the estimate, for those who watch"""
    interruptible: bool = False
    count: Count = field(default_factory=Count)
    stopped: str = ""

    @property
    def all_notes(self) -> tuple[str, ...]:
        """What is kept and what is only told."""
        return (*self.notes, *self.asides)

    def kept(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Give what of a result is kept: names of items may be anything, a mail address too, and asides may quote."""
        notes = [note for note in result["notes"] if note not in self.asides]
        return {**result, "notes": notes} | (
            {"changed_items": []} if "changed_items" in result else {}
        )


def choose(store: Store, draft: Draft, choice: Choice) -> tuple[Run, list[str]]:
    """Find the run to go on with or begin a new one, and say so."""
    if choice.resume is not None and choice.fresh:
        raise UsageError(
            f"run {choice.resume} is to be gone on with, and a fresh one begun",
            hint="give --resume or --fresh",
        )
    if choice.resume is not None:
        found = history.find(store, choice.resume)
        if found.identity != draft.identity:
            unset = dict.fromkeys({*found.settings, *draft.settings})
            what = history.differences(
                {**found.comparable, **unset, **found.settings},
                {**draft.comparable, **unset, **draft.settings},
            )
            if found.data != draft.data:
                what.append("the data is not the same")
            what = [
                one for one in what if not one.startswith("turns:")
            ] or what  # It follows from the others.
            raise UsageError(
                f"run {found.id} was another command: {'; '.join(what) or 'another name, kind or baseline'}",
                hint="give the same data and options as then; budget, tolerance, confidence, target error and canary may differ",
            )
        return found, [f"going on with run {found.id}"]
    begun = history.begin(store, draft, fresh=choice.fresh)
    if begun.resumed:
        return begun.run, [
            f"going on with run {begun.run.id}, which was not finished (--fresh begins a new one)"
        ]
    if begun.too_old is not None:
        old = begun.too_old
        return begun.run, [
            f"run {old.id} of {old.touched[:10]} was never finished and is too old to be mixed with new answers; "
            f"--resume {old.id} goes on with it all the same"
        ]
    return begun.run, []


@contextmanager
def claimed(store: Store, run: Run) -> Iterator[None]:
    """Hold a run; a second process is told so."""
    with store.claim(run.id):
        history.pause(store, run.id, "interrupted")  # Until it ends in a better way.
        yield


async def ask(
    store: Store,
    session: Session,
    source: Sampling,
    *,
    repeat: bool = False,
    strict: bool = True,
    enough: "Callable[[], Stopped | None] | None" = None,
) -> Stopped:
    """Ask what the source wants to know, after telling it what the journal knows already, until that is enough.

    Strict: stop with an error when the first answers are none of the data's labels.
    """
    past = session.past
    place = places(session.data, [*past.answers, *past.unanswered])
    first: list[Query] = []
    if not repeat:
        for key, recorded in past.answers.items():
            source.sent(_query(place[key], past.draws.get(key)))
            source.tell(Answer(place[key], recorded.prediction, recorded.confidence))
        for key in past.unanswered:
            query = _query(place[key], past.draws.get(key))
            source.sent(query)
            first.append(query)
    budget = Budget(session.spending.queries, session.spending.money, past.queries, past.money)
    writer = Journal(store, session.run.id, next_number=past.next_number)
    keys = session.data.keys
    assert keys is not None  # noqa: S101 - every way of making a data set gives it keys

    def answered() -> None:
        watch.show()
        if enough is not None and (why := enough()) is not None:
            engine.stop(why)

    engine = Engine(
        client=session.client,
        journal=writer,
        budget=budget,
        limits=session.limits,
        item=session.data.item,
        key=lambda item: int(keys[item]),
        on_answer=answered,
        answered_before=len(past.answers),
    )
    if enough is not None and (known := enough()) is not None:
        engine.stop(known)
    watch = Watch(
        budget,
        engine.count,
        len(session.data),
        session.client.priced,
        session.progress,
        session.error,
    )
    listening = (
        LabelCheck(source, session.data.labels) if strict and not free(session.client) else source
    )
    session.count = engine.count
    watching = asyncio.create_task(watch.keep_showing())
    try:
        with _interrupts(engine, session) if session.interruptible else nullcontext():
            stopped = await engine.run(listening, first=first, repeat=repeat)
    finally:
        watching.cancel()
        await writer.close()
    session.past = journal.past(store, session.run.id)
    if stopped not in ("interrupted", "failures") and _mostly_failed(session):
        stopped = "failures"
    if stopped == "failures":
        journal.reopen_errors(store, session.run.id)
        session.past = journal.past(store, session.run.id)
    if engine.count.overcharged:
        session.notes.append(
            f"{engine.count.overcharged:,} calls cost more than the worst price that was reserved for them; check the prices"
        )
    if stopped == "failures":
        session.asides.append(f"too many calls failed: {engine.count.in_words}")
    elif engine.count.errors:
        session.asides.append(
            f"{engine.count.errors:,} items failed for good; calls without an answer: {engine.count.in_words}"
        )
    return stopped


def _query(item: int, drawn: tuple[int, float, int] | None) -> Query:
    """Give a query of the journal as it was."""
    return Query(item, -1) if drawn is None else Query(item, -1, *drawn)


def _mostly_failed(session: Session) -> bool:
    """Say that too many of the items failed for good for what the others say to mean much."""
    past = session.past
    errors = sum(recorded.prediction == ERROR for recorded in past.answers.values()) + len(
        past.unanswered
    )
    return errors > session.limits.failures * (len(past.answers) + len(past.unanswered))


def free(client: Client) -> bool:
    """Say whether asking costs nothing."""
    return isinstance(client, ReplayClient)


def places(data: Dataset, keys: Collection[int]) -> dict[int, int]:
    """Give the places of the items that have these keys, by key; those that the data does not have are left out."""
    if not keys or data.keys is None:
        return {}
    wanted = np.fromiter(keys, np.int64, len(keys))
    order = np.argsort(data.keys, kind="stable")
    found = order[np.minimum(np.searchsorted(data.keys[order], wanted), len(order) - 1)]
    have = data.keys[found] == wanted
    return dict(zip(wanted[have].tolist(), found[have].tolist(), strict=True))


def known(data: Dataset, past: Past) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Column]:
    """Give the places (n,) of this data that a journal has answers for, and the answers as a column over them."""
    place = places(data, past.answers)
    found = sorted(
        (place[key], recorded.prediction) for key, recorded in past.answers.items() if key in place
    )
    values = in_order(tuple({prediction for _, prediction in found}))
    code = {value: j for j, value in enumerate(values)}
    column = Column(
        "answers", values, np.array([code[prediction] for _, prediction in found], np.int32)
    )
    return np.array([where for where, _ in found], np.int64), column


@contextmanager
def _interrupts(engine: Engine, session: Session) -> Iterator[None]:
    """Stop cleanly at the first Ctrl-C, at once at the second."""
    loop = asyncio.get_running_loop()
    times = 0

    def interrupted() -> None:
        nonlocal times
        times += 1
        if times == 1:
            engine.stop("interrupted")
            if session.progress is not None:
                session.progress(
                    f"stopping; waiting for {engine.under_way} answers, Ctrl-C again does not wait",
                    1.0,
                )
        else:
            engine.abandon()

    signals = [signal.SIGINT, signal.SIGTERM]
    with suppress(NotImplementedError, RuntimeError):
        for number in signals:
            loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        with suppress(NotImplementedError, RuntimeError):
            for number in signals:
                loop.remove_signal_handler(number)
