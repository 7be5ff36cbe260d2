"""Estimate a change from answers to items that were asked with known chances, batch by batch."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from masa.data.strata import Strata
from masa.inference.counts import make_possible, matrix_spread, stratum_reports, true_matrix
from masa.inference.sample import Sample
from masa.inference.spread import KAPPA, MOST_PREDICTIONS, Spread
from masa.records import ERROR, Bools, Codes, Column, Floats, Ints, Matrix, Shift, in_order
from masa.sampling.draws import Draws
from masa.sampling.kernels import predictive as kernel
from masa.sampling.layout import Layout
from masa.sampling.stratified import counted


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """A shift, and how far it may be off."""

    shift: Shift
    matrix: Spread
    accuracy: Spread
    deviations: Floats
    """(L, P) the standard error of each entry of the shift"""
    sample: Sample
    """the answers, as places in the predictions of the shift"""
    differing: float
    """the share of answers that are not as before"""
    groups: tuple[tuple[float, Spread] | None, ...] = ()
    """by group, the change of its share of right answers, and how far that may be off; None where nothing was answered"""


def weighed(
    layout: Layout,
    strata: Strata,
    places: Ints,
    answers: Column,
    draws: Draws,
    *,
    old: Column,
    group: Column | None = None,
    rest: Strata | None = None,
    finite: bool = True,
) -> Weighed:
    """Estimate the shift from the answers about these places (n,).

    BaselineAnswers are the old answers of all items (N,), group is what group each belongs to (N,). Strata are only reported by; rest are
    those that items were drawn in once the old answers told little. Labels without answers are taken to be as before, but
    anything may have become of them: that is what `blind` says.
    """
    before = true_matrix(strata, old)
    names = in_order(before.predictions + answers.values)
    sums = _Sums.of(layout, names, places, answers, draws, finite=finite)
    answered = np.bincount(sums.label, minlength=len(layout.labels)) > 0
    values = before.on(names).values
    after = values + sums.shift()
    weight = strata.label_weight
    make_possible(after, weight, layout.labels, names)
    after[~answered] = values[~answered]
    blind = float(weight[~answered].sum())
    matrix, accuracy, deviations = sums.spreads(blind)
    deviations[~answered] = weight[~answered, None]
    shift = Shift(
        Matrix(layout.labels, names, values),
        Matrix(layout.labels, names, after),
        stratum_reports(counted(strata, places, answers), strata),
    )
    groups = () if group is None else sums.by_group(group.codes[places], len(group.values))
    inside = draws.probability == 0.0
    sample, differing = sums.sample(), sums.differing()
    if rest is None or not inside.any():
        return Weighed(shift, matrix, accuracy, deviations, sample, differing, groups)
    tally = counted(
        rest, places[inside], Column(answers.name, answers.values, answers.codes[inside])
    )
    left = np.maximum(rest.size - np.bincount(rest.of(places[~inside]), minlength=len(rest)), 1)
    by_strata = matrix_spread(tally, left, finite=finite)
    wider = matrix if matrix.bound() >= by_strata.bound() else by_strata
    n = tally.group_answers
    fraction = np.where(n > 0, 1.0 / np.maximum(n, 1) - (1.0 / left if finite else 0.0), 0.0)
    later = Sample.by_strata(
        places[inside],
        sums.label[inside],
        sums.new[inside],
        sums.old[inside],
        lean=0.0,
        stratum=rest.of(places[inside]).astype(np.int64),
        share=tally.group_share,
        fraction=np.maximum(fraction, 0.0),
        error=sample.error,
    )
    return Weighed(
        shift, wider, accuracy, deviations, replace(sample, least=later), differing, groups
    )


def _inside(stratum: Codes, places: Ints, inside: Bools) -> Floats:
    """Give the chance of each item (n,) if it was drawn inside its stratum, after those that were drawn otherwise."""
    mine, size = stratum[places], np.bincount(stratum)
    left = size - np.bincount(mine[~inside], minlength=len(size))
    return np.asarray(
        np.bincount(mine[inside], minlength=len(size))[mine] / np.maximum(left, 1)[mine]
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """The answers, with what each counts for; codes are places in names."""

    names: tuple[str, ...]
    labels: int
    place: Ints
    """(n,)"""
    label: Ints
    """(n,)"""
    cell: Ints
    """(n,)"""
    new: Ints
    """(n,)"""
    old: Ints
    """(n,)"""
    counts: Floats
    """(n,) the share of the estimate that the answer stands for"""
    adds: Floats
    """(n,) what a residual of 1 within its group of cells adds to the variance"""
    more: Floats
    """(n,) what one within its label adds besides, where the items stand for others: of those no more is known than the label"""
    cell_label: Ints
    """(C,)"""
    cell_old: Ints
    """(C,)"""
    cell_right: Ints
    """(C,) the right answer, or -1 where nobody gave it"""
    cell_wrong: Bools
    """(C,) whether the old answer was not the right one, and that one is known"""
    cell_share: Floats
    """(C,) the share of a cell in its group"""
    cell_group: Ints
    """(C,)"""
    reach: Floats
    """(G,) what the answers of a group of cells count for together"""
    weight: Floats
    """(G,) what they should"""
    mended: float
    """the share of wrong answers that became right"""

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
    ) -> "_Sums":
        place = {name: code for code, name in enumerate(names)}
        known = np.array([place.get(name, -1) for name in layout.names], np.int64)
        cells = layout.cells
        cell_old, cell_right = known[cells.old], np.where(cells.right >= 0, known[cells.right], -1)
        cell = layout.items.cell[places].astype(np.int64)
        new = np.array([place[name] for name in answers.values], np.int64)[answers.codes]
        # In the order of the batches: what was asked before a batch is no longer left when it is drawn.
        asked = np.bincount(draws.batch)
        sizes = np.zeros(len(asked), np.int64)
        sizes[draws.batch] = draws.size
        left = layout.left(places, draws.batch)
        inside = draws.probability == 0.0
        turned = int(draws.batch[inside].max(initial=0))
        sizes[turned] = asked[turned] if turned else sizes[turned]
        chance = np.where(inside, _inside(layout.rest.stratum, places, inside), draws.probability)
        share, adds = kernel.weigh(draws.batch, chance, sizes, left, turned)
        mine = layout.items.weight[places]
        counts = share * mine
        spread, more = adds * mine**2 if finite else counts**2, np.zeros(len(places))
        if layout.extra_variance is not None:
            # Where an API contradicts itself, they are one sample of all that might have been asked and answered.
            spread, more = (
                (spread, counts * layout.extra_variance[places]) if finite else (more, spread)
            )
        wrong = (cell_right >= 0) & (cell_right != cell_old)
        one = kernel.BELIEF / len(places)
        reach = np.bincount(cells.group[cell], counts, len(cells.group_weight)).astype(np.float64)
        together = reach[cells.group[cell]] + one
        among = wrong[cell]
        became = float(counts[among & (new == cell_right[cell])].sum())
        return cls(
            names=names,
            labels=len(layout.labels),
            place=places,
            label=cells.label[cell].astype(np.int64),
            cell=cell,
            new=new,
            old=cell_old[cell],
            counts=counts,
            # An answer is part of what is usual in its group: it differs more from what the others say.
            adds=spread * (together / (together - counts)) ** 2,
            more=more,
            cell_label=cells.label.astype(np.int64),
            cell_old=cell_old,
            cell_right=cell_right,
            cell_wrong=wrong,
            cell_share=cells.weight / np.maximum(cells.group_weight[cells.group], 1e-300),
            cell_group=cells.group.astype(np.int64),
            reach=reach,
            weight=cells.group_weight,
            mended=became / (float(counts[among].sum()) + one),
        )

    @property
    def one(self) -> float:
        """What the belief in the usual change counts for."""
        return kernel.BELIEF / len(self.new)

    def shift(self) -> Floats:
        """Give the estimated shift (L, P): in each group the answers brought to its weight, or else the usual change."""
        result = np.zeros((self.labels, len(self.names)))
        moved = self.new != self.old
        amount = (
            self.counts
            * ((self.weight + self.one) / (self.reach + self.one))[self.cell_group[self.cell]]
        )[moved]
        np.add.at(result, (self.label[moved], self.new[moved]), amount)
        np.add.at(result, (self.label[moved], self.old[moved]), -amount)
        wrong = self.cell_wrong
        lacking = (self.weight - self.reach) * self.one * self.mended / (self.reach + self.one)
        usual = (lacking[self.cell_group] * self.cell_share)[wrong]
        np.add.at(result, (self.cell_label[wrong], self.cell_right[wrong]), usual)
        np.add.at(result, (self.cell_label[wrong], self.cell_old[wrong]), -usual)
        return result

    def differing(self) -> float:
        """Give the share of answers that are not as before; a failure is no answer."""
        moved = (self.new != self.old) & (self.new != self.error) & (self.old != self.error)
        amount = (
            self.counts
            * ((self.weight + self.one) / (self.reach + self.one))[self.cell_group[self.cell]]
        )[moved]
        lacking = (self.weight - self.reach) * self.one * self.mended / (self.reach + self.one)
        usual = (lacking[self.cell_group] * self.cell_share)[self.cell_wrong]
        return min(1.0, max(0.0, float(amount.sum() + usual.sum())))

    def sample(self) -> Sample:
        """Give the answers as they are weighed."""
        group = self.cell_group[self.cell]
        whole = self.reach + self.one
        return Sample(
            self.place,
            self.label,
            self.new,
            self.old,
            1.0,
            self.adds,
            self.counts,
            group,
            whole,
            shrunk=False,
            error=self.error,
            times=(self.weight + self.one) / whole,
            more=self.more if self.more.any() else None,
        )

    @property
    def error(self) -> int:
        """The answer that stands for none, or -1."""
        return self.names.index(ERROR) if ERROR in self.names else -1

    def spreads(self, blind: float) -> tuple[Spread, Spread, Floats]:
        """Tell how far the matrix, the accuracy and each entry (L, P) may be off: by what the answers differ in each group.

        Where the items stand for others, by what they differ in each label besides.
        """
        each = np.zeros(len(self.new))
        variance = np.zeros((self.labels, len(self.names)))
        traces = np.zeros(3)
        for label in np.unique(self.label):
            mine = np.flatnonzero(self.label == label)
            own, group = np.unique(self.cell_group[self.cell[mine]], return_inverse=True)
            wrong = np.flatnonzero(self.cell_wrong & np.isin(self.cell_group, own))
            its_group = np.searchsorted(own, self.cell_group[wrong])
            right, was = self.cell_right[wrong], self.cell_old[wrong]
            kinds = np.unique(np.concatenate((self.new[mine], self.old[mine], right, was)))
            new, old = (
                np.searchsorted(kinds, self.new[mine]),
                np.searchsorted(kinds, self.old[mine]),
            )
            moved = new != old
            # What is usual in a group: its own answers, and the usual change as far as it has few.
            mean = self._per_group(
                group[moved], new[moved], old[moved], self.counts[mine][moved], len(own), len(kinds)
            )
            amount = self.one * self.mended * self.cell_share[wrong]
            mean += self._per_group(
                its_group,
                np.searchsorted(kinds, right),
                np.searchsorted(kinds, was),
                amount,
                len(own),
                len(kinds),
            )
            mean /= (self.reach[own] + self.one)[:, None]
            parts = [_Residuals.of(self.adds[mine], new, old, group, mean, len(kinds))]
            if self.more.any():
                counts, none = self.counts[mine], np.zeros(len(mine), np.int64)
                mean = self._per_group(
                    none[moved], new[moved], old[moved], counts[moved], 1, len(kinds)
                )
                mean /= max(float(counts.sum()), 1e-300)  # Items without a label count for nothing.
                parts.append(_Residuals.of(self.more[mine], new, old, none, mean, len(kinds)))
            each[mine] = sum(part.each for part in parts)
            total = sum(part.total for part in parts)
            entry = np.sum([part.entries for part in parts], axis=0)
            # The few changes of an entry may all have been asked for certain: it varies as if they had been met by chance.
            times = np.bincount(new[moved], minlength=len(kinds)) + np.bincount(
                old[moved], minlength=len(kinds)
            )
            usual = total * (times + 0.5) / (len(mine) + 1.0)
            variance[label] = total * 0.5 / (len(mine) + 1.0)
            variance[label, kinds] = (times * np.maximum(entry, 0.0) + KAPPA * usual) / (
                times + KAPPA
            )
            if len(kinds) > MOST_PREDICTIONS:
                traces[:] = np.nan
                continue
            covariance = np.sum([part.covariance() for part in parts], axis=0)
            squared = covariance @ covariance
            traces += np.trace(covariance), np.trace(squared), np.sum(squared * covariance)
        known = (
            (float(traces[0]), float(traces[1]), float(traces[2]))
            if np.isfinite(traces).all()
            else (0.0, 0.0, 0.0)
        )
        return (
            self._spread(each, known, blind),
            self._accuracy(blind),
            np.sqrt(np.maximum(variance, 0.0)),
        )

    def _accuracy(self, blind: float) -> Spread:
        """Tell how far the share of right answers may be off."""
        gain, group = self.gain(), self.cell_group[self.cell]
        usual = (
            np.bincount(self.cell_group, self.cell_wrong * self.cell_share, len(self.reach))
            * self.one
            * self.mended
        )
        mean = (np.bincount(group, self.counts * gain, len(self.reach)) + usual) / (
            self.reach + self.one
        )
        by_label = np.bincount(self.label, self.counts * gain) / np.maximum(
            np.bincount(self.label, self.counts), 1e-300
        )
        variance = (
            self.adds * (gain - mean[group]) ** 2 + self.more * (gain - by_label[self.label]) ** 2
        )
        return Spread.of_one(self.adds + self.more, gain, blind, variance=float(variance.sum()))

    def gain(self) -> Floats:
        """Say of each answer (n,) whether it became right (1), wrong (-1) or neither."""
        right = self.cell_right[self.cell]
        return np.asarray((self.new == right).astype(np.float64) - (self.old == right))

    def by_group(self, group: Codes, groups: int) -> tuple[tuple[float, Spread] | None, ...]:
        """Estimate the change of the share of right answers in each group, from its own answers."""
        gain = self.gain()
        found: list[tuple[float, Spread] | None] = []
        for number in range(groups):
            mine = group == number
            total = float(self.counts[mine].sum())
            if total <= 0.0:
                found.append(None)
                continue
            change = float((self.counts[mine] * gain[mine]).sum()) / total
            adds = np.where(mine, self.adds + self.more, 0.0) / total**2
            found.append(
                (
                    change,
                    Spread.of_one(
                        adds, gain, 0.0, variance=float((adds * (gain - change) ** 2).sum())
                    ),
                )
            )
        return tuple(found)

    def _spread(self, each: Floats, traces: tuple[float, float, float], blind: float) -> Spread:
        """Add up what each answer (n,) adds; while few residuals are seen, one more of the largest might have been."""
        adds = self.adds + self.more
        total = float(adds.sum())
        unseen = 2.0 * float((adds**2).sum()) / total if total > 0.0 else 0.0
        return Spread(float(each.sum()), sqrt(float((each**2).sum()) + unseen**2), traces, blind)

    @staticmethod
    def _per_group(
        group: Ints, new: Ints, old: Ints, amount: Floats, groups: int, kinds: int
    ) -> Floats:
        """Add up what changed, plus for the new and minus for the old answer: (groups, kinds)."""
        result = np.zeros((groups, kinds))
        np.add.at(result, (group, new), amount)
        np.add.at(result, (group, old), -amount)
        return result


@dataclass(frozen=True, slots=True, eq=False)
class _Residuals:
    """How the answers of one label (n,) differ from what is usual in their group (G,), among some kinds of answers (K,)."""

    adds: Floats
    """(n,)"""
    new: Ints
    """(n,)"""
    old: Ints
    """(n,)"""
    each: Floats
    """(n,) what it adds to the variance"""
    mean: Floats
    """(G, K) what is usual: plus for the new, minus for the old answer"""
    together: Floats
    """(G, K) what changed, by what it adds"""
    whole: Floats
    """(G,) what the answers add for a residual of 1"""

    @classmethod
    def of(
        cls, adds: Floats, new: Ints, old: Ints, group: Ints, mean: Floats, kinds: int
    ) -> "_Residuals":
        moved = new != old
        length = (mean**2).sum(axis=1)[group]
        squares = length + np.where(moved, 2.0 - 2.0 * (mean[group, new] - mean[group, old]), 0.0)
        together = _Sums._per_group(
            group[moved], new[moved], old[moved], adds[moved], len(mean), kinds
        )
        whole = np.bincount(group, adds, len(mean)).astype(np.float64)
        return cls(adds, new, old, adds * squares, mean, together, whole)

    @property
    def total(self) -> float:
        return float(self.whole.sum())

    @property
    def entries(self) -> Floats:
        """(K,) the variance of each kind of answer."""
        moved, kinds = self.new != self.old, self.mean.shape[1]
        square = np.bincount(self.new[moved], self.adds[moved], kinds) + np.bincount(
            self.old[moved], self.adds[moved], kinds
        )
        return np.asarray(
            square
            - 2.0 * (self.together * self.mean).sum(axis=0)
            + (self.whole[:, None] * self.mean**2).sum(axis=0)
        )

    def covariance(self) -> Floats:
        """Give the covariance of the kinds (K, K)."""
        moved, kinds = self.new != self.old, self.mean.shape[1]
        new, old, adds = self.new[moved], self.old[moved], self.adds[moved]
        covariance = np.diag(np.bincount(new, adds, kinds) + np.bincount(old, adds, kinds))
        np.add.at(covariance, (new, old), -adds)
        np.add.at(covariance, (old, new), -adds)
        cross = self.together.T @ self.mean
        return np.asarray(
            covariance - cross - cross.T + (self.mean * self.whole[:, None]).T @ self.mean
        )
