"""When to stop: as soon as the shift is known well enough, or the verdict is certain, and what having looked early costs."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt

import numpy as np

from masa.change import Estimated, verdict
from masa.engine import Stopped
from masa.errors import UsageError

FIRST_LOOK, GROWTH = 100, 1.2
"""Whether the verdict is certain is looked at after so many answers, and then whenever there are so many times as many."""

OFTEN = 1.02
"""Whether the error is small enough is looked at whenever there are so many times as many answers."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """When a run may stop before its budget is spent."""

    target_error: float | None = None
    """the Frobenius error of the shift that is small enough"""
    decide: bool = False
    """whether to stop as soon as the verdict is certain"""
    tolerance: float = 0.01
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.target_error is not None and not 0.0 < self.target_error < 1.0:
            raise UsageError(f"target error is {self.target_error:g}", hint="give a share such as 0.005")

    def z(self, most: int) -> float:
        """Give how many standard errors an interval reaches that is looked at again and again, until most answers are there."""
        return critical(looks(most) if self.decide else 1, self.confidence)

    def next_look(self, answers: int, strata: int) -> int | None:
        """Give after how many answers to look next, or None for never."""
        due = []
        if self.target_error is not None:
            due.append(max(FIRST_LOOK, 3 * strata, answers + 5, ceil(OFTEN * answers)))
        if self.decide:
            look = FIRST_LOOK
            while look <= answers:
                look = ceil(GROWTH * look)
            due.append(look)
        return min(due, default=None)

    def why(self, found: Estimated, most: int) -> Stopped | None:
        """Say why to stop now, or None."""
        if self.decide and verdict(found.interval(self.confidence, self.z(most)), self.tolerance) != "undecided":
            return "decided"
        if self.target_error is not None and found.matrix.bound(self.confidence) <= self.target_error:
            return "target"
        return None


def looks(most: int) -> int:
    """Count the looks at a verdict until most answers are there.

    >>> looks(100), looks(1_000)
    (1, 14)
    """
    return 1 + max(0, ceil(log(max(most, 1) / FIRST_LOOK) / log(GROWTH) - 1e-9))


@lru_cache(maxsize=64)
def critical(count: int, confidence: float) -> float:
    """Give what a standard normal number that is looked at so often stays below, in absolute value, with this confidence.

    From one look to the next the answers grow by one factor, so the estimate over its standard error is a stationary
    autoregression; the chance that it stays inside is one integral a look (Armitage, McPherson and Rowe 1969).

    >>> round(critical(1, 0.95), 3), round(critical(2, 0.95), 3) < 2.178
    (1.96, True)
    """
    nodes, weights = np.polynomial.legendre.leggauss(160)
    along = sqrt(1.0 / GROWTH)
    across = sqrt(1.0 - 1.0 / GROWTH)

    def inside(limit: float) -> float:
        x = limit * nodes
        step = np.exp(-0.5 * ((x[:, None] - along * x[None, :]) / across) ** 2) / (across * sqrt(2.0 * np.pi))
        density = np.exp(-0.5 * x**2) / sqrt(2.0 * np.pi)
        for _ in range(count - 1):
            density = step @ (limit * weights * density)
        return float(limit * weights @ density)

    low, high = 0.0, 40.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(middle) < confidence else (low, middle)
    return high
