"""How items came to be asked: their batches and inclusion probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from masa.records import Codes, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """How each of n answered items was drawn."""

    batch: Codes
    """(n,) the number of its batch"""
    probability: Floats
    """(n,) its inclusion probability, 0 for an item drawn at random inside its stratum"""
    size: Ints
    """(n,) the number of items in its batch"""

    @classmethod
    def of(cls, draws: Sequence[tuple[int, float, int]]) -> "Draws":
        """Take a batch, an inclusion probability and a batch size per item, as in the journal."""
        batch, probability, size = zip(*draws, strict=True)
        return cls(
            np.array(batch, np.int32),
            np.array(probability, np.float64),
            np.array(size, np.int64),
        )
