"""Whether strict intervals hold at all times at once, looked at often: docs/sure.md.

    python benchmarks/strict.py FOLDER [RUNS] [EVERY] [CASE,...]

FOLDER holds frugalml/, vader/ and llmdrift/. Each run is looked at after every EVERY answers until
2,000: a run holds if every interval of every look did. Cases are those of benchmarks/intervals.py,
chosen by their numbers.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from intervals import cases, inside

from masa.inference.counts import true_matrix
from masa.inference.method import Method
from masa.inference.readings import Reader
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Shift
from masa.replays.whole_runs import drive
from masa.settings import Settings

MOST = 2_000
WIDTHS = (500, 1_000, 2_000)


def held(seeds: range, *, folder: Path, number: int, every: int) -> np.ndarray:
    """Give, by run, whether accuracy, the bound on the shift and the share of changed answers held at all times, and widths."""
    case = next(case for place, case in enumerate(cases(folder)) if place == number)
    new = case.new
    plan = Method.of(case.data, case.old, Settings(also=case.also, strict=True))
    before, after = (true_matrix(plan.strata, side) for side in (case.old.answers, new))
    truth = Shift(before, after)
    result = np.ones((len(seeds), 3 + 2 * len(WIDTHS)))
    for row, seed in enumerate(seeds):
        trial = Trial(plan, case.old, Stopping(strict=True), seed=seed)
        for most in range(every, min(MOST, len(case.data)) + every, every):
            drive(trial, new, until=min(most, MOST))
            asked = trial.asked.answers
            found = trial.estimate(finite=True)
            reader = Reader(found, 0.95)
            accuracy, differing = reader.accuracy(), reader.differing()
            assert differing is not None
            bound = found.bound(0.95)
            result[row, :3] *= (
                inside(truth.accuracy.change, accuracy),
                found.shift.error(truth) <= bound + 1e-12,
                inside(case.changed, differing),
            )
            for place, width in enumerate(WIDTHS):
                if len(asked) <= width:
                    result[row, 3 + 2 * place :] = np.tile(
                        (accuracy.high - accuracy.low, bound), len(WIDTHS) - place
                    )
    return result


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    every = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    count = sum(1 for _ in cases(folder))
    chosen = (
        [int(place) for place in sys.argv[4].split(",")]
        if len(sys.argv) > 4
        else list(range(count))
    )
    print(f"{runs} runs, each looked at after every {every} answers\n")
    print(
        "| case | changed | accuracy | shift | differing | "
        + " | ".join(f"width {n:,} | bound {n:,}" for n in WIDTHS)
        + " |"
    )
    print("|---" * (5 + 2 * len(WIDTHS)) + "|")
    with ProcessPoolExecutor(2) as pool:
        for number in chosen:
            case = next(case for place, case in enumerate(cases(folder)) if place == number)
            size = max(1, min(25, runs // 2))
            seeds = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
            row = np.concatenate(
                list(pool.map(partial(held, folder=folder, number=number, every=every), seeds))
            ).mean(axis=0)
            cells = " | ".join(
                [*(f"{value:.3f}" for value in row[:3]), *(f"{value:.4f}" for value in row[3:])]
            )
            print(f"| {case.name} | {case.changed:.1%} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
