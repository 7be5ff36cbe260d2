"""Assess an API: what it answers now against what it answered before."""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from masa.clients import Client, Function, check_items
from masa.clients.replay import ReplayClient
from masa.data.baseline_answers import BaselineAnswers, narrowed
from masa.data.cheap_model import CHEAP, CHEAP_CONFIDENCE, helped
from masa.data.dataset import Dataset, similar_labels
from masa.errors import UsageError
from masa.inference.at_best import narrowest
from masa.inference.estimate import Estimate
from masa.inference.method import Method
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Assessment, Bools, Column, Progress, billionths
from masa.runs.conclude import conclude, weights
from masa.runs.journalled import keys
from masa.runs.options import Options, RunOptions, options
from masa.runs.session import Session, Spending, Worked, ask, choose, claimed, costs_nothing
from masa.runs.stored_baseline import comparable, find_baseline
from masa.runs.waiting import waiting
from masa.settings import Limits, Settings
from masa.storage import history, journal
from masa.storage.history import Draft, Ending
from masa.storage.store import Store, opened

Baseline = str | Column | int | None

LARGEST_NEW_SEED = 999_999
"""Seeds are drawn up to this: few digits to type again."""


async def assess_async(
    data: Dataset,
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
    `RunOptions` (`store=None`, `resume=3`, `progress=...`); they override settings and limits that
    are given whole. Everything is journalled in the store, so that the same call resumes where it
    was interrupted; `store=None` keeps nothing.

    >>> answers = {"old": ["no", "yes"] * 40, "new": ["no", "no"] * 40}
    >>> data = Dataset.of(["no", "yes"] * 40, predictions=answers)
    >>> assess(data, "replay:new", baseline="old", budget=80, store=None).verdict
    'changed'
    """
    api = as_client(client, data)
    chosen = options(settings, limits, **given)
    spending = checked_spending(api, budget, money)
    check_items(api, data)
    _check_canary(chosen.settings.canary, spending)
    with opened(chosen.run.store) as store:
        case = _Case.of(store, data, api, baseline, chosen)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """What an assessment begins with."""

    whole: Dataset
    """the items that the data and the baseline have in common"""
    data: Dataset
    """those of them with a baseline answer, which alone are asked"""
    old: BaselineAnswers
    settings: Settings
    method: Method

    @classmethod
    def of(
        cls, store: Store, data: Dataset, client: Client, baseline: Baseline, chosen: Options
    ) -> "_Case":
        """Find the baseline and choose the method."""
        whole, old = find_baseline(
            store,
            data,
            client,
            baseline,
            name=chosen.run.name,
            confidence=chosen.settings.old_confidence,
            force=chosen.run.force,
        )
        whole, settings = with_cheap_model(
            whole, old, chosen.settings, folder=cache(store, chosen), progress=chosen.run.progress
        )
        part, old = narrowed(whole, old)
        method = Method.of(part, old, settings, asked_lately=_asked_lately(store, part, chosen))
        return cls(whole, part, old, settings, method)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What cannot be decided however much is asked."""
        old, limit = self.old, self.settings.tolerance.limits.get("accuracy")
        if old.weight is None or old.extra_variance is None or limit is None:
            return ()
        adds = self.method.baseline_variance
        at_best = narrowest(float(adds.sum()), float((adds**2).sum()), self.settings.confidence)
        if at_best <= limit:
            return ()
        return (
            f"this baseline of {len(old.places):,} items cannot show that nothing changed: with "
            f"all of them asked, accuracy is known to {100 * at_best:.2g} points, and the "
            f"tolerance is {100 * limit:.2g}; masa baseline --refresh N adds items",
        )

    def trial(self, spending: Spending, seed: int) -> Trial:
        """Make the assessment without input and output."""
        return Trial(
            self.method,
            self.old,
            Stopping.of(self.settings),
            budget=spending.queries,
            canary=self.settings.canary,
            seed=seed,
        )

    def draft(self, client: Client, chosen: Options) -> Draft:
        """Give what the run is, before it has a number."""
        return Draft(
            name=chosen.run.name,
            kind="assess",
            settings=_identity(self.settings, self.method, self.old),
            comparable=comparable(client, self.data),
            keys=keys(self.whole),
            data=self.whole.fingerprint(),
            baseline=self.old.run,
            # Where the command names no seed, every run asks other items.
            drawn_seed=new_seed() if self.settings.seed is None else None,
        )


def tell_first(run: RunOptions, notes: Iterable[str]) -> None:
    """Say what should be known before anything is paid."""
    if run.tell is not None:
        for note in notes:
            run.tell(note)


def _asked_lately(store: Store, data: Dataset, chosen: Options) -> Bools | None:
    """Say of each item (N,) whether the run before this one asked it.

    A run that is resumed, or repeated by its seed, goes by what was known when it began. A seed
    that belongs to no run is drawn as if it were the first.
    """
    name, before = chosen.run.name, chosen.run.resume
    if before is None and chosen.settings.seed is not None:
        before = history.with_seed(store, name, chosen.settings.seed)
        if before is None:
            return None
    return np.isin(keys(data), history.asked_lately(store, name, before=before))


def new_seed() -> int:
    """Draw a seed."""
    return 1 + secrets.randbelow(LARGEST_NEW_SEED)


def _check_canary(canary: int, spending: Spending) -> None:
    if spending.queries is not None and canary > spending.queries:
        raise UsageError(
            f"the canary is {canary:,} queries and the budget {spending.queries:,}",
            hint="give a budget no smaller than it",
        )


async def _work(session: Session, case: _Case, trial: Trial, sides: tuple[str, str]) -> Assessment:
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


def cache(store: Store, chosen: Options) -> Path | None:
    """Give the folder for what can be made again, where the run is kept."""
    return None if chosen.run.store is None else store.path.parent / "cache"


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
        note = "no cheap model was trained: some items have no label"
        return replace(data, notes=(*data.notes, note)), settings
    if settings.also or data.difficulty is not None or old.confidence is not None:
        return data, settings
    kind, column = settings.cheap
    data = helped(data, column, kind=kind, folder=folder, progress=progress)
    return data, replace(settings, also=(CHEAP,), difficulty=CHEAP_CONFIDENCE)


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


def checked_spending(client: Client, budget: int | None, money: "float | str | None") -> Spending:
    """Check the budget: nothing is paid without a limit.

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
    return Spending(budget, None if money is None else billionths(money))


def _identity(settings: Settings, method: Method, old: BaselineAnswers) -> dict[str, Any]:
    """Give the settings by which the store recognises the same command.

    Its keys are part of the schema.
    """
    same: dict[str, Any] = {
        "method": method.name,
        "levels": settings.levels,
        "seed": settings.seed,
        "mix": None if settings.mix is None else dict(settings.mix),
        "difficulty": method.difficulty,
    }
    more: dict[str, Any] = {
        "also": list(settings.also),
        "weights": settings.weights.identity(),
        "turns": method.may_switch,
        "decide": settings.decide,
        "strict": settings.strict,
    }
    if old.weight is not None:
        more["known"] = len(old.places)
    if old.run is None:
        more["old"] = old.answers.name
        more["old_confidence"] = settings.old_confidence
    return same | {key: value for key, value in more.items() if value}


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
