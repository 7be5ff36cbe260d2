"""Record what an API answers today, or take over answers that are known."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sql

from masa.clients import Client
from masa.data.baseline_answers import narrowed
from masa.data.dataset import Dataset
from masa.errors import UsageError
from masa.inference.counts import true_matrix
from masa.inference.method import stratified
from masa.inference.spread import share
from masa.records import ERROR, Answer, Baseline, Column, Floats, Progress, Query, amount
from masa.runs import session as live
from masa.runs.assess import as_client, budgeted
from masa.runs.session import Choice, Session, Spending
from masa.runs.stored_baseline import comparable, keys, lay_over, odd_answers
from masa.runs.waiting import waiting
from masa.sampling.stratified import Sampler
from masa.settings import Limits, Settings
from masa.storage import history, journal
from masa.storage.history import Draft, Run
from masa.storage.journal import Past
from masa.storage.store import DEFAULT, Store, call, opened


async def baseline_async(
    data: Dataset,
    client: "Client | Callable[..., Any] | str",
    *,
    budget: int | None = None,
    money: float | str | None = None,
    repeat: int = 0,
    levels: int = 3,
    seed: int = 0,
    limits: Limits | None = None,
    name: str = "default",
    store: "str | Path | None" = DEFAULT,
    resume: int | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
    interruptible: bool = False,
) -> Baseline:
    """Ask the API about every item, or within a budget about a share of each stratum, and keep that as the baseline of this name.

    `repeat` items are then asked a second time, to see how often the API contradicts itself.
    """
    asked = as_client(client, data)
    spending = budgeted(asked, budget, money)
    repeats_cost = repeat * asked.price(data.item(0))
    if (
        repeat < 0
        or (budget is not None and repeat >= budget)
        or (spending.money is not None and repeats_cost >= spending.money)
    ):
        raise UsageError(
            f"repeat is {repeat}",
            hint="give the number of items to ask twice: 0 or more, and less than the budget",
        )
    settings = Settings(levels=levels, seed=seed)
    strata, difficulty = stratified(data, None, settings, all_items=True)
    draft = Draft(
        name=name,
        kind="baseline",
        settings={"levels": levels, "seed": seed, "difficulty": difficulty, "repeat": repeat},
        comparable=comparable(asked, data),
        keys=keys(data),
        data=data.fingerprint(),
    )
    with opened(store) as kept:
        run, notes = live.choose(kept, draft, Choice(resume, fresh))
        with live.claimed(kept, run):
            past = journal.past(kept, run.id)
            kept_back = _kept_back(spending, past, repeat, asked.price(data.item(0)))
            session = Session(
                run,
                data,
                asked,
                limits or Limits(),
                kept_back,
                past,
                [*data.notes, *notes],
                progress=progress,
            )
            session.interruptible = interruptible
            # In proportion to the strata, at least one of each: unbiased whatever the answers are.
            sampler = Sampler(strata, method="optimal", seed=seed, uncertainty=np.ones(len(strata)))
            try:
                stopped = await live.ask(kept, session, sampler)
                if stopped in ("exhausted", "budget") and repeat and session.past.answers:
                    again, session.spending = Repeats(data, session.past, repeat), spending
                    ended = await live.ask(kept, session, again, repeat=True)
                    stopped = ended if ended in ("interrupted", "failures") else stopped
            finally:
                await asked.close()
            priced = asked.priced
            result = _concluded(
                kept, run, data, session.past, stopped, notes=session.all_notes, priced=priced
            )
            if stopped in ("interrupted", "failures") or not result.answers:
                history.pause(kept, run.id, stopped)
            else:
                history.finish(kept, run.id, stopped, session.kept(result.to_dict()))
                history.accept(kept, run.id)
    return result


baseline = waiting(baseline_async)


def import_answers(
    data: Dataset,
    answers: Column,
    *,
    confidence: Floats | None = None,
    client: Client | None = None,
    name: str = "default",
    store: "str | Path | None" = DEFAULT,
) -> Baseline:
    """Make answers that are known already, one an item, the baseline of this name; nothing is asked.

    They are taken to be the client's; without one they can be compared with any.
    """
    inputs = [] if data.inputs is None else list(data.inputs.columns)
    draft = Draft(
        name=name,
        kind="import",
        settings={"column": answers.name},
        comparable={"input": inputs} if client is None else comparable(client, data),
        keys=keys(data),
        data=data.fingerprint(),
    )
    now = time.time()
    numbers = [None] * len(data) if confidence is None else confidence.tolist()
    rows = [
        {
            "number": place + 1,
            "item": key,
            "repeat": False,
            "sent": now,
            "ended": now,
            "reserved": 0,
            "cost": 0,
            "outcome": "known",
            "prediction": answers.values[code],
            "confidence": number,
        }
        for place, (key, code, number) in enumerate(
            zip(keys(data).tolist(), answers.codes.tolist(), numbers, strict=True)
        )
    ]
    with opened(store) as kept:
        run = history.begin(kept, draft).run
        with kept.begin() as connection:
            connection.execute(sql.insert(call), [{"run": run.id, **row} for row in rows])
        result = _concluded(
            kept, run, data, journal.past(kept, run.id), "exhausted", notes=data.notes, priced=True
        )
        history.finish(kept, run.id, "exhausted", result.to_dict())
        history.accept(kept, run.id)
    return result


def _kept_back(spending: Spending, past: Past, repeat: int, price: int) -> Spending:
    """Leave of what may be spent what asking items twice takes: no more can be than were asked once, or are to be."""
    wanted, once = max(0, repeat - len(past.repeats)), len(past.answers) - len(past.repeats)

    def less(most: int | None, spent: int, each: int) -> int | None:
        rest = 0 if most is None else max(0, most - spent)
        return None if most is None else most - min(wanted * each, (once * each + rest) // 2, rest)

    return Spending(
        less(spending.queries, past.queries, 1), less(spending.money, past.money, price)
    )


class Repeats:
    """Items to ask a second time: those with the smallest keys. Keys are hashes: a random choice, and always the same one."""

    def __init__(self, data: Dataset, past: Past, count: int) -> None:
        place = live.places(data, past.answers)
        answered = sorted(
            key for key, recorded in past.answers.items() if recorded.prediction != ERROR
        )
        again = [place[key] for key in answered if key not in past.repeats]
        self.left = again[: max(0, count - len(past.repeats))]

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next items."""
        given, self.left = self.left[:n], self.left[n:]
        return [Query(place, -1) for place in given]

    def tell(self, answer: Answer) -> None:
        """Do nothing: the journal has it."""

    def sent(self, query: Query) -> None:
        """Do nothing: the journal has it."""


