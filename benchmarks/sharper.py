"""Queries for the error, squared errors and first changes: two versions of masa beside each other.

    python benchmarks/sharper.py measure FOLDER MORE RUNS OUT     # appends to OUT, a file of JSON lines
    python benchmarks/sharper.py table BEFORE NOW                 # two such files: the table of docs/fewer.md

FOLDER holds frugalml/, vader/ and llmdrift/; MORE is what `more_updates.py` wrote. Each update is
taken whole, and every second item of it. To measure an earlier version, check it out and put its
src/ first in PYTHONPATH. What was measured already is not measured again.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import sqrt
from pathlib import Path

import numpy as np
from fewer import Update, updates

import masa
from masa.replays.replay import replay

METHODS = ("auto", "paired", "masa")
BUDGETS = (500, 2000)
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


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
    else:
        table(Path(sys.argv[2]), Path(sys.argv[3]))
