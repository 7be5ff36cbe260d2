"""How probable it is that noise alone made so many answers differ: exact, for few of them.

An API contradicts itself more often about some items than about others: where its confidence is
low, and where its baseline answer is wrong, because noise may be what made it wrong. Among answers
of high confidence most wrong ones may be. Canaries are rather such items, so that a few of them
differ soon without any change.
"""

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.inference.moved_confidence import CONFIDENCE_BINS, confidence_bins
from masa.records import Bools, Codes, Floats, Ints

FEW = 12
"""With more differing answers than this, normal numbers are near enough."""

FINER = 5
"""Bins by confidence in which wrong answers are counted, for each in which contradictions are:
every baseline answer tells whether it is wrong, only items asked twice tell of contradictions."""

PRIOR_REPEATS = 5.0
"""How many items asked twice the rate of all counts for in that of each fifth by confidence."""

NODES = 15
"""Values of the rate of contradictions over which is averaged: it is not known well."""


def wrong_before(data: Dataset, old: BaselineAnswers) -> Bools:
    """Say of each item (N,) whether its baseline answer is known to be wrong."""
    code = {name: number for number, name in enumerate(old.answers.values)}
    right = np.array([code.get(name, -1) for name in data.label.values])[data.label.codes]
    found = np.zeros(len(data), np.bool_)
    found[old.places] = right[old.places] != old.answers.codes
    return found & data.labelled


def by_noise(differing: int, asked: Ints, old: BaselineAnswers, wrong: Bools) -> float:
    """Give the probability that so many or more of the answers asked (n,) differ by noise alone.

    Wrong (N,) says of each item whether its baseline answer is. Contradictions are half noise in
    the first answer, half in the second. Noise in the first makes answers wrong, most of the time,
    so that of the wrong ones such a share is noise.
    """
    from scipy.special import betaincinv

    if not differing:
        return 1.0
    fine = confidence_bins(old, FINER * CONFIDENCE_BINS)
    twice = np.array(list(old.asked_twice), np.int64)
    contradicted = np.array(list(old.asked_twice.values()), np.float64)
    events, repeats = float(contradicted.sum()), float(len(twice))
    common = (events + 1.0) / (repeats + 2.0)
    of_fifth = _of_fifth(fine[twice] // FINER, contradicted, common)
    of_bin = np.repeat(of_fifth, FINER)
    share_wrong = _share_wrong(fine, wrong)
    when_wrong = of_bin / 2.0 / share_wrong + of_bin / 2.0
    rate = np.where(wrong[asked], when_wrong[fine[asked]], of_bin[fine[asked]] / 2.0)
    levels = (np.arange(NODES) + 0.5) / NODES
    scales = betaincinv(events + 1.0, repeats - events + 1.0, levels) / common
    return float(np.mean([_at_least(differing, np.minimum(rate * s, 1.0)) for s in scales]))


def _of_fifth(fifth: Codes, contradicted: Floats, common: float) -> Floats:
    """Give the rate of contradictions of each fifth (B,), shrunk towards that of all."""
    repeats = np.bincount(fifth, minlength=CONFIDENCE_BINS)
    events = np.bincount(fifth, contradicted, CONFIDENCE_BINS)
    return np.asarray((events + PRIOR_REPEATS * common) / (repeats + PRIOR_REPEATS))


def _share_wrong(fine: Codes, wrong: Bools) -> Floats:
    """Give the share of wrong baseline answers in each bin."""
    count = np.bincount(fine, minlength=FINER * CONFIDENCE_BINS)
    found = np.bincount(fine, wrong[: len(fine)], FINER * CONFIDENCE_BINS)
    return np.asarray((found + 0.5) / (count + 1.0))


def _at_least(differing: int, rate: Floats) -> float:
    """Give the probability that at least so many of events with these rates (n,) happen."""
    fewer = np.zeros(differing)
    fewer[0] = 1.0
    for one in rate.tolist():
        fewer[1:] = fewer[1:] * (1.0 - one) + fewer[:-1] * one
        fewer[0] *= 1.0 - one
    return max(0.0, 1.0 - float(fewer.sum()))
