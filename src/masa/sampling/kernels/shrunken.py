"""The arithmetic of strata with shrunken variances, compiled.

As in the paper the next item comes from the stratum where it helps the most; what is not known of a stratum's variance is
taken from all of them, instead of adding a bonus. With old answers the part of the variance that they explain is left out:
each answer is taken less lean times the old one, with one lean for all strata.

A stratum's `sums` hold what its variance needs, for new (y) and old (x) answers with the goal's weights: the sums over its
answers of y.y, x.x and x.y, then Y.Y, X.X and X.Y of their totals Y and X, then those totals where the goal is linear.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from masa.sampling.kernels.drawing import (
    DONE,
    DUE,
    Codes,
    Floats,
    Ints,
    choose,
    distance,
    enter,
    jit,
    pick,
    uniform,
)

YY, XX, XY, TOTAL_YY, TOTAL_XX, TOTAL_XY, TOTAL_Y, TOTAL_X = range(8)

REFRESH = 1.01
"""The common variance and the lean are renewed when there are so many times the answers."""

COMMON, LEAN, RENEWED, ANSWERS = range(4)


class Design(NamedTuple):
    """The strata, what is known of their old answers, and what is to be known."""

    start: Ints
    """(S + 1,) stratum s holds the positions start[s] to start[s + 1]"""
    weight: Floats
    """(S,) its share of the estimate"""
    urge: Floats
    """(S,) its share over the root of its price"""
    label: Codes
    """(S,)"""
    known: Floats
    """(S, P) the share of each old answer in it; all zero where they are not known"""
    goal: Floats
    """(L, P) the weight of each entry of the matrix"""
    linear: bool
    kappa: float
    """answers' worth of belief that the variance of a stratum is the common one"""


class State(NamedTuple):
    """What has been asked and answered."""

    left: Ints
    """(S,) items that may be asked"""
    issued: Ints
    """(S,)"""
    answered: Ints
    """(S,)"""
    new: Ints
    """(S, P) new answers"""
    old: Ints
    """(S, P) old answers of the items that have been answered"""
    sums: Floats
    """(S, 8)"""
    common: Floats
    """(4,) the common variance, the lean, the number of answers they were made from, and the number there are"""
    tree: Floats
    """(2T,) the tournament of the other kernel"""
    lead: Codes
    """(2T,)"""
    order: Codes
    """(N,) the positions, each stratum shuffled as far as it has been drawn"""


@jit
def new_state(design: Design) -> State:
    """Make the state of a method that has asked nothing."""
    strata, answers = design.known.shape
    leaves = 1
    while leaves < strata:
        leaves *= 2
    state = State(
        left=design.start[1:] - design.start[:-1],
        issued=np.zeros(strata, np.int64),
        answered=np.zeros(strata, np.int64),
        new=np.zeros((strata, answers), np.int64),
        old=np.zeros((strata, answers), np.int64),
        sums=np.zeros((strata, 8)),
        common=np.zeros(4),
        tree=np.full(2 * leaves, DONE),
        lead=np.zeros(2 * leaves, np.int32),
        order=np.arange(design.start[-1]).astype(np.int32),
    )
    renew(design, state)
    return state


@jit
def squares(state: State, stratum: int, lean: float) -> float:
    """Give the sum of squared deviations of the answers less lean times the old ones."""
    n = state.answered[stratum]
    if n == 0:
        return 0.0
    s = state.sums[stratum]
    of_all = s[YY] - 2.0 * lean * s[XY] + lean**2 * s[XX]
    of_mean = (s[TOTAL_YY] - 2.0 * lean * s[TOTAL_XY] + lean**2 * s[TOTAL_XX]) / n
    return max(0.0, float(of_all - of_mean))


@jit
def rescore(design: Design, state: State, stratum: int) -> None:
    """Bring the tournament up to date after a stratum's counts changed."""
    n, m = state.issued[stratum], state.answered[stratum]
    value = DONE
    if design.urge[stratum] > 0.0 and n < state.left[stratum]:
        if n < 2:
            value = (2 - n) * DUE + design.urge[stratum]
        else:
            common, lean = state.common[COMMON], state.common[LEAN]
            variance = (squares(state, stratum, lean) + design.kappa * common) / (
                max(m, 1) - 1.0 + design.kappa
            )
            value = design.urge[stratum] * sqrt(variance / (n * (n + 1.0)))
    enter(state.tree, state.lead, stratum, value)


