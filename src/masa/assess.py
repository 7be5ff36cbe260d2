"""Assess an API: what it answers now against what it answered before. The only place where the sampler and a client meet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from masa import history, journal, live
from masa.budget import amount, billionths
from masa.change import differences, estimated, judged, moved, uniform_queries
from masa.clients import Client, Function
from masa.clients.replay import ReplayClient
from masa.dataset import Dataset
from masa.engine import Limits
from masa.errors import UsageError
from masa.history import Draft
from masa.live import Choice, Session, Spending
from masa.old import Old, comparable, compared, keys, odd_answers, version
from masa.records import (
    ERROR,
    Answer,
    Assessment,
    Column,
    Ints,
    Progress,
    Query,
    Versions,
)
from masa.sampler import Sampler
from masa.store import DEFAULT, Store, opened
from masa.strata import Strata

MOST_ITEMS = 20
"""Changed items that are named."""

METHODS = ("masa", "post-stratified", "stratified", "uniform")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to assess; what makes two commands the same."""

    method: str = "masa"
    levels: int = 3
    seed: int = 0
    mix: Mapping[str, float] | None = None
    tolerance: float = 0.01
    confidence: float = 0.95
    difficulty: str = ""
    """what the data's difficulty is, in words"""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"there is no method {self.method!r} for live queries", hint=f"there are {', '.join(METHODS)}")
        if not (isinstance(self.seed, int) and -(2**63) <= self.seed < 2**63):
            raise UsageError(f"seed is {self.seed}", hint="give a whole number of at most 18 digits")
        if not 0.0 < self.confidence < 1.0:
            raise UsageError(f"confidence is {self.confidence:g}", hint="give a share between 0 and 1, such as 0.95")
        if self.method == "uniform" and self.mix is not None:
            raise UsageError("the method uniform knows no other mix of labels", hint="use post-stratified, or leave out the mix")
        if not 0.0 <= self.tolerance < 1.0:
            raise UsageError(f"tolerance is {self.tolerance:g}", hint="give a share such as 0.01, one point of accuracy")


