"""The share of items that moved, seen through the answers to some of them.

Its limits are like those of a binomial number (decision 0019).
"""

from dataclasses import dataclass
from math import asin, pi, sin, sqrt

import numpy as np

from masa.inference.spread import mean_unit
from masa.records import Floats, Ints

LEVERAGE_POWER = 0.85
"""An answer is part of the mean that its residual is taken around. Its residual is divided by one
minus its share of that mean, to this power: a half is right for equal weights, 1 leaves the answer
out of the mean."""

VARIANCE_MARGIN = 1.05
"""Factor on the variance: weights that a model chose are a little more unequal than they show."""

UNIT_PRIOR_ANSWERS = 0.57
"""What one answer represents is shrunk towards its mean over all answers as if by so many answers
that changed (decision 0016)."""

RATIO_PRIOR_ANSWERS = 4.0
"""The same for how much less answers vary within groups of similar items."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far an interval reaches."""

    z: float
    """the number of standard errors"""
    unseen: float
    """how many answers of a kind may be missed by chance while none was seen"""


@dataclass(frozen=True, slots=True, eq=False)
class AskedPart:
    """Answers (n,) to some of the items of a part of the whole."""

    own: Floats
    """(n,) the weight of the item itself"""
    weight: Floats
    """(n,) the weight of the items that it represents"""
    variance: Floats
    """(n,) what it adds to the variance if it moved"""
    moved: Floats
    """(n,) 1 or 0"""

    @property
    def known(self) -> float:
        """The weight of the items that are known to have moved."""
        return float(self.own @ self.moved)

    @property
    def represented(self) -> float:
        """The weight of the items that were not asked and that the answers represent."""
        others = float(np.maximum(self.weight - self.own, 0.0).sum())
        if others <= 1e-12 or not self.variance.any():
            return 0.0
        return others


@dataclass(frozen=True, slots=True, eq=False)
class GroupedPart:
    """The same part, brought to the known weights of its groups of similar items."""

    estimate: float
    """the weight of the items that moved"""
    around_zero: Floats
    """(n,) what each answer adds to the variance if it moved"""
    variance: float
    """of the estimate, around the rates of the groups"""

    @classmethod
    def of(
        cls, part: AskedPart, group: Ints, group_weight: Floats, prior_weight: float
    ) -> "GroupedPart":
        """Take answers in groups (n,) of a known weight (G,).

        A group with few answers is taken to move about as often as all do.
        """
        count = len(group_weight)
        total = max(float(part.weight.sum()), 1e-300)
        rate = float(part.weight @ part.moved) / total
        answered = np.bincount(group, part.weight, count)
        moved = np.bincount(group, part.weight * part.moved, count)
        divisor = answered + prior_weight
        mean = (moved + prior_weight * rate) / divisor
        missing = group_weight - answered
        estimate = float((moved + missing * mean).sum())
        # What one answer adds to the estimate: through its own group, and through the rate of all.
        by_group = (group_weight + prior_weight) / divisor
        by_all = float((missing * prior_weight / divisor).sum()) / total
        influence = np.maximum(by_group[group] + by_all, 0.0)
        in_group = _leverage(part.weight / divisor[group])
        in_all = _leverage(part.weight / total)
        residual = (
            by_group[group] * (part.moved - mean[group]) / in_group
            + by_all * (part.moved - rate) / in_all
        )
        return cls(
            estimate,
            part.variance * influence**2,
            float((part.variance * residual**2).sum()),
        )


def _leverage(share: Floats) -> Floats:
    return np.asarray(np.maximum(1.0 - share, 1e-9) ** LEVERAGE_POWER)


def limits_of_part(
    part: AskedPart, groups: GroupedPart, estimate: float, left: float, reach: Reach
) -> tuple[float, float, float]:
    """Give how much less and how much more than the estimate may have moved, and the size.

    The answers count as so many answers of one size each (the unit) as have the same variance and
    skewness; these have the limits of a binomial number.
    """
    each = groups.around_zero
    moved = part.moved > 0.0
    usual_unit = mean_unit(each)
    if usual_unit <= 0.0:
        return 0.0, left, 0.0
    seen = float(each[moved].sum())
    unit = (float((each[moved] ** 1.5).sum()) + UNIT_PRIOR_ANSWERS * usual_unit**3) / (
        seen + UNIT_PRIOR_ANSWERS * usual_unit**2
    )
    share = min(max((estimate - part.known) / left, 0.0), 1.0)
    usual_size = float(each.sum()) / usual_unit**2
    size = (seen / unit**2 + UNIT_PRIOR_ANSWERS) / (share + UNIT_PRIOR_ANSWERS / usual_size)
    size = max(size, seen / unit**2, 1.0)
    less, more = binomial_limits(share, size, reach)
    # Less variance within groups than among all counts as far as many answers show it.
    fewer = float(min(moved.sum(), len(moved) - moved.sum()))
    ratio = 1.0
    if seen > 0.0 and share < 1.0:
        ratio = min(groups.variance / ((1.0 - share) * seen), 2.0)
    ratio = (fewer * ratio + RATIO_PRIOR_ANSWERS) / (fewer + RATIO_PRIOR_ANSWERS)
    scale = size * unit * sqrt(ratio * VARIANCE_MARGIN)
    lowest, highest = estimate - part.known, part.known + left - estimate
    # A limit of none, or of all, stays that whatever the variance.
    if less < share:
        lowest = min(less * scale, lowest)
    if share + more < 1.0:
        highest = min(more * scale, highest)
    return lowest, highest, size


def binomial_limits(share: float, size: float, reach: Reach) -> tuple[float, float]:
    """Give how much less and how much more a share may be that was seen in so many answers.

    By the arcsine transformation, with c answers added to either side so that a share of 0 has the
    limit that the number of unseen answers gives. These are about the mid-P limits.

    >>> reach = Reach(1.96, 3.0)
    >>> [round(binomial_limits(0.0, size, reach)[1], 2) for size in (1, 4, 20, 1_000)]
    [1.0, 0.54, 0.14, 0.0]
    >>> [round(end, 2) for end in binomial_limits(0.5, 20, reach)]
    [0.21, 0.21]
    """
    extra = max(0.0, sqrt(reach.unseen) - reach.z / 2.0) ** 2
    middle = asin(sqrt((share * size + extra) / (size + 2.0 * extra)))
    step = reach.z / (2.0 * sqrt(size))
    low = sin(max(0.0, middle - step)) ** 2
    high = sin(min(pi / 2.0, middle + step)) ** 2
    return max(0.0, share - low), max(0.0, high - share)
