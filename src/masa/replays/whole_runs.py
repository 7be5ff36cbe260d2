"""Whole assessments on recorded answers, with their rule for stopping: when do they stop, and are they right when they do?"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from masa.data.baseline_answers import BaselineAnswers, from_column
from masa.data.dataset import Dataset
from masa.data.features import ranks
from masa.data.strata import Strata
from masa.errors import UsageError
from masa.inference.any_change import differences, moved
from masa.inference.counts import true_matrix
from masa.inference.estimate import Estimate
from masa.inference.method import Plan
from masa.inference.readings import Reader
from masa.inference.spread import Spread
from masa.inference.stopping import Stopping
from masa.records import (
    ERROR,
    Answer,
    Column,
    Floats,
    Matrix,
    Progress,
    Query,
    Replay,
    Shift,
    StoppingReport,
    in_order,
)
from masa.replays.replay import Recorded, cores
from masa.sampling.draws import Draws
from masa.settings import Objective, Settings, Tolerance
from masa.settings.assess import METHODS

STOPS = ("target", "decide", "budget")
STRICT = ("auto", "predictive")

UNDER_WAY = 16
"""Calls that are sent before their answers come."""

WHERE = ("evenly", "unsure")
UNSURE = 0.2
"""The least confident of the items."""


@dataclass(frozen=True, slots=True)
class Noise:
    """An API that contradicts itself: a share of its answers is any other one."""

    rate: float
    """the share of all answers"""
    where: str = "evenly"
    """or unsure: among the least confident"""
    repeat: int = 500
    """items that were asked twice, by which it is known"""

    def __post_init__(self) -> None:
        if self.where not in WHERE:
            raise UsageError(f"noise-where is {self.where!r}", hint=f"give {' or '.join(WHERE)}")
        if not 0.0 <= self.rate <= 1.0 or (self.where == "unsure" and self.rate > UNSURE):
            most = UNSURE if self.where == "unsure" else 1.0
            raise UsageError(
                f"noise is {self.rate:g}", hint=f"give a share such as 0.01, {most:g} at the most"
            )
        if self.repeat < 1:
            raise UsageError(
                f"repeat is {self.repeat}",
                hint="give the number of items that are asked twice, such as 500",
            )

    def rates(self, data: Dataset, old: BaselineAnswers) -> Floats:
        """Give how often each item (N,) is answered with anything else."""
        if self.where == "evenly" or old.confidence is None:
            return np.full(len(data), self.rate)
        unsure = ranks(old.confidence) <= UNSURE
        return np.where(unsure, self.rate / max(float(unsure.mean()), self.rate), 0.0)

    @staticmethod
    def of(column: Column, rates: Floats, luck: np.random.Generator) -> Column:
        """Answer once more."""
        other = (
            column.codes + luck.integers(1, max(2, len(column.values)), len(column.codes))
        ) % len(column.values)
        return Column(
            column.name,
            column.values,
            np.where(luck.random(len(rates)) < rates, other, column.codes).astype(np.int32),
        )

    @staticmethod
    def mean(column: Column, rates: Floats, strata: Strata) -> Matrix:
        """Give the matrix of what is answered in the long run."""
        weight = strata.item_weight
        label = strata.label[strata.of(np.arange(len(rates)))]
        values = np.zeros((len(strata.labels), len(column.values)))
        other = weight * rates / max(1, len(column.values) - 1)
        np.add.at(values, (label, column.codes), weight * (1.0 - rates) - other)
        values += np.bincount(label, other, len(strata.labels))[:, None]
        return Matrix(strata.labels, column.values, values)


@dataclass(frozen=True, slots=True)
class Ended:
    """One run at the time it stopped."""

    queries: int
    stopped: str
    covered: bool
    """whether what was to be known lies inside its interval, or its error below its bound"""
    verdict: str
    moved: str
    width: float
    """of the interval for the change of accuracy"""


@dataclass(frozen=True, slots=True, eq=False)
class WholeRuns:
    """What every run shares."""

    data: Dataset
    old: BaselineAnswers
    new: Column
    settings: Settings
    stopping: Stopping
    most: int
    noise: Noise | None = None

    def run(self, plan: Plan, truth: Shift, seed: int) -> Ended:
        """Ask until the rule or the budget says stop."""
        old, new = self.old, self.new
        if self.noise is not None:
            old, new = self._noisy(self.noise, seed)
            plan = Plan.of(self.data, old, self.settings, words=plan.words)
        source, asked = plan.make(seed), list[Query]()
        strata, looks = len(plan.strata), self.stopping.looks(self.most, len(self.data))
        verdict_look, error_look = (
            self.stopping.next_verdict(0),
            self.stopping.next_error(0, strata),
        )
        while True:
            look = min(self.most, verdict_look or self.most, error_look or self.most)
            queries = source.ask(min(UNDER_WAY, look - len(asked)))
            for query in queries:
                source.tell(Answer(query.item, new.values[new.codes[query.item]]))
            asked += queries
            done = not queries or len(asked) >= self.most
            if not done and len(asked) < look:
                continue
            places = np.array([query.item for query in asked], np.int64)
            answers = Column(new.name, new.values, new.codes[places])
            found = plan.estimated(old, places, answers, _draws(asked), finite=old.repeats_itself)
            why = None
            if verdict_look is not None and len(asked) >= verdict_look:
                verdict_look = self.stopping.next_verdict(len(asked))
                why = "decided" if self.stopping.verdict(found, looks) != "undecided" else None
            if error_look is not None and len(asked) >= error_look and why is None:
                error_look = self.stopping.next_error(len(asked), strata)
                why = "target" if self.stopping.reached(found) else None
            if why is not None or done:
                break
        early = why if len(asked) < self.most and queries else None
        ended = early or ("exhausted" if len(asked) >= len(self.data) else "budget")
        did = moved(found, old, *differences(self.data, old, places, answers), looks=looks)
        interval, change = (
            Reader(found, self.stopping.confidence, looks).accuracy(),
            truth.accuracy.change,
        )
        covered = interval.low - 1e-12 <= change <= interval.high + 1e-12
        if self.stopping.target_error is not None:
            covered = found.shift.error(truth) <= found.bound(self.stopping.confidence) + 1e-12
        return Ended(
            len(asked),
            ended,
            covered,
            self.stopping.verdict(found, looks),
            did.said,
            interval.high - interval.low,
        )

    def _noisy(self, noise: Noise, seed: int) -> tuple[BaselineAnswers, Column]:
        """Give old and new answers as an API that contradicts itself would, and what those asked twice said."""
        luck, rates = np.random.default_rng((seed, 1)), noise.rates(self.data, self.old)
        then, again, now = (
            noise.of(side, rates, luck) for side in (self.old.answers, self.old.answers, self.new)
        )
        twice = luck.permutation(len(self.data))[: noise.repeat].tolist()
        return replace(
            self.old,
            answers=then,
            asked_twice={place: bool(then.codes[place] != again.codes[place]) for place in twice},
        ), now

    def prepared(self) -> "tuple[Plan, Shift]":
        """Give what is the same for every seed: the plan, and what truly changed."""
        plan = Plan.of(self.data, self.old, self.settings)
        sides = (self.old.answers, self.new)
        if self.noise is None:
            before, after = (true_matrix(plan.strata, side) for side in sides)
        else:
            rates = self.noise.rates(self.data, self.old)
            before, after = (self.noise.mean(side, rates, plan.strata) for side in sides)
        return plan, Shift(before.labelled(), after.labelled())


def play_whole_runs(
    data: Dataset,
    *,
    new: Column,
    old: BaselineAnswers,
    settings: Settings,
    stopping: Stopping,
    budget: int | None = None,
    noise: Noise | None = None,
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
    if noise is not None:  # What is answered by chance may be anything that either side answers.
        names = in_order(old.answers.values + new.values)
        old, new = replace(old, answers=old.answers.on(names)), new.on(names)
    rehearsal = WholeRuns(data, old, new, settings, stopping, most, noise)
    prepared = rehearsal.prepared()  # Whatever is wrong is wrong here, and not in another process.
    size = max(1, min(25, -(-runs // workers)))
    chunks = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
    ended: list[Ended] = []

    def report() -> None:
        if progress is not None:
            progress(f"{settings.method} until it stops", len(ended) / runs)

    if workers == 1 or len(chunks) == 1:
        for chunk in chunks:
            ended += [rehearsal.run(*prepared, seed) for seed in chunk]
            report()
    else:
        with ProcessPoolExecutor(workers, initializer=_begin, initargs=(rehearsal,)) as pool:
            for part in pool.map(_runs, chunks):
                ended += part
                report()
    return _summary(ended, _matters(rehearsal.stopping, prepared[1]))


def check(
    recorded: Recorded,
    *,
    stop: str,
    replacement: bool,
    noise: Noise | None = None,
    strict: bool = False,
    methods: Sequence[str] = (),
) -> None:
    """Raise if assessments cannot be played on these answers."""
    if strict and methods and not set(methods) & set(STRICT):
        raise UsageError(
            f"the method {methods[0]} has no strict intervals",
            hint=f"give --method {' or '.join(STRICT)}",
        )
    if stop not in STOPS:
        raise UsageError(f"stop is {stop!r}", hint=f"give {' or '.join(STOPS)}")
    if recorded.old is None:
        raise UsageError(
            "without old answers there is no change to stop at",
            hint="name their column with --old COL",
        )
    if replacement:
        raise UsageError("assessments ask each item once", hint="leave out --with-replacement")
    if noise is not None and noise.where == "unsure" and recorded.old_confidence is None:
        raise UsageError(
            "nothing tells which answers are unsure",
            hint="name the column with --old-confidence COL",
        )


def with_whole_runs(
    result: Replay,
    recorded: Recorded,
    *,
    stop: str,
    tolerance: "float | str | Mapping[str, float] | None" = None,
    noise: Noise | None = None,
    strict: bool = False,
    budget: int | None = None,
    levels: int = 3,
    mix: Mapping[str, float] | None = None,
    weights: "str | Mapping[str, Any] | None" = None,
    progress: Progress | None = None,
) -> Replay:
    """Add to a replay how assessments by each of its methods end that stop at its target error, or with their verdict.

    They end with the budget if that comes first, and stop `budget` ends them with the last one of the replay.
    """
    data = recorded.data
    old = from_column(data, data.predictions[recorded.old or ""], recorded.old_confidence)
    target = result.target_error if stop == "target" else None
    objective = Objective.read(weights)
    stopping = Stopping(
        target, stop == "decide", Tolerance.read(tolerance), result.confidence, objective, strict
    )
    curves = []
    for curve in result.curves:
        other = strict and curve.method not in STRICT
        if other or curve.method not in METHODS or (curve.method == "uniform" and mix is not None):
            curves.append(curve)  # Only replays have it.
            continue
        settings = Settings(
            curve.method,
            levels,
            result.seed,
            mix,
            old_confidence=recorded.old_confidence,
            also=recorded.also,
            objective=objective,
            tolerance=stopping.tolerance,
            strict=strict,
        )
        report = play_whole_runs(
            data,
            new=data.predictions[recorded.new],
            old=old,
            settings=settings,
            stopping=stopping,
            budget=curve.queries[-1] if stop == "budget" else budget,
            noise=noise,
            runs=result.runs,
            workers=cores(),
            progress=progress,
        )
        curves.append(replace(curve, stopping=report))
    return replace(result, curves=tuple(curves))


_mine: list[tuple[WholeRuns, Plan, Shift]] = []
"""What a worker process was given when it began."""


def _begin(rehearsal: WholeRuns) -> None:
    _mine.append((rehearsal, *rehearsal.prepared()))


def _runs(seeds: range) -> list[Ended]:
    rehearsal, plan, truth = _mine[-1]
    return [rehearsal.run(plan, truth, seed) for seed in seeds]


def _matters(stopping: Stopping, truth: Shift) -> bool:
    """Say whether what truly changed is more than the tolerance."""
    nothing = Spread(0.0, 0.0)
    return (
        stopping.verdict(Estimate(truth, nothing, nothing, np.zeros_like(truth.values)), None)
        == "changed"
    )


def _summary(ended: Sequence[Ended], matters: bool) -> StoppingReport:
    queries = np.array([one.queries for one in ended])
    return StoppingReport(
        runs=len(ended),
        coverage=float(np.mean([one.covered for one in ended])),
        queries_mean=float(queries.mean()),
        queries_p95=int(np.quantile(queries, 0.95, method="inverted_cdf")),
        false_alarms=None
        if matters
        else float(np.mean([one.verdict == "changed" for one in ended])),
        misses=float(np.mean([one.verdict == "unchanged" for one in ended])) if matters else None,
        early=float(np.mean([one.stopped in ("target", "decided") for one in ended])),
        noticed=float(np.mean([one.moved == "yes" for one in ended])),
        width=float(np.mean([one.width for one in ended])),
    )


def _draws(asked: list[Query]) -> Draws | None:
    draws = [draw for query in asked if (draw := query.draw) is not None]
    return Draws.of(draws) if draws else None
