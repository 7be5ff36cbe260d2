"""Does a change matter? The verdict against the tolerance."""

from typing import Any

from masa.data.strata import Strata
from masa.inference.estimate import Estimate
from masa.inference.readings import Looks, Reader
from masa.inference.surprises import surprising
from masa.records import Ints
from masa.settings import Objective, Tolerance


def verdict(reader: Reader, tolerance: Tolerance, objective: Objective) -> tuple[str, str | None]:
    """Say whether a change matters, and if so whether it is better or worse.

    Changed if all of some interval is outside its tolerance, unchanged if all intervals are inside, else undecided.
    """
    worse = better = False
    inside = True
    for kind, limit in tolerance.limits.items():
        slack = limit + 1e-12  # What rounding alone may make of no change.
        for interval, good in reader.read(kind, objective):
            if interval.low > slack or interval.high < -slack:
                gained = (interval.low > 0.0) == (good > 0)
                worse, better = worse or not gained, better or gained
            inside = inside and -slack <= interval.low and interval.high <= slack
    if worse or better:
        return "changed", "worse" if worse else "better"
    return ("unchanged" if inside else "undecided"), None


def judged(
    found: Estimate | None,
    strata: Strata,
    places: Ints,
    *,
    finished: bool,
    tolerance: Tolerance,
    confidence: float,
    objective: Objective | None = None,
    looks: Looks | None = None,
) -> dict[str, Any]:
    """Give what an assessment says of a change; of a run that did not come to its end there is no verdict."""
    limits = {"tolerance": tolerance.to_json(), "confidence": confidence}
    if found is None:
        nothing = dict.fromkeys(
            ("shift", "accuracy_change", "error_bound", "readings", "direction")
        )
        return {"verdict": "undecided", "surprising": (), **nothing, **limits}
    wanted = objective or Objective()
    reader = Reader(found, 1.0 - (1.0 - confidence) / len(tolerance.limits), looks)
    said, direction = verdict(reader, tolerance, wanted) if finished else ("undecided", None)
    return {
        **limits,
        "verdict": said,
        "direction": direction,
        "shift": found.shift,
        "accuracy_change": reader.accuracy(),
        "error_bound": found.bound(confidence),
        "readings": reader.all(wanted),
        "surprising": surprising(found, strata, places),
    }
