"""What an API answered before: the baseline, laid over the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from masa import history, journal, live
from masa.clients import Client
from masa.dataset import Dataset, oddities
from masa.errors import DataError, UsageError
from masa.history import Run
from masa.journal import Past, Recorded
from masa.records import ERROR, Column, Floats, Ints
from masa.store import Store
from masa.strata import Strata

ENOUGH = 100
"""Items asked twice: if none of so many is answered differently, the API repeats itself."""


@dataclass(frozen=True, slots=True)
class Old:
    """What the API answered before, laid over the data."""

    places: Ints
    """(n,) the items whose old answer is known"""
    answers: Column
    """over those items"""
    confidence: Floats | None = None
    """(n,) of the answers, where all have one"""
    version: str | None = None
    run: int | None = None
    again: Mapping[int, bool] = field(default_factory=dict)
    """the places of the items that were asked twice, and whether they were answered differently"""
    shaky: bool = False
    """whether an earlier run saw the API contradict itself"""
    same_confidence: bool = False
    """whether the items that were asked twice, and are many, were answered with the same confidence both times"""
    stands: Floats | None = None
    """(n,) the share of all items that each stands for, where not all are known; together 1"""
    beyond: Floats | None = None
    """(n,) what a residual of it adds to the variance of a sum over all items, for the share of the sum that it is"""
    lost: float = 0.0
    """the share of all items of whose label nothing is known"""
    without: tuple[str, ...] = ()
    """those labels, and groups"""
    even: bool = True
    """whether they were asked by chance alone, those of a label alike"""
    notes: tuple[str, ...] = ()

    @property
    def repeated(self) -> int:
        """How many items were asked twice."""
        return len(self.again)

    @property
    def contradicted(self) -> int:
        """How many of them were answered differently."""
        return sum(self.again.values())

    @property
    def steady(self) -> bool:
        """Whether the API repeats itself: that is what is thought of one that was not asked twice often enough to tell."""
        return not self.shaky and self.contradicted == 0 and (self.repeated == 0 or self.repeated >= ENOUGH)


def compared(
    store: Store,
    data: Dataset,
    client: Client,
    baseline: "str | Column | int | None",
    *,
    name: str,
    confidence: str | None = None,
    force: bool = False,
) -> tuple[Dataset, Old]:
    """Find the old answers, and the items that both they and the data have; confidence names a column of the data's own."""
    if isinstance(baseline, str):
        if baseline not in data.predictions:
            raise DataError(f"the data has no column {baseline!r} of predictions", hint="read it with predictions=[...]")
        baseline = data.predictions[baseline]
    if isinstance(baseline, Column):
        return data, columned(data, baseline, confidence)
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


def columned(data: Dataset, answers: Column, confidence: str | None = None) -> Old:
    """Take the old answers from a column over the data, and their confidence from another."""
    return Old(np.arange(len(data)), answers, data.numbers.get(confidence or ""))


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
    changed = len(both) < len(data) or len(both) < len(then)
    if changed:
        notes.append(
            f"the data changed since run {run.id}: compared on the {len(both):,} items that both have "
            f"({len(data) - len(both):,} are new, {len(then) - len(both):,} are gone)"
        )
        data = data.take(both)
    if not data.labels:
        raise DataError(
            f"of the items of {data.source} only those without a label were in the data of run {run.id}",
            hint="make a new baseline (masa baseline)",
        )
    places, answers = live.known(data, past)
    if not len(places):
        raise DataError(f"run {run.id} has no answer about any of these items", hint="make a new baseline (masa baseline)")
    stands = beyond = None
    if len(places) < len(data):
        by_chance = run.kind != "assess"
        stands, beyond = evenly(data, places, run.settings.get("levels", 3)) if by_chance else _weighed(data, places, run, past)
    twice = _twice(past)
    pairs = {key: (first.prediction, again.prediction) for key, (first, again) in twice.items()}
    shaky = False
    if not pairs and run.baseline is not None:
        # What is known of noise was seen before this run: what is left of it are the items that were asked here, too.
        before = _before(store, run)
        pairs = {key: pair for key, pair in before.items() if key in past.answers}
        shaky = any(first != again for first, again in before.values())
    place = live.places(data, pairs)
    sure = [(first.confidence, again.confidence) for first, again in twice.values()]
    return data, Old(
        places,
        answers,
        _confidence(data, places, past),
        version(past),
        run.id,
        again={place[key]: pair[0] != pair[1] for key, pair in pairs.items() if key in place and ERROR not in pair},
        shaky=shaky,
        same_confidence=len(sure) >= ENOUGH and all(then is not None and then == now for then, now in sure),
        stands=stands,
        beyond=beyond,
        even=stands is None or run.kind != "assess",
        notes=tuple(notes),
    )


def _twice(past: Past) -> "dict[int, tuple[Recorded, Recorded]]":
    """Give both answers about the items that were asked twice, by key."""
    return {key: (past.answers[key], again) for key, again in past.repeats.items() if key in past.answers}


def _before(store: Store, run: Run) -> dict[int, tuple[str, str]]:
    """Give what the items were answered that a run's baseline, or its baseline's, asked twice, by key."""
    found: dict[int, tuple[str, str]] = {}
    while run.baseline is not None and not found:
        run = history.find(store, run.baseline)
        twice = _twice(journal.past(store, run.id))
        found = {key: (first.prediction, again.prediction) for key, (first, again) in twice.items()}
        found = {key: pair for key, pair in found.items() if ERROR not in pair}
    return found


