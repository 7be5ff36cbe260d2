"""Assess an API: what it answers now against what it answered before. The only place where the sampler and a client meet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from masa.clients import Client, Function
from masa.clients.replay import ReplayClient
from masa.data.baseline_answers import BaselineAnswers, narrowed
from masa.data.cheap_model import CHEAP, helped
from masa.data.dataset import Dataset
from masa.errors import UsageError
from masa.inference.estimate import Estimate
from masa.inference.method import Plan
from masa.inference.stopping import Stopping
from masa.inference.trial import Told
from masa.records import Assessment, Column, Floats, Progress, billionths
from masa.runs import session as live
from masa.runs.conclude import _even_weights, conclude
from masa.runs.session import Choice, Session, Spending
from masa.runs.stored_baseline import comparable, compared, keys
from masa.runs.waiting import waiting
from masa.settings import Limits, Objective, Settings, Tolerance
from masa.storage import history, journal
from masa.storage.history import Draft
from masa.storage.store import DEFAULT, Store, opened


async def assess_async(
    data: Dataset,
    client: "Client | Callable[..., Any] | str",
    *,
    baseline: "str | Column | int | None" = None,
    budget: int | None = None,
    money: float | str | None = None,
    settings: Settings | None = None,
    method: str = "auto",
    levels: int = 3,
    seed: int = 0,
    mix: Mapping[str, float] | None = None,
    tolerance: "float | str | Mapping[str, float]" = 0.01,
    confidence: float = 0.95,
    old_confidence: str | None = None,
    also: Sequence[str] = (),
    weights: "str | Mapping[str, Any] | None" = None,
    cheap: tuple[str, str] | None = None,
    target_error: float | None = None,
    decide: bool = False,
    canary: int = 0,
    strict: bool = False,
    limits: Limits | None = None,
    name: str = "default",
    store: "str | Path | None" = DEFAULT,
    resume: int | None = None,
    fresh: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    sides: tuple[str, str] = ("before", "now"),
    interruptible: bool = False,
) -> Assessment:
    """Ask the API about items of the data, within a budget in queries, money or both, and compare with its old answers.

    The client is one of masa's, a function that is given an item's text and gives a label, or `replay:COLUMN`. The baseline
    is a column of the data with the old answers, the number of a run in the store, or else the store's own for this name.
    `old_confidence` and `also` name columns of the data: numbers, and answers that are free. `weights` says what is to be known.
    `cheap`, such as ("text", "review"), names an input column that a cheap model is trained on where nothing better is known.
    It may stop earlier: once the error of the shift is at most `target_error`, with `decide` once the verdict is certain, and
    after `canary` queries, the most telling ones first, if none of them shows a change. What is said of a `strict` run holds
    however often one looks, at all times at once, and takes about twice the queries.
    Everything is journalled in the store, so that the same call goes on where it was interrupted; `store=None` keeps nothing.
    """
    asked = as_client(client, data)
    chosen = settings or Settings(
        method,
        levels,
        seed,
        mix,
        Tolerance.read(tolerance),
        confidence,
        old_confidence=old_confidence,
        also=tuple(also),
        objective=Objective.read(weights),
        cheap=cheap,
        target_error=target_error,
        decide=decide,
        canary=canary,
        strict=strict,
    )
    stopping = Stopping(
        chosen.target_error,
        chosen.decide,
        chosen.tolerance,
        chosen.confidence,
        chosen.objective,
        chosen.strict,
    )
    spending = budgeted(asked, budget, money)
    if spending.queries is not None and chosen.canary > spending.queries:
        raise UsageError(
            f"the canary is {chosen.canary:,} queries and the budget {spending.queries:,}",
            hint="give a budget no smaller than it",
        )
    with opened(store) as kept:
        whole, old = compared(
            kept, data, asked, baseline, name=name, confidence=chosen.old_confidence, force=force
        )
        folder = None if store is None else kept.path.parent / "cache"
        whole, chosen = with_cheap_model(whole, old, chosen, folder=folder, progress=progress)
        data, old = narrowed(whole, old)
        plan = Plan.of(data, old, chosen)
        draft = Draft(
            name=name,
            kind="assess",
            settings=_identity(chosen, plan, old),
            comparable=comparable(asked, data),
            keys=keys(whole),
            data=whole.fingerprint(),
            baseline=old.run,
        )
        run, notes = live.choose(kept, draft, Choice(resume, fresh))
        with live.claimed(kept, run):
            session = Session(
                run,
                data,
                asked,
                limits or Limits(),
                spending,
                journal.past(kept, run.id),
                notes=[*data.notes, *old.notes, *notes, *plan.notes],
                progress=progress,
                interruptible=interruptible,
            )
            told = Told(
                plan, old, stopping, min(len(data), spending.queries or len(data)), chosen.canary
            )
            session.error = told.error
            try:
                # An API that spoke of these labels before and does not now has changed; one that never did is misread.
                strangers = not set(old.answers.values) & set(data.labels)
                stopped = await live.ask(kept, session, told, strict=strangers, enough=told.enough)
            finally:
                await asked.close()
            result, found = conclude(session, plan, old, chosen, stopped, sides, told.looks)
            _close(kept, session, result, found, _even_weights(plan, old))
    return result


assess = waiting(assess_async)


def with_cheap_model(
    data: Dataset,
    old: BaselineAnswers,
    settings: Settings,
    *,
    folder: Path | None,
    progress: Progress | None,
) -> tuple[Dataset, Settings]:
    """Train a cheap model, where one may be and nothing else tells easy items from hard ones."""
    if settings.cheap is None:
        return data, settings
    if not data.labelled.all():
        return replace(
            data, notes=(*data.notes, "no cheap model was trained: some items have no label")
        ), settings
    if settings.also or data.difficulty is not None or old.confidence is not None:
        return data, settings
    kind, column = settings.cheap
    data = helped(data, column, kind=kind, folder=folder, progress=progress)
    return data, replace(settings, also=(CHEAP,), difficulty="the confidence of a cheap model")


def as_client(client: "Client | Callable[..., Any] | str", data: Dataset) -> Client:
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
    return client if isinstance(client, Client) else Function(client)


def budgeted(client: Client, budget: int | None, money: "float | str | None") -> Spending:
    """Check what may be spent: nothing is paid without a limit, and money is counted only where there is a price."""
    if budget is None and money is None and not live.free(client):
        raise UsageError(
            "no budget was given",
            hint="give budget= in queries, or money=; len(data) asks every item",
        )
    if money is not None and not client.priced:
        raise UsageError(
            "a budget in money needs a price",
            hint="tell what a call costs, or give a budget in queries",
        )
    return Spending(budget, None if money is None else billionths(money))


def _identity(settings: Settings, plan: Plan, old: BaselineAnswers) -> dict[str, Any]:
    mix = None if settings.mix is None else dict(settings.mix)
    same = {
        "method": plan.method,
        "levels": settings.levels,
        "seed": settings.seed,
        "mix": mix,
        "difficulty": plan.difficulty,
    }
    turns = plan.layout is not None and plan.layout.rest.may
    more = {"also": list(settings.also), "weights": settings.objective.identity(), "turns": turns}
    more |= {"decide": settings.decide, "strict": settings.strict}
    if old.weight is not None:
        more["known"] = len(old.places)
    if old.run is None:
        more |= {"old": old.answers.name, "old_confidence": settings.old_confidence}
    return same | {key: value for key, value in more.items() if value}


def _close(
    store: Store, session: Session, result: Assessment, found: Estimate | None, times: Floats
) -> None:
    if result.stopped in ("interrupted", "failures"):
        history.pause(store, session.run.id, result.stopped)
        return
    if found is not None:
        key = keys(session.data).tolist()
        told = {
            key[place]: (share * float(times[place]), adds * float(times[place]) ** 2)
            for place, (share, adds) in found.answer_weights().items()
        }
        journal.weigh(store, session.run.id, told)
    history.finish(store, session.run.id, result.stopped, session.kept(result.to_dict()))
