"""How often the intervals that `masa assess` shows hold, on the paper's 12 cases: the table in docs/method.md.

python benchmarks/coverage.py FOLDER [RUNS]   FOLDER holds yelp.parquet, imdb.parquet, ...: real API predictions of 2020

Each run asks as `masa assess` does, each item once, and is looked at after 500, 1,000 and 2,000 answers; the old matrix is known.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from frugalml import CASES, Case

from masa import estimate, intervals
from masa.dataset import read
from masa.records import Answer
from masa.sampler import Sampler
from masa.strata import Strata

BUDGETS = (500, 1_000, 2_000)
METHODS = ("masa", "post-stratified")


def covered(case: Case, *, folder: Path, runs: int) -> dict[str, list[list[float]]]:
    """Give, by method and budget, how often the interval for accuracy and the bound on the error hold, and how wide it is."""
    name = f"{case.api}.prediction"
    data = read(folder / f"{case.data}.parquet", label="label", predictions=[name], difficulty=f"{case.cheap}.confidence")
    strata = Strata.build(data.label, difficulty=data.difficulty)
    answers = data.predictions[name]
    said = [answers.values[code] for code in answers.codes]
    truth = estimate.true_matrix(strata, answers)
    result: dict[str, list[list[float]]] = {}
    for method in METHODS:
        held = np.zeros((len(BUDGETS), 3))
        done = [budget for budget in BUDGETS if budget < len(data)]
        for run in range(runs):
            sampler = Sampler(strata, method=method, seed=run)
            for place, budget in enumerate(done):
                while sampler.answered < budget:
                    for query in sampler.ask(1):
                        sampler.tell(Answer(query.item, said[query.item]))
                tally = sampler.tally()
                margin = intervals.accuracy_spread(tally, sampler.group_items).margin()
                found = estimate.matrix(tally)
                error = float(np.linalg.norm(found.on(truth.predictions).values - truth.values))
                held[place] += (
                    abs(found.accuracy - truth.accuracy) <= margin,
                    error <= intervals.matrix_spread(tally, sampler.group_items).bound(),
                    2 * margin,
                )
        result[method] = (held[: len(done)] / runs).tolist()
    return result


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    print(
        f"{runs} runs; share of runs in which the 95% interval for accuracy holds, and the 95% bound on the error of the matrix\n"
    )
    print("| case | method | " + " | ".join(f"accuracy {n:,} | width | matrix {n:,}" for n in BUDGETS) + " |")
    print("|---|---|" + "---|" * 9)
    with ProcessPoolExecutor(2) as pool:
        for case, result in zip(CASES, pool.map(partial(covered, folder=folder, runs=runs), CASES), strict=True):
            for method, rows in result.items():
                cells = [f"{a:.3f} | {w:.3f} | {m:.3f}" for a, m, w in rows] + ["- | - | -"] * (len(BUDGETS) - len(rows))
                print(f"| {case} | {method} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
