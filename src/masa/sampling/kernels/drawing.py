"""The arithmetic of drawing and adding up, compiled.

Everything that happens once per query lives here, so that a live assessment, a replay and the paper's experiments run the
same code. A *block* is what a method draws from, a *group* is what it averages over; for the methods with strata both are
the stratum. A *cell* is one prediction within one group, an *entry* is one prediction of one label in the matrix.

State is integers only and randomness is a function of (key, block, draw number), so the same answers give the same state
in whatever order they arrive.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., Any])

EQUAL, MASA, OPTIMAL = range(3)
"""Which block is next: the one asked least; by the paper's rule; by the allocation known from the truth."""

DUE = 1e6
"""Added to the score once for every draw a block must have before its score means anything."""

DONE = -1.0
"""The score of a block with nothing left to ask, or whose weight is zero."""


def jit(function: F) -> F:
    """Compile with numba, cached on disk wherever some directory can be written.

    >>> jit(lambda x: x + 1)(1)
    2
    """
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # Neither the package nor the user's cache directory is writable.
        return cast(F, numba.njit(nogil=True)(function))


class Design(NamedTuple):
    """What a method draws from and what it averages over."""

    start: Ints
    """(B + 1,) block b holds the positions start[b] to start[b + 1]"""
    block_weight: Floats
    """(B,) the factor of a block's score"""
    group_weight: Floats
    """(G,) the share of a group in the estimate"""
    group_owner: Ints
    """(G,) the label a group belongs to; its drawn groups stand in for those without draws"""


class Rule(NamedTuple):
    """How the next block is chosen."""

    code: int
    a: float
    replacement: bool


class State(NamedTuple):
    """What has been asked and answered."""

    issued: Ints
    """(B,) queries asked, answered or not"""
    answered: Ints
    """(G,) answers that came"""
    pairs: Ints
    """(G,) ordered pairs of equal answers"""
    counts: Codes
    """(C,) answers by cell"""
    tree: Floats
    """(2T,) a tournament: the scores of the blocks from T on, each inner node the larger of its two children"""
    lead: Codes
    """(2T,) the block whose score stands at each node of the tree"""
    order: Codes
    """(N,) the positions, each block shuffled as far as it has been drawn"""


class Recorded(NamedTuple):
    """What the API would answer on every item, laid out for adding up; only replays have it."""

    cell: Codes
    """(N,) the cell of the answer at each position"""
    cell_group: Codes
    """(C,)"""
    cell_entry: Codes
    """(C,)"""
    cell_factor: Floats
    """(C,) what one answer of the cell weighs, relative to its group's share"""
    truth: Floats
    """(E,) the entries of the matrix that ever occur; the others are zero for every estimate"""
    truth_squared: float
    """the sum of their weighted squares"""
    truth_sum: float
    """their weighted sum"""
    truth_entries: int
    """how many of them are not zero"""
    weight: Floats
    """(E,) what an error of each counts for"""
    linear: bool
    """whether the error is that of the weighted sum, not the norm"""


def new_state(design: Design, items: int, cells: int) -> State:
    """Make the state of a method that has asked nothing; its tree must be filled with `plant`."""
    blocks, groups = len(design.block_weight), len(design.group_weight)
    leaves = 1 << max(0, blocks - 1).bit_length()
    return State(
        issued=np.zeros(blocks, np.int64),
        answered=np.zeros(groups, np.int64),
        pairs=np.zeros(groups, np.int64),
        counts=np.zeros(cells, np.int32),
        tree=np.full(2 * leaves, DONE),
        lead=np.zeros(2 * leaves, np.int32),
        order=np.arange(items, dtype=np.int32),
    )


@jit
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@jit
def run_key(seed: int, run: int) -> np.uint64:
    """Give the key of one run: the start of its own stream of random numbers."""
    return mix(mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)) + np.uint64(run))


