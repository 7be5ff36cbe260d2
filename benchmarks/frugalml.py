"""Queries for a Frobenius error of 1% in 95% of runs, on the paper's 12 cases: the table in docs/savings.md.

python benchmarks/frugalml.py FOLDER [RUNS]   FOLDER holds yelp.parquet, imdb.parquet, ...: real API predictions of 2020
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from masa.replay import replay_file
from masa.sampler import METHODS


@dataclass(frozen=True)
class Case:
    """An API on a data set, with the cheap model whose confidence is the difficulty."""

    api: str
    data: str
    cheap: str

    def __str__(self) -> str:
        return f"{self.api} {self.data}"


CASES = [
    Case("amazon", "yelp", "github-vader"),
    Case("amazon", "imdb", "github-vader"),
    Case("amazon", "waimai", "github-bixin"),
    Case("amazon", "shop", "github-bixin"),
    Case("microsoft", "ferplus", "github-cnn"),
    Case("google", "expw", "github-cnn"),
    Case("ibm", "digit", "github-deepspeech"),
    Case("ibm", "amnist", "github-deepspeech"),
    Case("google", "digit", "github-deepspeech"),
    Case("google", "amnist", "github-deepspeech"),
    Case("google", "command", "github-deepspeech"),
    Case("microsoft", "digit", "github-deepspeech"),
]

TWO_LABELS = ("yelp", "imdb", "waimai", "shop")
"""Their errors have few parts, so that figures vary more from run to run: ten times the runs."""

PAPER = ["4.5K / 19.7K", "10.3K / 20.8K", "7.8K / 18.0K", "4.8K / 20.8K", "2.6K / 19.9K", "4.2K / 17.9K"]
PAPER += ["3.6K / 17.0K", "2.4K / 18.5K", "4.2K / 17.0K", "1.1K / 18.5K", "1.6K / 15.2K", "3.3K / 17.0K"]
"""What the paper's Table 1 has for MASA / uniform or stratified."""

PAIRS = [
    ("masa", "uniform"),
    ("masa", "post-stratified"),
    ("masa, each item once", "post-stratified, each item once"),
    ("masa, each item once", "masa"),
    ("optimal", "masa"),
]
"""Whose savings against whom are summed up below the table."""

ONCE = ("post-stratified", "masa", "optimal")


def needed(folder: Path, case: Case, *, runs: int) -> dict[str, int | None]:
    """Give the queries for the target of each method, with replacement and, for some, asking each item once."""

    def queries(*, methods: tuple[str, ...], replacement: bool) -> list[int | None]:
        result = replay_file(
            folder / f"{case.data}.parquet",
            label="label",
            new=f"{case.api}.prediction",
            difficulty=f"{case.cheap}.confidence",
            methods=methods,
            runs=runs,
            replacement=replacement,
        )
        return [curve.queries_for_target for curve in result.curves]

    again = dict(zip(METHODS, queries(methods=METHODS, replacement=True), strict=True))
    once = zip(ONCE, queries(methods=ONCE, replacement=False), strict=True)
    return again | {f"{method}, each item once": count for method, count in once}


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    columns = [*METHODS, *(f"{method}, each item once" for method in ONCE)]
    print(f"| case | {' | '.join(columns)} | MASA / U in the paper |")
    print("|---" * (len(columns) + 2) + "|")
    table = []
    for case, paper in zip(CASES, PAPER, strict=True):
        found = needed(folder, case, runs=runs * (10 if case.data in TWO_LABELS else 1))
        table.append(found)
        cells = ["-" if found[name] is None else f"{found[name]:,}" for name in columns]
        print(f"| {case} | {' | '.join(cells)} | {paper} |", flush=True)
    print()
    for method, against in PAIRS:
        saved = [1 - mine / other for row in table if (mine := row[method]) and (other := row[against])]
        print(f"{method} against {against}: saves {min(saved):.0%} to {max(saved):.0%}")


if __name__ == "__main__":
    main()
