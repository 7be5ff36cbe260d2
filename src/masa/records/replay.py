"""What many assessments of recorded answers gave."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from masa.records.matrix import Shift

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class StoppingReport:
    """How assessments ended that stop by a rule."""

    runs: int
    coverage: float
    """how often, at the time of stopping, the interval held the true change, or the bound the true error"""
    queries_mean: float
    queries_p95: int
    false_alarms: float | None
    """how often a change was called that does not matter; None where it does"""
    misses: float | None
    """how often a change that matters was called none; None where none does"""
    early: float
    """how often it stopped by the rule, before the budget"""
    noticed: float
    """how often it was found that something moved"""
    width: float
    """the mean width of the interval for the change of accuracy"""


@dataclass(frozen=True, slots=True)
class Curve:
    """How the error of one method falls with the number of queries, over many replays."""

    method: str
    queries: tuple[int, ...]
    """the budgets that were asked for"""
    mean_squared_error: tuple[float, ...]
    error_quantile: tuple[float, ...]
    bias_share: tuple[float | None, ...]
    """squared bias over squared error, without what the number of runs alone would show; unknown for one run"""
    accuracy_bias: tuple[float, ...]
    """the mean estimate of accuracy less the true one"""
    queries_for_target: int | None
    queries_range: tuple[int | None, int | None]
    """what queries_for_target would be if the share of runs within the target were a standard error larger or smaller"""
    draws_per_second: float
    path: tuple["Point", ...]
    """the curve on a finer grid, for charts"""
    first_change: tuple[int | None, int | None] | None = None
    """queries up to the first changed answer, the median and the 95% quantile; None where nothing changed or is known to"""
    noticed: tuple[float, ...] = ()
    """by budget, how often an answer that changed is among those asked"""
    group_errors: tuple[tuple[float, ...], ...] = ()
    """by group and budget, the root of the mean squared error of the change of its share of right answers"""
    stopping: StoppingReport | None = None
    """how whole assessments end, where that was asked for"""

    @property
    def root_mean_squared_error(self) -> tuple[float, ...]:
        """One a budget."""
        return tuple(value**0.5 for value in self.mean_squared_error)


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a curve."""

    queries: int
    root_mean_squared_error: float
    error_quantile: float


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
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
    """the true shift; unknown without old predictions"""
    no_change_error: float | None
    """the error of saying that nothing changed"""
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]
    groups: tuple[str, ...] = ()

    def saving(self, method: str, against: str) -> float | None:
        """Give the share of queries for the target that a method saves against another; None where unknown."""
        needed = {curve.method: curve.queries_for_target for curve in self.curves}
        mine, other = needed.get(method), needed.get(against)
        return None if mine is None or not other else 1.0 - mine / other

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa replay --json` prints."""
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
            "accuracy": None
            if self.shift is None
            else {**asdict(self.shift.accuracy), "change": self.shift.accuracy.change},
            "methods": {
                curve.method: {
                    "queries": list(curve.queries),
                    "mean_squared_error": list(curve.mean_squared_error),
                    "error_quantile": list(curve.error_quantile),
                    "bias_share": list(curve.bias_share),
                    "accuracy_bias": list(curve.accuracy_bias),
                    "queries_for_target": curve.queries_for_target,
                    "queries_range": list(curve.queries_range),
                    "first_change": None
                    if curve.first_change is None
                    else {"median": curve.first_change[0], "p95": curve.first_change[1]},
                    "noticed": list(curve.noticed),
                    "group_errors": dict(
                        zip(self.groups, map(list, curve.group_errors), strict=False)
                    ),
                    "stopping": None if curve.stopping is None else asdict(curve.stopping),
                    "draws_per_second": curve.draws_per_second,
                }
                for curve in self.curves
            },
            "notes": list(self.notes),
        }
