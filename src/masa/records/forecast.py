"""What a precision costs and what a budget buys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from masa.records.replay import Replay

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Cost:
    """What it takes to know a shift so well."""

    error: float
    """the Frobenius error of the shift that the confidence is for"""
    queries: Mapping[str, int | None]
    """by method; None where even all items do not do"""
    until_sure: int | None
    """queries after which an assessment with this error as its target stops by itself, on average"""
    proves_nothing: bool
    """whether the error is not below that of saying that nothing changed: reaching it proves nothing"""


@dataclass(frozen=True, slots=True)
class Buys:
    """What a number of queries tells."""

    queries: int
    error: float
    """what the Frobenius error of the shift stays below"""
    accuracy: float
    """how far the interval for the change of accuracy reaches to either side"""
    noticed: tuple[float, ...]
    """the chance to notice that anything changed, by the share of answers that did"""


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What a precision costs and what a budget buys, before anything is spent."""

    items: int
    changed: float
    """the share of answers that is taken to have changed"""
    why: str
    """where that comes from"""
    confidence: float
    method: str
    price: float | None
    """money a query, on average; None where only queries are counted"""
    costs: tuple[Cost, ...]
    sizes: tuple[float, ...]
    """shares of answers that may have changed, for the chance to notice"""
    buys: tuple[Buys, ...]
    blind: tuple[str, ...]
    """what the budgets cannot see, in words"""
    replay: Replay
    notes: tuple[str, ...] = ()

    def money(self, queries: int | None) -> float | None:
        """Give what queries cost."""
        return None if self.price is None or queries is None else self.price * queries

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa plan --json` prints."""
        return {
            "items": self.items,
            "changed": self.changed,
            "why": self.why,
            "confidence": self.confidence,
            "method": self.method,
            "price": self.price,
            "precision": [
                {
                    "error": cost.error,
                    "methods": {
                        name: {"queries": n, "cost": self.money(n)}
                        for name, n in cost.queries.items()
                    },
                    "until_sure": {"queries": cost.until_sure, "cost": self.money(cost.until_sure)},
                    "proves_nothing": cost.proves_nothing,
                }
                for cost in self.costs
            ],
            "budgets": [
                {
                    "queries": bought.queries,
                    "cost": self.money(bought.queries),
                    "error": bought.error,
                    "accuracy": bought.accuracy,
                    "noticed": [
                        {"changed": size, "chance": chance}
                        for size, chance in zip(self.sizes, bought.noticed, strict=True)
                    ],
                }
                for bought in self.buys
            ],
            "cannot_see": list(self.blind),
            "notes": list(self.notes),
        }
