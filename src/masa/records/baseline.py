"""The result of recording a baseline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from masa.records.matrix import Interval, Matrix
from masa.records.shown import Shown


@dataclass(frozen=True, slots=True, eq=False)
class Baseline(Shown):
    """What an API answers on some data, and what that cost."""

    run: int
    stopped: str
    items: int
    answers: int
    errors: int
    queries: int
    cost: float | None
    matrix: Matrix | None
    repeated: int
    """items that were asked twice"""
    contradicted: int
    """those of them that were answered differently"""
    contradiction: Interval | None
    """the share of items that are answered differently when asked again"""
    api_version: str | None
    notes: tuple[str, ...]
    over_budget: float = 0.0
    """money above the budget, where calls cost more than was reserved for them"""
    unread: Mapping[str, int] = field(default_factory=dict)
    """answers that cannot be read as a label, by the reason"""

    def __repr__(self) -> str:
        right = "" if self.matrix is None else f", right answers {self.matrix.accuracy:.1%}"
        return f"<Baseline {self.run}: {self.answers:,} of {self.items:,} items{right}>"

    @property
    def complete(self) -> bool:
        """Whether every item has an answer, or failed for good."""
        return self.answers + self.errors == self.items

    @property
    def exit_code(self) -> int:
        """What the command exits with."""
        if self.stopped == "interrupted":
            return 130
        if self.stopped == "failures" or not self.answers:
            return 3
        return 0

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Baseline":
        """Read what `to_dict` returns."""
        matrix = contradiction = None
        if content["labels"]:
            values = np.array(content["matrix"], np.float64)
            matrix = Matrix(tuple(content["labels"]), tuple(content["predictions"]), values)
        repeats = content["repeats"]
        if repeats["low"] is not None:
            rate = repeats["contradicted"] / repeats["asked"]
            contradiction = Interval(rate, repeats["low"], repeats["high"])
        own = ("run", "stopped", "items", "answers", "errors", "queries", "cost", "api_version")
        return cls(
            **{name: content[name] for name in own},
            matrix=matrix,
            repeated=repeats["asked"],
            contradicted=repeats["contradicted"],
            contradiction=contradiction,
            notes=tuple(content["notes"]),
            over_budget=content.get("over_budget", 0.0),
            unread=dict(content.get("unread", {})),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `masa baseline --json` prints."""
        matrix: dict[str, Any] = {"accuracy": None, "labels": [], "predictions": [], "matrix": []}
        if self.matrix is not None:
            matrix["accuracy"] = self.matrix.accuracy
            matrix["labels"] = list(self.matrix.labels)
            matrix["predictions"] = list(self.matrix.predictions)
            matrix["matrix"] = self.matrix.values.tolist()
        low = high = None
        if self.contradiction is not None:
            low, high = self.contradiction.low, self.contradiction.high
        return {
            "run": self.run,
            "stopped": self.stopped,
            "complete": self.complete,
            "items": self.items,
            "answers": self.answers,
            "errors": self.errors,
            "queries": self.queries,
            "cost": self.cost,
            "over_budget": self.over_budget,
            **matrix,
            "repeats": {
                "asked": self.repeated,
                "contradicted": self.contradicted,
                "low": low,
                "high": high,
            },
            "api_version": self.api_version,
            "unread": dict(self.unread),
            "notes": list(self.notes),
        }