@jit
def renew(design: Design, state: State) -> None:
    """Make the lean and the common variance from all answers, and score every stratum anew."""
    together, apart, answers = 0.0, 0.0, 0
    for s in range(len(design.weight)):
        n = state.answered[s]
        answers += n
        if n >= 2:
            size = design.start[s + 1] - design.start[s]
            factor = design.weight[s] ** 2 * (1.0 / n - 1.0 / size) / (n - 1.0)
            together += factor * (state.sums[s, XY] - state.sums[s, TOTAL_XY] / n)
            apart += factor * (state.sums[s, XX] - state.sums[s, TOTAL_XX] / n)
    lean = min(1.0, max(0.0, together / apart)) if apart > 1e-300 else 0.0
    total, freedom = 0.0, 0.0
    for s in range(len(design.weight)):
        if state.answered[s] > 0:
            total += squares(state, s, lean)
            freedom += state.answered[s] - 1.0
    scale = state.sums[:, YY].sum() / max(answers, 1) if answers else 1.0
    state.common[COMMON] = (total + scale) / (freedom + 2.0)
    state.common[LEAN] = lean
    state.common[RENEWED] = state.common[ANSWERS] = answers
    for s in range(len(design.weight)):
        rescore(design, state, s)


@jit
def count(design: Design, state: State, stratum: int, new: int, old: int) -> None:
    """Take an answer; old is -1 where the old one is not known."""
    s = state.sums[stratum]
    label = design.label[stratum]
    w = design.goal[label, new]
    state.answered[stratum] += 1
    if design.linear:
        v = design.goal[label, old] if old >= 0 else 0.0
        s[YY] += w**2
        s[XX] += v**2
        s[XY] += w * v
        s[TOTAL_Y] += w
        s[TOTAL_X] += v
        s[TOTAL_YY], s[TOTAL_XX], s[TOTAL_XY] = (
            s[TOTAL_Y] ** 2,
            s[TOTAL_X] ** 2,
            s[TOTAL_Y] * s[TOTAL_X],
        )
    else:
        s[YY] += w**2
        s[TOTAL_YY] += w**2 * (2 * state.new[stratum, new] + 1)
        s[TOTAL_XY] += w**2 * state.old[stratum, new]
    state.new[stratum, new] += 1
    if old >= 0 and not design.linear:
        v = design.goal[label, old]
        s[XX] += v**2
        s[TOTAL_XX] += v**2 * (2 * state.old[stratum, old] + 1)
        s[TOTAL_XY] += v**2 * state.new[stratum, old]
        if old == new:
            s[XY] += v**2
    if old >= 0:
        state.old[stratum, old] += 1
    state.common[ANSWERS] += 1.0
    if state.common[ANSWERS] > REFRESH * state.common[RENEWED]:
        renew(design, state)
    else:
        rescore(design, state, stratum)


@jit
def add_up(design: Design, state: State, matrix: Floats) -> None:
    """Add the estimated matrix to matrix (L, P): strata without answers are stood in for by others of their label."""
    labels, answers = matrix.shape
    total, covered = np.zeros(labels), np.zeros(labels)
    for s in range(len(design.weight)):
        total[design.label[s]] += design.weight[s]
        if state.answered[s] > 0:
            covered[design.label[s]] += design.weight[s]
    lean = state.common[LEAN]
    for s in range(len(design.weight)):
        n, label = state.answered[s], design.label[s]
        if n > 0 and covered[label] > 0.0:
            share = design.weight[s] * (total[label] / covered[label])
            for j in range(answers):
                leaned = lean * (design.known[s, j] - state.old[s, j] / n)
                matrix[label, j] += share * (state.new[s, j] / n + leaned)


@jit
def simulate(
    design: Design,
    state: State,
    new: Codes,
    old: Codes,
    changed: npt.NDArray[np.bool_],
    truth: Floats,
    keys: npt.NDArray[np.uint64],
    checkpoints: Ints,
    errors: npt.NDArray[np.float32],
    sums: Floats,
    first: Ints,
) -> int:
    """Run one assessment a key on recorded answers, and give the number of queries asked.

    New (N,) and old (N,) are the answers by position, old -1 where it is not to be used, changed (N,) says whether the answer
    did; truth (L, P) is the true matrix. Checkpoints, errors and sums are those of the other kernel; first (R,) receives the
    number of queries up to the first changed answer, 0 where none came.
    """
    labels, answers = truth.shape
    matrix = np.zeros((labels, answers))
    total = 0
    for run in range(len(keys)):
        state.issued[:] = 0
        state.answered[:] = 0
        state.new[:] = 0
        state.old[:] = 0
        state.sums[:] = 0.0
        for position in range(len(state.order)):
            state.order[position] = position
        renew(design, state)
        asked = 0
        for at in range(len(checkpoints)):
            while asked < checkpoints[at, 0]:
                s = choose(state.tree, state.lead)
                if s < 0:
                    break
                begin, n = design.start[s], state.issued[s]
                position = pick(
                    state.order, begin, design.start[s + 1] - begin, n, uniform(keys[run], s, n)
                )
                state.issued[s] = n + 1
                count(design, state, s, new[position], old[position])
                asked += 1
                if changed[position] and first[run] == 0:
                    first[run] = asked
            matrix[:] = 0.0
            add_up(design, state, matrix)
            errors[run, at] = distance(matrix, truth, design.goal, design.linear)
            row = checkpoints[at, 1]
            if row >= 0:
                sums[row] += matrix.ravel()
        total += asked
    return total
