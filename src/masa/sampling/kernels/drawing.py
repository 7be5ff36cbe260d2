"""Drawing items and adding up their answers, compiled: everything that happens once per query.

A live assessment, a replay and the paper's experiments all run this code.

A *block* is a set of items that a method draws from. A *group* is a set of items that it averages
over. For methods with strata both are the stratum. A *cell* is one prediction within one group. An
*entry* is one prediction of one label in the confusion matrix.

All counts are integers, and a random number depends only on (key, block, draw number). So the same
answers give the same state, in whatever order they arrive.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from masa.data.compiled import jit

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

EQUAL, MASA, OPTIMAL = range(3)
"""Rules that choose the next block: the one asked least; the paper's rule; the optimal allocation,
which must know the true uncertainty scores."""

REQUIRED = 1e6
"""Added to a block's score for each draw it still needs before its uncertainty can be estimated.

It is larger than any other score, so these draws come first."""

EXHAUSTED = -1.0
"""The score of a block that has nothing left to ask or a weight of zero."""


class Design(NamedTuple):
    """What a method draws from and what it averages over."""

    start: Ints
    """(B + 1,) block b holds the positions start[b] to start[b + 1]"""
    block_weight: Floats
    """(B,) the weight in a block's score"""
    group_weight: Floats
    """(G,) the weight of a group in the estimate"""
    group_owner: Ints
    """(G,) the label of a group; groups without answers are represented by others of their label"""


class Rule(NamedTuple):
    """How the next block is chosen."""

    code: int
    """EQUAL, MASA or OPTIMAL"""
    a: float
    """how much the paper's rule explores"""
    replacement: bool
    """whether an item may be drawn again"""


class State(NamedTuple):
    """What has been asked and answered."""

    issued: Ints
    """(B,) queries asked, answered or not"""
    answered: Ints
    """(G,) answers received"""
    pairs: Ints
    """(G,) ordered pairs of equal answers"""
    counts: Codes
    """(C,) answers per cell"""
    tree: Floats
    """(2T,) a tournament: block scores from T on, each inner node the larger of its two children"""
    lead: Codes
    """(2T,) the block whose score is at each node of the tree"""
    order: Codes
    """(N,) the positions; the drawn part of each block is shuffled"""


class Recorded(NamedTuple):
    """What the API would answer about every item, laid out for adding up; only replays have it."""

    cell: Codes
    """(N,) the cell of the answer at each position"""
    cell_group: Codes
    """(C,) the group of each cell"""
    cell_entry: Codes
    """(C,) the entry of each cell"""
    cell_factor: Floats
    """(C,) the weight of one answer of the cell, relative to the weight of its group"""
    truth: Floats
    """(E,) the true matrix: the entries that ever occur; all others are zero in every estimate"""
    truth_squared: float
    """the sum of the squared weighted entries"""
    truth_sum: float
    """the sum of the weighted entries"""
    truth_entries: int
    """how many entries are not zero"""
    weight: Floats
    """(E,) the weight of an error in each entry"""
    linear: bool
    """whether the error is that of the weighted sum of the entries, not the norm"""


def new_state(design: Design, items: int, cells: int) -> State:
    """Make the state of a method that has asked nothing; call `plant` before drawing from it."""
    blocks, groups = len(design.block_weight), len(design.group_weight)
    leaves = 1 << max(0, blocks - 1).bit_length()
    return State(
        issued=np.zeros(blocks, np.int64),
        answered=np.zeros(groups, np.int64),
        pairs=np.zeros(groups, np.int64),
        counts=np.zeros(cells, np.int32),
        tree=np.full(2 * leaves, EXHAUSTED),
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
    """Return the key of one run, which selects its stream of random numbers."""
    return mix(mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)) + np.uint64(run))


