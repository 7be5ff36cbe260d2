"""Assess recorded predictions many times: what would each method have cost, and how far off would it have been?"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import ceil, log
from pathlib import Path
from typing import Any, Required, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from masa.data.cheap_model import CHEAP, helped
from masa.data.dataset import Dataset, read
from masa.data.difficulty import beside, choose
from masa.data.features import Features, Words
from masa.data.files import Table
from masa.data.strata import Strata, mixed
from masa.errors import UsageError
from masa.inference.counts import true_matrix
from masa.records import Column, Curve, Floats, Ints, Point, Progress, Replay, Shift
from masa.replays.simulate import METHODS, MOST_QUERIES, NEED_OLD, Case, Outcome, Simulation
from masa.sampling import stratified as sampler
from masa.sampling.kernels import drawing as kernel
from masa.settings import Objective

ON_REQUEST = ("predictive", "auto")
"""Methods that are replayed only where they are named: they think for longer."""

logger = logging.getLogger(__name__)

BUDGETS = (500, 1000, 2000)
FINE, COARSE = 1.01, 1.1
"""Steps of the grid of query counts: near the answer, and elsewhere."""
MOST_RUNS = 100_000
LEAST_ERROR = 1e-6
ROUNDING = 1e-8
"""An error below this is rounding: of all items asked, or of none left uncertain."""
NOTABLE_BIAS = 0.005
"""The bias of accuracy from which on it is told."""
FEW_RUNS = 5
"""Runs that must lie beyond a quantile for it to be told."""
CHUNK = 2_000_000
"""Queries a thread simulates before it reports: a fraction of a second."""


class Options(TypedDict, total=False):
    """What `replay` and `replay_file` both take."""

    levels: int
    methods: Sequence[str] | None
    budgets: Sequence[int] | None
    runs: int
    target_error: float
    confidence: float
    replacement: bool
    a: float | str
    mix: Mapping[str, float] | None
    weights: str | Mapping[str, Any] | None
    seed: int
    workers: int | None
    progress: Progress | None


class FileOptions(Options, total=False):
    """What `replay_file` takes: the columns of the file besides."""

    label: Required[str]
    new: Required[str]
    old: str | None
    id: str | None
    difficulty: str | None
    old_confidence: str | None
    new_confidence: str | None
    also: Sequence[str]
    text: str | None
    cost: str | None
    group: str | None


def replay(
    data: Dataset,
    *,
    new: str,
    old: str | None = None,
    old_confidence: str | None = None,
    new_confidence: str | None = None,
    also: Sequence[str] = (),
    text: str | None = None,
    difficulty: str = "",
    levels: int = 3,
    methods: Sequence[str] | None = None,
    budgets: Sequence[int] | None = None,
    runs: int = 1000,
    target_error: float = 0.01,
    confidence: float = 0.95,
    replacement: bool = False,
    a: float | str = 1.0,
    mix: Mapping[str, float] | None = None,
    weights: str | Mapping[str, Any] | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Run many seeded assessments a method on the predictions in column `new`, on all cores.

    The same seed gives the same numbers with any number of workers (by default one a core). `difficulty` says in words where the
    data's difficulty comes from. Run r of `masa` and `optimal` draws a stratum's items in the same order, and that of `uniform`
    and `post-stratified` the same items, so that they are compared on the same luck. `also` are predictions that are free, the
    first of them a cheap model's; `text` is an input column whose words may tell what changed. Errors are those of the
    objective that `weights` names.
    """
    usual = _usual(old, replacement=replacement) if data.group is None else ("predictive",)
    named = tuple(methods) if methods is not None else usual
    _check(runs=runs, target_error=target_error, confidence=confidence, seed=seed, methods=named)
    strata = mixed(data, data.difficulty, levels=levels, mix=mix)
    _log(data, strata)
    answers, before = _recorded(data, new), None if old is None else _recorded(data, old)
    stops = _stops(budgets, items=len(data), replacement=replacement)
    exploration = sampler.theory_a(len(strata.labels), levels, stops[-1]) if a == "theory" else a
    if isinstance(exploration, str):
        raise UsageError(f"a is {a!r}", hint="give a number of 0 or more, or 'theory'")
    case = Case(
        data=data,
        strata=strata,
        new=answers,
        old=before,
        features=None
        if before is None
        else Features(
            before,
            None if old_confidence is None else _numbers(data, old_confidence),
            tuple(_recorded(data, name) for name in also),
            Words.of(data.texts(text))
            if text is not None and {"predictive", "auto"} & set(named)
            else None,
        ),
        cheap=_recorded(data, also[0]) if also else None,
        new_confidence=None if new_confidence is None else _numbers(data, new_confidence),
        objective=Objective.read(weights),
        levels=levels,
        mix=mix,
        replacement=replacement,
        a=exploration,
        seed=seed,
    )
    curves = []
    notes = []
    for number, method in enumerate(named):
        if method == "auto":
            notes.append(f"auto is {case.best}: " + case.why)
        study = Study(
            method=method,
            simulation=case.simulation(method),
            stops=stops,
            runs=runs,
            target=target_error,
            confidence=confidence,
            seed=seed,
            workers=workers or cores(),
        )

        def report(done: float, method: str = method, number: int = number) -> None:
            if progress is not None:
                progress(method, (number + done) / len(named))

        curves.append(study.curve(report))
    shift = (
        None if before is None else Shift(true_matrix(strata, before), true_matrix(strata, answers))
    )
    result = Replay(
        items=len(data),
        labels=len(strata.labels),
        predictions=len({*answers.values, *(before.values if before is not None else ())}),
        strata=len(strata),
        difficulty=difficulty,
        runs=runs,
        seed=seed,
        replacement=replacement,
        target_error=target_error,
        confidence=confidence,
        shift=shift,
        no_change_error=None if shift is None else _size(shift, case.objective),
        groups=() if data.group is None else data.group.values,
        curves=tuple(curves),
        notes=(*data.notes, *notes),
    )
    return replace(result, notes=(*result.notes, *_cautions(result, budgets)))


