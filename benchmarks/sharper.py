"""Queries for the error, squared errors and first changes: two versions of masa beside each other.

    python benchmarks/sharper.py measure FOLDER MORE RUNS OUT     # appends to OUT, a file of JSON lines
    python benchmarks/sharper.py table BEFORE NOW                 # two such files: the table of docs/fewer.md
    python benchmarks/sharper.py coverage FOLDER MORE RUNS        # how often intervals of `auto` hold
    python benchmarks/sharper.py parts FOLDER MORE RUNS CASE      # `auto` beside its parts and the best

FOLDER holds frugalml/, vader/ and llmdrift/; MORE is what `more_updates.py` wrote. Each update is
taken whole, and every second item of it. To measure an earlier version, check it out and put its
src/ first in PYTHONPATH. What was measured already is not measured again. Coverage is that of updates
whose new confidences are known, which choose items as well.
"""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from fewer import Update, updates
from intervals import held

import masa
from masa.data.baseline_answers import BaselineAnswers
from masa.inference.counts import true_matrix
from masa.inference.method import Method
from masa.inference.readings import Reader
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Shift
from masa.replays.replay import replay
from masa.replays.whole_runs import drive
from masa.settings import Settings

Values = np.ndarray[Any, Any]

METHODS = ("auto", "paired", "masa")
BUDGETS = (500, 2000)
LOOKS = (50, 200, 1_000, 2_000)
SENTENCES, FILES = ("3.2.1", "3.3.2"), (("0.5.1", "0.6.1", 0.05), ("0.6.1", "0.6.3", 0.01))


@dataclass(frozen=True)
class Row:
    """What one method needs for one update."""

    case: str
    part: str
    method: str
    error: float
    queries: int | None
    low: int | None
    high: int | None
    squared: list[float]
    runs: int
    first: list[int | None] | None


def every(folder: Path, more: Path) -> Iterator[Update]:
    """Give the updates of the other tables, and those on which no constant was chosen."""
    yield from updates(folder)
    yield _of_versions(more / "sentences.parquet", "VADER, sentences", "vader", *SENTENCES, 0.0027)
    for before, after, error in FILES:
        name = f"Magika {before} -> {after}"
        yield _of_versions(more / "files.parquet", name, "magika", before, after, error)


def _of_versions(path: Path, name: str, api: str, before: str, after: str, error: float) -> Update:
    old, new = (f"{api}-{version}" for version in (before, after))
    data = masa.read(
        path,
        label="label",
        id="id",
        predictions=[f"{old}.prediction", f"{new}.prediction"],
        difficulty=f"{old}.confidence",
        numbers=[f"{old}.confidence", f"{new}.confidence"],
    )
    return Update(
        name,
        data,
        error,
        f"{old}.prediction",
        f"{new}.prediction",
        f"{old}.confidence",
        f"{new}.confidence",
    )


def measure(folder: Path, more: Path, runs: int, out: Path) -> None:
    """Replay what is not in the file yet."""
    done = {(row.case, row.part, row.method) for row in _read(out)} if out.exists() else set()
    for update in every(folder, more):
        for part in ("all", "half"):
            for method in METHODS:
                if (update.name, part, method) in done:
                    continue
                data = update.data
                if part == "half":
                    data = data.take(np.arange(1, len(data), 2))
                row = _measured(replace(update, data=data), part, method, runs)
                with out.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(asdict(row)) + "\n")


def _measured(update: Update, part: str, method: str, runs: int) -> Row:
    found = replay(
        update.data,
        new=update.new,
        old=update.old,
        old_confidence=update.old_confidence,
        new_confidence=update.new_confidence,
        also=update.also,
        text=update.text,
        methods=(method,),
        budgets=[min(budget, len(update.data)) for budget in BUDGETS],
        runs=runs,
        target_error=update.target,
    ).curves[0]
    low, high = found.queries_range
    return Row(
        update.name,
        part,
        method,
        update.target,
        found.queries_for_target,
        low,
        high,
        list(found.mean_squared_error),
        runs,
        None if found.first_change is None else list(found.first_change),
    )


def coverage(folder: Path, more: Path, runs: int) -> None:
    """Say how often the interval for accuracy, and the bound on the error, hold."""
    heads = "accuracy | error | entries | differing"
    print(f"| case | items | {' | '.join(f'{heads}, {n}' for n in LOOKS)} |")
    print(f"|{'---|' * (2 + 4 * len(LOOKS))}")
    for number, update in enumerate(every(folder, more)):
        if update.new_confidence is None:
            continue
        cut = partial(_covered, folder=folder, more=more, number=number)
        chunks = [range(first, min(first + 25, runs)) for first in range(0, runs, 25)]
        with ProcessPoolExecutor(2) as pool:
            held_all = np.concatenate(list(pool.map(cut, chunks)))
        shares = np.nanmean(held_all, axis=0).ravel()
        cells = " | ".join("-" if np.isnan(one) else f"{one:.3f}" for one in shares)
        print(f"| {update.name} | {len(update.data):,} | {cells} |", flush=True)


