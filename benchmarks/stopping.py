"""How assessments end that stop by themselves, and whether they are right when they do: the table in docs/sure.md.

python benchmarks/stopping.py FOLDER [RUNS] [METHOD,...] [target|decide]   FOLDER holds frugalml/, vader/ and llmdrift/

The cases with old answers of benchmarks/fewer.py, the paper's 12 cases with another vendor's answers as the old ones, as after
a rewrite, and an API that did not change.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import intervals
import numpy as np
from fewer import updates

import masa
from masa.old import Old
from masa.plan import Settings
from masa.records import Column, StoppingReport
from masa.rehearse import rehearse
from masa.stopping import Stopping

METHODS = ("auto", "paired")


def cases(folder: Path) -> Iterator[tuple[str, masa.Dataset, Old, Column, float, tuple[str, ...]]]:
    """Give name, data, old and new answers, an error to aim at and free answers."""
    for update in updates(folder):
        data = update.data
        sure = None if update.old_confidence is None else data.numbers[update.old_confidence]
        old = Old(np.arange(len(data)), data.predictions[update.old], complete=True, confidence=sure)
        yield update.name, data, old, data.predictions[update.new], 2 * update.target, update.also
    for case in intervals.UPDATES:
        data, before, new = intervals.loaded(case, folder)
        old = Old(np.arange(len(data)), before, complete=True, confidence=data.difficulty)
        yield case.name if case.how else f"{case.name}, from {case.old}", data, old, new, 0.02, ()


def shown(report: StoppingReport) -> str:
    wrong = report.false_alarms if report.misses is None else report.misses
    kind = "false alarms" if report.misses is None else "misses"
    return (
        f"{report.coverage:.3f} | {report.queries_mean:,.0f} | {report.queries_p95:,} | {report.early:.0%} | {wrong:.1%} {kind}"
    )


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
    for name, data, old, new, target, also in cases(folder):
        before = np.array(old.answers.values, object)[old.answers.codes]
        share = np.mean(before != np.array(new.values, object)[new.codes])
        for rule in rules:
            stopping = Stopping(target_error=target) if rule == "target" else Stopping(decide=True)
            for method in methods:
                report = rehearse(
                    data, new=new, old=old, settings=Settings(method, also=also), stopping=stopping, runs=runs, workers=2
                )
                words = f"error {target:.2%}" if rule == "target" else "verdict at 1%"
                print(f"| {name} | {share:.1%} | {words} | {method} | {shown(report)} |", flush=True)


if __name__ == "__main__":
    main()
