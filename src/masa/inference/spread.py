"""The error of an estimate: its variance, how well that is known, and the intervals that follow."""

from dataclasses import dataclass
from math import hypot, log, sqrt

import numpy as np

from masa.records import Floats, Interval

KAPPA = 10.0
"""Answers' worth of belief that a group's variance is that of all groups."""

UNKNOWN = 2.6
"""How much larger than its mean a squared error may be while no variance has been seen."""

MOST_PREDICTIONS = 1_000
"""With more different predictions for one label the scatter of the squared error is taken as unknown."""

DOUBT = 0.8
"""Standard errors of a variance that the interval for one number allows for."""

SPARE = 1.05
"""How many times as large a variance may be as answers show that were chosen by a model of change."""

UNMET = 0.57
"""Answers' worth of belief that what one adds is what one adds that is like none so far."""

LARGEST = sqrt(2.0)
"""No two matrices are further apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What is known of the squared error of an estimated matrix, or of one number in it."""

    error2: float
    """its expectation"""
    deviation: float
    """the standard error of that expectation"""
    traces: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """of the plug-in covariance, its square and its cube"""
    blind: float = 0.0
    """the share of the data of whose label nothing was answered"""
    unit: float = 0.0
    """what one more answer that is like none so far might add"""
    better: tuple[tuple[float, float], ...] = ()
    """of answers that make the number larger, where they are told from others: their part of error2, and what one of them adds"""
    worse: tuple[tuple[float, float], ...] = ()
    """of those that make it smaller"""

    def __add__(self, other: "Spread") -> "Spread":
        """Give the spread of the difference of two independent estimates.

        The traces of a sum of covariances are what they are at the most: as if both were alike, but for their size.
        """
        both = zip(self.traces, other.traces, (1, 2, 3), strict=True)
        traces = [
            (max(mine, 0.0) ** (1 / power) + max(theirs, 0.0) ** (1 / power)) ** power
            for mine, theirs, power in both
        ]
        return Spread(
            self.error2 + other.error2,
            sqrt(self.deviation**2 + other.deviation**2),
            (traces[0], traces[1], traces[2]),
            max(self.blind, other.blind),
            hypot(self.unit, other.unit),
            (*self.better, *other.worse),
            (*self.worse, *other.better),
        )

    def times(self, factor: float) -> "Spread":
        """Give the spread of a multiple of the estimate."""
        square = factor**2
        traces = (self.traces[0] * square, self.traces[1] * square**2, self.traces[2] * square**3)
        sides = [
            tuple((variance * square, unit * abs(factor)) for variance, unit in side)
            for side in (self.better, self.worse)
        ]
        better, worse = sides if factor >= 0.0 else reversed(sides)
        return Spread(
            self.error2 * square,
            self.deviation * square,
            traces,
            self.blind,
            self.unit * abs(factor),
            better,
            worse,
        )

    def bound(self, confidence: float = 0.95) -> float:
        """Bound the Frobenius error: its expectation, what is not known of that, and how a squared error scatters."""
        from scipy.special import chdtri, ndtri

        trace, square, cube = self.traces
        factor = UNKNOWN
        if trace > 0.0 and cube > 0.0:
            freedom = square**3 / cube**2
            scatter = (float(chdtri(freedom, 1.0 - confidence)) - freedom) / sqrt(2.0 * freedom)
            factor = max(1.0, 1.0 + sqrt(2.0 * square) / trace * scatter)
        known = (self.error2 + max(0.0, float(ndtri(confidence))) * self.deviation) * factor
        return min(LARGEST, sqrt(known) + LARGEST * self.blind)

    @classmethod
    def of_one(
        cls, adds: Floats, values: Floats, blind: float, *, variance: float | None = None
    ) -> "Spread":
        """Tell how far one number may be off from what each answer adds (n,) for a residual of 1.

        Values (n,) are 1 for answers for the better, -1 for those for the worse. Their variance is another where something is
        usual of them, from which they differ less.
        """
        sides = [adds[values > 0.0], adds[values < 0.0]]
        both, total = sum(float(side.sum()) for side in sides), float(adds.sum())
        varies = both if variance is None else variance
        less = varies / both if both > 0.0 else 1.0
        one = sqrt(float((adds**2).sum()) / total) if total > 0.0 else 0.0

        def part(side: Floats) -> tuple[tuple[float, float], ...]:
            if one <= 0.0:
                return ()
            unit = (float((side**1.5).sum()) + UNMET * one**3) / (
                float(side.sum()) + UNMET * one**2
            )
            return ((SPARE * less * float(side.sum()), sqrt(min(less, 1.0)) * unit),)

        return cls(varies, 0.0, blind=blind, better=part(sides[0]), worse=part(sides[1]))

    def ends(self, confidence: float = 0.95, z: float | None = None) -> tuple[float, float]:
        """Give how far an interval for one number reaches down and up, of z standard errors if it was looked at before.

        What got better and what got worse have limits of their own, and are put together by squares (Zou and Donner 2008). What
        was never met is hidden no better for having looked before: no more than half of the doubt is kept for it.
        """
        far = normal(confidence) if z is None else z
        hidden = min(_hidden(far) - log(2.0), _hidden(normal(confidence)))
        told = sum(variance for variance, _ in (*self.better, *self.worse))
        rest = far**2 * max(0.0, self.error2 - told + DOUBT * self.deviation)
        sides = [
            [_limits(*part, far, max(hidden, 0.0)) for part in side]
            for side in (self.better, self.worse)
        ]
        (more_better, less_better), (more_worse, less_worse) = (
            tuple(sum(limits[end] ** 2 for limits in side) for end in (0, 1)) for side in sides
        )
        return sqrt(more_worse + less_better + rest), sqrt(more_better + less_worse + rest)

    def reach(self, z: float) -> float:
        """Give the half width of an interval of z standard errors for a number that few answers may bear on.

        Were the number this much larger, it would vary more, by so many more answers of a unit: Wilson's argument, by weight.
        Of answers that were never met there may be as many as chance would have hidden.
        """
        unsure = _hidden(z) * self.unit / 2.0
        return unsure + sqrt(unsure**2 + z**2 * self.error2)


