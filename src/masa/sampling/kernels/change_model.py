"""The model of change, compiled: how likely each item's answer changed, and what it changed to.

A *cell* holds the items of one label and one baseline answer.
"""

from math import exp
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from masa.data.compiled import jit
from masa.sampling.kernels.drawing import Codes, Floats, Ints, uniform

Singles = npt.NDArray[np.float32]

KIND_SCALE, WORD_SCALE = 1.0, 0.5
"""The value of the indicators for an item's label, baseline answer and cell, and of each of its
words. As the ridge is the same for all coefficients, a larger value lets them matter more."""

EPOCHS = 8
"""Passes over the answers that fit the model."""

PRIOR_CHANGES = 2.0
"""How many changed answers the usual change counts for, in what the items of a cell change to."""


class Items(NamedTuple):
    """What is known of each item before it is asked."""

    cell: Codes
    """(N,)"""
    numbers: Singles
    """(N, D) numbers that may predict whether its answer changed"""
    word_start: Ints
    """(N + 1,) its words are words[word_start[i]] to words[word_start[i + 1]]"""
    words: Codes
    """the words, as numbers below the size of the vocabulary"""
    weight: Floats
    """(N,) its share of the estimate; the sum is 1"""
    margin: Floats
    """(N,) the log odds of the confidence of its baseline answer, nan where there is none"""
    priority: Floats
    """(N,) its weight divided by the square root of its price; items with 0 are not asked"""
    order: Codes
    """(N,) the items, similar ones next to each other: a systematic pass spreads over all kinds"""


class Cells(NamedTuple):
    """The items of one label and one baseline answer."""

    label: Codes
    """(C,)"""
    old: Codes
    """(C,) the baseline answer"""
    right: Codes
    """(C,) the right answer, or -1 where it is none of the answers"""
    weight: Floats
    """(C,) its share of the estimate"""
    group: Codes
    """(C,) cells of a label that are too small to be scaled to their weight alone form one group"""
    group_weight: Floats
    """(G,)"""


class Goal(NamedTuple):
    """What is to be estimated: the shift, measured by a weighted norm or by a weighted sum."""

    weights: Floats
    """(L, P) the weight of each entry"""
    linear: bool
    """whether it is the weighted sum of the entries, not the norm"""


class Asked(NamedTuple):
    """The items that were asked, in the order of their batches."""

    item: Codes
    """(n,)"""
    changed: Floats
    """(n,) how much each changed, from 0 to 1: a little where only its confidence moved"""
    target: Codes
    """(n,) the answer that each changed to, or -1"""
    margin: Floats
    """(n,) the new margin: that of an answer that changed is negative; nan where it has none"""
    chance: Floats
    """(n,) its inclusion probability over the size of its batch; 0 where it was not drawn"""


class Model(NamedTuple):
    """A fitted model: the prior plus a multiple of the features of each item asked."""

    coefficients: Floats
    """of the constant, then of numbers, labels, baseline answers, cells and words"""
    multiple: Floats
    """(n,)"""
    weight: Floats
    """(n,) of the squared residual of each, near the fit"""


class Prior(NamedTuple):
    """The model before it has seen any answer."""

    numbers: Floats
    """(1 + D,) the constant and the coefficient of each number; all other coefficients are 0"""
    vocabulary: int


@jit
def prior_model(cells: Cells, goal: Goal, prior: Prior) -> Floats:
    """Return the coefficients before any answer.

    They belong to the constant, then to numbers, labels, baseline answers, cells and words.
    """
    labels, answers = goal.weights.shape
    model = np.zeros(len(prior.numbers) + labels + answers + len(cells.label) + prior.vocabulary)
    model[: len(prior.numbers)] = prior.numbers
    return model


@jit
def logit(items: Items, cells: Cells, goal: Goal, model: Floats, i: int) -> float:
    """Return the log odds that an item's answer changed."""
    labels, answers = goal.weights.shape
    width, cell = items.numbers.shape[1], items.cell[i]
    kinds = 1 + width
    words = kinds + labels + answers + len(cells.label)
    z = model[0]
    for d in range(width):
        z += model[1 + d] * items.numbers[i, d]
    of_kind = (
        model[kinds + cells.label[cell]]
        + model[kinds + labels + cells.old[cell]]
        + model[kinds + labels + answers + cell]
    )
    of_words = 0.0
    for at in range(items.word_start[i], items.word_start[i + 1]):
        of_words += model[words + items.words[at]]
    return float(z + KIND_SCALE * of_kind + WORD_SCALE * of_words)