async def assess_async(
    data: Dataset,
    client: "Client | Callable[..., Any] | str",
    *,
    baseline: "str | Column | int | None" = None,
    budget: int | None = None,
    money: float | str | None = None,
    settings: Settings | None = None,
    method: str = "masa",
    levels: int = 3,
    seed: int = 0,
    mix: Mapping[str, float] | None = None,
    tolerance: float = 0.01,
    confidence: float = 0.95,
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
    Everything is journalled in the store, so that the same call goes on where it was interrupted; `store=None` keeps nothing.
    """
    asked = as_client(client, data)
    chosen = settings or Settings(method, levels, seed, mix, tolerance, confidence)
    spending = budgeted(asked, budget, money)
    with opened(store) as kept:
        data, old = compared(kept, data, asked, baseline, name=name, force=force)
        strata, difficulty = stratified(data, old, chosen)
        _refuse_other_strata(old, chosen, difficulty)
        draft = Draft(
            name=name,
            kind="assess",
            settings=_identity(chosen, difficulty),
            comparable=comparable(asked, data),
            keys=keys(data),
            data=data.fingerprint(),
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
                notes=[*data.notes, *old.notes, *notes],
                progress=progress,
                interruptible=interruptible,
            )
            told = Told(Sampler(strata, method=chosen.method, seed=chosen.seed), old)
            session.error = told.error
            try:
                # An API that spoke of these labels before and does not now has changed; one that never did is misread.
                stopped = await live.ask(kept, session, told, strict=not set(old.answers.values) & set(data.label.values))
            finally:
                await asked.close()
            result = conclude(session, strata, old, chosen, stopped, sides)
            _close(kept, session, result)
    return result


assess = live.waiting(assess_async)


def conclude(
    session: Session, strata: Strata, old: Old, settings: Settings, stopped: str, sides: tuple[str, str] = ("before", "now")
) -> Assessment:
    """Fold the journal, and nothing else, into a result: the same whether the run was interrupted or not."""
    data, past = session.data, session.past
    finite = old.contradicted == 0
    places, answers = live.known(data, past)
    compared_to, differing = differences(data, old, places, answers)
    found = None
    notes = list(session.all_notes)
    if len(places):
        found = estimated(strata, old, places, answers, finite=finite)
        notes += _cautions(strata, places, old, settings.method)
    did_move = moved(strata, compared_to, differing, old)
    if differing and not old.repeated and old.run is not None:
        notes.append(
            "whether the API contradicts itself was not measured (masa baseline --repeat N does); it is taken to repeat itself"
        )
    called = version(past)
    notes += odd_answers(data, answers)
    if called and ", " in called:
        notes.append(f"the provider named more than one version during this run: {called}")
    finished = stopped not in ("failures", "interrupted")
    return Assessment(
        run=session.run.id,
        **judged(found, strata, places, finished=finished, tolerance=settings.tolerance, confidence=settings.confidence),
        moved=did_move,
        stopped=stopped,
        items=len(data),
        queries=past.queries,
        answers=sum(answer.prediction != ERROR for answer in past.answers.values()),
        errors=sum(answer.prediction == ERROR for answer in past.answers.values()),
        cost=None if not session.client.priced else amount(past.money),
        compared=len(compared_to),
        differing=len(differing),
        changed_items=tuple(item for _, item in zip(range(MOST_ITEMS), differing.values(), strict=False)),
        api_version=Versions(old.version, called),
        uniform_queries=None if found is None else uniform_queries(found, strata, places, answers, finite=finite),
        method=settings.method,
        seed=settings.seed,
        sides=sides,
        notes=tuple(notes),
    )


def as_client(client: "Client | Callable[..., Any] | str", data: Dataset) -> Client:
    """Take a client, a function, or the name of a column of recorded predictions."""
    if isinstance(client, str):
        kind, _, column = client.partition(":")
        if kind != "replay" or column not in data.predictions:
            known = ", ".join(f"replay:{name}" for name in data.predictions)
            raise UsageError(
                f"{client!r} is not a client that can be made here", hint=f"give a function, or one of {known or 'no columns'}"
            )
        return ReplayClient(data.predictions[column])
    return client if isinstance(client, Client) else Function(client)


def budgeted(client: Client, budget: int | None, money: "float | str | None") -> Spending:
    """Check what may be spent: nothing is paid without a limit, and money is counted only where there is a price."""
    if budget is None and money is None and not live.free(client):
        raise UsageError("no budget was given", hint="give budget= in queries, or money=; len(data) asks every item")
    if money is not None and not client.priced:
        raise UsageError("a budget in money needs a price", hint="tell what a call costs, or give a budget in queries")
    return Spending(budget, None if money is None else billionths(money))


def stratified(data: Dataset, old: Old | None, settings: Settings) -> tuple[Strata, str]:
    """Split the items by label and by what tells easy from hard, and say what that is."""
    difficulty, words = data.difficulty, settings.difficulty or "given"
    if difficulty is None:
        difficulty = None if old is None else old.confidence
        words = "" if difficulty is None else "the confidence of the baseline's answers"
    strata = Strata.build(data.label, difficulty=difficulty, levels=settings.levels, mix=settings.mix)
    return strata, words


def _refuse_other_strata(old: Old, settings: Settings, difficulty: str) -> None:
    """Raise if the old answers were drawn adaptively from other strata: what they weigh would be wrong."""
    if old.drawn is not None and (old.drawn["levels"], old.drawn["difficulty"]) != (settings.levels, difficulty):
        was = f"{old.drawn['levels']} levels of {old.drawn['difficulty'] or 'nothing'}"
        raise UsageError(
            f"run {old.run}, the baseline, chose its items adaptively from {was}, not from {settings.levels} levels of "
            f"{difficulty or 'nothing'}: its answers cannot be weighed here",
            hint="assess with the same difficulty and levels, or make a baseline with masa baseline",
        )


def _identity(settings: Settings, difficulty: str) -> dict[str, Any]:
    mix = None if settings.mix is None else dict(settings.mix)
    return {"method": settings.method, "levels": settings.levels, "seed": settings.seed, "mix": mix, "difficulty": difficulty}


def _cautions(strata: Strata, places: Ints, old: Old, method: str) -> list[str]:
    notes = []
    for when, asked in (("", places), (" in the baseline", old.places)):
        answered = np.bincount(strata.label[strata.of(asked)], minlength=len(strata.labels))
        blind = [repr(strata.labels[i]) for i in np.flatnonzero((strata.label_weight > 0.0) & (answered == 0))]
        if blind:
            some = ", ".join(blind[:5]) + (", ..." if len(blind) > 5 else "")
            notes.append(
                f"nothing was asked{when} about {len(blind)} of the labels ({some}): their part of the matrix counts as zero"
            )
    if not old.complete:
        notes.append(f"the old matrix is an estimate from {len(old.places):,} answers; the interval and the error allow for that")
    if method == "masa" and len(places) < len(strata.items):
        notes.append(
            "the interval is the usual one for strata: it does not allow for the sampling being adaptive, which makes accuracy "
            "look a little better than it is (docs/method.md); --method post-stratified is free of that"
        )
    return notes


class Told:
    """A sampler that keeps what it is told, to say how sure the estimate is by now."""

    def __init__(self, sampler: Sampler, old: Old) -> None:
        self.sampler = sampler
        self._old = old
        self._places: list[int] = []
        self._answers: list[str] = []
        self._known: tuple[int, float | None] = (0, None)

    def ask(self, n: int = 1) -> list[Query]:
        """Ask the sampler."""
        return self.sampler.ask(n)

    def sent(self, query: Query) -> None:
        """Tell the sampler."""
        self.sampler.sent(query)

    def tell(self, answer: Answer) -> None:
        """Tell the sampler."""
        self.sampler.tell(answer)
        self._places.append(answer.item)
        self._answers.append(answer.prediction)

    def error(self) -> float | None:
        """Give the root of the expected squared error, anew after every few percent of answers."""
        count, known = self._known
        if len(self._places) > 2 * len(self.sampler.strata) and len(self._places) > 1.05 * count:
            values = tuple(dict.fromkeys(self._answers))
            code = {value: j for j, value in enumerate(values)}
            column = Column("answers", values, np.array([code[value] for value in self._answers], np.int32))
            found = estimated(self.sampler.strata, self._old, np.array(self._places, np.int64), column, finite=True)
            known = found.matrix.error2**0.5
            self._known = len(self._places), known
        return known


def _close(store: Store, session: Session, result: Assessment) -> None:
    if result.stopped in ("interrupted", "failures"):
        history.pause(store, session.run.id, result.stopped)
    else:
        history.finish(store, session.run.id, result.stopped, session.kept(result.to_dict()))