def narrowed(data: Dataset, old: Old) -> tuple[Dataset, Old]:
    """Keep the items whose old answer is known: they stand for the others, and asked again they tell most of what changed."""
    if old.stands is None:
        return data, old
    kept = data.take(old.places)
    if not kept.labels:
        raise DataError("the baseline has only answers about items without a label", hint="make a new baseline (masa baseline)")
    notes = [
        f"the baseline has {len(kept):,} of {len(data):,} items: they alone are asked and stand for all, "
        "which the intervals and the error allow for"
    ]
    known = np.unique(data.label.codes[old.places[old.stands > 0.0]])
    without = data.labelled & ~np.isin(data.label.codes, known)
    lost = float(np.count_nonzero(without) / np.count_nonzero(data.labelled))
    names = tuple(data.label.values[code] for code in np.unique(data.label.codes[without]).tolist())
    if names:
        notes.append(
            f"the baseline has nothing about {len(names):,} of the labels ({_some(names)}), {100 * lost:.2g}% of the items: "
            "nothing is known of what became of them, which the intervals allow for"
        )
    groups: tuple[str, ...] = ()
    if data.group is not None and kept.group is not None:
        groups = tuple(sorted(set(data.group.values) - set(kept.group.values)))
    if groups:
        notes.append(f"the baseline has nothing about {len(groups):,} of the groups ({_some(groups)}): they are left out")
    place = {before: now for now, before in enumerate(old.places.tolist())}
    again = {place[before]: twice for before, twice in old.again.items()}
    return kept, replace(
        old, places=np.arange(len(kept)), again=again, lost=lost, without=names + groups, notes=(*old.notes, *notes)
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def evenly(data: Dataset, places: Ints, levels: int) -> tuple[Floats, Floats]:
    """Tell what items (n,) stand for that were asked by chance, in proportion to the strata, and what they add to the variance.

    Strata of which none was asked are carried by others of their label, and labels by other labels.
    """
    strata = Strata.build(data.label, difficulty=data.difficulty, levels=levels)
    stratum = strata.of(places)
    asked = np.bincount(stratum, minlength=len(strata))
    some = np.where(asked > 0, strata.weight, 0.0)
    label = np.bincount(strata.label, some, len(strata.labels))
    share = some * (strata.label_weight / np.where(label > 0.0, label, 1.0))[strata.label]
    stands = (share / (share.sum() or 1.0) / np.maximum(asked, 1))[stratum]
    return stands, stands * (1.0 - asked / strata.size)[stratum]


def _weighed(data: Dataset, places: Ints, run: Run, past: Past) -> tuple[Floats, Floats]:
    """Tell what the items of an assessment (n,) stand for, as it weighed them, and what they add to the variance.

    What those of a label stand for together is what the label is of the data now.
    """
    if not past.stands:
        why = "it is not finished" if run.finished is None else "it asked canaries alone, or was made by an earlier masa"
        raise UsageError(
            f"run {run.id}, the baseline, asked {len(places):,} of {len(data):,} items and does not say what they stand for",
            hint=f"{why}; make a baseline with masa baseline",
        )
    mix = run.settings.get("mix") or {}
    if not all(mix.values()) and not set(mix) <= set(data.labels):
        raise UsageError(
            f"run {run.id}, the baseline, left out the groups with a share of 0", hint="make a baseline with masa baseline"
        )
    told = [past.stands.get(key, (0.0, 0.0)) for key in keys(data)[places].tolist()]
    stands, adds = np.array(told, np.float64).T
    label = data.label.codes[places]
    together = np.bincount(label, stands, len(data.label.values))
    share = np.where(together > 0.0, np.bincount(data.label.codes[data.labelled], minlength=len(together)), 0.0)
    times = (share / max(share.sum(), 1.0) / np.where(together > 0.0, together, 1.0))[label]
    return stands * times, np.divide(adds, stands, out=np.zeros(len(adds)), where=stands > 0.0) * times


def _confidence(data: Dataset, places: Ints, past: Past) -> Floats | None:
    """Give the confidence of the answers about these items (n,), if all have one."""
    told = [past.answers[key].confidence for key in keys(data)[places].tolist()]
    return None if None in told else np.array(told, np.float64)


def comparable(client: Client, data: Dataset) -> dict[str, Any]:
    """Tell what two runs must share to be compared, besides the items."""
    return {**client.describe(), "input": [] if data.inputs is None else list(data.inputs.columns)}


def keys(data: Dataset) -> Ints:
    """Give the keys of the items."""
    if data.keys is None:
        raise DataError("the data has no keys", hint="make it with masa.read or Dataset.of")
    return data.keys


def odd_answers(data: Dataset, answers: Column) -> list[str]:
    """Tell what about the answers is probably not what the user meant."""
    return list(oddities(data.label, replace(answers, name="the API"))) if answers.values else []


def version(past: Past) -> str | None:
    """Give what the provider called its model, all of it if that changed during a run."""
    found = dict.fromkeys(answer.version for answer in past.answers.values() if answer.version)
    return ", ".join(found) or None
