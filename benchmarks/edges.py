"""How often intervals hold, how wide they are and how often verdicts are false, from 1 answer on.

    python benchmarks/edges.py [runs=100] [first=0] [read=accuracy|all] [labels=2,7,40] [baseline=...] [change=...]
        [method=...] [confidence=yes,no] [noise=0,0.02] [out=FILE]
    python benchmarks/edges.py summary=FILE,...

Every combination of what is named is measured; what is not named takes all its values. The data is
made up: 4,000 items whose API was right about 80% of them. Each run asks as `masa assess` does and
is looked at after 1, 2, 4, ... 512 answers. *Textbook* is the interval of a textbook for the mean of
paired differences of as many items drawn at random: mean -+ 1.96 s / sqrt(n). How often that holds and
how wide it is comes from 40,000 draws, so that widths are compared where it really holds. A verdict is
false if it says `unchanged` of an accuracy that changed by more than the tolerance of one point, or
`changed` of one that changed by less. `summary` sums up what was written before; docs/edges.md has it.
"""

import csv
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TextIO

import numpy as np

from masa.data.baseline_answers import BaselineAnswers, evenly_weighted, narrowed
from masa.data.dataset import Dataset
from masa.inference.counts import true_matrix
from masa.inference.method import Method, build_strata
from masa.inference.readings import Reader
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.inference.verdict import verdict
from masa.records import Bools, Codes, Column, Floats, Interval, Ints, Shift
from masa.replays.whole_runs import Noise, drive
from masa.sampling.stratified import Sampler
from masa.settings import Objective, Settings, Tolerance

QUERIES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
ITEMS, REPEATED = 4_000, 300
PARTIAL, ACCEPTED = 2_000, 432
"""The items of a baseline made within a budget, and of a run that was accepted."""
SMALL = 1e-12
TEXTBOOK_DRAWS = 40_000
CHOICES: dict[str, tuple[str, ...]] = {
    "baseline": ("full", "partial", "accepted", "column"),
    "confidence": ("yes", "no"),
    "labels": ("2", "7", "40"),
    "change": ("nothing", "0.3% worse", "3%", "30%", "rewrite"),
    "method": ("auto", "predictive", "adaptive", "masa", "post-stratified"),
    "noise": ("0", "0.02"),
}
QUANTITIES = ("accuracy", "entries", "recalls", "precisions", "differing", "norm", "matrix")
COLUMNS = (
    *CHOICES,
    "queries",
    "runs",
    "truth",
    *QUANTITIES,
    "width",
    "textbook",
    "textbook_width",
    "false_unchanged",
    "false_changed",
)


@dataclass(frozen=True)
class Cell:
    """One combination."""

    baseline: str
    confidence: str
    labels: str
    change: str
    method: str
    noise: str

    @property
    def possible(self) -> bool:
        """Whether this method can be had with this baseline."""
        return self.baseline != "accepted" or self.method in ("auto", "predictive")


@dataclass(frozen=True)
class World:
    """An API before and now, about some items."""

    data: Dataset
    old: Column
    new: Column
    confidence: Floats
    """(N,) of the old answers"""
    new_confidence: Floats
    rates: Floats
    """(N,) the probability that an item is answered with something else, by noise"""

    @property
    def right(self) -> np.ndarray:
        """(N,) the code of the right answer of each item."""
        return self.data.label.codes

    @property
    def kinds(self) -> Ints:
        """How many items were wrong and are, were wrong and are right, the reverse, and neither."""
        kind = 2 * (self.old.codes == self.right) + (self.new.codes == self.right)
        return np.bincount(kind, minlength=4)


def names(count: int) -> tuple[str, ...]:
    return tuple(f"label {number:02d}" for number in range(count))


