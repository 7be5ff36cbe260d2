"""Whole assessments of recorded answers, with their stopping rule.

When do they stop, and are they right?
"""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.data.features import Words, ranks
from masa.data.strata import Strata
from masa.errors import UsageError
from masa.inference.counts import true_matrix
from masa.inference.estimate import Estimate
from masa.inference.method import Method
from masa.inference.readings import Reader
from masa.inference.spread import Spread
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import (
    ERROR,
    Answer,
    Column,
    Floats,
    Matrix,
    Progress,
    Shift,
    Stopped,
    StoppingReport,
    in_order,
)
from masa.settings import Settings

UNDER_WAY = 16
"""Calls that are sent before their answers come, as in a live run."""

NOISE_STREAM = 4_294
"""Part of the seed of the noise: other random numbers than those that draw the canaries of the same
run, or canaries would be the very items that noise changed."""

UNSURE = 0.2
"""The share of the items that are the least confident."""

ROUNDING = 1e-12
"""How far rounding may put a true value outside an interval."""


@dataclass(frozen=True, slots=True)
class Noise:
    """An API that contradicts itself: a share of its answers is replaced by any other answer."""

    rate: float
    """the share of all answers"""
    where: str = "evenly"
    """evenly, or unsure: among the least confident items"""
    repeat: int = 500
    """items that were asked twice, by which the noise is known"""

    def __post_init__(self) -> None:
        if self.where == "unsure" and self.rate > UNSURE:
            raise UsageError(
                f"noise is {self.rate:g}", hint=f"give a share such as 0.01, {UNSURE:g} at most"
            )

    def check(self, old: BaselineAnswers) -> None:
        """Raise where nothing tells which answers are unsure."""
        if self.where == "unsure" and old.confidence is None:
            raise UsageError(
                "nothing tells which answers are unsure",
                hint="name the column with --old-confidence COL",
            )

    def rates(self, data: Dataset, old: BaselineAnswers) -> Floats:
        """Give the probability (N,) that an item is answered with something else."""
        if self.where == "evenly" or old.confidence is None:
            return np.full(len(data), self.rate)
        unsure = ranks(old.confidence) <= UNSURE
        return np.where(unsure, self.rate / max(float(unsure.mean()), self.rate), 0.0)

    @staticmethod
    def of(column: Column, rates: Floats, luck: np.random.Generator) -> Column:
        """Answer once more."""
        count = len(column.values)
        other = (column.codes + luck.integers(1, max(2, count), len(column.codes))) % count
        codes = np.where(luck.random(len(rates)) < rates, other, column.codes)
        return Column(column.name, column.values, codes.astype(np.int32))

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
    """How one assessment ended."""

    queries: int
    stopped: Stopped
    covered: bool
    """whether the interval held the true change, or the bound the true error"""
    verdict: str
    moved: str
    width: float
    """of the interval for the change of accuracy"""


def drive(
    trial: Trial, new: Column, *, until: int, confidence: Floats | None = None
) -> Stopped | None:
    """Answer what a trial asks from recorded answers, some calls at a time.

    Give why it stopped; None where it has asked `until` queries, or has nothing left to ask.
    """
    stopped = trial.stopped()
    while stopped is None:
        queries = trial.ask(min(UNDER_WAY, until - len(trial.asked.queries)))
        if not queries:
            return None
        for query in queries:
            sure = None if confidence is None else float(confidence[query.item])
            trial.tell(Answer(query.item, new.values[new.codes[query.item]], sure))
        stopped = trial.stopped()
    return stopped


