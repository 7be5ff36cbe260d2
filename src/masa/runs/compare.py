"""Two APIs side by side on the same items: should I migrate?"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from masa.clients import Client, check_items
from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import MasaError, UsageError
from masa.inference.estimate import by_pairs
from masa.inference.method import build_strata
from masa.inference.paired import paired
from masa.inference.verdict import judged
from masa.records import (
    ERROR,
    Answer,
    Assessment,
    ChangedItem,
    Column,
    Ints,
    Query,
    Versions,
    amount,
)
from masa.runs import answers, course, unread
from masa.runs.assess import as_client, assess_async, checked_spending
from masa.runs.conclude import MOST_ITEMS
from masa.runs.given import dataset
from masa.runs.journalled import asked, keys, places, version
from masa.runs.options import Options, options
from masa.runs.session import Session, Spending, Worked, ask, choose, claimed
from masa.runs.stored_baseline import comparable
from masa.runs.waiting import waiting
from masa.sampling.source import Source
from masa.sampling.stratified import Sampler
from masa.settings import Limits, Settings
from masa.storage import history, journal
from masa.storage.history import Draft, Ending
from masa.storage.journal import Past
from masa.storage.store import Store, opened

if TYPE_CHECKING:
    import pandas as pd


async def compare_async(
    data: "Dataset | pd.DataFrame | str | Path",
    a: "Client | Callable[..., Any] | str | Column",
    b: "Client | Callable[..., Any] | str",
    *,
    budget: int | None = None,
    money: "float | str | None" = None,
    settings: Settings | None = None,
    limits: Limits | None = None,
    sides: tuple[str, str] = ("A", "B"),
    **given: Any,
) -> Assessment:
    """Ask both about the same items within one budget, and tell how B differs from A.

    Where A's answers are all recorded (a column), only B is asked, as in an assessment. Otherwise
    items are drawn from every stratum in proportion; A is asked about as many as half the budget
    allows, then B about the same ones. Further keywords are those of `masa.assess`.

    >>> answers = {"one": ["no", "yes"] * 20, "other": ["no", "no"] * 20}
    >>> data = Dataset.of(["no", "yes"] * 20, predictions=answers)
    >>> round(compare(data, "replay:one", "replay:other", store=None).accuracy_change.high, 6)
    -0.5
    """
    data = dataset(data, given, a, b)
    if isinstance(a, str) and a.startswith("replay:"):
        a = data.predictions.get(a.removeprefix("replay:"), a)
    chosen = options(settings, limits, sides=sides, **given)
    # A comparison does not stop by itself.
    fixed = replace(chosen.settings, decide=False, target_error=None, canary=0, canary_ok=False)
    chosen = chosen._replace(settings=fixed)
    if isinstance(a, Column):
        run = {name: getattr(chosen.run, name) for name in chosen.run.__dataclass_fields__}
        return await assess_async(
            data,
            b,
            baseline=a,
            budget=budget,
            money=money,
            settings=chosen.settings,
            limits=chosen.limits,
            **run,
        )
    first, second = (as_client(one, data, chosen.run) for one in (a, b))
    spending = checked_spending(first, data, budget, money)
    checked_spending(second, data, budget, money)
    for client in (first, second):
        check_items(client, data)
    if budget is not None and budget < 2:
        raise UsageError(f"the budget is {budget} queries for two APIs", hint="give two or more")
    with opened(chosen.run.store) as store:
        return await _Comparison.of(store, data, chosen, sides).compared(first, second, spending)


compare = waiting(compare_async)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One of the two sides, asked."""

    run: int
    client: Client
    worked: Worked


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """Two APIs that are asked about the same items."""

    store: Store
    data: Dataset
    chosen: Options
    sides: tuple[str, str]
    strata: Strata
    difficulty: str

    @classmethod
    def of(
        cls, store: Store, data: Dataset, chosen: Options, sides: tuple[str, str]
    ) -> "_Comparison":
        strata, difficulty = build_strata(data, None, chosen.settings)
        return cls(store, data, chosen, sides, strata, difficulty)

    async def compared(self, a: Client, b: Client, spending: Spending) -> Assessment:
        """Ask A within half of the budget, then B with what is left."""
        source = Sampler.proportional(self.strata, seed=self.chosen.settings.seed or 0)
        one = await self._ask(a, None, source, _half(spending))
        left = _left(spending, one.worked.past)
        other = None
        if one.worked.finished and left is not None:
            same = SameItems(self.data, one.worked.past)
            other = await self._ask(b, one.run, same, left)
        result = self._concluded(one, other, spending)
        if other is not None and other.worked.finished:
            stored = one.worked.stored(other.worked.stored(result.to_dict()))
            endings = [Ending(side.run, side.worked.stopped, stored) for side in (one, other)]
            history.finish(self.store, *endings)
            return result
        for side in (one, other):
            if side is not None:
                history.pause(self.store, side.run, (other or one).worked.stopped)
        return result

    async def _ask(
        self, client: Client, partner: int | None, source: Source, spending: Spending
    ) -> _Asked:
        """Ask one side; `partner` is the run of the side that was asked before."""
        settings = self.chosen.settings
        draft = Draft(
            self.chosen.run.name,
            "compare",
            {
                "levels": settings.levels,
                "seed": settings.seed or 0,
                "difficulty": self.difficulty,
                "side": self.sides[partner is not None],
            },
            comparable(client, self.data),
            keys(self.data),
            self.data.fingerprint(),
            partner,
        )
        run, notes = choose(self.store, draft, self.chosen.run)
        with claimed(self.store, run, self.chosen.run):
            session = Session(
                self.store,
                run,
                self.data,
                client,
                spending,
                self.chosen.limits,
                self.chosen.run.progress,
                self.chosen.run.interruptible,
                keep_said=self.chosen.run.keep == "answers",
                notes=notes,
            )
            side = self.sides[partner is not None]
            try:
                worked = await ask(session, source, journal.past(self.store, run.id))
            except MasaError as exc:
                exc.message = f"{side}: {exc.message}"
                exc.args = (exc.message,)
                raise
            finally:
                await client.close()
            notes = tuple(f"{side}: {note}" for note in worked.notes)
            asides = tuple(f"{side}: {note}" for note in worked.asides)
            worked = replace(worked, notes=notes, asides=asides)
            if worked.finished and partner is None:
                # Only together do they come to an end: the same command must find both again.
                history.pause(self.store, run.id, worked.stopped)
        return _Asked(run.id, client, worked)

    def _concluded(self, one: _Asked, other: _Asked | None, spending: Spending) -> Assessment:
        """Compare on the items that both answered."""
        data, settings = self.data, self.chosen.settings
        both, a, b = self._common(one, other)
        found = None
        if len(both):
            found = by_pairs(paired(self.strata, both, a, b)).labelled()
        differing = _differing(data, both, a, b)
        sides = [side for side in (one, other) if side is not None]
        last = sides[-1]
        stopped = last.worked.stopped
        if last.worked.finished and any(side.worked.stopped == "budget" for side in sides):
            stopped = "budget"
        pasts = [side.worked.past for side in sides]
        said = [answer.prediction for past in pasts for answer in past.answers.values()]
        money, cost = sum(past.money for past in pasts), None
        if one.client.priced or last.client.priced:
            cost = amount(money)
        return Assessment(
            run=last.run,
            **judged(
                found,
                self.strata,
                both,
                finished=last.worked.finished,
                tolerance=settings.tolerance,
                confidence=settings.confidence,
                objective=settings.weights,
            ),
            moved="yes" if differing else "no sign",
            proof=f"{len(differing):,} of {len(both):,} answers differ" if differing else "",
            stopped=stopped,
            items=len(data),
            queries=sum(past.queries for past in pasts),
            answers=len(said) - said.count(ERROR),
            errors=said.count(ERROR),
            cost=cost,
            over_budget=spending.over(money),
            compared=len(both),
            differing=len(differing),
            changed_items=tuple(differing[:MOST_ITEMS]),
            api_version=Versions(version(one.worked.past), version(last.worked.past)),
            uniform_queries=None,
            method="proportional",
            seed=settings.seed or 0,
            sides=self.sides,
            fail_on=settings.fail_on,
            unread=unread.counted(last.worked.past),
            made=course.made(
                history.find(self.store, last.run),
                data,
                f"run {one.run}",
                settings,
                budget=spending.queries,
            ),
            table=answers.table(
                last.run,
                last.worked.past,
                answers.OldAnswers.of_past(one.worked.past),
                data,
                priced=one.client.priced or last.client.priced,
            ),
            notes=(*data.notes, *(note for side in sides for note in side.worked.all_notes)),
        )

    def _common(self, one: _Asked, other: _Asked | None) -> tuple[Ints, Column, Column]:
        """Give the items that both answered, and what A and B said of them."""
        mine = asked(self.data, one.worked.past)
        if other is None:
            nothing = Column("answers", (), np.zeros(0, np.int32))
            return np.empty(0, np.int64), nothing, nothing
        theirs = asked(self.data, other.worked.past)
        both = np.intersect1d(mine.places(), theirs.places())
        a, b = (
            _on(both, side.places(), side.column(side.places().tolist())) for side in (mine, theirs)
        )
        return both, a, b


