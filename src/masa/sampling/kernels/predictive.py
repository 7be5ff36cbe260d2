"""The arithmetic of predictive sampling, compiled: which items have probably changed, which to ask, what each answer weighs.

A *cell* holds the items of one label and one old answer. The items are asked in batches. What is asked in a batch follows
from the answers to the batches before it and from nothing else, so a run can be gone on with from its journal. Batch 0 holds
the canaries: the items most likely to have changed, asked for certain.
"""

from math import exp, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from masa.sampling.kernels import shrunken as _shrunken
from masa.sampling.kernels.drawing import Codes, Floats, Ints, choose, distance, jit, pick, uniform

Singles = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

KIND, WORD = 0.7, 0.5
"""How strongly the label, the old answer and the cell of an item, and each of its words, may sway the model."""

EXPLORE = 0.15
"""The share of a batch that is spread by weight alone, so that no item's chance is far below the others'."""

FIRST, GROWTH = 50, 12
"""A batch is as large as the first one, or as the answers so far divided by this."""

EPOCHS = 8
"""Passes over the answers that fit the model."""

SEEN = 2.0
"""Changes' worth of belief that a cell's items change to what all do."""

BELIEF = 1.0
"""Answers' worth of belief that a cell's items change as all do."""


FEWER, MORE = 0.5, 5
"""The old answers have had their day when the labels miss fewer of the new ones than this share of what they miss, and at
least so many answers fewer."""

EARLIER = 0.3
"""What a batch counts for that was drawn before that was known."""


class Items(NamedTuple):
    """What is known of each item before it is asked."""

    cell: Codes
    """(N,)"""
    numbers: Singles
    """(N, D) what may tell that its answer changed"""
    word_start: Ints
    """(N + 1,) its words stand at word_start[i] to word_start[i + 1]"""
    words: Codes
    """the words, as numbers below the size of the vocabulary"""
    weight: Floats
    """(N,) the share of the estimate that it stands for; together 1"""
    urge: Floats
    """(N,) its weight over the root of its price"""
    order: Codes
    """(N,) the items, like ones side by side"""


class Cells(NamedTuple):
    """Items of one label and one old answer."""

    label: Codes
    """(C,)"""
    old: Codes
    """(C,)"""
    right: Codes
    """(C,) the answer that is right, or -1 where none of the answers is"""
    weight: Floats
    """(C,) the share of the estimate"""
    group: Codes
    """(C,) the cells of a label that are too small to be brought to their weight alone are one group"""
    group_weight: Floats
    """(G,)"""


class Goal(NamedTuple):
    """What is to be known: the norm of the shift, each entry weighted, or the weighted sum of its entries."""

    weights: Floats
    """(L, P)"""
    linear: bool


class Strata(NamedTuple):
    """What is asked by once the old answers have had their day."""

    design: _shrunken.Design
    """with the answers of the goal"""
    items: Codes
    """(N,) by position"""
    of: Codes
    """(N,) the stratum of each item"""
    may: bool


class Audit(NamedTuple):
    """Groups whose share of right answers may have changed; there may be none."""

    group: Codes
    """(N,)"""
    gain: Singles
    """(N,) 1 for an item that became right, -1 for one that became wrong, else 0"""
    truth: Floats
    """(G,) the change of each group's share of right answers"""


class Prior(NamedTuple):
    """What the model of change is before it has seen any answer."""

    numbers: Floats
    """(1 + D,) the constant, and the weight of each number"""
    vocabulary: int


@jit
def coefficients(cells: Cells, goal: Goal, prior: Prior) -> Floats:
    """Give the model before any answer: the constant, then numbers, labels, old answers, cells and words."""
    labels, answers = goal.weights.shape
    model = np.zeros(len(prior.numbers) + labels + answers + len(cells.label) + prior.vocabulary)
    model[: len(prior.numbers)] = prior.numbers
    return model


