"""How far confidences are from where answers change, compiled: a second model of change.

That an answer changed is one bit. Its new confidence tells how far it moved, of every item asked.
The *margin* of an answer is the log odds of its confidence; that of an answer that changed is
negative. One ridge regression predicts the new margin of an item from the old one, a second one how
far it may be from that prediction. Together they give the probability that the answer changes.

Not all confidences are probabilities of the answer, so that this probability may be of no use. How
far it counts is decided by the answers: by the variance that the estimate would have had.
"""

from math import erf, exp, isnan, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from masa.data.compiled import jit
from masa.sampling.kernels.change_model import (
    Asked,
    Cells,
    Goal,
    Items,
    Model,
    add_item,
    logit,
    logits,
    squared_length,
)
from masa.sampling.kernels.drawing import Codes, Floats, uniform
from masa.sampling.kernels.held_out import held_out

Bools = npt.NDArray[np.bool_]

EPOCHS = 8
"""Passes over the answers that fit a regression."""

SMALLEST_MOVE = 0.1
"""A residual counts as no smaller than this share of the usual move, so that its log is finite."""

LOG_VARIANCE, LOG_FACTOR = 4.93, 3.56
"""The variance of the log of a squared normal number, and exp(-mean) of that log."""

SHARES, STEP = 4, 0.25
"""How far margins may count, 0, 0.25, 0.5 or 0.75: the exponent of their probability in a weighted
geometric mean."""

CAUTION = 9.0
"""By what factor each share is taken to be less likely than the one before it, at first."""

LEAST_FACTOR = 0.01
"""No margin makes a change less likely than by this factor."""

EXPLORED = 0.15
"""The share of a batch that is drawn in proportion to weight alone, so that no item's inclusion
probability is far below the others'."""


class MarginModel(NamedTuple):
    """Where the margins of answers go: a prediction, and the log of its squared error."""

    place: Codes
    """(m,) the places among the items asked of those whose two margins are known"""
    unit: float
    """the usual move: all else is measured in it"""
    move: Floats
    """the coefficients of the model of how far margins move"""
    spread: Floats
    """the coefficients of the model of the log of the squared error"""
    held_move: Floats
    """(m,) what the first one says of these items without their own answers"""
    held_spread: Floats
    """(m,) what the second one says"""


@jit
def chances(
    items: Items, cells: Cells, goal: Goal, model: Model, asked: Asked, done: Bools
) -> Floats:
    """Return the probability of each item (N,) that its answer changed, by both models.

    model is that of changed answers, fitted to the items asked. Items that are done (N,) are not
    drawn any more: theirs may be anything.
    """
    result = np.zeros(len(items.cell))
    margins = _fit(items, cells, goal, asked, len(model.coefficients))
    if len(margins.place) == 0:
        for i in range(len(result)):
            result[i] = _logistic(logit(items, cells, goal, model.coefficients, i))
        return result
    models, said = np.empty((len(model.coefficients), 3)), np.empty(3)
    models[:, 0], models[:, 1], models[:, 2] = model.coefficients, margins.move, margins.spread
    by_margin = np.full(len(result), np.nan)
    for i in range(len(result)):
        if done[i] or items.priority[i] <= 0.0:
            continue
        logits(items, cells, goal, models, i, said)
        result[i] = _logistic(said[0])
        z = items.margin[i]
        if not isnan(z):
            by_margin[i] = _below_zero(z / margins.unit + said[1], said[2])
    share = _share(items, cells, goal, model, asked, done, margins, result, by_margin)
    for i in range(len(result)):
        result[i] *= _ratio(result[i], by_margin[i]) ** share
    return result


@jit
def _logistic(z: float) -> float:
    return float(1.0 / (1.0 + exp(-z)))


@jit
def _below_zero(mean: float, log_square: float) -> float:
    """Return the probability that a normal margin is below 0."""
    deviation = sqrt(LOG_FACTOR * exp(log_square))
    return float(0.5 * (1.0 - erf(mean / (deviation * sqrt(2.0)))))


@jit
def _ratio(by_change: float, by_margin: float) -> float:
    """Return how much more likely a change is by its margin; 1 where that is unknown (nan)."""
    if isnan(by_margin) or by_change <= 0.0:
        return 1.0
    return max(by_margin / by_change, LEAST_FACTOR)


@jit
def _deviation(by_change: float, by_margin: float, deviation: Floats) -> None:
    """Set the root of the weighted geometric mean of both probabilities, for each share (S,)."""
    # The shares go up in equal steps, so each root is the one before it times the same factor.
    factor = sqrt(sqrt(sqrt(_ratio(by_change, by_margin))))
    deviation[0] = sqrt(by_change)
    for s in range(1, SHARES):
        deviation[s] = deviation[s - 1] * factor


