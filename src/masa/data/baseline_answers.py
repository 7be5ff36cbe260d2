"""What an API answered before, laid over the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import DataError
from masa.records import Column, Floats, Ints

ENOUGH = 100
"""Items asked twice: if none of so many is answered differently, the API repeats itself."""


@dataclass(frozen=True, slots=True)
class BaselineAnswers:
    """What the API answered before, laid over the data."""

    places: Ints
    """(n,) the items whose old answer is known"""
    answers: Column
    """over those items"""
    confidence: Floats | None = None
    """(n,) of the answers, where all have one"""
    version: str | None = None
    run: int | None = None
    asked_twice: Mapping[int, bool] = field(default_factory=dict)
    """the places of the items that were asked twice, and whether they were answered differently"""
    noise_seen_before: bool = False
    """whether an earlier run saw the API contradict itself"""
    confidence_repeats: bool = False
    """whether the items that were asked twice, and are many, were answered with the same confidence both times"""
    weight: Floats | None = None
    """(n,) the share of all items that each stands for, where not all are known; together 1"""
    extra_variance: Floats | None = None
    """(n,) what a residual of it adds to the variance of a sum over all items, for the share of the sum that it is"""
    uncovered_share: float = 0.0
    """the share of all items of whose label nothing is known"""
    uncovered: tuple[str, ...] = ()
    """those labels, and groups"""
    drawn_evenly: bool = True
    """whether they were asked by chance alone, those of a label alike"""
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
        """Whether the API repeats itself: that is what is thought of one that was not asked twice often enough to tell."""
        return (
            not self.noise_seen_before
            and self.contradicted == 0
            and (self.repeated == 0 or self.repeated >= ENOUGH)
        )


def from_column(data: Dataset, answers: Column, confidence: str | None = None) -> BaselineAnswers:
    """Take the old answers from a column over the data, and their confidence from another."""
    return BaselineAnswers(np.arange(len(data)), answers, data.numbers.get(confidence or ""))


def narrowed(data: Dataset, old: BaselineAnswers) -> tuple[Dataset, BaselineAnswers]:
    """Keep the items whose old answer is known: they stand for the others, and asked again they tell most of what changed."""
    if old.weight is None:
        return data, old
    kept = data.take(old.places)
    if not kept.labels:
        raise DataError(
            "the baseline has only answers about items without a label",
            hint="make a new baseline (masa baseline)",
        )
    notes = [
        f"the baseline has {len(kept):,} of {len(data):,} items: they alone are asked and stand for all, "
        "which the intervals and the error allow for"
    ]
    known = np.unique(data.label.codes[old.places[old.weight > 0.0]])
    without = data.labelled & ~np.isin(data.label.codes, known)
    lost = float(np.count_nonzero(without) / np.count_nonzero(data.labelled))
    names = tuple(data.label.values[code] for code in np.unique(data.label.codes[without]).tolist())
    if names:
        notes.append(
            f"the baseline has nothing about {len(names):,} of the labels ({_some(names)}), {100 * lost:.2g}% of the items: "
            "nothing is known of what became of them, which the intervals allow for"
        )
    groups: tuple[str, ...] = ()
    if data.group is not None and kept.group is not None:
        groups = tuple(sorted(set(data.group.values) - set(kept.group.values)))
    if groups:
        notes.append(
            f"the baseline has nothing about {len(groups):,} of the groups ({_some(groups)}): they are left out"
        )
    place = {before: now for now, before in enumerate(old.places.tolist())}
    again = {place[before]: twice for before, twice in old.asked_twice.items()}
    return kept, replace(
        old,
        places=np.arange(len(kept)),
        asked_twice=again,
        uncovered_share=lost,
        uncovered=names + groups,
        notes=(*old.notes, *notes),
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def evenly(data: Dataset, places: Ints, levels: int) -> tuple[Floats, Floats]:
    """Tell what items (n,) stand for that were asked by chance, in proportion to the strata, and what they add to the variance.

    Strata of which none was asked are carried by others of their label, and labels by other labels.
    """
    strata = Strata.build(data.label, difficulty=data.difficulty, levels=levels)
    stratum = strata.of(places)
    asked = np.bincount(stratum, minlength=len(strata))
    some = np.where(asked > 0, strata.weight, 0.0)
    label = np.bincount(strata.label, some, len(strata.labels))
    share = some * (strata.label_weight / np.where(label > 0.0, label, 1.0))[strata.label]
    weight = (share / (share.sum() or 1.0) / np.maximum(asked, 1))[stratum]
    return weight, weight * (1.0 - asked / strata.size)[stratum]