@dataclass(frozen=True, slots=True, eq=False)
class WholeRuns:
    """Assessments that are played with recorded answers, one per seed, as a live run would go."""

    data: Dataset
    old: BaselineAnswers
    new: Column
    settings: Settings
    budget: int | None = None
    noise: Noise | None = None

    def __post_init__(self) -> None:
        if ERROR in self.new.values:
            raise UsageError("recorded answers have no failures", hint="leave those items out")
        if self.noise is not None:
            # What noise answers may be anything that either side answers.
            names = in_order(self.old.answers.values + self.new.values)
            old = replace(self.old, answers=self.old.answers.on(names))
            object.__setattr__(self, "old", old)
            object.__setattr__(self, "new", self.new.on(names))

    @property
    def most(self) -> int:
        """The number of queries at most."""
        return min(self.budget or len(self.data), len(self.data))

    @property
    def stopping(self) -> Stopping:
        """The stopping rule."""
        return Stopping.of(self.settings)

    def play(
        self,
        runs: int,
        *,
        workers: int = 1,
        words: Words | None = None,
        progress: Progress | None = None,
    ) -> StoppingReport:
        """Play assessments with the seeds 0, 1, 2, ... and tell how they ended."""
        # Whatever is wrong is found here, and not in another process.
        method, truth = self.prepared(words)
        size = max(1, min(25, -(-runs // workers)))
        chunks = [range(first, min(first + size, runs)) for first in range(0, runs, size)]
        ended: list[Ended] = []

        def report() -> None:
            if progress is not None:
                progress(f"{self.settings.method} until it stops", len(ended) / runs)

        if workers == 1 or len(chunks) == 1:
            for chunk in chunks:
                ended += [self.run(method, truth, seed) for seed in chunk]
                report()
        else:
            begin = (self, words)
            with ProcessPoolExecutor(workers, initializer=_begin, initargs=begin) as pool:
                for part in pool.map(_play_chunk, chunks):
                    ended += part
                    report()
        return _summary(ended, matters=self._matters(truth))

    def prepared(self, words: Words | None = None) -> tuple[Method, Shift]:
        """Give what is the same for every seed: the method, and the true shift."""
        method = Method.of(self.data, self.old, self.settings, words=words)
        sides = (self.old.answers, self.new)
        if self.noise is None:
            before, after = (true_matrix(method.strata, side) for side in sides)
        else:
            rates = self.noise.rates(self.data, self.old)
            before, after = (self.noise.mean(side, rates, method.strata) for side in sides)
        return method, Shift(before.labelled(), after.labelled())

    def run(self, method: Method, truth: Shift, seed: int) -> Ended:
        """Play one assessment until the rule or the budget stops it."""
        old, new = self.old, self.new
        if self.noise is not None:
            old, new = self._noisy(self.noise, seed)
            method = Method.of(self.data, old, self.settings, words=method.words)
        trial = Trial(
            method,
            old,
            self.stopping,
            budget=self.most,
            canary=self.settings.canary,
            seed=seed,
        )
        stopped = drive(trial, new, until=self.most) or "budget"
        if len(trial.asked.answers) >= len(self.data):
            stopped = "exhausted"
        elif len(trial.asked.answers) >= self.most:
            stopped = "budget"
        found = trial.conclusion()
        asked = len(trial.asked.answers)
        if found.estimate is None:
            # Canaries alone say nothing about accuracy.
            return Ended(asked, stopped, True, "undecided", found.any_change.said, 2.0)
        confidence = self.settings.confidence
        interval = Reader(found.estimate, confidence, trial.looks).accuracy()
        if self.settings.target_error is None:
            change = truth.accuracy.change
            covered = interval.low - ROUNDING <= change <= interval.high + ROUNDING
        else:
            bound = found.estimate.bound(confidence)
            covered = found.estimate.shift.error(truth) <= bound + ROUNDING
        return Ended(
            asked,
            stopped,
            covered,
            self.stopping.verdict(found.estimate, trial.looks),
            found.any_change.said,
            interval.high - interval.low,
        )

    def _noisy(self, noise: Noise, seed: int) -> tuple[BaselineAnswers, Column]:
        """Answer as an API that contradicts itself would, then, again for some items, and now."""
        luck = np.random.default_rng((seed, NOISE_STREAM))
        rates = noise.rates(self.data, self.old)
        sides = (self.old.answers, self.old.answers, self.new)
        then, again, now = (noise.of(side, rates, luck) for side in sides)
        repeated = luck.permutation(len(self.data))[: noise.repeat].tolist()
        twice = {place: bool(then.codes[place] != again.codes[place]) for place in repeated}
        return replace(self.old, answers=then, asked_twice=twice), now

    def _matters(self, truth: Shift) -> bool:
        """Say whether the true change is more than the tolerance."""
        certain = Spread(0.0, 0.0)
        found = Estimate(truth, certain, np.zeros_like(truth.values), certain)
        return self.stopping.verdict(found, None) == "changed"


_mine: list[tuple[WholeRuns, Method, Shift]] = []
"""What a worker process was given when it began."""


def _begin(runs: WholeRuns, words: Words | None) -> None:
    _mine.append((runs, *runs.prepared(words)))


def _play_chunk(seeds: range) -> list[Ended]:
    runs, method, truth = _mine[-1]
    return [runs.run(method, truth, seed) for seed in seeds]


def _summary(ended: Sequence[Ended], *, matters: bool) -> StoppingReport:
    queries = np.array([one.queries for one in ended])

    def share(happened: list[bool]) -> float:
        return float(np.mean(happened))

    false_alarms = misses = None
    if matters:
        misses = share([one.verdict == "unchanged" for one in ended])
    else:
        false_alarms = share([one.verdict == "changed" for one in ended])
    return StoppingReport(
        runs=len(ended),
        coverage=share([one.covered for one in ended]),
        queries_mean=float(queries.mean()),
        queries_p95=int(np.quantile(queries, 0.95, method="inverted_cdf")),
        false_alarms=false_alarms,
        misses=misses,
        early=share([one.stopped in ("target", "decided", "canary") for one in ended]),
        noticed=share([one.moved == "yes" for one in ended]),
        width=float(np.mean([one.width for one in ended])),
    )