@jit
def _fit(items: Items, cells: Cells, goal: Goal, asked: Asked, size: int) -> MarginModel:
    """Fit where margins go, by so many coefficients.

    There are no places if nothing is known, or if none moved.
    """
    place = np.empty(len(asked.item), np.int32)
    known, squares = 0, 0.0
    for a in range(len(asked.item)):
        move = asked.margin[a] - items.margin[asked.item[a]]
        if not isnan(move):
            place[known] = a
            squares += move**2
            known += 1
    place = place[:known].copy()
    start, none = np.zeros(size), np.zeros(0)
    if squares <= 0.0:
        return MarginModel(place[:0].copy(), 1.0, none, none, none, none)
    # In units of the usual move, so that the ridge means the same on every scale.
    unit = sqrt(squares / known)
    who, moves = asked.item[place], np.empty(known)
    for k in range(known):
        moves[k] = (asked.margin[place[k]] - items.margin[who[k]]) / unit
    move, held_move = _regressed(items, cells, goal, start, who, moves, 1.0)
    errors, mean = np.empty(known), 0.0
    for k in range(known):
        errors[k] = log((moves[k] - held_move[k]) ** 2 + SMALLEST_MOVE**2)
        mean += errors[k] / known
    start[0] = mean
    spread, held_spread = _regressed(items, cells, goal, start, who, errors, 1.0 / LOG_VARIANCE)
    return MarginModel(place, unit, move, spread, held_move, held_spread)


@jit
def _regressed(
    items: Items,
    cells: Cells,
    goal: Goal,
    start: Floats,
    asked: Codes,
    wanted: Floats,
    weight: float,
) -> tuple[Floats, Floats]:
    """Fit a regression with a ridge of 1 towards start, by dual coordinate ascent.

    weight is that of a squared residual. Returns the coefficients, and what the regression says of
    each item asked (n,) without the number wanted of it.
    """
    coefficients, multiple = start.copy(), np.zeros(len(asked))
    order = np.arange(len(asked))
    for epoch in range(EPOCHS):
        for last in range(len(order) - 1, -1, -1):
            other = int(uniform(np.uint64(0), epoch, last) * (last + 1))
            a = order[other]
            order[other] = order[last]
            order[last] = a
            i = asked[a]
            length = squared_length(items, i)
            others = logit(items, cells, goal, coefficients, i) - multiple[a] * length
            best = weight * (wanted[a] - others) / (1.0 + weight * length)
            add_item(items, cells, goal, coefficients, i, best - multiple[a])
            multiple[a] = best
    weights = np.full(len(asked), weight)
    return coefficients, held_out(items, cells, goal, coefficients, asked, multiple, weights)


@jit
def _share(
    items: Items,
    cells: Cells,
    goal: Goal,
    model: Model,
    asked: Asked,
    done: Bools,
    margins: MarginModel,
    by_change: Floats,
    by_margin: Floats,
) -> float:
    """Return how far margins are to count, from 0 on.

    It is the mean of the shares, weighted by how well each would have done. The estimate varies by
    the answers that changed. Each of those asked represents those like it that are left, and its
    own answer is held out of the models. With few changes the result is nearly 0.
    """
    deviation, totals, left = np.empty(SHARES), np.zeros(SHARES), 0.0
    for i in range(len(by_change)):
        if not done[i] and items.priority[i] > 0.0:
            left += items.weight[i]
            _deviation(by_change[i], by_margin[i], deviation)
            for s in range(SHARES):
                totals[s] += items.weight[i] * deviation[s]
    variance, changes = np.zeros(SHARES), 0
    held = held_out(
        items, cells, goal, model.coefficients, asked.item, model.multiple, model.weight
    )
    for k in range(len(margins.place)):
        a = margins.place[k]
        if asked.target[a] < 0 or not asked.chance[a] > 0.0 or left <= 0.0:
            continue
        i = asked.item[a]
        changes += 1
        # How many items like it are likely to be left, for each that was asked.
        times = asked.chance[a] * len(asked.item)
        represented = exp(-times) / (1.0 - exp(-times))
        change = _logistic(held[a])
        mean = items.margin[i] / margins.unit + margins.held_move[k]
        margin = _below_zero(mean, margins.held_spread[k])
        _deviation(change, margin, deviation)
        for s in range(SHARES):
            drawn = EXPLORED / left + (1.0 - EXPLORED) * deviation[s] / totals[s]
            drawn *= items.weight[i]
            variance[s] += represented * items.weight[i] ** 2 / drawn
    best = np.min(variance)
    share, total = 0.0, 0.0
    for s in range(SHARES):
        likely = CAUTION ** (-s)
        if best > 0.0:
            likely *= (best / variance[s]) ** changes
        share += likely * s * STEP
        total += likely
    return share / total