@jit
def logits(items: Items, cells: Cells, goal: Goal, models: Floats, i: int, result: Floats) -> None:
    """Set the log odds of an item by several models (K,); models (F, K) has their coefficients.

    All models are read in one pass: what takes time is to find the coefficients in memory.
    """
    labels, answers = goal.weights.shape
    width, cell = items.numbers.shape[1], items.cell[i]
    kinds = 1 + width
    words = kinds + labels + answers + len(cells.label)
    for k in range(len(result)):
        result[k] = 0.0
    for at in range(items.word_start[i], items.word_start[i + 1]):
        row = words + items.words[at]
        for k in range(len(result)):
            result[k] += models[row, k]
    for k in range(len(result)):
        result[k] = models[0, k] + WORD_SCALE * result[k]
        for d in range(width):
            result[k] += models[1 + d, k] * items.numbers[i, d]
        result[k] += KIND_SCALE * (
            models[kinds + cells.label[cell], k]
            + models[kinds + labels + cells.old[cell], k]
            + models[kinds + labels + answers + cell, k]
        )


@jit
def add_item(items: Items, cells: Cells, goal: Goal, model: Floats, i: int, step: float) -> None:
    """Add step times the feature vector of an item to the model."""
    labels, answers = goal.weights.shape
    width, cell = items.numbers.shape[1], items.cell[i]
    kinds = 1 + width
    words = kinds + labels + answers + len(cells.label)
    model[0] += step
    for d in range(width):
        model[1 + d] += step * items.numbers[i, d]
    model[kinds + cells.label[cell]] += KIND_SCALE * step
    model[kinds + labels + cells.old[cell]] += KIND_SCALE * step
    model[kinds + labels + answers + cell] += KIND_SCALE * step
    for at in range(items.word_start[i], items.word_start[i + 1]):
        model[words + items.words[at]] += WORD_SCALE * step


@jit
def squared_length(items: Items, i: int) -> float:
    """Return the squared length of the feature vector of an item."""
    words = items.word_start[i + 1] - items.word_start[i]
    length = 1.0 + 3.0 * KIND_SCALE**2 + WORD_SCALE**2 * words
    for d in range(items.numbers.shape[1]):
        length += items.numbers[i, d] ** 2
    return float(length)


@jit
def fit(
    items: Items, cells: Cells, goal: Goal, prior: Prior, asked: Codes, changed: Floats
) -> Model:
    """Fit a logistic regression to how much each of the items asked (n,) changed (n,), from 0 to 1.

    With a ridge of 1 towards the prior, by dual coordinate ascent: the model is the prior plus a
    multiple of each item's feature vector. The result is the same for the same items.
    """
    model = prior_model(cells, goal, prior)
    changed = _discounted(changed)
    multiple = np.zeros(len(asked))
    lengths = np.empty(len(asked))
    for a in range(len(asked)):
        lengths[a] = squared_length(items, asked[a])
    order = np.arange(len(asked))
    for epoch in range(EPOCHS):
        # Each pass takes another random order: in a fixed order the fit hardly converges.
        for last in range(len(order) - 1, -1, -1):
            other = int(uniform(np.uint64(0), epoch, last) * (last + 1))
            a = order[other]
            order[other] = order[last]
            order[last] = a
            i = asked[a]
            length = lengths[a]
            z = logit(items, cells, goal, model, i)
            x = multiple[a]
            # Newton steps towards the multiple that equals the residual, changed - p.
            for _ in range(3):
                p = 1.0 / (1.0 + exp(-(z + (x - multiple[a]) * length)))
                x -= (x - changed[a] + p) / (1.0 + length * p * (1.0 - p))
            add_item(items, cells, goal, model, i, x - multiple[a])
            multiple[a] = x
    weight = np.empty(len(asked))
    for a in range(len(asked)):
        p = 1.0 / (1.0 + exp(-logit(items, cells, goal, model, asked[a])))
        weight[a] = p * (1.0 - p)
    return Model(model, multiple, weight)


@jit
def _discounted(changed: Floats) -> Floats:
    """Let confidences that moved count less, the more of the others moved as well.

    Where all of them move, as after a rewrite, that one did tells nothing.
    """
    stayed, moved = 1.0, 0.0
    for a in range(len(changed)):
        if changed[a] == 0.0:
            stayed += 1.0
        elif changed[a] < 1.0:
            moved += 1.0
    result = changed.copy()
    for a in range(len(changed)):
        if changed[a] < 1.0:
            result[a] *= stayed / (stayed + moved)
    return result


@jit
def log_odds(items: Items, cells: Cells, goal: Goal, model: Floats) -> Floats:
    """Return the log odds that the answer about each item (N,) changed."""
    result = np.empty(len(items.cell))
    for i in range(len(result)):
        result[i] = logit(items, cells, goal, model, i)
    return result


@jit
def was_wrong(cells: Cells, cell: int) -> bool:
    """Say whether the baseline answer of a cell is wrong and the right one is among the answers."""
    return bool(cells.right[cell] >= 0 and cells.right[cell] != cells.old[cell])


@jit
def was_right(cells: Cells, cell: int) -> bool:
    """Say whether the baseline answer of a cell is right."""
    return bool(cells.right[cell] >= 0 and cells.right[cell] == cells.old[cell])


