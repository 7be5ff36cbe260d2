"""The estimate from pairs of old and new answers, compiled: what `masa assess` ships, for replays.

It is the estimate of `masa.inference.paired`: each new answer less a coefficient times the old one,
plus that coefficient times the old matrix. One coefficient serves all strata, the one with the
least variance.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from masa.data.compiled import jit
from masa.sampling.kernels import shrunken
from masa.sampling.kernels.drawing import (
    Codes,
    Design,
    Floats,
    Ints,
    Recorded,
    Rule,
    State,
    advance,
    choose,
    pick,
    plant,
    reset,
    uniform,
)
from masa.sampling.kernels.shrunken import ShrunkenDesign, ShrunkenState


class RecordedPairs(NamedTuple):
    """What the API answered before, and answers now, on every item.

    A cell is one answer within one stratum, an entry one answer of one label in the matrix.
    """

    stratum: Codes
    """(N,) the stratum at each position"""
    old_cell: Codes
    """(N,) the cell of the old answer at each position"""
    new_cell: Codes
    """(N,) the cell of the new answer at each position"""
    cell_entry: Codes
    """(C,) the entry of the matrix that a cell belongs to"""
    cell_stratum: Codes
    """(C,)"""
    row: Ints
    """(L + 1,) the entries of label i are row[i] to row[i + 1]"""
    right: Ints
    """(L,) the entry of the right answer of each label, or -1 where nobody gives it"""
    before: Floats
    """(E,) the old matrix"""
    truth: Floats
    """(E,) the new matrix"""
    weight: Floats
    """(E,) how much an error of each entry counts"""
    linear: bool
    """whether the error is that of the weighted sum, not the norm"""
    stratum_weight: Floats
    """(S,)"""
    stratum_size: Ints
    """(S,)"""
    stratum_label: Codes
    """(S,)"""


class Pairs(NamedTuple):
    """What was answered so far."""

    answered: Ints
    """(S,)"""
    old: Ints
    """(C,) old answers, by cell"""
    new: Ints
    """(C,) new answers, by cell"""
    same: Ints
    """(S,) answers that are as before"""
    old_squared: Ints
    """(S,) the sum over cells of old * old"""
    cross: Ints
    """(S,) the sum over cells of old * new"""
    seen: Codes
    """(C + 1,) the cells with an answer; its last place counts them"""


def no_pairs(record: RecordedPairs) -> Pairs:
    """Make the state of a run without answers."""
    strata, cells = len(record.stratum_weight), len(record.cell_entry)
    return Pairs(
        answered=np.zeros(strata, np.int64),
        old=np.zeros(cells, np.int64),
        new=np.zeros(cells, np.int64),
        same=np.zeros(strata, np.int64),
        old_squared=np.zeros(strata, np.int64),
        cross=np.zeros(strata, np.int64),
        seen=np.zeros(cells + 1, np.int32),
    )


@jit
def forget(pairs: Pairs) -> None:
    """Forget all answers."""
    for place in range(pairs.seen[-1]):
        pairs.old[pairs.seen[place]] = 0
        pairs.new[pairs.seen[place]] = 0
    pairs.seen[-1] = 0
    pairs.answered[:] = 0
    pairs.same[:] = 0
    pairs.old_squared[:] = 0
    pairs.cross[:] = 0


@jit
def add(record: RecordedPairs, pairs: Pairs, position: int) -> None:
    """Take the answer at a position; the sums of products are kept up to date."""
    s, a, b = record.stratum[position], record.old_cell[position], record.new_cell[position]
    if pairs.old[a] == 0 and pairs.new[a] == 0:
        pairs.seen[pairs.seen[-1]] = a
        pairs.seen[-1] += 1
    if b != a and pairs.old[b] == 0 and pairs.new[b] == 0:
        pairs.seen[pairs.seen[-1]] = b
        pairs.seen[-1] += 1
    pairs.answered[s] += 1
    pairs.same[s] += a == b
    pairs.old_squared[s] += 2 * pairs.old[a] + 1
    pairs.old[a] += 1
    pairs.cross[s] += pairs.new[a]
    pairs.cross[s] += pairs.old[b]
    pairs.new[b] += 1


@jit
def shares(record: RecordedPairs, answered: Ints) -> Floats:
    """Give the share of each stratum in the estimate (S,).

    Strata without answers are represented by others of their label.
    """
    labels = len(record.row) - 1
    total, covered = np.zeros(labels), np.zeros(labels)
    for s in range(len(answered)):
        total[record.stratum_label[s]] += record.stratum_weight[s]
        if answered[s] > 0:
            covered[record.stratum_label[s]] += record.stratum_weight[s]
    result = np.zeros(len(answered))
    for s in range(len(answered)):
        label = record.stratum_label[s]
        if answered[s] > 0 and covered[label] > 0.0:
            result[s] = record.stratum_weight[s] * (total[label] / covered[label])
    return result


@jit
def best_coefficient(record: RecordedPairs, pairs: Pairs, share: Floats) -> float:
    """Give the coefficient on the old answer with the least variance, from 0 to 1."""
    covariance, variance = 0.0, 0.0
    answers, same = 0, 0
    for s in range(len(share)):
        n = pairs.answered[s]
        answers += n
        same += pairs.same[s]
        if n >= 2:
            fraction = max(0.0, 1.0 / n - 1.0 / record.stratum_size[s])
            weight = share[s] ** 2 * fraction / (n - 1.0)
            covariance += weight * (pairs.same[s] - pairs.cross[s] / n)
            variance += weight * (n - pairs.old_squared[s] / n)
    if variance <= 0.0:
        return 1.0 if answers == same else 0.0
    return min(1.0, max(0.0, covariance / variance))


@jit
def project(values: Floats, total: float) -> None:
    """Bring values (n,) to the nearest ones of 0 or more with this total."""
    if total <= 0.0:
        values[:] = 0.0
        return
    falling = np.sort(values)[::-1]
    running, excess = 0.0, 0.0
    for k in range(len(falling)):
        running += falling[k]
        here = (running - total) / (k + 1)
        if falling[k] > here:
            excess = here
    for k in range(len(values)):
        values[k] = max(values[k] - excess, 0.0)


@jit
def make_possible(record: RecordedPairs, entries: Floats, weight: Floats) -> None:
    """Bring each row with a negative entry to the nearest possible shares.

    The right answers stay as they are: making up for negative shares from all others would take
    most from them.
    """
    for label in range(len(weight)):
        first, last = record.row[label], record.row[label + 1]
        negative = False
        for e in range(first, last):
            negative = negative or entries[e] < 0.0
        if not negative:
            continue
        right = record.right[label]
        if right < 0:
            project(entries[first:last], weight[label])
            continue
        kept = min(max(entries[right], 0.0), weight[label])
        others = np.empty(last - first - 1)
        k = 0
        for e in range(first, last):
            if e != right:
                others[k] = entries[e]
                k += 1
        project(others, weight[label] - kept)
        k = 0
        for e in range(first, last):
            if e != right:
                entries[e] = others[k]
                k += 1
        entries[right] = kept


@jit
def estimate(record: RecordedPairs, pairs: Pairs, entries: Floats) -> None:
    """Write the estimated new matrix into entries (E,)."""
    share = shares(record, pairs.answered)
    coefficient = best_coefficient(record, pairs, share)
    labels = len(record.row) - 1
    known, weight = np.zeros(labels, np.bool_), np.zeros(labels)
    for s in range(len(share)):
        known[record.stratum_label[s]] |= pairs.answered[s] > 0
        weight[record.stratum_label[s]] += record.stratum_weight[s]
    for e in range(len(entries)):
        entries[e] = coefficient * record.before[e]
    for place in range(pairs.seen[-1]):
        cell = pairs.seen[place]
        s = record.cell_stratum[cell]
        each = share[s] / pairs.answered[s]
        entries[record.cell_entry[cell]] += each * (pairs.new[cell] - coefficient * pairs.old[cell])
    for label in range(labels):
        if not known[label]:
            here = slice(record.row[label], record.row[label + 1])
            entries[here] = record.before[here]
    make_possible(record, entries, weight)


@jit
def error(record: RecordedPairs, entries: Floats) -> float:
    """Give the error of an estimate in entries (E,), by the weights."""
    squared, total = 0.0, 0.0
    for e in range(len(entries)):
        off = record.weight[e] * (entries[e] - record.truth[e])
        squared += off**2
        total += off
    return abs(total) if record.linear else sqrt(squared)


@jit
def along(
    record: RecordedPairs,
    pairs: Pairs,
    order: Ints,
    checkpoints: Ints,
    errors: npt.NDArray[np.float32],
    sums: Floats,
) -> None:
    """Answer the positions in their order (n,); write the errors (Q,) at the checkpoints (Q, 2).

    The estimates are added to sums (K, E). Checkpoints are those of `drawing.simulate`.
    """
    forget(pairs)
    entries = np.zeros(len(record.truth))
    done = 0
    for at in range(len(checkpoints)):
        while done < min(checkpoints[at, 0], len(order)):
            add(record, pairs, order[done])
            done += 1
        estimate(record, pairs, entries)
        errors[at] = error(record, entries)
        row = checkpoints[at, 1]
        if row >= 0:
            sums[row] += entries


@jit
def first_change(order: Ints, changed: npt.NDArray[np.bool_]) -> int:
    """Give the number of queries up to the first item whose answer changed, 0 where none did."""
    for place in range(len(order)):
        if changed[order[place]]:
            return place + 1
    return 0


@jit
def drawn_order(
    design: Design,
    recorded: Recorded,
    rule: Rule,
    state: State,
    seen: Codes,
    key: np.uint64,
    order: Ints,
) -> int:
    """Write the positions that a method of the paper asks into order (n,).

    Give how many there are.
    """
    for asked in range(len(order)):
        position = advance(design, recorded, rule, state, seen, key, 1)
        if position < 0:
            return asked
        order[asked] = position
    return len(order)


@jit
def simulate_drawn(
    design: Design,
    recorded: Recorded,
    rule: Rule,
    state: State,
    record: RecordedPairs,
    pairs: Pairs,
    keys: npt.NDArray[np.uint64],
    checkpoints: Ints,
    errors: npt.NDArray[np.float32],
    sums: Floats,
) -> int:
    """Run one assessment per key with a method of the paper, estimated from pairs.

    Give the number of queries asked. The other arguments are those of `drawing.simulate`.
    """
    plant(design, rule, state)
    blank, lead = state.tree.copy(), state.lead.copy()
    seen = np.zeros(len(state.counts) + 1, np.int32)
    most = min(len(state.order), checkpoints[-1, 0]) if len(checkpoints) else 0
    order = np.zeros(most, np.int64)
    total = 0
    for run in range(len(keys)):
        reset(rule, state, seen, blank, lead)
        asked = drawn_order(design, recorded, rule, state, seen, keys[run], order)
        along(record, pairs, order[:asked], checkpoints, errors[run], sums)
        total += asked
    return total


@jit
def simulate_shrunken(
    design: ShrunkenDesign,
    state: ShrunkenState,
    new: Codes,
    old: Codes,
    record: RecordedPairs,
    pairs: Pairs,
    changed: npt.NDArray[np.bool_],
    keys: npt.NDArray[np.uint64],
    checkpoints: Ints,
    errors: npt.NDArray[np.float32],
    sums: Floats,
    first: Ints,
) -> int:
    """Run one assessment per key with shrunken strata, estimated from pairs.

    Give the queries asked. New (N,) and old (N,) are the answers by position as `shrunken.simulate`
    takes them.
    """
    most = min(len(state.order), checkpoints[-1, 0]) if len(checkpoints) else 0
    order = np.zeros(most, np.int64)
    total = 0
    for run in range(len(keys)):
        shrunken.reset(design, state)
        asked = 0
        while asked < most:
            s = choose(state.tree, state.lead)
            if s < 0:
                break
            begin, n = design.start[s], state.issued[s]
            size = design.start[s + 1] - begin
            position = pick(state.order, begin, size, n, uniform(keys[run], s, n))
            state.issued[s] = n + 1
            shrunken.count(design, state, s, new[position], old[position])
            order[asked] = position
            asked += 1
        along(record, pairs, order[:asked], checkpoints, errors[run], sums)
        first[run] = first_change(order[:asked], changed)
        total += asked
    return total