def _size(shift: Shift, objective: Objective) -> float:
    """Give how large a shift is by what is to be known: its norm, or its sum, with the weights."""
    weighted = objective.table(shift.new.labels, shift.new.predictions) * shift.values
    return abs(float(weighted.sum())) if objective.linear else float(np.linalg.norm(weighted))


def _usual(old: str | None, *, replacement: bool) -> tuple[str, ...]:
    """Give the methods that are replayed where none is named."""
    if replacement:
        return sampler.METHODS
    return tuple(
        name
        for name in METHODS
        if name not in ON_REQUEST and (old is not None or name not in NEED_OLD)
    )


def _log(data: Dataset, strata: Strata) -> None:
    if logger.isEnabledFor(logging.INFO):
        logger.info(
            "%s: %s items, fingerprint %s", data.source, f"{len(data):,}", data.fingerprint()
        )
        logger.info(
            "%d strata of %d to %d items", len(strata), strata.size.min(), strata.size.max()
        )
    if logger.isEnabledFor(logging.DEBUG):
        for label, level, size in zip(strata.label, strata.level, strata.size, strict=True):
            logger.debug("stratum: label %r, level %d, %d items", strata.labels[label], level, size)


def _cautions(result: Replay, budgets: Sequence[int] | None) -> Iterator[str]:
    """Say what a reader of the result could be misled by."""
    stops = result.curves[0].queries
    if budgets is not None and max(budgets) > stops[-1]:
        yield f"asking each item once takes {result.items:,} queries at most, so larger budgets were cut to that"
    if result.no_change_error is not None and result.target_error >= result.no_change_error:
        yield (
            f"the target error of {100 * result.target_error:.3g}% is not below {100 * result.no_change_error:.3g}%, "
            "the error of saying that nothing changed: reaching it proves nothing"
        )
    if any(curve.method == "masa" for curve in result.curves) and stops[0] < 2 * result.strata:
        yield f"masa asks each of the {result.strata} strata twice first, so it tells little below {2 * result.strata:,} queries"
    if result.runs * min(result.confidence, 1.0 - result.confidence) < FEW_RUNS:
        yield (
            f"{result.runs:,} runs are too few to tell what a confidence of {100 * result.confidence:.6g}% needs: "
            f"fewer than {FEW_RUNS} lie beyond it"
        )
    for curve in result.curves:
        if curve.queries_for_target is None:
            yield f"{curve.method} does not reach the target within {curve.path[-1].queries:,} queries"
        bias = curve.accuracy_bias[-1]
        # An error of accuracy is at most that of the matrix times the root of the number of labels.
        noise = 3.0 * curve.root_mean_squared_error[-1] * (result.labels / result.runs) ** 0.5
        if abs(bias) >= max(NOTABLE_BIAS, noise):
            agree = curve.method == "masa" and bias > 0
            cause = (
                "it asks less where its first answers agree"
                if agree
                else "labels without answers count as zero"
            )
            yield (
                f"the accuracy that {curve.method} finds with {curve.queries[-1]:,} queries is {100 * abs(bias):.2g} points "
                f"too {'high' if bias > 0 else 'low'} on average: {cause}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Recorded answers, and which columns of the data are what."""

    data: Dataset
    new: str
    old: str | None
    old_confidence: str | None
    new_confidence: str | None
    also: tuple[str, ...]
    text: str | None
    difficulty: str
    """where the data's difficulty comes from, in words"""

    def replay(self, **options: Unpack[Options]) -> Replay:
        """Replay them."""
        columns = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "data"
        }
        return replay(self.data, **columns, **options)


