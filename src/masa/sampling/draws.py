"""How items came to be asked: their batches and inclusion probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from masa.records import Codes, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """How each of n answers came to be asked for."""

    batch: Codes
    """(n,)"""
    probability: Floats
    """(n,) the inclusion probability, 0 for items drawn at random inside their stratum"""
    size: Ints
    """(n,) of its batch"""

    @classmethod
    def of(cls, draws: Sequence[tuple[int, float, int]]) -> "Draws":
        """Take batches, chances and sizes as the journal has them."""
        batch, chance, size = zip(*draws, strict=True)
        return cls(
            np.array(batch, np.int32), np.array(chance, np.float64), np.array(size, np.int64)
        )
