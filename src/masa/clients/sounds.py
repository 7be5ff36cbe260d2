"""How long a sound lasts, as its file says: services of speech bill by the second."""

import io
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

OGG_END = 1 << 16
"""The last page of an OGG file begins within so many bytes of its end."""

LEAST_BYTES_A_SECOND = 1_000
"""No usual way of compressing speech needs fewer."""

PLAIN = (1, 3, 6, 7, 0xFFFE)
"""Kinds of WAV files in which every sample has the same number of bytes."""

FIXED_RATE = 48_000
"""Samples a second in which Opus counts, whatever was recorded."""


@dataclass(frozen=True, slots=True)
class Sound:
    """What the file of a sound says of itself."""

    samples_a_second: int
    seconds: float


def sound_of(content: Path | bytes) -> Sound | None:
    """Look into a WAV, FLAC or OGG file; None where it does not say how long it lasts.

    >>> sound_of(b"no sound") is None
    True
    """
    try:
        with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file:
            found = _looked_into(file)
    except (OSError, struct.error, ValueError, ZeroDivisionError):
        return None
    if found is None or found.seconds <= 0 or found.samples_a_second <= 0:
        return None
    return found


def most_seconds(path: Path) -> float:
    """Give the most that a sound can last: what its file says, else by its size."""
    found = sound_of(path)
    return path.stat().st_size / LEAST_BYTES_A_SECOND if found is None else found.seconds


def _looked_into(file: BinaryIO) -> Sound | None:
    first = file.read(12)
    if first[:4] == b"RIFF" and first[8:] == b"WAVE":
        return _wav(file)
    if first[:4] == b"fLaC":
        return _flac(first + file.read(30))
    if first[:4] == b"OggS":
        return _ogg(first + file.read(100), file)
    return None


def _wav(file: BinaryIO) -> Sound | None:
    """Walk through the chunks up to the samples.

    A program that writes into a pipe does not know how many there will be: it writes none, or the
    largest number. Then they go on to the end of the file.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(12)
    rate = bytes_a_second = 0
    while header := file.read(8):
        name, length = struct.unpack("<4sI", header)
        begin = file.tell()
        if name == b"data":
            rest = size - begin
            return Sound(rate, (length if 0 < length <= rest else rest) / bytes_a_second)
        if name == b"fmt ":
            kind, _, rate, average, together, _ = struct.unpack("<HHIIHH", file.read(16))
            bytes_a_second = rate * together if kind in PLAIN else average
        file.seek(begin + length + length % 2)
    return None


def _flac(head: bytes) -> Sound:
    """Read the first block, which has the rate in 20 bits and the samples in 36."""
    numbers = int.from_bytes(head[18:26], "big")
    rate, samples = numbers >> 44, numbers & ((1 << 36) - 1)
    return Sound(rate, samples / rate)


def _ogg(head: bytes, file: BinaryIO) -> Sound | None:
    """Read how many samples the last page says there are."""
    if (vorbis := head.find(b"\x01vorbis")) >= 0:
        rate, skipped = struct.unpack_from("<I", head, vorbis + 12)[0], 0
    elif (opus := head.find(b"OpusHead")) >= 0:
        rate, skipped = FIXED_RATE, struct.unpack_from("<H", head, opus + 10)[0]
    else:
        return None
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - OGG_END))
    end = file.read()
    (samples,) = struct.unpack_from("<q", end, end.rindex(b"OggS") + 6)
    return Sound(rate, (samples - skipped) / rate)
