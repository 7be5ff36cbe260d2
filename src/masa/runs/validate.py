"""Check what a run would begin with; nothing is asked."""

from dataclasses import asdict, dataclass
from typing import Any

from masa.data.baseline_answers import from_column, narrowed
from masa.errors import MasaError
from masa.inference.method import Plan, stratified
from masa.records import amount
from masa.runs.stored_baseline import compared
from masa.runs.task import Task, worst_price
from masa.storage import history
from masa.storage.store import opened


@dataclass(frozen=True, slots=True)
class Validated:
    """What was found when nothing was asked."""

    items: int
    labels: int
    strata: int
    method: str
    client: str
    worst_cost: float | None
    queries: int | None
    money: float | None
    baseline: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa validate --json` prints."""
        return {"valid": True, **asdict(self), "notes": list(self.notes)}

    @property
    def text(self) -> str:
        """Tell it in a few lines."""
        every = (
            "only queries are counted"
            if self.worst_cost is None
            else f"asking every item costs at the most {self.worst_cost:g}"
        )
        limits = [f"{self.queries:,} queries"] if self.queries else []
        limits += [f"{self.money:g} in money"] if self.money else []
        return "\n".join(
            [
                f"data      {self.items:,} items, {self.labels:,} labels, {self.strata:,} strata",
                f"method    {self.method}",
                f"api       {self.client}; {every}",
                f"budget    {' and '.join(limits) or 'none: masa will ask before it spends'}",
                f"baseline  {self.baseline}",
                "Nothing was asked, nothing was spent.",
            ]
        )


def validated(task: Task) -> Validated:
    """Check what a run would begin with."""
    config, notes = task.config, list(task.data.notes)
    old = (
        None if task.old is None else from_column(task.data, task.old, task.settings.old_confidence)
    )
    found = (
        f"the column {config.data.old!r}"
        if config.data.old
        else "none yet: masa baseline makes one"
    )
    data = task.data
    if task.old is None and config.store.is_file():
        with opened(config.store) as kept:
            run = history.current(kept, config.name)
            if run is not None:
                found = f"run {run.id} of {run.created[:10]}"
                try:
                    data, old = narrowed(*compared(kept, data, task.client, None, name=config.name))
                except MasaError as exc:
                    notes.append(f"{exc.message} (a new masa baseline mends that)")
                else:
                    found += f", {len(old.places):,} answers"
                    notes += old.notes
    method = task.settings.method
    if old is None:
        strata, _ = stratified(data, None, task.settings)
    else:
        plan = Plan.of(data, old, task.settings)
        method, strata = plan.method, plan.strata
        notes += plan.notes
    budget = config.budget
    if budget.queries is not None and budget.queries < 2 * len(strata) and method != "predictive":
        notes.append(
            f"the budget of {budget.queries:,} queries cannot ask two items of each of the {len(strata):,} strata; "
            f"raise it to {2 * len(strata):,} or more, or lower the levels"
        )
    return Validated(
        items=len(data),
        labels=len(data.labels),
        strata=len(strata),
        method=method,
        client=str(task.client.describe().get("api", "")),
        worst_cost=amount(worst_price(task.client, data)) if task.client.priced else None,
        queries=budget.queries,
        money=budget.money,
        baseline=found,
        notes=tuple(notes),
    )
