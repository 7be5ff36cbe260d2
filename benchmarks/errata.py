"""The numbers that docs/paper.md gives for the paper's errors and for the rate at which the rule nears the optimum.

python benchmarks/errata.py [FOLDER] [RUNS]   FOLDER holds yelp.parquet, imdb.parquet, ...: real API predictions of 2020;
                                              without it, what needs no data
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from masa.data.dataset import read
from masa.data.strata import Strata
from masa.inference.counts import true_matrix
from masa.records import Floats
from masa.replays.replay import replay
from masa.research.cases import ANY, CASES, NOTHING, RIGHT, loaded, told
from masa.research.cases import PaperCase as Case
from masa.research.published import Stored
from masa.research.study import PaperStudy as Study
from masa.research.study import one_run

MU = np.array([0.9, 0.07, 0.03])
"""A stratum of three answers."""


def scores(n: int, runs: int, step: Callable[[int], float]) -> Floats:
    """Give the score after n answers by an update that adds step(n) of the difference."""
    rng = np.random.default_rng(0)
    answers = rng.choice(len(MU), size=(runs, n), p=MU)
    seen, s2 = np.zeros((runs, len(MU))), np.zeros(runs)
    rows = np.arange(runs)
    for drawn in range(1, n + 1):
        answer = answers[:, drawn - 1]
        if drawn > 1:
            s2 += step(drawn) * (1 - seen[rows, answer] / (drawn - 1) - s2)
        seen[rows, answer] += 1
    return s2


def update(runs: int) -> None:
    truth = 1 - float(np.sum(MU**2))
    print(f"\nThe update of the score, {runs:,} runs; the true score is {truth:.4f}\n")
    print(
        "| answers | printed (1/n): mean | of the truth | (n-1)/n | corrected (2/n): mean | deviation, printed / corrected |"
    )
    print("|---" * 6 + "|")
    for n in (2, 5, 10, 50):
        printed, corrected = scores(n, runs, lambda n: 1 / n), scores(n, runs, lambda n: 2 / n)
        # Noise at the same expectation: the printed one is scaled up to it.
        ratio = printed.std() * n / (n - 1) / corrected.std()
        print(
            f"| {n} | {printed.mean():.4f} | {printed.mean() / truth:.3f} | {(n - 1) / n:.3f} "
            f"| {corrected.mean():.4f} | {ratio:.2f} |"
        )


def start(runs: int) -> None:
    rng = np.random.default_rng(1)
    pairs = rng.choice(len(MU), size=(runs, 2), p=MU)
    equal = float(np.mean(pairs[:, 0] == pairs[:, 1]))
    truth = 1 - float(np.sum(MU**2))
    print(
        f"\nThe start of the unused version: half of 'equal' has the mean {equal / 2:.4f}, 'they differ' {1 - equal:.4f}; "
        f"true {truth:.4f}"
    )


def allocated(p: Floats, s: Floats, a: float, queries: float) -> Floats:
    """Give the allocation that the rule tends to once it knows the scores.

    P/n (s + (a/n)^(1/4)) is the same everywhere.
    """

    def spent(level: float) -> Floats:
        low, high = np.full(len(p), -50.0), np.full(len(p), 80.0)
        for _ in range(200):
            middle = (low + high) / 2
            more = p * np.exp(-middle) * (s + (a * np.exp(-middle)) ** 0.25) > level
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return np.asarray(np.exp(low))

    level = brentq(lambda log: np.log(spent(np.exp(log)).sum() / queries), -60, 10, xtol=1e-14)
    return spent(float(np.exp(level)))


def rates() -> None:
    print(
        "\nHow the gap to the optimum falls, from the allocation that the rule tends to (slope of log gap over log N)\n"
    )
    print("| strata | N = 1e4 to 1e5 | 1e6 to 1e7 | 1e9 to 1e10 |\n" + "|---" * 4 + "|")
    p = np.full(4, 0.25)
    for name, s in (
        ("all uncertain: s = 0.3 to 0.6", [0.3, 0.4, 0.5, 0.6]),
        ("one with s = 0.03", [0.03, 0.4, 0.5, 0.6]),
        ("one with s = 0", [0.0, 0.4, 0.5, 0.6]),
    ):
        score = np.array(s)

        def gap(queries: float, score: Floats = score) -> float:
            n = allocated(p, score, 1.0, queries)
            return float(np.sum(p**2 * score**2 / n) - np.sum(p * score) ** 2 / queries)

        slopes = [np.log10(gap(10 * low) / gap(low)) for low in (1e4, 1e6, 1e9)]
        print(f"| {name} | " + " | ".join(f"{slope:.2f}" for slope in slopes) + " |")


def bias(folder: Path, runs: int) -> None:
    print(
        f"\nAdaptive means are biased: squared bias over squared error, {runs:,} runs, with replacement\n"
    )
    print(
        "| case | 250 queries | 500 | 1,000 | 2,000 | accuracy too high at 500 (points) |\n"
        + "|---" * 6
        + "|"
    )
    for case in CASES:
        it = loaded(case, Stored.open(folder / f"{case.data}.parquet"))
        options = {
            "methods": ["masa"],
            "runs": runs,
            "replacement": True,
            "budgets": [250, 500, 1000, 2000],
            "target_error": 0.9,
        }
        curve = replay(it.data, new=it.new, **options).curves[0]  # type: ignore[arg-type]
        shown = " | ".join("-" if share is None else f"{share:.1%}" for share in curve.bias_share)
        print(f"| {case} | {shown} | {100 * curve.accuracy_bias[1]:+.2f} |", flush=True)


def sizes(folder: Path) -> None:
    print("\nTable 1 asks for more queries than there are items\n")
    for case in CASES:
        data = read(folder / f"{case.data}.parquet", label="label")
        if case.uniform > len(data):
            print(f"{case}: U/S {case.uniform:,} queries, MASA {case.masa:,}; {len(data):,} items")
    shares = Strata.build(read(folder / "expw.parquet", label="label").label).label_weight
    print(
        f"expw: labels of {shares.min():.1%} to {shares.max():.1%} of the items: equal draws a label are not uniform ones"
    )


def guesses(folder: Path, runs: int) -> None:
    """Print how much what the paper does not tell about the changes matters."""

    def needed(case: Case, *changes: tuple[str, str, str, float]) -> int | None:
        study = Study([Stored.open(folder / f"{case.data}.parquet")], folder, runs=runs)
        it = study.load(case)
        new = told(it.data.label, it.answers, replace(case, told=changes), np.random.default_rng(0))
        return study.needed(it, replace(it.data, predictions={**it.data.predictions, it.new: new}))

    by_name = {str(case): case for case in CASES}
    print(f"\nQueries by masa after changes that the paper tells in part, {runs:,} runs\n")
    for fives in (0.07, 0.05, 0.035, 0.02, 0.0):
        found = needed(
            by_name["ibm amnist"], ("4", RIGHT, "5", fives), (ANY, RIGHT, NOTHING, 0.07 - fives)
        )
        print(
            f"ibm amnist, {fives:.1%} fours taken for fives, {0.07 - fives:.1%} right answers empty: {found:,}"
        )
    for share in (0.05, 0.025):
        found = needed(
            by_name["amazon imdb"], ("0", "0", "1", share), ("1", "0", RIGHT, share - 0.011)
        )
        print(f"amazon imdb, {share:.1%} of all items positive texts that became wrong: {found:,}")
    it = Study([Stored.open(folder / "amnist.parquet")], folder, runs=runs).load(
        by_name["google amnist"]
    )
    curve = replay(
        it.by_itself, new=it.new, methods=["optimal"], runs=runs, replacement=True
    ).curves[0]
    print(
        f"google amnist, levels by the API's own confidence, optimum: {curve.queries_for_target:,}"
    )


def luck(folder: Path, runs: int) -> None:
    """Print how often one run of the case study is right to 0.1% in every entry."""
    it = loaded(CASES[0], Stored.open(folder / "yelp.parquet"))
    strata = Strata.build(it.data.label, difficulty=it.own, levels=2)
    truth = true_matrix(strata, it.answers).values
    off = np.array(
        [
            one_run(strata, it.answers, 2_000, seed=seed, replacement=True) - truth
            for seed in range(runs)
        ]
    )
    close = np.abs(off).max(axis=(1, 2)) <= 0.001
    print(
        f"\nThe case study: root mean square error of an entry {np.sqrt(np.mean(off**2)):.2%}; "
        f"all within 0.1% in {close.mean():.1%} of {runs:,} runs"
    )


def main() -> None:
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    update(20 * runs)
    start(20 * runs)
    rates()
    if len(sys.argv) > 1:
        sizes(Path(sys.argv[1]))
        bias(Path(sys.argv[1]), runs)
        guesses(Path(sys.argv[1]), 1_500)
        luck(Path(sys.argv[1]), 1_500)


if __name__ == "__main__":
    main()
