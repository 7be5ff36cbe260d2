"""Recorded cases, and what every experiment on them needs: their data, replays, and parts that are kept.

An experiment is made of parts, one a case. A part that is done is kept as JSON: an interrupted study goes on where it was.
"""

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from masa.data.dataset import Dataset, read
from masa.data.strata import Strata
from masa.errors import UsageError
from masa.inference.counts import recorded_answers, true_matrix, true_uncertainty
from masa.records import Column, Curve, Floats, Ints, Progress
from masa.replays.replay import MOST_RUNS, cores, replay
from masa.research.published import CONFIDENCE, PREDICTION, Stored
from masa.sampling import stratified as sampler
from masa.sampling.kernels import drawing as kernel

Part = dict[str, Any]

VERSION = 4
"""Of the parts that are kept: raised when they would come out differently."""
RUNS = 1_500
"""As in the paper."""
LEVELS = 3
ERROR, CONFIDENT = 0.01, 0.95
BUDGETS = (250, 500, 1_000, 2_000, 4_000)


@dataclass(frozen=True, slots=True)
class Case:
    """One of the paper's 12: an API whose accuracy on a data set changed by more than 1%."""

    api: str
    data: str
    masa: int
    """queries in the paper's Table 1"""
    uniform: int
    saved: int
    """what it prints as saved, in percent"""
    told: tuple[tuple[str, str, str, float], ...] = ()
    """what the paper tells of the change: of which label, which answers became which, as a share of all items"""
    says: str = ""
    """that in words, and what of it is our guess"""

    def __str__(self) -> str:
        return f"{self.api} {self.data}"


ANY, RIGHT, NOTHING = "*", "=", "10"
"""In what is told: any label or answer; the right answer; nothing was recognised."""

CASES = (
    Case(
        "amazon",
        "yelp",
        4_500,
        19_700,
        77,
        (("1", "0", RIGHT, 0.027), ("0", "0", "1", 0.006)),
        "2.7% of all items, negative texts, became right and 0.6%, positive ones, wrong",
    ),
    Case(
        "amazon",
        "imdb",
        10_300,
        20_800,
        51,
        (("0", "0", "1", 0.05), ("1", "0", RIGHT, 0.039)),
        "5% (of all items, we take it) are positive texts that became wrong; 1.1% less in all, so that 3.9% became right",
    ),
    Case("amazon", "waimai", 7_800, 18_000, 57),
    Case("amazon", "shop", 4_800, 20_800, 77),
    Case("microsoft", "ferplus", 2_600, 19_900, 87),
    Case("google", "expw", 4_200, 17_900, 77),
    Case("ibm", "digit", 3_600, 17_000, 79),
    Case(
        "ibm",
        "amnist",
        2_400,
        18_500,
        87,
        (("4", RIGHT, "5", 0.035), (ANY, RIGHT, NOTHING, 0.035)),
        "7% less accuracy, one factor being fours taken for fives (we guess: half of it, the rest empty answers)",
    ),
    Case(
        "google",
        "digit",
        4_200,
        17_000,
        75,
        ((ANY, NOTHING, RIGHT, 0.24),),
        "empty answers, 24% of all items, became right",
    ),
    Case("google", "amnist", 1_100, 18_500, 94),
    Case("google", "command", 1_600, 15_200, 89),
    Case("microsoft", "digit", 3_300, 17_000, 81),
)

CHEAP = "github"
"""What the names of the cheap open-source models begin with."""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A case with its data."""

    case: Case
    data: Dataset
    """with a cheap model's confidence as the difficulty, or the API's own of the first date"""
    new: str
    """the column that is asked"""
    old: str | None
    cheap: str | None
    """the column of the cheap model's answers"""
    difficulty: str
    """in words"""
    own: Floats | None
    """the API's own confidence, of the first date"""

    @property
    def answers(self) -> Column:
        """What the API that is asked answers."""
        return self.data.predictions[self.new]

    @property
    def by_itself(self) -> Dataset:
        """The data with the API's own confidence as the difficulty."""
        return replace(self.data, difficulty=self.own)


