"""What an API answered before: the baseline, laid over the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from masa import history, journal, live
from masa.clients import Client
from masa.dataset import Dataset, oddities
from masa.errors import DataError, UsageError
from masa.history import Run
from masa.journal import Past
from masa.records import ERROR, Column, Floats, Ints
from masa.store import Store

ADAPTIVE = ("masa", "adaptive", "paired", "predictive")
"""Methods that choose items by the answers to others."""


ENOUGH = 100
"""Items asked twice: if none of so many is answered differently, the API repeats itself."""


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
    same_confidence: bool = False
    """whether the items that were asked twice, and are many, were answered with the same confidence both times"""
    drawn: Mapping[str, Any] | None = None
    """how the items were chosen, where that depended on the answers"""
    estimate: Mapping[str, Any] | None = None
    """the old matrix and how sure it is, where only the run itself could tell: its items were asked with chances of their own"""
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
        return self.contradicted == 0 and (self.repeated == 0 or self.repeated >= ENOUGH)


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
    return Old(np.arange(len(data)), answers, complete=True, confidence=data.numbers.get(confidence or ""))


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
    complete = len(places) == len(data)
    drawn = run.settings if run.kind == "assess" and run.settings["method"] in ADAPTIVE and not complete else None
    place = live.places(data, past.repeats)
    twice = {key: (past.answers[key], again) for key, again in past.repeats.items() if key in past.answers}
    pairs = {key: (first.prediction, again.prediction) for key, (first, again) in twice.items()}
    sure = [(first.confidence, again.confidence) for first, again in twice.values()]
    return data, Old(
        places,
        answers,
        complete,
        _confidence(store, data, run, past),
        version(past),
        run.id,
        again={place[key]: pair[0] != pair[1] for key, pair in pairs.items() if key in place and ERROR not in pair},
        same_confidence=len(sure) >= ENOUGH and all(then is not None and then == now for then, now in sure),
        drawn=drawn,
        estimate=None if drawn is None or drawn["method"] == "masa" or changed else (run.result or {}).get("estimate"),
        notes=tuple(notes),
    )


def _confidence(store: Store, data: Dataset, run: Run, past: Past) -> Floats | None:
    """Give the confidence of each item's answer (N,), if all are known, or else those of the run that this one was compared with.

    A run that was accepted as a baseline was drawn from strata made of the latter: its answers must be weighed by the same ones.
    """
    place = live.places(data, past.answers)
    confidence = np.full(len(data), np.nan)
    for key, recorded in past.answers.items():
        if key in place and recorded.confidence is not None:
            confidence[place[key]] = recorded.confidence
    if np.isfinite(confidence).all():
        return confidence
    if run.baseline is None:
        return None
    return _confidence(store, data, history.find(store, run.baseline), journal.past(store, run.baseline))


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
