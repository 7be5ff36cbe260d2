"""From counted answers to matrices, shifts, reports of strata and their errors."""

import numpy as np
import numpy.typing as npt

from masa.data.strata import Strata
from masa.errors import UsageError
from masa.inference.spread import (
    MOST_PREDICTIONS,
    PRIOR_ANSWERS,
    Spread,
    covariance_traces,
    pooled,
)
from masa.records import Codes, Column, Floats, Ints, Matrix, Shift, StratumReport, Tally, in_order
from masa.sampling.kernels import drawing as kernel


def estimated_matrix(tally: Tally) -> Matrix:
    """Estimate the confusion matrix: the mean of each group, times the share that it represents.

    Labels without answers have a row of zeros: nothing is known about them.
    """
    if not tally.group_answers.any():
        raise UsageError(
            "there is no answer to estimate from", hint="tell the sampler at least one answer"
        )
    values = np.zeros((len(tally.labels), len(tally.predictions)))
    answers = np.maximum(tally.group_answers[tally.cell_group], 1)
    weight = tally.group_share[tally.cell_group] * tally.cell_factor
    np.add.at(values, (tally.cell_label, tally.cell_prediction), weight * tally.counts / answers)
    return Matrix(tally.labels, tally.predictions, values).on(in_order(tally.predictions))


def true_matrix(strata: Strata, answers: Column) -> Matrix:
    """Compute the confusion matrix of an API whose answer to every item is known."""
    if strata.each is not None:
        return _weighted_matrix(strata, answers, strata.each)
    shares = stratum_shares(strata, answers)
    values = np.zeros((len(strata.labels), len(answers.values)))
    np.add.at(values, strata.label, strata.weight[:, None] * shares)
    return Matrix(strata.labels, answers.values, values)


def _weighted_matrix(strata: Strata, answers: Column, weight: Floats) -> Matrix:
    """Compute the confusion matrix of items with weights (N,) of their own."""
    row = strata.label[strata.of_position].astype(np.int64) * len(answers.values)
    entries = np.bincount(
        row + answers.codes[strata.items],
        weight[strata.items],
        len(strata.labels) * len(answers.values),
    )
    values = entries.astype(np.float64).reshape(len(strata.labels), -1)
    return Matrix(strata.labels, answers.values, values)


def stratum_shares(strata: Strata, answers: Column) -> Floats:
    """Give the share of each prediction in each stratum (S, P)."""
    return stratum_counts(strata, answers) / strata.size[:, None]


def stratum_counts(strata: Strata, answers: Column) -> Ints:
    """Count each prediction in each stratum (S, P)."""
    width = len(answers.values)
    keys = strata.of_position.astype(np.int64) * width + answers.codes[strata.items]
    return np.bincount(keys, minlength=len(strata) * width).reshape(len(strata), width)


def true_uncertainty(strata: Strata, answers: Column, *, replacement: bool) -> Floats:
    """Compute the uncertainty score of each stratum (S,).

    It is the probability that two of its items are answered differently: two different items where
    each is asked once, so that a stratum of one item is certain.
    """
    counts = stratum_counts(strata, answers).astype(np.float64)
    size = strata.size.astype(np.float64)
    score: Floats = 1.0 - (counts**2).sum(axis=1) / size**2
    if replacement:
        return score
    return score * size / np.maximum(size - 1.0, 1.0)


def estimated_shift(tally: Tally, *, old: Matrix, strata: Strata) -> Shift:
    """Estimate the shift against a known old matrix."""
    return Shift(old=old, new=estimated_matrix(tally), strata=stratum_reports(tally, strata))