def read_recorded(
    source: str | Path,
    *,
    label: str,
    new: str,
    old: str | None = None,
    id: str | None = None,
    difficulty: str | None = None,
    old_confidence: str | None = None,
    new_confidence: str | None = None,
    also: Sequence[str] = (),
    text: str | None = None,
    cost: str | None = None,
    group: str | None = None,
    progress: Progress | None = None,
) -> Recorded:
    """Read the predictions in a file; difficulty is a column, else the confidence of the old answers, else one level."""
    table = Table.open(source)
    hardness = choose(table.columns, difficulty=difficulty, old=old, old_confidence=old_confidence)
    answers = [name for name in (old, new, *also) if name is not None]
    sure = beside(table.columns, old, old_confidence)
    sure_now = beside(table.columns, new, new_confidence) if sure is not None else None
    data = read(
        table,
        label=label,
        id=id,
        predictions=answers,
        difficulty=hardness.column,
        cost=cost,
        group=group,
        numbers=[name for name in (sure, sure_now) if name is not None],
        inputs=() if text is None else (text,),
    )
    if hardness.column is not None and hardness.column.removesuffix(
        "confidence"
    ) == new.removesuffix("prediction"):
        note = f"{hardness.column!r} comes with the answers of {new!r}: a real assessment would know it only after paying for them"
        data = replace(data, notes=(*data.notes, note))
    words = hardness.words
    if text is not None and not also and hardness.column is None:
        data = helped(data, text, progress=progress)
        also, words = (CHEAP,), "the confidence of a cheap model"
    return Recorded(data, new, old, sure, sure_now, tuple(also), text, words)


