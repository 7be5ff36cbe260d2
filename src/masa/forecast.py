"""What a precision costs and what a budget buys, before anything is spent: assessments of a change that is made up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path

import numpy as np

from masa import history
from masa.assess import with_cheap_model
from masa.budget import BILLION
from masa.clients import Client
from masa.clues import ranks
from masa.dataset import Dataset
from masa.errors import UsageError
from masa.live import free
from masa.old import Old, compared
from masa.plan import Settings
from masa.records import UNLABELLED, Buys, Codes, Column, Cost, Curve, Floats, Forecast, Progress, Replay, in_order
from masa.rehearse import Noise, rehearse
from masa.replay import cores, replay
from masa.stopping import Stopping
from masa.store import DEFAULT, Store, opened

USUAL = 0.03
"""The share of answers that is taken to change where nothing tells."""

ERRORS = (0.02, 0.01, 0.005, 0.0025)
BUDGETS = (100, 500, 2_000)
SIZES = (0.001, 0.003, 0.01, 0.03, 0.1)

DOUBT, WRONG, DISAGREES = 1.5, 0.5, 1.5
"""Changes are made up that rather hit doubtful answers, wrong ones, and what others answer otherwise: logarithms of odds."""

MENDED = 0.5
"""How often a wrong answer that changes becomes right."""

FEW = 16
"""Whole assessments that are played where a mean is wanted."""

OLD, NEW, SURE_OF_OLD = "old", "new", "old.confidence"


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """The data with old answers, to which new ones can be made up."""

    data: Dataset
    old: Column
    settings: Settings
    known: Old
    runs: int
    methods: tuple[str, ...]
    progress: Progress | None = None

    def changed(self, share: float) -> Dataset:
        """Make up new answers of which this share is not as before."""
        return replace(self.data, predictions={**self.data.predictions, NEW: self._new(share)})

    def replay(self, share: float, *, methods: Sequence[str], budgets: Sequence[int], error: float) -> Replay:
        """Play many assessments of that."""
        inputs = self.data.inputs
        return replay(
            self.changed(share),
            new=NEW,
            old=OLD,
            old_confidence=None if self.known.confidence is None else SURE_OF_OLD,
            also=self.settings.also,
            text=inputs.columns[0] if inputs is not None and len(inputs.columns) == 1 and self.known.complete else None,
            difficulty="given",
            levels=self.settings.levels,
            methods=methods,
            budgets=budgets,
            runs=self.runs,
            target_error=error,
            confidence=self.settings.confidence,
            mix=self.settings.mix,
            seed=abs(self.settings.seed),
        )

    def ended(self, share: float, stopping: Stopping, *, budget: int | None, noise: Noise | None = None) -> tuple[float, ...]:
        """Play a few whole assessments; give their queries, half the width of the interval for accuracy, how often it moved."""
        data = self.changed(share)
        found = rehearse(
            data,
            new=data.predictions[NEW],
            old=replace(self.known, answers=self.old, places=np.arange(len(data)), complete=True, again={}),
            settings=replace(self.settings, method=self.methods[0], canary=0),
            stopping=stopping,
            budget=budget,
            noise=noise,
            runs=FEW,
            workers=cores(),
        )
        return found.queries_mean, found.width / 2.0, found.noticed

    def tell(self, what: str, done: float) -> None:
        """Tell whoever watches."""
        if self.progress is not None:
            self.progress(what, done)

    def _new(self, share: float) -> Column:
        luck = np.random.default_rng((abs(self.settings.seed), round(1e6 * share)))
        old, label = self.old, self.data.label
        names = tuple(dict.fromkeys((*old.values, *(name for name in label.values if name != UNLABELLED))))
        place = {name: code for code, name in enumerate(names)}
        right = np.array([place.get(name, -1) for name in label.values], np.int32)
        usual = np.bincount(old.codes, minlength=len(names)) / len(old.codes)
        mistakes = np.zeros((len(label.values), len(names))) + 0.1 * usual + 1e-9
        np.add.at(mistakes, (label.codes, old.codes), 1.0)
        mistakes[np.flatnonzero(right >= 0), right[right >= 0]] = 1e-9
        codes: Codes = old.codes.astype(np.int32).copy()
        for item in self._which(max(1, round(share * len(codes))), luck).tolist():
            was, mine = int(codes[item]), int(label.codes[item])
            if right[mine] not in (-1, was) and luck.random() < MENDED:
                codes[item] = right[mine]
            elif len(names) > 1:
                chance = np.where(np.arange(len(names)) == was, 0.0, mistakes[mine])
                codes[item] = luck.choice(len(names), p=chance / chance.sum())
        return Column(NEW, names, codes)

    def _which(self, count: int, luck: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Choose items, rather those that the API was unsure of, got wrong, or that others answer otherwise."""
        old, label = self.old, self.data.label
        place = {name: code for code, name in enumerate(old.values)}
        right = np.array([place.get(name, -1) for name in label.values])[label.codes]
        likely = WRONG * (right != old.codes)
        if self.known.confidence is not None:
            likely = likely - DOUBT * ranks(self.known.confidence)
        for name in self.settings.also:
            other = self.data.predictions[name].on(in_order((*self.data.predictions[name].values, *old.values)))
            likely = likely + DISAGREES * (other.codes != old.on(other.values).codes)
        # The largest of Gumbel's numbers: a draw without replacement, by weight.
        return np.argsort(-(likely + luck.gumbel(size=len(likely))), kind="stable")[:count]


