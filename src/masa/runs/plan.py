"""`masa plan`: what a precision costs and what a budget buys, before anything is spent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from masa.clients import Client
from masa.data.baseline_answers import BaselineAnswers, labelled_only, narrowed
from masa.data.dataset import Dataset
from masa.records import BILLION, Between, Buys, Column, Cost, Curve, Forecast, Replay
from masa.replays.expected import RUNS as EXPECTED_RUNS
from masa.replays.learned_change import probabilities
from masa.replays.made_up_change import (
    DOUBTFUL,
    EVENLY,
    SCALED,
    MadeUpChange,
    aimed,
    made_up_change,
    queries_for,
)
from masa.replays.noticing import AskedUnchanged, smallest_beyond_noise, smallest_change
from masa.runs.assess import as_client
from masa.runs.case import cache, with_cheap_model
from masa.runs.earlier_change import learned_from_run
from masa.runs.given import dataset
from masa.runs.options import options
from masa.runs.session import costs_nothing
from masa.runs.stored_baseline import find_baseline
from masa.settings import PlanSettings, Settings
from masa.settings.setting import known_names
from masa.storage import history
from masa.storage.history import Run
from masa.storage.store import Store, opened

if TYPE_CHECKING:
    import pandas as pd

USUAL_SHARE = 0.03
"""The share of answers that is taken to change where nothing tells."""

OTHER_SHARES = (0.01, 0.3)
"""What may as well be: a quiet update, and a rewrite."""

ERRORS = (0.02, 0.01, 0.005, 0.0025)
"""The errors that are priced where none are named."""
BUDGETS = (100, 500, 2_000)
"""The budgets whose worth is told where none are named."""
SIZES = (0.001, 0.003, 0.01, 0.03, 0.1)
"""Shares of changed answers for which it is told how likely they are noticed."""

TOLD_RATIO = 0.05
"""An error ratio is told if it is further than this from 1."""

VARIANTS = 5
"""Changes are made up in so many ways where probabilities are wanted."""

RUNS_OF_GUESSES = 2
"""Runs for each end of a range, and for other shares."""


def plan(
    data: "Dataset | pd.DataFrame | str | Path",
    client: "Client | Callable[..., Any] | str",
    *,
    baseline: "str | Column | int | None" = None,
    settings: Settings | None = None,
    wanted: PlanSettings | None = None,
    price: float | None = None,
    early: Callable[[Forecast], None] | None = None,
    **given: Any,
) -> Forecast:
    """Tell what a precision costs and what a budget buys, by assessing a change that is made up.

    Nothing is asked. The share of answers that changed is what the store's earlier assessments
    found, or a guess. Where one of them saw a change, the made-up one resembles it; else it rather
    hits answers of low confidence, wrong ones, and those that others answer differently, and what
    may as well be is told as a range. A `price` is money per query, if the client does not know
    better. What is known within seconds goes to `early`, without the rest. Further keywords are the
    fields of `PlanSettings` (`changed=0.03`, `errors=[0.01]`), of `Settings` and of `RunOptions`
    (`store=None`).
    """
    data = dataset(data, given, baseline, client)
    planned = {key: given.pop(key) for key in list(given) if key in known_names(PlanSettings)}
    asked_for = replace(wanted or PlanSettings(), **planned)
    chosen = options(settings, None, **given)
    api = as_client(client, data)
    with opened(chosen.run.store) as store:
        data, old = find_baseline(
            store,
            data,
            api,
            baseline,
            name=chosen.run.name,
            confidence=chosen.settings.old_confidence,
            force=chosen.run.force,
        )
        share, run = _earlier_share(store, chosen.run.name)
        data, assess = with_cheap_model(
            data, old, chosen.settings, folder=cache(store, chosen), progress=chosen.run.progress
        )
        data, old = narrowed(data, old)
        if not data.labelled.all():
            data, old = labelled_only(data, old)
        like = None
        if run is not None:
            like = learned_from_run(store, data, old, assess, run)
    case = made_up_change(
        data,
        old,
        assess,
        runs=asked_for.runs,
        methods=asked_for.methods,
        like=like,
        progress=chosen.run.progress,
    )
    why = "a guess; --changed tells another"
    if asked_for.changed is not None:
        why = "as you say"
    elif run is not None:
        why = f"what run {run.id} found"
    guessed = asked_for.changed is None and run is None
    forecasting = _Forecasting(
        case, asked_for, _Known(asked_for.changed or share, share, guessed, why)
    )
    about = partial(
        replace,
        items=len(data),
        price=_price(api, data) if price is None else price,
    )
    if early is not None:
        early(about(forecasting.early()))
    forecast = forecasting.forecast()
    assert forecast.replay is not None  # noqa: S101
    return about(
        forecast,
        notes=(
            *data.notes,
            *old.notes,
            *_cautions(old, run if like is not None else None, forecasting.ratio),
            *forecasting.method.notes,
            *forecast.replay.method_notes,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the change to plan for."""

    share: float
    """of the answers that change"""
    found: float
    """the share that an earlier assessment found, or the usual one"""
    guessed: bool
    """whether nothing tells the share"""
    why: str