def _half(spending: Spending) -> Spending:
    """Give half of what may be spent, at least one call."""
    halves = [
        None if part is None else max(1, part // 2) for part in (spending.queries, spending.money)
    ]
    return Spending(*halves)


def _left(spending: Spending, past: Past) -> Spending | None:
    """Give what may still be spent, or None where nothing is left."""
    left: list[int | None] = []
    for most, used in ((spending.queries, past.queries), (spending.money, past.money)):
        if most is not None and most - used <= 0:
            return None
        left.append(None if most is None else most - used)
    return Spending(*left)


class SameItems:
    """The items that another run has answers about, in the order in which it asked them."""

    def __init__(self, data: Dataset, past: Past) -> None:
        place = places(data, past.answers)
        self._left = deque(
            place[key] for key, recorded in past.answers.items() if recorded.prediction != ERROR
        )
        self._done: set[int] = set()

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next items."""
        given: list[Query] = []
        while self._left and len(given) < n:
            place = self._left.popleft()
            if place not in self._done:
                given.append(Query(place, -1))
        return given

    def tell(self, answer: Answer) -> None:
        """Do not ask about the item again."""
        self._done.add(answer.item)

    def sent(self, query: Query) -> None:
        """Do not ask about the item again."""
        self._done.add(query.item)

    def delayed(self, item: int) -> None:
        """Do nothing: no answer is waited for."""


def _differing(data: Dataset, both: Ints, a: Column, b: Column) -> list[ChangedItem]:
    """Give the items that A and B answer differently; a failure is no answer."""
    found = []
    for place, i, j in zip(both.tolist(), a.codes.tolist(), b.codes.tolist(), strict=True):
        old, new = a.values[i], b.values[j]
        if old != new and ERROR not in (old, new):
            label = data.label.values[data.label.codes[place]]
            found.append(ChangedItem(data.name(place), label, old, new))
    return found


def _on(both: Ints, items: Ints, column: Column) -> Column:
    return Column(column.name, column.values, column.codes[np.searchsorted(items, both)])
