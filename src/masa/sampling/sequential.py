"""Draw items one by one with known inclusion probabilities, so that intervals can hold at all times at once."""

from collections import deque

import numpy as np

from masa.records import Query
from masa.sampling.kernels import predictive as kernel
from masa.sampling.predictive import Predictive

EVEN = 0.4
"""No item is drawn with less than this share of the chance it would have if all were drawn in proportion to their weights."""


def began(draw: int) -> int:
    """Give the number of the first draw that was made by the same model as this one; draws are counted from 1.

    >>> [began(draw) for draw in (1, 50, 51, 100, 1_300)]
    [1, 1, 51, 51, 1229]
    """
    first = 1
    while first + _together(first) <= draw:
        first += _together(first)
    return first


def _together(first: int) -> int:
    """Give how many draws are made by one model, from the first of them on."""
    return int(max(kernel.FIRST, (first - 1) // kernel.GROWTH))


class Sequential(Predictive):
    """Choose items one by one, by a model of which answers have changed that is made anew now and then.

    Every draw is a batch of its own.
    """

    def _batch(self, number: int) -> deque[Query]:
        """Draw items without putting them back, in the order in which they are to be asked, as long as one model holds.

        Where a model's draws cannot be made again, because answers before them are others now, the rest are made by a new one.
        """
        layout, wanted, first = self._layout, number, began(number)
        number = first if number <= self.batch else number
        known, moved, target, done = self._before(number)
        size = first + _together(first) - number
        chance = kernel.one_chance(
            layout.items,
            layout.cells,
            layout.goal,
            layout.prior,
            known.astype(np.int32),
            moved,
            target,
            done,
        )
        weight = np.where(done, 0.0, layout.items.weight)
        if not weight.any():
            return deque()
        share = (EVEN - kernel.EXPLORE) / (1.0 - kernel.EXPLORE)
        chance = (1.0 - share) * chance / chance.sum() + share * weight / weight.sum()
        may = np.flatnonzero(chance > 0.0)
        # The largest of Gumbel's numbers, one after the other: draws by weight from what is left.
        luck = np.random.default_rng((int(self._key), number)).gumbel(size=len(layout.old))[may]
        picked = may[np.argsort(-(np.log(chance[may]) + luck), kind="stable")[:size]]
        left = chance.sum() - np.concatenate(([0.0], np.cumsum(chance[picked])[:-1]))
        cell = layout.items.cell
        queries = (
            Query(item, int(cell[item]), number + place, float(min(1.0, chance[item] / whole)), 1)
            for place, (item, whole) in enumerate(
                zip(picked.tolist(), np.maximum(left, chance[picked]).tolist(), strict=True)
            )
        )
        # The last model may have more draws than there are items: what was sent is not sent again.
        return deque(
            query for query in queries if query.item not in self._sent or query.batch == wanted
        )
