"""The error to expect of predictive sampling by number of queries, from a few runs.

Replays count errors, which takes hundreds of runs. Here the variance of each batch is computed from
the answers that it did not ask, so that a few runs tell the same (decision 0028).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from masa.inference.method import Method
from masa.records import Curve, Floats, Ints, Point
from masa.replays.curve import cores
from masa.replays.simulate import NewAnswers, recorded_for
from masa.sampling.kernels import expectation as kernel
from masa.sampling.kernels.drawing import run_key
from masa.sampling.kernels.predictive import Recorded, new_run
from masa.sampling.layout import Layout

RUNS = 4
"""Runs of which the mean is taken; they differ by some percent."""

STEP = 1.02
"""The ratio of one number of queries to the one before."""

MOST_KINDS = 1_000
"""Kinds of changes are told apart up to so many."""

MOST_BATCHES = 2_000
"""A run that has more batches than any number of items takes ends there."""


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """What each item's answer adds to the error, and the kinds of changes there are."""

    of_items: kernel.Changes
    alike: Floats
    """(K, K) the squared cosine of the changes of two kinds"""

    @classmethod
    def of(cls, method: Method, recorded: Recorded) -> "_Changes":
        """Take them from the answers that will come.

        A change has a kind: its label, old and new answer.
        """
        layout = method.layout
        assert layout is not None  # noqa: S101
        goal, items, target = layout.goal, layout.items, recorded.target
        label, old, hit = layout.cells.label[items.cell], layout.old, np.flatnonzero(target >= 0)
        before, after = goal.weights[label, old], np.zeros(len(old))
        after[hit] = goal.weights[label[hit], target[hit]]
        root = np.zeros(len(old))
        if goal.linear:
            root[hit] = np.abs(after[hit] - before[hit])
        else:
            root[hit] = np.hypot(before[hit], after[hit])
        answers = len(layout.names)
        codes = (label[hit].astype(np.int64) * answers + old[hit]) * answers + target[hit]
        kinds, which = np.unique(codes, return_inverse=True)
        if goal.linear or not 0 < len(kinds) <= MOST_KINDS:
            # All changes add up in one number; or there are so many kinds that they hardly do.
            which, alike = np.zeros(len(hit), np.int64), np.full((1, 1), float(goal.linear))
        else:
            alike = _alike(kinds, answers)
        kind = np.full(len(old), -1, np.int32)
        kind[hit] = which
        return cls(kernel.Changes(root * items.weight, kind), alike)


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """One assessment of which all answers are known."""

    asked: Ints
    """(n,) the items, in their order"""
    told: Floats | None
    """(B, KINDS + K) what its batches vary by; None where it would switch to strata"""


def played(
    layout: Layout,
    recorded: Recorded,
    changes: kernel.Changes,
    *,
    seed: int,
    number: int,
    least: float,
    fewest: int,
    most: int | None = None,
) -> Played:
    """Run one assessment until its expected squared error is below `least`, or all are asked."""
    items = len(layout.old)
    canaries = layout.canaries(seed + number)
    run = new_run(items, items if most is None else most, canaries)
    told = np.zeros((MOST_BATCHES, kernel.KINDS + 1 + int(changes.kind.max(initial=0))))
    count = kernel.batches(
        layout.items,
        layout.cells,
        layout.goal,
        layout.prior,
        canaries,
        recorded,
        changes,
        least,
        fewest,
        layout.rest.may_switch,
        np.uint64(run_key(seed, number)),
        run,
        told,
    )
    # Every item that was asked had a chance to be.
    asked = run.asked[run.probability > 0.0].astype(np.int64)
    return Played(asked, None if count == kernel.SWITCHES else told[:count])


