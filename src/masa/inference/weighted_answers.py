"""Answers weighted by inverse inclusion probabilities, batch by batch, and calibrated by cell.

A cell holds the items of one label and one baseline answer; small cells of a label form one group.
The total weight of each group is known, so the answers of a group are brought to it (calibration).
A group with few answers is shrunk towards a prior: that wrong answers became right, and right ones
wrong, as often as in all groups together.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from masa.inference.residuals import Residuals, entry_variances, net_changes
from masa.inference.sample import Sample
from masa.inference.spread import MOST_PREDICTIONS, Spread, Spreads, covariance_traces
from masa.records import ERROR, Bools, Codes, Column, Floats, Ints
from masa.sampling.draws import Draws
from masa.sampling.kernels.weights import BELIEF, weigh
from masa.sampling.layout import Layout


@dataclass(frozen=True, slots=True, eq=False)
class WeightedAnswers:
    """Answers (n,) with their weights, in cells (C,) and groups of cells (G,).

    Answers are coded as places in names. The symbols of docs/method.md, "Predictive sampling", are
    given in brackets.
    """

    names: tuple[str, ...]
    """(P,) the predictions"""
    labels: int
    """the number of labels, L"""
    place: Ints
    """(n,) the item"""
    label: Ints
    """(n,)"""
    cell: Ints
    """(n,)"""
    new: Ints
    """(n,) the new answer"""
    old: Ints
    """(n,) the baseline answer"""
    weight: Floats
    """(n,) the share of the estimate that the answer represents, before calibration (k)"""
    variance_weight: Floats
    """(n,) what a squared residual of 1 around the mean of its group adds to the variance (g)"""
    label_variance_weight: Floats
    """(n,) what a squared residual of 1 around the mean of its label adds besides, where the items
    represent others: how those divide into cells is not known"""
    cell_label: Ints
    """(C,)"""
    cell_old: Ints
    """(C,)"""
    cell_right: Ints
    """(C,) the right answer, or -1 where nobody gave it"""
    cell_wrong: Bools
    """(C,) whether the baseline answer was wrong, and the right one is known"""
    cell_share: Floats
    """(C,) the share of a cell in its group"""
    cell_group: Ints
    """(C,)"""
    answered_weight: Floats
    """(G,) the sum of the weights of the answers (K)"""
    group_weight: Floats
    """(G,) the known weight of all items of the group (W)"""
    correction_rate: float
    """the share of wrong baseline answers that became right (theta)"""
    spoiled_to: Floats
    """(P,) the share of right baseline answers that became each wrong one"""

    @classmethod
    def of(
        cls,
        layout: Layout,
        names: tuple[str, ...],
        places: Ints,
        answers: Column,
        draws: Draws,
        *,
        finite: bool,
    ) -> "WeightedAnswers":
        """Weight the answers about these places (n,); finite is meant for an API without noise."""
        code = {name: number for number, name in enumerate(names)}
        known = np.array([code.get(name, -1) for name in layout.names], np.int64)
        cells = layout.cells
        cell = layout.items.cell[places].astype(np.int64)
        cell_old = known[cells.old]
        cell_right = np.where(cells.right >= 0, known[cells.right], -1)
        cell_wrong = (cell_right >= 0) & (cell_right != cell_old)
        new = np.array([code[name] for name in answers.values], np.int64)[answers.codes]

        weights = RepresentedWeights.of(layout, places, draws, finite=finite)
        weight = weights.weight
        prior_weight = BELIEF / len(places)
        group = cells.group[cell]
        answered_weight = np.bincount(group, weight, len(cells.group_weight)).astype(np.float64)
        total = answered_weight[group] + prior_weight
        was_wrong = cell_wrong[cell]
        corrected = float(weight[was_wrong & (new == cell_right[cell])].sum())
        spoiled_to = _spoiled_to(cell_right[cell], cell_old[cell], new, weight, len(names))
        return cls(
            names=names,
            labels=len(layout.labels),
            place=places,
            label=cells.label[cell].astype(np.int64),
            cell=cell,
            new=new,
            old=cell_old[cell],
            weight=weight,
            # An answer is part of the mean of its group. Its residual is taken around the mean of
            # the other answers, from which it differs more.
            variance_weight=weights.within_group * (total / (total - weight)) ** 2,
            label_variance_weight=weights.within_label,
            cell_label=cells.label.astype(np.int64),
            cell_old=cell_old,
            cell_right=cell_right,
            cell_wrong=cell_wrong,
            cell_share=cells.weight / np.maximum(cells.group_weight[cells.group], 1e-300),
            cell_group=cells.group.astype(np.int64),
            answered_weight=answered_weight,
            group_weight=cells.group_weight,
            correction_rate=corrected / max(float(weight[was_wrong].sum()), 1e-300),
            spoiled_to=spoiled_to,
        )

    @property
    def prior_weight(self) -> float:
        """The weight of the prior in each group (b)."""
        return BELIEF / len(self.new)

    @property
    def error(self) -> int:
        """The prediction that marks a failed item, or -1."""
        if ERROR not in self.names:
            return -1
        return self.names.index(ERROR)

    @property
    def _group(self) -> Ints:
        """(n,) the group of the cell of each answer."""
        return self.cell_group[self.cell]

    @property
    def _changed(self) -> Bools:
        """(n,) whether the answer differs from the baseline answer."""
        return np.asarray(self.new != self.old)

    @property
    def _calibration(self) -> Floats:
        """(G,) factor that brings the answers of a group to its known weight, (W + b) / (K + b)."""
        return (self.group_weight + self.prior_weight) / (self.answered_weight + self.prior_weight)

    def _calibrated(self, mine: Bools) -> Floats:
        """Give the calibrated weights of some of the answers."""
        return np.asarray((self.weight * self._calibration[self._group])[mine])

    def _by_prior(self, cells: Bools) -> Floats:
        """Give the weight of the items of some cells about which only the prior tells.

        In each group it is (W - K) b / (K + b), by the shares of its cells.
        """
        missing = self.group_weight - self.answered_weight
        unknown = missing * self.prior_weight / (self.answered_weight + self.prior_weight)
        return np.asarray((unknown[self.cell_group] * self.cell_share)[cells])

    def shift(self) -> Floats:
        """Estimate the shift (L, P) from the calibrated answers and, where few, from the prior."""
        result = np.zeros((self.labels, len(self.names)))
        changed = self._changed
        amount = self._calibrated(changed)
        np.add.at(result, (self.label[changed], self.new[changed]), amount)
        np.add.at(result, (self.label[changed], self.old[changed]), -amount)
        wrong = self.cell_wrong
        prior = self._by_prior(wrong) * self.correction_rate
        np.add.at(result, (self.cell_label[wrong], self.cell_right[wrong]), prior)
        np.add.at(result, (self.cell_label[wrong], self.cell_old[wrong]), -prior)
        right = (self.cell_right >= 0) & (self.cell_right == self.cell_old)
        self._add_spoiled(result, self.cell_label[right], self.cell_right[right], right)
        return result

    def _add_spoiled(self, result: Floats, label: Ints, right: Ints, cells: Bools) -> None:
        """Move the weight that the prior takes from right answers to wrong ones (L, P)."""
        total = float(self.spoiled_to.sum())
        others = total - self.spoiled_to[right]
        some = others > 0.0
        if not some.any():
            return
        label, right, others = label[some], right[some], others[some]
        amount = self._by_prior(cells)[some] * total
        moved = (amount / others)[:, None] * self.spoiled_to[None, :]
        moved[np.arange(len(right)), right] = -amount
        np.add.at(result, label, moved)

    def sample(self) -> Sample:
        """Give the answers with their weights, as intervals are read off them."""
        label_variance_weight = None
        if self.label_variance_weight.any():
            label_variance_weight = self.label_variance_weight
        return Sample(
            self.place,
            self.label,
            self.new,
            self.old,
            coefficient=1.0,
            variance_weight=self.variance_weight,
            weight=self.weight,
            group=self._group,
            group_weight=self.answered_weight + self.prior_weight,
            groups_are_strata=False,
            error=self.error,
            calibration=self._calibration,
            label_variance_weight=label_variance_weight,
        )

    def spreads(self, unanswered_share: float) -> Spreads:
        """Compute the errors of the matrix and of each entry (L, P)."""
        contributions = np.zeros(len(self.new))
        variance = np.zeros((self.labels, len(self.names)))
        traces = np.zeros(3)
        for row in np.unique(self.label):
            mine = np.flatnonzero(self.label == row)
            kinds, parts = self._residuals_of_label(mine)
            contributions[mine] = sum(part.contributions for part in parts)
            variance[row] = sum(part.total for part in parts) * 0.5 / (len(mine) + 1.0)
            variance[row, kinds] = entry_variances(parts)
            if len(kinds) > MOST_PREDICTIONS:
                traces[:] = np.nan  # Unknown, and so are the sums over all labels.
                continue
            traces += covariance_traces(np.sum([part.covariance() for part in parts], axis=0))
        known = (0.0, 0.0, 0.0)
        if np.isfinite(traces).all():
            known = (float(traces[0]), float(traces[1]), float(traces[2]))
        return Spreads(
            self._matrix_spread(contributions, known, unanswered_share),
            np.sqrt(np.maximum(variance, 0.0)),
        )

    def _residuals_of_label(self, mine: Ints) -> tuple[Ints, list[Residuals]]:
        """Give the kinds of answers of one label (K,), as places in names, and their residuals.

        There are residuals around the means of the groups and, where items represent others, also
        around the mean of the label.
        """
        own, group = np.unique(self._group[mine], return_inverse=True)
        wrong = np.flatnonzero(self.cell_wrong & np.isin(self.cell_group, own))
        right, was = self.cell_right[wrong], self.cell_old[wrong]
        kinds = np.unique(np.concatenate((self.new[mine], self.old[mine], right, was)))
        new, old = np.searchsorted(kinds, self.new[mine]), np.searchsorted(kinds, self.old[mine])
        changed, weight = new != old, self.weight[mine]

        # The mean of a group: that of its own answers, and the prior as far as they are few.
        size = (len(own), len(kinds))
        mean = net_changes(group[changed], new[changed], old[changed], weight[changed], size)
        mean += net_changes(
            np.searchsorted(own, self.cell_group[wrong]),
            np.searchsorted(kinds, right),
            np.searchsorted(kinds, was),
            self.prior_weight * self.correction_rate * self.cell_share[wrong],
            size,
        )
        mean /= (self.answered_weight[own] + self.prior_weight)[:, None]
        parts = [Residuals.of(self.variance_weight[mine], new, old, group, mean)]
        if self.label_variance_weight.any():
            one_group = np.zeros(len(mine), np.int64)
            mean = net_changes(
                one_group[changed], new[changed], old[changed], weight[changed], (1, len(kinds))
            )
            mean /= max(float(weight.sum()), 1e-300)  # Items without a label have no weight.
            label_variance_weight = self.label_variance_weight[mine]
            parts.append(Residuals.of(label_variance_weight, new, old, one_group, mean))
        return kinds, parts

    def _matrix_spread(
        self, contributions: Floats, traces: tuple[float, float, float], unanswered_share: float
    ) -> Spread:
        """Add up the contributions of the answers (n,) to the variance of the matrix.

        While few residuals are seen, there might have been one more of the largest: the standard
        error of the variance allows for it.
        """
        variance_weight = self.variance_weight + self.label_variance_weight
        total = float(variance_weight.sum())
        unseen = 0.0
        if total > 0.0:
            unseen = 2.0 * float((variance_weight**2).sum()) / total
        deviation = sqrt(float((contributions**2).sum()) + unseen**2)
        return Spread(float(contributions.sum()), deviation, traces, unanswered_share)


@dataclass(frozen=True, slots=True, eq=False)
class RepresentedWeights:
    """The weights of answers (n,) and what their residuals add to the variance."""

    weight: Floats
    """(n,) the share of the estimate that each represents"""
    within_group: Floats
    """(n,) what a squared residual around the mean of its group adds to the variance"""
    within_label: Floats
    """(n,) what a squared residual around the mean of its label adds besides"""

    @classmethod
    def of(
        cls, layout: Layout, places: Ints, draws: Draws, *, finite: bool
    ) -> "RepresentedWeights":
        """Weight the items at these places (n,) by how each was drawn."""
        # What was asked before a batch is no longer left when the batch is drawn, so the answers
        # are taken in the order of the batches.
        asked = np.bincount(draws.batch)
        sizes = np.zeros(len(asked), np.int64)
        sizes[draws.batch] = draws.size
        left = layout.left(places, draws.batch)
        inside = draws.probability == 0.0
        switch = int(draws.batch[inside].max(initial=0))
        if switch:
            # All that was asked since the switch counts as one batch.
            sizes[switch] = asked[switch]
        probability = np.where(
            inside, _inside_probability(layout.rest.stratum, places, inside), draws.probability
        )
        share, variance = weigh(draws.batch, probability, sizes, left, switch)
        item_weight = layout.items.weight[places]
        weight = share * item_weight

        none = np.zeros(len(places))
        sampling_variance = variance * item_weight**2 if finite else weight**2
        if layout.extra_variance is None:
            return cls(weight, sampling_variance, none)
        if finite:
            return cls(weight, sampling_variance, weight * layout.extra_variance[places])
        # With noise the answers are one sample of all that might have been asked and answered,
        # whose variance has both parts already.
        return cls(weight, none, sampling_variance)


def _inside_probability(stratum: Codes, places: Ints, inside: Bools) -> Floats:
    """Give the inclusion probability of each item (n,) if it was drawn inside its stratum.

    It was drawn from the items of the stratum (N,) that were not drawn otherwise before.
    """
    mine = stratum[places]
    size = np.bincount(stratum)
    left = size - np.bincount(mine[~inside], minlength=len(size))
    drawn = np.bincount(mine[inside], minlength=len(size))
    return np.asarray(drawn[mine] / np.maximum(left, 1)[mine])


def _spoiled_to(right: Ints, old: Ints, new: Ints, weight: Floats, answers: int) -> Floats:
    """Give the share of right baseline answers that became each wrong one (P,)."""
    was_right = (right >= 0) & (right == old)
    spoiled = was_right & (new != old)
    total = float(weight[was_right].sum())
    return np.bincount(new[spoiled], weight[spoiled], answers) / max(total, 1e-300)