@jit
def uniform(key: np.uint64, block: int, draw: int) -> float:
    """Give the random number in [0, 1) that belongs to one draw from one block."""
    step = (np.uint64(block) << np.uint64(36)) + np.uint64(draw) + np.uint64(1)
    bits = mix(np.uint64(key) + step * np.uint64(0x9E3779B97F4A7C15))
    return float(bits >> np.uint64(11)) * 1.1102230246251565e-16


@jit
def uncertainty(pairs: int, n: int) -> float:
    """Estimate the uncertainty score from n answers: the share of pairs of answers that differ.

    Unknown below two answers, where it gives its upper bound 1.
    """
    if n < 2:
        return 1.0
    return 1.0 - pairs / (n * (n - 1))


@jit
def score(rule: Rule, weight: float, size: int, n: int, s2: float) -> float:
    """Say how much one more query from a block is wanted: n of its size items asked, s2 its uncertainty score."""
    if weight <= 0.0 or (n >= size and not rule.replacement):
        return DONE
    if rule.code == MASA:
        if n < 2:
            return (2 - n) * DUE + weight
        return weight / n * (sqrt(s2) + sqrt(sqrt(rule.a / n)))
    if rule.code == OPTIMAL:
        if n < 1:
            return DUE + weight
        return weight / sqrt(float(n * (n + 1)))
    return 1.0 / (n + 1)


@jit
def rescore(design: Design, rule: Rule, state: State, block: int) -> None:
    """Bring the tree up to date after a block's counts changed."""
    size = design.start[block + 1] - design.start[block]
    s2 = uncertainty(state.pairs[block], state.answered[block]) if rule.code == MASA else 1.0
    enter(
        state.tree,
        state.lead,
        block,
        score(rule, design.block_weight[block], size, state.issued[block], s2),
    )


@jit
def plant(design: Design, rule: Rule, state: State) -> None:
    """Fill the tree from the counts."""
    for block in range(len(design.block_weight)):
        rescore(design, rule, state, block)


@jit
def enter(tree: Floats, lead: Codes, block: int, value: float) -> None:
    """Play a block's new score up the tournament, tree (2T,) and lead (2T,); the first of equals wins."""
    node = (len(tree) >> 1) + block
    winner = np.int32(block)
    tree[node] = value
    lead[node] = winner
    while node > 1:
        rival, theirs = lead[node ^ 1], tree[node ^ 1]
        lost = theirs > value or (theirs == value and node & 1 == 1)
        winner = rival if lost else winner
        value = theirs if lost else value
        node >>= 1
        tree[node] = value
        lead[node] = winner


@jit
def choose(tree: Floats, lead: Codes) -> int:
    """Give the block with the largest score, or -1 when all are done."""
    return lead[1] if tree[1] >= 0.0 else -1


@jit
def pick(order: Codes, first: int, size: int, draw: int, u: float) -> int:
    """Give the position of a draw without replacement from the block at first, for draws 0, 1, 2, ... in turn.

    One step of the Fisher-Yates shuffle of order (N,), with u in [0, 1).
    """
    here = first + draw
    there = here + int(u * (size - draw))
    position = order[there]
    order[there] = order[here]
    order[here] = position
    return int(position)


@jit
def count(pairs: Ints, counts: Codes, answered: Ints, group: int, cell: int) -> None:
    """Add one answer to pairs (G,), counts (C,) and answered (G,)."""
    pairs[group] += 2 * np.int64(counts[cell])
    counts[cell] += 1
    answered[group] += 1


