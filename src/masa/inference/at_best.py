"""How sure an assessment can be at best, with all items of its baseline asked."""

from math import sqrt

from masa.inference.estimate import reach
from masa.inference.moved_share import binomial_limits
from masa.inference.spread import normal


def narrowest(variance: float, squares: float, confidence: float = 0.95) -> float:
    """Give how far accuracy may have changed if all items were asked and no answer changed.

    Each item adds to the variance of a sum over all items because it represents others besides
    itself: variance is the sum of that, squares the sum of its squares. Both are zero where every
    item has a baseline answer.

    >>> round(narrowest(300 / 300**2, 300 / 300**4), 3)
    0.01
    """
    if variance <= 0.0:
        return 0.0
    unit = sqrt(squares / variance)
    size = variance / unit**2
    _, more = binomial_limits(0.0, size, reach(confidence, normal(confidence)))
    return min(1.0, more * size * unit)