@dataclass(eq=False)
class Study:
    """The whole study on some data sets."""

    sets: Sequence[Stored]
    folder: Path
    """where the parts that are done are kept"""
    runs: int = RUNS
    seed: int = 0
    workers: int = field(default_factory=cores)
    progress: Progress | None = None
    made: int = 0
    """parts that were not there yet"""

    def __post_init__(self) -> None:
        if not 2 <= self.runs <= MOST_RUNS:
            raise UsageError(
                f"runs is {self.runs}", hint=f"give a whole number from 2 to {MOST_RUNS:,}"
            )
        self.by_name = {found.name: found for found in self.sets}
        self.held: dict[Case, Loaded] = {}

    @property
    def cases(self) -> list[Case]:
        """Those of the paper's cases that the data has."""
        return [
            case
            for case in CASES
            if case.data in self.by_name and case.api in self.by_name[case.data].apis
        ]

    @property
    def missing(self) -> Iterator[str]:
        """Tell which are not there."""
        absent = [str(case) for case in CASES if case not in self.cases]
        if absent:
            yield f"Not in the data, so left out: {', '.join(absent)}."

    def load(self, case: Case) -> Loaded:
        """Read the data of a case; the last one that was read is held."""
        if case not in self.held:
            self.held.clear()
            self.held[case] = loaded(case, self.by_name[case.data])
        return self.held[case]

    def parts(
        self, what: str, make: Callable[[Loaded], Part], cases: Sequence[Case] | None = None
    ) -> dict[Case, Part]:
        """Make a part a case, or take it from where it was kept."""
        wanted = self.cases if cases is None else cases
        found = {}
        for number, case in enumerate(wanted):
            self.say(f"{what}: {case}", number / len(wanted))
            found[case] = self.kept({"what": what, "case": str(case)}, self.load(case), make)
        self.say(what, 1.0)
        return found

    def kept(self, key: dict[str, Any], case: Loaded, make: Callable[[Loaded], Part]) -> Part:
        """Give what was made of this data with these settings before, or make it."""
        whole = {
            **key,
            "version": VERSION,
            "runs": self.runs,
            "seed": self.seed,
            "data": case.data.fingerprint(),
            "new": case.new,
        }
        digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:20]
        path = self.folder / f"{key['what']}-{digest}.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(found, dict) and found.get("key") == whole:
                part: Part = found["part"]
                return part
        except (OSError, ValueError, KeyError):
            pass
        made = make(case)
        self.made += 1
        unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(json.dumps({"key": whole, "part": made}), encoding="utf-8")
            unfinished.replace(path)
        except OSError as exc:
            raise UsageError(
                f"{path} cannot be written: {exc.strerror or exc}",
                hint="give another folder with --out",
            ) from exc
        # As it will be read: tuples are lists from now on.
        again: Part = json.loads(json.dumps(made))
        return again

    def say(self, what: str, done: float) -> None:
        """Show how far it is."""
        if self.progress is not None:
            self.progress(what, done)

    def replay(
        self, data: Dataset, case: Loaded, methods: Sequence[str], **options: Any
    ) -> dict[str, Curve]:
        """Replay methods on a case."""
        budgets = [
            budget for budget in BUDGETS if options.get("replacement") or budget <= len(data)
        ] or [len(data)]
        given = {
            "levels": LEVELS,
            "target_error": ERROR,
            "confidence": CONFIDENT,
            "budgets": budgets,
            "runs": self.runs,
            **options,
        }
        found = replay(
            data, new=case.new, methods=methods, seed=self.seed, workers=self.workers, **given
        )
        return {curve.method: curve for curve in found.curves}

    def trace(
        self,
        strata: Strata,
        answers: Column,
        grid: Ints,
        *,
        a: float = 1.0,
        runs: int | None = None,
        workers: int | None = None,
    ) -> tuple[Floats, Floats]:
        """Watch the paper's rule: traces (R, Q, 4) of the kernel's, and the mean spread of the queries (Q, S)."""
        plan = sampler.plan(strata, "masa", replacement=True, a=a)
        recorded = recorded_answers(strata, answers, group=plan.group, factor=plan.factor)
        s2 = true_uncertainty(strata, answers, replacement=True)
        count = runs or self.runs
        size = ceil(count / 16)
        chunks = [range(first, min(first + size, count)) for first in range(0, count, size)]

        def watch(runs: range) -> tuple[Floats, Floats]:
            keys = np.array([kernel.run_key(self.seed, run) for run in runs], np.uint64)
            traces = np.zeros((len(runs), len(grid), 4))
            state = kernel.new_state(plan.design, len(strata.items), len(recorded.cell_entry))
            return traces, kernel.trace(
                plan.design, recorded, plan.rule, state, keys, grid, s2, traces
            )

        pool = ThreadPoolExecutor(workers or self.workers)
        try:
            # In order, whichever thread is first: the sum of floats depends on it.
            parts = list(pool.map(watch, chunks))
        finally:
            pool.shutdown(cancel_futures=True)
        spread = np.sum([part[1] for part in parts], axis=0) / count
        return np.concatenate([part[0] for part in parts]), np.asarray(spread)

    def needed(self, case: Loaded, data: Dataset) -> int | None:
        """Give the queries that the paper's rule needs."""
        return self.replay(data, case, ["masa"], replacement=True)["masa"].queries_for_target


