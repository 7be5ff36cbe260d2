"""Replays of all methods on every case, with replacement as in the paper and without."""

from masa.research.cases import LoadedCase, PaperCase
from masa.research.experiments.error_path import summarised
from masa.research.study import PaperStudy, Part

WITH_REPLACEMENT = ("uniform", "stratified", "post-stratified", "masa", "optimal")
"""The methods that are replayed with replacement, as in the paper."""
EACH_ONCE = ("post-stratified", "masa", "adaptive")
"""The methods that are replayed asking each item once."""


def all_methods(study: PaperStudy) -> dict[PaperCase, Part]:
    """Replay all methods: under "again" with replacement, under "once" without."""

    def make(case: LoadedCase) -> Part:
        also = []
        if case.cheap is not None:
            also.append(case.cheap)
        again = study.replay(case.data, case, WITH_REPLACEMENT, replacement=True)
        once = study.replay(case.data, case, EACH_ONCE, also=also)
        return {
            "again": {method: summarised(curve) for method, curve in again.items()},
            "once": {method: summarised(curve) for method, curve in once.items()},
            "difficulty": case.difficulty,
        }

    return study.parts("methods", make)
