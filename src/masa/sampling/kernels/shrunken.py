"""Strata with shrunken variances, compiled.

As in the paper, the next item comes from the stratum where one more answer reduces the variance
most. Instead of adding an exploration bonus, the variance of a stratum is shrunken towards a pooled
variance. With baseline answers, the part of the variance that they explain is left out: the
variances are those of the residuals y - coefficient * x of the new answer y given the baseline
answer x, with one regression coefficient for all strata.

The `sums` of a stratum hold what its variance needs, for new (y) and baseline (x) answers with the
weights of the goal: the sums over its answers of y.y, x.x and x.y, then Y.Y, X.X and X.Y of their
totals Y and X, then those totals where the goal is linear.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from masa.data.compiled import jit
from masa.sampling.kernels.drawing import (
    EXHAUSTED,
    REQUIRED,
    Codes,
    Floats,
    Ints,
    choose,
    distance,
    pick,
    set_score,
    uniform,
)

YY, XX, XY, TOTAL_YY, TOTAL_XX, TOTAL_XY, TOTAL_Y, TOTAL_X = range(8)
"""The columns of `ShrunkenState.sums`."""

REFRESH = 1.01
"""Variance and coefficient are renewed when the number of answers has grown by this factor."""

VARIANCE, COEFFICIENT, RENEWED, ANSWERS = range(4)
"""The elements of `ShrunkenState.pooled`."""


class ShrunkenDesign(NamedTuple):
    """The strata, what is known of their baseline answers, and what is to be estimated."""

    start: Ints
    """(S + 1,) stratum s holds the positions start[s] to start[s + 1]"""
    weight: Floats
    """(S,) its share of the estimate"""
    priority: Floats
    """(S,) its share divided by the square root of its price"""
    label: Codes
    """(S,)"""
    baseline_share: Floats
    """(S, P) the share of each baseline answer in it; all zero where they are not known"""
    goal: Floats
    """(L, P) the weight of each entry of the matrix"""
    linear: bool
    """whether the goal is the weighted sum of the entries, not the norm"""
    kappa: float
    """how many answers the pooled variance counts for in the variance of a stratum"""


class ShrunkenState(NamedTuple):
    """What has been asked and answered."""

    available: Ints
    """(S,) items that may be asked"""
    issued: Ints
    """(S,) queries asked, answered or not"""
    answered: Ints
    """(S,) answers received"""
    new: Ints
    """(S, P) counts of the new answers"""
    old: Ints
    """(S, P) counts of the baseline answers of the items that have been answered"""
    sums: Floats
    """(S, 8) what the variance needs, see above"""
    pooled: Floats
    """(4,) the pooled variance, the coefficient, the number of answers they were estimated from,
    and the number of answers by now"""
    tree: Floats
    """(2T,) the tournament of `drawing.State`"""
    lead: Codes
    """(2T,)"""
    order: Codes
    """(N,) the positions; the drawn part of each stratum is shuffled"""


@jit
def new_state(design: ShrunkenDesign) -> ShrunkenState:
    """Make the state of a method that has asked nothing."""
    strata, answers = design.baseline_share.shape
    leaves = 1
    while leaves < strata:
        leaves *= 2
    state = ShrunkenState(
        available=design.start[1:] - design.start[:-1],
        issued=np.zeros(strata, np.int64),
        answered=np.zeros(strata, np.int64),
        new=np.zeros((strata, answers), np.int64),
        old=np.zeros((strata, answers), np.int64),
        sums=np.zeros((strata, 8)),
        pooled=np.zeros(4),
        tree=np.full(2 * leaves, EXHAUSTED),
        lead=np.zeros(2 * leaves, np.int32),
        order=np.arange(design.start[-1]).astype(np.int32),
    )
    renew(design, state)
    return state


@jit
def residual_squares(state: ShrunkenState, stratum: int, coefficient: float) -> float:
    """Return the sum of squared deviations of the residuals y - coefficient * x from their mean."""
    n = state.answered[stratum]
    if n == 0:
        return 0.0
    s = state.sums[stratum]
    of_all = s[YY] - 2.0 * coefficient * s[XY] + coefficient**2 * s[XX]
    of_mean = (s[TOTAL_YY] - 2.0 * coefficient * s[TOTAL_XY] + coefficient**2 * s[TOTAL_XX]) / n
    # Rounding can make the difference slightly negative.
    return max(0.0, float(of_all - of_mean))


@jit
def rescore(design: ShrunkenDesign, state: ShrunkenState, stratum: int) -> None:
    """Bring the tournament up to date after a stratum's counts changed."""
    n = state.issued[stratum]
    priority = design.priority[stratum]
    value = EXHAUSTED
    if priority > 0.0 and n < state.available[stratum]:
        if n < 2:
            value = (2 - n) * REQUIRED + priority
        else:
            squares = residual_squares(state, stratum, state.pooled[COEFFICIENT])
            freedom = max(state.answered[stratum], 1) - 1.0
            variance = (squares + design.kappa * state.pooled[VARIANCE]) / (freedom + design.kappa)
            # One more answer reduces the variance of the mean by variance / (n (n + 1)).
            value = priority * sqrt(variance / (n * (n + 1.0)))
    set_score(state.tree, state.lead, stratum, value)


