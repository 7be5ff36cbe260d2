"""The entries of the matrix that changed more than chance explains."""

import numpy as np

from masa.data.strata import Strata
from masa.inference.estimate import Estimate, answered_so, rates
from masa.records import ERROR, Ints, Surprise

SURPRISING = 0.05
"""Significance level: an entry is reported if one that did not change would look like it less often
than this."""

FEWEST_ANSWERS = 5
"""Where items represent others, nothing about a label with fewer answers is surprising."""


def surprising(found: Estimate, strata: Strata, places: Ints) -> tuple[Surprise, ...]:
    """Give the entries that changed more than chance and failures explain, the surest first.

    Each is tested alone: there is no correction for the number of entries.
    """
    from scipy.special import ndtr

    shift = found.shift
    failed_then, failed_now = answered_so(ERROR, shift.old), answered_so(ERROR, shift.new)
    before, now = rates(shift.old, shift), rates(shift.new, shift)
    needed = 1
    if found.pairs:
        needed = FEWEST_ANSWERS
    answers = np.bincount(strata.label[strata.of(places)], minlength=len(strata.labels))
    surprises = []
    for i, j in zip(*np.nonzero(np.abs(shift.values) > 1e-12), strict=True):
        label, prediction = shift.new.labels[i], shift.new.predictions[j]
        # A fall may be items that failed now, a rise items that failed in the baseline.
        failed = failed_then[i]
        if shift.values[i, j] < 0.0:
            failed = failed_now[i]
        change = abs(shift.values[i, j]) - failed
        if prediction == ERROR or answers[i] < needed or change <= 1e-12:
            continue
        p_value = 2.0 * float(ndtr(-change / max(found.deviations[i, j], 1e-300)))
        if p_value < SURPRISING:
            old, new = float(before[i, j]), float(now[i, j])
            surprises.append(Surprise(label, prediction, old, new, p_value))
    surprises.sort(key=lambda one: (one.chance, -abs(one.new - one.old)))
    return tuple(surprises)
