"""Estimate a change from the baseline answers and the new answers to the same items.

What an API answers now is mostly what it answered before, so the difference of the two varies less
than either. The estimate subtracts from each new answer its baseline answer times a regression
coefficient from 0 to 1, and adds the same multiple of the baseline matrix, which is known from all
items (a regression estimator; decision 0007).
"""

from dataclasses import dataclass

import numpy as np

from masa.data.strata import Strata
from masa.inference.counts import (
    estimated_matrix,
    make_possible,
    stratum_reports,
    true_matrix,
    variance_fraction,
)
from masa.inference.sample import Sample
from masa.inference.spread import (
    MOST_PREDICTIONS,
    PRIOR_ANSWERS,
    Spread,
    Spreads,
    covariance_traces,
    pooled,
)
from masa.records import ERROR, Bools, Codes, Column, Floats, Ints, Matrix, Shift, in_order
from masa.sampling.stratified import counted


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """A shift estimated from pairs of answers, with its errors."""

    shift: Shift
    matrix: Spread
    accuracy: Spread | None
    deviations: Floats
    """(L, P) the standard error of each entry of the shift"""
    coefficient: float
    """regression coefficient on the baseline answer: how much of it is subtracted"""
    sample: Sample
    """the answers, coded as places in the predictions of the shift"""
    differing: float
    """the share of answers that differ from the baseline answers"""


