"""The entries of the matrix that moved more than chance explains."""

import numpy as np

from masa.data.strata import Strata
from masa.inference.estimate import Estimate, _rates, answered_so
from masa.records import ERROR, Ints, Surprise

SURPRISING = 0.05
"""An entry that moved is told if an entry that did not would look like it less often than this."""

FEW = 5
"""Answers about a label, where its items stand for others besides: with fewer nothing about it is surprising."""


def surprising(found: Estimate, strata: Strata, places: Ints) -> tuple[Surprise, ...]:
    """Give the entries that moved more than chance explains, and more than what failed, the surest first."""
    from scipy.special import ndtr

    shift = found.shift
    failed_then, failed_now = (answered_so(ERROR, matrix) for matrix in (shift.old, shift.new))
    before, now = (_rates(matrix, shift) for matrix in (shift.old, shift.new))
    known = np.bincount(strata.label[strata.of(places)], minlength=len(strata.labels)) >= (
        FEW if found.pairs else 1
    )
    told = []
    for i, j in zip(*np.nonzero(np.abs(shift.values) > 1e-12), strict=True):
        label, prediction = shift.new.labels[i], shift.new.predictions[j]
        moved = abs(shift.values[i, j]) - (
            failed_now[i] if shift.values[i, j] < 0.0 else failed_then[i]
        )
        if prediction == ERROR or not known[i] or moved <= 1e-12:
            continue
        chance = 2.0 * float(ndtr(-moved / max(found.deviations[i, j], 1e-300)))
        if chance < SURPRISING:
            told.append(Surprise(label, prediction, float(before[i, j]), float(now[i, j]), chance))
    return tuple(
        sorted(told, key=lambda surprise: (surprise.chance, -abs(surprise.new - surprise.old)))
    )