@jit
def best_coefficient(design: ShrunkenDesign, state: ShrunkenState) -> float:
    """Return the coefficient in [0, 1] that minimises the variance of the estimate."""
    covariance, variance = 0.0, 0.0
    for s in range(len(design.weight)):
        n = state.answered[s]
        if n >= 2:
            size = design.start[s + 1] - design.start[s]
            factor = design.weight[s] ** 2 * (1.0 / n - 1.0 / size) / (n - 1.0)
            covariance += factor * (state.sums[s, XY] - state.sums[s, TOTAL_XY] / n)
            variance += factor * (state.sums[s, XX] - state.sums[s, TOTAL_XX] / n)
    if variance > 1e-300:
        return min(1.0, max(0.0, covariance / variance))
    # Without baseline answers their variance is zero.
    return 0.0


@jit
def renew(design: ShrunkenDesign, state: ShrunkenState) -> None:
    """Estimate the coefficient and the pooled variance from all answers; score every stratum."""
    coefficient = best_coefficient(design, state)
    squares, freedom, answers = 0.0, 0.0, 0
    for s in range(len(design.weight)):
        n = state.answered[s]
        answers += n
        if n > 0:
            squares += residual_squares(state, s, coefficient)
            freedom += n - 1.0
    # The prior is half the mean squared answer, worth two degrees of freedom.
    mean_square = 1.0
    if answers:
        mean_square = state.sums[:, YY].sum() / answers
    state.pooled[VARIANCE] = (squares + mean_square) / (freedom + 2.0)
    state.pooled[COEFFICIENT] = coefficient
    state.pooled[RENEWED] = state.pooled[ANSWERS] = answers
    for s in range(len(design.weight)):
        rescore(design, state, s)


@jit
def count(design: ShrunkenDesign, state: ShrunkenState, stratum: int, new: int, old: int) -> None:
    """Take an answer; old is the baseline answer, -1 where it is not known."""
    s = state.sums[stratum]
    label = design.label[stratum]
    y, x = design.goal[label, new], 0.0
    if old >= 0:
        x = design.goal[label, old]
    state.answered[stratum] += 1
    s[YY] += y**2
    s[XX] += x**2
    if design.linear:
        # An answer is a number: its weight.
        s[XY] += y * x
        s[TOTAL_Y] += y
        s[TOTAL_X] += x
        s[TOTAL_YY] = s[TOTAL_Y] ** 2
        s[TOTAL_XX] = s[TOTAL_X] ** 2
        s[TOTAL_XY] = s[TOTAL_Y] * s[TOTAL_X]
    else:
        # An answer is a vector whose only non-zero entry is its weight. One more answer changes a
        # squared count k^2 by 2 k + 1.
        s[TOTAL_YY] += y**2 * (2 * state.new[stratum, new] + 1)
        s[TOTAL_XY] += y**2 * state.old[stratum, new]
    state.new[stratum, new] += 1
    if old >= 0:
        if not design.linear:
            # The new answer is in the totals by now, the baseline answer is not.
            s[TOTAL_XX] += x**2 * (2 * state.old[stratum, old] + 1)
            s[TOTAL_XY] += x**2 * state.new[stratum, old]
            if old == new:
                s[XY] += x**2
        state.old[stratum, old] += 1
    state.pooled[ANSWERS] += 1.0
    if state.pooled[ANSWERS] > REFRESH * state.pooled[RENEWED]:
        renew(design, state)
    else:
        rescore(design, state, stratum)


@jit
def add_up(design: ShrunkenDesign, state: ShrunkenState, matrix: Floats) -> None:
    """Add the estimated matrix to matrix (L, P).

    Strata without answers are represented by the other strata of their label.
    """
    labels, answers = matrix.shape
    total, covered = np.zeros(labels), np.zeros(labels)
    for s in range(len(design.weight)):
        total[design.label[s]] += design.weight[s]
        if state.answered[s] > 0:
            covered[design.label[s]] += design.weight[s]
    coefficient = state.pooled[COEFFICIENT]
    for s in range(len(design.weight)):
        n, label = state.answered[s], design.label[s]
        if n > 0 and covered[label] > 0.0:
            share = design.weight[s] * (total[label] / covered[label])
            for j in range(answers):
                # The known mean of the baseline answers less their mean in the sample.
                adjustment = coefficient * (design.baseline_share[s, j] - state.old[s, j] / n)
                matrix[label, j] += share * (state.new[s, j] / n + adjustment)


@jit
def reset(design: ShrunkenDesign, state: ShrunkenState) -> None:
    """Forget all answers."""
    state.issued[:] = 0
    state.answered[:] = 0
    state.new[:] = 0
    state.old[:] = 0
    state.sums[:] = 0.0
    for position in range(len(state.order)):
        state.order[position] = position
    renew(design, state)


@jit
def simulate(
    design: ShrunkenDesign,
    state: ShrunkenState,
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
    """Run one assessment per key on recorded answers and return the number of queries asked.

    new (N,) and old (N,) are the new and the baseline answer at each position, old -1 where it is
    not to be used; changed (N,) says whether they differ; truth (L, P) is the true matrix.
    checkpoints, errors and sums are those of `drawing.simulate`; first (R,) receives the number of
    queries up to the first changed answer, 0 where there is none.
    """
    matrix = np.zeros(truth.shape)
    total = 0
    for run in range(len(keys)):
        reset(design, state)
        asked = 0
        for at in range(len(checkpoints)):
            while asked < checkpoints[at, 0]:
                s = choose(state.tree, state.lead)
                if s < 0:
                    break
                begin, n = design.start[s], state.issued[s]
                size = design.start[s + 1] - begin
                position = pick(state.order, begin, size, n, uniform(keys[run], s, n))
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
