"""What is known of each item before the first paid call, and may tell that its answer changed."""

import re
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from masa.records import Codes, Column, Floats, Ints

VOCABULARY = 4096
MOST_WORDS, MOST_TEXT = 64, 4_000
"""Words of a text that are looked at, the first different ones, and characters."""

MOST_REMEMBERED = 1_000_000

CHEAPEST = 0.01
"""Of the mean price: what is cheaper, or free, is not asked more often for that."""

OTHER = "<other>"
"""Stands for all answers that were never given before: for what is asked next it does not matter how they differ."""

MOVED = 0.1
"""How much of a change it is that an answer stayed and its confidence moved."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The words of each item's text, as numbers below the size of the vocabulary."""

    start: Ints
    """(N + 1,)"""
    codes: Codes

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Words":
        """Give each word of each text a number; different words may share one.

        >>> words = Words.of(["Good, good food.", ""])
        >>> words.start.tolist(), len(words.codes)
        ([0, 2, 2], 2)
        """
        number = _Numbers().__getitem__
        find = re.compile(r"\w+(?:'\w+)?").findall
        starts, codes = array("q", [0]), array("i")
        for text in texts:
            mine = dict.fromkeys(map(number, find(text[:MOST_TEXT].lower())))
            codes.extend(islice(mine, MOST_WORDS))
            starts.append(len(codes))
        return cls(np.array(starts, np.int64), np.array(codes, np.int32))


class _Numbers(dict[str, int]):
    """The number of each word, remembered for the more frequent ones."""

    def __missing__(self, word: str) -> int:
        number = zlib.crc32(word.encode(errors="replace")) % VOCABULARY
        if len(self) < MOST_REMEMBERED:
            self[word] = number
        return number


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The old answers of all items, and what else is free."""

    old: Column
    confidence: Floats | None = None
    """(N,) of the old answers"""
    also: tuple[Column, ...] = ()
    """what others answer: a cheap model, another vendor"""
    words: Words | None = None

    def __post_init__(self) -> None:
        assert all(len(column.codes) == len(self.old.codes) for column in self.also)  # noqa: S101

    def disagreeing(self) -> Floats:
        """Say of each of the others where it disagrees with the old answers: (N, A) of 0 and 1."""
        places = {name: code for code, name in enumerate(self.old.values)}
        result = np.empty((len(self.old.codes), len(self.also)))
        for column, other in enumerate(self.also):
            code = np.array([places.get(name, -1) for name in other.values], np.int64)
            result[:, column] = code[other.codes] != self.old.codes
        return result

    @property
    def in_words(self) -> str:
        """What is known, for people."""
        parts = ["its old answer"]
        parts += ["how sure that was"] if self.confidence is not None else []
        parts += [f"what {column.name!r} says" for column in self.also]
        parts += ["its words"] if self.words is not None else []
        return "of every item it is known: " + ", ".join(parts)


def prices(cost: Floats | None, items: int) -> Floats:
    """Give the price of each item (N,) relative to the mean, none of them far below it.

    >>> prices(np.array([0.0, 1.0, 5.0]), 3).tolist()
    [0.01, 0.5, 2.5]
    """
    if cost is None or not cost.any():
        return np.ones(items)
    return np.asarray(np.maximum(cost / cost.mean(), CHEAPEST))


def ranks(numbers: Floats) -> Floats:
    """Give the rank of each number (N,) between 0 and 1, equal ones the same.

    >>> ranks(np.array([3.0, 1.0, 3.0, 9.0])).tolist()
    [0.5, 0.125, 0.5, 0.875]
    """
    _, inverse, count = np.unique(numbers, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    return np.asarray(middle[inverse] / len(numbers))
