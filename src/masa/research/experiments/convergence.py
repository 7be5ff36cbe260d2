"""How fast the loss of the paper's rule nears the optimum's."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from masa.data.strata import Strata
from masa.inference.counts import true_uncertainty
from masa.records import Floats, Ints
from masa.research.cases import LoadedCase
from masa.research.experiments.number_range import number_range
from masa.research.finding import Finding, Sheet
from masa.research.study import LEVELS, TRUE_LOSS, PaperStudy, Part
from masa.sampling import stratified as sampler

TITLE = "How fast the rule nears the optimum"
FAR = 32_768
"""The number of queries up to which the rule is followed."""
LATE = FAR / 16
"""The number of queries from which on slopes are fitted."""
USUAL, THEOREM = "a = 1", "a of the theorem"
"""The explorations: what the paper uses, and what its theorem asks for."""


def convergence(study: PaperStudy) -> Finding:
    """Measure the loss above the optimum's by number of queries, and the slope of its fall."""
    parts = study.parts("convergence", lambda case: _part(study, case))
    gaps: list[Sequence[Any]] = []
    slopes: list[Sequence[Any]] = []
    for case, part in parts.items():
        grid, optimum = np.array(part["grid"]), np.array(part["optimum"])
        summary: list[float | None] = []
        for name in (USUAL, THEOREM):
            gap = np.array(part[name]) - optimum
            for queries, above, best in zip(grid, gap, optimum, strict=True):
                # A gap below 0, which few runs may show, has no logarithm to draw.
                if above > 0:
                    gaps.append((str(case), name, int(queries), float(above), float(best)))
            summary += [_slope(grid, gap), _percent_above(gap, optimum)]
        slopes.append((str(case), *summary))
    sheets = (
        Sheet(
            "convergence",
            ("case", "exploration", "queries", "loss less the optimum's", "the optimum's loss"),
            tuple(gaps),
        ),
        Sheet(
            "slopes",
            (
                "case",
                f"slope, {USUAL}",
                f"above the optimum at {FAR:,}, {USUAL} (%)",
                f"slope, {THEOREM}",
                f"above the optimum at {FAR:,}, {THEOREM} (%)",
            ),
            tuple(slopes),
        ),
    )
    words = (*_words(study, slopes), *study.missing)
    return Finding("convergence", TITLE, words, sheets)


def _part(study: PaperStudy, case: LoadedCase) -> Part:
    """Trace the mean loss of the rule with both explorations, and the optimum's loss."""
    strata = Strata.build(case.data.label, difficulty=case.data.difficulty, levels=LEVELS)
    grid = np.unique(np.geomspace(4 * len(strata), FAR, 28).astype(np.int64))
    s2 = true_uncertainty(strata, case.answers, replacement=True)
    best = float(np.sum(strata.weight * np.sqrt(s2)) ** 2)
    part: Part = {"grid": grid.tolist(), "optimum": (best / grid).tolist()}
    # What the theorem asks for at the largest number of queries is enough for all smaller ones.
    explorations = {USUAL: 1.0, THEOREM: sampler.theory_a(len(strata.labels), LEVELS, FAR)}
    for name, a in explorations.items():
        losses = study.trace(strata, case.answers, grid, a=a).runs[:, :, TRUE_LOSS]
        part[name] = losses.mean(axis=0).tolist()
    return part


def _slope(grid: Ints, gap: Floats) -> float | None:
    """Fit the slope of the logarithm of the gap; None with fewer than three points."""
    late = (grid >= LATE) & (gap > 0)
    if late.sum() <= 2:
        return None
    return float(np.polyfit(np.log(grid[late]), np.log(gap[late]), 1)[0])


def _percent_above(gap: Floats, optimum: Floats) -> float | None:
    """Divide the last gap by the optimum's loss; None if that is 0."""
    if optimum[-1] <= 0:
        return None
    return 100 * float(gap[-1] / optimum[-1])


def _words(study: PaperStudy, slopes: Sequence[Sequence[Any]]) -> list[str]:
    # A row has the case, then slope and percentage for each exploration.
    usual = number_range((row[1] for row in slopes), ".2f")
    theorem = number_range((row[3] for row in slopes), ".2f")
    return [
        "The loss of a run is the sum of p^2 s^2 / n over the strata for the queries that it spent "
        f"there, s the true scores; shown is its mean over {study.runs:,} runs less the optimum's, "
        "(sum of p s)^2 / N. The theorem says that it falls at least as fast as N^(-5/4), up to a "
        "logarithm, with an exploration a that it asks for.",
        f"Slopes from {FAR // 16:,} to {FAR:,} queries: {usual} with a = 1, which the paper uses "
        f"and the theorem does not cover, and {theorem} with what the theorem asks for at "
        f"{FAR:,}. Why they fall on both sides of -5/4 can be derived. Where every stratum is "
        "uncertain, exploration moves the queries off the optimum by a share of N^(-1/4); the loss "
        "is flat at the optimum, so it is off by the square of that, and the gap falls like "
        "N^(-3/2), faster than the theorem says. A stratum that is all but certain (s near 0) is "
        "explored N^(4/5) times, which are missing elsewhere: the gap falls like N^(-6/5), slower. "
        "The theorem takes s above 0 and N large enough for that.",
    ]
