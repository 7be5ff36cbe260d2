"""How long sounds last, by their files: services of speech bill by the second."""

import struct
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from test_services import ask, write_silence

import masa
from doubled import QUICK, case
from masa.clients.sounds import sound_of
from masa.doubles.server import Double
from masa.records import BILLION

# What flac, opusenc and oggenc wrote first and last of 1.5 s of silence.
FLAC = "664c614300000022100010000002610002d203e800f000005dc04510fd2560996d8c8e1e3f5c52ffbed5"
OPUS = (
    "4f6767530002000000000000000062efdc03000000008a43696e01134f7075734865616401013801803e0000000000",
    "4f6767530004781a01000000000062efdc03030000009d37f6da1a",
)
VORBIS = (
    "4f6767530002000000000000000"
    "05273204a00000000e9f87093011e01766f726269730000000001803e00000000000080bb000000000000a901",
    "4f6767530004c05d0000000000005273204a02000000ed8846e831",
)


MP3_FRAME = bytes([0xFF, 0xF3, 0x84, 0xC4]) + bytes(188)
"""Of 64 kbit/s and 24 kHz: 24 ms."""


def ogg(first: str, last: str, between: int = 0) -> bytes:
    """Write an OGG file of the first and the last page that a program wrote, and pages between."""
    flagless = struct.pack("<4sBBqIIIB", b"OggS", 0, 0, 100, 0, 1, 0, 4) + bytes([250] * 4)
    stream = bytes.fromhex(first)[14:18]
    middle = (flagless[:14] + stream + flagless[18:] + bytes(1000)) * between
    end = bytes.fromhex(last)
    return bytes.fromhex(first) + middle + end + bytes(end[26])


def wav(data: int, *, says: int | None = None, kind: int = 1, bits: int = 16) -> bytes:
    """Write a WAV file of 16 kHz, mono, with so many bytes of samples."""
    together = bits // 8
    head = struct.pack("<HHIIHH", kind, 1, 16_000, 16_000 * together, together, bits)
    noted = b"LIST" + struct.pack("<I", 5) + b"notes\x00"
    length = struct.pack("<I", data if says is None else says)
    return (
        b"RIFF\xff\xff\xff\xffWAVE" + b"fmt " + struct.pack("<I", 16) + head + noted + b"data"
        + length + bytes(data)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "seconds"),
    [
        (wav(48_000), 1.5),
        (wav(48_000, says=0), 1.5),  # Written into a pipe.
        (wav(48_000, says=0xFFFFFFFF), 1.5),
        (wav(48_000, says=64_000), 1.5),
        (wav(48_000) + b"LIST\x04\x00\x00\x00more", 1.5),
        (wav(24_000, kind=7, bits=8), 1.5),
        (wav(96_000, kind=3, bits=32), 1.5),
        (bytes.fromhex(FLAC), 1.5),
        (ogg(*OPUS, between=100), 1.5),
        (ogg(*VORBIS, between=1), 1.5),
        (ogg(*OPUS) + ogg(*VORBIS), 3.0),  # One after the other in a file.
        (MP3_FRAME * 250, 6.0),
        (b"ID3\x04\0\0\0\0\1\0" + bytes(128) + MP3_FRAME * 250 + b"TAG" + bytes(125), 6.0),
    ],
)
def test_a_sound_lasts_as_long_as_its_samples(content: bytes, seconds: float) -> None:
    found = sound_of(content)
    assert found is not None
    assert found.seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"RIFF",
        b"RIFF....WAVE",
        wav(48_000)[:30],
        wav(0),
        wav(48_000).replace(struct.pack("<I", 16_000), bytes(4)),
        bytes.fromhex(FLAC)[:20],
        b"OggS" + bytes(200),
        bytes.fromhex(OPUS[0]),
        bytes.fromhex(FLAC)[:21] + bytes(21),  # Written into a pipe.
        ogg(*OPUS) + ogg(*OPUS),
        b"ID3" + bytes(5000),
        MP3_FRAME + b"?" * 500,
        b"\xff",
    ],
)
def test_a_file_that_does_not_say_how_long_it_lasts(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "sound").write_bytes(content)
    assert sound_of(content) is None
    assert sound_of(tmp_path / "sound") is None


def test_a_sound_of_unknown_size_in_its_file_is_billed_for_what_it_has(tmp_path: Path) -> None:
    with case("google-speech", count=60) as found:
        found.folder = tmp_path
        (tmp_path / "pipe.wav").write_bytes(wav(48_000, says=0xFFFFFFFF))
        item = masa.Item(0, {"input": "pipe.wav"})
        assert found.client().price(item) == round(2 * 0.016 / 60 * BILLION + 0.5)


@pytest.mark.parametrize(
    ("service", "name", "content", "wrong"),
    [
        ("google-speech", "long.wav", wav(32_000 * 61), "lasts 61.0 s, and longest in [api] is"),
        ("google-speech", "ten.mp3", MP3_FRAME * 25_000, "lasts 600.0 s"),
        ("google-speech", "pipe.flac", bytes.fromhex(FLAC)[:21] + bytes(21), "how long it lasts"),
        ("google-speech", "text.wav", b"no sound at all", "or is damaged"),
        ("microsoft-speech", "a.flac", bytes.fromhex(FLAC), "is audio/flac; microsoft-speech"),
        ("ibm-speech", "long.wav", wav(32_000 * 61), "lasts 61.0 s"),
    ],
)
def test_what_a_service_does_not_take_is_refused_before_anything_is_spent(
    service: str, name: str, content: bytes, wrong: str, tmp_path: Path
) -> None:
    with case(service, count=60) as found:
        for number in range(40):
            write_silence(tmp_path / f"{number}.wav", 0.5)
        (tmp_path / name).write_bytes(content)
        found.folder = tmp_path
        names = [f"{number}.wav" for number in range(40)] + [name]
        data = masa.Dataset.of(["yes", "no"] * 20 + ["no"], inputs={"input": names})
        with pytest.raises(masa.DataError) as caught:
            masa.baseline(data, found.client(), budget=100, store=None, limits=QUICK)
        assert wrong in str(caught.value)
        assert found.double.asked == 0
        if service == "ibm-speech":
            cost = ask(found.client(longest=120), name)[0].cost
            assert cost == pytest.approx(61 * 0.02 / 60 * BILLION, abs=1)


class Sounds(Double):
    """A place in the web where sounds are."""

    content = wav(32_000)

    def routes(self) -> Any:
        return [("/a.wav", self._sound)]

    async def _sound(self, _: web.Request) -> web.StreamResponse:
        return web.Response(body=self.content)


def test_a_sound_from_the_web_is_billed_by_its_length_once_it_is_there() -> None:
    with Sounds() as there, case("google-speech", count=60) as found:
        assert isinstance(there, Sounds)
        client = found.client(outside=True, longest=30)
        url = f"{there.url}/a.wav"
        per_second = 0.016 / 60 * BILLION
        assert client.price(masa.Item(0, {"input": url})) == pytest.approx(30 * per_second, abs=1)
        assert ask(client, url)[0].cost == pytest.approx(per_second, abs=1)
        there.content = wav(32_000 * 31)
        with pytest.raises(masa.Rejected, match="lasts 31") as caught:
            ask(found.client(outside=True, longest=30), url)
        assert not caught.value.billed
        assert len(found.double.calls) == 1
