"""From counted answers to matrices, shifts and what is known of each stratum."""

import numpy as np
import numpy.typing as npt

from masa import _kernel as kernel
from masa.errors import UsageError
from masa.records import Codes, Column, Floats, Ints, Matrix, Shift, StratumReport, Tally, in_order
from masa.strata import Strata


def matrix(tally: Tally) -> Matrix:
    """Estimate the confusion matrix: each group's mean, times the share it stands for.

    Labels without answers have a row of zeros: nothing is known about them.
    """
    if not tally.group_answers.any():
        raise UsageError("there is no answer to estimate from", hint="tell the sampler at least one answer")
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
            label + answers.codes[strata.items], strata.each[strata.items], len(strata.labels) * len(answers.values)
        )
        return Matrix(strata.labels, answers.values, entries.astype(np.float64).reshape(len(strata.labels), -1))
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


def shift(tally: Tally, *, old: Matrix, strata: Strata) -> Shift:
    """Estimate the shift against a known old matrix."""
    return Shift(old=old, new=matrix(tally), strata=stratum_reports(tally, strata))


def stratum_reports(tally: Tally, strata: Strata) -> tuple[StratumReport, ...]:
    """Tell how the queries were spread over the strata and how unsure their answers are."""
    answers = np.bincount(tally.cell_stratum, tally.counts, len(strata)).astype(np.int64)
    equal = np.bincount(tally.cell_stratum, tally.counts * (tally.counts - 1.0), len(strata)).astype(np.int64)
    return tuple(
        StratumReport(
            label=strata.labels[strata.label[s]],
            level=int(strata.level[s]),
            items=int(strata.size[s]),
            weight=float(strata.weight[s]),
            answers=int(answers[s]),
            uncertainty=float(kernel.uncertainty(equal[s], answers[s])) if answers[s] >= 2 else None,
        )
        for s in range(len(strata))
    )


def possible(values: Floats, weight: Floats, labels: tuple[str, ...], predictions: tuple[str, ...]) -> None:
    """Bring each row of an estimated matrix (L, P) to the nearest shares that are possible, its right answers as they are.

    To make up for shares below zero from all others would take most from the right answers, and their share would be too low.
    """
    column = {name: j for j, name in enumerate(predictions)}
    for row, label in enumerate(labels):
        if (values[row] >= 0.0).all():
            continue
        total, right = float(weight[row]), column.get(label)
        if right is None:
            values[row] = nearest(values[row], total)
            continue
        kept = min(max(values[row, right], 0.0), total)
        values[row, right] = 0.0
        others = np.arange(len(predictions)) != right
        values[row, others] = nearest(values[row, others], total - kept)
        values[row, right] = kept


def nearest(shares: Floats, total: float) -> Floats:
    """Give the shares of 0 or more with this total that are nearest.

    >>> nearest(np.array([0.5, -0.1, 0.2]), 0.6).round(3).tolist()
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
    return np.array([strata.labels[i] == answers.values[j] for i, j in zip(rows, columns, strict=True)], np.bool_)


def recorded(
    strata: Strata, answers: Column, *, group: Codes, factor: Floats, weights: Floats | None = None, linear: bool = False
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
