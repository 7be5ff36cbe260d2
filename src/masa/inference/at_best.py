"""How sure an assessment can be at best, with all items of its baseline asked."""

import numpy as np

from masa.inference.estimate import reach
from masa.inference.moved_share import binomial_limits
from masa.inference.spread import normal
from masa.records import Floats


def narrowest(variance: Floats, confidence: float = 0.95) -> float:
    """Give how far accuracy may have changed if all items were asked and no answer changed.

    Variance (n,) is what each item adds to the variance of a sum over all items, because it
    represents others besides itself; zero where every item has a baseline answer.

    >>> round(narrowest(np.full(300, 1 / 300**2)), 3)
    0.01
    """
    total = float(variance.sum())
    if total <= 0.0:
        return 0.0
    unit = float(np.sqrt((variance**2).sum() / total))
    size = total / unit**2
    _, more = binomial_limits(0.0, size, reach(confidence, normal(confidence)))
    return min(1.0, more * size * unit)
