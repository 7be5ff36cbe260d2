"""Data of four labels of unlike size, some of whose answers changed, and the truth about it."""

import numpy as np

from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.inference.counts import true_matrix
from masa.records import Interval, Shift

NAMES = np.array(["cat", "dog", "fox", "owl"])


def zoo(
    items: int = 3000, *, seed: int = 0, changed: float = 0.05, towards: int | None = None
) -> Dataset:
    """Four labels of unlike size, 80% right.

    Some answers changed, to any other one or rather to one.
    """
    rng = np.random.default_rng(seed)
    label = rng.choice(4, items, p=[0.5, 0.3, 0.15, 0.05])
    old = np.where(rng.random(items) < 0.8, label, rng.integers(0, 4, items))
    other = (old + rng.integers(1, 4, items)) % 4 if towards is None else np.full(items, towards)
    new = np.where(rng.random(items) < changed, other, old)
    return Dataset.of(
        NAMES[label].tolist(),
        predictions={"old": NAMES[old].tolist(), "new": NAMES[new].tolist()},
        difficulty=rng.random(items).tolist(),
    )


def truth_of(data: Dataset) -> Shift:
    strata = Strata.build(data.label)
    before, after = (true_matrix(strata, data.predictions[name]) for name in ("old", "new"))
    return Shift(before, after)


def holds(value: float, interval: Interval) -> bool:
    return interval.low - 1e-12 <= value <= interval.high + 1e-12