@jit
def moments(items: Items, cells: Cells, goal: Goal, asked: Codes, target: Codes) -> Floats:
    """Return what the goal needs to know of the answers that each cell changes to: (C, 4).

    The columns are the weight of the baseline answer; then, over the answers that its items change
    to, the mean weight, the mean squared weight, and the sum of the squares of weight times share.
    target (n,) is the answer that each of the items asked (n,) changed to, or -1.
    """
    answers = goal.weights.shape[1]
    share, corrected = _usual_change(items, cells, answers, asked, target)
    result = _usual_moments(cells, goal, share, corrected)
    _add_seen_changes(items, cells, goal, asked, target, share, corrected, result)
    return result


@jit
def _usual_change(
    items: Items, cells: Cells, answers: int, asked: Codes, target: Codes
) -> tuple[Floats, float]:
    """Return how answers change in all cells together.

    The share of each answer (P,) among those that items changed to, and the share that became right
    of the wrong answers that changed.
    """
    share = np.full(answers, PRIOR_CHANGES / answers)
    changes, wrong, corrected = 0, 1.0, 0.5
    for a in range(len(asked)):
        if target[a] >= 0:
            cell = items.cell[asked[a]]
            changes += 1
            share[target[a]] += 1.0
            if was_wrong(cells, cell):
                wrong += 1.0
                corrected += target[a] == cells.right[cell]
    share /= changes + PRIOR_CHANGES
    return share, corrected / wrong


@jit
def _usual_moments(cells: Cells, goal: Goal, share: Floats, corrected: float) -> Floats:
    """Return the moments of each cell (C, 4) if its items change as all do.

    Not yet divided: columns 1 and 2 are times PRIOR_CHANGES, column 3 times its square.
    """
    weights = goal.weights
    labels, answers = weights.shape
    mean, square, squares = np.zeros(labels), np.zeros(labels), np.zeros(labels)
    for label in range(labels):
        for j in range(answers):
            weighted = weights[label, j] * share[j]
            mean[label] += weighted
            square[label] += weighted * weights[label, j]
            squares[label] += weighted * weighted
    result = np.zeros((len(cells.label), 4))
    for cell in range(len(cells.label)):
        label, old, right = cells.label[cell], cells.old[cell], cells.right[cell]
        w = weights[label, old]
        to_right, right_weight, right_share = 0.0, 0.0, 0.0
        if was_wrong(cells, cell):
            to_right, right_weight, right_share = corrected, weights[label, right], share[right]
        # An item that changes does not keep its answer, so the shares of the others are scaled up.
        rest = (1.0 - to_right) / max(1.0 - share[old], 1e-9)
        result[cell, 0] = w
        result[cell, 1] = PRIOR_CHANGES * (
            to_right * right_weight + rest * (mean[label] - w * share[old])
        )
        result[cell, 2] = PRIOR_CHANGES * (
            to_right * right_weight**2 + rest * (square[label] - w**2 * share[old])
        )
        result[cell, 3] = PRIOR_CHANGES**2 * (
            rest**2 * (squares[label] - (w * share[old]) ** 2)
            + right_weight**2 * (to_right**2 + 2.0 * to_right * rest * right_share)
        )
    return result


@jit
def _add_seen_changes(
    items: Items,
    cells: Cells,
    goal: Goal,
    asked: Codes,
    target: Codes,
    share: Floats,
    corrected: float,
    result: Floats,
) -> None:
    """Add the changes seen in each cell to the usual moments (C, 4), and divide by their number."""
    answers = goal.weights.shape[1]
    keys = np.empty(len(asked), np.int64)
    changes = 0
    for a in range(len(asked)):
        if target[a] >= 0:
            keys[changes] = np.int64(items.cell[asked[a]]) * answers + target[a]
            changes += 1
    keys = np.sort(keys[:changes])
    seen = np.full(len(cells.label), PRIOR_CHANGES)
    first = 0
    while first < changes:
        last = first
        while last < changes and keys[last] == keys[first]:
            last += 1
        count = float(last - first)
        cell, j = keys[first] // answers, keys[first] % answers
        usual = _usual_share(cells, cell, j, share, corrected)
        w = goal.weights[cells.label[cell], j]
        result[cell, 1] += count * w
        result[cell, 2] += count * w**2
        result[cell, 3] += w**2 * (count**2 + 2.0 * PRIOR_CHANGES * usual * count)
        seen[cell] += count
        first = last
    for cell in range(len(seen)):
        result[cell, 1] /= seen[cell]
        result[cell, 2] /= seen[cell]
        result[cell, 3] /= seen[cell] ** 2


@jit
def _usual_share(cells: Cells, cell: int, j: int, share: Floats, corrected: float) -> float:
    """Return the share of the answer j among the changes of a cell whose items change as all do."""
    to_right = 0.0
    if was_wrong(cells, cell):
        to_right = corrected
    usual = (1.0 - to_right) * share[j] / max(1.0 - share[cells.old[cell]], 1e-9)
    if j == cells.right[cell]:
        usual += to_right
    return float(usual)
