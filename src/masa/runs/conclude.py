"""Fold the journal of a run into its result: the same whether the run was interrupted or not."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset, oddities
from masa.data.strata import Strata
from masa.inference.estimate import Estimate, uniform_queries
from masa.inference.groups import by_group
from masa.inference.method import Method
from masa.inference.readings import StandardErrors
from masa.inference.spread import normal
from masa.inference.trial import Conclusion, conclusion
from masa.inference.verdict import judged
from masa.records import ERROR, Assessment, Bools, Column, Floats, Ints, Versions, amount
from masa.runs import answers, course, unread
from masa.runs.journalled import asked, keys, version
from masa.runs.session import Session, Worked
from masa.settings import Settings
from masa.settings.methods import ADAPTIVE
from masa.storage import history
from masa.storage.journal import Past

MOST_ITEMS = 20
"""Changed items that are named."""

SMALL_CHANGE = 0.05
"""The change for which it is told how probable it is that a canary misses it."""


def conclude(
    session: Session,
    worked: Worked,
    method: Method,
    settings: Settings,
    looks: StandardErrors | None,
    sides: tuple[str, str],
) -> tuple[Assessment, Estimate | None]:
    """Give the result of a run, and the estimate that it rests on."""
    data, past, old = session.data, worked.past, method.old
    assert old is not None  # noqa: S101 - an assessment has a baseline
    answered = asked(data, past)
    found = conclusion(method, old, answered, looks)
    estimate = found.estimate
    groups, gap, uniform = (), None, None
    if estimate is not None:
        groups, gap = by_group(  # type: ignore[assignment]
            estimate, data, old, found.places, settings.confidence, looks or normal
        )
        if old.weight is None:
            uniform = uniform_queries(estimate, method.strata, finite=old.repeats_itself)
    said = [recorded.prediction for recorded in past.answers.values()]
    result = Assessment(
        run=session.run.id,
        **judged(
            estimate,
            method.strata,
            found.places,
            finished=worked.finished,
            tolerance=settings.tolerance,
            confidence=settings.confidence,
            objective=settings.weights,
            looks=looks,
        ),
        moved=found.any_change.said,
        proof=found.any_change.proof,
        stopped=worked.stopped,
        items=len(data),
        queries=past.queries,
        answers=len(said) - said.count(ERROR),
        errors=said.count(ERROR),
        cost=amount(past.money) if session.client.priced else None,
        over_budget=session.spending.over(past.money),
        compared=len(found.compared),
        differing=len(found.differing),
        changed_items=tuple(islice(found.differing.values(), MOST_ITEMS)),
        api_version=Versions(old.version, version(past)),
        uniform_queries=uniform,
        method=method.name,
        seed=session.run.seed,
        sides=sides,
        groups=groups,
        gap=gap,
        fail_on=settings.fail_on,
        canary_ok=settings.canary_ok,
        unread=unread.counted(past),
        steps=course.steps(method, answered, estimate, settings.confidence),
        label_queries=course.label_queries(method, estimate, found.places),
        made=course.made(
            session.run, data, _compared_with(old), settings, budget=session.spending.queries
        ),
        table=answers.table(
            session.run.id,
            replace(past, weights=past.weights or weights(data, estimate, method)),
            answers.OldAnswers.of(data, old),
            data,
            priced=session.client.priced,
        ),
        notes=(
            *worked.all_notes,
            *unread.other_causes(_unread_then(session, old), unread.counted(past)),
            *_notes(found, worked, method, settings),
        ),
    )
    return result, estimate


def weights(
    data: Dataset, found: Estimate | None, method: Method
) -> dict[int, tuple[float, float]]:
    """Give by the item's key the weight of each answer, and what it adds to the variance."""
    if found is None:
        return {}
    key, factor = keys(data).tolist(), even_weights(method).tolist()
    return {
        key[place]: (weight * factor[place], variance * factor[place] ** 2)
        for place, (weight, variance) in found.answer_weights().items()
    }


def _compared_with(old: BaselineAnswers) -> str:
    if old.run is None:
        return f"the column {old.answers.name!r}"
    return f"run {old.run}"


def _unread_then(session: Session, old: BaselineAnswers) -> Mapping[str, int]:
    """Give how many answers of the baseline were no label, by the reason."""
    if old.run is None:
        return {}
    result = history.find(session.store, old.run).result or {}
    return dict(result.get("unread", {}))