def loaded(case: Case, found: Stored) -> Loaded:
    """Read what a case needs: of two dates the first is the old one, and the next the new one."""
    dates = found.apis[case.api]
    old, new = (dates[0], dates[1]) if len(dates) > 1 else (None, dates[0])
    cheap = next((name for name in found.recorded if name.startswith(CHEAP)), None)
    numbers = [
        name + CONFIDENCE
        for name in (cheap, dates[0])
        if name is not None and name in found.confident
    ]
    answers = [name + PREDICTION for name in (old, new, cheap) if name is not None]
    data = read(found.path, label="label", id="id", predictions=answers, numbers=numbers)
    hard = None if cheap is None else data.numbers.get(cheap + CONFIDENCE)
    own = data.numbers.get(dates[0] + CONFIDENCE)
    words = (
        f"the confidence of {cheap}"
        if hard is not None
        else f"the confidence of {dates[0]}"
        if own is not None
        else "none"
    )
    return Loaded(
        case,
        replace(data, difficulty=own if hard is None else hard),
        new + PREDICTION,
        None if old is None else old + PREDICTION,
        None if cheap is None else cheap + PREDICTION,
        words,
        own,
    )


def one_run(
    strata: Strata, answers: Column, queries: int, *, seed: int, replacement: bool
) -> Floats:
    """Estimate the new matrix (L, P) by one run of the paper's rule."""
    plan = sampler.plan(strata, "masa", replacement=replacement)
    recorded = recorded_answers(strata, answers, group=plan.group, factor=plan.factor)
    sums, errors = np.zeros((1, len(recorded.truth))), np.zeros((1, 1), np.float32)
    state = kernel.new_state(plan.design, len(strata.items), len(recorded.cell_entry))
    keys = np.array([kernel.run_key(seed, 0)], np.uint64)
    kernel.simulate(
        plan.design,
        recorded,
        plan.rule,
        state,
        keys,
        np.array([(queries, 0)], np.int64),
        errors,
        sums,
    )
    truth = true_matrix(strata, answers).values
    found = np.zeros(truth.size)
    found[np.flatnonzero(truth.ravel() > 0.0)] = sums[0]
    return found.reshape(truth.shape)


def told(label: Column, answers: Column, case: Case, rng: np.random.Generator) -> Column:
    """Change answers as the paper says that they changed: as many as it says, chosen at random."""
    truth = np.array(label.values, object)[label.codes]
    said = np.array(answers.values, object)[answers.codes]
    now = said.copy()
    for of, old, new, share in case.told:
        # Those that are still as they were: no item changes twice.
        may = (now == said) & (True if of == ANY else truth == of)
        may &= (said == truth) if old == RIGHT else (said == old)
        places = np.flatnonzero(may)
        chosen = rng.choice(places, min(len(places), round(share * len(now))), replace=False)
        now[chosen] = truth[chosen] if new == RIGHT else new
    values, codes = np.unique(now.astype(str), return_inverse=True)
    return Column(answers.name, tuple(values.tolist()), codes.astype(np.int32))


def plain(
    strata: Strata, answers: Column, queries: int, *, seed: int
) -> dict[tuple[int, int], float]:
    """Carry out the paper's Algorithm 1 in plain Python, its update of the score corrected, and give the new matrix."""
    rng = random.Random(seed)  # noqa: S311 - items are drawn, not keys
    p, start = strata.weight.tolist(), strata.start.tolist()
    said = answers.codes[strata.items].tolist()
    strata_count, width = len(p), len(answers.values)
    n, s2 = [0] * strata_count, [0.0] * strata_count
    seen = [[0] * width for _ in range(strata_count)]
    for _ in range(queries):
        chosen = next((i for i in range(strata_count) if n[i] < 2), None)
        if chosen is None:
            chosen = max(
                range(strata_count),
                key=lambda i: p[i] / n[i] * (sqrt(max(s2[i], 0.0)) + (1 / n[i]) ** 0.25),
            )
        answer = said[rng.randrange(start[chosen], start[chosen + 1])]
        n[chosen] += 1
        if n[chosen] > 1:
            s2[chosen] += 2 * (1 - seen[chosen][answer] / (n[chosen] - 1) - s2[chosen]) / n[chosen]
        seen[chosen][answer] += 1
    matrix: dict[tuple[int, int], float] = {}
    for i in range(strata_count):
        for j in range(width):
            if seen[i][j]:
                key = int(strata.label[i]), j
                matrix[key] = matrix.get(key, 0.0) + p[i] * seen[i][j] / n[i]
    return matrix
