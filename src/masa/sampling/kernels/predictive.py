"""Predictive sampling, compiled: which items to ask next, and whole runs on recorded answers.

Items are asked in batches. A batch depends on the answers to the batches before it and on nothing
else, so a run can be resumed from its journal. Batch 0 holds the canaries: the items most likely to
have changed, which are asked for certain.

What the rest of masa needs of `change_model` and `weights` can be imported from here as well.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from masa.data.compiled import jit
from masa.sampling.kernels import shrunken as _shrunken
from masa.sampling.kernels.change_model import (
    Asked,
    Cells,
    Goal,
    Items,
    Prior,
    Singles,
    fit,
    log_odds,
    moments,
)
from masa.sampling.kernels.drawing import Codes, Floats, Ints, choose, distance, pick, uniform
from masa.sampling.kernels.margins import EXPLORED as EXPLORE
from masa.sampling.kernels.margins import chances
from masa.sampling.kernels.weights import BELIEF, add_up, new_answer, should_switch, weigh

__all__ = [
    "BELIEF",
    "EXPLORE",
    "FIRST_BATCH",
    "GROWTH",
    "Asked",
    "Audit",
    "Recorded",
    "StrataLayout",
    "add_up",
    "draw",
    "fit",
    "inclusion_probabilities",
    "log_odds",
    "next_batch",
    "next_probabilities",
    "should_switch",
    "simulate",
    "weigh",
]

Bools = npt.NDArray[np.bool_]

FIRST_BATCH, GROWTH = 50, 12
"""A batch has as many items as the first one or, if that is more, the answers so far divided by
GROWTH."""


class StrataLayout(NamedTuple):
    """The strata that items are drawn from after the switch."""

    design: _shrunken.ShrunkenDesign
    """with the same answers as the goal"""
    items: Codes
    """(N,) the item at each position"""
    stratum: Codes
    """(N,) the stratum of each item"""
    may_switch: bool


class Recorded(NamedTuple):
    """What each item would answer."""

    changed: Floats
    """(N,) how much its answer changed, as in `Asked`"""
    target: Codes
    """(N,) the answer that it changed to, or -1"""
    margin: Floats
    """(N,) its new margin, or nan"""


class Audit(NamedTuple):
    """Groups of items whose change of accuracy is to be checked; there may be none."""

    group: Codes
    """(N,)"""
    gain: Singles
    """(N,) 1 for an item that became right, -1 for one that became wrong, else 0"""
    truth: Floats
    """(G,) the true change of accuracy of each group"""


class Run(NamedTuple):
    """One assessment on recorded answers; M is the largest number of queries."""

    done: Bools
    """(N,) whether an item was drawn"""
    asked: Codes
    """(M,) the items, in the order in which they are asked"""
    batch: Codes
    """(M,)"""
    probability: Floats
    """(M,) the inclusion probability"""
    sizes: Ints
    """(M + 2,) the number of items in each batch"""
    left: Ints
    """(M + 2,) the number of items that were left before each batch"""


@jit
def inclusion_probabilities(
    items: Items, goal: Goal, change: Floats, moment: Floats, done: Bools, size: int
) -> Floats:
    """Return the inclusion probability of each item (N,) in the next batch of this size.

    In proportion to the standard deviation of its answer, apart from the share that is explored.
    change (N,) is the probability that it changed, moment (C, 4) what the answers change to.
    """
    probability = np.zeros(len(done))
    total_deviation, total_weight, left = 0.0, 0.0, 0
    for i in range(len(done)):
        if done[i] or items.priority[i] <= 0.0:
            continue
        p = change[i]
        old, mean, square, squares = moment[items.cell[i]]
        stays = (1.0 - p) * old
        squared_mean = (stays + p * mean) ** 2 if goal.linear else stays**2 + p**2 * squares
        variance = stays * old + p * square - squared_mean
        probability[i] = items.priority[i] * sqrt(max(0.0, variance))
        total_deviation += probability[i]
        total_weight += items.weight[i]
        left += 1
    explore = EXPLORE if total_deviation > 0.0 else 1.0
    for i in range(len(done)):
        if done[i] or items.priority[i] <= 0.0:
            continue
        if left <= size:
            probability[i] = 1.0
            continue
        share = explore * items.weight[i] / total_weight
        if total_deviation > 0.0:
            share += (1.0 - explore) * probability[i] / total_deviation
        probability[i] = size * share
    if left > size:
        _cap_at_one(probability, size)
    return probability


@jit
def _cap_at_one(probability: Floats, size: int) -> None:
    """Set probabilities (N,) above 1 to 1 and scale up the others, so that the sum stays size."""
    # Scaling up can lift others above 1, so it is repeated until none is.
    while True:
        certain, others = 0, 0.0
        above = False
        for i in range(len(probability)):
            if probability[i] >= 1.0:
                above = above or probability[i] > 1.0
                probability[i] = 1.0
                certain += 1
            else:
                others += probability[i]
        if not above or others <= 0.0:
            break
        factor = (size - certain) / others
        for i in range(len(probability)):
            if probability[i] < 1.0:
                probability[i] *= factor


@jit
def draw(order: Codes, probability: Floats, key: np.uint64, batch: int) -> Codes:
    """Draw a batch with these inclusion probabilities (N,) and shuffle it.

    By one systematic pass over the items in order (N,).
    """
    picked = np.empty(len(order), np.int32)
    count = 0
    passed, threshold = 0.0, uniform(key, batch, 0)
    for i in order:
        passed += probability[i]
        # Items with probability 1 are taken whatever rounding did to the sum.
        if probability[i] >= 1.0 or (probability[i] > 0.0 and passed > threshold):
            picked[count] = i
            count += 1
            threshold += 1.0
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
    asked: Asked,
    done: Bools,
    key: np.uint64,
    batch: int,
) -> tuple[Codes, Floats]:
    """Return the items of the next batch and the inclusion probability of each of them.

    The models are fitted to the items asked. Items that are done (N,) are not drawn.
    """
    size = max(FIRST_BATCH, len(asked.item) // GROWTH)
    probability = next_probabilities(items, cells, goal, prior, asked, done, size)
    picked = draw(items.order, probability, key, batch)
    return picked, probability[picked]


@jit
def next_probabilities(
    items: Items,
    cells: Cells,
    goal: Goal,
    prior: Prior,
    asked: Asked,
    done: Bools,
    size: int,
) -> Floats:
    """Return the probability of each item (N,) to be among the next of this number.

    The other arguments are those of `next_batch`.
    """
    model = fit(items, cells, goal, prior, asked.item, asked.changed)
    change = chances(items, cells, goal, model, asked, done)
    moment = moments(items, cells, goal, asked.item, asked.target)
    return inclusion_probabilities(items, goal, change, moment, done, size)


@jit
def simulate(
    items: Items,
    cells: Cells,
    goal: Goal,
    prior: Prior,
    canaries: Codes,
    strata: StrataLayout,
    recorded: Recorded,
    truth: Floats,
    keys: npt.NDArray[np.uint64],
    checkpoints: Ints,
    errors: Singles,
    sums: Floats,
    first: Ints,
    audit: Audit,
    audited: Floats,
) -> int:
    """Run one assessment per key on recorded answers and return the number of queries asked.

    truth (L, P) is the true shift, canaries (V, C) are those of different runs. checkpoints, errors
    and sums are those of `drawing.simulate`. first (R,) receives the number of queries up to the
    first changed answer, 0 where there is none. The squared error of each group's change of
    accuracy is added to audited (K, G), by budget and group.
    """
    most = min(checkpoints[-1, 0], len(items.cell))
    target = recorded.target
    shift = np.zeros(goal.weights.shape)
    total = 0
    for number in range(len(keys)):
        mine = canaries[np.int64(keys[number] % np.uint64(len(canaries)))]
        run = new_run(len(items.cell), most, mine)
        n, switched, before = _ask(
            items, cells, goal, prior, mine, strata, recorded, keys[number], run
        )
        for k in range(n):
            if target[run.asked[k]] >= 0:
                first[number] = k + 1
                break
        total += n
        left = np.zeros(len(strata.design.weight), np.int64)
        if switched > 0:
            _count_left(strata.stratum, run.asked[:before], left)
        for at in range(len(checkpoints)):
            m = min(n, checkpoints[at, 0])
            counts = _weigh_first(run, strata.stratum, left, m, switched, before)
            shift[:] = 0.0
            add_up(items, cells, run.asked[:m], target[run.asked[:m]], counts, shift)
            errors[number, at] = distance(shift, truth, goal.weights, goal.linear)
            row = checkpoints[at, 1]
            if row >= 0:
                sums[row] += shift.ravel()
                if len(audit.truth):
                    _add_group_errors(items, audit, run.asked[:m], counts, audited[row])
    return total


@jit
def new_run(items: int, most: int, canaries: Codes) -> Run:
    """Make a run that has asked nothing; its canaries are done, as no batch may draw them."""
    run = Run(
        done=np.zeros(items, np.bool_),
        asked=np.zeros(most, np.int32),
        batch=np.zeros(most, np.int32),
        probability=np.zeros(most),
        sizes=np.zeros(most + 2, np.int64),
        left=np.zeros(most + 2, np.int64),
    )
    run.sizes[0], run.left[0] = len(canaries), items
    for i in canaries:
        run.done[i] = True
    return run


@jit
def _ask(
    items: Items,
    cells: Cells,
    goal: Goal,
    prior: Prior,
    canaries: Codes,
    strata: StrataLayout,
    recorded: Recorded,
    key: np.uint64,
    run: Run,
) -> tuple[int, int, int]:
    """Ask batch by batch and, after a switch, by strata.

    Returns the number of items asked, the number of the batch that the rest counts as after a
    switch, and the number of items asked before it; the last two are 0 without a switch.
    """
    most = len(run.asked)
    n, canaries_asked, batch = 0, 0, 1
    while n < most:
        known = run.asked[:n]
        asked = Asked(
            known,
            recorded.changed[known],
            recorded.target[known],
            recorded.margin[known],
            chances_of_draws(run, n),
        )
        picked, probability = next_batch(items, cells, goal, prior, asked, run.done, key, batch)
        run.left[batch] = run.left[batch - 1] - run.sizes[batch - 1]
        run.sizes[batch] = len(picked)
        for i in picked:
            run.done[i] = True
        n, canaries_asked = take_turns(run, n, canaries, canaries_asked, picked, probability, batch)
        batch += 1
        if len(picked) == 0:
            break
        if strata.may_switch and n < most:
            counts, _ = weigh(
                run.batch[:n], run.probability[:n], run.sizes[:batch], run.left[:batch], 0
            )
            known = run.asked[:n]
            if should_switch(items, cells, goal, known, recorded.target[known], counts):
                run.left[batch] = run.left[batch - 1] - run.sizes[batch - 1]
                before = n
                n = _ask_by_strata(
                    items, cells, strata, recorded.target, key, run.done, run.asked, n
                )
                run.batch[before:n] = batch
                return n, batch, before
    return n, 0, 0


@jit
def chances_of_draws(run: Run, n: int) -> Floats:
    """Return the inclusion probabilities (n,) of the first items over the sizes of their batches.

    Canaries are not drawn: theirs is 0.
    """
    result = np.zeros(n)
    for a in range(n):
        if run.batch[a] > 0:
            result[a] = run.probability[a] / run.sizes[run.batch[a]]
    return result


@jit
def take_turns(
    run: Run,
    n: int,
    canaries: Codes,
    canaries_asked: int,
    picked: Codes,
    probability: Floats,
    batch: int,
) -> tuple[int, int]:
    """Ask the items picked and the canaries in turn, as long as there are some.

    Returns how many items and how many canaries have been asked by then.
    """
    k = 0
    while n < len(run.asked) and (k < len(picked) or canaries_asked < len(canaries)):
        if canaries_asked < len(canaries) and (canaries_asked < k or k == len(picked)):
            run.asked[n], run.batch[n], run.probability[n] = canaries[canaries_asked], 0, 1.0
            canaries_asked += 1
        else:
            run.asked[n], run.batch[n], run.probability[n] = picked[k], batch, probability[k]
            k += 1
        n += 1
    return n, canaries_asked


@jit
def _count_left(stratum: Codes, asked: Codes, left: Ints) -> None:
    """Count the items of each stratum that are not among those asked (n,), in left (S,)."""
    for s in stratum:
        left[s] += 1
    for i in asked:
        left[stratum[i]] -= 1


@jit
def _weigh_first(
    run: Run, stratum: Codes, left: Ints, m: int, switched: int, before: int
) -> Floats:
    """Return the weight of each of the first m answers, relative to its item's weight.

    left (S,) are the items of each stratum at the switch, after the first answers `before` it.
    """
    batches = run.batch[:m].max() + 1
    late_batch = 0
    if switched > 0 and m > before:
        late_batch = switched
        run.sizes[switched] = m - before
        _set_stratum_probabilities(stratum, run.asked[:m], before, left, run.probability)
    counts, _ = weigh(
        run.batch[:m], run.probability[:m], run.sizes[:batches], run.left[:batches], late_batch
    )
    return counts


@jit
def _set_stratum_probabilities(
    stratum: Codes, asked: Codes, first: int, left: Ints, probability: Floats
) -> None:
    """Set the inclusion probabilities (n,) of the items asked (n,), from the first on.

    It is the share that was asked of those left (S,) in their stratum.
    """
    taken = np.zeros(len(left), np.int64)
    for i in asked[first:]:
        taken[stratum[i]] += 1
    for a in range(first, len(asked)):
        s = stratum[asked[a]]
        probability[a] = taken[s] / left[s]


@jit
def _add_group_errors(
    items: Items, audit: Audit, asked: Codes, counts: Floats, squared: Floats
) -> None:
    """Add the squared error of each group's estimated change of accuracy to squared (G,).

    A group without answers is estimated not to have changed.
    """
    known, gained = np.zeros(len(squared)), np.zeros(len(squared))
    for a in range(len(asked)):
        weight = counts[a] * items.weight[asked[a]]
        known[audit.group[asked[a]]] += weight
        gained[audit.group[asked[a]]] += weight * audit.gain[asked[a]]
    for g in range(len(squared)):
        estimate = 0.0
        if known[g] > 0.0:
            estimate = gained[g] / known[g]
        squared[g] += (estimate - audit.truth[g]) ** 2


@jit
def _ask_by_strata(
    items: Items,
    cells: Cells,
    strata: StrataLayout,
    target: Codes,
    key: np.uint64,
    done: Bools,
    asked: Codes,
    n: int,
) -> int:
    """Ask more items, stratum by stratum, after the first n of asked; return how many in total."""
    design, state = strata.design, _shrunken.new_state(strata.design)
    drawn = np.zeros(len(design.weight), np.int64)
    for i in asked[:n]:
        s = strata.stratum[i]
        state.available[s] -= 1
        _shrunken.count(design, state, s, new_answer(cells, items.cell[i], target[i]), -1)
    _shrunken.renew(design, state)
    while n < len(asked):
        s = choose(state.tree, state.lead)
        if s < 0:
            break
        begin, size = design.start[s], design.start[s + 1] - design.start[s]
        while True:
            position = pick(state.order, begin, size, drawn[s], uniform(key, s, drawn[s]))
            drawn[s] += 1
            i = strata.items[position]
            if not done[i]:
                break
        done[i] = True
        state.issued[s] += 1
        _shrunken.count(design, state, s, new_answer(cells, items.cell[i], target[i]), -1)
        asked[n] = i
        n += 1
    return n
