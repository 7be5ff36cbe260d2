"""Items, and the queries and answers about them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from masa.records.types import Codes

INVALID = "<invalid>"
"""An answer that cannot be read as a label; a column of the matrix."""

ERROR = "<error>"
"""No answer, because the item failed for good; a column of the matrix."""

UNLABELLED = "<unlabelled>"
"""The label of items that have none."""

RESERVED = (INVALID, ERROR, UNLABELLED)
"""Names that no label may have."""

LONGEST_LABEL = 200
"""The most characters of a label."""

MOST_DIGITS = 1000
"""Longer names are sorted as text: int() does not read numbers of any length."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of text: its different values, and the code of the value of each item."""

    name: str
    values: tuple[str, ...]
    codes: Codes
    """(N,)"""

    def on(self, values: tuple[str, ...]) -> "Column":
        """Return the same column with codes for these values, which must include its own."""
        code_of = {value: code for code, value in enumerate(values)}
        new_codes = np.array([code_of[value] for value in self.values], np.int32)
        return Column(self.name, values, new_codes[self.codes])


@dataclass(frozen=True, slots=True)
class Query:
    """One item to ask the API about."""

    item: int
    stratum: int
    batch: int | None = None
    """the batch in which it was drawn, where items are drawn in batches"""
    probability: float | None = None
    """its inclusion probability in that batch, or 0 where it was drawn inside its stratum"""
    batch_size: int | None = None

    @property
    def draw(self) -> tuple[int, float, int] | None:
        """The batch, the inclusion probability and the batch size, if drawn in a batch."""
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
    """One item as a client sees it: its place in the data as read, and its input texts."""

    place: int
    inputs: Mapping[str, str]

    @property
    def text(self) -> str:
        """The text of the only input column, or of all of them, one per line."""
        return "\n".join(self.inputs.values())


UNREAD = {
    "refused": "were refused by the model",
    "filtered": "were stopped by the provider's content filter",
    "cut off": "were cut off",
    "several labels": "name more than one label",
    "denied": "deny a label, as in 'not positive'",
    "unsure": "are not certain, as in 'perhaps positive'",
    "no label": "name no label",
    "empty": "are empty",
    "not the JSON": "are not the JSON that was asked for",
    "unknown label": "are a label that the data does not have",
}
"""Why an answer cannot be read as a label, and the words that count such answers."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client returns from one call."""

    label: str | None
    """None for an answer that cannot be read as a label"""
    confidence: float | None = None
    version: str | None = None
    """what the provider calls the model that answered"""
    cost: int | None = None
    """in billionths; None for the price that was reserved"""
    scores: Mapping[str, float] | None = None
    """the provider's number for each label"""
    unread: str | None = None
    """why it cannot be read as a label: a key of `UNREAD`"""
    said: str | None = None
    """the answer in the API's own words; shown, and stored only if the user wants answers kept"""


def in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the different names sorted: integers by size, else as text; reserved names last.

    >>> in_order(("10", "9", "<invalid>", "9"))
    ('9', '10', '<invalid>')
    >>> in_order(("b", "10", "a"))
    ('10', 'a', 'b')
    """
    labels = {name for name in names if name not in RESERVED}
    reserved = [name for name in RESERVED if name in names]
    # str.isdecimal is also true of the digits of other scripts, and int() reads them.
    if all(name.removeprefix("-").isdecimal() and len(name) < MOST_DIGITS for name in labels):
        return (*sorted(labels, key=lambda name: (int(name), name)), *reserved)
    return (*sorted(labels), *reserved)
