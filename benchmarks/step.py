"""Seconds and memory of `predictive` before a batch, on a million texts: docs/fewer.md."""

import resource
import time

import numpy as np

from masa.data.features import MOST_WORDS, VOCABULARY, Features, Words
from masa.records import Column
from masa.sampling.kernels import predictive as kernel
from masa.sampling.layout import Layout

ITEMS, LABELS, WORDS = 1_000_000, 10, 30


def main() -> None:
    rng = np.random.default_rng(0)
    names = tuple(map(str, range(LABELS)))
    label = rng.integers(0, LABELS, ITEMS).astype(np.int32)
    old, other = (
        np.where(rng.random(ITEMS) < 0.8, label, rng.integers(0, LABELS, ITEMS)).astype(np.int32)
        for _ in range(2)
    )
    assert WORDS <= MOST_WORDS
    words = Words(
        np.arange(ITEMS + 1, dtype=np.int64) * WORDS,
        rng.integers(0, VOCABULARY, ITEMS * WORDS).astype(np.int32),
    )
    features = Features(
        Column("old", names, old), rng.random(ITEMS), (Column("other", names, other),), words
    )
    begun = time.perf_counter()
    layout = Layout.of(Column("label", names, label), features, weight=np.full(ITEMS, 1.0 / ITEMS))
    print(f"laying out {ITEMS:,} items once: {time.perf_counter() - begun:.2f} s")
    for answers in (0, 1_000, 5_000, 20_000):
        asked = rng.choice(ITEMS, answers, replace=False).astype(np.int32)
        moved = rng.random(answers) < 0.03
        target = np.where(moved, (old[asked] + 1) % LABELS, -1).astype(np.int32)
        margin = layout.items.margin[asked] + rng.normal(size=answers)
        chance = np.full(answers, 1.0 / ITEMS)
        done = np.zeros(ITEMS, np.bool_)
        done[asked] = True
        for _ in range(2):  # The first time it is compiled.
            begun = time.perf_counter()
            kernel.next_batch(
                layout.items,
                layout.cells,
                layout.goal,
                layout.prior,
                kernel.Asked(asked, moved.astype(np.float64), target, margin, chance),
                done,
                np.uint64(1),
                3,
            )
        print(f"a batch after {answers:,} answers: {time.perf_counter() - begun:.2f} s")
    print(
        f"memory at the most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"
    )


if __name__ == "__main__":
    main()