@jit
def uniform(key: np.uint64, block: int, draw: int) -> float:
    """Return the random number in [0, 1) that belongs to one draw from one block."""
    step = (np.uint64(block) << np.uint64(36)) + np.uint64(draw) + np.uint64(1)
    bits = mix(np.uint64(key) + step * np.uint64(0x9E3779B97F4A7C15))
    return float(bits >> np.uint64(11)) * 1.1102230246251565e-16


@jit
def uncertainty(pairs: int, n: int) -> float:
    """Estimate the uncertainty score from n answers: the share of pairs of answers that differ.

    With fewer than two answers it is unknown, and the result is its upper bound 1.
    """
    if n < 2:
        return 1.0
    return 1.0 - pairs / (n * (n - 1))


@jit
def score(rule: Rule, weight: float, size: int, n: int, s2: float) -> float:
    """Return the priority of one more query from a block.

    n of its size items were asked; s2 is its uncertainty score.
    """
    if weight <= 0.0 or (n >= size and not rule.replacement):
        return EXHAUSTED
    if rule.code == MASA:
        if n < 2:
            return (2 - n) * REQUIRED + weight
        return weight / n * (sqrt(s2) + sqrt(sqrt(rule.a / n)))
    if rule.code == OPTIMAL:
        if n < 1:
            return REQUIRED + weight
        return weight / sqrt(float(n * (n + 1)))
    return 1.0 / (n + 1)


@jit
def rescore(design: Design, rule: Rule, state: State, block: int) -> None:
    """Bring the tree up to date after a block's counts changed."""
    size = design.start[block + 1] - design.start[block]
    s2 = 1.0
    if rule.code == MASA:
        # No other rule uses the uncertainty score. With this one every block is a group.
        s2 = uncertainty(state.pairs[block], state.answered[block])
    value = score(rule, design.block_weight[block], size, state.issued[block], s2)
    set_score(state.tree, state.lead, block, value)


@jit
def plant(design: Design, rule: Rule, state: State) -> None:
    """Fill the tree from the counts."""
    for block in range(len(design.block_weight)):
        rescore(design, rule, state, block)


@jit
def set_score(tree: Floats, lead: Codes, block: int, value: float) -> None:
    """Set a block's score and update the tournament: tree (2T,) and lead (2T,).

    Of blocks with equal scores the first one wins.
    """
    node = (len(tree) >> 1) + block
    winner = np.int32(block)
    tree[node] = value
    lead[node] = winner
    while node > 1:
        rival, rival_value = lead[node ^ 1], tree[node ^ 1]
        # An odd node is the right one of two, so its rival comes first and wins a tie.
        lost = rival_value > value or (rival_value == value and node & 1 == 1)
        # Selecting is faster than branching: who wins cannot be predicted.
        winner = rival if lost else winner
        value = rival_value if lost else value
        node >>= 1
        tree[node] = value
        lead[node] = winner


@jit
def choose(tree: Floats, lead: Codes) -> int:
    """Return the block with the largest score, or -1 when all are exhausted."""
    if tree[1] >= 0.0:
        return int(lead[1])
    return -1


@jit
def pick(order: Codes, first: int, size: int, draw: int, u: float) -> int:
    """Return the position of one draw without replacement from the block that begins at first.

    One step of the Fisher-Yates shuffle of order (N,), with u in [0, 1). Draws must be taken in the
    order 0, 1, 2, ...
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
    # The answer forms an ordered pair, both ways, with each equal answer before it.
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
    """Ask this many queries, each answered from the record.

    seen (C + 1,) collects the cells that have answers; its last element counts them. Returns the
    last position asked, or -1 when all blocks are exhausted.
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
        set_score(tree, lead, block, score(rule, block_weight[block], size, n + 1, s2))
    return position


