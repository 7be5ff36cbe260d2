"""Draw items one by one with known probabilities, for intervals that hold at all times at once."""

from collections import deque

import numpy as np

from masa.records import Floats, Ints, Query
from masa.sampling.kernels import predictive as kernel
from masa.sampling.predictive import Predictive

EVEN = 0.4
"""The least probability of an item, as a share of the one it has if weight alone decides."""


def began(draw: int) -> int:
    """Return the number of the first draw made by the same model as this one.

    Draws are counted from 1.

    >>> [began(draw) for draw in (1, 50, 51, 100, 1_300)]
    [1, 1, 51, 51, 1229]
    """
    first = 1
    while first + _draws_per_model(first) <= draw:
        first += _draws_per_model(first)
    return first


def _draws_per_model(first: int) -> int:
    """Return how many draws are made by one model, if this is the first of them."""
    return int(max(kernel.FIRST_BATCH, (first - 1) // kernel.GROWTH))


class Sequential(Predictive):
    """Choose items one by one, by a model of which answers have changed that is renewed at times.

    Every draw is a batch of its own.
    """

    def delayed(self, item: int) -> None:
        """Do nothing: it is known of every draw what came of those before it."""

    def _batch(self, number: int) -> deque[Query]:
        """Draw items without replacement, in the order to ask them, for as long as one model holds.

        Where the draws of a model cannot be repeated, because answers before them have changed, the
        rest are drawn by a new model.
        """
        wanted, first = number, began(number)
        if number <= self.batch:
            # A draw of the journal is repeated together with all other draws of its model.
            number = first
        layout = self._layout
        asked, done = self._before(number)
        probability = kernel.next_probabilities(
            layout.items,
            layout.cells,
            layout.goal,
            layout.prior,
            asked,
            done,
            1,
        )
        weight = np.where(done, 0.0, layout.items.weight)
        if not weight.any():
            return deque()
        # The kernel mixes in a share of EXPLORE; more is mixed in until it is EVEN.
        share = (EVEN - kernel.EXPLORE) / (1.0 - kernel.EXPLORE)
        by_model = (1.0 - share) * probability / probability.sum()
        probability = by_model + share * weight / weight.sum()
        size = first + _draws_per_model(first) - number
        picked = self._draw_in_turn(probability, number, size)
        # Each item is drawn from those that are left, in proportion to what is left of the sum.
        taken_before = np.concatenate(([0.0], np.cumsum(probability[picked])[:-1]))
        left = np.maximum(probability.sum() - taken_before, probability[picked])
        queries: deque[Query] = deque()
        for place, (item, whole) in enumerate(zip(picked.tolist(), left.tolist(), strict=True)):
            # The last model may have more draws than there are items. Nothing is sent twice.
            if item not in self._sent or number + place == wanted:
                of_left = float(min(1.0, probability[item] / whole))
                cell = int(layout.items.cell[item])
                queries.append(Query(item, cell, number + place, of_left, 1))
        return queries

    def _draw_in_turn(self, probability: Floats, number: int, size: int) -> Ints:
        """Draw this many items one after the other, in proportion to probability (N,).

        The largest of log probability plus Gumbel noise is such a draw, the next largest is one
        from what is left, and so on.
        """
        possible = np.flatnonzero(probability > 0.0)
        rng = np.random.default_rng((int(self._key), number))
        noise = rng.gumbel(size=len(probability))[possible]
        order = np.argsort(-(np.log(probability[possible]) + noise), kind="stable")
        return np.asarray(possible[order[:size]], np.int64)
