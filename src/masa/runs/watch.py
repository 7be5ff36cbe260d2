"""Tell whoever watches how far a run is."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from masa.records import Progress, money_text
from masa.runs.budget import Budget
from masa.runs.tries import Count

SHOWN_EVERY = 0.3
"""Seconds between two reports of progress."""

SMALLEST_SHOWN = 5e-5
"""A smaller error is that of a run in which nothing has changed so far: it would say too much."""


@dataclass(slots=True)
class Watch:
    """Tell whoever watches how far a run is, and what holds it up."""

    budget: Budget
    count: Count
    items: int
    priced: bool
    progress: Progress | None
    error: Callable[[], float | None]
    """the current error of the estimate"""
    began: float = field(default_factory=time.monotonic)
    spent_before: int = 0
    shown: float = 0.0

    def __post_init__(self) -> None:
        self.spent_before = self.budget.spent_queries

    async def keep_showing(self) -> None:
        """Show it also while no answers come."""
        while self.progress is not None:
            await asyncio.sleep(SHOWN_EVERY + 0.1)
            self.show()

    def show(self) -> None:
        """Show it, if it is time."""
        now = time.monotonic()
        if self.progress is None or now - self.shown < SHOWN_EVERY:
            return
        self.shown = now
        self.progress(", ".join(self._parts(now)), min(1.0, self._done()))

    def _parts(self, now: float) -> list[str]:
        spent = self.budget.spent_queries
        parts = [f"{spent:,} queries"]
        if self.priced and self.budget.spent_money:
            parts.append(money_text(self.budget.spent_money))
        error = self.error()
        if error is not None and error > SMALLEST_SHOWN:
            parts.append(f"changes known to about {100 * error:.2g}%")
        parts.append(f"{(spent - self.spent_before) / max(now - self.began, 1e-9):.0f}/s")
        if self.count.last_trouble:
            parts.append(f"{self.count.last_trouble}, trying again")
        return parts

    def _done(self) -> float:
        """Give the share of the budget, in queries or in money, that is spent."""
        budget = self.budget
        done = budget.spent_queries / min(budget.queries or self.items, self.items)
        if budget.money:
            done = max(done, budget.spent_money / budget.money)
        return done
