"""Assess an API: what it answers now against what it answered before. The only place where the sampler and a client meet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from masa import estimate, history, intervals, journal, live
from masa.budget import amount, billionths
from masa.clients import Client, Function
from masa.clients.replay import ReplayClient
from masa.dataset import Dataset
from masa.engine import Limits
from masa.errors import DataError, UsageError
from masa.history import Draft, Run
from masa.journal import Past
from masa.live import Choice, Session, Spending
from masa.records import (
    ERROR,
    Answer,
    Assessment,
    ChangedItem,
    Column,
    Floats,
    Interval,
    Ints,
    Matrix,
    Progress,
    Shift,
    Surprise,
    Tally,
    Versions,
)
from masa.sampler import Sampler, counted
from masa.store import DEFAULT, Store, opened
from masa.strata import Strata

SURE = 0.01
"""The chance of an error in saying that a noisy API moved."""

SURPRISING = 0.05
"""An entry that moved is told if an entry that did not would look like it less often than this."""

MOST_ITEMS = 20
"""Changed items that are named."""

METHODS = ("masa", "post-stratified", "stratified", "uniform")


@dataclass(frozen=True, slots=True)
class Old:
    """What the API answered before, laid over the data."""

    places: Ints
    """(n,) the items whose old answer is known"""
    answers: Column
    """over those items"""
    complete: bool
    """whether the old matrix is known, and not only estimated"""
    confidence: Floats | None = None
    """(N,) where every item has one"""
    version: str | None = None
    run: int | None = None
    repeated: int = 0
    contradicted: int = 0
    """of the items that were asked twice, those answered differently"""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """How to assess; what makes two commands the same."""

    method: str = "masa"
    levels: int = 3
    seed: int = 0
    mix: Mapping[str, float] | None = None
    tolerance: float = 0.01
    confidence: float = 0.95
    difficulty: str = ""
    """what the data's difficulty is, in words"""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"there is no method {self.method!r} for live queries", hint=f"there are {', '.join(METHODS)}")
        if not 0.0 < self.confidence < 1.0:
            raise UsageError(f"confidence is {self.confidence:g}", hint="give a share between 0 and 1, such as 0.95")
        if not 0.0 <= self.tolerance < 1.0:
            raise UsageError(f"tolerance is {self.tolerance:g}", hint="give a share such as 0.01, one point of accuracy")


def assess(data: Dataset, client: "Client | Callable[..., Any] | str", **options: Any) -> Assessment:
    """Assess an API and wait for the result; see `assess_async` for the options.

    >>> data = Dataset.of(["no", "yes"] * 20, predictions={"old": ["no", "yes"] * 20, "new": ["no", "no"] * 20})
    >>> found = assess(data, "replay:new", baseline="old", budget=30, store=None)
    >>> found.verdict, found.queries
    ('changed', 30)
    """
    return live.finished(assess_async(data, client, **options))