@lru_cache(maxsize=4)
def world(labels: int, change: str, noise: float) -> World:
    """Make up an API, and what an update made of it."""
    rng = np.random.default_rng(zlib.crc32(f"{labels} {change}".encode()))
    share = 1.0 / np.arange(1.0, labels + 1.0) ** (0.0 if labels == 2 else 0.7)
    label = rng.choice(labels, ITEMS, p=share / share.sum()).astype(np.int32)
    label[:labels] = np.arange(labels)  # Every label has an item.
    confidence = rng.beta(4.0, 1.5, ITEMS).round(6)
    # Little confidence, many mistakes: 20% of all answers are wrong.
    odds = 0.2 * (1.0 - confidence) / np.mean(1.0 - confidence)
    old = _mistaken(label, labels, rng.random(ITEMS) < odds, rng)
    new, new_confidence = old.copy(), confidence.copy()
    if change == "rewrite":
        # Another model, right about nine items in ten, whatever the old one said.
        new = _mistaken(label, labels, rng.random(ITEMS) < 0.1, rng)
        new_confidence = rng.beta(4.0, 1.0, ITEMS).round(6)
    elif change == "0.3% worse":
        hit = rng.permutation(np.flatnonzero(old == label))[: round(0.003 * ITEMS)]
        new[hit] = _another(old[hit], labels, rng)
    elif change != "nothing":
        amount = round(float(change.rstrip("%")) / 100 * ITEMS)
        # Doubtful answers change three times as often as certain ones; half of the wrong ones
        # that change become right.
        likely = np.where(confidence < np.median(confidence), 3.0, 1.0)
        hit = rng.choice(ITEMS, amount, replace=False, p=likely / likely.sum())
        fixed = (old[hit] != label[hit]) & (rng.random(amount) < 0.5)
        new[hit] = np.where(fixed, label[hit], _another(old[hit], labels, rng))
        new_confidence[hit] = rng.beta(4.0, 1.5, amount).round(6)
    values = names(labels)
    return World(
        Dataset("made up", Column("label", values, label)),
        Column("old", values, old),
        Column("new", values, new),
        confidence,
        new_confidence,
        np.full(ITEMS, noise),
    )


def _another(codes: Codes, labels: int, rng: np.random.Generator) -> Codes:
    return ((codes + rng.integers(1, labels, len(codes))) % labels).astype(np.int32)


def _mistaken(label: Codes, labels: int, wrong: Bools, rng: np.random.Generator) -> Codes:
    return np.where(wrong, _another(label, labels, rng), label).astype(np.int32)


@dataclass(frozen=True)
class Case:
    """What one run begins with, and the truth."""

    data: Dataset
    old: BaselineAnswers
    new: Column
    new_confidence: Floats | None
    truth: Shift
    differing: float
    """the share of answers that differ from the baseline's"""


def taken(column: Column, places: Ints) -> Column:
    return Column(column.name, column.values, column.codes[places])


def drawn(cell: Cell, seed: int) -> Case:
    """Make the baseline of one run, and what the API answers now."""
    made = world(int(cell.labels), cell.change, float(cell.noise))
    luck = np.random.default_rng((seed, 7))
    old, again, new = made.old, made.old, made.new
    if made.rates.any():
        old, again, new = (Noise.of(side, made.rates, luck) for side in (old, again, new))
    has_confidence = cell.confidence == "yes"
    confidence = made.confidence if has_confidence else None
    known = BaselineAnswers(np.arange(ITEMS), old, confidence)
    if cell.baseline == "partial":
        strata, _ = build_strata(made.data, None, Settings(), all_items=True)
        sampler = Sampler(
            strata, method="optimal", seed=seed + 10**6, uncertainty=np.ones(len(strata))
        )
        places = np.sort(np.array([query.item for query in sampler.ask(PARTIAL)], np.int64))
        weight, extra = evenly_weighted(made.data, places, levels=3)
        known = replace(known, places=places, weight=weight, extra_variance=extra)
    if cell.baseline == "accepted":
        # An assessment of the API as it was then, made when nothing had changed since before.
        if made.rates.any():
            repeated = luck.permutation(ITEMS)[:REPEATED].tolist()
            twice = {place: bool(old.codes[place] != again.codes[place]) for place in repeated}
            known = replace(known, asked_twice=twice)
        method = Method.of(made.data, known, Settings())
        run = Trial(method, known, Stopping(), seed=seed + 10**6)
        drive(run, old, until=ACCEPTED)
        accepted = run.conclusion().estimate
        assert accepted is not None
        told = accepted.answer_weights()
        places = np.sort(np.array(list(told), np.int64))
        weight, adds = np.array([told[place] for place in places.tolist()]).T
        known = replace(
            known,
            places=places,
            weight=weight / weight.sum(),
            extra_variance=adds / weight,
            drawn_evenly=False,
        )
    places = known.places
    twice = {}
    if cell.baseline != "column" or made.rates.any():
        repeated = luck.permutation(places)[:REPEATED].tolist()
        twice = {place: bool(old.codes[place] != again.codes[place]) for place in repeated}
    known = replace(
        known,
        answers=taken(old, places),
        confidence=confidence[places] if confidence is not None else None,
        asked_twice=twice,
    )
    data, known = narrowed(made.data, known)
    strata, _ = build_strata(made.data, None, Settings())
    if made.rates.any():
        truth = Shift(
            Noise.mean(made.old, made.rates, strata), Noise.mean(made.new, made.rates, strata)
        )
    else:
        truth = Shift(true_matrix(strata, made.old), true_matrix(strata, made.new))
    now = made.new_confidence[places] if has_confidence else None
    return Case(data, known, taken(new, places), now, truth, _differing(made))