def expected_curve(
    method: Method,
    new: NewAnswers,
    *,
    budgets: Sequence[int],
    error: float,
    confidence: float,
    runs: int = RUNS,
    seed: int = 0,
) -> Curve | None:
    """Compute how the error falls with the number of queries, until it is below `error`.

    None where a run would switch to strata, whose error is not known along the way.
    """
    from scipy.stats import chi2

    layout = method.layout
    assert layout is not None  # noqa: S101
    items = len(layout.old)
    recorded = recorded_for(method, new)
    changes = _Changes.of(method, recorded)
    # Relative to its mean, no squared error has a larger quantile than that of one normal variable.
    least = error**2 / float(chi2.ppf(confidence, 1))

    def one(number: int) -> Floats | None:
        return played(
            layout,
            recorded,
            changes.of_items,
            seed=seed,
            number=number,
            least=least,
            fewest=min(items, max(budgets, default=0)),
        ).told

    with ThreadPoolExecutor(cores()) as pool:
        told = list(pool.map(one, range(runs)))
    known = [batches for batches in told if batches is not None]
    if len(known) < len(told):
        return None
    points = _points(known, items, budgets, changes.alike, confidence)
    return _curve(method.name, tuple(budgets), error, points)


def _points(
    told: Sequence[Floats], items: int, budgets: Sequence[int], alike: Floats, confidence: float
) -> list[Point]:
    """Give the points of the curve as far as all runs went."""
    points = []
    for queries in _grid(items, budgets):
        found = [_errors(batches, queries, items, alike) for batches in told]
        known = [one for one in found if one is not None]
        if len(known) < len(told):
            break
        mean, trace = (float(np.mean(part)) for part in zip(*known, strict=True))
        points.append(Point(queries, sqrt(mean), _quantile(mean, trace, confidence)))
    return points


def _curve(method: str, budgets: tuple[int, ...], error: float, points: list[Point]) -> Curve:
    at = {point.queries: point for point in points}
    bought = [at[min(budget, points[-1].queries)] for budget in budgets]
    reached = (point.queries for point in points if point.error_quantile <= error)
    return Curve(
        method=method,
        queries=budgets,
        mean_squared_error=tuple(point.root_mean_squared_error**2 for point in bought),
        error_quantile=tuple(point.error_quantile for point in bought),
        bias_share=(0.0,) * len(budgets),  # Its inclusion probabilities are known.
        accuracy_bias=(0.0,) * len(budgets),
        queries_for_target=next(reached, None),
        queries_range=(None, None),
        draws_per_second=0.0,
        path=tuple(points),
    )


def _alike(kinds: Ints, answers: int) -> Floats:
    """Give the squared cosine of each pair of kinds (K, K): of one label, by the answers shared."""
    label, rest = kinds // answers**2, kinds % answers**2
    old, new = rest // answers, rest % answers
    same = (old[:, None] == old) * 1.0 + (new[:, None] == new)
    same -= (old[:, None] == new) * 1.0 + (new[:, None] == old)
    return np.asarray(np.where(label[:, None] == label, (same / 2.0) ** 2, 0.0))


def _errors(told: Floats, queries: int, items: int, alike: Floats) -> tuple[float, float] | None:
    """Give the expected squared error after so many queries, and the squared trace of its kinds.

    None where the run ended before.
    """
    if queries >= items:
        return 0.0, 0.0
    if queries > told[-1, kernel.ASKED] + told[-1, kernel.SIZE]:
        return None
    rows = told[told[:, kernel.ASKED] < queries]
    if not len(rows):
        return None
    left, planned = rows[:, kernel.LEFT], rows[:, kernel.SIZE]
    size = np.minimum(planned, queries - rows[:, kernel.ASKED])
    weight = size / (left * np.maximum(left - size, 1e-9))
    share = (weight / weight.sum()) ** 2
    # Those of a batch that is cut short are a random part of it.
    variance = rows[:, kernel.VARIANCE] + (planned / size - 1.0) * rows[:, kernel.CUT]
    parts = share @ rows[:, kernel.KINDS :]
    scale = float(share @ variance)
    whole = float(parts.sum())
    trace = float(parts @ alike @ parts) * (scale / whole) ** 2 if whole > 0.0 else 0.0
    return scale, trace


def _quantile(square: float, trace: float, confidence: float) -> float:
    """Give the quantile of an error with this expected square and this trace of squares."""
    from scipy.stats import chi2

    if square <= 0.0:
        return 0.0
    freedom = max(1.0, square**2 / max(trace, 1e-300))
    return sqrt(square * float(chi2.ppf(confidence, freedom)) / freedom)


def _grid(items: int, budgets: Sequence[int]) -> list[int]:
    count = ceil(np.log(items) / np.log(STEP))
    numbers = np.unique(np.round(np.geomspace(1, items, max(count, 2))).astype(np.int64))
    return sorted({*numbers.tolist(), *budgets})
