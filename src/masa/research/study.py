"""The paper's study: replays and traces of its cases, and parts that are kept once computed.

An experiment is computed in parts, usually one per case. A finished part is kept as JSON, so an
interrupted study resumes where it stopped.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import UsageError
from masa.inference.counts import recorded_answers, true_matrix, true_uncertainty
from masa.records import Column, Curve, Floats, Ints, Progress
from masa.replays.curve import cores
from masa.replays.replay import replay
from masa.research.cases import CASES, LoadedCase, PaperCase, loaded
from masa.research.published import Stored
from masa.sampling import stratified as sampler
from masa.sampling.kernels import drawing as kernel

Part = dict[str, Any]
"""What is computed for one case, as JSON can hold it."""

VERSION = 4
"""Version of the kept parts; raised when the same settings would give a different part."""
RUNS = 1_500
"""Replays per figure, as in the paper."""
MOST_RUNS = 100_000
"""Replays per figure at most, as many as `masa replay` accepts."""
LEVELS = 3
"""Levels of difficulty."""
TARGET_ERROR = 0.01
"""The Frobenius error that a run has to reach."""
TARGET_CONFIDENCE = 0.95
"""The share of runs that have to reach the target error."""
BUDGETS = (250, 500, 1_000, 2_000, 4_000)
"""Numbers of queries at which replays report their error."""
CASE_BUDGET = 2_000
"""Queries of the paper's case study, and of every experiment that looks at one budget."""
CHUNKS = 16
"""Pieces that the runs of a trace are split into, whatever the number of threads."""

RUN_ERROR, TRUE_LOSS, ESTIMATED_LOSS, WIDENING = range(4)
"""The last axis of `Trace.runs`.

The run's Frobenius error; its loss, the sum of p^2 s^2 / n over the strata, by the true and by the
estimated scores s^2; and the sum of p^2 n^(-3/2), which an upper bound on the scores adds.
"""


class Trace(NamedTuple):
    """Runs of the paper's rule, seen at Q numbers of queries."""

    runs: Floats
    """(R, Q, 4): see RUN_ERROR and what follows it"""
    allocation: Floats
    """(Q, S): queries spent in each stratum, mean of the runs"""


