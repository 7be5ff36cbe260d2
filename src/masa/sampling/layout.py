"""The items as the kernels of predictive sampling see them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from masa.data.features import OTHER, VOCABULARY, Features, Words, prices, ranks
from masa.data.strata import Strata
from masa.records import ERROR, INVALID, UNLABELLED, Bools, Codes, Column, Floats, Ints, in_order
from masa.sampling.kernels import predictive as kernel
from masa.sampling.shrunken import designed
from masa.settings import Objective

BASE, RISES_WITH_DOUBT, SOONER_AT_THE_BOTTOM, DISAGREES = -4.5, -1.5, 1.0, 1.0
"""The model before any answer: 1% change, more of the answers of little confidence, and where others disagree."""

SMALL = 10
"""Items of one label and one old answer: with fewer they are weighed together with others of the label."""

CANARIES = 10
"""Items that are asked because they are the likeliest to have changed, and at most one in so many of all."""

ONE_IN = 50


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The items as the kernels see them."""

    labels: tuple[str, ...]
    names: tuple[str, ...]
    """(P,) the answers"""
    items: kernel.Items
    cells: kernel.Cells
    goal: kernel.Goal
    prior: kernel.Prior
    rest: kernel.Strata
    """what is asked by once the old answers tell little"""
    likeliest: Codes
    """those that may be canaries, the likeliest to have changed first"""
    canaries: Codes
    """the first of them"""
    old: Codes
    """(N,) the old answer of each item, as a place in names"""
    extra_variance: Floats | None = None
    """(N,) what a residual adds to the variance for its share of the estimate, where the items stand for others besides"""

    @classmethod
    def of(
        cls,
        label: Column,
        features: Features,
        *,
        weight: Floats,
        objective: Objective | None = None,
        cost: Floats | None = None,
        group: Column | None = None,
        new: Sequence[str] = (),
        rest: Strata | None = None,
        canaries: int = 0,
        seed: int = 0,
        extra_variance: Floats | None = None,
    ) -> "Layout":
        """Lay the items out; weight (N,) is the share of each in the estimate, cost (N,) its price.

        With groups (N,) each of them is to be known as well as the others, however small. Rest are the strata to go on with
        once the old answers tell little, if that may be. There are so many canaries, or as many as usual.
        """
        wanted = objective or Objective()
        names = layout_names(label, features.old, new)
        place = {name: code for code, name in enumerate(names)}
        old = np.array([place[name] for name in features.old.values], np.int32)[features.old.codes]
        right = np.array([place.get(name, -1) for name in label.values], np.int32)
        labelled = np.array([name != UNLABELLED for name in label.values])[label.codes]
        kinds, cell = np.unique(
            label.codes.astype(np.int64) * len(names) + old, return_inverse=True
        )
        cell_label, cell_old = (
            (kinds // len(names)).astype(np.int32),
            (kinds % len(names)).astype(np.int32),
        )
        columns, prior = [((right[label.codes] != old) & labelled).astype(np.float64)], [BASE, 0.0]
        rank = np.full(len(old), 0.5)
        if features.confidence is not None:
            rank = ranks(features.confidence)
            columns += [rank, np.exp(-5.0 * rank)]
            prior += [RISES_WITH_DOUBT, SOONER_AT_THE_BOTTOM]
        columns += list(features.disagreeing().T)
        prior += [DISAGREES] * len(features.also)
        numbers = np.array(columns, np.float32).T.copy()
        words = features.words or Words(np.zeros(len(old) + 1, np.int64), np.zeros(0, np.int32))
        urge = weight / np.sqrt(prices(cost, len(old)))
        if group is not None:
            urge /= np.bincount(group.codes, weight, len(group.values))[group.codes] + 1e-300
        strata = rest or Strata.build(label)
        design = designed(strata, names, old=None, objective=wanted, cost=cost)
        likeliest, sung = _likeliest(
            numbers @ np.array(prior[1:]), weight > 0.0, labelled, canaries, seed
        )
        return cls(
            labels=label.values,
            names=names,
            items=kernel.Items(
                cell=cell.astype(np.int32),
                numbers=numbers,
                word_start=words.start,
                words=words.codes,
                weight=weight,
                urge=urge,
                order=np.lexsort((rank, old, label.codes)).astype(np.int32),
            ),
            cells=_cells(
                cell_label,
                cell_old,
                right[cell_label],
                np.bincount(cell, weight),
                np.bincount(cell),
            ),
            goal=kernel.Goal(wanted.table(label.values, names), wanted.linear),
            prior=kernel.Prior(np.array(prior), VOCABULARY if len(words.codes) else 0),
            rest=kernel.Strata(
                design, strata.items, strata.of(np.arange(len(old))), rest is not None
            ),
            likeliest=likeliest,
            canaries=likeliest[:sung],
            old=old,
            extra_variance=extra_variance,
        )

    def left(self, places: Ints, batch: Codes) -> Ints:
        """Give how many items that count were left before each batch (E,), of those asked (n,) with a batch (n,)."""
        counts = self.items.urge > 0.0
        asked = np.bincount(batch, counts[places]).astype(np.int64)
        return int(np.count_nonzero(counts)) - np.concatenate(([0], np.cumsum(asked)[:-1]))

    def targets(self, places: Ints, answers: Column) -> Codes:
        """Give what the items at these places (n,) changed to (n,), from their answers, or -1 where they did not."""
        place = {name: code for code, name in enumerate(self.names)}
        other = place.get(OTHER, -1)
        code = np.array([place.get(name, other) for name in answers.values], np.int32)[
            answers.codes
        ]
        return np.where(code == self.old[places], -1, code).astype(np.int32)


def _cells(
    label: Codes, old: Codes, right: Codes, weight: "Floats | Ints", size: Ints
) -> kernel.Cells:
    """Put the small cells (C,) of a label together, those that were right and those that were wrong."""
    kind = np.where(
        size < SMALL,
        2 * label.astype(np.int64) + (right == old),
        2 * (int(label.max()) + 1) + np.arange(len(label)),
    )
    _, group = np.unique(kind, return_inverse=True)
    together = np.bincount(group, weight).astype(np.float64)
    return kernel.Cells(
        label, old, right, weight.astype(np.float64), group.astype(np.int32), together
    )


def layout_names(label: Column, old: Column, new: Sequence[str] = ()) -> tuple[str, ...]:
    """Give the answers that the model knows: labels, old answers and reserved ones, and all others under one name."""
    known = tuple(
        name for name in in_order((*label.values, *old.values, *new)) if name != UNLABELLED
    )
    return (
        known
        if new
        else (*(name for name in known if name not in (INVALID, ERROR)), INVALID, ERROR, OTHER)
    )


def _likeliest(
    likely: Floats, counts: Bools, labelled: Bools, wanted: int, seed: int
) -> tuple[Codes, int]:
    """Give the items that have changed most likely before anything is known, the likeliest first, and how many are canaries.

    Of those (N,) that count, and of those without a label (N,), which can be asked for nothing else and so come first among
    equals. Half of what may be asked is left to chance. Where all are alike there are none, if none are wanted.
    """
    may = counts | ~labelled
    half = int(np.count_nonzero(may)) // 2
    count = min(wanted, half) if wanted else min(CANARIES, int(np.count_nonzero(may)) // ONE_IN)
    if not wanted and labelled.all() and likely.min() == likely.max():
        count = 0
    luck = np.random.default_rng(seed % 2**63).random(len(likely))
    order = np.lexsort((luck, labelled, -likely, ~may))
    return order[:half].astype(np.int32), count
