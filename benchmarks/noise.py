"""How often a change is noticed, and a false one where there is none, with noise: docs/sure.md.

    python benchmarks/noise.py FOLDER [RUNS]

FOLDER holds frugalml/, vader/ and llmdrift/. Whole assessments with `auto`. Old and new answers are
each, with a small probability, any other one; how often is known from 500 items that were asked twice,
and from nothing else. Where nothing changed the new answers are the old API's.
"""

import sys
from dataclasses import replace
from pathlib import Path

from intervals import Case, cases

from masa.replays.whole_runs import Noise, WholeRuns
from masa.settings import Settings

CHANGED = ("VADER 3.2.1 -> 3.3.2", "microsoft ferplus, 3% evenly")
SAME = ("VADER 3.2.1 -> 3.3.2", "microsoft ferplus, 3% evenly", "amazon yelp, 3% by confidence")
NOISES = (None, Noise(0.01), Noise(0.01, "unsure"), Noise(0.05), Noise(0.05, "unsure"))
BUDGETS = (40, 2_000)


def told(case: Case, noise: Noise | None, budget: int, runs: int) -> str:
    settings = Settings(also=case.also)
    played = WholeRuns(case.data, case.old, case.new, settings, budget=budget, noise=noise)
    found = played.play(runs, workers=2)
    words = "none" if noise is None else f"{noise.rate:.0%} {noise.where}"
    alarms = "-" if found.false_alarms is None else f"{found.false_alarms:.1%}"
    return f"| {case.name} | {case.changed:.1%} | {words} | {budget:,} | {found.noticed:.1%} | {alarms} | {found.coverage:.3f} |"


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    print(
        f"{runs} runs\n\n| case | changed | noise | queries | noticed | verdict 'changed' where it is not | coverage, accuracy |"
    )
    print("|---" * 7 + "|")
    for case in cases(folder):
        if case.name in SAME:
            same = replace(
                case, new=case.old.answers, name=f"{case.name.partition(',')[0]}, the old API again"
            )
            for noise in NOISES:
                print(told(same, noise, 2_000, runs), flush=True)
        if case.name in CHANGED:
            for noise in NOISES:
                for budget in BUDGETS if noise is None else BUDGETS[1:]:
                    print(told(case, noise, budget, runs), flush=True)


if __name__ == "__main__":
    main()
