"""How often the intervals that `masa assess` shows hold, and how wide they are: docs/sure.md.

    python benchmarks/intervals.py FOLDER [RUNS] [METHOD,...] [CASE,...] [BASELINE]

FOLDER holds frugalml/, vader/ and llmdrift/. Each run asks as `masa assess --old COL` does, each
item once, and is looked at after 500, 1,000 and 2,000 answers. The cases with old answers of
benchmarks/fewer.py; the paper's 12 cases with another vendor's answers as the old ones, as after a
rewrite; two real updates of VADER without what else is known of its texts; 3% of the answers
changed at random, evenly or among the least confident fifth, or none; and a few right answers that
became wrong, all for the worse. Cases are chosen by their numbers, or are `all`.

With a BASELINE, such as 2000, the old answers are known of no more than so many items, in
proportion to the strata, others in each run. With `same:2000` they are those of an assessment with
so many queries that was accepted, made when nothing had changed; with `new:2000` one made when the
API changed from its new answers to its old ones.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from fewer import updates

from masa.data.baseline_answers import BaselineAnswers, evenly_weighted, narrowed
from masa.data.dataset import Dataset, read
from masa.inference.counts import true_matrix
from masa.inference.method import Method, build_strata
from masa.inference.readings import Reader
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Column, Floats, Interval, Ints, Query, Shift
from masa.replays.whole_runs import drive
from masa.research.cases import CASES
from masa.sampling.draws import Draws
from masa.sampling.stratified import Sampler
from masa.settings import Objective, Settings

BUDGETS = (500, 1_000, 2_000)
KINDS = ("accuracy", "matrix", "entries", "recalls", "precisions", "differing", "norm", "width")
METHODS = ("auto",)
OTHER = {
    "yelp": "google",
    "imdb": "google",
    "waimai": "google",
    "shop": "google",
    "ferplus": "google",
    "expw": "microsoft",
}
AT_ONCE = 16


@dataclass(frozen=True)
class Update:
    """An API before and now."""

    name: str
    file: str
    old: str
    new: str
    how: str = ""
    """none for recorded answers; else which of the old ones are changed"""
    share: float = 0.03
    """of them"""


UPDATES = [
    Update(str(case), f"frugalml/{case.data}", other, case.api)
    for case in CASES
    for other in [OTHER.get(case.data, "google" if case.api != "google" else "ibm")]
]
UPDATES += [
    Update("vader 3.2.1 to 3.3.2", "vader/snippets", "vader-3.2.1", "vader-3.3.2"),
    Update("vader 2.5 to 3.2.1", "vader/snippets", "vader-2.5", "vader-3.2.1"),
    Update("ferplus, 3% evenly", "frugalml/ferplus", "microsoft", "", "evenly"),
    Update("ferplus, 3% unsure", "frugalml/ferplus", "microsoft", "", "unsure"),
    Update("yelp, 3% evenly", "frugalml/yelp", "amazon", "", "evenly"),
    Update("yelp, 3% unsure", "frugalml/yelp", "amazon", "", "unsure"),
    Update("command, 3% evenly", "frugalml/command", "google", "", "evenly"),
    Update("yelp, nothing", "frugalml/yelp", "amazon", "amazon"),
]
UPDATES += [
    Update(f"{name}, {share:.2%} worse", file, api, "", "worse", share)
    for name, file, api in (
        ("vader", "vader/snippets", "vader-3.2.1"),
        ("yelp", "frugalml/yelp", "amazon"),
        ("ferplus", "frugalml/ferplus", "microsoft"),
    )
    for share in (0.0015, 0.003, 0.006, 0.01)
]


@dataclass(frozen=True)
class Case:
    """BaselineAnswers and new answers."""

    name: str
    data: Dataset
    old: BaselineAnswers
    new: Column
    target: float
    """an error to aim at"""
    also: tuple[str, ...] = ()
    sure: Floats | None = None
    """how sure the new answers are, where they come with that"""

    @property
    def changed(self) -> float:
        """The share of answers that are not as before."""
        before = np.array(self.old.answers.values, object)[self.old.answers.codes]
        return float(np.mean(before != np.array(self.new.values, object)[self.new.codes]))


def loaded(update: Update, folder: Path) -> tuple[Dataset, Column, Column]:
    """Give the data with the old confidence as difficulty, and the old and new answers."""
    names = [f"{side}.prediction" for side in (update.old, update.new) if side]
    data = read(
        folder / f"{update.file}.parquet",
        label="label",
        predictions=names,
        difficulty=f"{update.old}.confidence",
    )
    old = data.predictions[names[0]]
    if not update.how:
        return data, old, data.predictions[names[-1]]
    rng = np.random.default_rng(0)
    assert data.difficulty is not None
    place = {name: code for code, name in enumerate(old.values)}
    right = (
        np.array([place.get(name, -1) for name in data.label.values])[data.label.codes] == old.codes
    )
    low = data.difficulty <= np.quantile(data.difficulty, 0.2)
    may = np.flatnonzero(
        {"unsure": low, "worse": right, "evenly": np.ones(len(data), bool)}[update.how]
    )
    changed = rng.permutation(may)[: int(update.share * len(data))]
    codes = old.codes.copy()
    codes[changed] = (codes[changed] + rng.integers(1, len(old.values), len(changed))) % len(
        old.values
    )
    return data, old, Column("new", old.values, codes.astype(np.int32))


def cases(folder: Path) -> Iterator[Case]:
    """Give all cases."""
    for update in updates(folder):
        data = update.data
        sure = None if update.old_confidence is None else data.numbers[update.old_confidence]
        old = BaselineAnswers(np.arange(len(data)), data.predictions[update.old], confidence=sure)
        now = None if update.new_confidence is None else data.numbers[update.new_confidence]
        yield Case(
            update.name,
            data,
            old,
            data.predictions[update.new],
            2 * update.target,
            update.also,
            now,
        )
    for made in UPDATES:
        data, before, new = loaded(made, folder)
        old = BaselineAnswers(np.arange(len(data)), before, confidence=data.difficulty)
        yield Case(made.name if made.how else f"{made.name}, from {made.old}", data, old, new, 0.02)


def drawn(queries: list[Query]) -> Draws | None:
    draws = [draw for query in queries if (draw := query.draw) is not None]
    return Draws.of(draws) if draws else None


def inside(value: float, interval: Interval) -> bool:
    return interval.low - 1e-12 <= value <= interval.high + 1e-12 or np.isnan(value)


def held(reader: Reader, found: Shift, bound: float, truth: Shift, changed: float) -> list[float]:
    """Say of each interval whether it holds, and how wide that for accuracy is."""
    on = (
        Shift(truth.old.on(found.new.predictions), truth.new.on(found.new.predictions))
        if _on(found, truth)
        else truth
    )
    read = reader.all(Objective())
    accuracy = reader.accuracy()
    entries = _on(found, truth) and bool(
        ((read.low - 1e-12 <= on.values) & (on.values <= read.high + 1e-12)).all()
    )
    return [
        inside(truth.accuracy.change, accuracy),
        found.error(truth) <= bound + 1e-12,
        entries if _on(found, truth) else _held_anyway(read.low, read.high, found, truth),
        all(inside(change.change, read.recall[label]) for label, change in truth.recall.items()),
        all(
            inside(change.change, read.precision[label])
            for label, change in truth.precision.items()
        ),
        read.differing is None or inside(changed, read.differing),
        inside(truth.norm, read.norm),
        accuracy.high - accuracy.low,
    ]


def _on(found: Shift, truth: Shift) -> bool:
    return set(truth.new.predictions) <= set(found.new.predictions)


def _held_anyway(low: np.ndarray, high: np.ndarray, found: Shift, truth: Shift) -> bool:
    """Leave out what was never answered, of which nobody can show an interval."""
    place = {name: j for j, name in enumerate(truth.new.predictions)}
    some = [j for j, name in enumerate(found.new.predictions) if name in place]
    values = truth.values[:, [place[found.new.predictions[j]] for j in some]]
    return bool(((low[:, some] - 1e-12 <= values) & (values <= high[:, some] + 1e-12)).all())


def taken(column: Column, places: Ints) -> Column:
    return Column(column.name, column.values, column.codes[places])


def within(case: Case, baseline: str, seed: int, before: Method) -> Case:
    """Know the old answers of some items only.

    `masa baseline --budget` and `masa accept` leave them.
    """
    earlier, _, budget = baseline.rpartition(":")
    data, old = case.data, case.old
    if earlier:
        first = old if earlier == "same" else replace(old, answers=case.new)
        plan = (
            before
            if earlier == "same"
            else Method.of(data, first, Settings(also=case.also), words=before.words)
        )
        run = Trial(plan, first, Stopping(), seed=seed + 10**6)
        drive(run, old.answers, until=int(budget))
        told = run.estimate(finite=True).answer_weights()
        places = np.sort(np.array(list(told), np.int64))
        weight, adds = np.array([told[place] for place in places.tolist()]).T
        known = BaselineAnswers(
            places,
            taken(old.answers, places),
            weight=weight / weight.sum(),
            extra_variance=adds / weight,
            drawn_evenly=False,
        )
    else:
        strata, _ = build_strata(data, None, Settings(), all_items=True)
        sampler = Sampler(
            strata, method="optimal", seed=seed + 10**6, uncertainty=np.ones(len(strata))
        )
        places = np.sort(np.array([query.item for query in sampler.ask(int(budget))], np.int64))
        weight, extra_variance = evenly_weighted(data, places, levels=3)
        known = BaselineAnswers(
            places, taken(old.answers, places), weight=weight, extra_variance=extra_variance
        )
    sure = None if old.confidence is None else old.confidence[places]
    data, known = narrowed(data, replace(known, confidence=sure))
    now = None if case.sure is None else case.sure[places]
    return replace(case, data=data, old=known, new=taken(case.new, places), sure=now)


def covered(seeds: range, *, folder: Path, number: int, method: str, baseline: str) -> np.ndarray:
    """Give, by run and budget, which intervals hold."""
    case = _case(folder, number)
    plan = Method.of(case.data, case.old, Settings(method=method, also=case.also))
    before, after = (true_matrix(plan.strata, side) for side in (case.old.answers, case.new))
    truth = Shift(before, after)
    result = np.full((len(seeds), len(BUDGETS), len(KINDS)), np.nan)
    for row, seed in enumerate(seeds):
        mine, how = case, plan
        if baseline:
            mine = within(case, baseline, seed, plan)
            how = Method.of(mine.data, mine.old, Settings(method=method, also=case.also))
        run = Trial(how, mine.old, Stopping(), seed=seed)
        for place, budget in enumerate(BUDGETS):
            if budget >= len(case.data):
                break
            drive(run, mine.new, until=budget, confidence=mine.sure)
            found = run.estimate(finite=True)
            result[row, place] = held(
                Reader(found, 0.95), found.shift, found.matrix.bound(), truth, case.changed
            )
    return result


_kept: dict[int, Case] = {}


def _case(folder: Path, number: int) -> Case:
    if number not in _kept:
        _kept.clear()
        _kept[number] = next(case for place, case in enumerate(cases(folder)) if place == number)
    return _kept[number]


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    methods = tuple(sys.argv[3].split(",")) if len(sys.argv) > 3 else METHODS
    count = sum(1 for _ in cases(folder))
    wanted = sys.argv[4] if len(sys.argv) > 4 else "all"
    chosen = list(range(count)) if wanted == "all" else [int(place) for place in wanted.split(",")]
    baseline = sys.argv[5] if len(sys.argv) > 5 else ""
    print(
        f"{runs} runs; how often what is shown with a confidence of 95% holds after so many queries\n"
    )
    print(
        "| case | changed | method | queries | "
        + " | ".join(KINDS)
        + " |\n"
        + "|---" * (4 + len(KINDS))
        + "|"
    )
    all_rates: list[Floats] = []
    with ProcessPoolExecutor(2) as pool:
        for number in chosen:
            case = _case(folder, number)
            for method in methods:
                size = max(1, min(50, runs // 2))
                seeds = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
                parts = pool.map(
                    partial(
                        covered, folder=folder, number=number, method=method, baseline=baseline
                    ),
                    seeds,
                )
                rates = np.concatenate(list(parts)).mean(axis=0)
                for budget, row in zip(BUDGETS, rates, strict=True):
                    if not np.isnan(row[0]):
                        all_rates.append(row)
                        cells = " | ".join(f"{value:.3f}" for value in row[:-1])
                        print(
                            f"| {case.name} | {case.changed:.1%} | {method} | {budget:,} | {cells} | {row[-1]:.4f} |",
                            flush=True,
                        )
    least = " | ".join(f"{value:.3f}" for value in np.min(all_rates, axis=0)[:-1])
    print(f"| the least of all | | | | {least} | |")


if __name__ == "__main__":
    main()
