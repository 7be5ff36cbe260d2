"""Assess an API: what it answers now against what it answered before. The only place where the sampler and a client meet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from masa import history, journal, live
from masa.budget import amount, billionths
from masa.change import Estimated, by_group, uniform_queries
from masa.cheap import CHEAP, helped
from masa.clients import Client, Function
from masa.clients.replay import ReplayClient
from masa.dataset import Dataset
from masa.engine import Limits, Stopped
from masa.errors import UsageError
from masa.history import Draft
from masa.intervals import normal
from masa.live import Choice, Session, Spending
from masa.moved import differences, moved
from masa.objective import Objective, Tolerance
from masa.old import Old, comparable, compared, keys, narrowed, odd_answers, version
from masa.plan import Plan, Settings
from masa.records import (
    ERROR,
    Answer,
    Assessment,
    Column,
    Floats,
    Ints,
    Progress,
    Query,
    Versions,
)
from masa.stopping import Stopping
from masa.store import DEFAULT, Store, opened
from masa.strata import Strata
from masa.sure import Looks, judged
from masa.weighed import Draws

ADAPTIVE = ("masa", "adaptive", "paired")
"""Methods that choose strata by their answers."""

MOST_ITEMS = 20
"""Changed items that are named."""


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
    stopping = Stopping(chosen.target_error, chosen.decide, chosen.tolerance, chosen.confidence, chosen.objective, chosen.strict)
    spending = budgeted(asked, budget, money)
    if spending.queries is not None and chosen.canary > spending.queries:
        raise UsageError(
            f"the canary is {chosen.canary:,} queries and the budget {spending.queries:,}",
            hint="give a budget no smaller than it",
        )
    with opened(store) as kept:
        whole, old = compared(kept, data, asked, baseline, name=name, confidence=chosen.old_confidence, force=force)
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
            told = Told(plan, old, stopping, min(len(data), spending.queries or len(data)), chosen.canary)
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


assess = live.waiting(assess_async)


def with_cheap_model(
    data: Dataset, old: Old, settings: Settings, *, folder: Path | None, progress: Progress | None
) -> tuple[Dataset, Settings]:
    """Train a cheap model, where one may be and nothing else tells easy items from hard ones."""
    if settings.cheap is None:
        return data, settings
    if not data.labelled.all():
        return replace(data, notes=(*data.notes, "no cheap model was trained: some items have no label")), settings
    if settings.also or data.difficulty is not None or old.confidence is not None:
        return data, settings
    kind, column = settings.cheap
    data = helped(data, column, kind=kind, folder=folder, progress=progress)
    return data, replace(settings, also=(CHEAP,), difficulty="the confidence of a cheap model")


def drawn(data: Dataset, past: journal.Past, places: Ints) -> Draws | None:
    """Give how the items at these places (n,) came to be asked, where they were drawn in batches."""
    if not past.draws:
        return None
    place = live.places(data, past.draws)
    by_place = {place[key]: draw for key, draw in past.draws.items() if key in place}
    return Draws.of([by_place[item] for item in places.tolist()])


def conclude(
    session: Session,
    plan: Plan,
    old: Old,
    settings: Settings,
    stopped: str,
    sides: tuple[str, str] = ("before", "now"),
    looks: Looks | None = None,
) -> tuple[Assessment, Estimated | None]:
    """Fold the journal, and nothing else, into a result: the same whether the run was interrupted or not."""
    data, past, strata = session.data, session.past, plan.strata
    finite = old.steady
    places, answers = live.known(data, past)
    compared_to, differing = differences(data, old, places, answers)
    found = None
    notes = list(session.all_notes)
    draws = drawn(data, past, places) if len(places) else None
    if len(places) and (draws is None or draws.batch.any() or plan.exhausted(places)):
        # Of canaries alone, which were not drawn at random, nothing follows for the others.
        found = plan.estimated(old, places, answers, draws, finite=finite)
        notes += _cautions(strata, places, plan.method)
        if draws is not None and (before := int(np.count_nonzero(draws.chance))) < len(places):
            notes.append(
                f"method adaptive from answer {before + 1:,} on: the labels told the new answers better than the old answers did"
            )
    did_move = moved(found, old, compared_to, differing, confidence=_confidences(data, past), looks=looks)
    if differing and not old.repeated and old.run is not None:
        notes.append(
            "whether the API contradicts itself was not measured (masa baseline --repeat N does); it is taken to repeat itself"
        )
    if stopped == "canary":
        notes.append(_missed(len(compared_to), len(differing), settings.confidence))
    without = ~data.labelled
    if unasked := int(np.count_nonzero(without)) - int(np.count_nonzero(without[places])):
        notes.append(f"{unasked:,} of the items without a label were not asked")
    called = version(past)
    notes += odd_answers(data, answers)
    if called and ", " in called:
        notes.append(f"the provider named more than one version during this run: {called}")
    finished = stopped not in ("failures", "interrupted")
    groups, gap = ((), None) if found is None else by_group(found, data, old, places, settings.confidence, looks or normal)
    result = Assessment(
        run=session.run.id,
        **judged(
            found,
            strata,
            places,
            finished=finished,
            tolerance=settings.tolerance,
            confidence=settings.confidence,
            objective=settings.objective,
            looks=looks,
        ),
        moved=did_move.said,
        proof=did_move.proof,
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
        uniform_queries=None if found is None or old.stands is not None else uniform_queries(found, strata, finite=finite),
        method=plan.method,
        seed=settings.seed,
        sides=sides,
        groups=groups,
        gap=gap,
        fail_on=settings.fail_on,
        canary_ok=settings.canary_ok,
        notes=tuple(notes),
    )
    return result, found


def _confidences(data: Dataset, past: journal.Past) -> dict[int, float]:
    """Give the confidence of each answer that came with one, by place."""
    place = live.places(data, past.answers)
    return {
        place[key]: recorded.confidence
        for key, recorded in past.answers.items()
        if key in place and recorded.confidence is not None and recorded.prediction != ERROR
    }


def as_client(client: "Client | Callable[..., Any] | str", data: Dataset) -> Client:
    """Take a client, a function, or the name of a column of recorded predictions."""
    if isinstance(client, str):
        kind, _, column = client.partition(":")
        if kind != "replay" or column not in data.predictions:
            known = ", ".join(f"replay:{name}" for name in data.predictions)
            raise UsageError(
                f"{client!r} is not a client that can be made here", hint=f"give a function, or one of {known or 'no columns'}"
            )
        return ReplayClient(data.predictions[column], rows=data.rows)
    return client if isinstance(client, Client) else Function(client)


def budgeted(client: Client, budget: int | None, money: "float | str | None") -> Spending:
    """Check what may be spent: nothing is paid without a limit, and money is counted only where there is a price."""
    if budget is None and money is None and not live.free(client):
        raise UsageError("no budget was given", hint="give budget= in queries, or money=; len(data) asks every item")
    if money is not None and not client.priced:
        raise UsageError("a budget in money needs a price", hint="tell what a call costs, or give a budget in queries")
    return Spending(budget, None if money is None else billionths(money))


def _identity(settings: Settings, plan: Plan, old: Old) -> dict[str, Any]:
    mix = None if settings.mix is None else dict(settings.mix)
    same = {"method": plan.method, "levels": settings.levels, "seed": settings.seed, "mix": mix, "difficulty": plan.difficulty}
    turns = plan.layout is not None and plan.layout.rest.may
    more = {"also": list(settings.also), "weights": settings.objective.identity(), "turns": turns}
    more |= {"decide": settings.decide, "strict": settings.strict}
    if old.stands is not None:
        more["known"] = len(old.places)
    if old.run is None:
        more |= {"old": old.answers.name, "old_confidence": settings.old_confidence}
    return same | {key: value for key, value in more.items() if value}


def _missed(answers: int, differing: int, confidence: float) -> str:
    """Say what a canary that saw nothing may have missed: changes that follow nothing it knows of."""
    if differing:
        return f"{differing:,} of the canary's {answers:,} answers differ, no more than the API contradicts itself anyway"
    chance, seen = 0.95**answers, 1.0 - (1.0 - confidence) ** (1.0 / max(answers, 1))
    return (
        f"none of the canary's {answers:,} answers changed: that happens in {100 * chance:.2g}% of cases "
        f"if 5% of all answers changed, evenly, and in {100 * (1.0 - confidence):.2g}% if {100 * seen:.2g}% did; "
        "changes of doubtful answers show sooner"
    )


def _cautions(strata: Strata, places: Ints, method: str) -> list[str]:
    notes = []
    answered = np.bincount(strata.label[strata.of(places)], minlength=len(strata.labels))
    blind = [repr(strata.labels[i]) for i in np.flatnonzero((strata.label_weight > 0.0) & (answered == 0))]
    if blind:
        some = ", ".join(blind[:5]) + (", ..." if len(blind) > 5 else "")
        so = "is taken to be as before" if method == "predictive" else "counts as zero"
        notes.append(f"nothing was asked about {len(blind)} of the labels ({some}): their part of the matrix {so}")
    if method in ADAPTIVE and len(places) < len(strata.items):
        notes.append(
            "the interval is the usual one for strata: it does not allow for the sampling being adaptive, which makes accuracy "
            "look a little better than it is (docs/sure.md); --method post-stratified is free of that"
        )
    return notes


class Told:
    """What chooses items, keeping what it is told, to say how sure the estimate is by now, and whether that is enough."""

    def __init__(self, plan: Plan, old: Old, stopping: Stopping, most: int, canary: int = 0) -> None:
        self._plan = plan
        self._old = old
        self._stopping = stopping
        self._most = most
        self._canary = canary
        self._looks: tuple[int | None, int | None] | None = None
        """after how many answers to look at the verdict and at the error, once the journal has been told"""
        self._asked: dict[int, Query] = {}
        self._answered: dict[int, str] = {}
        self._confidence: dict[int, float] = {}
        self._failed = 0
        self._known: tuple[int, float | None] = (0, None)

    def ask(self, n: int = 1) -> list[Query]:
        """Ask what chooses; nothing is under way when the canary or the verdict is looked at."""
        look = None if self._looks is None else self._looks[0]
        if look is not None:
            n = min(n, look - len(self._asked))
        if self._canary:
            n = min(n, self._canary + self._failed - len(self._asked))
        queries = self._plan.source.ask(n) if n > 0 else []
        self._asked.update((query.item, query) for query in queries)
        return queries

    def sent(self, query: Query) -> None:
        """Tell what chooses."""
        self._plan.source.sent(query)
        self._asked[query.item] = query

    def tell(self, answer: Answer) -> None:
        """Tell what chooses."""
        self._plan.source.tell(answer)
        self._answered[answer.item] = answer.prediction
        if answer.confidence is not None:
            self._confidence[answer.item] = answer.confidence
        self._failed += answer.prediction == ERROR

    def error(self) -> float | None:
        """Give the root of the expected squared error, anew after every few percent of answers."""
        count, known = self._known
        if len(self._answered) > 2 * len(self._plan.strata) and len(self._answered) > 1.05 * count:
            known = self._estimated(finite=True).matrix.error2 ** 0.5
            self._known = len(self._answered), known
        return known

    @property
    def looks(self) -> Looks | None:
        """How far intervals reach that are looked at during the run."""
        return self._stopping.looks(self._most, len(self._plan.data))

    def enough(self) -> "Stopped | None":
        """Say why the run may stop now, or None."""
        if self._canary and self._sung():
            return "canary"
        answers, strata = len(self._answered), len(self._plan.strata)
        if self._looks is None:
            # What a run that goes on has looked at before it does not look at again.
            self._looks = self._stopping.next_verdict(answers), self._stopping.next_error(0, strata)
        verdict, error = self._looks
        if verdict is not None and answers >= verdict:
            self._looks = self._stopping.next_verdict(answers), error
            if self._stopping.verdict(self._estimated(finite=self._finite), self.looks) != "undecided":
                return "decided"
        if error is not None and answers >= error:
            self._looks = self._looks[0], self._stopping.next_error(answers, strata)
            if self._stopping.reached(self._estimated(finite=self._finite)):
                return "target"
        return None

    @property
    def _finite(self) -> bool:
        return self._old.steady

    def _sung(self) -> bool:
        """Say whether the canary is over and saw nothing: its items are the first that were asked and did not fail."""
        if len(self._asked) - self._failed > self._canary:  # The journal went on after it.
            self._canary = 0
            return False
        first = [item for item in self._asked if self._answered.get(item, ERROR) != ERROR]
        if len(first) < self._canary:
            return False
        self._canary = 0
        data, old = self._plan.data, self._old
        compared_to, differing = differences(data, old, np.array(first, np.int64), self._column(first))
        some = any(self._asked[item].batch != 0 for item in first)
        found = self._estimated(finite=False) if differing and not old.steady and some else None
        confidence = {item: sure for item in first if (sure := self._confidence.get(item)) is not None}
        return moved(found, old, compared_to, differing, confidence=confidence).said != "yes"

    def _estimated(self, *, finite: bool) -> Estimated:
        items = list(self._answered)
        draws = [draw for item in items if (draw := self._asked[item].draw) is not None]
        places, found = np.array(items, np.int64), Draws.of(draws) if draws else None
        return self._plan.estimated(self._old, places, self._column(items), found, finite=finite)

    def _column(self, items: list[int]) -> Column:
        answers = [self._answered[item] for item in items]
        values = tuple(dict.fromkeys(answers))
        code = {value: j for j, value in enumerate(values)}
        return Column("answers", values, np.array([code[value] for value in answers], np.int32))


def _even_weights(plan: Plan, old: Old) -> Floats:
    """Give what makes of the share that an answer stands for (N,) what it would be without the mix, 0 where that is not known."""
    weight = plan.strata.item_weight
    whole = np.full(len(weight), 1.0 / len(weight)) if old.stands is None else old.stands
    return np.divide(whole, weight, out=np.zeros(len(weight)), where=weight > 0.0)


def _close(store: Store, session: Session, result: Assessment, found: Estimated | None, times: Floats) -> None:
    if result.stopped in ("interrupted", "failures"):
        history.pause(store, session.run.id, result.stopped)
        return
    if found is not None:
        key = keys(session.data).tolist()
        told = {
            key[place]: (share * float(times[place]), adds * float(times[place]) ** 2)
            for place, (share, adds) in found.stands().items()
        }
        journal.weigh(store, session.run.id, told)
    history.finish(store, session.run.id, result.stopped, session.kept(result.to_dict()))
