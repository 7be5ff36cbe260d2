"""What `masa plan` promises, against what replays of the real change then need: docs/sure.md.

    python benchmarks/plan.py FOLDER MORE [RUNS] [CASE,...]
    python benchmarks/plan.py FOLDER seconds    # until the first table, and until all of a plan

FOLDER holds frugalml/, vader/ and llmdrift/; MORE is what `more_updates.py` wrote: on its updates no
constant was chosen. A guess is a range, from a change that hits doubtful answers far more than others
to one that hits all alike; it holds if 20% beyond its ends would. Twice: the plan knows the old answers and the share of
answers that changed and nothing else of the change, as before the first update of an API, helped by
--changed; and it knows an earlier assessment of the same change, of 2,000 answers or of half of
all, and not more, for each of three such assessments. Last, VADER's second update by an assessment
of its first and --changed.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from fewer import Update, run, updates
from sharper import every

import masa
from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.inference.method import Method
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.replays.learned_change import LearnedChange, learned_change
from masa.replays.made_up_change import DOUBTFUL, EVENLY, MadeUpChange, made_up_change, queries_for
from masa.replays.whole_runs import drive
from masa.settings import Settings

EARLIER = 2_000
TIMES = 3


def promised(
    planned: MadeUpChange, share: float, error: float, *, found: float | None = None
) -> int | None:
    """Give the queries that a plan promises, also of another share than was found."""
    method = planned.laid_out(error)
    ratio = planned.error_ratio(found or share, method)
    return queries_for(
        planned.scaled(method, share, budgets=(500,), error=error, ratio=ratio), error
    )


def assessed(update: Update, known: BaselineAnswers, settings: Settings, seed: int) -> Trial:
    """Assess the change within 2,000 answers, or half of all."""
    data, new = update.data, update.data.predictions[update.new]
    trial = Trial(Method.of(data, known, settings), known, Stopping(), seed=seed)
    sure = None if update.new_confidence is None else data.numbers[update.new_confidence]
    drive(trial, new, until=min(EARLIER, len(data) // 2), confidence=sure)
    return trial


def learned(
    data: Dataset, then: BaselineAnswers, now: BaselineAnswers, settings: Settings, trial: Trial
) -> LearnedChange | None:
    """Learn from what an assessment asked."""
    places = trial.asked.places()
    items = places.tolist()
    answers, draws = trial.asked.column(items), trial.asked.draws(items)
    return learned_change(data, then, now, settings, places, answers, draws)


def second_update(folder: Path, runs: int) -> str:
    """Plan VADER's second update by an assessment of its first; the share that changed is told."""
    second, first, *_ = updates(folder)
    data, told = second.data, []
    then, now = (
        BaselineAnswers(
            np.arange(len(data)),
            it.data.predictions[it.old],
            confidence=data.numbers[it.old_confidence or ""],
        )
        for it in (first, second)
    )
    old, new = (data.predictions[name] for name in (second.old, second.new))
    settings = Settings(also=second.also)
    for seed in range(TIMES):
        trial = assessed(first, then, Settings(), seed)
        seen = trial.estimate(finite=True).differing or 0.0
        like = learned(data, then, now, settings, trial)
        planned = made_up_change(data, now, settings, runs=runs, methods=("auto",), like=like)
        queries = promised(
            planned,
            float(np.mean(old.codes != new.on(old.values).codes)),
            second.target,
            found=seen,
        )
        told.append("-" if queries is None else f"{queries:,}")
    return ", ".join(told)


def in_range(ends: Sequence[int | None], needed: int | None) -> str:
    """Tell a range of queries, and whether what was needed is in it or within 20% of its ends."""
    known = [queries for queries in ends if queries is not None]
    if ends[0] is None or not known or needed is None:
        return "- | no"
    low, high = min(known), max(known)
    holds = 0.8 * low <= needed <= 1.2 * high
    return f"{ends[0]:,} ({low:,} to {high:,}) | {'yes' if holds else 'no'}"


def seconds(folder: Path) -> None:
    """Time a plan on VADER, once compiled."""
    path = folder / "vader" / "snippets.parquet"
    name, sure = "vader-3.2.1.prediction", "vader-3.2.1.confidence"
    data = masa.read(
        path, label="label", id="id", predictions=[name], numbers=[sure], inputs=["text"]
    )
    for _ in range(2):
        begun, first = time.perf_counter(), list[float]()
        masa.plan(
            data,
            f"replay:{name}",
            baseline=name,
            old_confidence=sure,
            store=None,
            early=lambda _, begun=begun, first=first: first.append(time.perf_counter() - begun),  # type: ignore[misc]
        )
    print(f"the first table after {first[0]:.1f} s, all after {time.perf_counter() - begun:.1f} s")


def main() -> None:
    if sys.argv[2] == "seconds":
        seconds(Path(sys.argv[1]))
        return
    folder, more = Path(sys.argv[1]), Path(sys.argv[2])
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    chosen = None if len(sys.argv) < 5 else [int(number) for number in sys.argv[4].split(",")]
    print(
        f"{runs} runs\n\n| case | changed | error | needed | promised by a guess | holds | after an earlier assessment |"
    )
    print("|---" * 7 + "|")
    near = {"guess": [0, 0], "earlier": [0, 0]}
    for number, update in enumerate(every(folder, more)):
        if chosen is not None and number not in chosen:
            continue
        data = update.data
        old, new = data.predictions[update.old], data.predictions[update.new]
        share = float(
            np.mean(
                np.array(old.values, object)[old.codes] != np.array(new.values, object)[new.codes]
            )
        )
        sure = None if update.old_confidence is None else data.numbers[update.old_confidence]
        known = BaselineAnswers(np.arange(len(data)), old, confidence=sure)
        settings = Settings(also=update.also)
        needed = run(replace(update, methods=("auto",)), runs=runs).curves[0].queries_for_target

        def told(queries: int | None, kind: str, needed: int | None = needed) -> str:
            near[kind][1] += 1
            if queries is None or needed is None:
                return "-"
            near[kind][0] += 0.8 <= queries / needed <= 1.2
            return f"{queries:,} ({queries / needed:.2f})"

        guess = made_up_change(data, known, settings, runs=runs, methods=("auto",))
        ends = [
            promised(replace(guess, lean=lean), share, update.target)
            for lean in (1.0, EVENLY, DOUBTFUL)
        ]
        guessed = in_range(ends, needed)
        near["guess"][1] += 1
        near["guess"][0] += guessed.endswith("yes")
        after = []
        for seed in range(TIMES):
            trial = assessed(update, known, settings, seed)
            seen = trial.estimate(finite=True).differing or 0.0
            like = learned(data, known, known, settings, trial)
            planned = made_up_change(data, known, settings, runs=runs, methods=("auto",), like=like)
            after.append(told(promised(planned, seen, update.target), "earlier"))
        print(
            f"| {update.name} | {share:.1%} | {update.target:.2%} | {needed or 0:,} | {guessed} | {', '.join(after)} |",
            flush=True,
        )
    if chosen is None or 0 in chosen:
        print(
            f"\nVADER 3.2.1 -> 3.3.2 after an assessment of 2.5 -> 3.2.1: {second_update(folder, runs)}"
        )
    print(
        "\nwithin 20%: "
        + ", ".join(f"{kind} {good} of {all_}" for kind, (good, all_) in near.items())
    )


if __name__ == "__main__":
    main()
