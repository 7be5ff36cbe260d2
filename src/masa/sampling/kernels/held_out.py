"""What a ridge regression would say of an item that it was fitted to, had it not seen it, compiled.

Leaving out one item moves the prediction about it by its leverage: how much the item alone decides
of its own prediction. The exact leverage takes the inverse of a matrix as large as the model. The
diagonal that is used here makes it no larger than it is.
"""

import numpy as np

from masa.data.compiled import jit
from masa.sampling.kernels.change_model import KIND_SCALE, WORD_SCALE, Cells, Goal, Items, logit
from masa.sampling.kernels.drawing import Codes, Floats

MOST_LEVERAGE = 0.9
"""The most that an item is taken to decide of the prediction about it."""


@jit
def held_out(
    items: Items,
    cells: Cells,
    goal: Goal,
    model: Floats,
    asked: Codes,
    multiple: Floats,
    weight: Floats,
) -> Floats:
    """Return what the model would predict of each item asked (n,) without its own answer.

    The model is the prior plus multiple (n,) times the features of each item, fitted with these
    weights (n,) of squared residuals and a ridge of 1.
    """
    sums = np.ones(len(model))
    for a in range(len(asked)):
        _add_rows(items, cells, goal, sums, asked[a], weight[a])
    result = np.empty(len(asked))
    for a in range(len(asked)):
        own = _own_length(items, cells, goal, sums, asked[a])
        leverage = min(weight[a] * own, MOST_LEVERAGE)
        result[a] = logit(items, cells, goal, model, asked[a])
        result[a] -= multiple[a] * own / (1.0 - leverage)
    return result


@jit
def _add_rows(items: Items, cells: Cells, goal: Goal, sums: Floats, i: int, weight: float) -> None:
    """Add what an item contributes to the sums of the absolute rows of the matrix."""
    labels, answers = goal.weights.shape
    width, cell = items.numbers.shape[1], items.cell[i]
    kinds = 1 + width
    words = kinds + labels + answers + len(cells.label)
    absolute = 1.0 + 3.0 * KIND_SCALE
    absolute += WORD_SCALE * (items.word_start[i + 1] - items.word_start[i])
    for d in range(width):
        absolute += abs(items.numbers[i, d])
    step = weight * absolute
    sums[0] += step
    for d in range(width):
        sums[1 + d] += step * abs(items.numbers[i, d])
    sums[kinds + cells.label[cell]] += KIND_SCALE * step
    sums[kinds + labels + cells.old[cell]] += KIND_SCALE * step
    sums[kinds + labels + answers + cell] += KIND_SCALE * step
    for at in range(items.word_start[i], items.word_start[i + 1]):
        sums[words + items.words[at]] += WORD_SCALE * step


@jit
def _own_length(items: Items, cells: Cells, goal: Goal, sums: Floats, i: int) -> float:
    """Return the squared length of an item's features, each divided by its sum."""
    labels, answers = goal.weights.shape
    width, cell = items.numbers.shape[1], items.cell[i]
    kinds = 1 + width
    words = kinds + labels + answers + len(cells.label)
    length = 1.0 / sums[0]
    for d in range(width):
        length += items.numbers[i, d] ** 2 / sums[1 + d]
    of_kind = 1.0 / sums[kinds + cells.label[cell]]
    of_kind += 1.0 / sums[kinds + labels + cells.old[cell]]
    of_kind += 1.0 / sums[kinds + labels + answers + cell]
    of_words = 0.0
    for at in range(items.word_start[i], items.word_start[i + 1]):
        of_words += 1.0 / sums[words + items.words[at]]
    return float(length + KIND_SCALE**2 * of_kind + WORD_SCALE**2 * of_words)