@jit
def advance(
    design: Design,
    recorded: Recorded,
    rule: Rule,
    state: State,
    seen: Codes,
    key: np.uint64,
    queries: int,
) -> int:
    """Ask that many queries, answering each from the record; give the last position asked, or -1 when all are done.

    seen (C + 1,) collects the cells that have answers; its last place counts them.
    """
    start, block_weight = design.start, design.block_weight
    cell_of, group_of = recorded.cell, recorded.cell_group
    issued, answered, pairs = state.issued, state.answered, state.pairs
    counts, tree, lead, order = state.counts, state.tree, state.lead, state.order
    position = -1
    for _ in range(queries):
        block = choose(tree, lead)
        if block < 0:
            return -1
        first, n = start[block], issued[block]
        size = start[block + 1] - first
        u = uniform(key, block, n)
        position = first + int(u * size) if rule.replacement else pick(order, first, size, n, u)
        issued[block] = n + 1
        cell = cell_of[position]
        group = group_of[cell]
        if counts[cell] == 0:
            seen[seen[-1]] = cell
            seen[-1] += 1
        count(pairs, counts, answered, group, cell)
        s2 = uncertainty(pairs[group], answered[group])
        enter(tree, lead, block, score(rule, block_weight[block], size, n + 1, s2))
    return position


@jit
def group_shares(design: Design, answered: Ints) -> Floats:
    """Share the weight of each label among its groups with answers, in proportion: (G,)."""
    owners = 0
    for owner in design.group_owner:
        owners = max(owners, owner + 1)
    total = np.zeros(owners)
    covered = np.zeros(owners)
    for group in range(len(answered)):
        owner = design.group_owner[group]
        total[owner] += design.group_weight[group]
        if answered[group] > 0:
            covered[owner] += design.group_weight[group]
    shares = np.zeros(len(answered))
    for group in range(len(answered)):
        owner = design.group_owner[group]
        if answered[group] > 0 and covered[owner] > 0.0:
            shares[group] = design.group_weight[group] * (total[owner] / covered[owner])
    return shares


@jit
def add_up(design: Design, recorded: Recorded, state: State, seen: Codes, entries: Floats) -> None:
    """Add the estimate of the matrix to entries (E,), from the cells in seen (C + 1,)."""
    shares = group_shares(design, state.answered)
    for place in range(seen[-1]):
        cell = seen[place]
        group = recorded.cell_group[cell]
        mean = state.counts[cell] / state.answered[group]
        entries[recorded.cell_entry[cell]] += shares[group] * recorded.cell_factor[cell] * mean


@jit
def settle(recorded: Recorded, seen: Codes, entries: Floats, total: Floats) -> float:
    """Give the error of an estimate in entries (E,), by the weights, add it to total (E,) or (0,), and set entries to zero.

    Entries without answers are estimated as zero: together they miss all of the truth that the others do not have.
    """
    squared, missed, left, total_off = (
        0.0,
        recorded.truth_squared,
        recorded.truth_entries,
        -recorded.truth_sum,
    )
    for place in range(seen[-1]):
        entry = recorded.cell_entry[seen[place]]
        value = entries[entry]
        if value != 0.0:
            entries[entry] = 0.0
            weight, truth = recorded.weight[entry], recorded.truth[entry]
            squared += (weight * (value - truth)) ** 2
            total_off += weight * value
            missed -= (weight * truth) ** 2
            left -= 1
            if len(total) > 0:
                total[entry] += value
    if recorded.linear:
        return abs(total_off)
    return sqrt(squared + (max(0.0, missed) if left > 0 else 0.0))


@jit
def distance(values: Floats, truth: Floats, weights: Floats, linear: bool) -> float:
    """Give how far off values (L, P) are, by the weights (L, P): the norm, or the sum, of what they miss."""
    labels, answers = truth.shape
    squared, total = 0.0, 0.0
    for label in range(labels):
        for j in range(answers):
            off = weights[label, j] * (values[label, j] - truth[label, j])
            squared += off**2
            total += off
    return abs(total) if linear else sqrt(squared)


@jit
def reset(rule: Rule, state: State, seen: Codes, blank: Floats, first: Codes) -> None:
    """Forget all answers; blank (2T,) and first (2T,) are the tournament of a state without any."""
    for place in range(seen[-1]):
        state.counts[seen[place]] = 0
    seen[-1] = 0
    state.issued[:] = 0
    state.answered[:] = 0
    state.pairs[:] = 0
    state.tree[:] = blank
    state.lead[:] = first
    if not rule.replacement:
        for position in range(len(state.order)):
            state.order[position] = position


