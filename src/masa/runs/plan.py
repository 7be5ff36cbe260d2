"""`masa plan`: what a precision costs and what a budget buys, before anything is spent."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from masa.clients import Client
from masa.data.baseline_answers import BaselineAnswers, labelled_only, narrowed
from masa.data.dataset import Dataset
from masa.records import BILLION, Buys, Column, Cost, Forecast, Replay
from masa.replays.made_up_change import (
    SCALED,
    MadeUpChange,
    aimed,
    made_up_change,
    queries_for,
)
from masa.runs.assess import cache, with_cheap_model
from masa.runs.earlier_change import learned_from_run
from masa.runs.options import options
from masa.runs.session import costs_nothing
from masa.runs.stored_baseline import find_baseline
from masa.settings import PlanSettings, Settings
from masa.settings.setting import known_names
from masa.storage import history
from masa.storage.history import Run
from masa.storage.store import Store, opened

USUAL_SHARE = 0.03
"""The share of answers that is taken to change where nothing tells."""

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


def plan(
    data: Dataset,
    client: Client,
    *,
    baseline: "str | Column | int | None" = None,
    settings: Settings | None = None,
    wanted: PlanSettings | None = None,
    price: float | None = None,
    **given: Any,
) -> Forecast:
    """Tell what a precision costs and what a budget buys, by assessing a change that is made up.

    Nothing is asked. The share of answers that changed is what the store's earlier assessments
    found, or a guess. Where one of them saw a change, the made-up one resembles it; else it rather
    hits answers of low confidence, wrong ones, and those that others answer differently. A `price`
    is money per query, if the client does not know better. Further keywords are the fields of
    `PlanSettings` (`changed=0.03`, `errors=[0.01]`), of `Settings` and of `RunOptions`
    (`store=None`).
    """
    planned = {key: given.pop(key) for key in list(given) if key in known_names(PlanSettings)}
    asked_for = replace(wanted or PlanSettings(), **planned)
    chosen = options(settings, None, **given)
    with opened(chosen.run.store) as store:
        data, old = find_baseline(
            store,
            data,
            client,
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
    case.tell("errors by method", 0.05)
    ratio = case.error_ratio(share)
    forecast = _Forecasting(case, asked_for, asked_for.changed or share, ratio).forecast(why)
    return replace(
        forecast,
        items=len(data),
        price=_price(client, data) if price is None else price,
        notes=(
            *data.notes,
            *old.notes,
            *_cautions(old, run if like is not None else None, ratio),
            *forecast.replay.method_notes,
        ),
    )


class _Forecasting:
    """Plays assessments of a made-up change and reads a forecast off them."""

    def __init__(
        self, case: MadeUpChange, wanted: PlanSettings, share: float, ratio: float
    ) -> None:
        self._case = case
        self._share = share
        self._ratio = ratio
        self._first_ratio = ratio if case.methods[0] in SCALED else 1.0
        self._budgets = sorted(
            {min(budget, len(case.data)) for budget in (wanted.budgets or BUDGETS)}
        )
        self._errors = sorted(wanted.errors or ERRORS, reverse=True)

    def forecast(self, why: str) -> Forecast:
        """Play everything."""
        case = self._case
        played = case.replays(
            self._share, budgets=self._budgets, error=self._errors[-1], error_ratio=self._ratio
        )
        noticed = []
        for number, size in enumerate(SIZES):
            case.tell("chances to notice", 0.4 + 0.2 * number / len(SIZES))
            noticed.append(_noticed(case, size, self._budgets))
        bought = [self._bought(place, played, noticed) for place in range(len(self._budgets))]
        costs = [self._cost(number, played) for number in range(len(self._errors))]
        old = case.old
        return Forecast(
            items=len(case.data),
            changed=self._share,
            why=why,
            confidence=case.settings.confidence,
            method=case.methods[0],
            price=None,
            costs=tuple(costs),
            sizes=SIZES,
            buys=tuple(bought),
            blind=tuple(
                _cannot_see(bought, items=len(case.data), repeats_itself=old.repeats_itself)
            ),
            replay=played,
        )

    def _bought(self, place: int, played: Replay, noticed: list[tuple[float, ...]]) -> Buys:
        """Tell what one budget buys."""
        budget = self._budgets[place]
        self._case.tell("what budgets buy", 0.6 + 0.2 * place / len(self._budgets))
        ended = self._case.ended(self._share, budget=budget)
        return Buys(
            budget,
            played.curves[0].error_quantile[place],
            self._first_ratio * ended.width / 2.0,
            tuple(row[place] for row in noticed),
        )

    def _cost(self, number: int, played: Replay) -> Cost:
        """Tell what one precision costs."""
        error = self._errors[number]
        self._case.tell("until an assessment stops", 0.8 + 0.2 * number / len(self._errors))
        no_change = played.no_change_error
        proves_nothing = no_change is not None and error >= no_change
        # The smallest error is the one that was searched for, with fine steps.
        searched = error == played.target_error and not proves_nothing
        queries = {}
        for curve in played.curves:
            if searched and self._case.old.weight is None:
                queries[curve.method] = curve.queries_for_target
            else:
                queries[curve.method] = queries_for(curve, error)
        until_sure = None
        if not proves_nothing:
            aim = aimed(error, self._first_ratio)
            ended = self._case.ended(self._share, budget=None, target_error=aim)
            if ended.early >= 0.5:
                until_sure = round(ended.queries_mean)
        return Cost(error, queries, until_sure, proves_nothing)


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


def _noticed(case: MadeUpChange, size: float, budgets: Sequence[int]) -> tuple[float, ...]:
    """Give the probability, by budget, to notice that this share of answers changed."""
    some_changed = 1.0
    if case.old.weight is not None:
        # Of items that represent others perhaps none changed.
        some_changed = 1.0 - (1.0 - size) ** len(case.data)
    if not case.old.repeats_itself:
        return tuple(some_changed * case.ended(size, budget=budget).noticed for budget in budgets)
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
