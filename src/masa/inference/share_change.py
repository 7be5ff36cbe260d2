"""Intervals for the change of a share, from one answer on.

A share of all items, such as that of right answers, rises only by items that were not part of it
before, and falls only by items that were. Which those are is known from the baseline answers, and
so is how many there are. So the change is the difference of two shares of known wholes. Each is
seen through the answers to some of its items, and has limits like those of a binomial number
(decision 0019): items that were asked are known, the others may be anything while few were asked.
"""

from dataclasses import dataclass
from math import asin, hypot, inf, pi, sin, sqrt

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.inference.spread import mean_unit, share
from masa.records import ERROR, Bools, Column, Floats, Interval, Ints
from masa.sampling.kernels.weights import BELIEF
from masa.sampling.layout import ItemCells

LEVERAGE_POWER = 0.75
"""An answer is part of the mean that its residual is taken around. Its residual is divided by one
minus its share of that mean, to this power: a half is right for equal weights, 1 leaves the answer
out of the mean."""

VARIANCE_MARGIN = 1.05
"""Factor on the variance: weights that a model chose are a little more unequal than they show."""

UNIT_PRIOR_ANSWERS = 0.57
"""What one answer represents is shrunk towards its mean over all answers as if by so many answers
that changed (decision 0016)."""

RATIO_PRIOR_ANSWERS = 4.0
"""The same for how much less answers vary within groups of similar items."""

USUAL_REACH = 2.0
"""The standard errors of a single interval of 95%."""

