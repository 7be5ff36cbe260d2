"""Two APIs side by side on the same items: should I migrate?"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from masa.clients import Client
from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import UsageError
from masa.inference.estimate import by_pairs
from masa.inference.method import stratified
from masa.inference.paired import paired
from masa.inference.verdict import judged
from masa.records import (
    ERROR,
    Answer,
    Assessment,
    ChangedItem,
    Column,
    Ints,
    Progress,
    Query,
    Versions,
    amount,
)
from masa.runs import session as live
from masa.runs.assess import as_client, assess_async, budgeted
from masa.runs.conclude import MOST_ITEMS
from masa.runs.session import Choice, Session, Spending
from masa.runs.stored_baseline import comparable, keys, version
from masa.runs.waiting import waiting
from masa.sampling.stratified import Sampler
from masa.settings import Limits, Settings
from masa.storage import history, journal
from masa.storage.history import Draft
from masa.storage.journal import Past
from masa.storage.store import DEFAULT, opened


async def compare_async(
    data: Dataset,
    a: "Client | Callable[..., Any] | str | Column",
    b: "Client | Callable[..., Any] | str",
    *,
    budget: int | None = None,
    money: float | str | None = None,
    settings: Settings | None = None,
    limits: Limits | None = None,
    name: str = "default",
    sides: tuple[str, str] = ("A", "B"),
    store: "str | Path | None" = DEFAULT,
    fresh: bool = False,
    progress: Progress | None = None,
    interruptible: bool = False,
) -> Assessment:
    """Ask both about the same items within one budget, and tell how B differs from A.

    Where A's answers are all recorded (a column), only B is asked, as in an assessment. Otherwise items are drawn from
    every stratum in proportion; A is asked about as many as half the budget allows, then B about the same ones.

    >>> data = Dataset.of(["no", "yes"] * 20, predictions={"one": ["no", "yes"] * 20, "other": ["no", "no"] * 20})
    >>> round(compare(data, "replay:one", "replay:other", store=None).accuracy_change.high, 6)
    -0.5
    """
    common: dict[str, Any] = {
        "limits": limits,
        "store": store,
        "fresh": fresh,
        "progress": progress,
        "interruptible": interruptible,
    }
    if (
        isinstance(a, str)
        and a.startswith("replay:")
        and a.removeprefix("replay:") in data.predictions
    ):
        a = data.predictions[a.removeprefix("replay:")]
    chosen = replace(
        settings or Settings(), decide=False, target_error=None, canary=0
    )  # It does not stop by itself.
    if isinstance(a, Column):
        return await assess_async(
            data,
            b,
            baseline=a,
            budget=budget,
            money=money,
            settings=chosen,
            name=name,
            sides=sides,
            **common,
        )
    first, second = as_client(a, data), as_client(b, data)
    spending = budgeted(first, budget, money)
    budgeted(second, budget, money)
    if budget is not None and budget < 2:
        raise UsageError(f"the budget is {budget} queries for two APIs", hint="give two or more")
    strata, difficulty = stratified(data, None, chosen)
    half = Spending(
        *(
            None if part is None else max(1, part // 2)
            for part in (spending.queries, spending.money)
        )
    )
    sampler = Sampler(strata, method="optimal", seed=chosen.seed, uncertainty=np.ones(len(strata)))
    with opened(store) as kept:

        async def ask(
            client: Client, partner: int | None, source: live.Sampling, may: Spending
        ) -> Session:
            what = {
                "levels": chosen.levels,
                "seed": chosen.seed,
                "difficulty": difficulty,
                "side": sides[partner is not None],
            }
            draft = Draft(
                name,
                "compare",
                what,
                comparable(client, data),
                keys(data),
                data.fingerprint(),
                partner,
            )
            run, notes = live.choose(kept, draft, Choice(fresh=fresh))
            with live.claimed(kept, run):
                session = Session(
                    run,
                    data,
                    client,
                    limits or Limits(),
                    may,
                    journal.past(kept, run.id),
                    notes,
                    progress=progress,
                )
                session.interruptible = interruptible
                try:
                    session.stopped = await live.ask(kept, session, source)
                finally:
                    await client.close()
                if session.stopped not in ("interrupted", "failures") and partner is None:
                    # Only together do they come to an end: until then the same command finds both again.
                    history.pause(kept, run.id, session.stopped)
            return session

        one = await ask(first, None, sampler, half)
        left = [
            None if may is None else may - used
            for may, used in (
                (spending.queries, one.past.queries),
                (spending.money, one.past.money),
            )
        ]
        spent = any(part is not None and part <= 0 for part in left)
        ended = one.stopped in ("interrupted", "failures") or spent
        other = (
            one
            if ended
            else await ask(second, one.run.id, SameItems(data, one.past), Spending(*left))
        )
        result = _concluded(data, strata, chosen, (one, other), sides)
        for session in (one, other):
            if ended or other.stopped in ("interrupted", "failures"):
                history.pause(kept, session.run.id, other.stopped)
            else:
                history.finish(
                    kept, session.run.id, session.stopped, one.kept(other.kept(result.to_dict()))
                )
    return result


compare = waiting(compare_async)


class SameItems:
    """The items that another run has answers about, in the order it asked them."""

    def __init__(self, data: Dataset, past: Past) -> None:
        place = live.places(data, past.answers)
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
        """Do not ask about it again."""
        self._done.add(answer.item)

    def sent(self, query: Query) -> None:
        """Do not ask about it again."""
        self._done.add(query.item)


def _concluded(
    data: Dataset,
    strata: Strata,
    settings: Settings,
    sessions: tuple[Session, Session],
    sides: tuple[str, str],
) -> Assessment:
    """Compare on the items that both answered."""
    one, other = sessions
    (places_a, a), (places_b, b) = (live.known(data, session.past) for session in sessions)
    both = np.intersect1d(places_a, places_b) if one is not other else np.empty(0, np.int64)
    a, b = (_on(both, places, column) for places, column in ((places_a, a), (places_b, b)))
    found = None
    if len(both):
        found = by_pairs(paired(strata, both, a, b)).labelled()
    pairs = [
        (int(place), a.values[i], b.values[j])
        for place, i, j in zip(both, a.codes, b.codes, strict=True)
    ]
    labels = [data.label.values[data.label.codes[place]] for place, _, _ in pairs]
    differing = [
        ChangedItem(data.name(place), label, said, says)
        for (place, said, says), label in zip(pairs, labels, strict=True)
        if said != says and ERROR not in (said, says)
    ]
    unfinished = other.stopped in ("interrupted", "failures")
    pasts = [session.past for session in dict.fromkeys(sessions)]
    return Assessment(
        run=other.run.id,
        **judged(
            found,
            strata,
            both,
            finished=not unfinished,
            tolerance=settings.tolerance,
            confidence=settings.confidence,
            objective=settings.objective,
        ),
        moved="yes" if differing else "no sign",
        proof=f"{len(differing):,} of {len(pairs):,} answers differ" if differing else "",
        stopped="budget"
        if "budget" in (one.stopped, other.stopped) and not unfinished
        else other.stopped,
        items=len(data),
        queries=sum(past.queries for past in pasts),
        answers=sum(
            answer.prediction != ERROR for past in pasts for answer in past.answers.values()
        ),
        errors=sum(
            answer.prediction == ERROR for past in pasts for answer in past.answers.values()
        ),
        cost=amount(sum(past.money for past in pasts))
        if one.client.priced or other.client.priced
        else None,
        compared=len(pairs),
        differing=len(differing),
        changed_items=tuple(differing[:MOST_ITEMS]),
        api_version=Versions(version(one.past), version(other.past)),
        uniform_queries=None,
        method="proportional",
        seed=settings.seed,
        sides=sides,
        fail_on=settings.fail_on,
        notes=(*data.notes, *one.all_notes, *(other.all_notes if other is not one else ())),
    )


def _on(both: Ints, places: Ints, column: Column) -> Column:
    return Column(column.name, column.values, column.codes[np.searchsorted(places, both)])
