"""The results of many assessments on recorded answers."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from masa.records.matrix import Shift
from masa.records.shown import Shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class StoppingReport:
    """How assessments with a stopping rule ended."""

    runs: int
    coverage: float
    """how often the interval covered the true change, or the bound the true error, when stopping"""
    queries_mean: float
    queries_p95: int
    false_alarms: float | None
    """how often the verdict was a change although none matters; None where one does"""
    misses: float | None
    """how often the verdict was no change although one matters; None where none does"""
    early: float
    """how often the rule stopped the run before the budget was spent"""
    noticed: float
    """how often any change was found"""
    width: float
    """the mean width of the interval for the change of accuracy"""


@dataclass(frozen=True, slots=True)
class Curve:
    """The error of one method by the number of queries, over many replays."""

    method: str
    queries: tuple[int, ...]
    """the budgets that were asked for"""
    mean_squared_error: tuple[float, ...]
    error_quantile: tuple[float, ...]
    bias_share: tuple[float | None, ...]
    """squared bias over mean squared error, less what a finite number of runs alone would show

    None for a single run.
    """
    accuracy_bias: tuple[float, ...]
    """the mean estimate of accuracy minus the true accuracy"""
    queries_for_target: int | None
    queries_range: tuple[int | None, int | None]
    """the same if the share of runs within the target were a standard error higher or lower"""
    draws_per_second: float
    path: tuple["Point", ...]
    """the curve on a finer grid, for charts"""
    first_change: tuple[int | None, int | None] | None = None
    """queries up to the first changed answer, the median and the 95% quantile

    None where no answer changed, or none is known to have changed.
    """
    noticed: tuple[float, ...] = ()
    """by budget, how often a changed answer is among those asked"""
    group_errors: tuple[tuple[float, ...], ...] = ()
    """by group and budget, the root mean squared error of the change of its accuracy"""
    stopping: StoppingReport | None = None
    """how whole assessments end, if that was asked for"""

    @property
    def root_mean_squared_error(self) -> tuple[float, ...]:
        """By budget."""
        return tuple(value**0.5 for value in self.mean_squared_error)

    def to_dict(self, groups: tuple[str, ...]) -> dict[str, Any]:
        """Return what `masa replay --json` prints for a method."""
        first_change = stopping = None
        if self.first_change is not None:
            median, p95 = self.first_change
            first_change = {"median": median, "p95": p95}
        if self.stopping is not None:
            stopping = asdict(self.stopping)
        return {
            "queries": list(self.queries),
            "mean_squared_error": list(self.mean_squared_error),
            "error_quantile": list(self.error_quantile),
            "bias_share": list(self.bias_share),
            "accuracy_bias": list(self.accuracy_bias),
            "queries_for_target": self.queries_for_target,
            "queries_range": list(self.queries_range),
            "first_change": first_change,
            "noticed": list(self.noticed),
            "group_errors": dict(zip(groups, map(list, self.group_errors), strict=False)),
            "stopping": stopping,
            "draws_per_second": self.draws_per_second,
        }


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a curve."""

    queries: int
    root_mean_squared_error: float
    error_quantile: float


@dataclass(frozen=True, slots=True, eq=False)
class Replay(Shown):
    """Many assessments on recorded predictions."""

    items: int
    labels: int
    predictions: int
    strata: int
    difficulty: str
    """what the levels were made from, in words"""
    runs: int
    seed: int
    replacement: bool
    target_error: float
    confidence: float
    shift: Shift | None
    """the true shift; None without baseline answers"""
    no_change_error: float | None
    """the error of saying that nothing changed"""
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]
    groups: tuple[str, ...] = ()
    method_notes: tuple[str, ...] = ()
    """those of the notes that say which method auto is, and why"""

    def __repr__(self) -> str:
        methods = ", ".join(curve.method for curve in self.curves)
        return f"<Replay of {self.items:,} items, {self.runs:,} runs: {methods}>"

    def to_frame(self) -> "pd.DataFrame":
        """Return the error of each method at each budget, one row each."""
        import pandas as pd

        rows = [
            {
                "method": curve.method,
                "queries": queries,
                "root_mean_squared_error": error,
                "error_quantile": quantile,
                "queries_for_target": curve.queries_for_target,
            }
            for curve in self.curves
            for queries, error, quantile in zip(
                curve.queries, curve.root_mean_squared_error, curve.error_quantile, strict=True
            )
        ]
        return pd.DataFrame(rows)

    def saving(self, method: str, against: str) -> float | None:
        """Return the share of the queries for the target that a method saves against another.

        None where one of the two does not reach the target.
        """
        needed = {curve.method: curve.queries_for_target for curve in self.curves}
        own = needed.get(method)
        other = needed.get(against)
        if own is None or not other:
            return None
        return 1.0 - own / other

    def to_dict(self) -> dict[str, Any]:
        """Return what `masa replay --json` prints."""
        accuracy = None
        if self.shift is not None:
            change = self.shift.accuracy
            accuracy = {**asdict(change), "change": change.change}
        return {
            "data": {
                "items": self.items,
                "labels": self.labels,
                "predictions": self.predictions,
                "strata": self.strata,
            },
            "runs": self.runs,
            "seed": self.seed,
            "replacement": self.replacement,
            "target_error": self.target_error,
            "confidence": self.confidence,
            "no_change_error": self.no_change_error,
            "accuracy": accuracy,
            "methods": {curve.method: curve.to_dict(self.groups) for curve in self.curves},
            "notes": list(self.notes),
        }
