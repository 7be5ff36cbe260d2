"""How assessments end that stop by themselves, and whether they are right then: docs/sure.md.

    python benchmarks/stopping.py FOLDER [RUNS] [METHOD,...] [target|decide]

FOLDER holds frugalml/, vader/ and llmdrift/. The cases with old answers of benchmarks/fewer.py, the
paper's 12 cases with another vendor's answers as the old ones, as after a rewrite, and an API that
did not change; with a budget of 8,000 queries.
"""

import sys
from pathlib import Path

from intervals import cases

from masa.records import StoppingReport
from masa.replays.whole_runs import WholeRuns
from masa.settings import Settings

METHODS = ("auto",)
MOST = 8_000
"""The budget."""


def shown(report: StoppingReport) -> str:
    wrong = report.false_alarms if report.misses is None else report.misses
    kind = "false alarms" if report.misses is None else "misses"
    return f"{report.coverage:.3f} | {report.queries_mean:,.0f} | {report.queries_p95:,} | {report.early:.0%} | {wrong:.1%} {kind}"


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    methods = tuple(sys.argv[3].split(",")) if len(sys.argv) > 3 else METHODS
    rules = sys.argv[4:5] or ["target", "decide"]
    print(f"{runs} runs each; coverage is that at the time of stopping, of a confidence of 95%\n")
    print(
        "| case | changed | rule | method | coverage | queries, mean | 95% of runs | stopped early | verdicts |\n"
        + "|---" * 9
        + "|"
    )
    for case in cases(folder):
        name, share, target = case.name, case.changed, case.target
        for rule in rules:
            goal = target if rule == "target" else None
            for method in methods:
                settings = Settings(
                    method=method, also=case.also, target_error=goal, decide=rule == "decide"
                )
                most = min(MOST, len(case.data))
                played = WholeRuns(case.data, case.old, case.new, settings, budget=most)
                report = played.play(runs, workers=2)
                words = f"error {target:.2%}" if rule == "target" else "verdict at 1%"
                print(
                    f"| {name} | {share:.1%} | {words} | {method} | {shown(report)} |", flush=True
                )


if __name__ == "__main__":
    main()
