"""When to stop: as soon as the shift is known well enough, or the verdict is certain, and what having looked early costs."""

from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from math import ceil, sqrt

import numpy as np

from masa.errors import UsageError
from masa.inference.estimate import Estimate
from masa.inference.readings import Looks, Reader
from masa.inference.verdict import verdict
from masa.settings import Objective, Tolerance

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
    tolerance: Tolerance = field(default_factory=Tolerance)
    confidence: float = 0.95
    objective: Objective = field(default_factory=Objective)
    strict: bool = False
    """whether intervals hold at all times at once, however often one looks"""

    def __post_init__(self) -> None:
        if self.target_error is not None and not 0.0 < self.target_error < 1.0:
            raise UsageError(
                f"target error is {self.target_error:g}", hint="give a share such as 0.005"
            )

    def looks(self, most: int, items: int) -> Looks | None:
        """Give how far intervals reach whose verdict is looked at until most of the items are answered; None for once only."""
        return partial(critical, looks(most), items) if self.decide and not self.strict else None

    def next_verdict(self, answers: int) -> int | None:
        """Give after how many answers to look at the verdict next, or None for never."""
        if self.decide and self.strict:
            return max(FIRST_LOOK, answers + 5, ceil(OFTEN * answers))
        return _look_after(answers) if self.decide else None

    def next_error(self, answers: int, strata: int) -> int | None:
        """Give after how many answers to look at the error next, or None for never."""
        if self.target_error is None:
            return None
        return max(FIRST_LOOK, 3 * strata, answers + 5, ceil(OFTEN * answers))

    def verdict(self, found: Estimate, looks: Looks | None) -> str:
        """Give the verdict by now."""
        doubt = (1.0 - self.confidence) / len(self.tolerance.limits)
        return verdict(Reader(found, 1.0 - doubt, looks), self.tolerance, self.objective)[0]

    def reached(self, found: Estimate) -> bool:
        """Say whether the shift is known well enough."""
        return self.target_error is not None and found.bound(self.confidence) <= self.target_error


def looks(most: int) -> tuple[int, ...]:
    """Give after how many answers the verdict is looked at, the last time when most answers are there.

    >>> looks(50), looks(150), len(looks(1_000))
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
def critical(schedule: tuple[int, ...], items: int, confidence: float) -> float:
    """Give what a standard normal number that is looked at again and again stays below, in absolute value, with this confidence.

    After n of the items an estimate knows 1 / (1/n - 1/items) answers' worth, and from look to look it is correlated by the root
    of the ratio of that: the chance that it stays inside is one integral a look (Armitage, McPherson and Rowe 1969).

    >>> round(critical((500,), 10**9, 0.95), 3)
    1.96
    """
    worth = [1.0 / (1.0 / look - 1.0 / items) for look in schedule if look < items]
    along = [sqrt(before / after) for before, after in pairwise(worth)]
    nodes, weights = np.polynomial.legendre.leggauss(200)

    def inside(limit: float) -> float:
        x = limit * nodes
        density = np.exp(-0.5 * x**2) / sqrt(2.0 * np.pi)
        for share in along:
            across = sqrt(1.0 - share**2)
            step = np.exp(-0.5 * ((x[:, None] - share * x[None, :]) / across) ** 2) / (
                across * sqrt(2.0 * np.pi)
            )
            density = step @ (limit * weights * density)
        return float(limit * weights @ density)

    low, high = 0.0, 10.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(middle) < confidence else (low, middle)
    return high
