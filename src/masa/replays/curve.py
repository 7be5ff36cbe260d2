"""The error of one method by number of queries, found by running it many times."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import ceil, log

import numpy as np
import numpy.typing as npt

from masa.records import Curve, Floats, Ints, Point
from masa.replays.simulate import Outcome, Simulation
from masa.sampling.kernels import drawing
from masa.settings.methods import SLOW

logger = logging.getLogger(__name__)

FINE, COARSE = 1.01, 1.1
"""Steps of the grid of query counts: near the answer, and elsewhere."""

ROUNDING = 1e-8
"""An error below this is rounding: all items were asked, or none was left uncertain."""

CHUNK = 2_000_000
"""Queries that a thread simulates before it reports: a fraction of a second."""


@dataclass(frozen=True, slots=True, eq=False)
class CurveSearch:
    """One method, replayed as often as the budgets and the target ask for."""

    method: str
    simulation: Simulation
    budgets: tuple[int, ...]
    """the numbers of queries to report"""
    runs: int
    target: float
    confidence: float
    seed: int
    workers: int

    def curve(self, report: Callable[[float], None]) -> Curve:
        """Simulate until the number of queries that reaches the target is known to 1%."""
        limit = self.simulation.most
        guess = self.simulation.enough(target=self.target, confidence=self.confidence)
        high = min(limit, guess)
        low = max(1, high // 12)
        if self.method in SLOW:
            low, high = self._bracket(high)
        while True:
            grid = _grid(low, high, self.budgets)
            outcome = self._simulate(grid, self.runs, report)
            within = np.count_nonzero(outcome.errors <= self.target, axis=0)
            first = _first(within >= self._runs_needed(0.0))
            if high < limit and (first is None or grid[first] > high):
                # Beyond high there are only coarse steps and budgets: look there with fine ones.
                high = 2 * high if first is None else int(grid[first])
                high = min(limit, high)
            elif first is not None and first > 0 and grid[first] < low:
                # Found among the coarse steps below: look again with fine ones.
                low = int(grid[first - 1])
            else:
                break
        # What would be found if the share of runs within the target were a standard error off.
        error = (self.confidence * (1.0 - self.confidence) / self.runs) ** 0.5
        edges = [_first(within >= self._runs_needed(shift)) for shift in (-error, 0.0, error)]
        low_end, needed, high_end = (None if edge is None else int(grid[edge]) for edge in edges)
        return self._summary(grid, outcome, needed, (low_end, high_end))

    def _bracket(self, high: int) -> tuple[int, int]:
        """Find about how many queries a slow method needs, from a few runs."""
        runs = min(self.runs, max(20, self.runs // 20))
        grid = _grid(1, high, (1,))[::10]
        outcome = self._simulate(grid, runs, lambda _: None)
        found = _first(np.quantile(outcome.errors, self.confidence, axis=0) <= self.target)
        guess = high if found is None else int(grid[found])
        return max(1, int(0.6 * guess)), min(self.simulation.most, int(1.4 * guess) + 10)

    def _runs_needed(self, shift: float) -> int:
        """Give how many runs must be within the target: 99.9% of 1,000 is 999, not 999.0000001."""
        return min(self.runs, ceil((self.confidence + shift) * self.runs - 1e-6))

    def _simulate(self, grid: Ints, runs: int, report: Callable[[float], None]) -> Outcome:
        row = {queries: k for k, queries in enumerate(self.budgets)}
        checkpoints = np.array([(queries, row.get(int(queries), -1)) for queries in grid], np.int64)
        size = max(1, min(ceil(runs / 16), CHUNK // int(grid[-1])))
        chunks = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
        self._chunk(checkpoints[:0], range(1))  # Compile before the clock starts.
        # Rows of sums for budgets that this grid does not reach stay empty.
        total = Outcome.blank(runs, checkpoints, self.simulation, rows=len(self.budgets))
        asked = 0
        begun = time.perf_counter()
        pool = ThreadPoolExecutor(self.workers)
        try:
            parts = pool.map(lambda chunk: self._chunk(checkpoints, chunk), chunks)
            # In order, whichever thread is first: the sum of floats depends on it.
            for chunk, part in zip(chunks, parts, strict=True):
                total.errors[chunk.start : chunk.stop] = part.errors
                total.first[chunk.start : chunk.stop] = part.first
                total.sums[: len(part.sums)] += part.sums
                total.groups[: len(part.groups)] += part.groups
                asked += part.asked
                report(chunk.stop / runs)
        finally:
            pool.shutdown(cancel_futures=True)
        seconds = time.perf_counter() - begun
        logger.info("%s: %s queries replayed in %.2f s", self.method, f"{asked:,}", seconds)
        return replace(total, asked=asked, seconds=seconds)

    def _chunk(self, checkpoints: Ints, runs: range) -> Outcome:
        keys = np.array([drawing.run_key(self.seed, run) for run in runs], np.uint64)
        return self.simulation.run(keys, checkpoints)

    def _summary(
        self,
        grid: Ints,
        outcome: Outcome,
        needed: int | None,
        spread: tuple[int | None, int | None],
    ) -> Curve:
        squared = np.mean(np.square(outcome.errors, dtype=np.float64), axis=0)
        quantile = np.quantile(outcome.errors, self.confidence, axis=0, method="inverted_cdf")
        at = np.searchsorted(grid, self.budgets)
        bias = outcome.sums / self.runs - self.simulation.truth
        by_budget = zip(bias, squared[at], strict=True)
        first, group_errors = outcome.first, np.sqrt(outcome.groups.T / self.runs)
        points = zip(grid, squared, quantile, strict=True)
        return Curve(
            method=self.method,
            queries=self.budgets,
            mean_squared_error=tuple(squared[at].tolist()),
            error_quantile=tuple(quantile[at].tolist()),
            bias_share=tuple(_bias_share(row, float(mse), self.runs) for row, mse in by_budget),
            accuracy_bias=tuple(bias[:, self.simulation.right].sum(axis=1).tolist()),
            queries_for_target=needed,
            queries_range=spread,
            first_change=_first_change(first),
            noticed=tuple(
                float(np.mean((first > 0) & (first <= budget))) for budget in self.budgets
            ),
            group_errors=tuple(tuple(row) for row in group_errors.tolist()),
            draws_per_second=outcome.asked / max(outcome.seconds, 1e-9),
            path=tuple(Point(int(q), float(mse) ** 0.5, float(quant)) for q, mse, quant in points),
        )


def _first_change(first: Ints) -> tuple[int | None, int | None] | None:
    """Give the median and the 95% quantile of the queries up to the first change.

    None for runs that saw none.
    """
    if not first.any():
        return None
    never = np.iinfo(np.int64).max
    found = np.quantile(np.where(first == 0, never, first), (0.5, 0.95), method="inverted_cdf")
    median, late = (None if value == never else int(value) for value in found)
    return median, late


def cores() -> int:
    """Give the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _first(true: npt.NDArray[np.bool_]) -> int | None:
    return int(np.argmax(true)) if true.any() else None


def _bias_share(bias: Floats, mse: float, runs: int) -> float | None:
    """Give squared bias over squared error, less what the number of runs alone would show.

    The mean of R runs is off by the variance over R.
    """
    if runs < 2:
        return None
    if mse < ROUNDING**2:
        return 0.0
    squared = float(np.sum(bias**2))
    return min(1.0, max(0.0, squared - (mse - squared) / (runs - 1)) / mse)


def _grid(low: int, high: int, budgets: Sequence[int]) -> Ints:
    """Give rising numbers of queries.

    Fine steps from low to high, coarse ones around, and the budgets.

    >>> _grid(4, 7, [5]).tolist()
    [1, 2, 3, 4, 5, 6, 7]
    """
    end = max(high, *budgets)
    below, near, above = _steps(1, low, COARSE), _steps(low, high, FINE), _steps(high, end, COARSE)
    exact = np.array([*budgets, high], np.float64)
    return np.unique(np.concatenate((below, above, near, exact)).astype(np.int64))


def _steps(first: int, last: int, factor: float) -> Floats:
    count = 2 + int(log(max(first, last) / first) / log(factor))
    return np.floor(np.geomspace(first, last, count))
