"""How often the intervals that `masa assess` shows hold, and how wide they are: the table in docs/method.md.

python benchmarks/intervals.py FOLDER [RUNS] [METHOD,...]   FOLDER holds frugalml/*.parquet and vader/snippets.parquet

Each run asks as `masa assess --old COL` does, each item once, and is looked at after 500, 1,000 and 2,000 answers. The paper's 12
cases have another vendor's answers as the old ones, as after a rewrite; VADER has two real updates; in the rest 3% of the
answers were changed at random, evenly or among the least confident fifth, or none.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from frugalml import CASES

from masa import estimate
from masa.dataset import Dataset, read
from masa.old import Old
from masa.plan import Plan, Settings
from masa.records import Answer, Column, Query, Shift
from masa.strata import Strata
from masa.weighed import Draws

BUDGETS = (500, 1_000, 2_000)
METHODS = ("masa", "post-stratified", "paired", "predictive")
OTHER = {"yelp": "google", "imdb": "google", "waimai": "google", "shop": "google", "ferplus": "google", "expw": "microsoft"}


@dataclass(frozen=True)
class Update:
    """An API before and now."""

    name: str
    file: str
    old: str
    new: str
    how: str = ""
    """none for recorded answers; else which of the old ones are changed"""


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


def loaded(update: Update, folder: Path) -> tuple[Dataset, Column, Column]:
    """Give the data with the old confidence as difficulty, and the old and new answers."""
    names = [f"{side}.prediction" for side in (update.old, update.new) if side]
    data = read(folder / f"{update.file}.parquet", label="label", predictions=names, difficulty=f"{update.old}.confidence")
    old = data.predictions[names[0]]
    if not update.how:
        return data, old, data.predictions[names[-1]]
    rng = np.random.default_rng(0)
    assert data.difficulty is not None
    low = data.difficulty <= np.quantile(data.difficulty, 0.2)
    may = np.flatnonzero(low if update.how == "unsure" else np.ones(len(data), bool))
    changed = rng.permutation(may)[: int(0.03 * len(data))]
    codes = old.codes.copy()
    codes[changed] = (codes[changed] + rng.integers(1, len(old.values), len(changed))) % len(old.values)
    return data, old, Column("new", old.values, codes.astype(np.int32))


def drawn(queries: list[Query]) -> Draws | None:
    draws = [draw for query in queries if (draw := query.draw) is not None]
    return Draws.of(draws) if draws else None


def covered(update: Update, *, folder: Path, runs: int, methods: tuple[str, ...] = METHODS) -> dict[str, list[list[float]]]:
    """Give, by method and budget, how often the interval for accuracy and the bound on the error hold, and how wide it is."""
    data, old, new = loaded(update, folder)
    strata = Strata.build(data.label, difficulty=data.difficulty)
    said = [new.values[code] for code in new.codes]
    truth = Shift(estimate.true_matrix(strata, old), estimate.true_matrix(strata, new))
    known = Old(np.arange(len(data)), old, complete=True, confidence=data.difficulty)
    result: dict[str, list[list[float]]] = {}
    for method in methods:
        done = [budget for budget in BUDGETS if budget < len(data)]
        held = np.zeros((len(done), 3))
        for run in range(runs):
            plan = Plan.of(data, known, Settings(method, seed=run))
            asked: list[Query] = []
            for place, budget in enumerate(done):
                while len(asked) < budget:
                    for query in plan.source.ask(1):
                        plan.source.tell(Answer(query.item, said[query.item]))
                        asked.append(query)
                places = np.array([query.item for query in asked], np.int64)
                answers = Column(new.name, new.values, new.codes[places])
                found = plan.estimated(known, places, answers, drawn(asked), finite=True)
                interval = found.interval(0.95)
                held[place] += (
                    interval.low <= truth.accuracy.change <= interval.high,
                    found.shift.error(truth) <= found.matrix.bound(),
                    interval.high - interval.low,
                )
        result[method] = (held / runs).tolist()
    return result


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    methods = tuple(sys.argv[3].split(",")) if len(sys.argv) > 3 else METHODS
    print(f"{runs} runs; how often the 95% interval for the change of accuracy and the bound on the error of the shift hold\n")
    print("| case | method | " + " | ".join(f"accuracy {n:,} | width | matrix {n:,}" for n in BUDGETS) + " |")
    print("|---|---|" + "---|" * 9)
    with ProcessPoolExecutor(2) as pool:
        for update, result in zip(
            UPDATES, pool.map(partial(covered, folder=folder, runs=runs, methods=methods), UPDATES), strict=True
        ):
            for method, rows in result.items():
                cells = [f"{a:.3f} | {w:.3f} | {m:.3f}" for a, m, w in rows] + ["- | - | -"] * (len(BUDGETS) - len(rows))
                print(f"| {update.name} | {method} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