def _differing(made: World) -> float:
    """Give the share of answers that differ, noise included."""
    rate, labels = made.rates, len(made.old.values)
    same = (1.0 - rate) ** 2 + rate**2 / (labels - 1)
    other = 2.0 * rate * (1.0 - rate) / (labels - 1) + rate**2 * (labels - 2) / (labels - 1) ** 2
    return float(np.mean(1.0 - np.where(made.old.codes == made.new.codes, same, other)))


def inside(value: float, interval: Interval | None) -> bool:
    if interval is None or np.isnan(value):
        return True
    return interval.low - SMALL <= value <= interval.high + SMALL


def held(reader: Reader, found: Shift, bound: float, case: Case) -> list[float]:
    """Say of all that is shown whether it holds."""
    read, truth = reader.all(Objective()), case.truth
    # A small baseline may lack a label: of that nothing is shown.
    row = {name: i for i, name in enumerate(truth.new.labels)}
    place = {name: j for j, name in enumerate(truth.new.predictions)}
    rows = [row[name] for name in found.new.labels]
    columns = [place[name] for name in found.new.predictions]
    values = truth.values[np.ix_(rows, columns)]
    entries = (read.low - SMALL <= values) & (values <= read.high + SMALL)
    estimated = np.zeros(truth.values.shape)
    estimated[np.ix_(rows, columns)] = found.values
    error = float(np.linalg.norm(estimated - truth.values))
    recalls = {label: change for label, change in truth.recall.items() if label in read.recall}
    precisions = {
        label: change for label, change in truth.precision.items() if label in read.precision
    }
    return [
        bool(entries.all()),
        all(inside(change.change, read.recall[label]) for label, change in recalls.items()),
        all(inside(change.change, read.precision[label]) for label, change in precisions.items()),
        inside(case.differing, read.differing),
        inside(truth.norm, read.norm),
        error <= bound + SMALL,
    ]


@lru_cache(maxsize=64)
def textbook(labels: int, change: str, noise: float, n: int) -> tuple[float, float]:
    """Give how often the interval of a textbook holds, from n items at random, and its width."""
    made, rng = world(labels, change, noise), np.random.default_rng(11)
    # By noise a wrong answer becomes right, too, but rarely where there are many other answers.
    right = np.array([noise / (labels - 1), 1.0 - noise])
    before, after = right[[0, 0, 1, 1]], right[[0, 1, 0, 1]]
    truth = float(made.kinds @ (after - before)) / ITEMS
    asked = rng.multivariate_hypergeometric(made.kinds, n, TEXTBOOK_DRAWS)
    up, down = (1.0 - before) * after, before * (1.0 - after)
    better = rng.binomial(asked, up)
    worse = rng.binomial(asked - better, down / np.maximum(1.0 - up, SMALL))
    mean = (better - worse).sum(axis=1) / n
    square = (better + worse).sum(axis=1) / n
    half = 1.96 * np.sqrt((square - mean**2) / max(n - 1, 1))
    if n < 2:
        half[:] = 1.0
    holds = np.abs(mean - truth) <= half + SMALL
    return float(holds.mean()), float(np.minimum(2.0 * half, 2.0).mean())


def measured(task: tuple[Cell, range, bool]) -> np.ndarray:
    """Give what each run of a cell shows after so many queries."""
    cell, seeds, read_all = task
    settings, tolerance = Settings(method=cell.method), Tolerance()
    result = np.full((len(seeds), len(QUERIES), len(COLUMNS) - len(CHOICES) - 3), np.nan)
    for row, seed in enumerate(seeds):
        case = drawn(cell, seed)
        method = Method.of(case.data, case.old, settings)
        run = Trial(method, case.old, Stopping(), seed=seed)
        change = case.truth.accuracy.change
        matters = abs(change) > 0.01 + SMALL
        for place, queries in enumerate(QUERIES):
            if queries > len(case.data):
                break
            drive(run, case.new, until=queries, confidence=case.new_confidence)
            found = run.conclusion().estimate
            if found is None:
                continue
            reader = Reader(found, 0.95)
            accuracy = reader.accuracy()
            said = verdict(reader, tolerance, Objective()).said
            others = [np.nan] * (len(QUANTITIES) - 1)
            if read_all:
                others = [float(h) for h in held(reader, found.shift, found.bound(0.95), case)]
            result[row, place] = [
                inside(change, accuracy),
                *others,
                accuracy.high - accuracy.low,
                *textbook(int(cell.labels), cell.change, float(cell.noise), queries),
                said == "unchanged" and matters,
                said == "changed" and not matters,
            ]
    return result


