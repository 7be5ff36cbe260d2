"""Intervals for the change of a share, from one answer on.

A share of all items, such as that of right answers, rises only by items that were not part of it
before, and falls only by items that were. Which those are is known from the baseline answers, and
so is how many there are. So the change is the difference of two shares of known wholes. Each is
seen through the answers to some of its items, and has limits like those of a binomial number
(decision 0019): items that were asked are known, the others may be anything while few were asked.
"""

from dataclasses import dataclass
from math import ceil, floor, hypot, inf, sqrt

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.inference.moved_share import (
    AskedPart,
    GroupedPart,
    Reach,
    binomial_limits,
    limits_of_part,
)
from masa.inference.spread import normal, share
from masa.records import ERROR, Bools, Column, Floats, Interval, Ints
from masa.sampling.kernels.weights import BELIEF
from masa.sampling.layout import ItemCells

USUAL_REACH = 2.0
"""The standard errors of a single interval of 95%."""

HIDDEN_PRIOR_ANSWERS = 8.0
"""In strata that were chosen by their answers, so many more answers might have been like those of
the other strata."""

WITHIN_ITEM = 0.01
"""An end this near to a whole number of items is one."""


@dataclass(frozen=True, slots=True, eq=False)
class AskedAnswers:
    """Answers (n,), and what each represents."""

    label: Ints
    """(n,)"""
    cell: Ints
    """(n,)"""
    old: Ints
    """(n,) the baseline answer"""
    new: Ints
    """(n,) the new answer"""
    own: Floats
    """(n,) the weight of the item itself"""
    weight: Floats
    """(n,) the weight of all items that it represents"""
    variance: Floats
    """(n,) what it adds to the variance of a sum over all items if its value is 1"""

    def take(self, mine: Bools) -> "AskedAnswers":
        """Keep some of the answers."""
        return AskedAnswers(
            self.label[mine],
            self.cell[mine],
            self.old[mine],
            self.new[mine],
            self.own[mine],
            self.weight[mine],
            self.variance[mine],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """All items, in cells (C,) of one label and one baseline answer each."""

    label: Ints
    """(C,)"""
    old: Ints
    """(C,) the baseline answer"""
    group: Ints
    """(C,) small cells of a label form one group"""
    right: Bools
    """(C,) whether that is right"""
    weight: Floats
    """(C,) of the items of each cell"""
    heaviest: Floats
    """(C,) the weight of the heaviest item of each cell; zero where items represent others"""


@dataclass(frozen=True, slots=True, eq=False)
class LabelErrors:
    """What is uncertain about each label (L,) whatever is asked."""

    weight: Floats
    """(L,) the share of all items"""
    baseline: Floats
    """(L,) the variance of a sum over the items with a baseline answer, which represent others;
    zero where every item has one"""
    baseline_squares: Floats
    """(L,) the sum of the squares of what each item adds to that"""
    noise: Floats
    """(L,) the variance because the API contradicts itself, as far as that is not in the others"""
    has_noise: bool
    """whether the API contradicts itself"""
    skipped: Bools
    """(L,) whether the items of the label had no chance to be asked so far"""


@dataclass(frozen=True, slots=True)
class _Side:
    """The items that can make a share rise, or those that can make it fall."""

    estimate: float
    """the share of all items that did"""
    less: float
    """how much less it may be"""
    more: float
    """how much more it may be"""
    blind: float
    """how much more it may be besides, because nothing tells"""
    answers: float
    """the number of answers, of equal weight, that would tell as much"""


@dataclass(frozen=True, slots=True, eq=False)
class ShareChange:
    """Answers and the items that they represent, for the interval of the change of any share."""

    answers: AskedAnswers
    whole: Whole
    errors: LabelErrors
    prior_weight: float
    """the weight of the rate of all groups in the rate of each"""
    error: int = -1
    """the prediction that marks a failed item, or -1"""
    stratum: Ints | None = None
    """(n,) the stratum of each answer where strata were chosen by their answers, otherwise -1"""

    @classmethod
    def of(
        cls,
        items: ItemCells,
        old: BaselineAnswers,
        predictions: tuple[str, ...],
        places: Ints,
        new: Column,
        *,
        weight: Floats,
        variance: Floats,
        stratum: Ints | None = None,
        skips_labels: bool = False,
        only: Bools | None = None,
    ) -> "ShareChange":
        """Take the new answers about these places (n,), coded as places in these predictions.

        Weight (n,) is the weight of the items that each represents, variance (n,) what it adds to
        the variance. Only (N,) are the items that are meant, where not all are. Skips_labels says
        that labels without answers had no chance to be asked.
        """
        code = {name: number for number, name in enumerate(predictions)}
        known = np.array([code.get(name, -2) for name in items.names], np.int64)
        item_weight, cells = items.weight, items.cells
        if only is not None:
            item_weight = np.where(only, item_weight, 0.0)
            kept = only[places]
            places, weight, variance = places[kept], weight[kept], variance[kept]
            new = Column(new.name, new.values, new.codes[kept])
            stratum = None if stratum is None else stratum[kept]
        cell = items.cell[places].astype(np.int64)
        label, old_of_cell = cells.label.astype(np.int64), known[cells.old]
        said = np.array([code[name] for name in new.values], np.int64)[new.codes]
        return cls(
            AskedAnswers(
                label[cell], cell, old_of_cell[cell], said, item_weight[places], weight, variance
            ),
            Whole(
                label,
                old_of_cell,
                cells.group.astype(np.int64),
                cells.right == cells.old,
                np.bincount(items.cell, item_weight, len(label)).astype(np.float64),
                _heaviest(items, item_weight),
            ),
            _label_errors(items, old, item_weight, label[cell], skips_labels=skips_labels),
            BELIEF / max(len(places), 1),
            code.get(ERROR, -1),
            stratum,
        )

    def of_label(self, row: int) -> "ShareChange":
        """Keep one label."""
        mine, cells = self.answers.label == row, self.whole.label == row
        stratum = None
        if self.stratum is not None:
            stratum = self.stratum[mine]
        new_place = np.cumsum(cells) - 1
        answers = self.answers.take(mine)
        own = self.errors
        only = np.zeros(len(own.weight))
        only[row] = 1.0
        return ShareChange(
            AskedAnswers(
                answers.label,
                new_place[answers.cell],
                answers.old,
                answers.new,
                answers.own,
                answers.weight,
                answers.variance,
            ),
            Whole(
                self.whole.label[cells],
                self.whole.old[cells],
                self.whole.group[cells],
                self.whole.right[cells],
                self.whole.weight[cells],
                self.whole.heaviest[cells],
            ),
            LabelErrors(
                own.weight * only,
                own.baseline * only,
                own.baseline_squares * only,
                own.noise * only,
                own.has_noise,
                own.skipped,
            ),
            self.prior_weight,
            self.error,
            stratum,
        )

    def of_answer(self, answer: Ints, reach: Reach) -> Interval:
        """Give the change of the share of items that are answered so.

        Answer (L,) is one prediction for each label. -1 is one that nobody gave.
        """
        was = self.whole.old == answer[self.whole.label]
        now = self.answers.new == answer[self.answers.label]
        up = self._side(~was, now, reach)
        down = self._side(was, ~now, reach)
        hidden = self._hidden(now)
        together = _together(up, down, reach)
        below = hypot(_joined(up.less, down.more, together), self._noise(reach))
        above = hypot(_joined(up.more, down.less, together), self._noise(reach))
        below += down.blind + max(-hidden, 0.0)
        above += up.blind + max(hidden, 0.0)
        change = up.estimate - down.estimate
        return _to_whole_items(Interval(change, change - below, change + above), self._item)

    def differing(self, reach: Reach) -> Interval:
        """Give the share of answers that differ from the baseline answers.

        A failed item has no answer.
        """
        said = self.answers
        differs = (said.new != said.old) & (said.new != self.error) & (said.old != self.error)
        # Right and wrong answers do not change equally often.
        right = self._side(self.whole.right, differs, reach)
        wrong = self._side(~self.whole.right, differs, reach)
        together = _together(right, wrong, reach)
        below = hypot(_joined(right.less, wrong.less, together), self._noise(reach))
        above = hypot(_joined(right.more, wrong.more, together), self._noise(reach))
        above += right.blind + wrong.blind + abs(self._hidden(differs))
        share = right.estimate + wrong.estimate
        ends = _to_whole_items(Interval(share, share - below, share + above), self._item)
        return Interval(share, max(0.0, ends.low), min(1.0, ends.high))

    @property
    def _item(self) -> float:
        """The weight of the heaviest item."""
        return float(self.whole.heaviest.max(initial=0.0))

    def _noise(self, reach: Reach) -> float:
        """Give how far a share may be off because the API contradicts itself."""
        return reach.z * sqrt(float(self.errors.noise.sum()))

    def _side(self, cells: Bools, moved: Bools, reach: Reach) -> _Side:
        """Estimate the share of all items that are in these cells (C,) and moved.

        Moved (n,) says it of each answer.
        """
        skipped = cells & self.errors.skipped[self.whole.label]
        cells = cells & ~skipped
        whole = float(self.whole.weight[cells].sum())
        mine = cells[self.answers.cell]
        part = AskedPart(
            self.answers.own[mine],
            self.answers.weight[mine],
            self.answers.variance[mine],
            moved[mine].astype(np.float64),
        )
        blind = float(self.whole.weight[skipped].sum())
        left = max(whole - float(part.own.sum()), 0.0)
        if left <= 1e-12 * max(whole, 1e-300):
            left = 0.0
        if left and part.represented <= 0.0:
            # Nothing that was asked tells about the other items.
            _, more = self._limits_of_baseline(whole, reach)
            less, _ = self._limits_of_baseline(part.known, reach)
            if self.errors.has_noise:
                less = part.known
            return _Side(part.known, less, more, blind + left, 0.0)
        groups = self._groups(cells, mine, part)
        estimate = min(max(groups.estimate, part.known), part.known + left)
        less, more, size = 0.0, 0.0, inf
        if left:
            less, more, size = limits_of_part(part, groups, estimate, left, reach)
            if self.errors.has_noise and less >= estimate - part.known:
                # What an API with noise answered once is not known for good.
                less = estimate
        # The items with a baseline answer are themselves a sample.
        first_less, first_more = self._limits_of_baseline(estimate, reach)
        return _Side(estimate, hypot(less, first_less), hypot(more, first_more), blind, size)

    def _groups(self, cells: Bools, mine: Bools, part: AskedPart) -> GroupedPart:
        """Bring the answers to the known weights of the groups that they are in."""
        names, place = np.unique(self.whole.group[cells], return_inverse=True)
        group_weight = np.bincount(place, self.whole.weight[cells], len(names)).astype(np.float64)
        of_answer = np.searchsorted(names, self.whole.group[self.answers.cell[mine]])
        return GroupedPart.of(part, of_answer, group_weight, self.prior_weight)

    def _limits_of_baseline(self, estimate: float, reach: Reach) -> tuple[float, float]:
        total = float(self.errors.baseline.sum())
        if total <= 0.0:
            return 0.0, 0.0
        mass = float(self.errors.weight.sum())
        unit = sqrt(float(self.errors.baseline_squares.sum()) / total)
        size = total / unit**2
        less, more = binomial_limits(estimate / mass, size, reach)
        return less * size * unit, more * size * unit

    def _hidden(self, now: Bools) -> float:
        """Give how far the share may be off because strata were chosen by their answers.

        A stratum whose first answers are alike is asked little. Its other items might be answered
        as in the other strata.
        """
        if self.stratum is None or not (self.stratum >= 0).any():
            return 0.0
        mine = self.stratum >= 0
        _, stratum = np.unique(self.stratum[mine], return_inverse=True)
        count = np.bincount(stratum).astype(np.float64)
        mean = np.bincount(stratum, now[mine]) / count
        share = np.bincount(stratum, self.answers.weight[mine])
        shrinkage = HIDDEN_PRIOR_ANSWERS / (count + HIDDEN_PRIOR_ANSWERS)
        return float((share * shrinkage * (now[mine].mean() - mean)).sum())


def _heaviest(items: ItemCells, item_weight: Floats) -> Floats:
    """Give the weight of the heaviest item of each cell; zero where items represent others."""
    result = np.zeros(len(items.cells.label))
    if items.extra_variance is None or not items.extra_variance.any():
        np.maximum.at(result, items.cell, item_weight)
    return result


def _to_whole_items(interval: Interval, item: float) -> Interval:
    """Move the ends of an interval outwards to whole items.

    An item moved or it did not, so that the truth is a number of whole items. Where few are left,
    limits of a smooth distribution end inside the last one of them.

    >>> _to_whole_items(Interval(-0.125, -0.3, 0.25), 0.125)
    Interval(estimate=-0.125, low=-0.375, high=0.25)
    """
    if item <= 0.0:
        return interval
    low = floor(interval.low / item + WITHIN_ITEM) * item
    high = ceil(interval.high / item - WITHIN_ITEM) * item
    return Interval(interval.estimate, min(low, interval.low), max(high, interval.high))


def _label_errors(
    items: ItemCells,
    old: BaselineAnswers,
    item_weight: Floats,
    answered: Ints,
    *,
    skips_labels: bool,
) -> LabelErrors:
    """Collect what is uncertain about each label whatever is asked.

    Answered are the labels of the answers (n,).
    """
    labels = 1 + int(items.cells.label.max())
    label = items.cells.label[items.cell].astype(np.int64)
    extra = np.zeros(len(item_weight))
    if items.extra_variance is not None:
        extra = item_weight * items.extra_variance
    noise = 0.0
    if not old.repeats_itself:
        noise = _contradiction_rate(*old.noise_counts)
    skipped = np.zeros(labels, np.bool_)
    if skips_labels:
        skipped = np.bincount(answered, minlength=labels) == 0

    def by_label(values: Floats) -> Floats:
        return np.bincount(label, values, labels).astype(np.float64)

    return LabelErrors(
        by_label(item_weight),
        by_label(extra),
        by_label(extra**2),
        # Half of all contradictions are the variance of one answer. It is in the old answers and
        # in the new ones. Where items represent others, the answers differ by noise, too, so that
        # noise is in the variance of the baseline already.
        noise * by_label(np.maximum(item_weight**2 - extra, 0.0)),
        noise > 0.0,
        skipped,
    )


def _contradiction_rate(repeated: int, contradicted: int) -> float:
    """Give the rate of contradictions, made larger because few were seen.

    A normal number whose variance is known from k events is Student's t with 2 (k + 1) degrees of
    freedom, if all rates were equally likely before: then the rate counts as k + 1 events.

    >>> [round(_contradiction_rate(300, count), 3) for count in (0, 1, 12, 100)]
    [0.013, 0.013, 0.048, 0.341]
    """
    highest = share(contradicted, repeated).high
    if not repeated:
        return highest
    from scipy.special import stdtrit

    events = contradicted + 1.0
    wider = float(stdtrit(2.0 * events, 0.975)) / normal(0.95)
    return min(highest, events / repeated * wider**2)


def _together(one: _Side, other: _Side, reach: Reach) -> float:
    """Say how far the distances of two sides add up instead of their squares, from 0 to 1.

    Squares add up where a distance is as many standard errors as the interval reaches. With few
    answers and a long reach a distance ends where the share does, at 0 or 1, and is fewer.
    """
    beyond = reach.z**2 - USUAL_REACH**2
    if beyond <= 0.0:
        return 0.0
    return beyond / (beyond + max(0.0, min(one.answers, other.answers) - 1.0))


def _joined(one: float, other: float, together: float) -> float:
    return sqrt(one**2 + other**2 + 2.0 * together * one * other)