def paired(
    strata: Strata,
    places: Ints,
    old: Column,
    new: Column,
    *,
    all_old: Column | None = None,
    finite: bool = True,
) -> Paired:
    """Estimate the shift from the items at these places (n,), with baseline and new answers (n,).

    All_old are the baseline answers of all items, where they are known. Without them both matrices
    are estimated from the same items, and the coefficient is 1.
    """
    pairs = _Pairs.of(strata, places, old, new, finite=finite)
    reports = stratum_reports(counted(strata, places, new), strata)
    if all_old is None:
        coefficient = 1.0
        before = estimated_matrix(counted(strata, places, old))
        after = estimated_matrix(counted(strata, places, new))
    else:
        coefficient = pairs.best_coefficient()
        before = true_matrix(strata, all_old)
        after = pairs.new_matrix(before, coefficient)
    shift = Shift(before, after, reports)
    spreads = pairs.spreads(coefficient)
    sample = pairs.sample(shift.new.predictions, coefficient)
    return Paired(
        shift,
        spreads.matrix,
        spreads.accuracy,
        pairs.deviations(shift, spreads.deviations, coefficient),
        coefficient,
        sample,
        differing=float(sample.weight[sample.differs].sum()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs of answers to items drawn inside strata; old and new are places in the same names."""

    strata: Strata
    names: tuple[str, ...]
    places: Ints
    """(n,) the items"""
    stratum: Ints
    """(n,)"""
    old: Codes
    """(n,)"""
    new: Codes
    """(n,)"""
    n: Floats
    """(S,) the number of answers"""
    fraction: Floats
    """(S,) the variance of a mean over that of one answer"""
    share: Floats
    """(S,) the share of the estimate; strata with answers carry those of their label without"""

    @classmethod
    def of(
        cls, strata: Strata, places: Ints, old: Column, new: Column, *, finite: bool
    ) -> "_Pairs":
        names = in_order(old.values + new.values)
        stratum = strata.of(places).astype(np.int64)
        n = np.bincount(stratum, minlength=len(strata)).astype(np.float64)
        return cls(
            strata,
            names,
            places,
            stratum,
            _coded(old, names),
            _coded(new, names),
            n,
            variance_fraction(n, strata.size, finite=finite),
            counted(strata, places, new).group_share,
        )

    def sample(self, predictions: tuple[str, ...], coefficient: float) -> Sample:
        """Give the answers with their weights, coded as places in these predictions."""
        column = self._columns(predictions)
        error = -1
        if ERROR in predictions:
            error = predictions.index(ERROR)
        return Sample.by_strata(
            self.places,
            self._label,
            column[self.new],
            column[self.old],
            coefficient=coefficient,
            stratum=self.stratum,
            share=self.share,
            fraction=self.fraction,
            error=error,
        )

    def best_coefficient(self) -> float:
        """Give the coefficient from 0 to 1 with the least estimated variance.

        It is one for all strata: each alone would have too few answers to estimate it.
        """
        size = (len(self.strata), len(self.names))
        old, new = _counts(self.stratum, self.old, size), _counts(self.stratum, self.new, size)
        # Answers are one-hot vectors: the product of two is 1 if they are equal, otherwise 0.
        equal = np.bincount(self.stratum, self.old == self.new, len(self.strata))
        n = np.maximum(self.n, 2.0)
        weight = np.where(self.n >= 2.0, self.share**2 * self.fraction / (n - 1.0), 0.0)
        covariance = float(np.sum(weight * (equal - (old * new).sum(axis=1) / n)))
        variance = float(np.sum(weight * (self.n - (old**2).sum(axis=1) / n)))
        if variance <= 0.0:
            # The baseline answers do not vary, or no stratum has two: subtract them only if they
            # predict every new answer.
            return float(bool((self.old == self.new).all()))
        return min(1.0, max(0.0, covariance / variance))

    def new_matrix(self, before: Matrix, coefficient: float) -> Matrix:
        """Estimate the new matrix (L, P) from the old one and the answers.

        It is coefficient times the old matrix, plus the mean of what new answers differ from
        coefficient times their baseline answers.
        """
        predictions = in_order(before.predictions + self.names)
        values = coefficient * before.on(predictions).values
        column = self._columns(predictions)
        label = self.strata.label[self.stratum]
        weight = (self.share / np.maximum(self.n, 1.0))[self.stratum]
        np.add.at(values, (label, column[self.new]), weight)
        np.add.at(values, (label, column[self.old]), -coefficient * weight)
        answered = np.bincount(label, minlength=len(self.strata.labels)) > 0
        # Nothing is known about these labels: they are taken to be as before.
        values[~answered] = before.on(predictions).values[~answered]
        make_possible(values, self.strata.label_weight, before.labels, predictions)
        return Matrix(before.labels, predictions, values)

    def spreads(self, coefficient: float) -> Spreads:
        """Compute the errors of the matrix, of the accuracy and of each entry (L, names)."""
        squares = np.zeros(len(self.strata))
        variance = np.zeros((len(self.strata.labels), len(self.names)))
        traces = np.zeros(3)
        scatter_known = True
        label = self._label
        for row in np.unique(label):
            moments = self._moments(label == row, coefficient)
            squares[moments.strata] = moments.squares
            weight = (self.share**2 * self.fraction)[moments.strata]
            variance[np.ix_([row], moments.kinds)] = moments.variances(weight)
            if len(moments.kinds) > MOST_PREDICTIONS:
                scatter_known = False
            else:
                traces += covariance_traces(moments.covariance(weight))
        known = (0.0, 0.0, 0.0)
        if scatter_known:
            known = (float(traces[0]), float(traces[1]), float(traces[2]))
        return Spreads(
            pooled(self.share, self.n, self.fraction, squares, known),
            np.sqrt(np.maximum(variance, 0.0)),
            self._accuracy(coefficient),
        )

    def _moments(self, mine: Bools, coefficient: float) -> "_Moments":
        """Compute the moments of the differences of the answers (n,) about one label."""
        both = np.concatenate((self.old[mine], self.new[mine]))
        kinds, kind = np.unique(both, return_inverse=True)
        answers = mine.sum()
        strata, stratum = np.unique(self.stratum[mine], return_inverse=True)
        return _Moments.of(
            kinds, kind[:answers], kind[answers:], strata, stratum, self.n[strata], coefficient
        )

    def _accuracy(self, coefficient: float) -> Spread:
        """Compute the spread of the share of right answers."""
        code = {name: number for number, name in enumerate(self.names)}
        right_of_label = [code.get(name, -1) for name in self.strata.labels]
        right = np.array(right_of_label, np.int64)[self._label]
        gain = (self.new == right).astype(np.float64) - coefficient * (self.old == right)
        sums = np.bincount(self.stratum, gain, len(self.strata))
        sums_of_squares = np.bincount(self.stratum, gain**2, len(self.strata))
        squares = sums_of_squares - sums**2 / np.maximum(self.n, 1.0)
        return pooled(self.share, self.n, self.fraction, squares, (0.0, 0.0, 0.0))

    def deviations(self, shift: Shift, seen: Floats, coefficient: float) -> Floats:
        """Give the standard error of each entry (L, P), given those (L, names) of the answers seen.

        An answer nobody gave is not taken as impossible, and the part of the old matrix that is not
        subtracted varies as it did before.
        """
        labels = len(shift.old.labels)
        weight = np.bincount(self.strata.label, self.share**2 * self.fraction, labels)
        answers = np.bincount(self.strata.label, self.n, labels)
        total = shift.old.values.sum(axis=1, keepdims=True)
        rates = np.clip(shift.old.values / np.where(total > 0.0, total, 1.0), 0.0, 1.0)
        smallest = np.maximum(
            (1.0 - coefficient) ** 2 * rates * (1.0 - rates), (0.5 / (answers + 1.0) ** 2)[:, None]
        )
        result = np.sqrt(weight[:, None] * smallest)
        columns = self._columns(shift.new.predictions)
        result[:, columns] = np.maximum(result[:, columns], seen)
        return np.asarray(result)

    @property
    def _label(self) -> Ints:
        """(n,) the labels of the items."""
        return self.strata.label[self.stratum].astype(np.int64)

    def _columns(self, predictions: tuple[str, ...]) -> Ints:
        """Give the column of each name (names,) among these predictions."""
        column = {name: j for j, name in enumerate(predictions)}
        return np.array([column[name] for name in self.names], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Moments of d = new - coefficient * old over the answers of one label, by stratum.

    Answers are one-hot vectors over the kinds (K,) of answers that occur.
    """

    kinds: Codes
    """(K,) places in the names"""
    old: Ints
    """(n,) as places in the kinds"""
    new: Ints
    """(n,)"""
    strata: Ints
    """(S,) those with answers"""
    stratum: Ints
    """(n,) as places in the strata"""
    n: Floats
    """(S,) the number of answers"""
    coefficient: float
    mean: Floats
    """(S, K) of d"""
    second: Floats
    """(S, K) mean of d^2"""

    @classmethod
    def of(
        cls,
        kinds: Codes,
        old: Ints,
        new: Ints,
        strata: Ints,
        stratum: Ints,
        n: Floats,
        coefficient: float,
    ) -> "_Moments":
        size = (len(strata), len(kinds))
        olds, news = _counts(stratum, old, size), _counts(stratum, new, size)
        equal = old == new
        same = _counts(stratum[equal], old[equal], size)
        mean = (news - coefficient * olds) / n[:, None]
        second = (news + coefficient**2 * olds - 2.0 * coefficient * same) / n[:, None]
        return cls(kinds, old, new, strata, stratum, n, coefficient, mean, second)

    @property
    def squares(self) -> Floats:
        """(S,) the sums of squared deviations, over all kinds."""
        return np.asarray(self.n * (self.second - self.mean**2).sum(axis=1))

    def variances(self, weight: Floats) -> Floats:
        """Give the variance of each kind (K,), those of the strata being shrunk towards their mean.

        Weight (S,) is what the variance of one answer adds.
        """
        n = self.n[:, None]
        common = (self.second * n).sum(axis=0) + 0.5
        shrunk = (
            n * (self.second - self.mean**2) + PRIOR_ANSWERS * common / (self.n.sum() + 1.0)
        ) / (self.n - 1.0 + PRIOR_ANSWERS)[:, None]
        return np.asarray((weight[:, None] * shrunk).sum(axis=0))

    def covariance(self, weight: Floats) -> Floats:
        """Give the plug-in covariance of the kinds (K, K)."""
        each = (weight / self.n)[self.stratum]
        moment = np.zeros((len(self.kinds), len(self.kinds)))
        np.add.at(moment, (self.new, self.new), each)
        np.add.at(moment, (self.old, self.old), self.coefficient**2 * each)
        np.add.at(moment, (self.new, self.old), -self.coefficient * each)
        np.add.at(moment, (self.old, self.new), -self.coefficient * each)
        return np.asarray(moment - (weight[:, None] * self.mean).T @ self.mean)


def _coded(column: Column, names: tuple[str, ...]) -> Codes:
    """Give the values of a column (n,) as places in these names."""
    code = {name: number for number, name in enumerate(names)}
    return np.array([code[value] for value in column.values], np.int32)[column.codes]


def _counts(group: Ints, codes: Ints | Codes, size: tuple[int, int]) -> Floats:
    """Count codes by group: (groups, codes)."""
    keys = group.astype(np.int64) * size[1] + codes
    return np.bincount(keys, minlength=size[0] * size[1]).reshape(size).astype(np.float64)