class _Forecasting:
    """Plays assessments of a made-up change and reads a forecast off them."""

    def __init__(self, case: MadeUpChange, wanted: PlanSettings, known: _Known) -> None:
        self._case = case
        self._known = known
        budgets = wanted.budgets or BUDGETS
        self._budgets = sorted({min(budget, len(case.data)) for budget in budgets})
        self._errors = sorted(wanted.errors or ERRORS, reverse=True)
        case.tell("laying out", 0.02)
        self.method = case.laid_out(self._errors[-1], case.words())
        self.ratio = case.error_ratio(known.found, self.method)
        case.tell("what changes cost", 0.1)
        self._first = self._curve(case, known.share, EXPECTED_RUNS)
        self._no_change = case.no_change_error(known.share)

    def early(self) -> Forecast:
        """Give what is known within seconds: the queries of the first method."""
        name = self._case.methods[0]
        costs = [
            Cost(error, {name: queries_for(self._first, error)}, None, error >= self._no_change)
            for error in self._errors
        ]
        return self._forecast(costs, [], None)

    def forecast(self) -> Forecast:
        """Play everything."""
        case, known = self._case, self._known
        case.tell("other methods", 0.2)
        played = case.other_methods(
            self._first, known.share, budgets=self._budgets, error=self._errors[-1]
        )
        case.tell("what may as well be", 0.3)
        ends: list[Curve] = []
        if case.learned is None:
            leans = (replace(case, lean=lean) for lean in (EVENLY, DOUBTFUL))
            ends = [self._curve(lean, known.share, RUNS_OF_GUESSES) for lean in leans]
        others: dict[float, Curve] = {}
        if known.guessed:
            others = {share: self._curve(case, share, RUNS_OF_GUESSES) for share in OTHER_SHARES}
        costs = [self._cost(error, played, ends, others) for error in self._errors]
        case.tell("chances to notice", 0.7)
        asked = None
        if case.methods[0] in SCALED:
            asked = AskedUnchanged.of(self.method, self._budgets[-1])
        noticed = [_noticed(case, size, self._budgets, asked) for size in SIZES]
        case.tell("what budgets buy", 0.9)
        bought = [self._bought(place, noticed, asked) for place in range(len(self._budgets))]
        return self._forecast(costs, bought, played)

    def _forecast(
        self, costs: Sequence[Cost], bought: Sequence[Buys], played: Replay | None
    ) -> Forecast:
        case, known = self._case, self._known
        blind = _cannot_see(bought, items=len(case.data), repeats_itself=case.old.repeats_itself)
        return Forecast(
            items=len(case.data),
            changed=known.share,
            why=known.why,
            confidence=case.settings.confidence,
            method=case.methods[0],
            price=None,
            costs=tuple(costs),
            sizes=SIZES,
            buys=tuple(bought),
            blind=tuple(blind) if played is not None else (),
            replay=played,
        )

    def _curve(self, case: MadeUpChange, share: float, runs: int) -> Curve:
        """Give the error of the first method by the number of queries."""
        return case.scaled(
            self.method,
            share,
            budgets=self._budgets,
            error=self._errors[-1],
            ratio=self.ratio,
            runs=runs,
        )

    def _cost(
        self, error: float, played: Replay, ends: Sequence[Curve], others: Mapping[float, Curve]
    ) -> Cost:
        """Tell what one precision costs."""
        case, proves_nothing = self._case, error >= self._no_change
        case.tell(f"until an assessment stops at {100 * error:g}%", 0.5)
        until_sure, either = None, (self._first, *ends)
        if not proves_nothing:
            ended = case.ended(
                self._known.share, budget=None, target_error=aimed(error, self.ratio)
            )
            if ended.early >= 0.5:
                until_sure = round(ended.queries_mean)
        return Cost(
            error,
            {curve.method: queries_for(curve, error) for curve in played.curves},
            until_sure,
            proves_nothing,
            _between([queries_for(curve, error) for curve in either], guessed=bool(ends)),
            {share: self._of_share(share, curve, error) for share, curve in others.items()},
        )

    def _of_share(self, share: float, curve: Curve, error: float) -> int | None:
        """Give the queries for an error if another share changed; 0 if none are needed."""
        if error >= self._case.no_change_error(share):
            return 0
        return queries_for(curve, error)

    def _bought(
        self, place: int, noticed: Sequence[tuple[float, ...]], asked: AskedUnchanged | None
    ) -> Buys:
        """Tell what one budget buys."""
        case, budget = self._case, self._budgets[place]
        ended = case.ended(self._known.share, budget=budget)
        return Buys(
            budget,
            self._first.error_quantile[place],
            self.ratio * ended.width / 2.0,
            tuple(row[place] for row in noticed),
            {} if asked is None else _smallest(case, asked, budget),
        )