def replay_file(source: str | Path, **options: Unpack[FileOptions]) -> Replay:
    """Replay the predictions in a file; difficulty is a column, else the confidence of the old answers, else one level."""
    given: dict[str, Any] = dict(options)
    columns = {name: given.pop(name) for name in list(given) if name not in Options.__annotations__}
    return read_recorded(source, progress=options.get("progress"), **columns).replay(**given)


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """One method, replayed."""

    method: str
    simulation: Simulation
    stops: tuple[int, ...]
    runs: int
    target: float
    confidence: float
    seed: int
    workers: int

    def curve(self, report: Callable[[float], None]) -> Curve:
        """Simulate as far as the budgets and the target ask for."""
        limit = self.simulation.most
        high = min(limit, self.simulation.enough(target=self.target, confidence=self.confidence))
        low = max(1, high // 12)
        if self.method in ON_REQUEST:
            low, high = self._bracket(high)
        while True:
            grid = _grid(low, high, self.stops)
            outcome = self._simulate(grid, self.runs, report)
            within = np.count_nonzero(outcome.errors <= self.target, axis=0)
            first = _first(within >= self._runs_at(0.0))
            if high < limit and (first is None or grid[first] > high):
                # Beyond high there are only coarse steps and budgets.
                high = min(limit, 2 * high if first is None else int(grid[first]))
            elif first is not None and first > 0 and grid[first] < low:
                # Found among the coarse steps: look again with fine ones.
                low = int(grid[first - 1])
            else:
                break
        slack = (self.confidence * (1.0 - self.confidence) / self.runs) ** 0.5
        edges = [_first(within >= self._runs_at(shift)) for shift in (-slack, 0.0, slack)]
        low_end, needed, high_end = (None if edge is None else int(grid[edge]) for edge in edges)
        return self._summary(grid, outcome, needed, (low_end, high_end))

    def _bracket(self, high: int) -> tuple[int, int]:
        """Find about how many queries a method that thinks for long needs, from a few runs."""
        runs = min(self.runs, max(20, self.runs // 20))
        grid = _grid(1, high, (1,))[::10]
        outcome = self._simulate(grid, runs, lambda _: None)
        found = _first(np.quantile(outcome.errors, self.confidence, axis=0) <= self.target)
        guess = high if found is None else int(grid[found])
        return max(1, int(0.6 * guess)), min(self.simulation.most, int(1.4 * guess) + 10)

    def _runs_at(self, shift: float) -> int:
        """Give how many runs make the confidence, or a little more or less of it; 99.9% of 1,000 is 999, not 999.0000001."""
        return min(self.runs, ceil((self.confidence + shift) * self.runs - 1e-6))

    def _simulate(self, grid: Ints, runs: int, report: Callable[[float], None]) -> Outcome:
        row = {queries: k for k, queries in enumerate(self.stops)}
        checkpoints = np.array([(queries, row.get(int(queries), -1)) for queries in grid], np.int64)
        # Rows of sums for budgets that this grid does not reach stay empty.
        size = max(1, min(ceil(runs / 16), CHUNK // int(grid[-1])))
        chunks = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
        self._chunk(checkpoints[:0], range(1))  # Compile before the clock starts.
        total = Outcome.blank(runs, checkpoints, self.simulation, rows=len(self.stops))
        asked = 0
        begun = time.perf_counter()
        pool = ThreadPoolExecutor(self.workers)
        try:
            # In order, whichever thread is first: the sum of floats depends on it.
            for chunk, part in zip(
                chunks, pool.map(lambda chunk: self._chunk(checkpoints, chunk), chunks), strict=True
            ):
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
        keys = np.array([kernel.run_key(self.seed, run) for run in runs], np.uint64)
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
        at = np.searchsorted(grid, self.stops)
        bias = outcome.sums / self.runs - self.simulation.truth
        return Curve(
            method=self.method,
            queries=self.stops,
            mean_squared_error=tuple(squared[at].tolist()),
            error_quantile=tuple(quantile[at].tolist()),
            bias_share=tuple(
                _bias_share(row, float(mse), self.runs)
                for row, mse in zip(bias, squared[at], strict=True)
            ),
            accuracy_bias=tuple(bias[:, self.simulation.right].sum(axis=1).tolist()),
            queries_for_target=needed,
            queries_range=spread,
            first_change=_first_change(outcome.first),
            noticed=tuple(
                float(np.mean((outcome.first > 0) & (outcome.first <= budget)))
                for budget in self.stops
            ),
            group_errors=tuple(
                tuple(row) for row in np.sqrt(outcome.groups.T / self.runs).tolist()
            ),
            draws_per_second=outcome.asked / max(outcome.seconds, 1e-9),
            path=tuple(
                Point(int(q), float(mse) ** 0.5, float(quant))
                for q, mse, quant in zip(grid, squared, quantile, strict=True)
            ),
        )


def _first_change(first: Ints) -> tuple[int | None, int | None] | None:
    """Give the median and the 95% quantile of the queries up to the first change; None for runs that saw none."""
    if not first.any():
        return None
    never = np.iinfo(np.int64).max
    found = np.quantile(np.where(first == 0, never, first), (0.5, 0.95), method="inverted_cdf")
    median, late = (None if value == never else int(value) for value in found)
    return median, late


def cores() -> int:
    """Give the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _recorded(data: Dataset, name: str) -> Column:
    if name not in data.predictions:
        close = get_close_matches(name, data.predictions, 1)
        known = ", ".join(repr(column) for column in data.predictions) or "none"
        raise UsageError(
            f"the data has no predictions {name!r}",
            hint=f"did you mean {close[0]!r}?" if close else f"it has {known}",
        )
    return data.predictions[name]


def _numbers(data: Dataset, name: str) -> Floats:
    if name not in data.numbers:
        raise UsageError(
            f"the data has no column {name!r} of numbers", hint="read it with numbers=[...]"
        )
    return data.numbers[name]


def _first(true: npt.NDArray[np.bool_]) -> int | None:
    return int(np.argmax(true)) if true.any() else None


def _bias_share(bias: Floats, mse: float, runs: int) -> float | None:
    """Give squared bias over squared error; the mean of R runs alone is off by the variance over R."""
    if runs < 2:
        return None
    if mse < ROUNDING**2:
        return 0.0
    squared = float(np.sum(bias**2))
    return min(1.0, max(0.0, squared - (mse - squared) / (runs - 1)) / mse)


def _grid(low: int, high: int, stops: Sequence[int]) -> Ints:
    """Give rising numbers of queries: fine steps from low to high, coarse ones around, and the budgets.

    >>> _grid(4, 7, [5]).tolist()
    [1, 2, 3, 4, 5, 6, 7]
    """
    end = max(high, *stops)
    around, near = (_steps(1, low, COARSE), _steps(high, end, COARSE)), _steps(low, high, FINE)
    return np.unique(
        np.concatenate((*around, near, np.array([*stops, high], np.float64))).astype(np.int64)
    )


def _steps(first: int, last: int, factor: float) -> Floats:
    return np.floor(np.geomspace(first, last, 2 + int(log(max(first, last) / first) / log(factor))))


def _stops(budgets: Sequence[int] | None, *, items: int, replacement: bool) -> tuple[int, ...]:
    """Give the numbers of queries to report, none beyond the items where each is asked once."""
    wanted = BUDGETS if budgets is None else tuple(budgets)
    if not wanted or min(wanted) < 1 or max(wanted) > MOST_QUERIES:
        listed = ", ".join(str(budget) for budget in wanted) or "none"
        hint = f"give whole numbers from 1 to {MOST_QUERIES:,}: --budgets 500,1000,2000"
        raise UsageError(f"budgets are {listed}", hint=hint)
    if replacement or max(wanted) <= items:
        return tuple(sorted(set(wanted)))
    if budgets is not None:
        return tuple(sorted({min(budget, items) for budget in wanted}))
    return tuple(budget for budget in BUDGETS if budget <= items) or (items,)


def _check(
    *, runs: int, target_error: float, confidence: float, seed: int, methods: Sequence[str]
) -> None:
    if not 1 <= runs <= MOST_RUNS:
        raise UsageError(f"runs is {runs}", hint=f"give a whole number from 1 to {MOST_RUNS:,}")
    if not LEAST_ERROR <= target_error < 1.0:
        raise UsageError(
            f"target error is {target_error:g}",
            hint=f"give a share from {LEAST_ERROR:g} to less than 1, such as 0.01 or 1%",
        )
    if not 1e-6 <= confidence <= 1.0 - 1e-6:
        raise UsageError(
            f"confidence is {confidence}", hint="give a share between 0 and 1, such as 0.95 or 95%"
        )
    if not 0 <= seed < 2**63:
        raise UsageError(f"seed is {seed}", hint=f"give a whole number from 0 to {2**63 - 1}")
    if not methods:
        raise UsageError("no method is named", hint=f"the methods are {', '.join(METHODS)}")
    for method in methods:
        if method not in METHODS:
            close = get_close_matches(method, METHODS, 1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"the methods are {', '.join(METHODS)}"
            )
            raise UsageError(f"there is no method {method!r}", hint=hint)
    if len(set(methods)) < len(methods):
        raise UsageError("a method is named twice", hint="name each once")
