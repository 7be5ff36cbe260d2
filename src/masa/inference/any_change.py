"""Say whether any answer changed: differing answers are proof, unless noise may explain them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.inference.estimate import Estimate
from masa.inference.moved_confidence import CONFIDENCE_BINS, confidence_bins, moved_confidence
from masa.inference.noise_alone import FEW, by_noise
from masa.inference.readings import StandardErrors
from masa.inference.sample import Sample
from masa.inference.spread import normal
from masa.records import ERROR, Bools, ChangedItem, Codes, Column, Floats, Ints
from masa.sampling.predictive import SAME_CONFIDENCE

FALSE_ALARM_RATE = 0.035
"""How often an API with noise that did not change may be said to have changed."""

FALSE_ALARM_RATE_BESIDE = 0.02
"""The same for answers alone, and for confidences alone, where it is known how much confidences
wobble and both are looked at."""

FREQUENCY_WEIGHT = 0.9
"""Weight of the score for answers that differ more often than by noise. The score for their
direction has the rest: the squares of the two weights add up to 1 (decision 0011)."""


@dataclass(frozen=True, slots=True)
class AnyChange:
    """Whether any answer changed, and the proof."""

    said: str
    """yes, no sign or noise"""
    proof: str = ""


def differences(
    data: Dataset, old: BaselineAnswers, places: Ints, answers: Column
) -> tuple[list[int], dict[int, ChangedItem]]:
    """Give the places with a baseline answer and a new one, and by place the items that differ."""
    before = np.full(len(data), -1, np.int32)
    before[old.places] = old.answers.codes
    both: list[int] = []
    differing: dict[int, ChangedItem] = {}
    codes = zip(places.tolist(), answers.codes.tolist(), before[places].tolist(), strict=True)
    for place, new_code, old_code in codes:
        if old_code < 0:
            continue
        was, new = old.answers.values[old_code], answers.values[new_code]
        if ERROR in (was, new):
            continue
        both.append(place)
        if was != new:
            label = data.label.values[data.label.codes[place]]
            differing[place] = ChangedItem(data.name(place), label, was, new)
    return both, differing


def any_change(
    found: Estimate | None,
    old: BaselineAnswers,
    compared_to: list[int],
    differing: Mapping[int, ChangedItem],
    *,
    wrong: Bools,
    confidence: Mapping[int, float] | None = None,
    looks: StandardErrors | None = None,
) -> AnyChange:
    """Say whether any answer changed beyond the API's own noise.

    For an API without noise any answer that differs is proof. So is a confidence (by place) that
    differs, if the API was seen to repeat its confidences too. For an API with noise more answers
    must differ, or more confidences must have moved far, than the noise explains. Wrong (N,) says
    of each item whether its baseline answer is.
    """
    if old.repeats_itself:
        proof = _difference(old, compared_to, differing, confidence or {})
        if proof:
            return AnyChange("yes", proof)
    # An item that contradicted itself does so again: that it was asked says nothing of the others.
    told_nothing = {place for place, differs in old.asked_twice.items() if differs}
    compared_to = [place for place in compared_to if place not in told_nothing]
    differing = {place: item for place, item in differing.items() if place not in told_nothing}
    moved = None
    if found is not None and confidence:
        moved = moved_confidence(_asked(found, compared_to), old, confidence)
        # The test is one-sided, the number of standard errors that of a two-sided interval.
        limit = (looks or normal)(1.0 - 2.0 * FALSE_ALARM_RATE_BESIDE)
        if moved is not None and moved.score > limit:
            return AnyChange("yes", moved.proof)
    if old.repeats_itself or not differing:
        return AnyChange("no sign")
    rate = FALSE_ALARM_RATE if moved is None else FALSE_ALARM_RATE_BESIDE
    if old.repeated and len(differing) <= FEW:
        asked = np.array(compared_to, np.int64)
        # Few answers are no normal numbers, and canaries are rather those that noise made wrong.
        if by_noise(len(differing), asked, old, wrong) > _one_sided(rate, looks):
            return _explained(old, compared_to, differing)
    return _beyond_noise(found, old, compared_to, differing, (looks or normal)(1.0 - 2.0 * rate))


def _difference(
    old: BaselineAnswers,
    compared_to: list[int],
    differing: Mapping[int, ChangedItem],
    confidence: Mapping[int, float],
) -> str:
    """Give the proof that an API without noise changed; empty if there is none."""
    if differing:
        return f"{len(differing):,} of {len(compared_to):,} answers differ"
    if not old.confidence_repeats or old.confidence is None:
        return ""
    before = old.confidence
    changed = sum(abs(before[place] - now) > SAME_CONFIDENCE for place, now in confidence.items())
    if not changed:
        return ""
    return f"the confidence of {changed:,} of {len(confidence):,} answers is not what it was"


def _asked(found: Estimate, compared_to: list[int]) -> Sample:
    """Give those of the answers that represent others and have a baseline answer."""
    asked = found.now[0]
    return asked.take(np.isin(asked.place, np.array(compared_to, np.int64)) & (asked.weight > 0.0))


def _beyond_noise(
    found: Estimate | None,
    old: BaselineAnswers,
    compared_to: list[int],
    differing: Mapping[int, ChangedItem],
    limit: float,
) -> AnyChange:
    """Say whether answers differ more often, or in another way, than by noise alone.

    That is so if the score is above the limit.

    Each answer has its weight. Unweighted counts would find change where there is none: items of
    low confidence are asked more often, and there an API contradicts itself more often
    (decision 0011).
    """
    if found is None:
        return AnyChange("noise")
    if not old.repeated:
        why = "the API contradicts itself, and none of these items was asked twice"
        if not old.noise_counts[1]:
            why = "too few items were asked twice to say that the API does not contradict itself"
        return AnyChange("noise", why)
    asked = _asked(found, compared_to)
    if not len(asked.place):
        return AnyChange("noise")
    differs = np.isin(asked.place, list(differing))
    changes = [differing[place] for place in asked.place[differs].tolist()]
    frequency = _frequency_score(asked, differs, old)
    direction = _direction_score(changes, asked.weight[differs])
    score = FREQUENCY_WEIGHT * frequency + sqrt(1.0 - FREQUENCY_WEIGHT**2) * direction

    if score <= limit:
        return _explained(old, compared_to, differing)
    share, noise = _told(old, compared_to, differing)
    return AnyChange("yes", f"{share}, more or in another way than noise explains: {noise}")


def _explained(
    old: BaselineAnswers, compared_to: list[int], differing: Mapping[int, ChangedItem]
) -> AnyChange:
    """Say that noise may be all there is."""
    share, noise = _told(old, compared_to, differing)
    return AnyChange("noise", f"{share}, which noise may explain: {noise}")


def _told(
    old: BaselineAnswers, compared_to: list[int], differing: Mapping[int, ChangedItem]
) -> tuple[str, str]:
    """Write how many answers differ, and how often the API contradicts itself."""
    rate = 100 * old.contradicted / old.repeated
    return (
        f"{len(differing):,} of {len(compared_to):,} answers differ",
        f"{rate:.2g}% of {old.repeated:,} items asked twice were answered differently",
    )


def _one_sided(rate: float, looks: StandardErrors | None) -> float:
    """Give the probability that belongs to a rate of false alarms, less where one looks often."""
    from scipy.special import ndtr

    return float(ndtr(-(looks or normal)(1.0 - 2.0 * rate)))


def _frequency_score(asked: Sample, differs: Bools, old: BaselineAnswers) -> float:
    """Give how much more often answers (n,) differ than those to items asked twice did.

    It is in standard errors, among items of about the same confidence, and under the same
    probability for both (as in the test of Cochran, Mantel and Haenszel).
    """
    bins, twice = confidence_bins(old), np.array(list(old.asked_twice), np.int64)
    contradicted = np.array(list(old.asked_twice.values()), bool)
    new = _BinRates.of(bins[asked.place], asked.weight, differs)
    noise = _BinRates.of(bins[twice], np.ones(len(twice)), contradicted)
    answers = np.maximum(new.answers + noise.answers, 1e-300)
    weight = new.answers * noise.answers / answers
    common = (new.answers * new.share + noise.answers * noise.share) / answers
    of_one = common * (1.0 - common)
    both = weight > 0.0
    variance = (
        np.maximum(of_one[both] / new.answers[both], new.variance[both])
        + of_one[both] / noise.answers[both]
    )
    standard_error = float(np.sqrt((weight[both] ** 2 * variance).sum()))
    if standard_error <= 0.0:
        return 0.0
    return float((weight * (new.share - noise.share)).sum()) / standard_error


def _direction_score(changes: Sequence[ChangedItem], weight: Floats) -> float:
    """Give how surely one answer became another more often than the other way round.

    Changes (n,) by noise alone go both ways equally often, wherever they are (Bowker's test, by
    weight). The score is then a standard normal number.
    """
    from scipy.special import chdtrc, ndtri

    if not changes:
        return 0.0
    number: dict[tuple[str, str], int] = {}
    pairs = []
    for item in changes:
        # Both directions between two answers are one pair.
        pair = min(item.old, item.new), max(item.old, item.new)
        pairs.append(number.setdefault(pair, len(number)))
    upwards = np.array([item.old < item.new for item in changes])
    balance = np.bincount(pairs, np.where(upwards, weight, -weight))
    variance = np.bincount(pairs, weight**2)
    p_value = float(chdtrc(len(variance), float((balance**2 / variance).sum())))
    return -float(ndtri(min(max(p_value, 1e-300), 1.0 - 1e-12)))


@dataclass(frozen=True, slots=True, eq=False)
class _BinRates:
    """How often answers differ in each bin of confidence (B,)."""

    share: Floats
    """(B,)"""
    answers: Floats
    """(B,) the effective number of answers, (sum w)^2 / sum w^2"""
    variance: Floats
    """(B,) of the share"""

    @classmethod
    def of(cls, bins: Codes, weight: Floats, differs: Bools) -> "_BinRates":
        total = np.bincount(bins, weight, CONFIDENCE_BINS)
        divisor = np.where(total > 0.0, total, 1.0)  # A bin without answers has the share 0.
        share = np.bincount(bins, weight * differs, CONFIDENCE_BINS) / divisor
        squares = np.bincount(bins, weight**2, CONFIDENCE_BINS)
        residual = differs - share[bins]
        variance = np.bincount(bins, weight**2 * residual**2, CONFIDENCE_BINS) / divisor**2
        return cls(share, total**2 / np.where(squares > 0.0, squares, 1.0), variance)
