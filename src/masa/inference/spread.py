"""The error of an estimate: its variance, how well that is known, and the intervals that follow."""

from dataclasses import dataclass
from math import hypot, log, sqrt

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

VARIANCE_MARGIN = 1.05
"""Factor on the variance of answers that were chosen by a model of change: their weights are a
little more unequal than they show (decision 0016)."""

UNIT_PRIOR_ANSWERS = 0.57
"""Strength of the prior for what one answer adds: its value for an answer unlike any seen so far
counts as so many answers, which is c at 95% (decision 0016)."""

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
    better: tuple[tuple[float, float], ...] = ()
    """for answers that make the number larger, where they are told apart: pairs of their part of
    error2 and of what one such answer adds"""
    worse: tuple[tuple[float, float], ...] = ()
    """the same for answers that make the number smaller"""

    def __add__(self, other: "Spread") -> "Spread":
        """Give the spread of the difference of two independent estimates.

        The traces are upper bounds: those of a sum of two covariances that differ only in size.
        """
        both = zip(self.traces, other.traces, (1, 2, 3), strict=True)
        traces = [
            (max(mine, 0.0) ** (1 / power) + max(theirs, 0.0) ** (1 / power)) ** power
            for mine, theirs, power in both
        ]
        # What makes the subtracted number larger makes the difference smaller.
        return Spread(
            self.error2 + other.error2,
            sqrt(self.deviation**2 + other.deviation**2),
            (traces[0], traces[1], traces[2]),
            max(self.unanswered_share, other.unanswered_share),
            hypot(self.unit, other.unit),
            (*self.better, *other.worse),
            (*self.worse, *other.better),
        )

    def times(self, factor: float) -> "Spread":
        """Give the spread of a multiple of the estimate."""
        square = factor**2
        better = tuple((part * square, unit * abs(factor)) for part, unit in self.better)
        worse = tuple((part * square, unit * abs(factor)) for part, unit in self.worse)
        if factor < 0.0:
            better, worse = worse, better
        return Spread(
            self.error2 * square,
            self.deviation * square,
            (self.traces[0] * square, self.traces[1] * square**2, self.traces[2] * square**3),
            self.unanswered_share,
            self.unit * abs(factor),
            better,
            worse,
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

    @classmethod
    def of_one(
        cls,
        variance_weight: Floats,
        values: Floats,
        unanswered_share: float,
        *,
        variance: float | None = None,
    ) -> "Spread":
        """Give the spread of one number from the answers that it is estimated from.

        Variance_weight (n,) is what a residual of 1 adds to the variance. Values (n,) are 1 for
        answers for the better, -1 for answers for the worse and 0 for the others. Give the variance
        where it is not the sum of the answers' weights, because the values vary less around what is
        usual for them than around zero.
        """
        gains, losses = variance_weight[values > 0.0], variance_weight[values < 0.0]
        around_zero = float(gains.sum()) + float(losses.sum())
        if variance is None:
            variance = around_zero
        ratio = 1.0
        if around_zero > 0.0:
            ratio = variance / around_zero
        unseen_unit = mean_unit(variance_weight)
        return cls(
            variance,
            0.0,
            unanswered_share=unanswered_share,
            better=_one_side(gains, ratio, unseen_unit),
            worse=_one_side(losses, ratio, unseen_unit),
        )

    def ends(self, confidence: float = 0.95, z: float | None = None) -> tuple[float, float]:
        """Give the distances of the two ends of an interval from the estimate of one number.

        The lower end comes first. Z is the number of standard errors, where it is larger because of
        earlier looks. Changes for the better and for the worse have limits of their own, which are
        combined by squares (Zou and Donner's MOVER, Statistics in Medicine 2008; decision 0016).
        """
        if z is None:
            z = normal(confidence)
        # Looking more often hides unseen answers no better, so their number does not grow with z
        # beyond what half of the error probability of a single look gives.
        unseen = min(_unseen_answers(z) - log(2.0), _unseen_answers(normal(confidence)))
        unseen = max(unseen, 0.0)
        better = [_poisson_limits(part, unit, z, unseen) for part, unit in self.better]
        worse = [_poisson_limits(part, unit, z, unseen) for part, unit in self.worse]
        more_better, less_better = _sums_of_squares(better)
        more_worse, less_worse = _sums_of_squares(worse)

        explained = sum(part for part, _ in (*self.better, *self.worse))
        remaining = self.error2 - explained + VARIANCE_STANDARD_ERRORS * self.deviation
        rest = z**2 * max(0.0, remaining)
        below = sqrt(more_worse + less_better + rest)
        above = sqrt(more_better + less_worse + rest)
        return below, above

    def half_width(self, z: float) -> float:
        """Give the half width of an interval of z standard errors, for a number few answers affect.

        With l = -log(1 - Phi(z)) and u the unit it is l u/2 + sqrt(l^2 u^2/4 + z^2 error2). This is
        Wilson's argument, by weight: if the number were larger, it would also vary more, by so many
        more answers of one unit. Instead of his z^2 stands l, the number of unseen answers that
        chance may have hidden.
        """
        half_unseen = _unseen_answers(z) * self.unit / 2.0
        return half_unseen + sqrt(half_unseen**2 + z**2 * self.error2)


@dataclass(frozen=True, slots=True, eq=False)
class Spreads:
    """The errors of an estimated matrix, of its accuracy and of its entries."""

    matrix: Spread
    accuracy: Spread
    deviations: Floats
    """(L, P) the standard error of each entry"""


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


def _one_side(
    variance_weight: Floats, ratio: float, unseen_unit: float
) -> tuple[tuple[float, float], ...]:
    """Give the variance of the answers for the better, or for the worse, and what one of them adds.

    Ratio is the variance of all answers over what it would be around zero.
    """
    if unseen_unit <= 0.0:
        return ()
    total = float(variance_weight.sum())
    # Few answers say little about what one adds, so it is shrunk towards the unit of unseen ones.
    unit = (float((variance_weight**1.5).sum()) + UNIT_PRIOR_ANSWERS * unseen_unit**3) / (
        total + UNIT_PRIOR_ANSWERS * unseen_unit**2
    )
    return ((VARIANCE_MARGIN * ratio * total, sqrt(min(ratio, 1.0)) * unit),)


def _sums_of_squares(limits: list[tuple[float, float]]) -> tuple[float, float]:
    """Add up the squares of upper and of lower limits."""
    return sum(more**2 for more, _ in limits), sum(less**2 for _, less in limits)


def _unseen_answers(z: float) -> float:
    """Give the mean of a Poisson number that is zero as often as a normal number exceeds z."""
    from scipy.special import log_ndtr

    return -float(log_ndtr(-z))


def _poisson_limits(variance: float, unit: float, z: float, unseen: float) -> tuple[float, float]:
    """Give how much larger and how much smaller a sum of rare answers may be, one unit each.

    These are about the mid-P limits of a Poisson number, by weight (formulas in decision 0016).
    While no answer was seen, there may be as many as are given as unseen.

    >>> [round(end, 1) for end in _poisson_limits(0.0, 1.0, 1.96, 3.0)]
    [3.0, 0.0]
    >>> [round(end, 1) for end in _poisson_limits(10.0, 1.0, 1.96, 3.0)]  # Ten: from 5.2 to 17.9.
    [7.9, 4.8]
    """
    extra = max(0.0, sqrt(unseen) - z / 2.0) ** 2
    half = z * sqrt(variance + extra * unit**2)
    offset = unit * (extra + z**2 / 4.0)
    return half + offset, max(0.0, half - offset)


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
