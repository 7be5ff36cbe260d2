"""The paper's stopping rule: an upper bound on the loss falls below the squared target error."""

from math import log, sqrt

import numpy as np

from masa.data.strata import Strata
from masa.records import Floats, Ints
from masa.research.cases import LoadedCase, PaperCase
from masa.research.study import (
    ESTIMATED_LOSS,
    LEVELS,
    RUN_ERROR,
    TARGET_CONFIDENCE,
    TARGET_ERROR,
    WIDENING,
    PaperStudy,
    Part,
)

HOEFFDING = log(2 / (1 - TARGET_CONFIDENCE)) / 2
"""Hoeffding's constant c.

The mean of n Bernoulli variables is within sqrt(c/n) of its expectation with a probability of 95%.
"""
CONSTANTS: tuple[float, ...] = (0.0, *np.geomspace(0.01, 4_000, 57).tolist())
"""The constants that are tried, from small to large, for the smallest that covers 95%."""
STEP = 1.01
"""The factor between neighbouring numbers of queries at which runs may stop."""
MOST_QUERIES = 65_536
"""Once the grid reaches so many queries, it is not made longer for runs that did not stop."""


def stopping_rule(study: PaperStudy) -> dict[PaperCase, Part]:
    """Stop each case by the bound, with Hoeffding's constant and with the fitted one.

    The fitted constant is the smallest with which at least 95% of runs stop within the target.
    """

    def make(case: LoadedCase) -> Part:
        strata = Strata.build(case.data.label, difficulty=case.data.difficulty, levels=LEVELS)
        first = 2 * len(strata)
        last = max(4_096, 16 * len(strata))
        while True:
            points = int(log(last / first) / log(STEP))
            grid = np.unique(np.geomspace(first, last, points).astype(np.int64))
            traces = study.trace(strata, case.answers, grid).runs
            stops = {c: stopped(traces, grid, c) for c in (*CONSTANTS, HOEFFDING)}
            fitted = _smallest_that_covers(stops)
            found_both = fitted is not None and stops[HOEFFDING] is not None
            # Runs that go on beyond the grid say nothing about the rule, so it is made longer.
            if found_both or last >= MOST_QUERIES:
                break
            last *= 2
        unknown = {"queries": None, "coverage": None}
        part: Part = {"hoeffding": stops[HOEFFDING] or unknown}
        if fitted is None:
            part["fitted"] = {**unknown, "c": None}
        else:
            part["fitted"] = {**(stops[fitted] or unknown), "c": fitted}
        return part

    return study.parts("stopping rule", make)


def _smallest_that_covers(stops: dict[float, dict[str, float] | None]) -> float | None:
    for c in CONSTANTS:
        stop = stops[c]
        if stop is not None and stop["coverage"] >= 100 * TARGET_CONFIDENCE:
            return c
    return None


def stopped(traces: Floats, grid: Ints, c: float) -> dict[str, float] | None:
    """Find when runs stop on average and how many percent are within the target error then.

    Runs stop once the sum of p^2/n (s^2 + sqrt(c/n)), an upper bound on the loss, is at most the
    squared target error. traces (R, Q, 4), grid (Q,). None if some run does not stop.
    """
    bound = traces[:, :, ESTIMATED_LOSS] + sqrt(c) * traces[:, :, WIDENING]
    below = bound <= TARGET_ERROR**2
    if not below[:, -1].all():
        return None
    stop = np.argmax(below, axis=1)
    within_target = traces[np.arange(len(stop)), stop, RUN_ERROR] <= TARGET_ERROR
    return {
        "queries": round(float(grid[stop].mean())),
        "coverage": 100 * float(within_target.mean()),
    }
