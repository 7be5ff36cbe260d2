"""Check what a run would begin with; nothing is asked."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from masa.clients import Client, check_items
from masa.data.baseline_answers import BaselineAnswers, from_column, narrowed
from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import CallError, MasaError
from masa.inference.method import Method, build_strata
from masa.records import ERROR, UNREAD, amount, billionths
from masa.runs.replies import cleaned
from masa.runs.stored_baseline import find_baseline
from masa.runs.task import Task
from masa.runs.unread import quoted
from masa.runs.waiting import waiting
from masa.storage import history
from masa.storage.store import opened

NOT_IMPORTED = (
    "{} was not imported: baseline and assess will run it with all your rights; read it if it is "
    "not yours, then --load-client checks it too"
)


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

    def last_lines(self, answers: "Sequence[Tried]") -> list[str]:
        """Say what was spent."""
        if not answers:
            return ["Nothing was asked, nothing was spent."]
        calls = "1 item was" if len(answers) == 1 else f"{len(answers)} items were"
        return [f"{calls} asked about; the answers are not kept."]

    @property
    def lines(self) -> list[str]:
        """Tell it in a few lines."""
        cost = "only queries are counted"
        if self.worst_cost is not None:
            cost = f"asking every item costs at most {self.worst_cost:g}"
        limits = []
        if self.queries:
            limits.append(f"{self.queries:,} queries")
        if self.money:
            limits.append(f"{self.money:g} in money")
        return [
            f"data      {self.items:,} items, {self.labels:,} labels, {self.strata:,} strata",
            f"method    {self.method}",
            f"api       {self.client}; {cost}",
            f"budget    {' and '.join(limits) or 'none: masa will ask before it spends'}",
            f"baseline  {self.baseline}",
        ]


@dataclass(frozen=True, slots=True)
class Tried:
    """One call that was sent to see how its answer is read."""

    item: str
    label: str
    prediction: str
    confidence: float | None = None
    version: str | None = None
    cost: float | None = None
    unread: str | None = None
    said: str | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa validate --ask N --json` prints of it."""
        return asdict(self)

    @property
    def text(self) -> str:
        """Tell it in a line."""
        if self.error is not None:
            return f"answer    {self.item}, labelled {self.label!r}: no answer: {self.error}"
        parts = [f"read as {self.prediction!r}"]
        if self.unread is not None:
            parts.append(f"it is among the answers that {UNREAD[self.unread]}")
        if self.said is not None:
            parts.append(f"it said {quoted(self.said)}")
        if self.confidence is not None:
            parts.append(f"confidence {self.confidence:.3g}")
        if self.version is not None:
            parts.append(f"version {self.version}")
        if self.cost is not None:
            parts.append(f"cost {self.cost:.6g}")
        return f"answer    {self.item}, labelled {self.label!r}: {', '.join(parts)}"


async def asked_async(task: Task, calls: int) -> list[Tried]:
    """Send a few calls, and say how each answer is read; nothing is stored."""
    try:
        return [await _tried(task, place) for place in range(min(calls, len(task.data)))]
    finally:
        await task.client.close()


asked = waiting(asked_async)


async def _tried(task: Task, place: int) -> Tried:
    """Ask about one item, once."""
    data, client = task.data, task.client
    name, label = data.name(place), data.label.values[data.label.codes[place]]
    item = data.item(place)
    price = client.price(item)
    try:
        reply = cleaned(await client.ask(item), price)
    except CallError as exc:
        error = ". ".join(filter(None, (str(exc), getattr(exc, "hint", ""), exc.said)))
        return Tried(name, label, ERROR, error=error)
    cost = amount(reply.cost or 0) if client.priced else None
    return Tried(
        name,
        label,
        str(reply.label),
        reply.confidence,
        reply.version,
        cost,
        reply.unread,
        reply.said,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Baseline:
    """The baseline that a run would compare with, as far as there is one."""

    data: Dataset
    old: BaselineAnswers | None
    words: str
    notes: tuple[str, ...] = ()


def validated(task: Task) -> Validated:
    """Check what a run would begin with."""
    config = task.config
    check_items(task.client, task.data)
    found = _baseline(task)
    strata, method, method_notes = _strata(task, found)
    notes = [*task.data.notes, *found.notes, *method_notes]
    budget = config.budget
    few = budget.queries is not None and budget.queries < 2 * len(strata)
    if few and method != "predictive":
        notes.append(
            f"the budget of {budget.queries:,} queries cannot ask two items of each of the "
            f"{len(strata):,} strata; raise it to {2 * len(strata):,} or more, or lower the levels"
        )
    if not task.context.imports and config.api and config.api.client.startswith("python:"):
        notes.append(NOT_IMPORTED.format(config.api.client.removeprefix("python:")))
    worst_cost = None
    if task.client.priced and budget.money is not None and len(found.data):
        one = task.client.price(found.data.item(0))
        if one > billionths(budget.money):
            notes.append(
                f"a call may cost {amount(one):g}, which the budget of {float(budget.money):g} in "
                "money does not allow: nothing would be asked"
            )
    if task.client.priced:
        worst_cost = amount(worst_price(task.client, found.data))
    return Validated(
        items=len(found.data),
        labels=len(found.data.labels),
        strata=len(strata),
        method=method,
        client=str(task.client.describe().get("api", "")),
        worst_cost=worst_cost,
        queries=budget.queries,
        money=None if budget.money is None else float(budget.money),
        baseline=found.words,
        notes=tuple(notes),
    )


def _baseline(task: Task) -> _Baseline:
    config, data = task.config, task.data
    if task.old is not None:
        old = from_column(data, task.old, task.settings.old_confidence)
        return _Baseline(data, old, f"the column {config.data.old!r}")
    none_yet = _Baseline(data, None, "none yet: masa baseline makes one")
    if not config.store.is_file():
        return none_yet
    with opened(config.store) as store:
        run = history.current(store, config.name)
        if run is None:
            return none_yet
        words = f"run {run.id} of {run.created[:10]}"
        try:
            data, old = narrowed(*find_baseline(store, data, task.client, None, name=config.name))
        except MasaError as exc:
            note = f"{exc.message} (a new masa baseline mends that)"
            return _Baseline(task.data, None, words, (note,))
    return _Baseline(data, old, f"{words}, {len(old.places):,} answers", old.notes)


def _strata(task: Task, found: _Baseline) -> tuple[Strata, str, tuple[str, ...]]:
    """Give the strata, the method and its notes."""
    if found.old is None:
        strata, _ = build_strata(found.data, None, task.settings)
        return strata, task.settings.method, ()
    method = Method.of(found.data, found.old, task.settings)
    return method.strata, method.name, method.notes


def worst_price(client: Client, data: Dataset, *, repeat: int = 0) -> int:
    """Give the most, in billionths, that asking every item once can cost.

    `repeat` items are asked a second time, at worst the dearest ones.
    """
    if not client.priced:
        return 0
    prices = [client.price(data.item(place)) for place in range(len(data))]
    return sum(prices) + repeat * max(prices)
