"""Find the baseline of a run in the store and lay its answers over the data."""

from dataclasses import replace
from typing import Any

import numpy as np

from masa.clients import Client
from masa.data.baseline_answers import BaselineAnswers, evenly, from_column
from masa.data.dataset import Dataset, oddities
from masa.errors import DataError, UsageError
from masa.records import ERROR, Column, Floats, Ints
from masa.runs import session as live
from masa.runs.engine import ENOUGH
from masa.storage import history, journal
from masa.storage.history import Run
from masa.storage.journal import Past, Recorded
from masa.storage.store import Store


def compared(
    store: Store,
    data: Dataset,
    client: Client,
    baseline: "str | Column | int | None",
    *,
    name: str,
    confidence: str | None = None,
    force: bool = False,
) -> tuple[Dataset, BaselineAnswers]:
    """Find the old answers, and the items that both they and the data have; confidence names a column of the data's own."""
    if isinstance(baseline, str):
        if baseline not in data.predictions:
            raise DataError(
                f"the data has no column {baseline!r} of predictions",
                hint="read it with predictions=[...]",
            )
        baseline = data.predictions[baseline]
    if isinstance(baseline, Column):
        return data, from_column(data, baseline, confidence)
    run = history.current(store, name) if baseline is None else history.find(store, baseline)
    if run is None:
        others = [other for other in history.names(store) if other != name]
        hint = "make one with masa baseline, or name the column of the old answers with --old COL"
        raise UsageError(
            f"there is no baseline called {name!r} in {store.path}",
            hint=f"there are {', '.join(map(repr, others))} (--name); or {hint}"
            if others
            else hint,
        )
    different = history.differences(run.comparable, comparable(client, data))
    if different and not force:
        raise UsageError(
            f"run {run.id}, the baseline, is not comparable: {'; '.join(different)}",
            hint="make a new baseline (masa baseline), or compare all the same with --force",
        )
    return lay_over(store, data, run, [f"compared all the same: {what}" for what in different])


def lay_over(
    store: Store, data: Dataset, run: Run, notes: "list[str] | None" = None
) -> tuple[Dataset, BaselineAnswers]:
    """Lay the answers of a stored run over the data, on the items that both have."""
    notes = list(notes or [])
    then, past = history.keys(store, run), journal.past(store, run.id)
    if not past.answers:
        raise UsageError(
            f"run {run.id} has no answers to compare with", hint="choose another baseline"
        )
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
        raise DataError(
            f"run {run.id} has no answer about any of these items",
            hint="make a new baseline (masa baseline)",
        )
    weight = extra_variance = None
    if len(places) < len(data):
        by_chance = run.kind != "assess"
        weight, extra_variance = (
            evenly(data, places, run.settings.get("levels", 3))
            if by_chance
            else _weighed(data, places, run, past)
        )
    twice = _twice(past)
    pairs = {key: (first.prediction, again.prediction) for key, (first, again) in twice.items()}
    noise_seen_before = False
    if not pairs and run.baseline is not None:
        # What is known of noise was seen before this run: what is left of it are the items that were asked here, too.
        before = _before(store, run)
        pairs = {key: pair for key, pair in before.items() if key in past.answers}
        noise_seen_before = any(first != again for first, again in before.values())
    place = live.places(data, pairs)
    sure = [(first.confidence, again.confidence) for first, again in twice.values()]
    return data, BaselineAnswers(
        places,
        answers,
        _confidence(data, places, past),
        version(past),
        run.id,
        asked_twice={
            place[key]: pair[0] != pair[1]
            for key, pair in pairs.items()
            if key in place and ERROR not in pair
        },
        noise_seen_before=noise_seen_before,
        confidence_repeats=len(sure) >= ENOUGH
        and all(then is not None and then == now for then, now in sure),
        weight=weight,
        extra_variance=extra_variance,
        drawn_evenly=weight is None or run.kind != "assess",
        notes=tuple(notes),
    )


def _twice(past: Past) -> "dict[int, tuple[Recorded, Recorded]]":
    """Give both answers about the items that were asked twice, by key."""
    return {
        key: (past.answers[key], again)
        for key, again in past.repeats.items()
        if key in past.answers
    }


def _before(store: Store, run: Run) -> dict[int, tuple[str, str]]:
    """Give what the items were answered that a run's baseline, or its baseline's, asked twice, by key."""
    found: dict[int, tuple[str, str]] = {}
    while run.baseline is not None and not found:
        run = history.find(store, run.baseline)
        twice = _twice(journal.past(store, run.id))
        found = {key: (first.prediction, again.prediction) for key, (first, again) in twice.items()}
        found = {key: pair for key, pair in found.items() if ERROR not in pair}
    return found


def _weighed(data: Dataset, places: Ints, run: Run, past: Past) -> tuple[Floats, Floats]:
    """Tell what the items of an assessment (n,) stand for, as it weighed them, and what they add to the variance.

    What those of a label stand for together is what the label is of the data now.
    """
    if not past.weights:
        why = (
            "it is not finished"
            if run.finished is None
            else "it asked canaries alone, or was made by an earlier masa"
        )
        raise UsageError(
            f"run {run.id}, the baseline, asked {len(places):,} of {len(data):,} items and does not say what they stand for",
            hint=f"{why}; make a baseline with masa baseline",
        )
    mix = run.settings.get("mix") or {}
    if not all(mix.values()) and not set(mix) <= set(data.labels):
        raise UsageError(
            f"run {run.id}, the baseline, left out the groups with a share of 0",
            hint="make a baseline with masa baseline",
        )
    told = [past.weights.get(key, (0.0, 0.0)) for key in keys(data)[places].tolist()]
    weight, adds = np.array(told, np.float64).T
    label = data.label.codes[places]
    together = np.bincount(label, weight, len(data.label.values))
    share = np.where(
        together > 0.0, np.bincount(data.label.codes[data.labelled], minlength=len(together)), 0.0
    )
    times = (share / max(share.sum(), 1.0) / np.where(together > 0.0, together, 1.0))[label]
    return weight * times, np.divide(
        adds, weight, out=np.zeros(len(adds)), where=weight > 0.0
    ) * times


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
