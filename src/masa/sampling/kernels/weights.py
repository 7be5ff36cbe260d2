"""The weight of each answer of predictive sampling, compiled, and what the answers estimate.

It also decides, from the same weights, when to go on without the baseline answers.
"""

import numpy as np

from masa.data.compiled import jit
from masa.sampling.kernels.change_model import Cells, Goal, Items, was_right, was_wrong
from masa.sampling.kernels.drawing import Codes, Floats, Ints

BELIEF = 1.0
"""How many answers the change of all items counts for, in the estimate of one group of cells."""

SWITCH_SHARE, SWITCH_ANSWERS = 0.5, 5
"""When to go on without the baseline answers: when the labels mispredict less than this share of
what the baseline answers mispredict, by weight, and at least this many answers fewer."""

EARLY_FACTOR = 0.3
"""The factor on the weight of a batch that was drawn before the switch to strata."""


@jit
def new_answer(cells: Cells, cell: int, target: int) -> int:
    """Return the new answer of an item: its target or, where that is -1, its baseline answer."""
    if target >= 0:
        return target
    return int(cells.old[cell])


@jit
def should_switch(
    items: Items, cells: Cells, goal: Goal, asked: Codes, target: Codes, counts: Floats
) -> bool:
    """Say whether labels predict the new answers of the items asked (n,) better than the baseline.

    target (n,) is the answer that each changed to, or -1; counts (n,) are the factors of `weigh`. A
    label predicts the most frequent answer of the other items with this label; where there are no
    others, the right answer.
    """
    labels, answers = goal.weights.shape
    frequency = np.zeros((labels, answers), np.int64)
    for a in range(len(asked)):
        cell = items.cell[asked[a]]
        frequency[cells.label[cell], new_answer(cells, cell, target[a])] += 1
    best = np.zeros(labels, np.int64)
    most, second = np.zeros(labels, np.int64), np.zeros(labels, np.int64)
    for label in range(labels):
        for j in range(answers):
            if frequency[label, j] > most[label]:
                second[label] = most[label]
                best[label], most[label] = j, frequency[label, j]
            elif frequency[label, j] > second[label]:
                second[label] = frequency[label, j]
    label_error, baseline_error, fewer = 0.0, 0.0, 0
    for a in range(len(asked)):
        cell = items.cell[asked[a]]
        label = cells.label[cell]
        expected, is_unique = best[label], most[label] > second[label]
        if most[label] == 1 and second[label] == 0:
            # The only answer with this label is the item's own.
            expected, is_unique = cells.right[cell], True
        if not (is_unique and new_answer(cells, cell, target[a]) == expected):
            label_error += counts[a] * items.weight[asked[a]]
            fewer -= 1
        if target[a] >= 0:
            baseline_error += counts[a] * items.weight[asked[a]]
            fewer += 1
    return fewer >= SWITCH_ANSWERS and label_error < SWITCH_SHARE * baseline_error


@jit
def weigh(
    batch: Codes, probability: Floats, sizes: Ints, left: Ints, switched: int
) -> tuple[Floats, Floats]:
    """Return the weight of each answer (n,), relative to its item's weight, and a variance factor.

    The variance factor (n,) times a squared residual is what the answer adds to the variance.
    batch (n,) and probability (n,) say how each was drawn, sizes (E,) how many items each batch
    holds, left (E,) how many items were left before it. When some answers of a batch are
    outstanding, the others are a random part of it, and their inclusion probabilities are scaled
    down by the share that was answered.

    Each batch gives an unbiased estimate: the sum over all items asked before it, plus its own
    answers divided by their inclusion probabilities. These estimates are combined with the weights
    that would be best if all items were alike. Batches before the number `switched` get less, if
    that is not 0.
    """
    answered = np.zeros(len(sizes))
    for e in batch:
        answered[e] += 1.0
    weight = np.zeros(len(sizes))
    factors, variance_factors = np.ones(len(batch)), np.zeros(len(batch))
    for e in range(1, len(sizes)):
        if answered[e] > 0.0:
            if answered[e] >= left[e]:
                # Every item was asked: nothing is estimated.
                return factors, variance_factors
            weight[e] = answered[e] / (left[e] * (left[e] - answered[e]))
            if e < switched:
                weight[e] *= EARLY_FACTOR
    total = weight.sum()
    if total <= 0.0:
        return factors, variance_factors
    later = np.zeros(len(sizes))
    for e in range(len(sizes) - 2, -1, -1):
        later[e] = later[e + 1] + weight[e + 1]
    for a in range(len(batch)):
        e = batch[a]
        if e > 0:
            q = probability[a] * answered[e] / sizes[e]
            factors[a] = (later[e] + weight[e] / q) / total
            variance_factors[a] = (weight[e] / total) ** 2 * (1.0 - q) / q**2
    return factors, variance_factors


@jit
def add_up(
    items: Items, cells: Cells, asked: Codes, target: Codes, counts: Floats, shift: Floats
) -> float:
    """Add the estimated shift to shift (L, P); return the share of wrong answers that became right.

    counts (n,) are the factors of `weigh` for the items asked (n,). In each group of cells the
    weights are scaled to the weight of the group, as far as it has answers. For the rest its items
    are assumed to change as all items do: some wrong answers became right, some right ones wrong.
    """
    group_total = np.zeros(len(cells.group_weight))
    one = BELIEF / len(asked)
    wrong, corrected, right_before, spoiled = 0.0, 0.0, 0.0, 0.0
    spoiled_to = np.zeros(shift.shape[1])
    for a in range(len(asked)):
        cell = items.cell[asked[a]]
        weight = counts[a] * items.weight[asked[a]]
        group_total[cells.group[cell]] += weight
        if was_wrong(cells, cell):
            wrong += weight
            if target[a] == cells.right[cell]:
                corrected += weight
        elif was_right(cells, cell):
            right_before += weight
            if target[a] >= 0:
                spoiled += weight
                spoiled_to[target[a]] += weight
    if wrong > 0.0:
        corrected /= wrong
    if right_before > 0.0:
        spoiled_to /= right_before
    for cell in range(len(cells.label)):
        label, old, right = cells.label[cell], cells.old[cell], cells.right[cell]
        group = cells.group[cell]
        whole, known = cells.group_weight[group], group_total[group]
        if whole <= 0.0:
            continue
        unknown = (whole - known) * one / (known + one) * cells.weight[cell] / whole
        if was_wrong(cells, cell):
            shift[label, right] += unknown * corrected
            shift[label, old] -= unknown * corrected
        elif was_right(cells, cell) and spoiled > 0.0:
            others = spoiled / right_before - spoiled_to[right]
            if others > 0.0:
                rate = unknown * spoiled / right_before
                for j in range(len(spoiled_to)):
                    if j != right:
                        shift[label, j] += rate * spoiled_to[j] / others
                shift[label, right] -= rate
    for a in range(len(asked)):
        if target[a] >= 0:
            cell = items.cell[asked[a]]
            group = cells.group[cell]
            weight = counts[a] * items.weight[asked[a]]
            amount = weight * (cells.group_weight[group] + one) / (group_total[group] + one)
            shift[cells.label[cell], target[a]] += amount
            shift[cells.label[cell], cells.old[cell]] -= amount
    return float(corrected)
