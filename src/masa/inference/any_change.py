"""Did anything change at all? Answers that differ are proof, unless the API contradicts itself anyway."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.data.features import ranks
from masa.inference.estimate import Estimate
from masa.inference.readings import Looks
from masa.inference.sample import Sample
from masa.inference.spread import normal
from masa.records import ERROR, Bools, ChangedItem, Codes, Column, Floats, Ints

SURE = 0.035
"""The chance of an error in saying that an API moved that contradicts itself."""

PARTS = 5
"""Noise is compared among items of about the same confidence, in so many parts of equal size."""

FLOOR = 0.9
"""How much it counts that answers differ more often than by noise; the rest is that they differ in one direction."""

SAME = 1e-9
"""Confidences that differ by no more are the same."""


@dataclass(frozen=True, slots=True)
class AnyChange:
    """Whether anything changed, and what shows it."""

    said: str
    """yes, no sign or noise"""
    proof: str = ""


def differences(
    data: Dataset, old: BaselineAnswers, places: Ints, answers: Column
) -> tuple[list[int], dict[int, ChangedItem]]:
    """Give the places whose old and new answers are both known, and the items where they differ, by place."""
    before = np.full(len(data), -1, np.int32)
    before[old.places] = old.answers.codes
    both: list[int] = []
    differing: dict[int, ChangedItem] = {}
    for place, code, then in zip(
        places.tolist(), answers.codes.tolist(), before[places].tolist(), strict=True
    ):
        was, new = old.answers.values[then] if then >= 0 else ERROR, answers.values[code]
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
    confidence: Mapping[int, float] | None = None,
    looks: Looks | None = None,
) -> AnyChange:
    """Say whether anything changed.

    For an API that repeats itself any answer that differs is proof; so is a confidence (by place) that moved, if it was seen to
    repeat those too. For one that contradicts itself more answers must differ than that explains.
    """
    if not old.repeats_itself:
        return (
            _beyond_noise(found, old, compared_to, differing, looks)
            if differing
            else AnyChange("no sign")
        )
    if differing:
        return AnyChange("yes", f"{len(differing):,} of {len(compared_to):,} answers differ")
    if old.confidence_repeats and old.confidence is not None and confidence:
        apart = sum(abs(old.confidence[place] - now) > SAME for place, now in confidence.items())
        if apart:
            return AnyChange(
                "yes",
                f"the confidence of {apart:,} of {len(confidence):,} answers is not what it was",
            )
    return AnyChange("no sign")


def _beyond_noise(
    found: Estimate | None,
    old: BaselineAnswers,
    compared_to: list[int],
    differing: Mapping[int, ChangedItem],
    looks: Looks | None,
) -> AnyChange:
    """Say whether more answers differ, or differ otherwise, than those of an API would that only contradicts itself.

    Each answer counts for the items it stands for: where the API is unsure it is asked more, and contradicts itself more.
    """
    if found is None:
        return AnyChange("noise")
    if not old.repeated:
        return AnyChange(
            "noise", "the API contradicts itself, and none of these items was asked twice"
        )
    asked = found.now[0]
    asked = asked.take(np.isin(asked.place, np.array(compared_to, np.int64)) & (asked.weight > 0.0))
    if not len(asked.place):
        return AnyChange("noise")
    apart = np.isin(asked.place, list(differing))
    became = [differing[place] for place in asked.place[apart].tolist()]
    excess, lopsided = _excess(asked, apart, old), _lopsided(became, asked.weight[apart])
    floor = f"{100 * old.contradicted / old.repeated:.2g}% of {old.repeated:,} that were asked for twice"
    share = f"{len(differing):,} of {len(compared_to):,} answers differ"
    if FLOOR * excess + sqrt(1.0 - FLOOR**2) * lopsided <= (looks or normal)(1.0 - 2.0 * SURE):
        return AnyChange("noise", f"{share}, which the {floor} may explain")
    return AnyChange("yes", f"{share}, more or otherwise than the {floor} explain")


def _excess(asked: Sample, apart: Bools, old: BaselineAnswers) -> float:
    """Give how much more often answers differ (n,) than those that were asked for twice did, in standard errors.

    Among items of about the same confidence; under the same chance for both, as in the test of Cochran, Mantel and Haenszel.
    """
    part, again = _parts(old), np.array(list(old.asked_twice), np.int64)
    new = _Rates.of(part[asked.place], asked.weight, apart)
    noise = _Rates.of(
        part[again], np.ones(len(again)), np.array(list(old.asked_twice.values()), bool)
    )
    weight = new.worth * noise.worth / np.maximum(new.worth + noise.worth, 1e-300)
    usual = (new.worth * new.share + noise.worth * noise.share) / np.maximum(
        new.worth + noise.worth, 1e-300
    )
    even = usual * (1.0 - usual)
    both = weight > 0.0
    variance = (
        np.maximum(even[both] / new.worth[both], new.variance[both])
        + even[both] / noise.worth[both]
    )
    scatter = float(np.sqrt((weight[both] ** 2 * variance).sum()))
    return float((weight * (new.share - noise.share)).sum()) / scatter if scatter > 0.0 else 0.0


def _lopsided(became: Sequence[ChangedItem], weight: Floats) -> float:
    """Give, from those (n,) that differ, how surely one answer became another more often than the other way round.

    An API that only contradicts itself does either equally often, wherever that is (Bowker's test, by weight). The result is
    a standard normal number then.
    """
    from scipy.special import chdtrc, ndtri

    if not became:
        return 0.0
    number: dict[tuple[str, str], int] = {}
    pair = [
        number.setdefault((min(item.old, item.new), max(item.old, item.new)), len(number))
        for item in became
    ]
    rises = np.array([item.old < item.new for item in became])
    balance, squares = (
        np.bincount(pair, np.where(rises, weight, -weight)),
        np.bincount(pair, weight**2),
    )
    chance = float(chdtrc(len(squares), float((balance**2 / squares).sum())))
    return -float(ndtri(min(max(chance, 1e-300), 1.0 - 1e-12)))


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """How often something happened in each part (B,)."""

    share: Floats
    worth: Floats
    """answers' worth"""
    variance: Floats

    @classmethod
    def of(cls, part: Codes, weight: Floats, happened: Bools) -> "_Rates":
        total = np.bincount(part, weight, PARTS)
        whole = np.where(total > 0.0, total, 1.0)
        share = np.bincount(part, weight * happened, PARTS) / whole
        squares = np.bincount(part, weight**2, PARTS)
        variance = np.bincount(part, weight**2 * (happened - share[part]) ** 2, PARTS) / whole**2
        return cls(share, total**2 / np.where(squares > 0.0, squares, 1.0), variance)


def _parts(old: BaselineAnswers) -> Codes:
    """Split all items (N,) by the confidence of their old answers, the least confident first."""
    if old.confidence is None:
        return np.zeros(1 + int(old.places.max()), np.int32)
    return np.minimum((ranks(old.confidence) * PARTS).astype(np.int32), PARTS - 1)