@jit
def logit(items: Items, cells: Cells, goal: Goal, model: Floats, i: int) -> float:
    """Give the log odds that an item changed."""
    labels, answers = goal.weights.shape
    width, cell = items.numbers.shape[1], items.cell[i]
    kinds = 1 + width
    words = kinds + labels + answers + len(cells.label)
    z = model[0]
    for d in range(width):
        z += model[1 + d] * items.numbers[i, d]
    kind = (
        model[kinds + cells.label[cell]]
        + model[kinds + labels + cells.old[cell]]
        + model[kinds + labels + answers + cell]
    )
    said = 0.0
    for at in range(items.word_start[i], items.word_start[i + 1]):
        said += model[words + items.words[at]]
    return float(z + KIND * kind + WORD * said)


@jit
def nudge(items: Items, cells: Cells, goal: Goal, model: Floats, i: int, step: float) -> None:
    """Move the model towards an item by a step."""
    labels, answers = goal.weights.shape
    width, cell = items.numbers.shape[1], items.cell[i]
    kinds = 1 + width
    words = kinds + labels + answers + len(cells.label)
    model[0] += step
    for d in range(width):
        model[1 + d] += step * items.numbers[i, d]
    model[kinds + cells.label[cell]] += KIND * step
    model[kinds + labels + cells.old[cell]] += KIND * step
    model[kinds + labels + answers + cell] += KIND * step
    for at in range(items.word_start[i], items.word_start[i + 1]):
        model[words + items.words[at]] += WORD * step


@jit
def fit(
    items: Items, cells: Cells, goal: Goal, prior: Prior, asked: Codes, changed: Floats
) -> Floats:
    """Fit a logistic regression to how much each of the items asked (n,) changed (n,), from 0 to 1.

    With a ridge of 1 towards the prior, by dual coordinate ascent: the model is the prior plus a multiple of each item. Items
    are passed in another random order each time, the same for the same items: in any fixed order it hardly gets there.
    """
    model = coefficients(cells, goal, prior)
    multiple = np.zeros(len(asked))
    order = np.arange(len(asked))
    for epoch in range(EPOCHS):
        for last in range(len(order) - 1, -1, -1):
            other = int(uniform(np.uint64(0), epoch, last) * (last + 1))
            a = order[other]
            order[other] = order[last]
            order[last] = a
            i = asked[a]
            length = 1.0 + 3.0 * KIND**2 + WORD**2 * (items.word_start[i + 1] - items.word_start[i])
            for d in range(items.numbers.shape[1]):
                length += items.numbers[i, d] ** 2
            z = logit(items, cells, goal, model, i)
            x = multiple[a]
            for _ in range(3):  # Newton's steps to the multiple that is what the model misses.
                p = 1.0 / (1.0 + exp(-(z + (x - multiple[a]) * length)))
                x -= (x - changed[a] + p) / (1.0 + length * p * (1.0 - p))
            nudge(items, cells, goal, model, i, x - multiple[a])
            multiple[a] = x
    return model


@jit
def log_odds(items: Items, cells: Cells, goal: Goal, model: Floats) -> Floats:
    """Give the log odds that each item (N,) changed."""
    result = np.empty(len(items.cell))
    for i in range(len(result)):
        result[i] = logit(items, cells, goal, model, i)
    return result