HIDDEN_PRIOR_ANSWERS = 8.0
"""In strata that were chosen by their answers, so many more answers might have been like those of
the other strata."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far an interval reaches."""

    z: float
    """the number of standard errors"""
    unseen: float
    """how many answers of a kind may be missed by chance while none was seen"""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
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

    def take(self, mine: Bools) -> "Answers":
        """Keep some of the answers."""
        return Answers(
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
    """(L,) the variance because the API contradicts itself"""
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

    answers: Answers
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
            Answers(
                label[cell], cell, old_of_cell[cell], said, item_weight[places], weight, variance
            ),
            Whole(
                label,
                old_of_cell,
                cells.group.astype(np.int64),
                cells.right == cells.old,
                np.bincount(items.cell, item_weight, len(label)).astype(np.float64),
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
            Answers(
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
            ),
            LabelErrors(
                own.weight * only,
                own.baseline * only,
                own.baseline_squares * only,
                own.noise * only,
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
        return Interval(change, change - below, change + above)

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
        return Interval(share, max(0.0, share - below), min(1.0, share + above))

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
        part = _Part.of(self.answers.take(mine), moved[mine].astype(np.float64))
        blind = float(self.whole.weight[skipped].sum())
        left = max(whole - float(part.own.sum()), 0.0)
        if left <= 1e-12 * max(whole, 1e-300):
            left = 0.0
        if left and part.represented <= 0.0:
            # Nothing that was asked tells about the other items.
            _, more = self._limits_of_baseline(whole, reach)
            return _Side(part.known, 0.0, more, blind + left, 0.0)
        groups = self._groups(cells, mine, part)
        estimate = groups.estimate
        less, more, size = 0.0, 0.0, inf
        if left:
            estimate = min(max(estimate, part.known), part.known + left)
            less, more, size = _limits_of_part(part, groups, estimate, left, reach)
            if self.errors.noise.any() and less >= estimate - part.known:
                # What an API with noise answered once is not known for good.
                less = estimate
        # The items with a baseline answer are themselves a sample.
        first_less, first_more = self._limits_of_baseline(estimate, reach)
        return _Side(estimate, hypot(less, first_less), hypot(more, first_more), blind, size)

    def _groups(self, cells: Bools, mine: Bools, part: "_Part") -> "_Groups":
        """Bring the answers to the known weights of the groups that they are in."""
        names, place = np.unique(self.whole.group[cells], return_inverse=True)
        group_weight = np.bincount(place, self.whole.weight[cells], len(names)).astype(np.float64)
        of_answer = np.searchsorted(names, self.whole.group[self.answers.cell[mine]])
        return _Groups.of(part, of_answer, group_weight, self.prior_weight)

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
        repeated, contradicted = old.noise_counts
        noise = share(contradicted, repeated).high
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
        # in the new ones.
        noise * by_label(item_weight**2),
        skipped,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Answers (n,) to some of the items of a part of the whole."""

    own: Floats
    """(n,) the weight of the item itself"""
    weight: Floats
    """(n,) the weight of the items that it represents"""
    variance: Floats
    """(n,) what it adds to the variance if it moved"""
    moved: Floats
    """(n,) 1 or 0"""

    @classmethod
    def of(cls, answers: Answers, moved: Floats) -> "_Part":
        return cls(answers.own, answers.weight, answers.variance, moved)

    @property
    def known(self) -> float:
        """The weight of the items that are known to have moved."""
        return float(self.own @ self.moved)

    @property
    def represented(self) -> float:
        """The weight of the items that were not asked and that the answers represent."""
        others = float(np.maximum(self.weight - self.own, 0.0).sum())
        if others <= 1e-12 or not self.variance.any():
            return 0.0
        return others


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """The same part, brought to the known weights of its groups of similar items."""

    estimate: float
    """the weight of the items that moved"""
    around_zero: Floats
    """(n,) what each answer adds to the variance if it moved"""
    variance: float
    """of the estimate, around the rates of the groups"""

    @classmethod
    def of(cls, part: _Part, group: Ints, group_weight: Floats, prior_weight: float) -> "_Groups":
        """Take answers in groups (n,) of a known weight (G,).

        A group with few answers is taken to move about as often as all do.
        """
        count = len(group_weight)
        total = max(float(part.weight.sum()), 1e-300)
        rate = float(part.weight @ part.moved) / total
        answered = np.bincount(group, part.weight, count)
        moved = np.bincount(group, part.weight * part.moved, count)
        divisor = answered + prior_weight
        mean = (moved + prior_weight * rate) / divisor
        missing = group_weight - answered
        estimate = float((moved + missing * mean).sum())
        # What one answer adds to the estimate: through its own group, and through the rate of all.
        by_group = (group_weight + prior_weight) / divisor
        by_all = float((missing * prior_weight / divisor).sum()) / total
        influence = np.maximum(by_group[group] + by_all, 0.0)
        in_group = _leverage(part.weight / divisor[group])
        in_all = _leverage(part.weight / total)
        residual = (
            by_group[group] * (part.moved - mean[group]) / in_group
            + by_all * (part.moved - rate) / in_all
        )
        return cls(
            estimate,
            part.variance * influence**2,
            float((part.variance * residual**2).sum()),
        )


def _leverage(share: Floats) -> Floats:
    return np.asarray(np.maximum(1.0 - share, 1e-9) ** LEVERAGE_POWER)


def _limits_of_part(
    part: _Part, groups: _Groups, estimate: float, left: float, reach: Reach
) -> tuple[float, float, float]:
    """Give how much less and how much more than the estimate may have moved, and the size.

    The answers count as so many answers of one size each (the unit) as have the same variance and
    skewness; these have the limits of a binomial number.
    """
    each = groups.around_zero
    moved = part.moved > 0.0
    usual_unit = mean_unit(each)
    if usual_unit <= 0.0:
        return 0.0, left, 0.0
    seen = float(each[moved].sum())
    unit = (float((each[moved] ** 1.5).sum()) + UNIT_PRIOR_ANSWERS * usual_unit**3) / (
        seen + UNIT_PRIOR_ANSWERS * usual_unit**2
    )
    share = min(max((estimate - part.known) / left, 0.0), 1.0)
    usual_size = float(each.sum()) / usual_unit**2
    size = (seen / unit**2 + UNIT_PRIOR_ANSWERS) / (share + UNIT_PRIOR_ANSWERS / usual_size)
    size = max(size, seen / unit**2, 1.0)
    less, more = binomial_limits(share, size, reach)
    # Less variance within groups than among all counts as far as many answers show it.
    fewer = float(min(moved.sum(), len(moved) - moved.sum()))
    ratio = 1.0
    if seen > 0.0 and share < 1.0:
        ratio = min(groups.variance / ((1.0 - share) * seen), 2.0)
    ratio = (fewer * ratio + RATIO_PRIOR_ANSWERS) / (fewer + RATIO_PRIOR_ANSWERS)
    scale = size * unit * sqrt(ratio * VARIANCE_MARGIN)
    lowest, highest = estimate - part.known, part.known + left - estimate
    # A limit of none, or of all, stays that whatever the variance.
    if less < share:
        lowest = min(less * scale, lowest)
    if share + more < 1.0:
        highest = min(more * scale, highest)
    return lowest, highest, size


def _together(one: _Side, other: _Side, reach: Reach) -> float:
    """Say how far the distances of two sides add up instead of their squares, from 0 to 1.

    Squares add up where a distance is as many standard errors as the interval reaches. With few
    answers and a long reach a distance ends where the share does, at 0 or 1, and is fewer.
    """
    beyond = max(0.0, reach.z**2 - USUAL_REACH**2)
    return beyond / (reach.z**2 + min(one.answers, other.answers))


def _joined(one: float, other: float, together: float) -> float:
    return sqrt(one**2 + other**2 + 2.0 * together * one * other)


def binomial_limits(share: float, size: float, reach: Reach) -> tuple[float, float]:
    """Give how much less and how much more a share may be that was seen in so many answers.

    By the arcsine transformation, with c answers added to either side so that a share of 0 has the
    limit that the number of unseen answers gives. These are about the mid-P limits.

    >>> reach = Reach(1.96, 3.0)
    >>> [round(binomial_limits(0.0, size, reach)[1], 2) for size in (1, 4, 20, 1_000)]
    [1.0, 0.54, 0.14, 0.0]
    >>> [round(end, 2) for end in binomial_limits(0.5, 20, reach)]
    [0.21, 0.21]
    """
    extra = max(0.0, sqrt(reach.unseen) - reach.z / 2.0) ** 2
    middle = asin(sqrt((share * size + extra) / (size + 2.0 * extra)))
    step = reach.z / (2.0 * sqrt(size))
    low = sin(max(0.0, middle - step)) ** 2
    high = sin(min(pi / 2.0, middle + step)) ** 2
    return max(0.0, share - low), max(0.0, high - share)
