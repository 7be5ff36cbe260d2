"""Estimate a change from what was answered about the same items before and now.

What an API answers now is mostly what it answered before, so the difference of the two varies less than either. The
estimate takes as much of the old answer from each new one as is worth it (lean, from 0 to 1), and adds back what the old
answers are over all items, where that is known.
"""

from dataclasses import dataclass

import numpy as np

from masa.data.strata import Strata
from masa.inference.counts import estimated_matrix, make_possible, stratum_reports, true_matrix
from masa.inference.sample import Sample
from masa.inference.spread import KAPPA, MOST_PREDICTIONS, Spread, pooled
from masa.records import ERROR, Codes, Column, Floats, Ints, Matrix, Shift, in_order
from masa.sampling.stratified import counted


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """A shift, and how far it may be off."""

    shift: Shift
    matrix: Spread
    accuracy: Spread
    deviations: Floats
    """(L, P) the standard error of each entry of the shift"""
    lean: float
    """how much of the old answer is taken from each new one"""
    sample: Sample
    """the answers, as places in the predictions of the shift"""
    differing: float
    """the share of answers that are not as before"""


def paired(
    strata: Strata,
    places: Ints,
    old: Column,
    new: Column,
    *,
    all_old: Column | None = None,
    finite: bool = True,
) -> Paired:
    """Estimate the shift from the items at these places (n,), whose old and new answers are columns of n.

    All_old are the old answers of all items, where they are known. Without them both matrices are estimates from the same items,
    and the lean is 1.
    """
    pairs = _Pairs.of(strata, places, old, new, finite=finite)
    lean = 1.0 if all_old is None else pairs.best_lean()
    matrix, accuracy, seen = pairs.spreads(lean)
    if all_old is None:
        before, after = (estimated_matrix(counted(strata, places, column)) for column in (old, new))
    else:
        before = true_matrix(strata, all_old)
        after = pairs.adjusted(before, lean)
    shift = Shift(before, after, stratum_reports(counted(strata, places, new), strata))
    sample = pairs.sample(shift.new.predictions, lean)
    differing = float(sample.weight[sample.apart].sum())
    return Paired(
        shift, matrix, accuracy, pairs.deviations(shift, seen, lean), lean, sample, differing
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """The answers by stratum: n (S,), old and new codes (n,) into the same names."""

    strata: Strata
    names: tuple[str, ...]
    places: Ints
    stratum: Ints
    old: Codes
    new: Codes
    n: Floats
    fraction: Floats
    """(S,) what the variance of a mean is of the variance of an answer"""
    share: Floats
    """(S,) of the estimate; that of strata without answers is carried by others of their label"""

    @classmethod
    def of(
        cls, strata: Strata, places: Ints, old: Column, new: Column, *, finite: bool
    ) -> "_Pairs":
        names = in_order(old.values + new.values)
        code = {name: number for number, name in enumerate(names)}
        a, b = (
            np.array([code[value] for value in column.values], np.int32)[column.codes]
            for column in (old, new)
        )
        stratum = strata.of(places).astype(np.int64)
        n = np.bincount(stratum, minlength=len(strata)).astype(np.float64)
        fraction = np.where(
            n > 0, 1.0 / np.maximum(n, 1.0) - (1.0 / strata.size if finite else 0.0), 0.0
        )
        share = counted(strata, places, new).group_share
        return cls(strata, names, places, stratum, a, b, n, np.maximum(fraction, 0.0), share)

    def sample(self, predictions: tuple[str, ...], lean: float) -> Sample:
        """Give the answers as they are weighed, as places in these predictions."""
        place = {name: j for j, name in enumerate(predictions)}
        column = np.array([place[name] for name in self.names], np.int64)
        label = self.strata.label[self.stratum].astype(np.int64)
        return Sample.by_strata(
            self.places,
            label,
            column[self.new],
            column[self.old],
            lean=lean,
            stratum=self.stratum,
            share=self.share,
            fraction=self.fraction,
            error=place.get(ERROR, -1),
        )

    def best_lean(self) -> float:
        """Give the lean with the least variance, one for all strata: each alone would know too little."""
        size = (len(self.strata), len(self.names))
        x, y = (_counts(self.stratum, codes, size) for codes in (self.old, self.new))
        alike = np.bincount(self.stratum, self.old == self.new, len(self.strata))
        n = np.maximum(self.n, 2.0)
        weight = np.where(self.n >= 2.0, self.share**2 * self.fraction / (n - 1.0), 0.0)
        together = float(np.sum(weight * (alike - (x * y).sum(axis=1) / n)))
        apart = float(np.sum(weight * (self.n - (x**2).sum(axis=1) / n)))
        if apart <= 0.0:
            return float(bool((self.old == self.new).all()))
        return min(1.0, max(0.0, together / apart))

    def adjusted(self, before: Matrix, lean: float) -> Matrix:
        """Estimate the new matrix (L, P): the old one, leaned on, plus what the answers differ from that."""
        predictions = in_order(before.predictions + self.names)
        values = lean * before.on(predictions).values
        place = {name: j for j, name in enumerate(predictions)}
        column = np.array([place[name] for name in self.names], np.int64)
        label = self.strata.label[self.stratum]
        each = (self.share / np.maximum(self.n, 1.0))[self.stratum]
        np.add.at(values, (label, column[self.new]), each)
        np.add.at(values, (label, column[self.old]), -lean * each)
        answered = np.bincount(label, minlength=len(self.strata.labels)) > 0
        weight = self.strata.label_weight
        values[~answered] = 0.0  # Nothing is known of them.
        make_possible(values, weight, before.labels, predictions)
        return Matrix(before.labels, predictions, values)

    def spreads(self, lean: float) -> tuple[Spread, Spread, Floats]:
        """Tell how far the matrix, the accuracy and each entry (L, names) may be off."""
        strata, count = self.strata, len(self.names)
        label = strata.label[self.stratum].astype(np.int64)
        code = {name: number for number, name in enumerate(self.names)}
        right = np.array([code.get(name, -1) for name in strata.labels], np.int64)[label]
        gain = (self.new == right).astype(np.float64) - lean * (self.old == right)
        squares = np.zeros(len(strata))
        variance = np.zeros((len(strata.labels), count))
        traces = np.zeros(3)
        scatter_known = True
        for i in np.unique(label):
            mine = label == i
            kinds, kind = np.unique(
                np.concatenate((self.old[mine], self.new[mine])), return_inverse=True
            )
            x, y = kind[: mine.sum()], kind[mine.sum() :]
            groups, group = np.unique(self.stratum[mine], return_inverse=True)
            n = self.n[groups]
            size = (len(groups), len(kinds))
            mean = (_counts(group, y, size) - lean * _counts(group, x, size)) / n[:, None]
            same = _counts(group[x == y], x[x == y], size)
            second = (
                _counts(group, y, size) + lean**2 * _counts(group, x, size) - 2.0 * lean * same
            ) / n[:, None]
            squares[groups] = n * (second - mean**2).sum(axis=1)
            weight = self.share[groups] ** 2 * self.fraction[groups]
            overall = (second * n[:, None]).sum(axis=0) + 0.5
            shrunk = (n[:, None] * (second - mean**2) + KAPPA * overall / (n.sum() + 1.0)) / (
                n - 1.0 + KAPPA
            )[:, None]
            variance[np.ix_([i], kinds)] = (weight[:, None] * shrunk).sum(axis=0)
            if len(kinds) > MOST_PREDICTIONS:
                scatter_known = False
                continue
            each = (weight / n)[group]
            moment = np.zeros((len(kinds), len(kinds)))
            for rows, columns, sign in ((y, y, 1.0), (x, x, lean**2), (y, x, -lean), (x, y, -lean)):
                np.add.at(moment, (rows, columns), sign * each)
            covariance = moment - (weight[:, None] * mean).T @ mean
            squared = covariance @ covariance
            traces += np.trace(covariance), np.trace(squared), np.sum(squared * covariance)
        sums, sums2 = (np.bincount(self.stratum, gain**power, len(strata)) for power in (1, 2))
        gains = sums2 - sums**2 / np.maximum(self.n, 1.0)
        known = (
            (float(traces[0]), float(traces[1]), float(traces[2]))
            if scatter_known
            else (0.0, 0.0, 0.0)
        )
        matrix = pooled(self.share, self.n, self.fraction, squares, known)
        return (
            matrix,
            pooled(self.share, self.n, self.fraction, gains, (0.0, 0.0, 0.0)),
            np.sqrt(np.maximum(variance, 0.0)),
        )

    def deviations(self, shift: Shift, seen: Floats, lean: float) -> Floats:
        """Give the standard error of each entry (L, P), from those (L, names) of what was seen.

        What was never seen is not taken for impossible, and what is not leaned on varies as it did before.
        """
        weight = np.bincount(
            self.strata.label, self.share**2 * self.fraction, len(shift.old.labels)
        )
        answers = np.bincount(self.strata.label, self.n, len(shift.old.labels))
        total = shift.old.values.sum(axis=1, keepdims=True)
        rates = np.clip(shift.old.values / np.where(total > 0.0, total, 1.0), 0.0, 1.0)
        least = np.maximum(
            (1.0 - lean) ** 2 * rates * (1.0 - rates), (0.5 / (answers + 1.0) ** 2)[:, None]
        )
        result = np.sqrt(weight[:, None] * least)
        place = {name: j for j, name in enumerate(shift.new.predictions)}
        columns = np.array([place[name] for name in self.names], np.int64)
        result[:, columns] = np.maximum(result[:, columns], seen)
        return np.asarray(result)


def _counts(group: Ints, codes: Ints | Codes, size: tuple[int, int]) -> Floats:
    """Count codes by group: (groups, names)."""
    keys = group.astype(np.int64) * size[1] + codes
    return np.bincount(keys, minlength=size[0] * size[1]).reshape(size).astype(np.float64)