def _notes(found: Conclusion, worked: Worked, method: Method, settings: Settings) -> list[str]:
    """Say what a reader of the result should know."""
    data, old = method.data, method.old
    assert old is not None  # noqa: S101
    notes = []
    if found.estimate is not None:
        notes += _cautions(method.strata, found.places, method.name)
    if found.after_switch:
        first = 1 + len(found.places) - found.after_switch
        notes.append(
            f"switched to method adaptive at answer {first:,}: "
            "the labels predicted the new answers better than the old answers did"
        )
    if len(found.places) >= len(data) and found.estimate is not None:
        notes += _why_not_certain(found, old)
    if found.differing and not old.repeated and old.run is not None:
        notes.append(
            "whether the API contradicts itself was not measured (masa baseline --repeat N does); "
            "it is taken to repeat itself"
        )
    if found.differing and _all_right(found):
        notes.append(
            "every baseline answer is right, so that a change can only be one for the worse: if "
            "the labels were made of these answers, the new ones may as well be better"
        )
    if worked.stopped == "canary":
        notes.append(_silent_canary(len(found.compared), len(found.differing), settings.confidence))
    unlabelled = ~data.labelled
    unasked = np.count_nonzero(unlabelled) - np.count_nonzero(unlabelled[found.places])
    if unasked:
        notes.append(f"{unasked:,} of the items without a label were not asked")
    notes += odd_answers(data, found.answers)
    notes += several_versions(worked.past)
    return notes


def _all_right(found: Conclusion) -> bool:
    """Say whether every baseline answer is right."""
    estimate = found.estimate
    if estimate is None or not estimate.old_known:
        return False
    return estimate.shift.accuracy.old > 1.0 - 1e-9


def _why_not_certain(found: Conclusion, old: BaselineAnswers) -> list[str]:
    """Say what leaves an interval open though every item was asked."""
    notes = []
    if old.weight is not None:
        notes.append(
            f"every item of the baseline was asked; its {len(old.places):,} items represent all "
            "others, which leaves the interval open (masa baseline --refresh N adds more)"
        )
    if not old.repeats_itself:
        notes.append(
            "every item was asked; the API contradicts itself, which leaves the interval open"
        )
    failed = int(np.count_nonzero(_failed(found.answers)))
    if failed:
        notes.append(
            f"every item was asked; {failed:,} failed and may have been anything, "
            "which leaves the interval open"
        )
    return notes


def _failed(answers: Column) -> Bools:
    if ERROR not in answers.values:
        return np.zeros(len(answers.codes), np.bool_)
    return np.asarray(answers.codes == answers.values.index(ERROR))


def odd_answers(data: Dataset, answers: Column) -> list[str]:
    """Say what about the answers is probably not what the user meant."""
    if not answers.values:
        return []
    return list(oddities(data.label, Column("the API", answers.values, answers.codes)))


def several_versions(past: Past) -> list[str]:
    """Say that the provider changed the name of its model during a run."""
    called = version(past)
    if called and ", " in called:
        return [f"the provider named more than one version during this run: {called}"]
    return []


def _silent_canary(answers: int, differing: int, confidence: float) -> str:
    """Say what a canary without a change may have missed: changes that no feature predicts."""
    if differing:
        return (
            f"{differing:,} of the canary's {answers:,} answers differ, "
            "no more than the API contradicts itself anyway"
        )
    missed = (1.0 - SMALL_CHANGE) ** answers
    largest = 1.0 - (1.0 - confidence) ** (1.0 / max(answers, 1))
    return (
        f"none of the canary's {answers:,} answers changed: that happens in {100 * missed:.2g}% "
        f"of cases if {100 * SMALL_CHANGE:g}% of all answers changed, evenly, and in "
        f"{100 * (1.0 - confidence):.2g}% if {100 * largest:.2g}% did; "
        "changes of doubtful answers show sooner"
    )


def _cautions(strata: Strata, places: Ints, method: str) -> list[str]:
    notes = []
    answered = np.bincount(strata.label[strata.of(places)], minlength=len(strata.labels))
    rows = np.flatnonzero((strata.label_weight > 0.0) & (answered == 0))
    unanswered = [repr(strata.labels[row]) for row in rows]
    if unanswered:
        some = ", ".join(unanswered[:5])
        if len(unanswered) > 5:
            some += ", ..."
        taken = "is taken to be as before"
        if method == "predictive":
            taken = "is estimated from how the other labels changed"
        notes.append(
            f"nothing was asked about {len(unanswered)} of the labels ({some}): "
            f"their part of the matrix {taken}"
        )
    if method in ADAPTIVE and len(places) < len(strata.items):
        notes.append(
            "the interval is the usual one for strata: it does not allow for the sampling being "
            "adaptive, which makes accuracy look a little better than it is (docs/sure.md); "
            "--method post-stratified is free of that"
        )
    return notes


def even_weights(method: Method) -> Floats:
    """Give the factor (N,) that turns the weight of an answer into what it is without the mix.

    0 where an item has no weight in the mix.
    """
    weight, old = method.strata.item_weight, method.old
    even = np.full(len(weight), 1.0 / len(weight))
    if old is not None and old.weight is not None:
        even = old.weight
    factor = np.divide(even, weight, out=np.zeros(len(weight)), where=weight > 0.0)
    return np.asarray(factor)