def stratum_reports(tally: Tally, strata: Strata) -> tuple[StratumReport, ...]:
    """Report the queries of each stratum and the uncertainty score of their answers."""
    answers = np.bincount(tally.cell_stratum, tally.counts, len(strata)).astype(np.int64)
    equal_pairs = np.bincount(
        tally.cell_stratum, tally.counts * (tally.counts - 1.0), len(strata)
    ).astype(np.int64)
    reports = []
    for s in range(len(strata)):
        uncertainty = None
        if answers[s] >= 2:
            uncertainty = float(kernel.uncertainty(equal_pairs[s], answers[s]))
        reports.append(
            StratumReport(
                label=strata.labels[strata.label[s]],
                level=int(strata.level[s]),
                items=int(strata.size[s]),
                weight=float(strata.weight[s]),
                answers=int(answers[s]),
                uncertainty=uncertainty,
            )
        )
    return tuple(reports)


def make_possible(
    values: Floats, weight: Floats, labels: tuple[str, ...], predictions: tuple[str, ...]
) -> None:
    """Move each row of an estimated matrix (L, P) to the nearest shares that are not negative.

    The share of right answers stays as it is. Making up for negative shares from all other entries
    would take most from the right answers, and the accuracy would come out too low.
    """
    column = {name: j for j, name in enumerate(predictions)}
    for row, label in enumerate(labels):
        if (values[row] >= 0.0).all():
            continue
        total, right = float(weight[row]), column.get(label)
        if right is None:
            values[row] = nearest_shares(values[row], total)
            continue
        kept = min(max(values[row, right], 0.0), total)
        values[row, right] = 0.0
        others = np.arange(len(predictions)) != right
        values[row, others] = nearest_shares(values[row, others], total - kept)
        values[row, right] = kept


def nearest_shares(shares: Floats, total: float) -> Floats:
    """Give the nearest shares that are not negative and have this total.

    >>> nearest_shares(np.array([0.5, -0.1, 0.2]), 0.6).round(3).tolist()
    [0.45, 0.0, 0.15]
    """
    if not len(shares) or ((shares >= 0.0).all() and abs(shares.sum() - total) <= 1e-12):
        return shares
    if total <= 0.0:
        return np.zeros(len(shares))
    # The projection subtracts one number from all shares and cuts at zero. The number is the mean
    # excess of the largest shares, of as many as stay positive.
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(shares) + 1)
    positive = np.flatnonzero(falling > excess)
    if not len(positive):
        # The total is so small that rounding does not tell it from zero.
        return np.zeros(len(shares))
    return np.asarray(np.maximum(shares - excess[positive[-1]], 0.0))


def _entries(strata: Strata, answers: Column) -> Ints:
    """Give the entries of the matrix that ever occur (E,), as rising places in its flat form."""
    label = strata.label[strata.of_position].astype(np.int64)
    return np.unique(label * len(answers.values) + answers.codes[strata.items])


def right_entries(strata: Strata, answers: Column) -> npt.NDArray[np.bool_]:
    """Say which of the entries that occur (E,) are right answers."""
    rows, columns = np.divmod(_entries(strata, answers), len(answers.values))
    return np.array(
        [strata.labels[i] == answers.values[j] for i, j in zip(rows, columns, strict=True)],
        np.bool_,
    )


def recorded_answers(
    strata: Strata,
    answers: Column,
    *,
    group: Codes,
    factor: Floats,
    weights: Floats | None = None,
    linear: bool = False,
) -> kernel.Recorded:
    """Lay recorded answers out for the kernels that replay them.

    Weights (L, P) are the weights of the errors of the entries.
    """
    width = len(answers.values)
    keys = strata.of_position.astype(np.int64) * width + answers.codes[strata.items]
    cells, cell = np.unique(keys, return_inverse=True)
    stratum, prediction = cells // width, cells % width
    entries = _entries(strata, answers)
    entry = np.searchsorted(entries, strata.label[stratum].astype(np.int64) * width + prediction)
    truth = true_matrix(strata, answers).values.ravel()[entries]
    weight = np.ones(len(entries))
    if weights is not None:
        weight = weights.ravel()[entries]
    return kernel.Recorded(
        cell=cell.astype(np.int32),
        cell_group=group[stratum],
        cell_entry=entry.astype(np.int32),
        cell_factor=factor[stratum],
        truth=truth,
        truth_squared=float(np.sum((weight * truth) ** 2)),
        truth_sum=float(np.sum(weight * truth)),
        truth_entries=int(np.count_nonzero(truth)),
        weight=weight,
        linear=linear,
    )


