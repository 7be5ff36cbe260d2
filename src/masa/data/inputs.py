"""The texts that the API is shown, item by item."""

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from masa.records import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The texts of the input columns of all items, encoded in UTF-8 one after another."""

    columns: tuple[str, ...]
    content: "mmap.mmap | bytes"
    ends: Ints
    """(N * columns + 1,) the positions where each text ends and the next begins"""

    def __reduce__(self) -> tuple[type["Inputs"], tuple[tuple[str, ...], bytes, Ints]]:
        """Pickle the texts as plain bytes: a memory map cannot be sent to another process."""
        return Inputs, (self.columns, bytes(self.content), self.ends)

    @classmethod
    def in_memory(cls, columns: Mapping[str, Sequence[str]]) -> "Inputs":
        """Build the inputs from columns of texts in memory.

        >>> Inputs.in_memory({"title": ["a", "b"], "body": ["x", "yz"]}).of(1)
        {'title': 'b', 'body': 'yz'}
        """
        texts = [text.encode() for row in zip(*columns.values(), strict=True) for text in row]
        lengths = [len(text) for text in texts]
        ends = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        return cls(tuple(columns), b"".join(texts), ends)

    def of(self, place: int) -> dict[str, str]:
        """Return the texts of one item, by column."""
        first = place * len(self.columns)
        texts = {}
        for number, name in enumerate(self.columns, start=first):
            begin, end = int(self.ends[number]), int(self.ends[number + 1])
            texts[name] = self.content[begin:end].decode()
        return texts