@jit
def group_shares(design: Design, answered: Ints) -> Floats:
    """Divide the weight of each label among its groups with answers, in proportion: (G,)."""
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
def take_error(recorded: Recorded, seen: Codes, entries: Floats, total: Floats) -> float:
    """Return the weighted error of an estimate in entries (E,) and set the entries to zero.

    The estimate is added to total, which is (E,), or (0,) where no sum is wanted. Entries without
    answers are estimated as zero, so their error is the part of the truth that no other entry has.
    """
    squared = 0.0
    missed_squared = recorded.truth_squared
    missed_entries = recorded.truth_entries
    sum_error = -recorded.truth_sum
    for place in range(seen[-1]):
        entry = recorded.cell_entry[seen[place]]
        value = entries[entry]
        # Several cells share an entry; it is zero once the first of them has been here.
        if value != 0.0:
            entries[entry] = 0.0
            weight, truth = recorded.weight[entry], recorded.truth[entry]
            squared += (weight * (value - truth)) ** 2
            sum_error += weight * value
            missed_squared -= (weight * truth) ** 2
            missed_entries -= 1
            if len(total) > 0:
                total[entry] += value
    if recorded.linear:
        return abs(sum_error)
    if missed_entries > 0:
        squared += max(0.0, missed_squared)
    return sqrt(squared)


@jit
def distance(values: Floats, truth: Floats, weights: Floats, linear: bool) -> float:
    """Return the error of values (L, P) with the weights (L, P).

    It is the norm of the weighted differences from the truth (L, P) or, if linear, the absolute
    value of their sum.
    """
    labels, answers = truth.shape
    squared, total = 0.0, 0.0
    for label in range(labels):
        for j in range(answers):
            difference = weights[label, j] * (values[label, j] - truth[label, j])
            squared += difference**2
            total += difference
    if linear:
        return abs(total)
    return sqrt(squared)


@jit
def reset(rule: Rule, state: State, seen: Codes, blank: Floats, first: Codes) -> None:
    """Forget all answers; blank (2T,) and first (2T,) are tree and lead of a state without any."""
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
    """Run one assessment per key on recorded answers and return the number of queries asked.

    checkpoints (Q, 2): increasing numbers of queries, each with the row of sums that its estimate
    is added to, or -1. errors (R, Q) receives the Frobenius errors, sums (K, E) the estimates,
    summed over the runs. The state must be new. A finished run keeps its last estimate.
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
            total = nowhere
            if row >= 0:
                total = sums[row]
            errors[run, at] = take_error(recorded, seen, entries, total)
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
    """Run one assessment per key on recorded answers and return its queries per block.

    The result is (Q, B), summed over the runs. Blocks must be groups, and no block may be without
    an answer at a checkpoint (Q,). traces (R, Q, 4), initially zeros, receives at each checkpoint
    the error; the loss of this allocation, the sum of w^2 s^2 / n, with the true scores s2 (B,);
    the same with the estimated scores; the sum of w^2 n^-1.5.
    """
    plant(design, rule, state)
    blank, first = state.tree.copy(), state.lead.copy()
    seen = np.zeros(len(state.counts) + 1, np.int32)
    entries, nowhere = np.zeros(len(recorded.truth)), np.zeros(0)
    allocation = np.zeros((len(checkpoints), len(s2)))
    for run in range(len(keys)):
        reset(rule, state, seen, blank, first)
        queries = 0
        for at in range(len(checkpoints)):
            advance(design, recorded, rule, state, seen, keys[run], checkpoints[at] - queries)
            queries = checkpoints[at]
            add_up(design, recorded, state, seen, entries)
            traces[run, at, 0] = take_error(recorded, seen, entries, nowhere)
            for block in range(len(s2)):
                n, square = state.issued[block], design.group_weight[block] ** 2
                allocation[at, block] += n
                traces[run, at, 1] += square * s2[block] / n
                traces[run, at, 2] += square * uncertainty(state.pairs[block], n) / n
                traces[run, at, 3] += square / (n * sqrt(float(n)))
    return allocation


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
    """Write the number of queries up to the first changed answer of each run to first (R,).

    changed (N,) says for each position whether its answer changed. A run that meets no change keeps
    what first had, which should be 0.
    """
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