def _concluded(
    store: Store,
    run: Run,
    data: Dataset,
    past: Past,
    stopped: str,
    *,
    notes: tuple[str, ...],
    priced: bool,
) -> Baseline:
    """Fold the journal of a baseline into what it tells."""
    matrix = version = None
    repeated = contradicted = 0
    if past.answers:
        same, old = lay_over(store, data, run)
        notes = (*notes, *odd_answers(data, old.answers))
        if same.labelled[old.places].any():
            same, old = narrowed(same, old)
            strata, _ = stratified(same, old, Settings(levels=1))
            matrix = true_matrix(strata, old.answers).labelled()
        version, repeated, contradicted = old.version, old.repeated, old.contradicted
    if 0 < repeated < run.settings.get("repeat", 0):
        notes = (
            *notes,
            f"only {repeated:,} of {run.settings['repeat']:,} items could be asked twice within the budget",
        )
    return Baseline(
        run=run.id,
        stopped=stopped,
        items=len(data),
        answers=sum(answer.prediction != ERROR for answer in past.answers.values()),
        errors=sum(answer.prediction == ERROR for answer in past.answers.values()),
        queries=past.queries,
        cost=amount(past.money) if priced else None,
        matrix=matrix,
        repeated=repeated,
        contradicted=contradicted,
        contradiction=share(contradicted, repeated) if repeated else None,
        api_version=version,
        notes=notes,
    )
