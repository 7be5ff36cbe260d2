"""The items as the kernels of predictive sampling take them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from masa.data.features import OTHER, VOCABULARY, Features, Words, log_odds, prices, ranks
from masa.data.strata import Strata
from masa.records import ERROR, INVALID, UNLABELLED, Bools, Codes, Column, Floats, Ints, in_order
from masa.sampling.kernels.change_model import Cells, Goal, Items, Prior
from masa.sampling.kernels.predictive import StrataLayout
from masa.sampling.shrunken import designed
from masa.settings import Objective

CONSTANT = -4.5
"""The log odds of a change before any answer: about 1% of the answers change."""

OF_CONFIDENCE, OF_LOWEST_CONFIDENCE, OF_DISAGREEMENT = -1.5, 1.0, 1.0
"""The coefficients before any answer: answers of low confidence change more often, as do those that
other predictions disagree with. They belong to the rank of the confidence, to exp(-5 rank), and to
each of the other predictions."""

SMALL = 10
"""Cells with fewer items than this are weighted together with others of their label.

A cell holds the items of one label and one baseline answer."""

SOONER = 1.25
"""How much likelier an item is drawn that the last run did not ask. The inclusion probabilities
are known, so the estimate allows for it."""

CANARY_WRONG, CANARY_FLICKERED = 1.0, 2.0
"""What is added, for canaries, to the log odds of items whose baseline answer is wrong, and of
those that were asked twice and answered differently: they are near to where answers change."""

CANARY_UNLABELLED = 0.5
"""What is added to those of items without a label, which are asked for no other purpose."""

CANARY_STREAM = 1
"""Keeps the draws of canaries apart from others with the same seed."""

CANARY_FOCUS = 3.0
"""How much canaries are drawn from what is likely to have changed: the factor of its log odds."""

CANARIES, ONE_IN = 10, 50
"""The usual number of canaries, and the number of items that there must be for each of them."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemCells:
    """The items by label and baseline answer."""

    names: tuple[str, ...]
    """(P,) the answers"""
    cell: Codes
    """(N,) the cell of each item"""
    cells: Cells
    weight: Floats
    """(N,) the share of each item in the estimate"""
    extra_variance: Floats | None = None
    """(N,) as in `Layout`"""

    @classmethod
    def of(
        cls,
        label: Column,
        old: Column,
        *,
        weight: Floats,
        names: tuple[str, ...] | None = None,
        extra_variance: Floats | None = None,
    ) -> "ItemCells":
        """Sort the items (N,) into cells."""
        if names is None:
            names = layout_names(label, old)
        code_of = {name: code for code, name in enumerate(names)}
        before = np.array([code_of[name] for name in old.values], np.int32)[old.codes]
        right = np.array([code_of.get(name, -1) for name in label.values], np.int32)
        kinds, cell = np.unique(
            label.codes.astype(np.int64) * len(names) + before, return_inverse=True
        )
        cells = _cells(kinds, right, len(names), np.bincount(cell, weight), np.bincount(cell))
        return cls(names, cell.astype(np.int32), cells, weight, extra_variance)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The items as the kernels take them."""

    labels: tuple[str, ...]
    names: tuple[str, ...]
    """(P,) the answers"""
    items: Items
    cells: Cells
    goal: Goal
    prior: Prior
    rest: StrataLayout
    """what is drawn from after a switch to strata"""
    canary_odds: Floats
    """(N,) how likely each item is drawn as a canary, in log odds; -inf where it is none"""
    canary_count: int
    """the number of canaries"""
    old: Codes
    """(N,) the baseline answer of each item, as an index of names"""
    extra_variance: Floats | None = None
    """(N,) the factor of a squared residual that is added to the variance, per share of the
    estimate, where the items also represent others"""

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
        switches: bool = False,
        canaries: int = 0,
        asked_lately: Bools | None = None,
        extra_variance: Floats | None = None,
    ) -> "Layout":
        """Lay the items out; weight (N,) is the share of each in the estimate, cost (N,) its price.

        With groups (N,) each group is to be estimated as precisely as the others, however small it
        is. rest are the strata to switch to once the baseline answers predict little, if the run
        switches at all. canaries is the number of canaries, 0 for the usual one.
        """
        objective = objective or Objective()
        names = layout_names(label, features.old, new)
        code_of = {name: code for code, name in enumerate(names)}
        old_codes = np.array([code_of[name] for name in features.old.values], np.int32)
        old = old_codes[features.old.codes]
        right = np.array([code_of.get(name, -1) for name in label.values], np.int32)
        labelled = np.array([name != UNLABELLED for name in label.values])[label.codes]
        rank = _confidence_rank(features)
        was_wrong = (right[label.codes] != old) & labelled
        numbers, coefficients = _predictors(features, was_wrong, rank)
        words = features.words or Words(np.zeros(len(old) + 1, np.int64), np.zeros(0, np.int32))
        vocabulary = VOCABULARY if len(words.codes) else 0
        sorted_items = ItemCells.of(label, features.old, weight=weight, names=names)
        eligible = (weight > 0.0) | ~labelled
        count = _canary_count(numbers @ coefficients, eligible, labelled, canaries)
        canary_odds = _canary_odds(features, was_wrong) + CANARY_UNLABELLED * ~labelled
        return cls(
            labels=label.values,
            names=names,
            items=Items(
                cell=sorted_items.cell,
                numbers=numbers,
                word_start=words.start,
                words=words.codes,
                weight=weight,
                margin=_margins(features),
                priority=_priority(weight, cost, group, asked_lately),
                order=np.lexsort((rank, old, label.codes)).astype(np.int32),
            ),
            cells=sorted_items.cells,
            goal=Goal(objective.table(label.values, names), objective.linear),
            prior=Prior(np.concatenate(([CONSTANT], coefficients)), vocabulary),
            rest=_strata_layout(label, rest, names, objective, cost, switches=switches),
            canary_odds=np.where(eligible, canary_odds, -np.inf),
            canary_count=count,
            old=old,
            extra_variance=extra_variance,
        )

    def canaries(self, seed: int, count: int | None = None) -> Codes:
        """Draw the canaries of a run: others with another seed, and the first ones of more.

        They are drawn from all items, those rather that are likely to have changed (decision 0027).
        """
        if count is None:
            count = self.canary_count
        luck = np.random.default_rng((seed % 2**63, CANARY_STREAM)).gumbel(size=len(self.old))
        order = np.argsort(-(CANARY_FOCUS * self.canary_odds + luck), kind="stable")
        possible = int(np.count_nonzero(np.isfinite(self.canary_odds)))
        return order[: min(count, possible // 2)].astype(np.int32)

    @property
    def item_cells(self) -> ItemCells:
        """The items by label and baseline answer."""
        items = self.items
        return ItemCells(self.names, items.cell, self.cells, items.weight, self.extra_variance)

    def left(self, places: Ints, batch: Codes) -> Ints:
        """Return how many items that may be drawn were left before each batch (E,).

        From the items asked (n,), given by their places, and the batch of each (n,).
        """
        may_be_drawn = self.items.priority > 0.0
        asked = np.bincount(batch, may_be_drawn[places]).astype(np.int64)
        before = np.concatenate(([0], np.cumsum(asked)[:-1]))
        return int(np.count_nonzero(may_be_drawn)) - before

    def targets(self, places: Ints, answers: Column) -> Codes:
        """Return what the items at these places (n,) changed to, or -1 where they did not (n,).

        answers are the new answers of these items.
        """
        code_of = {name: code for code, name in enumerate(self.names)}
        other = code_of.get(OTHER, -1)
        codes = np.array([code_of.get(name, other) for name in answers.values], np.int32)
        new = codes[answers.codes]
        return np.where(new == self.old[places], -1, new).astype(np.int32)


def _confidence_rank(features: Features) -> Floats:
    """Return the rank of the confidence of each baseline answer (N,), 0.5 where there is none."""
    if features.confidence is None:
        return np.full(len(features.old.codes), 0.5)
    return ranks(features.confidence)


def _margins(features: Features) -> Floats:
    """Return the log odds of the confidence of each baseline answer (N,), or nan."""
    if features.confidence is None:
        return np.full(len(features.old.codes), np.nan)
    return log_odds(features.confidence)


def _predictors(
    features: Features, was_wrong: Bools, rank: Floats
) -> tuple[npt.NDArray[np.float32], Floats]:
    """Return numbers that may predict a change (N, D), and the prior coefficient of each (D,)."""
    columns = [was_wrong.astype(np.float64)]
    coefficients = [0.0]
    if features.confidence is not None:
        columns += [rank, np.exp(-5.0 * rank)]
        coefficients += [OF_CONFIDENCE, OF_LOWEST_CONFIDENCE]
    columns += list(features.disagreeing().T)
    coefficients += [OF_DISAGREEMENT] * len(features.also)
    return np.array(columns, np.float32).T.copy(), np.array(coefficients)


def _priority(
    weight: Floats, cost: Floats | None, group: Column | None, asked_lately: Bools | None
) -> Floats:
    """Return the weight of each item (N,) in its group, over the square root of its price.

    Items that were not asked lately come a little sooner.
    """
    priority = weight / np.sqrt(prices(cost, len(weight)))
    if asked_lately is not None and asked_lately.any():
        priority *= np.where(asked_lately, 1.0, SOONER)
    if group is not None:
        group_weight = np.bincount(group.codes, weight, len(group.values))
        # The constant avoids 0 / 0 in a group without weight.
        priority /= group_weight[group.codes] + 1e-300
    return np.asarray(priority)


def _cells(kinds: Ints, right: Codes, answers: int, weight: "Floats | Ints", size: Ints) -> Cells:
    """Describe the cells (C,): kinds are their codes, label times answers plus baseline answer.

    right (L,) is the right answer of each label. The small cells of a label whose baseline answer
    is right form one group, those whose baseline answer is wrong another one.
    """
    label, old = (kinds // answers).astype(np.int32), (kinds % answers).astype(np.int32)
    cell_right = right[label]
    of_small = 2 * label.astype(np.int64) + (cell_right == old)
    of_large = 2 * (int(label.max()) + 1) + np.arange(len(label))
    _, group = np.unique(np.where(size < SMALL, of_small, of_large), return_inverse=True)
    group_weight = np.bincount(group, weight).astype(np.float64)
    return Cells(
        label, old, cell_right, weight.astype(np.float64), group.astype(np.int32), group_weight
    )


def _strata_layout(
    label: Column,
    rest: Strata | None,
    names: tuple[str, ...],
    objective: Objective,
    cost: Floats | None,
    *,
    switches: bool,
) -> StrataLayout:
    """Lay out the strata to switch to; without any there is no switch and they are never used."""
    strata = rest or Strata.build(label)
    design = designed(strata, names, old=None, objective=objective, cost=cost)
    stratum = strata.of(np.arange(len(strata.items)))
    return StrataLayout(design, strata.items, stratum, may_switch=switches)


def layout_names(label: Column, old: Column, new: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the answers that the model tells apart.

    Without the names of the new answers: labels, baseline answers, the reserved ones, and one name
    for all others.
    """
    every = in_order((*label.values, *old.values, *new))
    known = tuple(name for name in every if name != UNLABELLED)
    if new:
        return known
    plain = tuple(name for name in known if name not in (INVALID, ERROR))
    return (*plain, INVALID, ERROR, OTHER)


def _canary_odds(features: Features, was_wrong: Bools) -> Floats:
    """Return the log odds of each item (N,) to be drawn as a canary.

    Confidences are ranked among those of the same baseline answer: they may mean another thing for
    another one.
    """
    odds = CANARY_WRONG * was_wrong + OF_DISAGREEMENT * features.disagreeing().sum(axis=1)
    if features.flickered is not None:
        odds = odds + CANARY_FLICKERED * features.flickered
    if features.confidence is not None:
        rank = np.empty(len(odds))
        for code in np.unique(features.old.codes):
            mine = features.old.codes == code
            rank[mine] = ranks(features.confidence[mine])
        odds = odds + OF_CONFIDENCE * rank + OF_LOWEST_CONFIDENCE * np.exp(-5.0 * rank)
    return np.asarray(odds)


def _canary_count(likely: Floats, eligible: Bools, labelled: Bools, wanted: int) -> int:
    """Return how many items are canaries, at most half of those that may be.

    Where all items are equally likely (N,) to have changed and no number is wanted, there are none.
    """
    items = int(np.count_nonzero(eligible))
    if wanted:
        return min(wanted, items // 2)
    if labelled.all() and likely.min() == likely.max():
        return 0
    return min(CANARIES, items // ONE_IN)
