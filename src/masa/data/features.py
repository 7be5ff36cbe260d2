"""What is known about each item before the first paid call and may predict a changed answer."""

import re
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from masa.data.dataset import Dataset
from masa.records import Bools, Codes, Column, Floats, Ints

VOCABULARY = 4096
"""The number of codes that words are hashed to."""

MOST_WORDS, MOST_TEXT = 64, 4_000
"""How much of a text is used: its first different words, of its first characters."""

WORD = re.compile(r"\w+(?:'\w+)?")

MANY = 50_000
"""Items from which on compiled code is worth loading."""

AT_ONCE = 65_536
"""Items whose words are hashed together."""

MOST_REMEMBERED = 1_000_000
"""The most words whose codes are kept in memory."""

CHEAPEST = 0.01
"""The lowest relative price of an item, as a share of the mean price.

An item that is cheaper, or free, is not asked more often for that.
"""

OTHER = "<other>"
"""Represents all answers that were never given before.

How they differ from each other does not matter for what is asked next.
"""

SUREST = 1e-4
"""How near a confidence may come to 0 or 1 where its log odds are taken."""

MOVED = 0.1
"""How much it counts, as a share of a changed answer, that only the confidence changed."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The words of each item's text, as codes below the size of the vocabulary."""

    start: Ints
    """(N + 1,) item i has the codes start[i] to start[i + 1]"""
    codes: Codes

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Words":
        """Hash each word of each text to a code; different words may share one.

        >>> words = Words.of(["Good, good food.", ""])
        >>> words.start.tolist(), len(words.codes)
        ([0, 2, 2], 2)
        """
        code_of = _WordCodes()
        starts = array("q", [0])
        codes = array("i")
        for text in texts:
            codes.extend(code_of.words(text))
            starts.append(len(codes))
        return cls(np.array(starts, np.int64), np.array(codes, np.int32))

    @classmethod
    def of_data(cls, data: Dataset) -> "Words":
        """Hash the words of what the API is shown about each item of the data.

        Where there are many items, in compiled code.

        >>> data = Dataset.of(["a", "b"], inputs={"text": ["Good, good food.", ""]})
        >>> Words.of_data(data).start.tolist()
        [0, 2, 2]
        """
        if len(data) < MANY or data.inputs is None:
            return cls.of(item.text for item in data.items())
        from masa.data.word_codes import LEFT, codes_of, crc_table, small_letters

        inputs, table, small = data.inputs, crc_table(), small_letters()
        content = np.frombuffer(inputs.content, np.uint8)
        rows = np.arange(len(data)) if data.rows is None else data.rows
        code_of, parts = _WordCodes(), [np.empty(0, np.int32)]
        counts = np.zeros(len(data), np.int64)
        for first in range(0, len(data), AT_ONCE):
            some, count = rows[first : first + AT_ONCE], counts[first : first + AT_ONCE]
            codes = np.zeros((len(some), MOST_WORDS), np.int32)
            codes_of(
                content, inputs.ends, len(inputs.columns), some, table, small, VOCABULARY,
                MOST_TEXT, codes, count,
            )  # fmt: skip
            for number in np.flatnonzero(count == LEFT).tolist():
                known = code_of.words(data.item(first + number).text)
                count[number] = len(known)
                codes[number, : len(known)] = known
            parts.append(codes[np.arange(MOST_WORDS) < count[:, None]])
        return cls(np.concatenate(([0], np.cumsum(counts))), np.concatenate(parts))


NAME_OF_FILE = re.compile(
    r"(https?://)?\S+\.(png|jpe?g|gif|bmp|webp|tiff?|wav|flac|ogg|opus|mp3|m4a)(\?\S*)?",
    re.IGNORECASE,
)


def names_a_file(text: str) -> bool:
    """Say whether a text is the name or the address of an image or a sound.

    >>> names_a_file("faces/12.png"), names_a_file("See 12.png")
    (True, False)
    """
    return NAME_OF_FILE.fullmatch(text.strip()) is not None


class _WordCodes(dict[str, int]):
    """The code of each word, kept in memory for the words that come first."""

    def words(self, text: str) -> list[int]:
        """Give the different codes of the words of a text, as far as it is used."""
        distinct = dict.fromkeys(map(self.__getitem__, WORD.findall(text[:MOST_TEXT].lower())))
        return list(islice(distinct, MOST_WORDS))

    def __missing__(self, word: str) -> int:
        code = zlib.crc32(word.encode(errors="replace")) % VOCABULARY
        if len(self) < MOST_REMEMBERED:
            self[word] = code
        return code


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The baseline answers of all items, and what else is known about them for free."""

    old: Column
    """the baseline answers"""
    confidence: Floats | None = None
    """(N,) of the baseline answers"""
    also: tuple[Column, ...] = ()
    """the answers of others: a cheap model, another vendor"""
    words: Words | None = None
    flickered: Bools | None = None
    """(N,) items that were asked twice and answered differently"""

    def __post_init__(self) -> None:
        assert all(len(column.codes) == len(self.old.codes) for column in self.also)  # noqa: S101

    def disagreeing(self) -> Floats:
        """Return 1 where one of the others disagrees with the baseline answer, else 0: (N, A)."""
        code_of = {name: code for code, name in enumerate(self.old.values)}
        result = np.empty((len(self.old.codes), len(self.also)))
        for column, other in enumerate(self.also):
            codes = np.array([code_of.get(name, -1) for name in other.values], np.int64)
            result[:, column] = codes[other.codes] != self.old.codes
        return result

    @property
    def in_words(self) -> str:
        """A sentence without a subject that says what is used."""
        text = "uses the baseline answers"
        if self.confidence is not None:
            text += ", their confidence"
        for column in self.also:
            text += f", the answers of {column.name!r}"
        if self.words is not None:
            text += ", the words of the texts"
        return text


def prices(cost: Floats | None, items: int) -> Floats:
    """Return the price of each item (N,) relative to the mean, at least `CHEAPEST`.

    >>> prices(np.array([0.0, 1.0, 5.0]), 3).tolist()
    [0.01, 0.5, 2.5]
    """
    if cost is None or not cost.any():
        return np.ones(items)
    return np.asarray(np.maximum(cost / cost.mean(), CHEAPEST))


def log_odds(confidence: Floats) -> Floats:
    """Return the log odds of confidences (N,); none is taken to be nearer to 0 or 1 than SUREST.

    >>> log_odds(np.array([0.5, 1.0])).round(2).tolist()
    [0.0, 9.21]
    """
    inside = np.clip(confidence, SUREST, 1.0 - SUREST)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def ranks(numbers: Floats) -> Floats:
    """Return the rank of each number (N,) between 0 and 1; equal numbers have equal ranks.

    >>> ranks(np.array([3.0, 1.0, 3.0, 9.0])).tolist()
    [0.5, 0.125, 0.5, 0.875]
    """
    _, inverse, count = np.unique(numbers, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    return np.asarray(middle[inverse] / len(numbers))
