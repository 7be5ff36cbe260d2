"""What a precision costs and what a budget buys, before anything is spent: assessments of a change that is made up."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from masa.clients import Client
from masa.data.baseline_answers import BaselineAnswers, narrowed
from masa.data.dataset import Dataset
from masa.errors import UsageError
from masa.inference.stopping import Stopping
from masa.records import (
    BILLION,
    Buys,
    Column,
    Cost,
    Forecast,
    Progress,
)
from masa.replays.made_up_change import SCALED, MadeUpChange, _aimed, _labelled, made, queries_for
from masa.runs.assess import with_cheap_model
from masa.runs.earlier_change import from_run
from masa.runs.session import free
from masa.runs.stored_baseline import compared
from masa.settings import Settings
from masa.storage import history
from masa.storage.history import Run
from masa.storage.store import DEFAULT, Store, opened

USUAL = 0.03
"""The share of answers that is taken to change where nothing tells."""

ERRORS = (0.02, 0.01, 0.005, 0.0025)

BUDGETS = (100, 500, 2_000)

SIZES = (0.001, 0.003, 0.01, 0.03, 0.1)

TOLD = 0.05
"""By how much errors differ from made-up ones when that is told."""

WAYS = 5
"""Ways in which a change is made up where chances are wanted."""


def plan(
    data: Dataset,
    client: Client,
    *,
    baseline: "str | Column | int | None" = None,
    settings: Settings | None = None,
    changed: float | None = None,
    errors: Sequence[float] | None = None,
    budgets: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    price: float | None = None,
    runs: int = 100,
    name: str = "default",
    store: "str | Path | None" = DEFAULT,
    force: bool = False,
    progress: Progress | None = None,
) -> Forecast:
    """Tell what a precision costs and what a budget buys, by assessing a change that is made up; nothing is asked.

    The share of answers that `changed` is what the store's earlier assessments found, or a guess. Where one of them met a change,
    this one is like it; else it rather hits answers that were doubtful or wrong, or that others answer otherwise. A `price` is
    money a query, if the client does not know better.
    """
    chosen = settings or Settings()
    with opened(store) as kept:
        data, old = compared(
            kept, data, client, baseline, name=name, confidence=chosen.old_confidence, force=force
        )
        found, run = _earlier(kept, name)
        share, why = (found, _said(run)) if changed is None else (changed, "as you say")
        if not 0.0 < share <= 1.0:
            raise UsageError(
                f"changed is {share:g}",
                hint="give the share of answers that may have changed, such as 0.03 or 3%",
            )
        folder = None if store is None else kept.path.parent / "cache"
        data, chosen = with_cheap_model(data, old, chosen, folder=folder, progress=progress)
        data, old = narrowed(data, old)
        if not data.labelled.all():
            data, old = _labelled(data, old)
        like = None if run is None else from_run(kept, data, old, chosen, run)
    case = made(data, old, chosen, runs=runs, methods=methods, like=like, progress=progress)
    limits = sorted({min(budget, len(case.data)) for budget in (budgets or BUDGETS)})
    wanted = sorted(errors or ERRORS, reverse=True)
    case.tell("errors by method", 0.05)
    truer = case.truer(found)
    played = case.replays(share, budgets=limits, error=wanted[-1], truer=truer)
    first = truer if case.methods[0] in SCALED else 1.0
    by_sizes = []
    for number, size in enumerate(SIZES):
        case.tell("chances to notice", 0.4 + 0.2 * number / len(SIZES))
        by_sizes.append(_noticed(case, size, limits))
    bought = []
    for place, budget in enumerate(limits):
        case.tell("what budgets buy", 0.6 + 0.2 * place / len(limits))
        half = (
            first
            * case.ended(share, Stopping(confidence=chosen.confidence), budget=budget).width
            / 2.0
        )
        bought.append(
            Buys(
                budget,
                played.curves[0].error_quantile[place],
                half,
                tuple(row[place] for row in by_sizes),
            )
        )
    costs = []
    for number, error in enumerate(wanted):
        case.tell("until an assessment stops", 0.8 + 0.2 * number / len(wanted))
        beyond = played.no_change_error is not None and error >= played.no_change_error
        least = error == played.target_error and not beyond
        queries = {
            curve.method: curve.queries_for_target
            if least and old.weight is None
            else queries_for(curve, error)
            for curve in played.curves
        }
        ended = (
            None
            if beyond
            else case.ended(
                share, Stopping(_aimed(error, first), confidence=chosen.confidence), budget=None
            )
        )
        until = None if ended is None or ended.early < 0.5 else round(ended.queries_mean)
        costs.append(Cost(error, queries, until, beyond))
    return Forecast(
        items=len(data),
        changed=share,
        why=why,
        confidence=chosen.confidence,
        method=case.methods[0],
        price=_price(client, data) if price is None else price,
        costs=tuple(costs),
        sizes=SIZES,
        buys=tuple(bought),
        blind=tuple(_blind(bought, items=len(case.data), repeats_itself=old.repeats_itself)),
        replay=played,
        notes=(
            *data.notes,
            *old.notes,
            *_cautions(old, run if like is not None else None, truer),
            *(note for note in played.notes if note.startswith("auto is")),
        ),
    )


def _earlier(store: Store, name: str) -> tuple[float, Run | None]:
    """Give the largest share of changed answers that earlier assessments of this name found, and which; or a guess."""
    most, which = USUAL, None
    for run in history.runs(store, most=1000):
        told = None if run.result is None or run.name != name else run.result.get("intervals")
        if (
            run.kind == "assess"
            and told
            and told["differing"]
            and run.result
            and run.result.get("moved") == "yes"
        ):
            share = float(told["differing"]["estimate"])
            if share > 0.0 and (which is None or share >= most):
                most, which = share, run
    return most, which


def _said(run: Run | None) -> str:
    return "a guess; --changed tells another" if run is None else f"what run {run.id} found"


def _noticed(made: MadeUpChange, size: float, budgets: Sequence[int]) -> tuple[float, ...]:
    """Give the chance, by budget, to notice that this share of answers changed, over changes made up in several ways."""
    # Of items that stand for others perhaps none changed.
    some = 1.0 if made.known.weight is None else 1.0 - (1.0 - size) ** len(made.data)
    if not made.known.repeats_itself:
        return tuple(
            some * made.ended(size, Stopping(), budget=budget).noticed for budget in budgets
        )
    runs = max(2, made.runs // WAYS)
    ways = [
        made.replay(
            size, methods=made.methods[:1], budgets=budgets, error=0.5, runs=runs, once_more=way
        )
        .curves[0]
        .noticed
        for way in range(WAYS)
    ]
    return tuple((some * np.mean(ways, axis=0)).tolist())


def _blind(bought: Sequence[Buys], *, items: int, repeats_itself: bool) -> list[str]:
    words = []
    for buys in bought:
        what = "1 query" if buys.queries == 1 else f"{buys.queries:,} queries"
        small = [size for size, chance in zip(SIZES, buys.noticed, strict=True) if chance < 0.5]
        if small:
            words.append(
                f"{what}: it is more likely than not that nothing is noticed of a change of {100 * max(small):g}% of the answers"
            )
        if buys.accuracy >= 0.5:
            words.append(f"{what}: nothing is known of the change of accuracy")
        elif buys.queries < items or not repeats_itself:
            words.append(
                f"{what}: a change of accuracy of less than about {100 * buys.accuracy:.2g} points cannot be told from none"
            )
    if not repeats_itself:
        words.append(
            "what is noticed must be more than the API contradicts itself; masa baseline --repeat N measures that better"
        )
    return words


def _cautions(old: BaselineAnswers, run: Run | None, truer: float) -> list[str]:
    notes = [
        "the change is made up: it hits doubtful answers more than others; one that follows words or another model takes fewer"
        if run is None
        else f"the change is made up: it hits such answers as changed in run {run.id}, and they become what those became"
    ]
    if run is not None and abs(truer - 1.0) > TOLD:
        notes.append(
            f"errors are taken to be {truer:.2f} times as large as in what is made up, as that of run {run.id} was"
        )
    if not old.repeats_itself:
        notes.append(
            "the queries by method are those for an API that repeats itself; this one does not: some errors are out of reach; "
            "when --target-error stops, and what is known of accuracy, allow for that"
        )
    return notes


def _price(client: Client, data: Dataset) -> float | None:
    """Give what a query costs on average, in money."""
    if not client.priced or free(client):
        return None
    places = np.unique(np.linspace(0, len(data) - 1, 500).astype(np.int64)).tolist()
    return sum(client.price(data.item(place)) for place in places) / len(places) / BILLION
