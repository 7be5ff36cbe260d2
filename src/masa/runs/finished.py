"""A finished run, read back with everything that is at hand: nothing is asked."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from masa.data.dataset import Dataset
from masa.errors import MasaError, UsageError
from masa.records import ERROR, AnswerTable, Assessment, Baseline
from masa.runs import answers
from masa.runs.answers import OldAnswers
from masa.runs.config import FILE, Config
from masa.runs.task import labelled_data
from masa.storage import history, journal
from masa.storage.damage import readable
from masa.storage.history import Run
from masa.storage.store import Store

JUDGED = ("assess", "compare")
"""The kinds of runs that have a verdict."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished run and its result."""

    run: Run
    result: "Assessment | Baseline"
    notes: tuple[str, ...] = ()
    """what could not be had, and why"""


def find(store: Store, number: int | None) -> Run:
    """Find a finished run: the one of this number, or the latest."""
    if number is None:
        ended = [run for run in history.runs(store) if run.finished and run.result]
        if not ended:
            begun = history.runs(store, most=1)
            hint = "masa assess or masa baseline makes one"
            if begun:
                hint = f"run {begun[-1].id} is kept: run its command again to finish it"
            raise UsageError(f"no run in {store.path} is finished", hint=hint)
        return ended[-1]
    found = history.find(store, number)
    if found.result is None:
        raise UsageError(
            f"run {number} is not finished",
            hint="masa report shows finished runs; run its command again to finish it",
        )
    return found


def columns_of(run: Run) -> dict[str, Any]:
    """Give the columns that a run read, as far as it is known which."""
    made = (run.result or {}).get("made") or {}
    settings = {**run.settings, **made.get("settings", {})}
    named = {name: settings.get(name) for name in ("also", "old_confidence")}
    return {**named, "old": run.settings.get("old"), "api": run.comparable.get("api")}


def data_at_hand(config: Path | None, run: Run) -> tuple[Dataset | None, tuple[str, ...]]:
    """Read the data that a configuration names, where there is one; else say why not."""
    if config is None and not FILE.is_file():
        return None, ("items are not named: there is no masa.toml that says where the data is",)
    try:
        return labelled_data(Config.load(config), columns_of(run)), ()
    except MasaError as exc:
        if config is not None:
            raise
        return None, (f"items are not named: {exc.message}",)


def any_run(store: Store, number: int | None) -> Run:
    """Find a run that may be unfinished: the one of this number, or the latest."""
    if number is not None:
        return history.find(store, number)
    known = history.runs(store, most=1)
    if not known:
        raise UsageError(f"there is no run in {store.path}", hint="masa assess makes one")
    return known[-1]


def the_baseline(store: Store, number: int | None, name: str) -> Run:
    """Find the run of this number, or else the baseline of a name."""
    run = history.current(store, name) if number is None else history.find(store, number)
    if run is None:
        raise UsageError(
            f"there is no baseline called {name!r} in {store.path}",
            hint="make one with masa baseline",
        )
    return run


def read_back(
    store: Store,
    run: Run,
    data: Dataset | None,
    *,
    texts: bool = False,
    notes: tuple[str, ...] = (),
) -> Finished:
    """Read a finished run, with its answers and, where the data is at hand, what they are about."""
    result = run.result or {}
    with readable(store.path, run.id):
        if run.kind not in JUDGED:
            return Finished(run, Baseline.from_dict(result))
        found = Assessment.from_dict(result)
    table, more = answers_of(store, run, data, texts=texts)
    full = replace(found, table=table, notes=(*found.notes, *since_last(store, run)))
    return Finished(run, replace(full, changed_items=full.all_changed_items), (*notes, *more))


def since_last(store: Store, run: Run) -> tuple[str, ...]:
    """Tell what changed since the last assessment of the same name, beside since the baseline."""
    before = [
        one
        for one in history.runs(store, name=run.name, kind="assess")
        if one.id < run.id and one.finished
    ]
    if run.kind != "assess" or not before or before[-1].id == run.baseline:
        return ()
    then = journal.past(store, before[-1].id).answers
    now = journal.past(store, run.id).answers
    both = [
        key
        for key in then.keys() & now.keys()
        if ERROR not in (then[key].prediction, now[key].prediction)
    ]
    if not both:
        return ()
    differing = sum(then[key].prediction != now[key].prediction for key in both)
    return (
        f"since run {before[-1].id} ({before[-1].created[:10]}): {differing:,} of {len(both):,} "
        "answers differ about the items that both asked",
    )


def answers_of(
    store: Store, run: Run, data: Dataset | None, *, texts: bool = False
) -> tuple[AnswerTable, tuple[str, ...]]:
    """Give the answers of a run, and what about them could not be had."""
    past = journal.past(store, run.id)
    notes: tuple[str, ...] = ()
    if data is not None and past.answers and answers.missing(data, past) == len(past.answers):
        data, notes = None, ("items are not named: the data of masa.toml has none of them",)
    old = _old(store, run, data)
    priced = (run.result or {}).get("cost") is not None or past.money > 0
    return answers.table(run.id, past, old, data, priced=priced, inputs=texts), notes


def _old(store: Store, run: Run, data: Dataset | None) -> OldAnswers:
    """Give the old answers: a column of the data, or those of the runs before."""
    column = run.settings.get("old")
    if column and data is not None and column in data.predictions:
        return OldAnswers.of_column(data, column, run.settings.get("old_confidence"))
    return OldAnswers.stored(store, run)