def _between(found: Sequence[int | None], *, guessed: bool) -> Between | None:
    """Give the range of these numbers of queries, if they rest on a guess."""
    if not guessed:
        return None
    known = [queries for queries in found if queries is not None]
    return Between(min(known, default=None), max(known) if len(known) == len(found) else None)


def _smallest(case: MadeUpChange, asked: AskedUnchanged, budget: int) -> dict[str, float | None]:
    """Give the smallest change of each label that a budget notices, or None."""
    label, old = case.data.label, case.old
    items = np.bincount(label.codes, minlength=len(label.values)).tolist()
    counts = asked.of_label(label.codes.astype(np.int64), len(label.values), budget).tolist()
    found = {}
    for name, number, count in zip(label.values, items, counts, strict=True):
        if not number:
            continue
        found[name] = smallest_change(count, number)
        if not old.repeats_itself:
            found[name] = smallest_beyond_noise(
                count, budget, contradicted=old.contradicted, repeated=old.repeated
            )
    return found


def _earlier_share(store: Store, name: str) -> tuple[float, Run | None]:
    """Give the largest share of changed answers that an earlier assessment found, and that run.

    Or a guess, and None.
    """
    most, which = USUAL_SHARE, None
    for run in history.runs(store, most=1000):
        share = _share_found(run, name)
        if share > 0.0 and (which is None or share >= most):
            most, which = share, run
    return most, which


def _share_found(run: Run, name: str) -> float:
    """Give the share of answers that an assessment found to have changed; 0 where it found none."""
    result = run.result
    if run.kind != "assess" or run.name != name or result is None or result.get("moved") != "yes":
        return 0.0
    intervals = result.get("intervals")
    if not intervals or not intervals["differing"]:
        return 0.0
    return float(intervals["differing"]["estimate"])


def _noticed(
    case: MadeUpChange, size: float, budgets: Sequence[int], asked: AskedUnchanged | None
) -> tuple[float, ...]:
    """Give the probability, by budget, to notice that this share of answers changed."""
    items = len(case.data)
    # Of few items perhaps none changed; what is made up is a change of one at least.
    some_changed = min(1.0, size * items)
    if case.old.weight is not None:
        # Of items that represent others perhaps none changed.
        some_changed = 1.0 - (1.0 - size) ** items
    if not case.old.repeats_itself:
        return tuple(some_changed * case.ended(size, budget=budget).noticed for budget in budgets)
    if asked is not None:
        hit = probabilities(case.log_odds(), max(1, round(size * items)))
        return tuple(some_changed * chance for chance in asked.noticed(hit, budgets))
    runs = max(2, case.runs // VARIANTS)
    variants = [
        case.replay(
            size,
            methods=case.methods[:1],
            budgets=budgets,
            error=0.5,
            runs=runs,
            variant=variant,
        )
        .curves[0]
        .noticed
        for variant in range(VARIANTS)
    ]
    return tuple((some_changed * np.mean(variants, axis=0)).tolist())


def _cannot_see(bought: Sequence[Buys], *, items: int, repeats_itself: bool) -> list[str]:
    """Say what the budgets cannot see."""
    words = []
    for buys in bought:
        what = "1 query" if buys.queries == 1 else f"{buys.queries:,} queries"
        pairs = zip(SIZES, buys.noticed, strict=True)
        missed = [size for size, chance in pairs if chance < 0.5]
        if missed:
            words.append(
                f"{what}: a change of {100 * max(missed):g}% of the answers "
                "is more likely missed than noticed"
            )
        if buys.accuracy >= 0.5:
            words.append(f"{what}: nothing is known about the change of accuracy")
        elif buys.queries < items or not repeats_itself:
            words.append(
                f"{what}: a change of accuracy of less than about {100 * buys.accuracy:.2g} points "
                "cannot be told from none"
            )
    if not repeats_itself:
        words.append(
            "what is noticed must be more than the API contradicts itself; "
            "masa baseline --repeat N measures that better"
        )
    return words


def _cautions(old: BaselineAnswers, run: Run | None, ratio: float) -> list[str]:
    """Say what a plan rests on."""
    notes = [
        "the change is made up: it hits doubtful answers more than others; "
        "one that follows words or another model takes fewer queries"
    ]
    if run is not None:
        notes = [
            f"the change is made up: it hits such answers as changed in run {run.id}, "
            "and they become what those became"
        ]
        if abs(ratio - 1.0) > TOLD_RATIO:
            notes.append(
                f"errors are taken to be {ratio:.2f} times as large as in the made-up change, "
                f"as that of run {run.id} was"
            )
    if not old.repeats_itself:
        notes.append(
            "the queries by method are those for an API that repeats itself; this one does not: "
            "some errors are out of reach; when --target-error stops, and what is known about "
            "accuracy, allow for that"
        )
    return notes


def _price(client: Client, data: Dataset) -> float | None:
    """Give what a query costs on average, in money."""
    if not client.priced or costs_nothing(client):
        return None
    some = np.unique(np.linspace(0, len(data) - 1, 500).astype(np.int64)).tolist()
    return sum(client.price(data.item(place)) for place in some) / len(some) / BILLION
