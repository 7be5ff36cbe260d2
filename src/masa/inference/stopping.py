"""When a run may stop before its budget is spent, and what having looked early costs."""

from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from math import ceil, sqrt

import numpy as np

from masa.inference.estimate import Estimate
from masa.inference.readings import Reader, StandardErrors
from masa.inference.verdict import shared_confidence, verdict
from masa.records import Floats
from masa.settings import Objective, Settings, Tolerance

FIRST_LOOK = 100
"""The number of answers at the first look at the verdict."""
GROWTH = 1.2
"""Each further look at the verdict comes after so many times the answers of the one before."""

ERROR_GROWTH = 1.02
"""Each further look at the error comes after so many times the answers of the one before."""

NODES = 200
"""Nodes of the integration over the estimate at a look."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """When a run may stop before its budget is spent."""

    target_error: float | None = None
    """the Frobenius error of the shift that is small enough"""
    decide: bool = False
    """whether to stop as soon as the verdict is certain"""
    tolerance: Tolerance = field(default_factory=Tolerance)
    confidence: float = 0.95
    objective: Objective = field(default_factory=Objective)
    strict: bool = False
    """whether intervals hold at all times at once, however often one looks"""

    @classmethod
    def of(cls, settings: Settings) -> "Stopping":
        """Take the rule from the settings of an assessment."""
        return cls(
            settings.target_error,
            settings.decide,
            settings.tolerance,
            settings.confidence,
            settings.weights,
            settings.strict,
        )

    def looks(self, most: int, items: int) -> StandardErrors | None:
        """Give the function from a confidence to the standard errors that an interval reaches.

        With it intervals hold at all looks up to `most` answers. None where they are looked at once
        only, or hold at all times anyway.
        """
        if not self.decide or self.strict:
            return None
        return partial(critical_value, look_times(most), items)

    def next_verdict(self, answers: int) -> int | None:
        """Give the number of answers at the next look at the verdict, or None for never."""
        if not self.decide:
            return None
        if self.strict:
            return max(FIRST_LOOK, answers + 5, ceil(ERROR_GROWTH * answers))
        return _look_after(answers)

    def next_error(self, answers: int, strata: int) -> int | None:
        """Give the number of answers at the next look at the error, or None for never."""
        if self.target_error is None:
            return None
        return max(FIRST_LOOK, 3 * strata, answers + 5, ceil(ERROR_GROWTH * answers))

    def verdict(self, found: Estimate, looks: StandardErrors | None) -> str:
        """Give the verdict so far."""
        reader = Reader(found, shared_confidence(self.confidence, self.tolerance), looks)
        return verdict(reader, self.tolerance, self.objective).said

    def reached(self, found: Estimate) -> bool:
        """Say whether the error is small enough."""
        return self.target_error is not None and found.bound(self.confidence) <= self.target_error


def look_times(most: int) -> tuple[int, ...]:
    """Give the numbers of answers at which the verdict is looked at; the last look is at the end.

    >>> look_times(50), look_times(150), len(look_times(1_000))
    ((50,), (100, 120, 144, 150), 14)
    """
    found, look = [], _look_after(0)
    while look < most:
        found.append(look)
        look = _look_after(look)
    return (*found, most)


def _look_after(answers: int) -> int:
    look = FIRST_LOOK
    while look <= answers:
        look = ceil(GROWTH * look)
    return look


@lru_cache(maxsize=256)
def critical_value(schedule: tuple[int, ...], items: int, confidence: float) -> float:
    """Give the bound that a standard normal estimate stays within at all looks.

    This is what widens an interval that is looked at more than once. After n of the items an
    estimate has the information of 1 / (1/n - 1/items) answers, and its correlation from look to
    look is the root of the ratio of informations. The probability that it stays inside is one
    integral per look (Armitage, McPherson and Rowe 1969).

    >>> round(critical_value((500,), 10**9, 0.95), 3)
    1.96
    """
    information = [1.0 / (1.0 / look - 1.0 / items) for look in schedule if look < items]
    correlations = [sqrt(before / after) for before, after in pairwise(information)]
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low, high = 0.0, 10.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        if _stays_inside(middle, correlations, nodes, weights) < confidence:
            low = middle
        else:
            high = middle
    return high


def _stays_inside(limit: float, correlations: list[float], nodes: Floats, weights: Floats) -> float:
    """Give the probability that a normal sequence with these correlations stays within a limit."""
    x = limit * nodes
    density: Floats = np.exp(-0.5 * x**2) / sqrt(2.0 * np.pi)
    for correlation in correlations:
        spread = sqrt(1.0 - correlation**2)
        distance = (x[:, None] - correlation * x[None, :]) / spread
        step = np.exp(-0.5 * distance**2) / (spread * sqrt(2.0 * np.pi))
        density = step @ (limit * weights * density)
    return float(limit * weights @ density)
