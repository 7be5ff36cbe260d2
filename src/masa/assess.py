"""Assess an API: what it answers now against what it answered before. The only place where the sampler and a client meet."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from masa import estimate, history, intervals, journal, live
from masa.budget import amount, billionths
from masa.clients import Client, Function
from masa.clients.replay import ReplayClient
from masa.dataset import Dataset, oddities
from masa.engine import Limits
from masa.errors import DataError, UsageError
from masa.history import Draft, Run
from masa.intervals import Spread
from masa.journal import Past
from masa.live import Choice, Session, Spending
from masa.paired import paired
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
    Query,
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
    again: Mapping[int, bool] = field(default_factory=dict)
    """the places of the items that were asked twice, and whether they were answered differently"""
    drawn: Mapping[str, Any] | None = None
    """how the items were chosen, where that depended on the answers"""
    notes: tuple[str, ...] = ()

    @property
    def repeated(self) -> int:
        """How many items were asked twice."""
        return len(self.again)

    @property
    def contradicted(self) -> int:
        """How many of them were answered differently."""
        return sum(self.again.values())


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
        if not (isinstance(self.seed, int) and -(2**63) <= self.seed < 2**63):
            raise UsageError(f"seed is {self.seed}", hint="give a whole number of at most 18 digits")
        if not 0.0 < self.confidence < 1.0:
            raise UsageError(f"confidence is {self.confidence:g}", hint="give a share between 0 and 1, such as 0.95")
        if self.method == "uniform" and self.mix is not None:
            raise UsageError("the method uniform knows no other mix of labels", hint="use post-stratified, or leave out the mix")
        if not 0.0 <= self.tolerance < 1.0:
            raise UsageError(f"tolerance is {self.tolerance:g}", hint="give a share such as 0.01, one point of accuracy")


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
        _refuse_other_strata(old, chosen, difficulty)
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
            told = Told(Sampler(strata, method=chosen.method, seed=chosen.seed), old)
            session.error = told.error
            try:
                # An API that spoke of these labels before and does not now has changed; one that never did is misread.
                stopped = await live.ask(kept, session, told, strict=not set(old.answers.values) & set(data.label.values))
            finally:
                await asked.close()
            result = conclude(session, strata, old, chosen, stopped, sides)
            _close(kept, session, result)
    return result


assess = live.waiting(assess_async)


def conclude(
    session: Session, strata: Strata, old: Old, settings: Settings, stopped: str, sides: tuple[str, str] = ("before", "now")
) -> Assessment:
    """Fold the journal, and nothing else, into a result: the same whether the run was interrupted or not."""
    data, past = session.data, session.past
    finite = old.contradicted == 0
    compared_to, differing = _differences(data, past, old)
    places, answers = live.known(data, past)
    found = None
    notes = list(session.all_notes)
    if len(places):
        found = estimated(strata, old, places, answers, finite=finite)
        notes += _cautions(strata, places, old, settings.method)
    moved = _moved(strata, compared_to, differing, old)
    if differing and not old.repeated and old.run is not None:
        notes.append(
            "whether the API contradicts itself was not measured (masa baseline --repeat N does); it is taken to repeat itself"
        )
    called = version(past)
    notes += odd_answers(data, past)
    if called and ", " in called:
        notes.append(f"the provider named more than one version during this run: {called}")
    unfinished = stopped in ("failures", "interrupted")
    return Assessment(
        run=session.run.id,
        verdict="undecided" if found is None or unfinished else verdict(found.interval(settings.confidence), settings.tolerance),
        moved=moved,
        stopped=stopped,
        items=len(data),
        queries=past.queries,
        answers=sum(answer.prediction != ERROR for answer in past.answers.values()),
        errors=sum(answer.prediction == ERROR for answer in past.answers.values()),
        cost=None if not session.client.priced else amount(past.money),
        confidence=settings.confidence,
        tolerance=settings.tolerance,
        shift=None if found is None else found.shift,
        accuracy_change=None if found is None else found.interval(settings.confidence),
        error_bound=None if found is None else found.matrix.bound(settings.confidence),
        surprising=() if found is None else surprising(found.shift, found.deviations, strata, places),
        compared=len(compared_to),
        differing=len(differing),
        changed_items=tuple(item for _, item in zip(range(MOST_ITEMS), differing.values(), strict=False)),
        api_version=Versions(old.version, called),
        uniform_queries=None if found is None else _uniform_queries(found, strata, places, answers, finite=finite),
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
    place = live.places(data, past.repeats)
    pairs = {key: (past.answers[key].prediction, again) for key, again in past.repeats.items() if key in past.answers}
    return data, Old(
        places,
        answers,
        complete,
        _confidence(store, data, run),
        version(past),
        run.id,
        again={place[key]: pair[0] != pair[1] for key, pair in pairs.items() if key in place and ERROR not in pair},
        drawn=run.settings if run.kind == "assess" and run.settings["method"] == "masa" and not complete else None,
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
    if budget is None and money is None and not live.free(client):
        raise UsageError("no budget was given", hint="give budget= in queries, or money=; len(data) asks every item")
    if money is not None and not client.priced:
        raise UsageError("a budget in money needs a price", hint="tell what a call costs, or give a budget in queries")
    return Spending(budget, None if money is None else billionths(money))


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


def _refuse_other_strata(old: Old, settings: Settings, difficulty: str) -> None:
    """Raise if the old answers were drawn adaptively from other strata: what they weigh would be wrong."""
    if old.drawn is not None and (old.drawn["levels"], old.drawn["difficulty"]) != (settings.levels, difficulty):
        was = f"{old.drawn['levels']} levels of {old.drawn['difficulty'] or 'nothing'}"
        raise UsageError(
            f"run {old.run}, the baseline, chose its items adaptively from {was}, not from {settings.levels} levels of "
            f"{difficulty or 'nothing'}: its answers cannot be weighed here",
            hint="assess with the same difficulty and levels, or make a baseline with masa baseline",
        )


def _identity(settings: Settings, difficulty: str) -> dict[str, Any]:
    mix = None if settings.mix is None else dict(settings.mix)
    return {"method": settings.method, "levels": settings.levels, "seed": settings.seed, "mix": mix, "difficulty": difficulty}


@dataclass(frozen=True, slots=True, eq=False)
class Estimated:
    """A shift, and how far it may be off."""

    shift: Shift
    matrix: Spread
    accuracy: Spread
    deviations: Floats
    """(L, P) of the entries of the shift"""
    old_blind: float = 0.0

    def interval(self, confidence: float) -> Interval:
        """Give the interval for the change of accuracy.

        Labels without an answer count zero, and items that failed count as wrong, but all of them may be right.
        """
        margin, change = self.accuracy.margin(confidence), self.shift.accuracy.change
        below, above = (share_of(ERROR, matrix) for matrix in (self.shift.old, self.shift.new))
        low, high = change - margin - below - self.old_blind, change + margin + above + self.accuracy.blind
        return Interval(change, max(-1.0, low), min(1.0, high))


def estimated(strata: Strata, old: Old, places: Ints, answers: Column, *, finite: bool) -> Estimated:
    """Estimate the shift: by pairs of old and new answers where that is the surer way, else from each side alone."""
    if old.complete:
        before = Column(old.answers.name, old.answers.values, old.answers.codes[places])
        both = paired(strata, places, before, answers, all_old=old.answers, finite=finite)
        matrix, accuracy, deviations = both.matrix, both.accuracy, both.deviations
        if not finite:
            # Where an API contradicts itself, its old answers are one sample of what they might have been.
            then, rest = counted(strata, old.places, old.answers), 1.0 - both.lean
            matrix += intervals.matrix_spread(then, strata.size, finite=False).times(rest)
            accuracy += intervals.accuracy_spread(then, strata.size, finite=False).times(rest)
            side = _on(then, both.shift.new.predictions)
            deviations = np.hypot(
                deviations, rest * intervals.entry_deviations(side, strata.size, rates=_rates(both.shift), finite=False)
            )
        return Estimated(both.shift, matrix, accuracy, deviations)
    then, now = counted(strata, old.places, old.answers), counted(strata, places, answers)
    shift = Shift(estimate.matrix(then), estimate.matrix(now), estimate.stratum_reports(now, strata))
    rates = _rates(shift)
    sides = [_on(tally, shift.new.predictions) for tally in (then, now)]
    both_deviations = [intervals.entry_deviations(side, strata.size, rates=rates, finite=finite) for side in sides]
    matrices = [intervals.matrix_spread(side, strata.size, finite=finite) for side in (then, now)]
    accuracies = [intervals.accuracy_spread(side, strata.size, finite=finite) for side in (then, now)]
    alone = Estimated(
        shift,
        matrices[0] + matrices[1],
        replace(accuracies[0] + accuracies[1], blind=accuracies[1].blind),
        np.hypot(*both_deviations),
        accuracies[0].blind,
    )
    shared, first, second = np.intersect1d(old.places, places, return_indices=True)
    if not len(shared):
        return alone
    a, b = (Column(side.name, side.values, side.codes[at]) for side, at in ((old.answers, first), (answers, second)))
    both = paired(strata, shared, a, b, finite=finite)
    # By a margin: pairs look sure when they happen to show few differences, and choosing them then would hide change.
    sure = both.matrix.error2 + 1.64 * both.matrix.deviation < alone.matrix.error2
    surer = sure and both.matrix.blind <= max(matrices[0].blind, matrices[1].blind)
    return Estimated(both.shift, both.matrix, both.accuracy, both.deviations, both.accuracy.blind) if surer else alone


def _rates(shift: Shift) -> Floats:
    """Give the old share of each prediction within its label (L, P)."""
    weight = shift.old.values.sum(axis=1, keepdims=True)
    return np.asarray(shift.old.values / np.where(weight > 0.0, weight, 1.0))


def share_of(prediction: str, matrix: Matrix) -> float:
    """Give the share of all items that get a prediction."""
    return float(matrix.values[:, matrix.predictions.index(prediction)].sum()) if prediction in matrix.predictions else 0.0


def surprising(shift: Shift, deviations: Floats, strata: Strata, places: Ints) -> tuple[Surprise, ...]:
    """Give the entries that moved more than chance explains, the surest first; deviations (L, P) are their standard errors."""
    from scipy.special import ndtr

    weight = shift.old.values.sum(axis=1, keepdims=True)
    before, now = (matrix.values / np.where(weight > 0.0, weight, 1.0) for matrix in (shift.old, shift.new))
    answered = np.bincount(strata.label[strata.of(places)], minlength=len(strata.labels))
    found = []
    for i, j in zip(*np.nonzero(np.abs(shift.values) > 1e-12), strict=True):
        label, prediction = shift.new.labels[i], shift.new.predictions[j]
        if prediction == ERROR or not answered[i]:
            continue
        chance = 2.0 * float(ndtr(-abs(shift.values[i, j]) / max(deviations[i, j], 1e-300)))
        if chance < SURPRISING:
            found.append(Surprise(label, prediction, float(before[i, j]), float(now[i, j]), chance))
    return tuple(sorted(found, key=lambda surprise: (surprise.chance, -abs(surprise.new - surprise.old))))


def _on(tally: Tally, predictions: tuple[str, ...]) -> Tally:
    """Lay counts out on these predictions, which must name at least those that occur."""
    place = {name: j for j, name in enumerate(predictions)}
    column = np.array([place[name] for name in tally.predictions], np.int32)
    return replace(tally, predictions=predictions, cell_prediction=column[tally.cell_prediction])


def _differences(data: Dataset, past: Past, old: Old) -> tuple[list[int], dict[int, ChangedItem]]:
    """Give the places whose old and new answers are both known, and the items where they differ, by place."""
    places, answers = live.known(data, past)
    before = np.full(len(data), -1, np.int32)
    before[old.places] = old.answers.codes
    both: list[int] = []
    differing: dict[int, ChangedItem] = {}
    for place, code, then in zip(places.tolist(), answers.codes.tolist(), before[places].tolist(), strict=True):
        was, new = old.answers.values[then] if then >= 0 else ERROR, answers.values[code]
        if ERROR in (was, new):
            continue
        both.append(place)
        if was != new:
            label = data.label.values[data.label.codes[place]]
            differing[place] = ChangedItem(data.name(place), label, was, new)
    return both, differing


def _moved(strata: Strata, compared_to: list[int], differing: Collection[int], old: Old) -> str:
    """Say whether anything changed: without a measured noise any difference is proof, with it more than the noise explains."""
    if not differing:
        return "no sign"
    if not old.repeated:
        return "yes"
    # Like with like: the sampler asks more where answers vary, and there an API contradicts itself more often too.
    changes, noise = (np.array(places, np.int64) for places in (compared_to, list(old.again)))
    chance = intervals.more_often(
        strata.of(changes), np.isin(changes, list(differing)), strata.of(noise), np.array(list(old.again.values()), bool)
    )
    return "yes" if chance < SURE else "noise"


def verdict(change: Interval, tolerance: float) -> str:
    """Say whether a change matters: all of its interval is outside the tolerance, or inside it, or neither."""
    slack = tolerance + 1e-12  # What rounding alone may make of no change.
    if change.low > slack or change.high < -slack:
        return "changed"
    return "unchanged" if -slack <= change.low and change.high <= slack else "undecided"


def _uniform_queries(found: Estimated, strata: Strata, places: Ints, answers: Column, *, finite: bool) -> int | None:
    """Give the queries that post-stratified uniform sampling needs for the same expected error, without the old answers."""
    each = intervals.matrix_spread(counted(strata, places, answers), strata.size, finite=finite).uniform
    if found.matrix.error2 <= 0.0 or each <= 0.0:
        return None
    return int(np.ceil(1.0 / (found.matrix.error2 / each + (1.0 / len(strata.items) if finite else 0.0))))


def _cautions(strata: Strata, places: Ints, old: Old, method: str) -> list[str]:
    notes = []
    for when, asked in (("", places), (" in the baseline", old.places)):
        answered = np.bincount(strata.label[strata.of(asked)], minlength=len(strata.labels))
        blind = [repr(strata.labels[i]) for i in np.flatnonzero((strata.label_weight > 0.0) & (answered == 0))]
        if blind:
            some = ", ".join(blind[:5]) + (", ..." if len(blind) > 5 else "")
            notes.append(
                f"nothing was asked{when} about {len(blind)} of the labels ({some}): their part of the matrix counts as zero"
            )
    if not old.complete:
        notes.append(f"the old matrix is an estimate from {len(old.places):,} answers; the interval and the error allow for that")
    if method == "masa" and len(places) < len(strata.items):
        notes.append(
            "the interval is the usual one for strata: it does not allow for the sampling being adaptive, which makes accuracy "
            "look a little better than it is (docs/method.md); --method post-stratified is free of that"
        )
    return notes


def odd_answers(data: Dataset, past: Past) -> list[str]:
    """Tell what about the answers is probably not what the user meant."""
    return list(oddities(data.label, replace(live.known(data, past)[1], name="the API"))) if past.answers else []


def version(past: Past) -> str | None:
    """Give what the provider called its model, all of it if that changed during a run."""
    found = dict.fromkeys(answer.version for answer in past.answers.values() if answer.version)
    return ", ".join(found) or None


class Told:
    """A sampler that keeps what it is told, to say how sure the estimate is by now."""

    def __init__(self, sampler: Sampler, old: Old) -> None:
        self.sampler = sampler
        self._old = old
        self._places: list[int] = []
        self._answers: list[str] = []
        self._known: tuple[int, float | None] = (0, None)

    def ask(self, n: int = 1) -> list[Query]:
        """Ask the sampler."""
        return self.sampler.ask(n)

    def sent(self, query: Query) -> None:
        """Tell the sampler."""
        self.sampler.sent(query)

    def tell(self, answer: Answer) -> None:
        """Tell the sampler."""
        self.sampler.tell(answer)
        self._places.append(answer.item)
        self._answers.append(answer.prediction)

    def error(self) -> float | None:
        """Give the root of the expected squared error, anew after every few percent of answers."""
        count, known = self._known
        if len(self._places) > 2 * len(self.sampler.strata) and len(self._places) > 1.05 * count:
            values = tuple(dict.fromkeys(self._answers))
            code = {value: j for j, value in enumerate(values)}
            column = Column("answers", values, np.array([code[value] for value in self._answers], np.int32))
            found = estimated(self.sampler.strata, self._old, np.array(self._places, np.int64), column, finite=True)
            known = found.matrix.error2**0.5
            self._known = len(self._places), known
        return known


def _close(store: Store, session: Session, result: Assessment) -> None:
    if result.stopped in ("interrupted", "failures"):
        history.pause(store, session.run.id, result.stopped)
    else:
        history.finish(store, session.run.id, result.stopped, session.kept(result.to_dict()))
