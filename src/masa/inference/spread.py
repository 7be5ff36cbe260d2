"""The error of an estimate: its variance, how well that is known, and the intervals that follow."""

from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np

from masa.records import Floats, Interval

PRIOR_ANSWERS = 10.0
"""Strength of the shrinkage: a group's variance is shrunk towards that of all groups as if so many
answers (kappa in docs/method.md) had shown the common variance."""

UNKNOWN_SCATTER = 2.6
"""How many times its mean a squared error may be while no variance has been seen."""

MOST_PREDICTIONS = 1_000
"""With more different predictions for one label, the scatter of the squared error is taken as
unknown."""

VARIANCE_STANDARD_ERRORS = 0.8
"""An interval for one number allows for a variance that is larger by so many of its own standard
errors."""

LARGEST = sqrt(2.0)
"""No two matrices are further apart than this, in the Frobenius norm."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The squared error of an estimated matrix, or of one number in it, as far as it is known."""

    error2: float
    """the expected squared error: the variance of the estimate"""
    deviation: float
    """the standard error of that variance"""
    traces: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """the traces of the plug-in covariance, of its square and of its cube; zero where unknown"""
    unanswered_share: float = 0.0
    """the share of the items whose labels have no answer at all"""
    unit: float = 0.0
    """what one more answer, unlike any so far, might add to the estimate"""

    def __add__(self, other: "Spread") -> "Spread":
        """Give the spread of the difference of two independent estimates.

        The traces are upper bounds: those of a sum of two covariances that differ only in size.
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
            max(self.unanswered_share, other.unanswered_share),
            hypot(self.unit, other.unit),
        )

    def times(self, factor: float) -> "Spread":
        """Give the spread of a multiple of the estimate."""
        square = factor**2
        return Spread(
            self.error2 * square,
            self.deviation * square,
            (self.traces[0] * square, self.traces[1] * square**2, self.traces[2] * square**3),
            self.unanswered_share,
            self.unit * abs(factor),
        )

    def bound(self, confidence: float = 0.95) -> float:
        """Bound the Frobenius error of a matrix.

        The bound allows for the variance, for the standard error of the variance and for the
        scatter of a squared error around its mean. That scatter is a chi-squared distribution with
        the mean, variance and skewness that the traces give.
        """
        from scipy.special import chdtri, ndtri

        trace, square, cube = self.traces
        factor = UNKNOWN_SCATTER
        if trace > 0.0 and cube > 0.0:
            freedom = square**3 / cube**2
            quantile = (float(chdtri(freedom, 1.0 - confidence)) - freedom) / sqrt(2.0 * freedom)
            factor = max(1.0, 1.0 + sqrt(2.0 * square) / trace * quantile)
        known = (self.error2 + max(0.0, float(ndtri(confidence))) * self.deviation) * factor
        # The rows of unanswered labels may be any rows.
        return min(LARGEST, sqrt(known) + LARGEST * self.unanswered_share)

    def half_of_one(self, z: float) -> float:
        """Give the half width of an interval of z standard errors for one number."""
        return z * sqrt(max(0.0, self.error2 + VARIANCE_STANDARD_ERRORS * self.deviation))

    def half_width(self, z: float) -> float:
        """Give the half width of an interval of z standard errors, for a number few answers affect.

        With l = -log(1 - Phi(z)) and u the unit it is l u/2 + sqrt(l^2 u^2/4 + z^2 error2). This is
        Wilson's argument, by weight: if the number were larger, it would also vary more, by so many
        more answers of one unit. Instead of his z^2 stands l, the number of unseen answers that
        chance may have hidden.
        """
        half_unseen = unseen_answers(z) * self.unit / 2.0
        return half_unseen + sqrt(half_unseen**2 + z**2 * self.error2)


@dataclass(frozen=True, slots=True, eq=False)
class Spreads:
    """The errors of an estimated matrix, of its entries and of its accuracy."""

    matrix: Spread
    deviations: Floats
    """(L, P) the standard error of each entry"""
    accuracy: Spread | None = None
    """None where intervals of shares are read off the answers themselves"""


def normal(confidence: float) -> float:
    """Give the number of standard errors of a two-sided normal interval."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + confidence / 2))


def mean_unit(variance_weight: Floats) -> float:
    """Give what one answer unlike any so far might add: the root of sum g^2 / sum g over g (n,)."""
    total = float(variance_weight.sum())
    if total <= 0.0:
        return 0.0
    return sqrt(float((variance_weight**2).sum()) / total)


def unseen_answers(z: float) -> float:
    """Give the mean of a Poisson number that is zero as often as a normal number exceeds z."""
    from scipy.special import log_ndtr

    return -float(log_ndtr(-z))


def pooled(
    share: Floats, n: Floats, fraction: Floats, squares: Floats, traces: tuple[float, float, float]
) -> Spread:
    """Add up the variances of groups, each shrunk towards the common variance.

    All are (G,): the share of the estimate that a group represents, its answers, the variance of
    its mean over that of one answer, and its sum of squared deviations. Formulas in docs/method.md,
    "How sure".
    """
    answered = n > 0
    common = (squares[answered].sum() + 1.0) / (np.sum(n[answered] - 1.0) + 2.0)
    squares = squares + PRIOR_ANSWERS * common
    degrees = np.maximum(n - 1.0, 0.0) + PRIOR_ANSWERS
    weight = share**2 * fraction
    unanswered_share = 1.0 - float(share[answered].sum())
    if unanswered_share <= 1e-9:  # The shares add up to 1 but for rounding.
        unanswered_share = 0.0
    return Spread(
        error2=float(np.sum(weight * squares / degrees)),
        deviation=float(np.sqrt(np.sum((weight / degrees) ** 2 * 2.0 * squares))),
        traces=traces,
        unanswered_share=unanswered_share,
    )


def covariance_traces(covariance: Floats) -> Floats:
    """Give the traces (3,) of a covariance matrix (K, K), of its square and of its cube."""
    squared = covariance @ covariance
    return np.array([np.trace(covariance), np.trace(squared), np.sum(squared * covariance)])


def share(part: int, whole: int, *, confidence: float = 0.95) -> Interval:
    """Estimate a share from a count (Wilson's interval); from no counts at all it may be anything.

    >>> round(share(0, 40).high, 4)
    0.0876
    """
    if not whole:
        return Interval(float("nan"), 0.0, 1.0)
    z = normal(confidence)
    p = part / whole
    centre = (p + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z / (1 + z * z / whole) * sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole))
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    # At these two shares the formula gives the same ends, but for rounding.
    if part == 0:
        low = 0.0
    if part >= whole:
        high = 1.0
    return Interval(p, low, high)
