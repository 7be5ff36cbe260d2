"""Fold the journal of a run into its result."""

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.inference.any_change import differences, moved
from masa.inference.estimate import Estimate, uniform_queries
from masa.inference.groups import by_group
from masa.inference.method import Plan
from masa.inference.readings import Looks
from masa.inference.spread import normal
from masa.inference.verdict import judged
from masa.records import ERROR, Assessment, Floats, Ints, Versions, amount
from masa.runs import session as live
from masa.runs.session import Session
from masa.runs.stored_baseline import odd_answers, version
from masa.sampling.draws import Draws
from masa.settings import Settings
from masa.storage import journal

ADAPTIVE = ("masa", "adaptive", "paired")
"""Methods that choose strata by their answers."""

MOST_ITEMS = 20
"""Changed items that are named."""


def drawn(data: Dataset, past: journal.Past, places: Ints) -> Draws | None:
    """Give how the items at these places (n,) came to be asked, where they were drawn in batches."""
    if not past.draws:
        return None
    place = live.places(data, past.draws)
    by_place = {place[key]: draw for key, draw in past.draws.items() if key in place}
    return Draws.of([by_place[item] for item in places.tolist()])


def conclude(
    session: Session,
    plan: Plan,
    old: BaselineAnswers,
    settings: Settings,
    stopped: str,
    sides: tuple[str, str] = ("before", "now"),
    looks: Looks | None = None,
) -> tuple[Assessment, Estimate | None]:
    """Fold the journal, and nothing else, into a result: the same whether the run was interrupted or not."""
    data, past, strata = session.data, session.past, plan.strata
    finite = old.repeats_itself
    places, answers = live.known(data, past)
    compared_to, differing = differences(data, old, places, answers)
    found = None
    notes = list(session.all_notes)
    draws = drawn(data, past, places) if len(places) else None
    if len(places) and (draws is None or draws.batch.any() or plan.exhausted(places)):
        # Of canaries alone, which were not drawn at random, nothing follows for the others.
        found = plan.estimated(old, places, answers, draws, finite=finite)
        notes += _cautions(strata, places, plan.method)
        if draws is not None and (before := int(np.count_nonzero(draws.probability))) < len(places):
            notes.append(
                f"method adaptive from answer {before + 1:,} on: the labels told the new answers better than the old answers did"
            )
    did_move = moved(
        found, old, compared_to, differing, confidence=_confidences(data, past), looks=looks
    )
    if differing and not old.repeated and old.run is not None:
        notes.append(
            "whether the API contradicts itself was not measured (masa baseline --repeat N does); it is taken to repeat itself"
        )
    if stopped == "canary":
        notes.append(_missed(len(compared_to), len(differing), settings.confidence))
    without = ~data.labelled
    if unasked := int(np.count_nonzero(without)) - int(np.count_nonzero(without[places])):
        notes.append(f"{unasked:,} of the items without a label were not asked")
    called = version(past)
    notes += odd_answers(data, answers)
    if called and ", " in called:
        notes.append(f"the provider named more than one version during this run: {called}")
    finished = stopped not in ("failures", "interrupted")
    groups, gap = (
        ((), None)
        if found is None
        else by_group(found, data, old, places, settings.confidence, looks or normal)
    )
    result = Assessment(
        run=session.run.id,
        **judged(
            found,
            strata,
            places,
            finished=finished,
            tolerance=settings.tolerance,
            confidence=settings.confidence,
            objective=settings.objective,
            looks=looks,
        ),
        moved=did_move.said,
        proof=did_move.proof,
        stopped=stopped,
        items=len(data),
        queries=past.queries,
        answers=sum(answer.prediction != ERROR for answer in past.answers.values()),
        errors=sum(answer.prediction == ERROR for answer in past.answers.values()),
        cost=None if not session.client.priced else amount(past.money),
        compared=len(compared_to),
        differing=len(differing),
        changed_items=tuple(
            item for _, item in zip(range(MOST_ITEMS), differing.values(), strict=False)
        ),
        api_version=Versions(old.version, called),
        uniform_queries=None
        if found is None or old.weight is not None
        else uniform_queries(found, strata, finite=finite),
        method=plan.method,
        seed=settings.seed,
        sides=sides,
        groups=groups,
        gap=gap,
        fail_on=settings.fail_on,
        canary_ok=settings.canary_ok,
        notes=tuple(notes),
    )
    return result, found


def _confidences(data: Dataset, past: journal.Past) -> dict[int, float]:
    """Give the confidence of each answer that came with one, by place."""
    place = live.places(data, past.answers)
    return {
        place[key]: recorded.confidence
        for key, recorded in past.answers.items()
        if key in place and recorded.confidence is not None and recorded.prediction != ERROR
    }


def _missed(answers: int, differing: int, confidence: float) -> str:
    """Say what a canary that saw nothing may have missed: changes that follow nothing it knows of."""
    if differing:
        return f"{differing:,} of the canary's {answers:,} answers differ, no more than the API contradicts itself anyway"
    chance, seen = 0.95**answers, 1.0 - (1.0 - confidence) ** (1.0 / max(answers, 1))
    return (
        f"none of the canary's {answers:,} answers changed: that happens in {100 * chance:.2g}% of cases "
        f"if 5% of all answers changed, evenly, and in {100 * (1.0 - confidence):.2g}% if {100 * seen:.2g}% did; "
        "changes of doubtful answers show sooner"
    )


def _cautions(strata: Strata, places: Ints, method: str) -> list[str]:
    notes = []
    answered = np.bincount(strata.label[strata.of(places)], minlength=len(strata.labels))
    blind = [
        repr(strata.labels[i])
        for i in np.flatnonzero((strata.label_weight > 0.0) & (answered == 0))
    ]
    if blind:
        some = ", ".join(blind[:5]) + (", ..." if len(blind) > 5 else "")
        so = "is taken to be as before" if method == "predictive" else "counts as zero"
        notes.append(
            f"nothing was asked about {len(blind)} of the labels ({some}): their part of the matrix {so}"
        )
    if method in ADAPTIVE and len(places) < len(strata.items):
        notes.append(
            "the interval is the usual one for strata: it does not allow for the sampling being adaptive, which makes accuracy "
            "look a little better than it is (docs/sure.md); --method post-stratified is free of that"
        )
    return notes


def _even_weights(plan: Plan, old: BaselineAnswers) -> Floats:
    """Give what makes of the share that an answer stands for (N,) what it would be without the mix, 0 where that is not known."""
    weight = plan.strata.item_weight
    whole = np.full(len(weight), 1.0 / len(weight)) if old.weight is None else old.weight
    return np.divide(whole, weight, out=np.zeros(len(weight)), where=weight > 0.0)