async def assess_async(
    data: Dataset,
    client: "Client | Callable[..., Any] | str",
    *,
    baseline: "str | Column | int | None" = None,
    budget: int | None = None,
    money: float | str | None = None,
    settings: Settings | None = None,
    method: str = "masa",
    levels: int = 3,
    seed: int = 0,
    mix: Mapping[str, float] | None = None,
    tolerance: float = 0.01,
    confidence: float = 0.95,
    limits: Limits | None = None,
    name: str = "default",
    store: "str | Path | None" = DEFAULT,
    resume: int | None = None,
    fresh: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    sides: tuple[str, str] = ("before", "now"),
    interruptible: bool = False,
) -> Assessment:
    """Ask the API about items of the data, within a budget in queries, money or both, and compare with its old answers.

    The client is one of masa's, a function that is given an item's text and gives a label, or `replay:COLUMN`. The baseline
    is a column of the data with the old answers, the number of a run in the store, or else the store's own for this name.
    Everything is journalled in the store, so that the same call goes on where it was interrupted; `store=None` keeps nothing.
    """
    asked = as_client(client, data)
    chosen = settings or Settings(method, levels, seed, mix, tolerance, confidence)
    spending = budgeted(asked, budget, money)
    with opened(store) as kept:
        data, old = compared(kept, data, asked, baseline, name=name, force=force)
        strata, difficulty = stratified(data, old, chosen)
        draft = Draft(
            name=name,
            kind="assess",
            settings=_identity(chosen, difficulty),
            comparable=comparable(asked, data),
            keys=keys(data),
            data=data.fingerprint(),
            baseline=old.run,
        )
        run, notes = live.choose(kept, draft, Choice(resume, fresh))
        with live.claimed(kept, run):
            session = Session(
                run,
                data,
                asked,
                limits or Limits(),
                spending,
                journal.past(kept, run.id),
                notes=[*data.notes, *old.notes, *notes],
                progress=progress,
                interruptible=interruptible,
            )
            sampler = Sampler(strata, method=chosen.method, seed=chosen.seed)
            session.error = lambda: _error(sampler)
            try:
                stopped = await live.ask(kept, session, sampler)
            finally:
                await asked.close()
            result = conclude(session, strata, old, chosen, stopped, sides)
            _close(kept, run, result)
    return result


def conclude(
    session: Session, strata: Strata, old: Old, settings: Settings, stopped: str, sides: tuple[str, str] = ("before", "now")
) -> Assessment:
    """Fold the journal, and nothing else, into a result: the same whether the run was interrupted or not."""
    data, past = session.data, session.past
    sampler = Sampler(strata, method=settings.method, seed=settings.seed)
    place = live.places(data, past.answers)
    for key, recorded in past.answers.items():
        sampler.tell(Answer(place[key], recorded.prediction))
    finite = old.contradicted == 0
    tally = sampler.tally()
    compared_to, differing = _differences(data, past, old)
    shift = change = bound = uniform = None
    surprises: tuple[Surprise, ...] = ()
    notes = list(session.notes)
    if sampler.answered:
        old_matrix, old_tally = _old_matrix(sampler.strata, old)
        shift = estimate.shift(tally, old=old_matrix, strata=sampler.strata)
        new = intervals.matrix_spread(tally, sampler.group_items, finite=finite)
        before = intervals.EXACT if old_tally is None else intervals.matrix_spread(old_tally, sampler.strata.size, finite=finite)
        bound = (new + before).bound(settings.confidence)
        change = _accuracy_change(tally, sampler, old_tally, shift, settings.confidence, finite=finite)
        surprises = surprising(shift, tally, sampler.group_items, finite=finite)
        uniform = _uniform_queries(new, len(data), finite=finite)
        notes += _cautions(sampler, tally, old)
    moved = _moved(len(compared_to), len(differing), old)
    if moved == "yes" and not old.repeated and old.run is not None:
        notes.append(
            "whether the API contradicts itself was not measured (masa baseline --repeat N does); it is taken to repeat itself"
        )
    called = version(past)
    if called and ", " in called:
        notes.append(f"the provider named more than one version during this run: {called}")
    failed = stopped == "failures"
    return Assessment(
        run=session.run.id,
        verdict="undecided" if failed or change is None or stopped == "interrupted" else verdict(change, settings.tolerance),
        moved=moved,
        stopped=stopped,
        items=len(data),
        queries=past.queries,
        answers=sum(answer.prediction != ERROR for answer in past.answers.values()),
        errors=sum(answer.prediction == ERROR for answer in past.answers.values()),
        cost=None if not session.client.priced else amount(past.money),
        confidence=settings.confidence,
        tolerance=settings.tolerance,
        shift=shift,
        accuracy_change=change,
        error_bound=bound,
        surprising=surprises,
        compared=len(compared_to),
        differing=len(differing),
        changed_items=tuple(differing[:MOST_ITEMS]),
        api_version=Versions(old.version, called),
        uniform_queries=uniform,
        method=settings.method,
        seed=settings.seed,
        sides=sides,
        notes=tuple(notes),
    )