@jit
def moments(items: Items, cells: Cells, goal: Goal, asked: Codes, target: Codes) -> Floats:
    """Tell what the items of each cell change to, as far as the goal needs it (C, 4).

    For the old answer the weight; for what they change to the mean weight, the mean square of the weight, and the sum of the
    squares of weight times share. Target (n,) is the answer that an item asked (n,) changed to, or -1.
    """
    labels, answers = goal.weights.shape
    weights = goal.weights
    share = np.full(answers, SEEN / answers)
    keys = np.empty(len(asked), np.int64)
    changes, wrong, mended = 0, 1.0, 0.5
    for a in range(len(asked)):
        if target[a] >= 0:
            cell = items.cell[asked[a]]
            keys[changes] = np.int64(cell) * answers + target[a]
            changes += 1
            share[target[a]] += 1.0
            if cells.right[cell] >= 0 and cells.right[cell] != cells.old[cell]:
                wrong += 1.0
                mended += target[a] == cells.right[cell]
    share /= changes + SEEN
    mended /= wrong
    mean, square, squares = np.zeros(labels), np.zeros(labels), np.zeros(labels)
    for label in range(labels):
        for j in range(answers):
            weighted = weights[label, j] * share[j]
            mean[label] += weighted
            square[label] += weighted * weights[label, j]
            squares[label] += weighted * weighted
    result = np.zeros((len(cells.label), 4))
    seen = np.full(len(cells.label), SEEN)
    for cell in range(len(cells.label)):
        label, old, right = cells.label[cell], cells.old[cell], cells.right[cell]
        others = max(1.0 - share[old], 1e-9)
        to_right = mended if right >= 0 and right != old else 0.0
        rest = (1.0 - to_right) / others
        w, wr, sr = weights[label, old], 0.0, 0.0
        if to_right > 0.0:
            wr, sr = weights[label, right], share[right]
        result[cell, 0] = w
        result[cell, 1] = SEEN * (to_right * wr + rest * (mean[label] - w * share[old]))
        result[cell, 2] = SEEN * (to_right * wr**2 + rest * (square[label] - w**2 * share[old]))
        result[cell, 3] = SEEN**2 * (
            rest**2 * (squares[label] - (w * share[old]) ** 2)
            + wr**2 * (to_right**2 + 2.0 * to_right * rest * sr)
        )
    keys = np.sort(keys[:changes])
    first = 0
    while first < changes:
        last = first
        while last < changes and keys[last] == keys[first]:
            last += 1
        count = float(last - first)
        cell, j = keys[first] // answers, keys[first] % answers
        label, old, right = cells.label[cell], cells.old[cell], cells.right[cell]
        to_right = mended if right >= 0 and right != old else 0.0
        usual = (1.0 - to_right) * share[j] / max(1.0 - share[old], 1e-9) + (
            to_right if j == right else 0.0
        )
        w = weights[label, j]
        result[cell, 1] += count * w
        result[cell, 2] += count * w**2
        result[cell, 3] += w**2 * (count**2 + 2.0 * SEEN * usual * count)
        seen[cell] += count
        first = last
    for cell in range(len(seen)):
        result[cell, 1] /= seen[cell]
        result[cell, 2] /= seen[cell]
        result[cell, 3] /= seen[cell] ** 2
    return result


@jit
def chances(
    items: Items, cells: Cells, goal: Goal, model: Floats, moment: Floats, done: Bools, size: int
) -> Floats:
    """Give the chance of each item (N,) to be in the next batch, in proportion to how unsure its answer is."""
    chance = np.zeros(len(done))
    unsure, weight, left = 0.0, 0.0, 0
    for i in range(len(done)):
        if done[i] or items.urge[i] <= 0.0:
            continue
        p = 1.0 / (1.0 + exp(-logit(items, cells, goal, model, i)))
        old, mean, square, squares = moment[items.cell[i]]
        stays = (1.0 - p) * old
        known = (stays + p * mean) ** 2 if goal.linear else stays**2 + p**2 * squares
        chance[i] = items.urge[i] * sqrt(max(0.0, stays * old + p * square - known))
        unsure += chance[i]
        weight += items.weight[i]
        left += 1
    explore = EXPLORE if unsure > 0.0 else 1.0
    for i in range(len(done)):
        if not done[i] and items.urge[i] > 0.0:
            if left <= size:
                chance[i] = 1.0
            else:
                even = explore * items.weight[i] / weight
                chance[i] = size * (
                    even + ((1.0 - explore) * chance[i] / unsure if unsure > 0.0 else 0.0)
                )
    while left > size:  # Nothing is asked twice: what is above 1 goes to the others.
        certain, others = 0, 0.0
        above = False
        for i in range(len(done)):
            if chance[i] >= 1.0:
                above = above or chance[i] > 1.0
                chance[i] = 1.0
                certain += 1
            else:
                others += chance[i]
        if not above or others <= 0.0:
            break
        factor = (size - certain) / others
        for i in range(len(done)):
            if chance[i] < 1.0:
                chance[i] *= factor
    return chance


@jit
def draw(order: Codes, chance: Floats, key: np.uint64, batch: int) -> Codes:
    """Draw a batch with these chances (N,) by one systematic pass over the order (N,), and shuffle it."""
    picked = np.empty(len(order), np.int32)
    count = 0
    passed, next_one = 0.0, uniform(key, batch, 0)
    for i in order:
        passed += chance[i]
        if chance[i] >= 1.0 or (chance[i] > 0.0 and passed > next_one):
            picked[count] = i
            count += 1
            next_one += 1.0
    for last in range(count - 1, 0, -1):
        other = int(uniform(key, batch, 1 + last) * (last + 1))
        i = picked[last]
        picked[last] = picked[other]
        picked[other] = i
    return picked[:count].copy()


