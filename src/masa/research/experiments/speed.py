"""How fast a run is, beside the paper's algorithm in plain Python."""

import random
import time
from collections.abc import Callable
from functools import partial
from math import sqrt

import numpy as np

from masa.data.strata import Strata
from masa.records import Column
from masa.research.finding import Finding, Sheet
from masa.research.study import CASE_BUDGET, LEVELS, PaperStudy

TITLE = "How fast a run is"
COMPILED_RUNS = 400
"""Compiled runs that are timed together."""
REPEATS = 3
"""Times that each is timed; the shortest counts."""


def speed(study: PaperStudy) -> Finding:
    """Time a run of the paper's rule in plain Python and as masa runs it, on one core."""
    rows = []
    for number, case in enumerate(study.cases):
        study.show_progress(f"speed: {case}", number / len(study.cases))
        loaded = study.load(case)
        data, answers = loaded.data, loaded.answers
        strata = Strata.build(data.label, difficulty=data.difficulty, levels=LEVELS)
        in_python = partial(plain, strata, answers, CASE_BUDGET, seed=study.seed)
        slow = _shortest(in_python)
        grid = np.array([CASE_BUDGET])
        study.trace(strata, answers, grid, runs=1)  # Compile before the clock starts.
        compiled = partial(study.trace, strata, answers, grid, runs=COMPILED_RUNS, workers=1)
        quick = _shortest(compiled) / COMPILED_RUNS
        rows.append((str(case), len(strata), 1_000 * slow, 1_000 * quick, slow / quick))
    head = ("case", "strata", "plain Python, ms a run", "masa, ms a run", "times as fast")
    words = (
        f"One run of the paper's rule with {CASE_BUDGET:,} queries on one core: in plain Python as "
        "printed but for the corrected update, and as masa runs it. The paper: 'a few seconds' a "
        "run.",
    )
    return Finding("speed", TITLE, words, (Sheet("speed", head, tuple(rows)),))


def _shortest(work: Callable[[], object]) -> float:
    """Time some work several times and return the shortest time, in seconds."""
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    # The shortest is the one least disturbed by what else the machine does.
    return min(times)


def plain(
    strata: Strata, answers: Column, queries: int, *, seed: int
) -> dict[tuple[int, int], float]:
    """Carry out the paper's Algorithm 1 in plain Python and return the new matrix.

    The update of the score is corrected. Entries of the matrix that are 0 are not in the result.
    """
    rng = random.Random(seed)  # noqa: S311 - items are drawn, not keys
    p, start = strata.weight.tolist(), strata.start.tolist()
    said = answers.codes[strata.items].tolist()
    strata_count, width = len(p), len(answers.values)
    n = [0] * strata_count
    s2 = [0.0] * strata_count
    seen = [[0] * width for _ in range(strata_count)]

    def score(i: int) -> float:
        """Return what one more query in a stratum is worth, a = 1."""
        exploration: float = (1 / n[i]) ** 0.25
        value: float = p[i] / n[i] * (sqrt(max(s2[i], 0.0)) + exploration)
        return value

    for _ in range(queries):
        # Two answers in every stratum first: with fewer its score is unknown.
        chosen = next((i for i in range(strata_count) if n[i] < 2), None)
        if chosen is None:
            chosen = max(range(strata_count), key=score)
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
