"""What an API answered before, laid over the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import DataError
from masa.records import ERROR, Bools, Column, Floats, Ints, in_order

ENOUGH_REPEATS = 100
"""If none of so many items is answered differently when asked twice, the API has no noise."""


@dataclass(frozen=True, slots=True)
class BaselineAnswers:
    """What the API answered before, laid over the data."""

    places: Ints
    """(n,) the items that have a baseline answer"""
    answers: Column
    """over those items"""
    confidence: Floats | None = None
    """(n,) of the answers, where all have one"""
    version: str | None = None
    run: int | None = None
    asked_twice: Mapping[int, bool] = field(default_factory=dict)
    """the places of the items that were asked twice, and whether the two answers differ"""
    confidence_twice: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    """both confidences of the items that were asked twice, by place, where they have them"""
    asked_twice_before: tuple[int, int] = (0, 0)
    """how many items an earlier run asked twice, and how many of them were answered differently"""
    confidence_repeats: bool = False
    """whether many items were asked twice, and each was answered with the same confidence twice"""
    weight: Floats | None = None
    """(n,) the share of all items that each represents; None where all items are known"""
    extra_variance: Floats | None = None
    """(n,) what a squared residual of the item adds to the variance of a sum over all items, per
    unit of its weight, because the item represents others besides itself"""
    uncovered_share: float = 0.0
    """the share of all items whose labels have no baseline answer"""
    uncovered: tuple[str, ...] = ()
    """those labels, and groups"""
    drawn_evenly: bool = True
    """whether the items of a label were drawn with equal probabilities"""
    source: Ints | None = None
    """(n,) the run that each answer is from, where they are from the store"""
    notes: tuple[str, ...] = ()

    @property
    def repeated(self) -> int:
        """How many items were asked twice."""
        return len(self.asked_twice)

    @property
    def contradicted(self) -> int:
        """How many of them were answered differently."""
        return sum(self.asked_twice.values())

    @property
    def repeats_itself(self) -> bool:
        """Whether the API is taken to have no noise: none was seen, and few repeats prove nothing.

        An API that was never asked twice is taken to repeat itself.
        """
        repeated, contradicted = self.noise_counts
        if contradicted:
            return False
        return repeated == 0 or repeated >= ENOUGH_REPEATS

    @property
    def noise_counts(self) -> tuple[int, int]:
        """How many items were asked twice and how many of them were answered differently.

        Here or by an earlier run, whichever asked more.
        """
        return max((self.repeated, self.contradicted), self.asked_twice_before)

    def replaced_by(self, later: "BaselineAnswers") -> "BaselineAnswers":
        """Take later answers about some of these items; all others keep theirs."""
        inside = np.isin(later.places, self.places)
        place = np.minimum(np.searchsorted(self.places, later.places), len(self.places) - 1)
        names = in_order(self.answers.values + later.answers.values)
        codes, new = self.answers.on(names).codes.copy(), later.answers.on(names).codes
        if ERROR in names:
            # A call that failed tells nothing: the earlier answer is kept.
            inside = inside & (new != names.index(ERROR))
        codes[place[inside]] = new[inside]
        confidence = None
        if self.confidence is not None and later.confidence is not None:
            confidence = self.confidence.copy()
            confidence[place[inside]] = later.confidence[inside]
        source = None
        if self.source is not None and later.source is not None:
            source = self.source.copy()
            source[place[inside]] = later.source[inside]
        return replace(
            self,
            answers=Column(self.answers.name, names, codes),
            confidence=confidence,
            source=source,
            version=later.version,
            run=later.run,
            asked_twice=later.asked_twice or self.asked_twice,
            confidence_twice=later.confidence_twice or self.confidence_twice,
            asked_twice_before=max(self.noise_counts, later.noise_counts),
            confidence_repeats=later.confidence_repeats or self.confidence_repeats,
        )

    def joined_by(self, later: "BaselineAnswers", data: Dataset) -> "BaselineAnswers":
        """Add answers about other items of the data, drawn evenly from those without one.

        There are then two estimates of any sum over all items. One lets the first items represent
        all. The other knows the first items, and lets the later ones represent the rest. They are
        averaged by how many items each rests on.
        """
        twice = np.isin(later.places, self.places)
        if twice.all():
            return self.replaced_by(later)
        if twice.any():
            return self.replaced_by(later._only(twice)).joined_by(later._only(~twice), data)
        places = np.concatenate((self.places, later.places))
        order = np.argsort(places, kind="stable")
        names = in_order(self.answers.values + later.answers.values)
        codes = np.concatenate((self.answers.on(names).codes, later.answers.on(names).codes))
        confidence = None
        if self.confidence is not None and later.confidence is not None:
            confidence = np.concatenate((self.confidence, later.confidence))[order]
        weight = extra_variance = None
        if len(places) < len(data):
            weight, extra_variance = self._joined_weights(len(later.places), data, places)
            weight, extra_variance = weight[order], extra_variance[order]
        return replace(
            self,
            places=places[order],
            answers=Column(self.answers.name, names, codes[order]),
            confidence=confidence,
            version=later.version,
            run=later.run,
            asked_twice={**self.asked_twice, **later.asked_twice},
            confidence_twice={**self.confidence_twice, **later.confidence_twice},
            source=_joined(self.source, later.source, order),
            weight=weight,
            extra_variance=extra_variance,
            drawn_evenly=weight is None,
        )

    def _only(self, mine: Bools) -> "BaselineAnswers":
        """Keep some of the answers (n,)."""

        def kept(values: Any) -> Any:
            return None if values is None else values[mine]

        return replace(
            self,
            places=self.places[mine],
            answers=Column(self.answers.name, self.answers.values, self.answers.codes[mine]),
            confidence=kept(self.confidence),
            weight=kept(self.weight),
            extra_variance=kept(self.extra_variance),
            source=kept(self.source),
        )

    def _joined_weights(self, later: int, data: Dataset, places: Ints) -> tuple[Floats, Floats]:
        """Give weights and extra variance of the items of both, in the order of these places."""
        assert self.weight is not None and self.extra_variance is not None  # noqa: S101, PT018
        first, items = len(self.places), len(data)
        variance = self.weight * self.extra_variance
        first_size = 1.0 / max(float(variance.sum()), 1.0 / items)
        part = first_size / (first_size + later)
        rest = (items - first) / (items * later)
        weight = np.concatenate(
            (
                part * self.weight + (1.0 - part) / items,
                np.full(later, (1.0 - part) * rest),
            )
        )
        left = 1.0 - later / (items - first)
        added = np.concatenate(
            (part**2 * variance, np.full(later, ((1.0 - part) * rest) ** 2 * left))
        )
        return weighed_by_label(data, places, weight, added)


def _joined(first: Ints | None, later: Ints | None, order: Ints) -> Ints | None:
    if first is None or later is None:
        return None
    return np.concatenate((first, later))[order]


def from_column(data: Dataset, answers: Column, confidence: str | None = None) -> BaselineAnswers:
    """Take the baseline answers from a column over the data, and their confidence from another."""
    return BaselineAnswers(np.arange(len(data)), answers, data.numbers.get(confidence or ""))


def narrowed(data: Dataset, old: BaselineAnswers) -> tuple[Dataset, BaselineAnswers]:
    """Keep the items with a baseline answer, which represent the others.

    Asked again, they tell more about what changed than new items would.
    """
    if old.weight is None:
        return data, old
    kept = data.take(old.places)
    if not kept.labels:
        raise DataError(
            "the baseline has only answers about items without a label",
            hint="make a new baseline (masa baseline)",
        )
    notes = [
        f"the baseline has answers about {len(kept):,} of {len(data):,} items: only these are "
        "asked, and they represent all; the intervals and the error allow for that"
    ]
    with_answers = np.unique(data.label.codes[old.places[old.weight > 0.0]])
    without = data.labelled & ~np.isin(data.label.codes, with_answers)
    uncovered_share = float(np.count_nonzero(without) / np.count_nonzero(data.labelled))
    labels = tuple(
        data.label.values[code] for code in np.unique(data.label.codes[without]).tolist()
    )
    if labels:
        notes.append(
            f"the baseline has no answers about {len(labels):,} of the labels ({_some(labels)}), "
            f"{100 * uncovered_share:.2g}% of the items: how they changed cannot be measured, "
            "and the intervals allow for that"
        )
    groups = _uncovered_groups(data, kept)
    if groups:
        notes.append(
            f"the baseline has no answers about {len(groups):,} of the groups ({_some(groups)}): "
            "they are left out"
        )
    now = {before: place for place, before in enumerate(old.places.tolist())}
    return kept, replace(
        old,
        places=np.arange(len(kept)),
        asked_twice={now[before]: differs for before, differs in old.asked_twice.items()},
        confidence_twice={now[before]: both for before, both in old.confidence_twice.items()},
        uncovered_share=uncovered_share,
        uncovered=labels + groups,
        notes=(*old.notes, *notes),
    )


def _uncovered_groups(data: Dataset, kept: Dataset) -> tuple[str, ...]:
    if data.group is None or kept.group is None:
        return ()
    return tuple(sorted(set(data.group.values) - set(kept.group.values)))


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(map(repr, names[:5]))
    if len(names) > 5:
        listed += ", ..."
    return listed


def labelled_only(data: Dataset, old: BaselineAnswers) -> tuple[Dataset, BaselineAnswers]:
    """Leave out the items without a label, of data whose items all have a baseline answer."""
    keep = np.flatnonzero(data.labelled)
    place = np.full(len(data), -1)
    place[keep] = np.arange(len(keep))
    twice = {int(place[item]): differs for item, differs in old.asked_twice.items()}
    confidences = {int(place[item]): both for item, both in old.confidence_twice.items()}

    def kept(values: Floats | None) -> Floats | None:
        return None if values is None else values[keep]

    return data.take(keep), replace(
        old,
        places=np.arange(len(keep)),
        answers=Column(old.answers.name, old.answers.values, old.answers.codes[keep]),
        confidence=kept(old.confidence),
        weight=kept(old.weight),
        extra_variance=kept(old.extra_variance),
        source=None if old.source is None else old.source[keep],
        asked_twice={item: differs for item, differs in twice.items() if item >= 0},
        confidence_twice={item: both for item, both in confidences.items() if item >= 0},
    )


def weighed_by_label(
    data: Dataset, places: Ints, weight: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """Bring the weights (n,) of items to what their labels have in the data now.

    Variance (n,) is what each item adds to the variance of a sum over all items; it is given back
    per unit of weight.
    """
    label = data.label.codes[places]
    together = np.bincount(label, weight, len(data.label.values))
    count = np.bincount(data.label.codes[data.labelled], minlength=len(together))
    share = np.where(together > 0.0, count, 0.0)
    factor = (share / max(share.sum(), 1.0) / np.where(together > 0.0, together, 1.0))[label]
    per_weight = np.divide(variance, weight, out=np.zeros(len(variance)), where=weight > 0.0)
    return weight * factor, per_weight * factor


def evenly_weighted(data: Dataset, places: Ints, levels: int) -> tuple[Floats, Floats]:
    """Give the weights and the extra variance (n,) of items drawn in proportion to the strata.

    Strata without answers are represented by others of their label, and
    labels by other labels.
    """
    strata = Strata.build(data.label, difficulty=data.difficulty, levels=levels)
    stratum = strata.of(places)
    asked = np.bincount(stratum, minlength=len(strata))
    answered = np.where(asked > 0, strata.weight, 0.0)
    by_label = np.bincount(strata.label, answered, len(strata.labels))
    carried = strata.label_weight / np.where(by_label > 0.0, by_label, 1.0)
    share = answered * carried[strata.label]
    weight = (share / (share.sum() or 1.0) / np.maximum(asked, 1))[stratum]
    # A stratum that was asked completely leaves nothing uncertain.
    return weight, weight * (1.0 - asked / strata.size)[stratum]