@dataclass(eq=False)
class PaperStudy:
    """The study on some data sets: which cases they have, and how runs of them are replayed."""

    sets: Sequence[Stored]
    folder: Path
    """where finished parts are kept"""
    runs: int = RUNS
    seed: int = 0
    workers: int = field(default_factory=cores)
    progress: Progress | None = None
    made: int = 0
    """parts that were computed, not read from the folder"""

    def __post_init__(self) -> None:
        if not 2 <= self.runs <= MOST_RUNS:
            raise UsageError(
                f"runs is {self.runs}", hint=f"give a whole number from 2 to {MOST_RUNS:,}"
            )
        self.by_name = {found.name: found for found in self.sets}
        self._last_loaded: LoadedCase | None = None

    @property
    def cases(self) -> list[PaperCase]:
        """The paper's cases that the data has."""
        return [
            case
            for case in CASES
            if case.data in self.by_name and case.api in self.by_name[case.data].apis
        ]

    @property
    def missing(self) -> list[str]:
        """A sentence that names the paper's cases that the data does not have, if any."""
        absent = [str(case) for case in CASES if case not in self.cases]
        if not absent:
            return []
        return [f"Not in the data, so left out: {', '.join(absent)}."]

    def load(self, case: PaperCase) -> LoadedCase:
        """Read the data of a case, or return it if it was the last one read."""
        # Only one case is held: experiments take one after the other, and data may be large.
        if self._last_loaded is None or self._last_loaded.case != case:
            self._last_loaded = None
            self._last_loaded = loaded(case, self.by_name[case.data])
        return self._last_loaded

    def parts(
        self,
        what: str,
        make: Callable[[LoadedCase], Part],
        cases: Sequence[PaperCase] | None = None,
    ) -> dict[PaperCase, Part]:
        """Compute one part per case, or read it where it was kept; by default for all cases."""
        if cases is None:
            cases = self.cases
        parts = {}
        for number, case in enumerate(cases):
            self.show_progress(f"{what}: {case}", number / len(cases))
            parts[case] = self.kept({"what": what, "case": str(case)}, self.load(case), make)
        self.show_progress(what, 1.0)
        return parts

    def kept(
        self, key: dict[str, Any], case: LoadedCase, make: Callable[[LoadedCase], Part]
    ) -> Part:
        """Read the part that was computed from this data with these settings, or compute it."""
        whole_key = {
            **key,
            "version": VERSION,
            "runs": self.runs,
            "seed": self.seed,
            "data": case.data.fingerprint(),
            "new": case.new,
        }
        # Named by all it depends on: other data or settings never find this part.
        digest = hashlib.sha256(json.dumps(whole_key, sort_keys=True).encode()).hexdigest()[:20]
        path = self.folder / f"{key['what']}-{digest}.json"
        part = _read_part(path, whole_key)
        if part is not None:
            return part
        made = make(case)
        self.made += 1
        _write_part(path, whole_key, made)
        # The same as when it is read later: tuples become lists.
        as_read: Part = json.loads(json.dumps(made))
        return as_read

    def show_progress(self, what: str, done: float) -> None:
        """Report which part is being computed and the share that is done."""
        if self.progress is not None:
            self.progress(what, done)

    def replay(
        self, data: Dataset, case: LoadedCase, methods: Sequence[str], **options: Any
    ) -> dict[str, Curve]:
        """Replay methods on a case and return their error curves by method."""
        budgets = list(BUDGETS)
        if not options.get("replacement"):
            # Without replacement there are no more queries than items.
            budgets = [budget for budget in BUDGETS if budget <= len(data)] or [len(data)]
        settings = {
            "levels": LEVELS,
            "target_error": TARGET_ERROR,
            "confidence": TARGET_CONFIDENCE,
            "budgets": budgets,
            "runs": self.runs,
            **options,
        }
        found = replay(
            data,
            new=case.new,
            methods=methods,
            seed=self.seed,
            # The paper's methods as printed: they make no use of baseline answers.
            estimator="paper",
            workers=self.workers,
            **settings,
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
    ) -> Trace:
        """Run the paper's rule and record its error and losses at each number of queries in grid.

        grid (Q,); a is the rule's exploration.
        """
        scheme = sampler.scheme(strata, "masa", replacement=True, a=a)
        recorded = recorded_answers(strata, answers, group=scheme.group, factor=scheme.factor)
        s2 = true_uncertainty(strata, answers, replacement=True)
        count = runs or self.runs
        size = ceil(count / CHUNKS)
        chunks = [range(first, min(first + size, count)) for first in range(0, count, size)]

        def trace_chunk(chunk: range) -> tuple[Floats, Floats]:
            keys = np.array([kernel.run_key(self.seed, run) for run in chunk], np.uint64)
            traces = np.zeros((len(chunk), len(grid), 4))
            # Each thread writes into a state of its own.
            state = kernel.new_state(scheme.design, len(strata.items), len(recorded.cell_entry))
            allocation = kernel.trace(
                scheme.design, recorded, scheme.rule, state, keys, grid, s2, traces
            )
            return traces, allocation

        pool = ThreadPoolExecutor(workers or self.workers)
        try:
            # In the order of the chunks, not of the threads: a sum of floats depends on it.
            done = list(pool.map(trace_chunk, chunks))
        finally:
            pool.shutdown(cancel_futures=True)
        allocation = np.sum([queries for _, queries in done], axis=0) / count
        return Trace(np.concatenate([traces for traces, _ in done]), np.asarray(allocation))

    def needed(self, case: LoadedCase, data: Dataset) -> int | None:
        """Count the queries that the paper's rule needs for the target error."""
        return self.replay(data, case, ["masa"], replacement=True)["masa"].queries_for_target


def _read_part(path: Path, key: Part) -> Part | None:
    """Read a kept part; None if it is missing, damaged or has another key."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and found.get("key") == key:
            part: Part = found["part"]
            return part
    except (OSError, ValueError, KeyError):
        # A damaged part is computed again.
        pass
    return None


def _write_part(path: Path, key: Part, part: Part) -> None:
    # Written beside and then moved into place: an interruption leaves no half-written part.
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps({"key": key, "part": part}), encoding="utf-8")
        unfinished.replace(path)
    except OSError as exc:
        raise UsageError(
            f"{path} cannot be written: {exc.strerror or exc}",
            hint="give another folder with --out",
        ) from exc


def one_run(
    strata: Strata, answers: Column, queries: int, *, seed: int, replacement: bool
) -> Floats:
    """Estimate the new matrix (L, P) by one run of the paper's rule."""
    scheme = sampler.scheme(strata, "masa", replacement=replacement)
    recorded = recorded_answers(strata, answers, group=scheme.group, factor=scheme.factor)
    sums = np.zeros((1, len(recorded.truth)))
    errors = np.zeros((1, 1), np.float32)
    state = kernel.new_state(scheme.design, len(strata.items), len(recorded.cell_entry))
    keys = np.array([kernel.run_key(seed, 0)], np.uint64)
    checkpoints = np.array([(queries, 0)], np.int64)
    kernel.simulate(scheme.design, recorded, scheme.rule, state, keys, checkpoints, errors, sums)
    # The kernel knows only the entries of the matrix that are above 0 in truth.
    truth = true_matrix(strata, answers).values
    estimate = np.zeros(truth.size)
    estimate[np.flatnonzero(truth.ravel() > 0.0)] = sums[0]
    return estimate.reshape(truth.shape)