@jit
def simulate(
    design: Design,
    recorded: Recorded,
    rule: Rule,
    state: State,
    keys: npt.NDArray[np.uint64],
    checkpoints: Ints,
    errors: npt.NDArray[np.float32],
    sums: Floats,
) -> int:
    """Run one assessment a key on recorded answers and give the number of queries asked.

    checkpoints (Q, 2): rising numbers of queries, each with the row of sums to add its estimate to, or -1.
    errors (R, Q) receives the Frobenius errors, sums (K, E) the estimates summed over the runs. The state must be new; a
    run that has asked everything keeps its last estimate.
    """
    plant(design, rule, state)
    blank, first = state.tree.copy(), state.lead.copy()
    seen = np.zeros(len(state.counts) + 1, np.int32)
    entries, nowhere = np.zeros(len(recorded.truth)), np.zeros(0)
    asked = 0
    for run in range(len(keys)):
        if run > 0:
            reset(rule, state, seen, blank, first)
        queries = 0
        for at in range(len(checkpoints)):
            advance(design, recorded, rule, state, seen, keys[run], checkpoints[at, 0] - queries)
            queries = checkpoints[at, 0]
            add_up(design, recorded, state, seen, entries)
            row = checkpoints[at, 1]
            errors[run, at] = settle(recorded, seen, entries, sums[row] if row >= 0 else nowhere)
        asked += int(state.issued.sum())
    return asked


@jit
def trace(
    design: Design,
    recorded: Recorded,
    rule: Rule,
    state: State,
    keys: npt.NDArray[np.uint64],
    checkpoints: Ints,
    s2: Floats,
    traces: Floats,
) -> Floats:
    """Run one assessment a key on recorded answers, and give how its queries were spread: (Q, B), summed over the runs.

    Blocks must be groups. traces (R, Q, 4), zeros, receives at each checkpoint (Q,), which must leave no block without an answer:
    the error; the loss of that spread, sum of w^2 s^2 / n, by the true scores s2 (B,) and by the estimated; sum of w^2 n^-1.5.
    """
    plant(design, rule, state)
    blank, first = state.tree.copy(), state.lead.copy()
    seen = np.zeros(len(state.counts) + 1, np.int32)
    entries, nowhere = np.zeros(len(recorded.truth)), np.zeros(0)
    spread = np.zeros((len(checkpoints), len(s2)))
    for run in range(len(keys)):
        reset(rule, state, seen, blank, first)
        queries = 0
        for at in range(len(checkpoints)):
            advance(design, recorded, rule, state, seen, keys[run], checkpoints[at] - queries)
            queries = checkpoints[at]
            add_up(design, recorded, state, seen, entries)
            traces[run, at, 0] = settle(recorded, seen, entries, nowhere)
            for block in range(len(s2)):
                n, square = state.issued[block], design.group_weight[block] ** 2
                spread[at, block] += n
                traces[run, at, 1] += square * s2[block] / n
                traces[run, at, 2] += square * uncertainty(state.pairs[block], n) / n
                traces[run, at, 3] += square / (n * sqrt(float(n)))
    return spread


@jit
def first_changes(
    design: Design,
    recorded: Recorded,
    rule: Rule,
    state: State,
    keys: npt.NDArray[np.uint64],
    changed: npt.NDArray[np.bool_],
    first: Ints,
) -> None:
    """Give for each run (R,) the number of queries up to the first item (N,) whose answer changed, 0 where none did."""
    plant(design, rule, state)
    blank, lead = state.tree.copy(), state.lead.copy()
    seen = np.zeros(len(state.counts) + 1, np.int32)
    for run in range(len(keys)):
        reset(rule, state, seen, blank, lead)
        for asked in range(len(state.order)):
            position = advance(design, recorded, rule, state, seen, keys[run], 1)
            if position < 0:
                break
            if changed[position]:
                first[run] = asked + 1
                break
