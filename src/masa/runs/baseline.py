"""Record what an API answers today, or take answers that are known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from masa.clients import Client, check_items
from masa.data.baseline_answers import narrowed
from masa.data.dataset import Dataset, similar_labels
from masa.errors import UsageError
from masa.inference.counts import true_matrix
from masa.inference.method import build_strata
from masa.inference.spread import share
from masa.records import ERROR, Answer, Baseline, Column, Floats, Query, Reply, amount
from masa.runs import unread
from masa.runs.assess import as_client, checked_spending, tell_first
from masa.runs.conclude import odd_answers
from masa.runs.given import dataset
from masa.runs.journalled import keys, places
from masa.runs.options import options
from masa.runs.session import Session, Spending, Worked, ask, choose, claimed
from masa.runs.stored_baseline import (
    answered_keys,
    comparable,
    find_baseline,
    lay_over,
)
from masa.runs.waiting import waiting
from masa.sampling.stratified import Sampler
from masa.settings import Limits, RunSettings, Settings
from masa.storage import history, journal
from masa.storage.history import Draft, Ending, Run
from masa.storage.journal import KnownAnswer, Past
from masa.storage.store import Store, opened

if TYPE_CHECKING:
    import pandas as pd


async def baseline_async(
    data: "Dataset | pd.DataFrame | str | Path",
    client: "Client | Callable[..., Any] | str",
    *,
    budget: int | None = None,
    money: "float | str | None" = None,
    repeat: int = 0,
    refresh: int = 0,
    limits: Limits | None = None,
    **given: Any,
) -> Baseline:
    """Ask the API about items and keep its answers as the baseline.

    All items are asked, or within a budget the same share of each stratum. With `refresh` so many
    items are asked that the baseline of this name has no answer about, and added to it.

    `repeat` items are then asked a second time, to see how often the API contradicts itself.
    Further keywords are `levels`, `seed`, the fields of `Limits` and those of `RunOptions`
    (`store=None`, `name="reviews"`).

    >>> data = Dataset.of(["no", "yes"] * 20, predictions={"api": ["no", "no"] * 20})
    >>> baseline(data, "replay:api", store=None).matrix.accuracy
    0.5
    """
    data = dataset(data, given, client)
    chosen = options(None, limits, **given)
    api = as_client(client, data, chosen.run)
    if refresh:
        budget = min(refresh + repeat, budget or refresh + repeat)
    spending = checked_spending(api, data, budget, money)
    check_items(api, data)
    price = api.price(data.item(0))
    _check_repeat(repeat, spending, price)
    tell_first(chosen.run, similar_labels(data.label))
    with opened(chosen.run.store) as store:
        whole, before = data, None
        if refresh:
            whole, data, before = _without_answer(store, data, api, chosen.run)
        strata, difficulty = build_strata(data, None, chosen.settings, all_items=True)
        settings = {
            "levels": chosen.settings.levels,
            "seed": chosen.settings.seed or 0,
            "difficulty": difficulty,
            "repeat": repeat,
        }
        draft = Draft(
            name=chosen.run.name,
            kind="baseline",
            settings=settings,
            comparable=comparable(api, data),
            keys=keys(whole),
            data=whole.fingerprint(),
            baseline=before,
        )
        run, notes = choose(store, draft, chosen.run)
        with claimed(store, run, chosen.run):
            session = Session(
                store,
                run,
                data,
                api,
                spending,
                chosen.limits,
                chosen.run.progress,
                chosen.run.interruptible,
                keep_said=chosen.run.keep == "answers",
                notes=(*data.notes, *notes),
            )
            # In proportion to the strata, at least one of each: unbiased whatever the answers are.
            source = Sampler.proportional(strata, seed=chosen.settings.seed or 0)
            try:
                worked = await _work(session, source, repeat, price)
            finally:
                await api.close()
            return _close(session, worked, whole)


baseline = waiting(baseline_async)


def _without_answer(
    store: Store, data: Dataset, client: Client, run: RunSettings
) -> tuple[Dataset, Dataset, int]:
    """Give the data of the baseline of a name, its items without an answer, and its run's number.

    Items that are new since are left out: the baseline's items cannot represent them.
    """
    data, known = find_baseline(store, data, client, None, name=run.name, force=run.force)
    assert known.run is not None  # noqa: S101 - it is a run of the store
    there = np.isin(keys(data), answered_keys(store, known.run))
    if there.all():
        raise UsageError(
            f"the baseline of {run.name!r} has an answer about every item that was in its data",
            hint="masa baseline without --refresh asks all items of the data now",
        )
    return data, data.take(np.flatnonzero(~there)), known.run


def _check_repeat(repeat: int, spending: Spending, price: int) -> None:
    too_many = spending.queries is not None and repeat >= spending.queries
    too_dear = spending.money is not None and repeat * price >= spending.money
    if repeat < 0 or too_many or too_dear:
        raise UsageError(
            f"repeat is {repeat}",
            hint="give the number of items to ask twice: 0 or more, and less than the budget",
        )


async def _work(session: Session, source: Sampler, repeat: int, price: int) -> Worked:
    """Ask every item once, then some of them again."""
    past = journal.past(session.store, session.run.id)
    first = replace(session, spending=_without_repeats(session.spending, past, repeat, price))
    worked = await ask(first, source, past)
    if not repeat or worked.stopped not in ("exhausted", "budget") or not worked.past.answers:
        return worked
    again = await ask(
        session,
        Repeats(session.data, worked.past, repeat),
        worked.past,
        repeat=True,
    )
    # That every item was asked once is what ended it, unless the repeats were cut short.
    stopped = worked.stopped if again.finished else again.stopped
    notes = tuple(dict.fromkeys((*worked.notes, *again.notes)))
    asides = tuple(dict.fromkeys((*worked.asides, *again.asides)))
    return replace(again, stopped=stopped, notes=notes, asides=asides)


def _close(session: Session, worked: Worked, whole: Dataset) -> Baseline:
    """Store the result; a finished run becomes the baseline of its name."""
    result = _concluded(
        session.store,
        session.run,
        whole,
        worked.past,
        worked.stopped,
        notes=worked.all_notes,
        priced=session.client.priced,
    )
    result = replace(
        result,
        over_budget=session.spending.over(worked.past.money),
        unread=unread.counted(worked.past),
    )
    if not worked.finished or not result.answers:
        history.pause(session.store, session.run.id, worked.stopped)
    else:
        stored = worked.stored(result.to_dict())
        ending = Ending(session.run.id, worked.stopped, stored)
        history.finish(session.store, ending, baseline_of=session.run.name)
    return result


def import_answers(
    data: Dataset,
    answers: Column,
    *,
    confidence: Floats | None = None,
    client: Client | None = None,
    **given: Any,
) -> Baseline:
    """Make answers that are known already, one per item, the baseline of a name.

    Nothing is asked. They are taken to be the client's; without one they can be compared with any.
    Further keywords are `name` and `store`.
    """
    chosen = RunSettings(**given)
    inputs = [] if data.inputs is None else list(data.inputs.columns)
    draft = Draft(
        name=chosen.name,
        kind="import",
        settings={"column": answers.name},
        comparable={"input": inputs} if client is None else comparable(client, data),
        keys=keys(data),
        data=data.fingerprint(),
    )
    with opened(chosen.store) as store:
        run = history.begin(store, draft).run
        said = [answers.values[code] for code in answers.codes.tolist()]
        numbers = [None] * len(said) if confidence is None else confidence.tolist()
        rows = zip(keys(data).tolist(), said, numbers, strict=True)
        known = [KnownAnswer(key, Reply(label, sure)) for key, label, sure in rows]
        journal.write_known(store, run.id, known)
        past = journal.past(store, run.id)
        result = _concluded(store, run, data, past, "exhausted", notes=data.notes, priced=True)
        ending = Ending(run.id, "exhausted", result.to_dict())
        history.finish(store, ending, baseline_of=run.name)
    return result


def _without_repeats(spending: Spending, past: Past, repeat: int, price: int) -> Spending:
    """Keep back what asking items twice costs; no more can be repeated than were asked once."""
    wanted = max(0, repeat - len(past.repeats))
    once = len(past.answers) - len(past.repeats)

    def less(most: int | None, spent: int, each: int) -> int | None:
        if most is None:
            return None
        rest = max(0, most - spent)
        return most - min(wanted * each, (once * each + rest) // 2, rest)

    return Spending(
        less(spending.queries, past.queries, 1), less(spending.money, past.money, price)
    )


class Repeats:
    """Items to ask a second time: those with the smallest keys.

    Keys are hashes, so this is a random choice, and always the same one.
    """

    def __init__(self, data: Dataset, past: Past, count: int) -> None:
        place = places(data, past.answers)
        answered = sorted(
            key for key, recorded in past.answers.items() if recorded.prediction != ERROR
        )
        again = [place[key] for key in answered if key not in past.repeats]
        self._left = again[: max(0, count - len(past.repeats))]

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next items."""
        given, self._left = self._left[:n], self._left[n:]
        return [Query(place, -1) for place in given]

    def tell(self, answer: Answer) -> None:
        """Do nothing: the journal has it."""

    def sent(self, query: Query) -> None:
        """Do nothing: the journal has it."""

    def delayed(self, item: int) -> None:
        """Do nothing: no answer is waited for."""


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
    """Fold the journal of a baseline into what it says."""
    matrix = version = None
    repeated = contradicted = known = 0
    if past.answers:
        same, old = lay_over(store, data, run)
        failed = old.answers.values.index(ERROR) if ERROR in old.answers.values else -1
        known = int(np.count_nonzero(old.answers.codes != failed))
        notes = (*notes, *odd_answers(data, old.answers))
        if same.labelled[old.places].any():
            same, old = narrowed(same, old)
            strata, _ = build_strata(same, old, Settings(levels=1))
            matrix = true_matrix(strata, old.answers).labelled()
        version, repeated, contradicted = old.version, old.repeated, old.contradicted
    wanted = run.settings.get("repeat", 0)
    if 0 < repeated < wanted:
        notes = (
            *notes,
            f"only {repeated:,} of {wanted:,} items could be asked twice within the budget",
        )
    if past.repeats and len(past.answers) < len(data) and stopped == "budget":
        notes = (
            *notes,
            f"{len(past.repeats):,} queries of the budget went into asking items twice, and "
            f"{len(data) - len(past.answers):,} items were not asked",
        )
    said = [recorded.prediction for recorded in past.answers.values()]
    answers = len(said) - said.count(ERROR)
    if run.baseline is not None:
        # What was there before counts as well.
        answers = known
    return Baseline(
        run=run.id,
        stopped=stopped,
        items=len(data),
        answers=answers,
        errors=said.count(ERROR),
        queries=past.queries,
        cost=amount(past.money) if priced else None,
        matrix=matrix,
        repeated=repeated,
        contradicted=contradicted,
        contradiction=share(contradicted, repeated) if repeated else None,
        api_version=version,
        notes=notes,
    )