def cells(wanted: dict[str, str]) -> Iterator[Cell]:
    chosen = [
        tuple(wanted[name].split(",")) if name in wanted else values
        for name, values in CHOICES.items()
    ]
    for values in product(*chosen):
        cell = Cell(*values)
        if cell.possible:
            yield cell


def summary(files: list[Path]) -> None:
    """Sum up what was measured, by method and by number of queries."""
    rows = [row for file in files for row in csv.DictReader(file.open(newline=""))]
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        print(
            f"\n`{method}`, {len({tuple(row[name] for name in CHOICES) for row in mine})} cells:\n"
        )
        print(
            "| queries | cells | runs | accuracy holds: least, mean | below 0.93 | all else holds: "
            "least, mean | false verdicts, most | width | over the textbook's, where that holds |"
        )
        print("|---" * 9 + "|")
        for queries in map(str, QUERIES):
            _print_summary(queries, [row for row in mine if row["queries"] == queries])


def _print_summary(queries: str, rows: list[dict[str, str]]) -> None:
    held = np.array([float(row["accuracy"]) for row in rows])
    others = np.array([float(row[name]) for row in rows for name in QUANTITIES[1:] if row[name]])
    false = max(max(float(row["false_unchanged"]), float(row["false_changed"])) for row in rows)
    ratios = np.array(
        [
            float(row["width"]) / float(row["textbook_width"])
            for row in rows
            if float(row["textbook"]) >= 0.94 and row["change"] != "nothing" and queries != "1"
        ]
    )
    runs = sorted({row["runs"] for row in rows}, key=int)
    other = f"{others.min():.3f}, {others.mean():.3f}" if len(others) else "-"
    ratio = (
        f"{ratios.mean():.2f} ({ratios.min():.2f} to {ratios.max():.2f})" if len(ratios) else "-"
    )
    width = np.mean([float(row["width"]) for row in rows])
    print(
        f"| {queries} | {len(rows)} | {' to '.join(dict.fromkeys((runs[0], runs[-1])))} "
        f"| {held.min():.3f}, {held.mean():.3f} | {np.count_nonzero(held < 0.93)} | {other} "
        f"| {false:.1%} | {width:.3f} | {ratio} |"
    )


def main() -> None:
    wanted = dict(word.split("=", 1) for word in sys.argv[1:])
    if "summary" in wanted:
        summary([Path(name) for name in wanted["summary"].split(",")])
        return
    runs, read_all = int(wanted.get("runs", "100")), wanted.get("read", "accuracy") == "all"
    chosen = list(cells(wanted))
    size = max(1, min(25, runs // 2))
    begin = int(wanted.get("first", "0"))  # the first seed
    end = begin + runs
    tasks = [
        (cell, range(first, min(first + size, end)), read_all)
        for cell in chosen
        for first in range(begin, end, size)
    ]
    with ExitStack() as files:
        out: TextIO = sys.stdout
        if "out" in wanted:
            out = files.enter_context(Path(wanted["out"]).open("w", newline=""))
        csv.writer(out).writerow(COLUMNS)
        parts: dict[Cell, list[np.ndarray]] = {}
        with ProcessPoolExecutor(2) as pool:
            for (cell, _, _), part in zip(tasks, pool.map(measured, tasks), strict=True):
                parts.setdefault(cell, []).append(part)
                if sum(map(len, parts[cell])) == runs:
                    _write(out, cell, np.concatenate(parts.pop(cell)))
                    out.flush()


def _write(out: TextIO, cell: Cell, found: np.ndarray) -> None:
    writer = csv.writer(out)
    made = world(int(cell.labels), cell.change, float(cell.noise))
    truth = float(made.kinds @ [0.0, 1.0, -1.0, 0.0]) / ITEMS
    for place, queries in enumerate(QUERIES):
        some = found[:, place]
        count = int(np.count_nonzero(~np.isnan(some[:, 0])))
        if not count:
            continue
        means = [
            float(np.nanmean(column)) if not np.isnan(column).all() else np.nan for column in some.T
        ]
        numbers = ["" if np.isnan(mean) else f"{mean:.4f}" for mean in means]
        writer.writerow(
            [*(getattr(cell, name) for name in CHOICES), queries, count, f"{truth:.4f}", *numbers]
        )


if __name__ == "__main__":
    main()
