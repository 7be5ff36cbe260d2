"""From counted answers to matrices, shifts and what is known of each stratum."""

import numpy as np
import numpy.typing as npt

from masa.data.strata import Strata
from masa.errors import UsageError
from masa.inference.spread import KAPPA, MOST_PREDICTIONS, Spread, pooled
from masa.records import Codes, Column, Floats, Ints, Matrix, Shift, StratumReport, Tally, in_order
from masa.sampling.kernels import drawing as kernel


def estimated_matrix(tally: Tally) -> Matrix:
    """Estimate the confusion matrix: each group's mean, times the share it stands for.

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
        label = strata.label[strata.of_position].astype(np.int64) * len(answers.values)
        entries = np.bincount(
            label + answers.codes[strata.items],
            strata.each[strata.items],
            len(strata.labels) * len(answers.values),
        )
        return Matrix(
            strata.labels,
            answers.values,
            entries.astype(np.float64).reshape(len(strata.labels), -1),
        )
    shares = stratum_shares(strata, answers)
    values = np.zeros((len(strata.labels), len(answers.values)))
    np.add.at(values, strata.label, strata.weight[:, None] * shares)
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
    """Compute the uncertainty score of each stratum (S,): the chance that two of its items are answered differently.

    Two different items where each is asked once; a stratum of one item is then certain.
    """
    counts = stratum_counts(strata, answers).astype(np.float64)
    size = strata.size.astype(np.float64)
    s2: Floats = 1.0 - (counts**2).sum(axis=1) / size**2
    return s2 if replacement else s2 * size / np.maximum(size - 1.0, 1.0)


def estimated_shift(tally: Tally, *, old: Matrix, strata: Strata) -> Shift:
    """Estimate the shift against a known old matrix."""
    return Shift(old=old, new=estimated_matrix(tally), strata=stratum_reports(tally, strata))


def stratum_reports(tally: Tally, strata: Strata) -> tuple[StratumReport, ...]:
    """Tell how the queries were spread over the strata and how unsure their answers are."""
    answers = np.bincount(tally.cell_stratum, tally.counts, len(strata)).astype(np.int64)
    equal = np.bincount(
        tally.cell_stratum, tally.counts * (tally.counts - 1.0), len(strata)
    ).astype(np.int64)
    return tuple(
        StratumReport(
            label=strata.labels[strata.label[s]],
            level=int(strata.level[s]),
            items=int(strata.size[s]),
            weight=float(strata.weight[s]),
            answers=int(answers[s]),
            uncertainty=float(kernel.uncertainty(equal[s], answers[s]))
            if answers[s] >= 2
            else None,
        )
        for s in range(len(strata))
    )


def make_possible(
    values: Floats, weight: Floats, labels: tuple[str, ...], predictions: tuple[str, ...]
) -> None:
    """Bring each row of an estimated matrix (L, P) to the nearest shares that are possible, its right answers as they are.

    To make up for shares below zero from all others would take most from the right answers, and their share would be too low.
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
    """Give the shares of 0 or more with this total that are nearest.

    >>> nearest_shares(np.array([0.5, -0.1, 0.2]), 0.6).round(3).tolist()
    [0.45, 0.0, 0.15]
    """
    if not len(shares) or ((shares >= 0.0).all() and abs(shares.sum() - total) <= 1e-12):
        return shares
    if total <= 0.0:
        return np.zeros(len(shares))
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(shares) + 1)
    return np.asarray(np.maximum(shares - excess[np.flatnonzero(falling > excess)[-1]], 0.0))


def _entries(strata: Strata, answers: Column) -> Ints:
    """Give the entries of the matrix that ever occur (E,), as places in its flattened form, rising."""
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
    """Lay recorded answers out for the kernels that replay them; weights (L, P) are what errors count for."""
    width = len(answers.values)
    keys = strata.of_position.astype(np.int64) * width + answers.codes[strata.items]
    cells, cell = np.unique(keys, return_inverse=True)
    stratum, prediction = cells // width, cells % width
    entries = _entries(strata, answers)
    entry = np.searchsorted(entries, strata.label[stratum].astype(np.int64) * width + prediction)
    truth = true_matrix(strata, answers).values.ravel()[entries]
    weight = np.ones(len(entries)) if weights is None else weights.ravel()[entries]
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
    """Tell how far a matrix may be off that was estimated from counts by stratum.

    Items (G,) are those of each stratum; that they are not endless counts only for an API that repeats itself (finite).
    """
    n, fraction = _sizes(tally, items, finite=finite)
    squares = n - np.bincount(
        tally.cell_group, tally.counts.astype(np.float64) ** 2, len(items)
    ) / np.maximum(n, 1.0)
    return pooled(tally.group_share, n, fraction, squares, _traces(tally, n, fraction))


def accuracy_spread(tally: Tally, items: Ints, *, finite: bool = True) -> Spread:
    """Tell how far the estimated share of right answers may be off."""
    n, fraction = _sizes(tally, items, finite=finite)
    mean = _right(tally) / np.maximum(n, 1.0)
    return pooled(tally.group_share, n, fraction, n * mean * (1.0 - mean), (0.0, 0.0, 0.0))


def entry_deviations(tally: Tally, items: Ints, *, rates: Floats, finite: bool = True) -> Floats:
    """Give the standard error of each entry (L, P) of an estimated matrix, if its rate (L, P) within the label were as before.

    What has never been answered is not taken for impossible: the variance is at least that of the old rate.
    """
    n, fraction = _sizes(tally, items, finite=finite)
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
        usual = (counts.sum(axis=0) + 0.5) / (size.sum() + 1.0)
        squares = counts * (1.0 - counts / size) + KAPPA * usual * (1.0 - usual)
        weight = (tally.group_share[groups] ** 2 * fraction[groups])[:, None]
        before = rates[label] * (1.0 - rates[label])
        variance[label] = (weight * np.maximum(squares / (size - 1.0 + KAPPA), before)).sum(axis=0)
    return np.sqrt(variance)


def _sizes(tally: Tally, items: Ints, *, finite: bool) -> tuple[Floats, Floats]:
    """Give the answers n (G,) and what the variance of a mean is of the variance of an answer, 1/n - 1/M (G,)."""
    n = tally.group_answers.astype(np.float64)
    fraction = 1.0 / np.maximum(n, 1.0) - (1.0 / items if finite else 0.0)
    return n, np.where(n > 0, np.maximum(fraction, 0.0), 0.0)


def _right(tally: Tally) -> Floats:
    """Count the right answers of each group (G,)."""
    pairs = zip(tally.cell_label.tolist(), tally.cell_prediction.tolist(), strict=True)
    right = np.array([tally.labels[i] == tally.predictions[j] for i, j in pairs], np.float64)
    return np.bincount(tally.cell_group, tally.counts * right, len(tally.group_answers)).astype(
        np.float64
    )


def _traces(tally: Tally, n: Floats, fraction: Floats) -> tuple[float, float, float]:
    """Add up, over the labels, the traces of the plug-in covariance, its square and its cube."""
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
        second = covariance @ covariance
        total += np.trace(covariance), np.trace(second), np.sum(second * covariance)
    return float(total[0]), float(total[1]), float(total[2])
