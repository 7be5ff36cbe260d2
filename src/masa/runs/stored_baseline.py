"""Find the baseline of a run in the store and lay its answers over the data."""

from dataclasses import replace
from typing import Any

import numpy as np

from masa.clients import Client
from masa.data.baseline_answers import (
    ENOUGH_REPEATS,
    BaselineAnswers,
    evenly_weighted,
    from_column,
    weighed_by_label,
)
from masa.data.dataset import Dataset
from masa.errors import DataError, UsageError
from masa.records import ERROR, Column, Floats, Ints
from masa.runs.journalled import asked, keys, places, version
from masa.storage import history, journal
from masa.storage.history import Run
from masa.storage.journal import Past, RecordedAnswer
from masa.storage.store import Store


def find_baseline(
    store: Store,
    data: Dataset,
    client: Client,
    baseline: "str | Column | int | None",
    *,
    name: str,
    confidence: str | None = None,
    force: bool = False,
) -> tuple[Dataset, BaselineAnswers]:
    """Find the baseline answers, and the part of the data that they are about.

    The baseline is a column of the data, whose confidence is another column; or a run of the store.
    """
    if isinstance(baseline, str):
        if baseline not in data.predictions:
            raise DataError(
                f"the data has no column {baseline!r} of predictions",
                hint="read it with predictions=[...]",
            )
        baseline = data.predictions[baseline]
    if isinstance(baseline, Column):
        return data, from_column(data, baseline, confidence)
    if baseline is None:
        run = history.current(store, name)
    else:
        run = history.find(store, baseline)
    if run is None:
        raise _no_baseline(store, name)
    different = history.differences(run.comparable, comparable(client, data))
    if different and not force:
        raise UsageError(
            f"run {run.id}, the baseline, is not comparable: {'; '.join(different)}",
            hint="make a new baseline (masa baseline), or compare all the same with --force",
        )
    return lay_over(store, data, run, [f"compared all the same: {what}" for what in different])


def _no_baseline(store: Store, name: str) -> UsageError:
    hint = "make one with masa baseline, or name the column of the old answers with --old COL"
    others = [other for other in history.names(store) if other != name]
    if others:
        hint = f"there are {', '.join(map(repr, others))} (--name); or {hint}"
    return UsageError(f"there is no baseline called {name!r} in {store.path}", hint=hint)


def lay_over(
    store: Store, data: Dataset, run: Run, notes: "list[str] | None" = None
) -> tuple[Dataset, BaselineAnswers]:
    """Lay the answers of a stored run over the data, on the items that both have."""
    data, note = _common_items(store, data, run)
    known = _known(store, data, run)
    return data, replace(known, notes=(*(notes or []), *note, *_sources(store, known)))


def _sources(store: Store, known: BaselineAnswers) -> list[str]:
    """Say from which runs the answers are, where there are several."""
    if known.source is None:
        return []
    numbers, counts = np.unique(known.source, return_counts=True)
    if len(numbers) < 2:
        return []
    parts = []
    for number, count in zip(numbers[::-1].tolist(), counts[::-1].tolist(), strict=True):
        date = history.find(store, number).created[:10]
        parts.append(f"{count:,} of run {number} ({date})")
    return [f"the baseline's answers are from several runs: {', '.join(parts)}"]


def _known(store: Store, data: Dataset, run: Run) -> BaselineAnswers:
    """Give the answers of a run, and those of earlier runs that still count."""
    earlier = earlier_baseline(store, run)
    if earlier is None:
        return _own(store, data, run, alone=True)
    before = _known(store, data, earlier)
    if not places(data, journal.past(store, run.id).answers):
        return before
    own = _own(store, data, run, alone=False)
    if run.kind == "baseline":
        return before.joined_by(own, data)
    return before.replaced_by(own)


def item_keys(store: Store, run: Run) -> Ints:
    """Give the keys of the items of a run's data, and of the earlier runs that still count."""
    found = [history.keys(store, run)]
    earlier = earlier_baseline(store, run)
    if earlier is not None:
        found.append(item_keys(store, earlier))
    return np.unique(np.concatenate(found))


def earlier_baseline(store: Store, run: Run) -> Run | None:
    """Find the baseline whose answers about other items still count beside those of a run.

    An assessment that found no change that matters updates its baseline. Where it found one, the
    other items' answers are no longer what the API says. A refreshed baseline adds to the one
    before it.
    """
    if run.baseline is None:
        return None
    if run.kind == "baseline":
        return history.find(store, run.baseline)
    if run.kind == "assess" and (run.result or {}).get("verdict") == "unchanged":
        return history.find(store, run.baseline)
    return None


def answered_keys(store: Store, number: int) -> list[int]:
    """Give the keys of the items that a baseline has answers about, those of earlier runs too."""
    found: dict[int, None] = {}
    run: Run | None = history.find(store, number)
    while run is not None:
        found |= dict.fromkeys(journal.past(store, run.id).answers)
        run = earlier_baseline(store, run)
    return list(found)


