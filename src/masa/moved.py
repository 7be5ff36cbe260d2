"""Did anything change at all? Answers that differ are proof, unless the API contradicts itself anyway."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from masa.change import Estimated
from masa.clues import ranks
from masa.dataset import Dataset
from masa.intervals import normal
from masa.old import Old
from masa.records import ERROR, Bools, ChangedItem, Codes, Column, Floats, Ints
from masa.sure import Looks

SURE = 0.02
"""The chance of an error in saying that an API moved that contradicts itself."""

PARTS = 5
"""Noise is compared among items of about the same confidence, in so many parts of equal size."""

FALLS = 0.5
"""From part to part answers are taken to change that much less often."""

SAME = 1e-9
"""Confidences that differ by no more are the same."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Whether anything changed, and what shows it."""

    said: str
    """yes, no sign or noise"""
    proof: str = ""


def differences(data: Dataset, old: Old, places: Ints, answers: Column) -> tuple[list[int], dict[int, ChangedItem]]:
    """Give the places whose old and new answers are both known, and the items where they differ, by place."""
    before = np.full(len(data), -1, np.int32)
    before[old.places] = old.answers.codes
    both: list[int] = []
    differing: dict[int, ChangedItem] = {}
    for place, code, then in zip(places.tolist(), answers.codes.tolist(), before[places].tolist(), strict=True):
        was, new = old.answers.values[then] if then >= 0 else ERROR, answers.values[code]
        if ERROR in (was, new):
            continue
        both.append(place)
        if was != new:
            label = data.label.values[data.label.codes[place]]
            differing[place] = ChangedItem(data.name(place), label, was, new)
    return both, differing


def moved(
    found: Estimated | None,
    old: Old,
    compared_to: list[int],
    differing: Mapping[int, ChangedItem],
    *,
    confidence: Mapping[int, float] | None = None,
    looks: Looks | None = None,
) -> Moved:
    """Say whether anything changed.

    For an API that repeats itself any answer that differs is proof; so is a confidence (by place) that moved, if it was seen to
    repeat those too. For one that contradicts itself more answers must differ than that explains.
    """
    if not old.steady:
        return _beyond_noise(found, old, compared_to, differing, looks) if differing else Moved("no sign")
    if differing:
        return Moved("yes", f"{len(differing):,} of {len(compared_to):,} answers differ")
    if old.same_confidence and old.confidence is not None and confidence:
        apart = sum(abs(old.confidence[place] - now) > SAME for place, now in confidence.items())
        if apart:
            return Moved("yes", f"the confidence of {apart:,} of {len(confidence):,} answers is not what it was")
    return Moved("no sign")


def _beyond_noise(
    found: Estimated | None, old: Old, compared_to: list[int], differing: Mapping[int, ChangedItem], looks: Looks | None
) -> Moved:
    """Compare how many answers differ with how many of those asked twice did, among items of about the same confidence.

    Each answer counts for the items it stands for: where the API is unsure it is asked more, and contradicts itself more.
    """
    if found is None:
        return Moved("noise")
    chosen = found.now[0]
    mine = np.isin(chosen.place, np.array(compared_to, np.int64))
    places, stands = chosen.place[mine], chosen.stands[mine]
    if not stands.sum() > 0.0:
        return Moved("noise")
    part = _parts(old)
    again = np.array(list(old.again), np.int64)
    new = _rates(part[places], stands, np.isin(places, list(differing)))
    noise = _rates(part[again], np.ones(len(again)), np.array(list(old.again.values()), bool))
    usual = (new.worth * new.share + noise.worth * noise.share) / np.maximum(new.worth + noise.worth, 1e-300)
    even = usual * (1.0 - usual)
    known = (new.worth > 0.0) & (noise.worth > 0.0)
    variance = np.where(known, np.maximum(even / np.maximum(new.worth, 1e-300), new.variance), 0.0)
    variance += np.where(known, even / np.maximum(noise.worth, 1e-300), 0.0)
    reach = (looks or normal)(1.0 - 2.0 * SURE / 2.0)
    sizes = np.bincount(part, minlength=PARTS) / len(part)
    likely = FALLS ** np.arange(PARTS) * new.worth * noise.worth / np.maximum(new.worth + noise.worth, 1e-300)
    for weight in (np.where(known, sizes, 0.0), np.where(known, likely, 0.0)):
        scatter = float(np.sqrt((weight**2 * variance).sum()))
        if scatter > 0.0 and float((weight * (new.share - noise.share)).sum()) > reach * scatter:
            floor = f"{100 * old.contradicted / old.repeated:.2g}% of {old.repeated:,} answers that were asked for twice"
            return Moved("yes", f"{len(differing):,} of {len(compared_to):,} answers differ, more than the {floor} explain")
    return Moved("noise")


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """How often something happened in each part (B,)."""

    share: Floats
    worth: Floats
    """answers' worth"""
    variance: Floats


def _rates(part: Codes, stands: Floats, happened: Bools) -> _Rates:
    total = np.bincount(part, stands, PARTS)
    whole = np.where(total > 0.0, total, 1.0)
    share = np.bincount(part, stands * happened, PARTS) / whole
    squares = np.bincount(part, stands**2, PARTS)
    variance = np.bincount(part, stands**2 * (happened - share[part]) ** 2, PARTS) / whole**2
    return _Rates(share, np.where(squares > 0.0, total**2 / np.where(squares > 0.0, squares, 1.0), 0.0), variance)


def _parts(old: Old) -> Codes:
    """Split all items (N,) by the confidence of their old answers, the least confident first."""
    if old.confidence is None:
        return np.zeros(1 + int(old.places.max()), np.int32)
    return np.minimum((ranks(old.confidence) * PARTS).astype(np.int32), PARTS - 1)
