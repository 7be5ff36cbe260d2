"""The words of many texts as codes, compiled: a million texts in a second or two.

It gives what `Words.of` gives. Only texts in ASCII are read here. A text with any other character
is left to the caller: what is a letter, and what is its small form, is a long story then.
"""

import numpy as np
import numpy.typing as npt

from masa.data.compiled import jit

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Table = npt.NDArray[np.uint32]

LEFT = -1
"""The number of codes of a text that is left to the caller."""

LINE = 10
"""What stands between the columns of an item: the end of a line."""


def crc_table() -> Table:
    """Give the table of CRC-32, as zlib has it."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, np.uint32(0xEDB88320) ^ (table >> 1), table >> 1)
    return table.astype(np.uint32)


def small_letters() -> Bytes:
    """Give the small form of each byte that may be in a word, and 0 for the others."""
    small = np.zeros(256, np.uint8)
    for byte in range(128):
        sign = chr(byte)
        if sign.isalnum() or sign == "_":
            small[byte] = ord(sign.lower())
    return small


@jit
def codes_of(
    content: Bytes,
    ends: Ints,
    columns: int,
    rows: Ints,
    table: Table,
    small: Bytes,
    vocabulary: int,
    longest: int,
    codes: Codes,
    counts: Ints,
) -> None:
    """Fill in the different codes (n, most) of the items at these rows (n,), and their number (n,).

    `longest` is how many characters of a text are read.
    """
    seen = np.zeros(vocabulary, np.int64)
    text = np.empty(longest + 1, np.uint8)
    most = codes.shape[1]
    for number in range(len(rows)):
        length = _text_of(content, ends, columns, rows[number], text)
        if length < 0:
            counts[number] = LEFT
            continue
        found = 0
        at = 0
        while at < length and found < most:
            if not small[text[at]]:
                at += 1
                continue
            crc = np.uint32(0xFFFFFFFF)
            apostrophes = 0
            while at < length:
                byte = text[at]
                if small[byte]:
                    byte = small[byte]
                elif (
                    byte == 39 and not apostrophes and at + 1 < length and small[text[at + 1]]
                ):  # An apostrophe within a word.
                    apostrophes = 1
                else:
                    break
                crc = table[(crc ^ byte) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
                at += 1
            code = (crc ^ np.uint32(0xFFFFFFFF)) % np.uint32(vocabulary)
            if seen[code] != number + 1:
                seen[code] = number + 1
                codes[number, found] = code
                found += 1
        counts[number] = found


@jit
def _text_of(content: Bytes, ends: Ints, columns: int, row: int, text: Bytes) -> int:
    """Copy the beginning of the text of an item; give its length, or -1 if it is not ASCII."""
    length = 0
    for column in range(columns):
        if column and length < len(text) - 1:
            text[length] = LINE
            length += 1
        place = row * columns + column
        for at in range(ends[place], ends[place + 1]):
            if length == len(text) - 1:
                return length
            if content[at] >= 128:
                return -1
            text[length] = content[at]
            length += 1
    return length
