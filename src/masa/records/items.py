"""Items, and what is asked and answered about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from masa.records.types import Codes

if TYPE_CHECKING:
    pass


INVALID = "<invalid>"

ERROR = "<error>"

LONGEST_LABEL = 200
"""Nothing of more characters than this is a label."""

UNLABELLED = "<unlabelled>"

RESERVED = (INVALID, ERROR, UNLABELLED)
"""What cannot be anybody's label: no readable answer and no answer at all, which are columns of the matrix, and no label."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of text: its different values, and for each item which one it has."""

    name: str
    values: tuple[str, ...]
    codes: Codes
    """(N,)"""

    def on(self, values: tuple[str, ...]) -> "Column":
        """Give the same column with codes for these values, which must name at least its own."""
        place = {value: code for code, value in enumerate(values)}
        return Column(
            self.name,
            values,
            np.array([place[value] for value in self.values], np.int32)[self.codes],
        )


@dataclass(frozen=True, slots=True)
class Query:
    """One item to ask the API about."""

    item: int
    stratum: int
    batch: int | None = None
    """the batch it was drawn with, where items are drawn in batches"""
    probability: float | None = None
    """its inclusion probability in that batch, or 0 where it was drawn inside its stratum"""
    batch_size: int | None = None

    @property
    def draw(self) -> tuple[int, float, int] | None:
        """The batch, the inclusion probability and the size of the batch, where items are drawn in batches."""
        if self.batch is None or self.probability is None or self.batch_size is None:
            return None
        return self.batch, self.probability, self.batch_size


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API said about one item."""

    item: int
    prediction: str
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One item as a client sees it: its place in the data as it was read, and the texts of its input columns."""

    place: int
    inputs: Mapping[str, str]

    @property
    def text(self) -> str:
        """The text of the only input column, or of all of them, one a line."""
        return "\n".join(self.inputs.values())


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client brings back from one call."""

    label: str | None
    """None for an answer that cannot be read as a label"""
    confidence: float | None = None
    version: str | None = None
    """what the provider calls the model that answered"""
    cost: int | None = None
    """in billionths; None for the price that was reserved"""


def in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    """Give the different names in the order people expect: whole numbers by size, else text, reserved ones last.

    >>> in_order(("10", "9", "<invalid>", "9"))
    ('9', '10', '<invalid>')
    >>> in_order(("b", "10", "a"))
    ('10', 'a', 'b')
    """
    plain = {name for name in names if name not in RESERVED}
    # str.isdecimal is true of other scripts' digits too; int() reads them all, but not without end.
    numbers = all(name.removeprefix("-").isdecimal() and len(name) < 1000 for name in plain)
    first = sorted(plain, key=lambda name: (int(name), name)) if numbers else sorted(plain)
    return (*first, *(name for name in RESERVED if name in names))
