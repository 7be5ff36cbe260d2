"""Answers with their weights: enough to compute the error of any weighted sum over the matrix."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from masa.inference.spread import PRIOR_ANSWERS, Spread, mean_unit
from masa.records import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class EntryWeights:
    """Weights of all entries of a matrix, for a sum over it."""

    values: Floats
    """(L, P)"""
    unseen_min: float | Floats = 0.0
    """the smallest weight of predictions nobody has given yet, for all labels or for each (L,)"""
    unseen_max: float | Floats = 0.0
    """the largest of those weights"""

    def at(self, label: Ints, answer: Ints) -> Floats:
        """Give the weights of some entries (n,)."""
        return np.asarray(self.values[label, answer])

    def row_range(self, label: Ints) -> Floats:
        """Give the largest difference between two weights in the row of each label (n,)."""
        largest = np.maximum(self.values.max(axis=1), self.unseen_max)
        smallest = np.minimum(self.values.min(axis=1), self.unseen_min)
        return np.asarray((largest - smallest)[label])

    @property
    def largest_row_range(self) -> float:
        """The largest difference between two weights in any row."""
        return float(self.row_range(np.arange(len(self.values))).max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnWeights:
    """Weights in one column of a matrix: one for a row, another for all other rows."""

    row: int
    column: int
    at_row: float
    at_others: float

    def at(self, label: Ints, answer: Ints) -> Floats:
        """Give the weights of some entries (n,)."""
        in_column = np.where(label == self.row, self.at_row, self.at_others)
        return np.where(answer == self.column, in_column, 0.0)

    def row_range(self, label: Ints) -> Floats:
        """Give the largest difference between two weights in the row of each label (n,)."""
        return np.where(label == self.row, abs(self.at_row), abs(self.at_others))

    @property
    def largest_row_range(self) -> float:
        """The largest difference between two weights in any row."""
        return max(abs(self.at_row), abs(self.at_others))


Weights = EntryWeights | ColumnWeights


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Answers with their weights in an estimate."""

    place: Ints
    """(n,) the item"""
    label: Ints
    """(n,)"""
    new: Ints
    """(n,) the new answer"""
    old: Ints
    """(n,) the baseline answer where the coefficient is not 0, otherwise anything"""
    coefficient: float
    """regression coefficient on the baseline answer: how much of it is subtracted"""
    variance_weight: Floats
    """(n,) what a squared residual of 1 adds to the variance"""
    weight: Floats
    """(n,) the share of the estimate that the answer represents"""
    group: Ints
    """(n,) the group of similar items that it belongs to; all items of a group have one label"""
    group_weight: Floats
    """(G,) the share of the estimate that the answers of a group represent together"""
    groups_are_strata: bool
    """whether items were drawn inside the groups; their variances are then shrunk towards each
    other"""
    error: int = -1
    """the prediction that marks a failed item, or -1"""
    stratified_view: "Sample | None" = None
    """the same answers as a sample drawn inside strata, used where it gives the larger error"""
    calibration: Floats | None = None
    """(G,) factor that brings the answers of a group to the known weight of the group"""
    label_variance_weight: Floats | None = None
    """(n,) what a squared residual around the mean of the label adds besides, where the items
    represent others"""

    @classmethod
    def by_strata(
        cls,
        place: Ints,
        label: Ints,
        new: Ints,
        old: Ints | None,
        *,
        coefficient: float,
        stratum: Ints,
        share: Floats,
        fraction: Floats,
        error: int = -1,
    ) -> "Sample":
        """Take answers (n,) that were drawn inside strata (S,).

        Share (S,) is the share of the estimate that a stratum represents, fraction (S,) the
        variance of its mean over that of one answer.
        """
        if old is None:
            old = new
        n = np.bincount(stratum, minlength=len(share))
        weight = share / np.maximum(n, 1)
        return cls(
            place,
            label,
            new,
            old,
            coefficient,
            variance_weight=(weight * share * fraction)[stratum],
            weight=weight[stratum],
            group=stratum,
            group_weight=share,
            groups_are_strata=True,
            error=error,
        )

    def take(self, mine: Bools) -> "Sample":
        """Keep some of the answers (n,): for each label all of them or none."""
        view = self.stratified_view
        if view is not None:
            view = view.take(np.isin(view.label, self.label[mine]))
        label_variance_weight = self.label_variance_weight
        if label_variance_weight is not None:
            label_variance_weight = label_variance_weight[mine]
        return replace(
            self,
            place=self.place[mine],
            label=self.label[mine],
            new=self.new[mine],
            old=self.old[mine],
            variance_weight=self.variance_weight[mine],
            weight=self.weight[mine],
            group=self.group[mine],
            stratified_view=view,
            label_variance_weight=label_variance_weight,
        )

    def of_label(self, label: int) -> "Sample":
        """Keep the answers about one label, as if it were the only label."""
        mine = self.take(self.label == label)
        view = self.stratified_view
        if view is not None:
            view = view.of_label(label)
        return replace(mine, label=np.zeros(len(mine.label), np.int64), stratified_view=view)

    def weights(self) -> Iterator[tuple[int, float, float]]:
        """Give, for each answer, its place, its share of all items and its variance weight."""
        factor = np.ones(len(self.place))
        if self.calibration is not None:
            factor = self.calibration[self.group]
        variance_weight = self._all_variance_weight
        yield from zip(
            self.place.tolist(),
            (self.weight * factor).tolist(),
            (variance_weight * factor**2).tolist(),
            strict=True,
        )

    @property
    def by_stratum(self) -> "Sample | None":
        """The view of the answers by strata, where there is one."""
        if self.groups_are_strata:
            return self
        return self.stratified_view

    @property
    def differs(self) -> Bools:
        """Whether answers (n,) differ from the baseline answers; a failed item has no answer."""
        return np.asarray(
            (self.new != self.old) & (self.new != self.error) & (self.old != self.error)
        )

    def of(self, weights: Weights, before: Weights | None = None) -> Spread:
        """Compute the spread of a weighted sum over the estimated matrix.

        Before are other weights, with which a sum over the old matrix is subtracted.
        """
        if before is None:
            before = weights
        values = weights.at(self.label, self.new)
        if self.coefficient:
            values = values - self.coefficient * before.at(self.label, self.old)
        value_range = np.maximum(weights.row_range(self.label), before.row_range(self.label))
        mine = self.spread(values, value_range)
        if self.stratified_view is None:
            return mine
        return _wider(mine, self.stratified_view.of(weights, before))

    def differing(self) -> Spread:
        """Compute the spread of the share of answers that differ from the baseline answers."""
        mine = self.spread(self.differs.astype(np.float64), np.ones(len(self.new)))
        if self.stratified_view is None:
            return mine
        return _wider(mine, self.stratified_view.differing())

    def spread(self, values: Floats, value_range: Floats) -> Spread:
        """Compute the spread of the weighted sum of values (n,).

        Value_range (n,) is the largest possible difference between two values of the same label.
        """
        if not len(values) or not (value_range > 0.0).any():
            return Spread(0.0, 0.0)
        if self.groups_are_strata:
            return self._spread_by_strata(values, value_range)
        return self._spread_by_residuals(values, value_range)

    def _spread_by_residuals(self, values: Floats, value_range: Floats) -> Spread:
        """Add up the squared residuals around the means of the groups, by variance weight."""
        present, group = np.unique(self.group, return_inverse=True)
        mean = np.bincount(group, self.weight * values) / self.group_weight[present]
        variance = float((self.variance_weight * (values - mean[group]) ** 2).sum())
        if self.label_variance_weight is not None:
            # How many items have which baseline answer is itself only estimated, so that this part
            # varies around the mean of the label (decision 0015).
            label_mean = np.bincount(self.label, self.weight * values) / np.maximum(
                np.bincount(self.label, self.weight), 1e-300
            )
            residual = values - label_mean[self.label]
            variance += float((self.label_variance_weight * residual**2).sum())
        return Spread(variance, 0.0, unit=mean_unit(self._all_variance_weight * value_range**2))

    def _spread_by_strata(self, values: Floats, value_range: Floats) -> Spread:
        """Add up the variances of the strata, each shrunk towards the common variance.

        Variances are pooled in units of the squared range, in which strata of different labels are
        comparable. Formulas in docs/method.md, "How sure".
        """
        present, group = np.unique(self.group, return_inverse=True)
        n = np.bincount(group).astype(np.float64)
        scale = np.zeros(len(present))
        scale[group] = value_range
        varies = scale > 0.0
        squares = np.maximum(
            np.bincount(group, values**2) - np.bincount(group, values) ** 2 / n, 0.0
        )
        squares = np.divide(squares, scale**2, out=np.zeros(len(present)), where=varies)
        common = (squares[varies].sum() + 1.0) / (np.sum(n[varies] - 1.0) + 2.0)
        variance_weight = np.bincount(group, self.variance_weight)
        variance = float(
            np.sum(
                variance_weight
                * scale**2
                * (squares + PRIOR_ANSWERS * common)
                / (n - 1.0 + PRIOR_ANSWERS)
            )
        )
        unit = variance_weight * scale / np.maximum(self.group_weight[present], 1e-300)
        return Spread(variance, 0.0, unit=float(np.linalg.norm(unit)))

    @property
    def _all_variance_weight(self) -> Floats:
        """(n,) what a squared residual of 1 adds to the variance in total."""
        if self.label_variance_weight is None:
            return self.variance_weight
        return self.variance_weight + self.label_variance_weight


def _wider(mine: Spread, other: Spread) -> Spread:
    """Give the spread with the wider interval, at two standard errors."""
    if mine.half_width(2.0) >= other.half_width(2.0):
        return mine
    return other
