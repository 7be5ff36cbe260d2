"""Does a change matter? The verdict against the tolerance."""

from typing import Any, NamedTuple

import numpy as np

from masa.data.strata import Strata
from masa.inference.at_best import narrowest
from masa.inference.estimate import Estimate
from masa.inference.readings import Reader, StandardErrors
from masa.inference.surprises import surprising
from masa.records import Ints
from masa.settings import Objective, Tolerance

ROUNDING = 1e-12
"""What rounding alone may make of no change."""


class Verdict(NamedTuple):
    """Whether a change matters."""

    said: str
    """changed, unchanged or undecided"""
    direction: str | None = None
    """better or worse, where it changed"""


def verdict(reader: Reader, tolerance: Tolerance, objective: Objective) -> Verdict:
    """Compare intervals with the tolerance.

    Changed if some interval lies wholly outside its tolerance, unchanged if all lie wholly inside,
    else undecided.
    """
    worse = better = differs = False
    inside = True
    for kind, limit in tolerance.limits.items():
        slack = limit + ROUNDING
        for interval, sign in reader.read(kind, objective):
            if interval.low > slack or interval.high < -slack:
                # The sign says whether more of this quantity is better; 0 says that it is neither.
                gained = (interval.low > 0.0) == (sign > 0)
                better = better or (gained and sign != 0)
                worse = worse or (not gained and sign != 0)
                differs = True
            inside = inside and -slack <= interval.low and interval.high <= slack
    if worse:
        return Verdict("changed", "worse")
    if better:
        return Verdict("changed", "better")
    if differs:
        return Verdict("changed")
    return Verdict("unchanged") if inside else Verdict("undecided")


def more_queries(
    reader: Reader, tolerance: Tolerance, objective: Objective, *, answers: int, items: int
) -> int | None:
    """Tell about how many more queries would decide an undecided verdict; None if all are asked.

    Intervals shrink as the root of the answers, and are gone when all items are asked. What is
    enough is that all lie inside their tolerances, or that one lies outside.
    """
    if answers >= items or not answers:
        return None
    to_leave, to_stay = 0.0, 1.0
    for kind, limit in tolerance.limits.items():
        for interval, _ in reader.read(kind, objective):
            below = max(interval.estimate - interval.low, 1e-12)
            above = max(interval.high - interval.estimate, 1e-12)
            to_leave = max(
                to_leave, (interval.estimate - limit) / below, (-limit - interval.estimate) / above
            )
            to_stay = min(
                to_stay, (interval.estimate + limit) / below, (limit - interval.estimate) / above
            )
    factor = min(max(to_leave, to_stay, 0.0), 1.0)
    unknown = factor**2 * (1.0 / answers - 1.0 / items)
    needed = 1.0 / (unknown + 1.0 / items) - answers
    return max(1, int(float(f"{needed:.2g}")))


def _hopeless(found: Estimate, tolerance: Tolerance, confidence: float) -> bool:
    """Say whether all items of the baseline would not be enough to show that nothing changed."""
    limit = tolerance.limits.get("accuracy")
    if limit is None or found.shares is None:
        return False
    errors = found.shares.errors
    total, squares = float(errors.baseline.sum()), float(errors.baseline_squares.sum())
    return narrowest(total, squares, confidence) > limit


def shared_confidence(confidence: float, tolerance: Tolerance) -> float:
    """Give the confidence of each interval where several tolerances are judged at once."""
    return 1.0 - (1.0 - confidence) / len(tolerance.limits)


def judged(
    found: Estimate | None,
    strata: Strata,
    places: Ints,
    *,
    finished: bool,
    tolerance: Tolerance,
    confidence: float,
    objective: Objective | None = None,
    looks: StandardErrors | None = None,
) -> dict[str, Any]:
    """Give the fields of an assessment that an estimate decides.

    A run that was not finished has no verdict.
    """
    limits: dict[str, Any] = {
        "tolerance": tolerance.to_json(),
        "confidence": confidence,
        "more_queries": None,
    }
    if found is None:
        unknown = ("shift", "accuracy_change", "error_bound", "readings", "direction")
        return {"verdict": "undecided", "surprising": (), **dict.fromkeys(unknown), **limits}
    wanted = objective or Objective()
    reader = Reader(found, shared_confidence(confidence, tolerance), looks)
    reached = Verdict("undecided")
    if finished:
        reached = verdict(reader, tolerance, wanted)
    if reached.said == "undecided" and not _hopeless(found, tolerance, confidence):
        counts = strata.item_weight > 0.0
        limits["more_queries"] = more_queries(
            reader,
            tolerance,
            wanted,
            answers=int(np.count_nonzero(counts[places])),
            items=int(np.count_nonzero(counts)),
        )
    return {
        **limits,
        "verdict": reached.said,
        "direction": reached.direction,
        "shift": found.shift,
        "accuracy_change": reader.accuracy(),
        "error_bound": found.bound(confidence),
        "readings": reader.all(wanted),
        "surprising": surprising(found, strata, places),
    }
