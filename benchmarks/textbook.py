"""How wide the interval for accuracy is against that of a textbook, on recorded answers: docs/edges.md.

    python benchmarks/textbook.py FOLDER [RUNS] [CASE,...]

FOLDER holds frugalml/, vader/ and llmdrift/; cases are those of benchmarks/intervals.py, by number.
The textbook's interval is that of the mean of paired differences of as many items drawn at random,
mean -+ 1.96 s / sqrt(n).
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import intervals
import numpy as np

from masa.inference.counts import true_matrix
from masa.inference.method import Method
from masa.inference.readings import Reader
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Column, Interval, Shift
from masa.replays.whole_runs import drive
from masa.settings import Settings

BUDGETS = (4, 20, 50, 200, 500, 1_000)
CASES = (0, 3, 34, 13, 20, 22)


def names(column: Column) -> np.ndarray:
    return np.array(column.values, object)[column.codes]


def measured(seeds: range, *, folder: Path, number: int) -> np.ndarray:
    """Give, by run and budget: whether ours holds, its width, and the same of the textbook's."""
    case = intervals._case(folder, number)
    method = Method.of(case.data, case.old, Settings(also=case.also))
    before = true_matrix(method.strata, case.old.answers)
    change = Shift(before, true_matrix(method.strata, case.new)).accuracy.change
    label = names(case.data.label)
    gain = (names(case.new) == label).astype(float) - (names(case.old.answers) == label)
    result = np.full((len(seeds), len(BUDGETS), 4), np.nan)
    for row, seed in enumerate(seeds):
        run = Trial(method, case.old, Stopping(), seed=seed)
        luck = np.random.default_rng((seed, 3))
        for place, budget in enumerate(BUDGETS):
            if budget >= len(case.data):
                break
            drive(run, case.new, until=budget, confidence=case.sure)
            ours = Reader(run.estimate(finite=True), 0.95).accuracy()
            seen = luck.permutation(gain)[:budget]
            half = 1.96 * float(seen.std(ddof=1)) / budget**0.5
            usual = Interval(seen.mean(), seen.mean() - half, seen.mean() + half)
            result[row, place] = [
                intervals.inside(change, ours),
                ours.high - ours.low,
                intervals.inside(change, usual),
                2.0 * half,
            ]
    return result


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    numbers = [int(one) for one in sys.argv[3].split(",")] if len(sys.argv) > 3 else list(CASES)
    print("| case | changed | queries | holds | width | textbook holds | its width | ratio |")
    print("|---" * 8 + "|")
    with ProcessPoolExecutor(2) as pool:
        for number in numbers:
            case = intervals._case(folder, number)
            chunks = [range(first, min(first + 25, runs)) for first in range(0, runs, 25)]
            parts = list(pool.map(partial(measured, folder=folder, number=number), chunks))
            for budget, row in zip(BUDGETS, np.concatenate(parts).mean(axis=0), strict=True):
                if not np.isnan(row[0]):
                    ratio = row[1] / row[3] if row[3] else np.inf
                    print(
                        f"| {case.name} | {case.changed:.1%} | {budget:,} | {row[0]:.3f} "
                        f"| {row[1]:.4f} | {row[2]:.3f} | {row[3]:.4f} | {ratio:.2f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
