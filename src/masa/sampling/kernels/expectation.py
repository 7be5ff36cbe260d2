"""The error to expect of predictive sampling on recorded answers, compiled.

A run draws every batch with known inclusion probabilities, so the variance of its estimate can be
computed along the way from the answers that it did not ask. A few runs then tell what otherwise
takes hundreds, in which errors are counted.
"""

from typing import NamedTuple

import numpy as np

from masa.data.compiled import jit
from masa.sampling.kernels.change_model import Asked, Cells, Goal, Items, Prior
from masa.sampling.kernels.drawing import Codes, Floats
from masa.sampling.kernels.predictive import (
    FIRST_BATCH,
    GROWTH,
    Recorded,
    Run,
    chances_of_draws,
    draw,
    next_probabilities,
    take_turns,
)
from masa.sampling.kernels.weights import should_switch, weigh

ASKED, SIZE, LEFT, VARIANCE, CUT, KINDS = range(6)
"""The columns of what is told of each batch: answers before it, its size, the items that were left,
the variance of an estimate from it, and what is added to that where the batch is cut short, as a
multiple of the items that are missing over those that are there. From KINDS on: how much of that
each kind of change adds."""

SWITCHES = -1
"""In place of the number of batches, where the run would switch to strata."""


class Changes(NamedTuple):
    """What each item's answer adds to the error."""

    root: Floats
    """(N,) the length of its change, weighted"""
    kind: Codes
    """(N,) the kind of its change, or -1"""


@jit
def batches(
    items: Items,
    cells: Cells,
    goal: Goal,
    prior: Prior,
    canaries: Codes,
    recorded: Recorded,
    changes: Changes,
    least: float,
    fewest: int,
    may_switch: bool,
    key: np.uint64,
    run: Run,
    told: Floats,
) -> int:
    """Run one assessment and tell of each batch (B, KINDS + K) what the estimate from it varies by.

    The run ends when the expected squared error of all batches together is below `least`, after
    the fewest answers that are wanted. Returns the number of batches, or SWITCHES.
    """
    most = len(run.asked)
    n, canaries_asked, batch = 0, 0, 1
    variance, total = 0.0, 0.0
    together = np.zeros(told.shape[1] - KINDS)
    while n < most and batch <= len(told):
        known = run.asked[:n]
        asked = Asked(
            known,
            recorded.changed[known],
            recorded.target[known],
            recorded.margin[known],
            chances_of_draws(run, n),
        )
        size = max(FIRST_BATCH, n // GROWTH)
        probability = next_probabilities(items, cells, goal, prior, asked, run.done, size)
        picked = draw(items.order, probability, key, batch)
        if len(picked) == 0:
            break
        run.left[batch] = run.left[batch - 1] - run.sizes[batch - 1]
        run.sizes[batch] = len(picked)
        row = told[batch - 1]
        row[ASKED], row[SIZE], row[LEFT] = n, len(picked), run.left[batch]
        _add_variance(items.order, probability, changes, together, row)
        for i in picked:
            run.done[i] = True
        n, canaries_asked = take_turns(
            run, n, canaries, canaries_asked, picked, probability[picked], batch
        )
        batch += 1
        if len(picked) < row[LEFT]:
            weight = row[SIZE] / (row[LEFT] * (row[LEFT] - row[SIZE]))
            variance += weight**2 * row[VARIANCE]
            total += weight
            if n >= fewest and variance < least * total**2:
                break
        if may_switch and n < most:
            known = run.asked[:n]
            counts, _ = weigh(
                run.batch[:n], run.probability[:n], run.sizes[:batch], run.left[:batch], 0
            )
            if should_switch(items, cells, goal, known, recorded.target[known], counts):
                return SWITCHES
    return batch - 1


@jit
def _add_variance(
    order: Codes, probability: Floats, changes: Changes, together: Floats, row: Floats
) -> None:
    """Add what an estimate from a batch with these inclusion probabilities (N,) varies by.

    The systematic pass over the items in their order (N,) takes about one of each stretch whose
    probabilities add up to 1. So what all changes of a kind in a stretch have in common does not
    make the estimate vary. together (K,) is scratch space, all 0.
    """
    stretch, first = 0.0, 0
    for place in range(len(order)):
        i = order[place]
        q = probability[i]
        kind = changes.kind[i]
        if q > 0.0 and kind >= 0:
            adds = changes.root[i] ** 2 / q
            row[CUT] += adds
            row[KINDS + kind] += adds
        if 0.0 < q < 1.0:
            stretch += q
            if kind >= 0:
                row[VARIANCE] += changes.root[i] ** 2 / q
                together[kind] += changes.root[i]
        if stretch >= 1.0 or place == len(order) - 1:
            for before in range(first, place + 1):
                kind = changes.kind[order[before]]
                if kind >= 0 and together[kind] > 0.0:
                    row[VARIANCE] -= together[kind] ** 2 / max(1.0, stretch)
                    together[kind] = 0.0
            stretch, first = 0.0, place + 1
