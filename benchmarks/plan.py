"""What `masa plan` promises, against what replays of the real change then need: the table in docs/sure.md.

python benchmarks/plan.py FOLDER [RUNS]   FOLDER holds frugalml/, vader/ and llmdrift/

The plan knows the old answers and the share of answers that changed, and nothing else of the change.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from fewer import run, updates

from masa.forecast import made
from masa.old import Old
from masa.plan import Settings


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    print(f"{runs} runs\n\n| case | changed | error | promised | needed | promised / needed |\n|---|---|---|---|---|---|")
    for update in updates(folder):
        data = update.data
        old, new = data.predictions[update.old], data.predictions[update.new]
        share = float(np.mean(np.array(old.values, object)[old.codes] != np.array(new.values, object)[new.codes]))
        sure = None if update.old_confidence is None else data.numbers[update.old_confidence]
        known = Old(np.arange(len(data)), old, complete=True, confidence=sure)
        settings = Settings("auto", also=update.also)
        planned = made(data, known, settings, runs=runs, methods=("auto",))
        played = planned.replay(share, methods=("auto",), budgets=(500,), error=update.target)
        beyond = played.no_change_error is not None and update.target >= played.no_change_error  # It would prove nothing.
        promised = None if beyond else played.curves[0].queries_for_target
        real = run(replace(update, methods=("auto",)), runs=runs)
        needed = real.curves[0].queries_for_target
        ratio = "-" if promised is None or needed is None else f"{promised / needed:.2f}"
        both = " | ".join("-" if queries is None else f"{queries:,}" for queries in (promised, needed))
        print(f"| {update.name} | {share:.1%} | {update.target:.2%} | {both} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