def matrix_spread(tally: Tally, items: Ints, *, finite: bool = True) -> Spread:
    """Compute the spread of a matrix that was estimated from counts by stratum.

    Items (G,) is the number of items of each stratum. The finite population correction (finite)
    applies only to an API without noise.
    """
    n = tally.group_answers.astype(np.float64)
    fraction = variance_fraction(n, items, finite=finite)
    counts = tally.counts.astype(np.float64)
    # Answers are one-hot vectors, so that their squares add up to n.
    squares = n - np.bincount(tally.cell_group, counts**2, len(items)) / np.maximum(n, 1.0)
    return pooled(tally.group_share, n, fraction, squares, _traces(tally, n, fraction))


def entry_deviations(tally: Tally, items: Ints, *, rates: Floats, finite: bool = True) -> Floats:
    """Compute the standard error of each entry (L, P) of an estimated matrix.

    Rates (L, P) are the old shares of the predictions within each label. The variance of an entry
    is at least what its old rate gives, so that an answer nobody gave is not taken as impossible.
    """
    n = tally.group_answers.astype(np.float64)
    fraction = variance_fraction(n, items, finite=finite)
    variance = np.zeros((len(tally.labels), len(tally.predictions)))
    for label in np.unique(tally.cell_label):
        mine = tally.cell_label == label
        groups = np.unique(tally.cell_group[mine])
        counts = np.zeros((len(groups), len(tally.predictions)))
        np.add.at(
            counts,
            (np.searchsorted(groups, tally.cell_group[mine]), tally.cell_prediction[mine]),
            tally.counts[mine],
        )
        size = n[groups, None]
        common = (counts.sum(axis=0) + 0.5) / (size.sum() + 1.0)
        squares = counts * (1.0 - counts / size) + PRIOR_ANSWERS * common * (1.0 - common)
        weight = (tally.group_share[groups] ** 2 * fraction[groups])[:, None]
        before = rates[label] * (1.0 - rates[label])
        # Groups have few answers each, so their variances are shrunk towards that of the label.
        shrunk = squares / (size - 1.0 + PRIOR_ANSWERS)
        variance[label] = (weight * np.maximum(shrunk, before)).sum(axis=0)
    return np.sqrt(variance)


def variance_fraction(n: Floats | Ints, items: Ints, *, finite: bool) -> Floats:
    """Give the variance of the mean of n answers (G,) over that of one answer, 0 without answers.

    It is 1/n - 1/items if n of a finite number of items (G,) were drawn, otherwise 1/n.
    """
    fraction = 1.0 / np.maximum(n, 1.0)
    if finite:
        fraction = fraction - 1.0 / items
    return np.where(n > 0, np.maximum(fraction, 0.0), 0.0)


def _traces(tally: Tally, n: Floats, fraction: Floats) -> tuple[float, float, float]:
    """Add up, over the labels, the traces of the plug-in covariance, its square and its cube.

    They are zero, for unknown, where a label has too many predictions for its covariance.
    """
    total = np.zeros(3)
    for label in np.unique(tally.cell_label):
        mine = np.flatnonzero(tally.cell_label == label)
        groups, group = np.unique(tally.cell_group[mine], return_inverse=True)
        predictions, prediction = np.unique(tally.cell_prediction[mine], return_inverse=True)
        if len(predictions) > MOST_PREDICTIONS:
            return 0.0, 0.0, 0.0
        mean = np.zeros((len(groups), len(predictions)))
        np.add.at(mean, (group, prediction), tally.counts[mine])
        mean /= n[groups, None]
        scale = tally.group_share[groups] ** 2 * fraction[groups]
        covariance = np.diag(scale @ mean) - (scale[:, None] * mean).T @ mean
        total += covariance_traces(covariance)
    return float(total[0]), float(total[1]), float(total[2])
