"""Assess an API: what it answers now against what it answered before."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masa.clients import Client, Function, check_items
from masa.clients.replay import ReplayClient
from masa.data.dataset import Dataset, similar_labels
from masa.errors import UsageError
from masa.inference.estimate import Estimate
from masa.inference.method import Method
from masa.inference.trial import Trial
from masa.records import Assessment, Column, billionths, money_text
from masa.runs.case import Case
from masa.runs.conclude import conclude, weights
from masa.runs.given import dataset
from masa.runs.options import RunOptions, options
from masa.runs.session import Session, Spending, Worked, ask, choose, claimed, costs_nothing
from masa.runs.stored_baseline import find_baseline
from masa.runs.waiting import waiting
from masa.settings import Limits, Settings
from masa.storage import history, journal
from masa.storage.history import Ending
from masa.storage.store import opened

if TYPE_CHECKING:
    import pandas as pd

Baseline = str | Column | int | None


async def assess_async(
    data: "Dataset | pd.DataFrame | str | Path",
    client: "Client | Callable[..., Any] | str",
    *,
    baseline: Baseline = None,
    budget: int | None = None,
    money: "float | str | None" = None,
    settings: Settings | None = None,
    limits: Limits | None = None,
    **given: Any,
) -> Assessment:
    """Ask the API about items of the data, and compare with what it answered before.

    The client is one of masa's, a function that is given an
    item's text and gives a label, or `replay:COLUMN`. The baseline is a column of the data with the
    old answers, the number of a run in the store, or else the store's own for this name. The budget
    is in queries, in money or both.

    Further keywords are the fields of `Settings` (`tolerance=0.02`), of `Limits` (`rate=5`) and of
    `RunOptions` (`store=None`, `resume=3`, `progress=...`, `batch=20`); they override settings and
    limits that are given whole. A DataFrame or a file needs `label="COLUMN"`, and takes `id`,
    `inputs`, `group` and `difficulty`, as `masa.read` does. Everything is journalled in the store,
    so that the same call resumes where it was interrupted; `store=None` keeps nothing.

    >>> answers = {"old": ["no", "yes"] * 40, "new": ["no", "no"] * 40}
    >>> data = Dataset.of(["no", "yes"] * 40, predictions=answers)
    >>> assess(data, "replay:new", baseline="old", budget=80, store=None).verdict
    'changed'
    """
    data = dataset(data, given, baseline, client)
    chosen = options(settings, limits, **given)
    api = as_client(client, data, chosen.run)
    spending = checked_spending(api, data, budget, money)
    check_items(api, data)
    _check_canary(chosen.settings.canary, spending)
    with opened(chosen.run.store) as store:
        found = find_baseline(
            store,
            data,
            api,
            baseline,
            name=chosen.run.name,
            confidence=chosen.settings.old_confidence,
            force=chosen.run.force,
        )
        case = Case.of(store, *found, chosen)
        tell_first(chosen.run, (*similar_labels(case.data.label), *case.cautions))
        run, notes = choose(store, case.draft(api, chosen), chosen.run)
        # Made before the run is claimed: loading compiled code takes a moment.
        trial = case.trial(spending, run.seed)
        with claimed(store, run, chosen.run):
            session = Session(
                store,
                run,
                case.data,
                api,
                spending,
                chosen.limits,
                chosen.run.progress,
                chosen.run.interruptible,
                keep_said=chosen.run.keep == "answers",
                notes=(
                    *case.data.notes,
                    *case.old.notes,
                    *case.cautions,
                    *notes,
                    *case.method.notes,
                ),
            )
            return await _work(session, case, trial, chosen.run.sides)


assess = waiting(assess_async)


def tell_first(run: RunOptions, notes: Iterable[str]) -> None:
    """Say what should be known before anything is paid."""
    if run.tell is not None:
        for note in notes:
            run.tell(note)


def _check_canary(canary: int, spending: Spending) -> None:
    if spending.queries is not None and canary > spending.queries:
        raise UsageError(
            f"the canary is {canary:,} queries and the budget {spending.queries:,}",
            hint="give a budget no smaller than it",
        )


async def _work(session: Session, case: Case, trial: Trial, sides: tuple[str, str]) -> Assessment:
    """Drive a trial with the engine and the journal, conclude, and store the result."""
    # An API that used these labels when it was last asked the same way, and does not now, has
    # changed. One that was never seen to use them is misread, as a column of answers may have been
    # read in another way.
    used = set(case.old.answers.values) & set(session.data.labels)
    never_used = case.old.run is None or not used
    try:
        worked = await ask(
            session,
            trial,
            journal.past(session.store, session.run.id),
            check_labels=never_used,
            stopped=trial.stopped,
            error=trial.error,
        )
    finally:
        await session.client.close()
    result, found = conclude(session, worked, case.method, case.settings, trial.looks, sides)
    _close(session, worked, result, found, case.method)
    return result


def as_client(
    client: "Client | Callable[..., Any] | str", data: Dataset, run: RunOptions | None = None
) -> Client:
    """Take a client, a function, or the name of a column of recorded predictions."""
    if isinstance(client, str):
        kind, _, column = client.partition(":")
        if kind != "replay" or column not in data.predictions:
            known = ", ".join(f"replay:{name}" for name in data.predictions)
            raise UsageError(
                f"{client!r} is not a client that can be made here",
                hint=f"give a function, or one of {known or 'no columns'}",
            )
        return ReplayClient(data.predictions[column], rows=data.rows)
    if isinstance(client, Client):
        return client
    if run is None:
        return Function(client)
    return Function(client, batch=run.batch, close=run.close)


PRICED = 100
"""The items whose prices are looked at to see whether a budget pays for any call."""


def checked_spending(
    client: Client, data: Dataset, budget: int | None, money: "float | str | None"
) -> Spending:
    """Check the budget: nothing is paid without a limit, and it must pay for a call.

    Money is counted only where there is a price.
    """
    if budget is None and money is None and not costs_nothing(client):
        raise UsageError(
            "no budget was given",
            hint="give budget= in queries, or money=; len(data) asks every item",
        )
    if money is not None and not client.priced:
        raise UsageError(
            "a budget in money needs a price",
            hint="tell what a call costs, or give a budget in queries",
        )
    if money is None:
        return Spending(budget, None)
    whole = billionths(money)
    cheapest = min(client.price(data.item(place)) for place in range(min(PRICED, len(data))))
    if whole < cheapest:
        raise UsageError(
            f"a budget of {money_text(whole)} does not pay for one call, which may cost "
            f"{money_text(cheapest)}",
            hint=f"give at least {money_text(cheapest)}",
        )
    return Spending(budget, whole)


def _close(
    session: Session,
    worked: Worked,
    result: Assessment,
    found: Estimate | None,
    method: Method,
) -> None:
    """Store the result of a finished run and the weights of its answers; else mark it paused."""
    if not worked.finished:
        history.pause(session.store, session.run.id, result.stopped)
        return
    if found is not None:
        journal.weigh(session.store, session.run.id, weights(session.data, found, method))
    stored = worked.stored(result.to_dict())
    history.finish(session.store, Ending(session.run.id, result.stopped, stored))