def _own(store: Store, data: Dataset, run: Run, *, alone: bool) -> BaselineAnswers:
    """Give the answers of one run, and what its items represent if they stand alone."""
    past = journal.past(store, run.id)
    if not past.answers:
        raise UsageError(
            f"run {run.id} has no answers to compare with", hint="choose another baseline"
        )
    known = asked(data, past)
    items = known.places()
    if not len(items):
        raise DataError(
            f"run {run.id} has no answer about any of these items",
            hint="make a new baseline (masa baseline)",
        )
    weight = extra_variance = None
    if alone and len(items) < len(data):
        if run.kind == "assess" or past.weights:
            weight, extra_variance = _weights_of_run(data, items, run, past)
        else:
            weight, extra_variance = evenly_weighted(data, items, run.settings.get("levels", 3))
    twice = pairs = _asked_twice(past)
    before: Twice = {}
    if alone and not pairs and run.baseline is not None:
        # Noise was measured before this run: of those items, the ones asked here are left.
        before = _asked_twice_before(store, run)
        pairs = {key: pair for key, pair in before.items() if key in past.answers}
    place = places(data, pairs)
    return BaselineAnswers(
        items,
        known.column(items.tolist()),
        _confidence(data, items, past),
        version(past),
        run.id,
        asked_twice={
            place[key]: first.prediction != again.prediction
            for key, (first, again) in pairs.items()
            if key in place
        },
        confidence_twice=_confidence_twice(pairs, place),
        asked_twice_before=max(
            (
                len(before),
                sum(first.prediction != again.prediction for first, again in before.values()),
            ),
            tuple(run.settings.get("asked_twice_before", (0, 0))),
        ),
        confidence_repeats=_confidence_repeats(twice),
        weight=weight,
        extra_variance=extra_variance,
        drawn_evenly=weight is None or run.settings.get("drawn_evenly", run.kind != "assess"),
        source=np.full(len(items), run.id),
    )


def _common_items(store: Store, data: Dataset, run: Run) -> tuple[Dataset, list[str]]:
    """Give the items that the data and a run both have, and say if that is not all."""
    then = item_keys(store, run)
    both = np.flatnonzero(np.isin(keys(data), then))
    if not len(both):
        raise DataError(
            f"no item of {data.source} was in the data of run {run.id}",
            hint="items are known by their id and input; "
            "are these the same columns and the same file?",
        )
    notes = []
    if len(both) < len(data) or len(both) < len(then):
        notes.append(
            f"the data changed since run {run.id}: compared on the {len(both):,} items that both "
            f"have ({len(data) - len(both):,} are new, {len(then) - len(both):,} are gone)"
        )
        data = data.take(both)
    if not data.labels:
        raise DataError(
            f"of the items of {data.source} only those without a label were in the data "
            f"of run {run.id}",
            hint="make a new baseline (masa baseline)",
        )
    return data, notes


Twice = dict[int, tuple[RecordedAnswer, RecordedAnswer]]


def _asked_twice(past: Past) -> Twice:
    """Give both answers about the items that were answered twice, by key."""
    return {
        key: (past.answers[key], again)
        for key, again in past.repeats.items()
        if key in past.answers and ERROR not in (past.answers[key].prediction, again.prediction)
    }


def _asked_twice_before(store: Store, run: Run) -> Twice:
    """Give the answers about items asked twice by the baseline of a run, or by an earlier one."""
    found: Twice = {}
    while run.baseline is not None and not found:
        run = history.find(store, run.baseline)
        found = _asked_twice(journal.past(store, run.id))
    return found


def _confidence_twice(twice: Twice, place: dict[int, int]) -> dict[int, tuple[float, float]]:
    """Give both confidences of the items that were answered twice, by place."""
    return {
        place[key]: (first.confidence, again.confidence)
        for key, (first, again) in twice.items()
        if key in place and first.confidence is not None and again.confidence is not None
    }


def _confidence_repeats(twice: Twice) -> bool:
    """Say whether many items were asked twice, and each was answered with the same confidence."""
    if len(twice) < ENOUGH_REPEATS:
        return False
    return all(
        first.confidence is not None and first.confidence == again.confidence
        for first, again in twice.values()
    )


def _weights_of_run(data: Dataset, items: Ints, run: Run, past: Past) -> tuple[Floats, Floats]:
    """Give the weights and the extra variance (n,) of the items of an assessment.

    They are as it weighed them. The items of a label together have the weight that the label has
    in the data now.
    """
    if not past.weights:
        why = "it asked canaries alone, or was made by an earlier masa"
        if run.finished is None:
            why = "it is not finished"
        raise UsageError(
            f"run {run.id}, the baseline, asked {len(items):,} of {len(data):,} items "
            "and does not say what they represent",
            hint=f"{why}; make a baseline with masa baseline",
        )
    mix = run.settings.get("mix") or {}
    if not all(mix.values()) and not set(mix) <= set(data.labels):
        raise UsageError(
            f"run {run.id}, the baseline, left out the groups with a share of 0",
            hint="make a baseline with masa baseline",
        )
    stored = [past.weights.get(key, (0.0, 0.0)) for key in keys(data)[items].tolist()]
    weight, variance = np.array(stored, np.float64).T
    return weighed_by_label(data, items, weight, variance)


def _confidence(data: Dataset, items: Ints, past: Past) -> Floats | None:
    """Give the confidence of the answers about these items (n,), if all have one."""
    known = [past.answers[key].confidence for key in keys(data)[items].tolist()]
    return None if None in known else np.array(known, np.float64)


def comparable(client: Client, data: Dataset) -> dict[str, Any]:
    """Give what two runs must share to be compared, besides the items."""
    inputs = [] if data.inputs is None else list(data.inputs.columns)
    return {**client.describe(), "input": inputs}