def compared(
    store: Store, data: Dataset, client: Client, baseline: "str | Column | int | None", *, name: str, force: bool = False
) -> tuple[Dataset, Old]:
    """Find the old answers, and the items that both they and the data have."""
    if isinstance(baseline, str):
        if baseline not in data.predictions:
            raise DataError(f"the data has no column {baseline!r} of predictions", hint="read it with predictions=[...]")
        baseline = data.predictions[baseline]
    if isinstance(baseline, Column):
        return data, Old(np.arange(len(data)), baseline, complete=True)
    run = history.current(store, name) if baseline is None else history.find(store, baseline)
    if run is None:
        others = [other for other in history.names(store) if other != name]
        hint = "make one with masa baseline, or name the column of the old answers with --old COL"
        raise UsageError(
            f"there is no baseline called {name!r} in {store.path}",
            hint=f"there are {', '.join(map(repr, others))} (--name); or {hint}" if others else hint,
        )
    different = history.differences(run.comparable, comparable(client, data))
    if different and not force:
        raise UsageError(
            f"run {run.id}, the baseline, is not comparable: {'; '.join(different)}",
            hint="make a new baseline (masa baseline), or compare all the same with --force",
        )
    return laid_over(store, data, run, [f"compared all the same: {what}" for what in different])


def laid_over(store: Store, data: Dataset, run: Run, notes: "list[str] | None" = None) -> tuple[Dataset, Old]:
    """Lay the answers of a stored run over the data, on the items that both have."""
    notes = list(notes or [])
    then, past = history.keys(store, run), journal.past(store, run.id)
    if not past.answers:
        raise UsageError(f"run {run.id} has no answers to compare with", hint="choose another baseline")
    both = np.flatnonzero(np.isin(keys(data), then))
    if not len(both):
        raise DataError(
            f"no item of {data.source} was in the data of run {run.id}",
            hint="items are known by their id and input; are these the same columns and the same file?",
        )
    if len(both) < len(data) or len(both) < len(then):
        notes.append(
            f"the data changed since run {run.id}: compared on the {len(both):,} items that both have "
            f"({len(data) - len(both):,} are new, {len(then) - len(both):,} are gone)"
        )
        data = data.take(both)
    places, answers = live.known(data, past)
    if not len(places):
        raise DataError(f"run {run.id} has no answer about any of these items", hint="make a new baseline (masa baseline)")
    complete = len(places) == len(data)
    pairs = [(past.answers[key].prediction, again) for key, again in past.repeats.items() if key in past.answers]
    return data, Old(
        places,
        answers,
        complete,
        _confidence(store, data, run),
        version(past),
        run.id,
        repeated=len(pairs),
        contradicted=sum(first != again for first, again in pairs),
        notes=tuple(notes),
    )


def _confidence(store: Store, data: Dataset, run: Run) -> Floats | None:
    """Give the confidence of each item's answer (N,), if all are known, or else those of the run that this one was compared with.

    A run that was accepted as a baseline was drawn from strata made of the latter: its answers must be weighed by the same ones.
    """
    answers = journal.past(store, run.id).answers
    place = live.places(data, answers)
    confidence = np.full(len(data), np.nan)
    for key, recorded in answers.items():
        if key in place and recorded.confidence is not None:
            confidence[place[key]] = recorded.confidence
    if np.isfinite(confidence).all():
        return confidence
    return None if run.baseline is None else _confidence(store, data, history.find(store, run.baseline))


def as_client(client: "Client | Callable[..., Any] | str", data: Dataset) -> Client:
    """Take a client, a function, or the name of a column of recorded predictions."""
    if isinstance(client, str):
        kind, _, column = client.partition(":")
        if kind != "replay" or column not in data.predictions:
            known = ", ".join(f"replay:{name}" for name in data.predictions)
            raise UsageError(
                f"{client!r} is not a client that can be made here", hint=f"give a function, or one of {known or 'no columns'}"
            )
        return ReplayClient(data.predictions[column])
    return client if isinstance(client, Client) else Function(client)


