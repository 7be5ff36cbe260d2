"""A plan: the cost of a precision, and the precision that a budget buys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from masa.records.replay import Replay
from masa.records.shown import Shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Between:
    """A range of queries; None where even all items may not be enough."""

    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The queries for one precision."""

    error: float
    """the Frobenius error of the shift that the estimate stays below, at the confidence"""
    queries: Mapping[str, int | None]
    """by method; None where even all items are not enough"""
    until_sure: int | None
    """the mean queries after which an assessment with this target error stops by itself"""
    proves_nothing: bool
    """whether saying that nothing changed has no larger error: reaching it then proves nothing"""
    range: Between | None = None
    """of the first method's queries, from a change that hits doubtful answers far more than others
    to one that hits all alike; None where an earlier assessment tells what changes"""
    other_shares: Mapping[float, int | None] = field(default_factory=dict)
    """the first method's queries if another share of the answers changed; 0 where saying that
    nothing changed is as good"""


@dataclass(frozen=True, slots=True)
class Buys:
    """The precision that a number of queries buys."""

    queries: int
    error: float
    """the Frobenius error of the shift that the estimate stays below"""
    accuracy: float
    """half the width of the interval for the change of accuracy"""
    noticed: tuple[float, ...]
    """the probability of noticing any change, by the share of answers that changed"""
    smallest: Mapping[str, float | None] = field(default_factory=dict)
    """by label, the smallest share of its answers whose change is noticed with 95%; None where even
    a change of all of them may be missed"""


@dataclass(frozen=True, slots=True, eq=False)
class Forecast(Shown):
    """What a precision costs and what a budget buys, before anything is spent."""

    items: int
    changed: float
    """the share of answers that is assumed to have changed"""
    why: str
    """where that share comes from"""
    confidence: float
    method: str
    price: float | None
    """the mean money per query; None where only queries are counted"""
    costs: tuple[Cost, ...]
    sizes: tuple[float, ...]
    """shares of answers that may have changed, for the probability of noticing it"""
    buys: tuple[Buys, ...]
    blind: tuple[str, ...]
    """what the budgets cannot see, in words"""
    replay: Replay | None
    """what was simulated; None in a forecast that is not whole yet"""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Forecast for {self.items:,} items if {self.changed:.2%} of the answers changed>"

    def to_frame(self) -> "pd.DataFrame":
        """Return the queries and money for each precision, one row for each method."""
        import pandas as pd

        rows = [
            {"error": cost.error, "method": method, **self._spent(queries)}
            for cost in self.costs
            for method, queries in cost.queries.items()
        ]
        return pd.DataFrame(rows)

    def money(self, queries: int | None) -> float | None:
        """Return what queries cost."""
        if self.price is None or queries is None:
            return None
        return self.price * queries

    def to_dict(self) -> dict[str, Any]:
        """Return what `masa plan --json` prints."""
        return {
            "items": self.items,
            "changed": self.changed,
            "why": self.why,
            "confidence": self.confidence,
            "method": self.method,
            "price": self.price,
            "precision": [self._precision(cost) for cost in self.costs],
            "budgets": [self._budget(bought) for bought in self.buys],
            "cannot_see": list(self.blind),
            "notes": list(self.notes),
        }

    def _precision(self, cost: Cost) -> dict[str, Any]:
        between = None
        if cost.range is not None:
            ends = {"low": cost.range.low, "high": cost.range.high}
            between = {name: self._spent(queries) for name, queries in ends.items()}
        return {
            "error": cost.error,
            "methods": {name: self._spent(queries) for name, queries in cost.queries.items()},
            "range": between,
            "other_shares": [
                {"changed": share, **self._spent(queries)}
                for share, queries in cost.other_shares.items()
            ],
            "until_sure": self._spent(cost.until_sure),
            "proves_nothing": cost.proves_nothing,
        }

    def _budget(self, bought: Buys) -> dict[str, Any]:
        noticed = [
            {"changed": size, "chance": probability}
            for size, probability in zip(self.sizes, bought.noticed, strict=True)
        ]
        return {
            **self._spent(bought.queries),
            "error": bought.error,
            "accuracy": bought.accuracy,
            "noticed": noticed,
            "smallest_noticed": dict(bought.smallest),
        }

    def _spent(self, queries: int | None) -> dict[str, float | None]:
        return {"queries": queries, "cost": self.money(queries)}