def _covered(seeds: range, *, folder: Path, more: Path, number: int) -> Values:
    """Give, by run and look, which intervals hold."""
    update = next(one for place, one in enumerate(every(folder, more)) if place == number)
    data = update.data
    sure = data.numbers[update.old_confidence or ""]
    now = data.numbers[update.new_confidence or ""]
    old, new = data.predictions[update.old], data.predictions[update.new]
    known = BaselineAnswers(np.arange(len(data)), old, confidence=sure)
    method = Method.of(data, known, Settings(also=update.also))
    truth = Shift(true_matrix(method.strata, old), true_matrix(method.strata, new))
    before, after = (np.array(side.values, object)[side.codes] for side in (old, new))
    changed = float(np.mean(before != after))
    result = np.full((len(seeds), len(LOOKS), 4), np.nan)
    for row, seed in enumerate(seeds):
        run = Trial(method, known, Stopping(), seed=seed)
        for place, look in enumerate(LOOKS):
            if look < len(data):
                drive(run, new, until=look, confidence=now)
                found = run.estimate(finite=True)
                bound = found.matrix.bound()
                which = held(Reader(found, 0.95), found.shift, bound, truth, changed)
                result[row, place] = [which[kind] for kind in (0, 1, 2, 5)]
    return result


def _read(path: Path) -> list[Row]:
    return [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def table(before: Path, now: Path) -> None:
    """Put both versions side by side."""
    then = {(row.case, row.part, row.method): row for row in _read(before)}
    rows = {(row.case, row.part, row.method): row for row in _read(now)}
    heads = "case | items | error | auto before | auto now | ratio | paired | masa"
    heads += " | squared error, 500 and 2,000, now over before | first change before | now"
    print(f"| {heads} |\n|{'---|' * 11}")
    ratios: list[float] = []
    for (case, part, method), row in rows.items():
        old = then.get((case, part, method))
        if method != "auto" or old is None:
            continue
        others = [rows.get((case, part, name)) for name in ("paired", "masa")]
        ratio = "-"
        if row.queries and old.queries:
            ratios.append(row.queries / old.queries)
            off = ratios[-1] * sqrt(_relative(row) ** 2 + _relative(old) ** 2)
            ratio = f"{ratios[-1]:.2f} ± {off:.2f}"
        squared = " ".join(
            f"{one / other:.2f}" if other > 1e-12 else "-"
            for one, other in zip(row.squared, old.squared, strict=True)
        )
        cells = [case, part, f"{row.error:.3%}", _queries(old), _queries(row), ratio]
        cells += [_queries(other) for other in others]
        cells += [squared, _first(old), _first(row)]
        print("| " + " | ".join(cells) + " |")
    mean = np.exp(np.mean(np.log(ratios)))
    print(f"\nqueries of auto, now over before, geometric mean of {len(ratios)}: {mean:.3f}")


def _relative(row: Row) -> float:
    """Give the standard error of the number of queries, relative to it."""
    if not row.queries or row.low is None or row.high is None:
        return 0.0
    return (row.high - row.low) / 2.0 / row.queries


def _queries(row: Row | None) -> str:
    return "-" if row is None or row.queries is None else f"{row.queries:,}"


def _first(row: Row) -> str:
    return (
        "-" if row.first is None else "/".join("never" if n is None else str(n) for n in row.first)
    )


def parts(folder: Path, more: Path, runs: int, name: str) -> None:
    """Put `auto` beside its parts, and beside the best allocation to known rates of change."""
    update = next(one for one in every(folder, more) if one.name == name)
    budgets = [500, 1000, 2000, 3000]
    print(
        f"| items | method | queries for {update.target:.2%} | squared error at {budgets} | bias |"
    )
    print(f"|{'---|' * 5}")
    for part in ("all", "half"):
        data = update.data
        if part == "half":
            data = data.take(np.arange(1, len(data), 2))
        found = replay(
            data,
            new=update.new,
            old=update.old,
            old_confidence=update.old_confidence,
            new_confidence=update.new_confidence,
            also=update.also,
            text=update.text,
            methods=("auto", "paired", "post-stratified"),
            budgets=budgets,
            runs=runs,
            target_error=update.target,
        )
        for curve in found.curves:
            low, high = curve.queries_range
            errors = " ".join(f"{error:.2e}" for error in curve.mean_squared_error)
            bias = max(share or 0.0 for share in curve.bias_share)
            needed = f"{curve.queries_for_target:,} ({low:,} to {high:,})"
            print(f"| {part} | {curve.method} | {needed} | {errors} | {bias:.1%} |", flush=True)
        best = " ".join(f"{_best(update, data, budget):.2e}" for budget in budgets)
        print(f"| {part} | the best, without bias | | {best} | 0.0% |", flush=True)


def _best(update: Update, data: masa.Dataset, budget: int) -> float:
    """Give the squared error if the rate of change of every cell of label and answer were known."""
    old, new = data.predictions[update.old], data.predictions[update.new]
    before, after = (np.array(side.values, object)[side.codes] for side in (old, new))
    changed = before != after
    cell = data.label.codes * len(old.values) + old.codes
    rate = np.bincount(cell, changed) / np.maximum(np.bincount(cell), 1)
    probability = np.sqrt(rate[cell])
    probability *= budget / probability.sum()
    for _ in range(50):
        certain = probability >= 1.0
        probability[certain] = 1.0
        rest = probability[~certain].sum()
        if rest > 0.0:
            probability[~certain] *= (budget - certain.sum()) / rest
    # An answer that changed is in two entries.
    lost = 2.0 * ((1.0 - probability) / np.maximum(probability, 1e-12))[changed]
    return float(lost.sum()) / len(data) ** 2


if __name__ == "__main__":
    if sys.argv[1] == "parts":
        parts(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    elif sys.argv[1] == "measure":
        measure(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
    elif sys.argv[1] == "coverage":
        coverage(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    else:
        table(Path(sys.argv[2]), Path(sys.argv[3]))