def budgeted(client: Client, budget: int | None, money: "float | str | None") -> Spending:
    """Check what may be spent: nothing is paid without a limit, and money is counted only where there is a price."""
    if budget is None and money is None and not free(client):
        raise UsageError("no budget was given", hint="give budget= in queries, or money=; len(data) asks every item")
    if money is not None and not client.priced:
        raise UsageError("a budget in money needs a price", hint="tell what a call costs, or give a budget in queries")
    return Spending(budget, None if money is None else billionths(money))


def free(client: Client) -> bool:
    """Say whether asking costs nothing."""
    return isinstance(client, ReplayClient)


def comparable(client: Client, data: Dataset) -> dict[str, Any]:
    """Tell what two runs must share to be compared, besides the items."""
    return {**client.describe(), "input": [] if data.inputs is None else list(data.inputs.columns)}


def keys(data: Dataset) -> Ints:
    """Give the keys of the items."""
    if data.keys is None:
        raise DataError("the data has no keys", hint="make it with masa.read or Dataset.of")
    return data.keys


def stratified(data: Dataset, old: Old | None, settings: Settings) -> tuple[Strata, str]:
    """Split the items by label and by what tells easy from hard, and say what that is."""
    difficulty, words = data.difficulty, settings.difficulty or "given"
    if difficulty is None:
        difficulty = None if old is None else old.confidence
        words = "" if difficulty is None else "the confidence of the baseline's answers"
    strata = Strata.build(data.label, difficulty=difficulty, levels=settings.levels, mix=settings.mix)
    return strata, words


def _identity(settings: Settings, difficulty: str) -> dict[str, Any]:
    mix = None if settings.mix is None else dict(settings.mix)
    return {"method": settings.method, "levels": settings.levels, "seed": settings.seed, "mix": mix, "difficulty": difficulty}


def _old_matrix(strata: Strata, old: Old) -> tuple[Matrix, Tally | None]:
    """Give the old matrix, and the counts it is estimated from where it is not known."""
    if old.complete:
        return estimate.true_matrix(strata, old.answers), None
    tally = counted(strata, old.places, old.answers)
    return estimate.matrix(tally), tally


def _accuracy_change(
    tally: Tally, sampler: Sampler, old_tally: Tally | None, shift: Shift, confidence: float, *, finite: bool
) -> Interval:
    new, old = intervals.accuracy_spread(tally, sampler.group_items, finite=finite), intervals.EXACT
    if old_tally is not None:
        old = intervals.accuracy_spread(old_tally, sampler.strata.size, finite=finite)
    margin, change = (new + old).margin(confidence), shift.accuracy.change
    # Labels without an answer count zero, but all of their items may be right.
    return Interval(change, max(-1.0, change - margin - old.blind), min(1.0, change + margin + new.blind))


def surprising(shift: Shift, tally: Tally, items: Ints, *, finite: bool) -> tuple[Surprise, ...]:
    """Give the entries that moved more than chance explains, the surest first; items (G,) are those of the tally's groups."""
    from scipy.special import ndtr

    weight = shift.old.values.sum(axis=1, keepdims=True)
    old, new = (matrix.values / np.where(weight > 0.0, weight, 1.0) for matrix in (shift.old, shift.new))
    laid_out = replace(
        tally,
        predictions=shift.new.predictions,
        cell_prediction=np.array([shift.new.predictions.index(tally.predictions[j]) for j in tally.cell_prediction], np.int32),
    )
    deviations = intervals.entry_deviations(laid_out, items, rates=old, finite=finite)
    answered = np.bincount(tally.cell_label, tally.counts, len(tally.labels))
    found = []
    for i, j in zip(*np.nonzero(np.abs(shift.values) > 1e-12), strict=True):
        label, prediction = shift.new.labels[i], shift.new.predictions[j]
        if prediction == ERROR or not answered[i]:
            continue
        chance = 2.0 * float(ndtr(-abs(shift.values[i, j]) / max(deviations[i, j], 1e-300)))
        if chance < SURPRISING:
            found.append(Surprise(label, prediction, float(old[i, j]), float(new[i, j]), chance))
    return tuple(sorted(found, key=lambda surprise: (surprise.chance, -abs(surprise.new - surprise.old))))


