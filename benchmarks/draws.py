"""Microseconds a draw of the paper's rule on one core, by number of strata, beside plainer ways to write it.

    plain Python   Algorithm 1 as printed (with the corrected update): the criterion of every stratum, every time
    kept scores    plain Python that recomputes only the score that changed, and looks for the largest
    numba scan     Algorithm 1 compiled: the criterion of every stratum, every time
    masa           what masa runs: a tree of scores, one path of it renewed a draw

All start from the same state (two draws from each stratum) on the same 300,000 items, and do the whole draw: choose, pick an
item, look up its answer, count it, renew the uncertainty score.
"""

import random
import time
from collections.abc import Callable
from math import log2, sqrt

import numpy as np

from masa.data.compiled import jit
from masa.data.strata import Strata
from masa.inference.counts import recorded_answers
from masa.records import Column, Floats, Ints
from masa.sampling import stratified as sampler
from masa.sampling.kernels import drawing as kernel

ITEMS, PREDICTIONS, REPEATS = 300_000, 10, 5


def case(count: int) -> tuple[Strata, Column]:
    rng = np.random.default_rng(0)
    labels = max(1, count // 3)
    label = rng.integers(0, labels, ITEMS)
    wrong = rng.random(ITEMS) < 0.5 * rng.random(labels)[label]
    answer = np.where(wrong, rng.integers(0, PREDICTIONS, ITEMS), label % PREDICTIONS)
    column = Column("label", tuple(map(str, range(labels))), label.astype(np.int32))
    strata = Strata.build(column, difficulty=rng.random(ITEMS), levels=count // labels)
    # Labels with few items stay whole in masa; the timing wants exactly this many strata.
    if len(strata) != count:
        column = Column(
            "label", tuple(map(str, range(count))), (np.arange(ITEMS) % count).astype(np.int32)
        )
        strata = Strata.build(column)
    return strata, Column("answer", tuple(map(str, range(PREDICTIONS))), answer.astype(np.int32))


def plain(strata: Strata, answers: Column, draws: int, *, keep: bool) -> float:
    """Algorithm 1 in plain Python; microseconds a draw after the first two of each stratum."""
    rng = random.Random(0)
    p, start = strata.weight.tolist(), strata.start.tolist()
    answer = answers.codes[strata.items].tolist()
    count = len(p)
    n, s2, seen = [0] * count, [0.0] * count, [[0] * PREDICTIONS for _ in range(count)]

    def draw(i: int) -> None:
        y = answer[rng.randrange(start[i], start[i + 1])]
        n[i] += 1
        if n[i] > 1:
            s2[i] += 2 * (1 - seen[i][y] / (n[i] - 1) - s2[i]) / n[i]
        seen[i][y] += 1

    def criterion(i: int) -> float:
        value: float = p[i] / n[i] * (sqrt(max(0.0, s2[i])) + (1.0 / n[i]) ** 0.25)
        return value

    for i in range(count):
        draw(i)
        draw(i)
    scores = [criterion(i) for i in range(count)]
    every = range(count)
    begun = time.perf_counter()
    if keep:
        for _ in range(draws):
            i = max(every, key=scores.__getitem__)
            draw(i)
            scores[i] = criterion(i)
    else:
        for _ in range(draws):
            draw(max(every, key=criterion))
    return (time.perf_counter() - begun) / draws * 1e6


@jit
def scan(
    weight: Floats,
    start: Ints,
    cell: Ints,
    group: Ints,
    issued: Ints,
    pairs: Ints,
    counts: Ints,
    draws: int,
) -> None:
    """Algorithm 1 compiled as it stands, from state arrays by stratum (S,), item (N,) and cell (C,)."""
    for draw in range(draws):
        best, chosen = -1.0, 0
        for i in range(len(weight)):
            n = issued[i]
            value = weight[i] / n * (sqrt(kernel.uncertainty(pairs[i], n)) + sqrt(sqrt(1.0 / n)))
            if value > best:
                best, chosen = value, i
        size = start[chosen + 1] - start[chosen]
        c = cell[start[chosen] + int(kernel.uniform(np.uint64(1), chosen, draw) * size)]
        pairs[group[c]] += 2 * counts[c]
        counts[c] += 1
        issued[chosen] += 1


class Compiled:
    """The kernels' state after two draws from each stratum."""

    def __init__(self, strata: Strata, answers: Column) -> None:
        self.scheme = sampler.scheme(strata, "masa", replacement=True)
        self.recorded = recorded_answers(
            strata, answers, group=self.scheme.group, factor=self.scheme.factor
        )
        self.state = kernel.new_state(
            self.scheme.design, len(strata.items), len(self.recorded.cell_entry)
        )
        self.seen = np.zeros(len(self.state.counts) + 1, np.int32)
        kernel.plant(self.scheme.design, self.scheme.rule, self.state)
        self.draw(2 * len(strata))

    def draw(self, draws: int) -> None:
        kernel.advance(
            self.scheme.design,
            self.recorded,
            self.scheme.rule,
            self.state,
            self.seen,
            np.uint64(1),
            draws,
        )

    def scan(self, draws: int) -> None:
        design, recorded, state = self.scheme.design, self.recorded, self.state
        cell, group = recorded.cell.astype(np.int64), recorded.cell_group.astype(np.int64)
        scan(
            design.block_weight,
            design.start,
            cell,
            group,
            state.issued,
            state.pairs,
            state.counts.astype(np.int64),
            draws,
        )


def best(work: Callable[[Compiled], None], strata: Strata, answers: Column, draws: int) -> float:
    """Time the quickest of several: the others were disturbed by something else on the machine."""
    times = []
    for _ in range(REPEATS):
        ready = Compiled(strata, answers)
        work_once = time.perf_counter()
        work(ready)
        times.append(time.perf_counter() - work_once)
    return min(times) / draws * 1e6


def main() -> None:
    small = case(30)
    Compiled(*small).scan(1)
    print(__doc__.splitlines()[0])
    print(
        f"{'strata':>8} {'plain Python':>14} {'kept scores':>13} {'numba scan':>12} {'masa':>8}   masa is faster than"
    )
    print(f"{'':>59}   plain / kept / scan")
    first = 0.0
    for count in (30, 93, 3_000, 30_000):
        strata, answers = case(count)
        few = max(20, 200_000 // count)
        slow = min(plain(strata, answers, few, keep=False) for _ in range(2))
        kept = min(plain(strata, answers, 10 * few, keep=True) for _ in range(2))
        many = max(200, 30_000_000 // count)
        many = min(many, 200_000)
        scanned = best(lambda ready, many=many: ready.scan(many), strata, answers, many)  # type: ignore[misc]
        masa = best(lambda ready: ready.draw(200_000), strata, answers, 200_000)
        first = first or masa
        ratios = f"{slow / masa:,.0f} / {kept / masa:,.0f} / {scanned / masa:,.1f}"
        growth = f"cost x {masa / first:.2f}, log(strata) x {log2(count) / log2(30):.2f}"
        print(
            f"{count:>8,} {slow:>14,.2f} {kept:>13,.2f} {scanned:>12,.3f} {masa:>8,.3f}   {ratios:<20} {growth}"
        )


if __name__ == "__main__":
    main()
