"""How long a sound lasts, as its file says: services of speech bill by the second."""

import io
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

PLAIN = (1, 3, 6, 7, 0xFFFE)
"""Kinds of WAV files in which every sample has the same number of bytes."""

FIXED_RATE = 48_000
"""Samples a second in which Opus counts, whatever was recorded."""

FIRST_OF_STREAM = 2
"""The flag of the first page of a stream in an OGG file."""

MP3_RATES = (44_100, 48_000, 32_000)
MP3_KBITS = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
MP3_KBITS_OF_LOW_RATES = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
"""What the header of a frame of an MP3 file numbers."""


@dataclass(frozen=True, slots=True)
class Sound:
    """What the file of a sound says of itself."""

    samples_a_second: int
    seconds: float


def sound_of(content: Path | bytes) -> Sound | None:
    """Look into a WAV, FLAC, OGG or MP3 file; None where it does not say how long it lasts.

    >>> sound_of(b"no sound") is None
    True
    """
    try:
        with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file:
            found = _looked_into(file)
    except (OSError, LookupError, struct.error, ValueError, ZeroDivisionError):
        return None
    if found is None or found.seconds <= 0 or found.samples_a_second <= 0:
        return None
    return found


def _looked_into(file: BinaryIO) -> Sound | None:
    first = file.read(12)
    if first[:4] == b"RIFF" and first[8:] == b"WAVE":
        return _wav(file)
    if first[:4] == b"fLaC":
        return _flac(first + file.read(30))
    if first[:4] == b"OggS":
        return _ogg(file)
    if first[:3] == b"ID3" or first[:1] == b"\xff":
        return _mp3(file)
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


def _ogg(file: BinaryIO) -> Sound | None:
    """Add up the streams of an OGG file: one after the other, or at once."""
    rates: dict[int, tuple[int, int]] = {}
    last: dict[int, int] = {}
    file.seek(0)
    while header := file.read(27):
        mark, _, flags, samples, stream, _, _, parts = struct.unpack("<4sBBqIIIB", header)
        if mark != b"OggS":
            return None
        size = sum(file.read(parts))
        if flags & FIRST_OF_STREAM:
            if stream in rates or (found := _rate(file.read(size))) is None:
                return None
            rates[stream] = found
        else:
            file.seek(size, io.SEEK_CUR)
        if samples >= 0:
            last[stream] = samples
    seconds = sum((last[stream] - skipped) / rate for stream, (rate, skipped) in rates.items())
    return Sound(next(iter(rates.values()))[0], seconds)


def _rate(head: bytes) -> tuple[int, int] | None:
    """Read the samples a second of a stream, and how many of the first ones do not count."""
    if head.startswith(b"\x01vorbis"):
        return struct.unpack_from("<I", head, 12)[0], 0
    if head.startswith(b"OpusHead"):
        return FIXED_RATE, struct.unpack_from("<H", head, 10)[0]
    return None


def _mp3(file: BinaryIO) -> Sound | None:
    """Add up the frames, each of which says how long it lasts."""
    file.seek(0)
    head = file.read(10)
    begin = 0
    if head[:3] == b"ID3":
        size = 0
        for part in head[6:10]:
            size = size << 7 | part & 0x7F
        begin = 10 + size + (10 if head[5] & 0x10 else 0)
    file.seek(begin)
    seconds, rate = 0.0, 0
    while len(header := file.read(4)) == 4:
        if header[:3] == b"TAG" or header == b"APET":
            break
        bits = int.from_bytes(header, "big")
        version, layer = bits >> 19 & 3, bits >> 17 & 3
        kbits, which = bits >> 12 & 15, bits >> 10 & 3
        if bits >> 21 != 0x7FF or version == 1 or layer != 1 or kbits in (0, 15) or which == 3:
            return None
        rate = MP3_RATES[which] >> {3: 0, 2: 1, 0: 2}[version]
        samples = 1152 if version == 3 else 576
        table = MP3_KBITS if version == 3 else MP3_KBITS_OF_LOW_RATES
        seconds += samples / rate
        size = samples * 125 * table[kbits] // rate + (bits >> 9 & 1)
        file.seek(size - 4, io.SEEK_CUR)
    return Sound(rate, seconds)