def normal(confidence: float) -> float:
    """Give how many standard errors a two-sided interval reaches."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + confidence / 2))


def _hidden(z: float) -> float:
    """Give how many rare answers are not met with the chance that a normal number is beyond z."""
    from scipy.special import log_ndtr

    return -float(log_ndtr(-z))


def _limits(variance: float, unit: float, z: float, hidden: float) -> tuple[float, float]:
    """Give how much more and how much less a sum of rare answers may be, each of which adds a unit.

    They are about the mid-P limits of a Poisson number, by weight; while none was met there may be as many as are hidden.

    >>> [round(end, 1) for end in _limits(0.0, 1.0, 1.96, 3.0)]
    [3.0, 0.0]
    >>> [round(end, 1) for end in _limits(10.0, 1.0, 1.96, 3.0)]  # Ten of one each: there are 5.2 to 17.9.
    [7.9, 4.8]
    """
    room = max(0.0, sqrt(hidden) - z / 2.0) ** 2
    half, aside = z * sqrt(variance + room * unit**2), unit * (room + z**2 / 4.0)
    return half + aside, max(0.0, half - aside)


def pooled(
    share: Floats, n: Floats, fraction: Floats, squares: Floats, traces: tuple[float, float, float]
) -> Spread:
    """Shrink the groups' sums of squares (G,) towards each other and add them up; share (G,) is what each stands for."""
    seen = n > 0
    usual = (squares[seen].sum() + 1.0) / (np.sum(n[seen] - 1.0) + 2.0)
    squares = squares + KAPPA * usual
    degrees = np.maximum(n - 1.0, 0.0) + KAPPA
    weight = share**2 * fraction
    blind = 1.0 - float(share[seen].sum())
    return Spread(
        error2=float(np.sum(weight * squares / degrees)),
        deviation=float(np.sqrt(np.sum((weight / degrees) ** 2 * 2.0 * squares))),
        traces=traces,
        blind=blind if blind > 1e-9 else 0.0,
    )


def share(part: int, whole: int, *, confidence: float = 0.95) -> Interval:
    """Estimate a share from a simple count (Wilson's interval); of nothing, anything may be.

    >>> round(share(0, 40).high, 4)
    0.0876
    """
    from scipy.special import ndtri

    if not whole:
        return Interval(float("nan"), 0.0, 1.0)
    z = float(ndtri(0.5 + confidence / 2))
    p = part / whole
    centre = (p + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z / (1 + z * z / whole) * sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole))
    return Interval(
        p,
        max(0.0, centre - half) if part else 0.0,
        min(1.0, centre + half) if part < whole else 1.0,
    )