@jit
def next_batch(
    items: Items,
    cells: Cells,
    goal: Goal,
    prior: Prior,
    asked: Codes,
    changed: Floats,
    target: Codes,
    done: Bools,
    key: np.uint64,
    batch: int,
) -> tuple[Codes, Floats]:
    """Give the next batch and the chance of each item in it, from what the items asked (n,) answered."""
    model = fit(items, cells, goal, prior, asked, changed)
    moment = moments(items, cells, goal, asked, target)
    chance = chances(items, cells, goal, model, moment, done, max(FIRST, len(asked) // GROWTH))
    picked = draw(items.order, chance, key, batch)
    return picked, chance[picked]


@jit
def one_chance(
    items: Items,
    cells: Cells,
    goal: Goal,
    prior: Prior,
    asked: Codes,
    changed: Floats,
    target: Codes,
    done: Bools,
) -> Floats:
    """Give the chance of each item (N,) to be the next one, from what the items asked (n,) answered."""
    model = fit(items, cells, goal, prior, asked, changed)
    return chances(items, cells, goal, model, moments(items, cells, goal, asked, target), done, 1)


@jit
def should_switch(
    items: Items, cells: Cells, goal: Goal, asked: Codes, target: Codes, counts: Floats
) -> bool:
    """Say whether the labels of the items asked (n,) tell their new answers better than their old answers do.

    Target (n,) is the answer that each changed to, or -1, counts (n,) what it counts for. A label tells the answer that most of
    the other items with it have or, where there are none, that is right.
    """
    labels, answers = goal.weights.shape
    told = np.zeros((labels, answers), np.int64)
    for a in range(len(asked)):
        cell = items.cell[asked[a]]
        told[cells.label[cell], target[a] if target[a] >= 0 else cells.old[cell]] += 1
    best, most, second = (
        np.zeros(labels, np.int64),
        np.zeros(labels, np.int64),
        np.zeros(labels, np.int64),
    )
    for label in range(labels):
        for j in range(answers):
            if told[label, j] > most[label]:
                best[label], second[label], most[label] = j, most[label], told[label, j]
            elif told[label, j] > second[label]:
                second[label] = told[label, j]
    by_label, by_old, fewer = 0.0, 0.0, 0
    for a in range(len(asked)):
        cell = items.cell[asked[a]]
        label, new = cells.label[cell], target[a] if target[a] >= 0 else cells.old[cell]
        alone = most[label] == 1 and second[label] == 0
        usual = new == (cells.right[cell] if alone else best[label]) and (
            alone or most[label] > second[label]
        )
        by_label += 0.0 if usual else counts[a] * items.weight[asked[a]]
        by_old += counts[a] * items.weight[asked[a]] if target[a] >= 0 else 0.0
        fewer += (target[a] >= 0) - (not usual)
    return fewer >= MORE and by_label < FEWER * by_old


@jit
def weigh(
    batch: Codes, chance: Floats, sizes: Ints, left: Ints, turned: int
) -> tuple[Floats, Floats]:
    """Give what each answer (n,) counts for, relative to its item's weight, and what it adds to the variance.

    Batch (n,) and chance (n,) say how it came to be asked, sizes (E,) how many items each batch holds, left (E,) how many were
    left before it. Of a batch with some answers outstanding the others, in random order, were asked with chances that much
    smaller. Each batch gives an unbiased estimate: what was asked before it, plus its own answers over their chances. They
    are combined with weights as if all items were alike; those before batch number `turned` count for less, if that is not 0.
    """
    answered = np.zeros(len(sizes))
    for e in batch:
        answered[e] += 1.0
    weight = np.zeros(len(sizes))
    counts, adds = np.ones(len(batch)), np.zeros(len(batch))
    for e in range(1, len(sizes)):
        if answered[e] > 0.0:
            if answered[e] >= left[e]:  # All is known.
                return counts, adds
            weight[e] = (
                answered[e] / (left[e] * (left[e] - answered[e])) * (EARLIER if e < turned else 1.0)
            )
    total = weight.sum()
    if total <= 0.0:
        return counts, adds
    later = np.zeros(len(sizes))
    for e in range(len(sizes) - 2, -1, -1):
        later[e] = later[e + 1] + weight[e + 1]
    for a in range(len(batch)):
        e = batch[a]
        if e > 0:
            q = chance[a] * answered[e] / sizes[e]
            counts[a] = (later[e] + weight[e] / q) / total
            adds[a] = (weight[e] / total) ** 2 * (1.0 - q) / q**2
    return counts, adds


@jit
def add_up(
    items: Items, cells: Cells, asked: Codes, target: Codes, counts: Floats, shift: Floats
) -> float:
    """Add the estimated shift to shift (L, P); give the share of wrong answers that became right.

    In each group of cells what the answers count for is brought to its weight, as far as it has answers; as far as not, its
    items are taken to change as all do: of those answered wrongly some are right now.
    """
    reach = np.zeros(len(cells.group_weight))
    one = BELIEF / len(asked)
    wrong, mended = one, 0.0
    for a in range(len(asked)):
        cell = items.cell[asked[a]]
        count = counts[a] * items.weight[asked[a]]
        reach[cells.group[cell]] += count
        if cells.right[cell] >= 0 and cells.right[cell] != cells.old[cell]:
            wrong += count
            if target[a] == cells.right[cell]:
                mended += count
    mended /= wrong
    for cell in range(len(cells.label)):
        label, old, right = cells.label[cell], cells.old[cell], cells.right[cell]
        group = cells.group[cell]
        whole = cells.group_weight[group]
        if right >= 0 and right != old and whole > 0.0:
            amount = (
                (whole - reach[group])
                * one
                * mended
                / (reach[group] + one)
                * (cells.weight[cell] / whole)
            )
            shift[label, right] += amount
            shift[label, old] -= amount
    for a in range(len(asked)):
        if target[a] >= 0:
            cell = items.cell[asked[a]]
            group = cells.group[cell]
            amount = (
                counts[a]
                * items.weight[asked[a]]
                * (cells.group_weight[group] + one)
                / (reach[group] + one)
            )
            shift[cells.label[cell], target[a]] += amount
            shift[cells.label[cell], cells.old[cell]] -= amount
    return float(mended)


@jit
def inside(stratum: Codes, asked: Codes, first: int, left: Ints, chance: Floats) -> None:
    """Set the chance (n,) of the items asked (n,) from the first on: how many of those left (S,) in their stratum were."""
    taken = np.zeros(len(left), np.int64)
    for i in asked[first:]:
        taken[stratum[i]] += 1
    for a in range(first, len(asked)):
        s = stratum[asked[a]]
        chance[a] = taken[s] / left[s]


@jit
def simulate(
    items: Items,
    cells: Cells,
    goal: Goal,
    prior: Prior,
    canaries: Codes,
    strata: Strata,
    changed: Floats,
    target: Codes,
    truth: Floats,
    keys: npt.NDArray[np.uint64],
    checkpoints: Ints,
    errors: Singles,
    sums: Floats,
    first: Ints,
    audit: Audit,
    audited: Floats,
) -> int:
    """Run one assessment a key on recorded answers, and give the number of queries asked.

    Changed (N,) and target (N,) are what each item would answer, truth (L, P) is the true shift. Checkpoints, errors and sums
    are those of the other kernel; first (R,) receives the number of queries up to the first changed answer, 0 where none came,
    audited (K, G) by budget and group the squared error of the change of accuracy, which is added to it.
    """
    labels, answers = goal.weights.shape
    most = min(checkpoints[-1, 0], len(items.cell))
    shift = np.zeros((labels, answers))
    total = 0
    for run in range(len(keys)):
        done = np.zeros(len(items.cell), np.bool_)
        asked, batch, chance = np.zeros(most, np.int32), np.zeros(most, np.int32), np.zeros(most)
        sizes, left = np.zeros(most + 2, np.int64), np.zeros(most + 2, np.int64)
        sizes[0], left[0] = len(canaries), len(items.cell)
        for i in canaries:
            done[i] = True
        n, sung, count, turned, before = 0, 0, 1, 0, 0
        while n < most and turned == 0:
            known = asked[:n]
            picked, its_chance = next_batch(
                items,
                cells,
                goal,
                prior,
                known,
                changed[known],
                target[known],
                done,
                keys[run],
                count,
            )
            left[count] = left[count - 1] - sizes[count - 1]
            sizes[count] = len(picked)
            for k in range(len(picked)):
                done[picked[k]] = True
            k = 0
            while n < most and (k < len(picked) or sung < len(canaries)):
                if sung < len(canaries) and (sung < k or k == len(picked)):
                    asked[n], batch[n], chance[n] = canaries[sung], 0, 1.0
                    sung += 1
                else:
                    asked[n], batch[n], chance[n] = picked[k], count, its_chance[k]
                    k += 1
                n += 1
            count += 1
            if len(picked) == 0:
                break
            if strata.may and n < most:
                counts, _ = weigh(batch[:n], chance[:n], sizes[:count], left[:count], 0)
                if should_switch(items, cells, goal, asked[:n], target[asked[:n]], counts):
                    turned, before = count, n
                    left[count] = left[count - 1] - sizes[count - 1]
                    n = _rest(items, cells, strata, target, keys[run], done, asked, n)
                    batch[before:n] = turned
        for k in range(n):
            if target[asked[k]] >= 0:
                first[run] = k + 1
                break
        total += n
        rest = np.zeros(len(strata.design.weight), np.int64)
        if turned > 0:
            for i in range(len(items.cell)):
                rest[strata.of[i]] += 1
            for i in asked[:before]:
                rest[strata.of[i]] -= 1
        for at in range(len(checkpoints)):
            m = min(n, checkpoints[at, 0])
            last = batch[:m].max() + 1
            if turned > 0 and m > before:
                sizes[turned] = m - before
                inside(strata.of, asked[:m], before, rest, chance)
            counts, _ = weigh(
                batch[:m], chance[:m], sizes[:last], left[:last], turned if m > before else 0
            )
            shift[:] = 0.0
            add_up(items, cells, asked[:m], target[asked[:m]], counts, shift)
            errors[run, at] = distance(shift, truth, goal.weights, goal.linear)
            row = checkpoints[at, 1]
            if row >= 0:
                sums[row] += shift.ravel()
                if len(audit.truth):
                    _audit(items, audit, asked[:m], counts, audited[row])
    return total


@jit
def _audit(items: Items, audit: Audit, asked: Codes, counts: Floats, squared: Floats) -> None:
    """Add the squared error of each group's change of accuracy (G,); one without answers is taken not to have changed."""
    known, gained = np.zeros(len(squared)), np.zeros(len(squared))
    for a in range(len(asked)):
        count = counts[a] * items.weight[asked[a]]
        known[audit.group[asked[a]]] += count
        gained[audit.group[asked[a]]] += count * audit.gain[asked[a]]
    for g in range(len(squared)):
        found = gained[g] / known[g] if known[g] > 0.0 else 0.0
        squared[g] += (found - audit.truth[g]) ** 2


@jit
def _rest(
    items: Items,
    cells: Cells,
    strata: Strata,
    target: Codes,
    key: np.uint64,
    done: Bools,
    asked: Codes,
    n: int,
) -> int:
    """Ask on, stratum by stratum, after the n items asked; give how many were asked in all."""
    design, state = strata.design, _shrunken.new_state(strata.design)
    drawn = np.zeros(len(design.weight), np.int64)
    for i in asked[:n]:
        s = strata.of[i]
        state.left[s] -= 1
        _shrunken.count(
            design, state, s, target[i] if target[i] >= 0 else cells.old[items.cell[i]], -1
        )
    _shrunken.renew(design, state)
    while n < len(asked):
        s = choose(state.tree, state.lead)
        if s < 0:
            break
        begin = design.start[s]
        while True:
            draw = drawn[s]
            i = strata.items[
                pick(state.order, begin, design.start[s + 1] - begin, draw, uniform(key, s, draw))
            ]
            drawn[s] += 1
            if not done[i]:
                break
        done[i] = True
        state.issued[s] += 1
        _shrunken.count(
            design, state, s, target[i] if target[i] >= 0 else cells.old[items.cell[i]], -1
        )
        asked[n] = i
        n += 1
    return n