def _differences(data: Dataset, past: Past, old: Old) -> tuple[list[int], list[ChangedItem]]:
    """Give the places whose old and new answers are both known, and the items where they differ."""
    places, answers = live.known(data, past)
    before = np.full(len(data), -1, np.int32)
    before[old.places] = old.answers.codes
    both, differing = [], []
    for place, code, then in zip(places.tolist(), answers.codes.tolist(), before[places].tolist(), strict=True):
        was, new = old.answers.values[then] if then >= 0 else ERROR, answers.values[code]
        if ERROR in (was, new):
            continue
        both.append(place)
        if was != new:
            label = data.label.values[data.label.codes[place]]
            differing.append(ChangedItem(data.name(place), label, was, new))
    return both, differing


def _moved(compared_to: int, differing: int, old: Old) -> str:
    if not differing:
        return "no sign"
    if not old.contradicted:
        return "yes"
    from scipy.stats import fisher_exact

    table = [[differing, compared_to - differing], [old.contradicted, old.repeated - old.contradicted]]
    return "yes" if fisher_exact(table, alternative="greater").pvalue < SURE else "noise"


def verdict(change: Interval, tolerance: float) -> str:
    """Say whether a change matters: all of its interval is outside the tolerance, or inside it, or neither."""
    if change.low > tolerance or change.high < -tolerance:
        return "changed"
    return "unchanged" if -tolerance <= change.low and change.high <= tolerance else "undecided"


def _uniform_queries(new: intervals.Spread, items: int, *, finite: bool) -> int | None:
    """Give the post-stratified queries for the same expected error."""
    if new.error2 <= 0.0 or new.uniform <= 0.0:
        return None
    return int(np.ceil(1.0 / (new.error2 / new.uniform + (1.0 / items if finite else 0.0))))


def _cautions(sampler: Sampler, tally: Tally, old: Old) -> list[str]:
    notes = []
    answered = np.bincount(tally.cell_label, tally.counts, len(tally.labels))
    held = sampler.strata.label_weight > 0.0
    blind = [repr(label) for label, n, weighs in zip(tally.labels, answered, held, strict=True) if weighs and not n]
    if blind:
        some = ", ".join(blind[:5]) + (", ..." if len(blind) > 5 else "")
        notes.append(f"nothing was asked about {len(blind)} of the labels ({some}): their part of the matrix counts as zero")
    if not old.complete:
        notes.append(f"the old matrix is an estimate from {len(old.places):,} answers; the interval and the error allow for that")
    if sampler.method == "masa" and sampler.answered < len(sampler.strata.items):
        notes.append(
            "the interval is the usual one for strata: it does not allow for the sampling being adaptive, which makes accuracy "
            "look a little better than it is (docs/method.md); --method post-stratified is free of that"
        )
    return notes


def version(past: Past) -> str | None:
    """Give what the provider called its model, all of it if that changed during a run."""
    found = dict.fromkeys(answer.version for answer in past.answers.values() if answer.version)
    return ", ".join(found) or None


def _error(sampler: Sampler) -> float | None:
    if sampler.answered < 2 * len(sampler.strata):
        return None
    return float(intervals.matrix_spread(sampler.tally(), sampler.group_items).error2 ** 0.5)


def _close(store: Store, run: Run, result: Assessment) -> None:
    if result.stopped in ("interrupted", "failures"):
        history.pause(store, run.id, result.stopped)
    else:
        # Names of items may be anything, a mail address too; they are told, not kept.
        history.finish(store, run.id, result.stopped, {**result.to_dict(), "changed_items": []})
