"""Whole assessments on recorded answers, with their rule for stopping: when do they stop, and are they right when they do?"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from masa import estimate
from masa.change import verdict
from masa.dataset import Dataset
from masa.errors import UsageError
from masa.objective import Objective
from masa.old import Old, columned
from masa.plan import METHODS, Plan, Settings, stratified
from masa.records import ERROR, Answer, Column, Ints, Progress, Query, Replay, Shift, StoppingReport
from masa.replay import Recorded, cores
from masa.stopping import Stopping
from masa.weighed import Draws

STOPS = ("target", "decide")

UNDER_WAY = 16
"""Calls that are sent before their answers come."""


@dataclass(frozen=True, slots=True)
class Ended:
    """One run at the time it stopped."""

    queries: int
    stopped: str
    covered: bool
    """whether what was to be known lies inside its interval, or its error below its bound"""
    verdict: str


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """What every run shares."""

    data: Dataset
    old: Old
    new: Column
    settings: Settings
    stopping: Stopping
    most: int

    def run(self, plan: Plan, truth: Shift, seed: int) -> Ended:
        """Ask until the rule or the budget says stop."""
        source, asked = plan.make(seed), list[Query]()
        strata, z = len(plan.strata), self.stopping.z(self.most, len(self.data))
        verdict_look, error_look = self.stopping.next_verdict(0), self.stopping.next_error(0, strata)
        while True:
            look = min(self.most, verdict_look or self.most, error_look or self.most)
            queries = source.ask(min(UNDER_WAY, look - len(asked)))
            for query in queries:
                source.tell(Answer(query.item, self.new.values[self.new.codes[query.item]]))
            asked += queries
            done = not queries or len(asked) >= self.most
            if not done and len(asked) < look:
                continue
            found = plan.estimated(self.old, *self._answers(asked), _draws(asked), finite=True)
            why = None
            if verdict_look is not None and len(asked) >= verdict_look:
                verdict_look = self.stopping.next_verdict(len(asked))
                why = "decided" if self.stopping.decided(found, z) else None
            if error_look is not None and len(asked) >= error_look and why is None:
                error_look = self.stopping.next_error(len(asked), strata)
                why = "target" if self.stopping.reached(found) else None
            if why is not None or done:
                break
        interval = found.interval(self.stopping.confidence, z if self.stopping.decide else None)
        change = truth.accuracy.change
        covered = (
            interval.low - 1e-12 <= change <= interval.high + 1e-12
            if self.stopping.decide
            else found.shift.error(truth) <= found.matrix.bound(self.stopping.confidence) + 1e-12
        )
        early = why if len(asked) < self.most and queries else None
        ended = early or ("exhausted" if len(asked) >= len(self.data) else "budget")
        return Ended(len(asked), ended, covered, verdict(interval, self.stopping.tolerance))

    def _answers(self, asked: list[Query]) -> tuple[Ints, Column]:
        places = np.array([query.item for query in asked], np.int64)
        return places, Column(self.new.name, self.new.values, self.new.codes[places])

    def prepared(self) -> "tuple[Plan, Shift]":
        """Give what is the same for every seed: the plan, and what truly changed."""
        plan = Plan.of(self.data, self.old, self.settings)
        before, after = (estimate.true_matrix(plan.strata, side).labelled() for side in (self.old.answers, self.new))
        return plan, Shift(before, after)


def rehearse(
    data: Dataset,
    *,
    new: Column,
    old: Old,
    settings: Settings,
    stopping: Stopping,
    budget: int | None = None,
    runs: int = 200,
    workers: int = 1,
    progress: Progress | None = None,
) -> StoppingReport:
    """Tell how assessments with this rule for stopping end, over many seeds.

    They are the same as live ones, answered by the column `new`, some calls under way at a time.
    """
    if ERROR in new.values:
        raise UsageError("recorded answers have no failures", hint="leave those items out")
    most = min(budget or len(data), len(data))
    rehearsal = Rehearsal(data, old, new, settings, stopping, most)
    size = max(1, min(25, -(-runs // workers)))
    chunks = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
    ended: list[Ended] = []

    def report() -> None:
        if progress is not None:
            progress(f"{settings.method} until it stops", len(ended) / runs)

    if workers == 1 or len(chunks) == 1:
        plan, truth = rehearsal.prepared()
        for chunk in chunks:
            ended += [rehearsal.run(plan, truth, seed) for seed in chunk]
            report()
    else:
        with ProcessPoolExecutor(workers, initializer=_begin, initargs=(rehearsal,)) as pool:
            for part in pool.map(_runs, chunks):
                ended += part
                report()
    return _summary(ended, _matters(rehearsal))


def check(recorded: Recorded, *, stop: str, replacement: bool) -> None:
    """Raise if assessments cannot be played on these answers."""
    if stop not in STOPS:
        raise UsageError(f"stop is {stop!r}", hint=f"give {' or '.join(STOPS)}")
    if recorded.old is None:
        raise UsageError("without old answers there is no change to stop at", hint="name their column with --old COL")
    if replacement:
        raise UsageError("assessments ask each item once", hint="leave out --with-replacement")


def rehearsed(
    result: Replay,
    recorded: Recorded,
    *,
    stop: str,
    tolerance: float = 0.01,
    levels: int = 3,
    mix: Mapping[str, float] | None = None,
    weights: "str | Mapping[str, Any] | None" = None,
    progress: Progress | None = None,
) -> Replay:
    """Add to a replay how assessments by each of its methods end that stop at its target error, or with their verdict."""
    data = recorded.data
    old = columned(data, data.predictions[recorded.old or ""], recorded.old_confidence)
    target = result.target_error if stop == "target" else None
    stopping = Stopping(target, stop == "decide", tolerance, result.confidence)
    curves = []
    for curve in result.curves:
        if curve.method not in METHODS or (curve.method == "uniform" and mix is not None):
            curves.append(curve)  # Only replays have it.
            continue
        settings = Settings(
            curve.method,
            levels,
            result.seed,
            mix,
            old_confidence=recorded.old_confidence,
            also=recorded.also,
            objective=Objective.read(weights),
        )
        report = rehearse(
            data,
            new=data.predictions[recorded.new],
            old=old,
            settings=settings,
            stopping=stopping,
            runs=result.runs,
            workers=cores(),
            progress=progress,
        )
        curves.append(replace(curve, stopping=report))
    return replace(result, curves=tuple(curves))


_mine: list[tuple[Rehearsal, Plan, Shift]] = []
"""What a worker process was given when it began."""


def _begin(rehearsal: Rehearsal) -> None:
    _mine.append((rehearsal, *rehearsal.prepared()))


def _runs(seeds: range) -> list[Ended]:
    rehearsal, plan, truth = _mine[-1]
    return [rehearsal.run(plan, truth, seed) for seed in seeds]


def _matters(rehearsal: Rehearsal) -> bool:
    """Say whether the true change of accuracy is larger than the tolerance."""
    strata, _ = stratified(rehearsal.data, rehearsal.old, rehearsal.settings)
    truth = [estimate.true_matrix(strata, side).accuracy for side in (rehearsal.old.answers, rehearsal.new)]
    return abs(truth[1] - truth[0]) > rehearsal.stopping.tolerance + 1e-12


def _summary(ended: Sequence[Ended], matters: bool) -> StoppingReport:
    queries = np.array([one.queries for one in ended])
    return StoppingReport(
        runs=len(ended),
        coverage=float(np.mean([one.covered for one in ended])),
        queries_mean=float(queries.mean()),
        queries_p95=int(np.quantile(queries, 0.95, method="inverted_cdf")),
        false_alarms=None if matters else float(np.mean([one.verdict == "changed" for one in ended])),
        misses=float(np.mean([one.verdict == "unchanged" for one in ended])) if matters else None,
        early=float(np.mean([one.stopped in ("target", "decided") for one in ended])),
    )


def _draws(asked: list[Query]) -> Draws | None:
    draws = [draw for query in asked if (draw := query.draw) is not None]
    return Draws.of(draws) if draws else None
