"""Whether confidences moved further than they wobble: a change may show there before any label.

How much a confidence wobbles is known from the items that were asked twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.features import ranks
from masa.inference.sample import Sample
from masa.records import Codes, Floats, Ints

CONFIDENCE_BINS = 5
"""Noise is compared among items of about the same confidence, in so many bins of equal size."""

MOST = 0.75
"""How far this share of the confidences of a bin moves is the unit in which it is measured."""

FAR = 0.998
"""The quantile of the wobble, in these units, beyond which a confidence has moved far."""

ENOUGH_TWICE = 50
"""With fewer confidences that were asked twice nothing is known of how they wobble."""

PARTS = 5
"""What is far is learned on all parts but one of the items asked twice, and counted on that one."""

ENOUGH_IN_BIN = 20
"""With fewer of them in a bin the unit is that of all."""

NEARLY_SURE = 0.99
"""Of an API that is this sure of most answers (a language model), log-odds are compared."""

SMALLEST = 1e-9
"""Confidences nearer to 0 or 1 are taken to be this near."""


@dataclass(frozen=True, slots=True)
class MovedConfidence:
    """How many confidences moved far, and how surely that is more than wobble."""

    moved: int
    compared: int
    twice: int
    """how many items with a confidence were asked twice"""
    score: float
    """a standard normal number, or less, where nothing changed"""

    @property
    def proof(self) -> str:
        """The proof in words."""
        return (
            f"the confidence of {self.moved:,} of {self.compared:,} answers moved further than "
            f"that of {self.twice:,} items asked twice explains"
        )


def confidence_bins(old: BaselineAnswers, count: int = CONFIDENCE_BINS) -> Codes:
    """Give the bin of each item (N,) by the confidence of its baseline answer, the lowest first."""
    if old.confidence is None:
        return np.zeros(1 + int(old.places.max()), np.int32)
    return np.minimum((ranks(old.confidence) * count).astype(np.int32), count - 1)


def moved_confidence(
    asked: Sample, old: BaselineAnswers, confidence: Mapping[int, float]
) -> MovedConfidence | None:
    """Compare how far confidences moved with how far they move when an item is asked twice.

    None where too little is known of that. What was answered does not matter here: a flip by noise
    has a confidence that is near to the other side.
    """
    if old.confidence is None or len(old.confidence_twice) < ENOUGH_TWICE:
        return None
    wobble = _Wobble.of(old)
    with_one = (asked.weight > 0.0) & np.isin(asked.place, np.array(list(confidence), np.int64))
    mine, weight = asked.place[with_one], asked.weight[with_one]
    if not len(mine):
        return None
    now = np.array([confidence[place] for place in mine.tolist()])
    far = wobble.far(mine, np.abs(wobble.scaled(now) - wobble.scaled(old.confidence[mine])))
    # As if the answers had one weight: so many would be as sure as these with theirs.
    like = float(weight.sum() ** 2 / (weight**2).sum())
    count = like * float(weight @ far) / float(weight.sum())
    return MovedConfidence(
        int(np.count_nonzero(far > 0.5)),
        len(mine),
        len(old.confidence_twice),
        _score(count, round(like) + 1, wobble.far_twice, wobble.twice),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Wobble:
    """How far confidences move when items are asked twice."""

    bins: Codes
    """(N,)"""
    scale: Floats
    """(B,) how far most of them move"""
    limits: Floats
    """(PARTS,) beyond it a confidence has moved far, in scales, as learned without one part"""
    log_odds: bool
    far_twice: int
    twice: int

    @classmethod
    def of(cls, old: BaselineAnswers) -> "_Wobble":
        """Learn it from the items asked twice."""
        assert old.confidence is not None  # noqa: S101
        log_odds = float(np.median(old.confidence)) > NEARLY_SURE
        bins = confidence_bins(old)
        places = np.array(sorted(old.confidence_twice), np.int64)
        first, again = np.array([old.confidence_twice[place] for place in places.tolist()]).T
        move = np.abs(_scaled(first, log_odds=log_odds) - _scaled(again, log_odds=log_odds))
        scale = _scale(move, bins[places])
        move /= scale[bins[places]]
        part = np.arange(len(places)) % PARTS
        limits = np.array(
            [np.quantile(move[part != one], FAR, method="higher") for one in range(PARTS)]
        )
        far = int(np.count_nonzero(move > limits[part]))
        return cls(bins, scale, limits, log_odds, far, len(places))

    def scaled(self, confidence: Floats) -> Floats:
        """Give confidences on the scale on which they are compared."""
        return _scaled(confidence, log_odds=self.log_odds)

    def far(self, places: Ints, move: Floats) -> Floats:
        """Give by how many of the limits items (n,) moved far, as a share."""
        moved = move / self.scale[self.bins[places]]
        return np.asarray((moved > self.limits[:, None]).mean(axis=0))


def _scaled(confidence: Floats, *, log_odds: bool) -> Floats:
    if not log_odds:
        return confidence
    inside = np.clip(confidence, SMALLEST, 1.0 - SMALLEST)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _scale(move: Floats, bins: Codes) -> Floats:
    """Give how far most confidences of each bin (B,) move: all, where it has too few of them."""
    scale = np.full(CONFIDENCE_BINS, np.quantile(move, MOST))
    for one in range(CONFIDENCE_BINS):
        mine = move[bins == one]
        if len(mine) >= ENOUGH_IN_BIN:
            scale[one] = np.quantile(mine, MOST)
    return np.maximum(scale, SMALLEST)


def _score(count: float, of: int, far_twice: int, twice: int) -> float:
    """Give how unlikely it is that so many moved far, if as large a share does as of those twice.

    The share is not known for certain: what the items asked twice leave possible is allowed for.
    Weighted answers may count in part.
    """
    from scipy.special import ndtri
    from scipy.stats import betabinom

    whole = floor(count)
    tails = np.arange(whole, whole + 2) - 1.0
    chances = np.maximum(betabinom.sf(tails, of, far_twice + 1, twice - far_twice), 1e-300)
    chance = float(np.exp(np.interp(count - whole, (0.0, 1.0), np.log(chances))))
    return -float(ndtri(min(chance, 1.0 - 1e-12)))