def forecast(
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

    The share of answers that `changed` is what the store's earlier assessments found, or a guess. The changes rather hit answers
    that were doubtful or wrong, or that others answer otherwise. A `price` is money a query, if the client does not know better.
    """
    chosen = settings or Settings()
    with opened(store) as kept:
        data, old = compared(kept, data, client, baseline, name=name, confidence=chosen.old_confidence, force=force)
        share, why = (changed, "as you say") if changed is not None else _earlier(kept, name)
        if not 0.0 < share <= 1.0:
            raise UsageError(f"changed is {share:g}", hint="give the share of answers that may have changed, such as 0.03 or 3%")
        folder = None if store is None else kept.path.parent / "cache"
        data, chosen = with_cheap_model(data, old, chosen, folder=folder, progress=progress)
    case = made(data, old, chosen, runs=runs, methods=methods, progress=progress)
    limits = sorted({min(budget, len(case.data)) for budget in (budgets or BUDGETS)})
    wanted = sorted(errors or ERRORS, reverse=True)
    case.tell("errors by method", 0.05)
    played = case.replay(share, methods=case.methods, budgets=limits, error=wanted[-1])
    by_sizes = []
    for number, size in enumerate(SIZES):
        case.tell("chances to notice", 0.4 + 0.2 * number / len(SIZES))
        by_sizes.append(_noticed(case, size, limits))
    bought = []
    for place, budget in enumerate(limits):
        case.tell("what budgets buy", 0.6 + 0.2 * place / len(limits))
        half = case.ended(share, Stopping(confidence=chosen.confidence), budget=budget)[1]
        bought.append(Buys(budget, played.curves[0].error_quantile[place], half, tuple(row[place] for row in by_sizes)))
    costs = []
    for number, error in enumerate(wanted):
        case.tell("until an assessment stops", 0.8 + 0.2 * number / len(wanted))
        queries = {curve.method: queries_for(curve, error) for curve in played.curves}
        beyond = played.no_change_error is not None and error >= played.no_change_error
        until = None if beyond else case.ended(share, Stopping(error, confidence=chosen.confidence), budget=None)[0]
        costs.append(Cost(error, queries, None if until is None else round(until), beyond))
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
        blind=tuple(_blind(bought, steady=old.steady)),
        replay=played,
        notes=(*data.notes, *old.notes, *_cautions(old), *(note for note in played.notes if note.startswith("auto is"))),
    )


def queries_for(curve: Curve, error: float) -> int | None:
    """Give after how many queries the error of a curve is below this, between its points in proportion."""
    after = next((point for point in curve.path if point.error_quantile <= error), None)
    if after is None:
        return None
    earlier = [point for point in curve.path if point.queries < after.queries]
    if not earlier or after.error_quantile <= 0.0:
        return after.queries
    before = earlier[-1]
    part = log(before.error_quantile / error) / log(before.error_quantile / after.error_quantile)
    return round(exp(log(before.queries) + part * log(after.queries / before.queries)))


def made(
    data: Dataset,
    old: Old,
    settings: Settings,
    *,
    runs: int,
    methods: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Made:
    """Lay out the data with an old answer for every item, as the simulations want it."""
    data = data if data.labelled.all() else data.take(np.flatnonzero(data.labelled))
    answers = old.answers
    if not old.complete or len(old.places) != len(data):
        answers = _filled(data, old)
    numbers: dict[str, Floats] = {} if old.confidence is None else {SURE_OF_OLD: old.confidence}
    hardness = data.difficulty if data.difficulty is not None else old.confidence
    known = tuple(methods or ("auto", "masa", "post-stratified"))
    if not old.complete:
        known = tuple("adaptive" if name == "auto" else name for name in known)
    if data.group is not None:
        known = ("predictive",)
    column = Column(OLD, answers.values, answers.codes)
    data = replace(
        data,
        predictions={**data.predictions, OLD: column},
        numbers={**data.numbers, **numbers},
        difficulty=hardness,
    )
    return Made(data, column, settings, replace(old, answers=column), runs, known, progress)


def _filled(data: Dataset, old: Old) -> Column:
    """Give every item an old answer, those without one that of another item with the same label."""
    luck = np.random.default_rng(0)
    codes = np.full(len(data), -1, np.int32)
    codes[old.places] = old.answers.codes
    for label in np.unique(data.label.codes[codes < 0]):
        mine = data.label.codes == label
        told = codes[mine & (codes >= 0)]
        lacking = mine & (codes < 0)
        codes[lacking] = luck.choice(told if len(told) else old.answers.codes, int(lacking.sum()))
    return Column(OLD, old.answers.values, codes)


def _earlier(store: Store, name: str) -> tuple[float, str]:
    """Give the largest share of changed answers that earlier assessments of this name found, or a guess."""
    found = []
    for run in history.runs(store, most=1000):
        told = None if run.result is None or run.name != name else run.result.get("intervals")
        if told and told["differing"] and run.result and run.result.get("moved") == "yes":
            found.append((told["differing"]["estimate"], run.id))
    if not found or max(found)[0] <= 0.0:
        return USUAL, "a guess; --changed tells another"
    share, run_id = max(found)
    return share, f"what run {run_id} found"


def _noticed(made: Made, size: float, budgets: Sequence[int]) -> tuple[float, ...]:
    """Give the chance, by budget, to notice that this share of answers changed."""
    if made.known.steady:
        played = made.replay(size, methods=made.methods[:1], budgets=budgets, error=0.5)
        return played.curves[0].noticed
    rate = 0.5 * made.known.contradicted / max(1, made.known.repeated)
    noise = Noise(rate, repeat=made.known.repeated)
    return tuple(made.ended(size, Stopping(), budget=budget, noise=noise)[2] for budget in budgets)


def _blind(bought: Sequence[Buys], *, steady: bool) -> list[str]:
    words = []
    for buys in bought:
        small = [size for size, chance in zip(SIZES, buys.noticed, strict=True) if chance < 0.5]
        if small:
            words.append(
                f"{buys.queries:,} queries: it is more likely than not that nothing is noticed of a change of "
                f"{100 * max(small):g}% of the answers"
            )
        words.append(
            f"{buys.queries:,} queries: a change of accuracy of less than about {100 * buys.accuracy:.2g} points cannot be told "
            "from none"
        )
    if not steady:
        words.append(
            "what is noticed must be more than the API contradicts itself; masa baseline --repeat N measures that better"
        )
    return words


def _cautions(old: Old) -> list[str]:
    notes = [
        "the change is made up: it hits doubtful answers more than others; one that follows words or another model takes fewer"
    ]
    if not old.complete:
        notes.append("the old matrix is an estimate: what is not known of it adds to these errors")
    return notes


def _price(client: Client, data: Dataset) -> float | None:
    """Give what a query costs on average, in money."""
    if not client.priced or free(client):
        return None
    places = np.unique(np.linspace(0, len(data) - 1, 500).astype(np.int64)).tolist()
    return sum(client.price(data.item(place)) for place in places) / len(places) / BILLION
