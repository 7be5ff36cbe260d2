"""From what was heard to a label: how transcripts of spoken commands are read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import Field

from masa.clients import Context
from masa.clients.services.service import FileOptions, FileService, Names
from masa.clients.sounds import sound_of
from masa.errors import ConfigError, Rejected
from masa.records import Item, Reply

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
"""A label that is a digit is also heard as its English name, and a name as its digit."""

HESITATION = re.compile(r"%HESITATION|<unk>|\[[^\]]*\]", re.IGNORECASE)
"""What some services write where they heard something that is no word."""

LONGEST = 60.0
"""Seconds that a sound may last."""


class SpeechOptions(FileOptions):
    """The keys of `[api]` that all services have that are sent sounds."""

    longest: float = Field(default=LONGEST, gt=0, le=LONGEST)
    """seconds that a sound may last; longer ones are refused before anything is spent"""
    billing_seconds: float | None = Field(default=None, gt=0, le=3600)
    """sounds are billed in steps of so many seconds, in place of those of the table"""


class Transcripts:
    """The label that each transcript is."""

    def __init__(self, labels: Sequence[str], given: Mapping[str, str], *, nothing: str) -> None:
        """Take what the user says a transcript means; else a label is heard as it is written."""
        self._nothing = nothing
        self._label_of: dict[str, str] = {}
        for label in labels:
            for heard in _heard(label):
                if self._label_of.setdefault(heard, label) != label:
                    raise ConfigError(
                        f"the labels {self._label_of[heard]!r} and {label!r} are heard alike",
                        hint="rename one of them",
                    )
        self._label_of |= {plain(heard): label for heard, label in given.items()}

    def read(self, transcript: str, confidence: float | None, *, cost: int | None) -> Reply:
        """Read a transcript: a label, nothing, or words that are no label."""
        said = plain(transcript)
        if not said:
            return Reply(self._nothing, confidence, cost=cost)
        label = self._label_of.get(said)
        if label is None:
            # "for ward" is the label "forward".
            label = self._label_of.get(said.replace(" ", ""))
        unread = "unknown label" if label is None else None
        return Reply(label, confidence, cost=cost, unread=unread, said=transcript.strip())


def plain(transcript: str) -> str:
    """Remove what does not matter in a transcript: case, punctuation, hesitation, spaces.

    >>> plain(" Turn on. "), plain("%HESITATION")
    ('turn on', '')
    """
    words = HESITATION.sub(" ", transcript).casefold()
    return " ".join(re.sub(r"[^\w\s'+-]", " ", words).split())


def _heard(label: str) -> list[str]:
    """Give the ways in which a label may be transcribed."""
    said = plain(label.replace("_", " "))
    ways = [said]
    if said.isdecimal() and len(said) == 1:
        ways.append(DIGITS[int(said)])
    elif said in DIGITS:
        ways.append(str(DIGITS.index(said)))
    return ways


class SpeechService(FileService):
    """A client of a service that writes down what is spoken."""

    what = "sound files"
    mend = "convert it to a kind that it takes, cut it, or leave its row out of the data"
    kinds: Sequence[str] = ()

    def __init__(self, options: SpeechOptions, context: Context) -> None:
        super().__init__(options, Names({}), context)
        self._longest = options.longest
        if options.billing_seconds is not None:
            self.tariff = replace(self.tariff, step=Fraction(str(options.billing_seconds)))
        self.transcripts = Transcripts(context.labels, options.labels, nothing=options.nothing)

    def quantity(self, item: Item) -> float:
        """Give the seconds of the sound, or the most that they may be."""
        path = self.files.path(item)
        sound = None if path is None else sound_of(path)
        return self._longest if sound is None else min(sound.seconds, self._longest)

    async def read(self, item: Item) -> bytes:
        """Read the sound about an item."""
        content = await self.files.read(item)
        if why := self.refused(content):
            raise Rejected(f"its sound {why}", billed=False)
        return content

    def cost(self, item: Item, content: bytes) -> int:
        """Give what a sound costs, in billionths: one from the web says how long it is by now."""
        sound = sound_of(content)
        if sound is None or not self.priced:
            return self.price(item)
        return self.tariff.cost(min(sound.seconds, self._longest))

    def how_read(self, options: SpeechOptions) -> dict[str, Any]:
        """Describe how transcripts become labels."""
        return {"labels": options.labels, "nothing": options.nothing}

    def refused(self, content: Path | bytes) -> str:
        """Say why a sound is not sent; empty if it is."""
        if why := super().refused(content):
            return why
        sound = sound_of(content)
        if sound is None:
            return "does not say how long it lasts, or is damaged, and seconds are billed"
        if sound.seconds > self._longest:
            return f"lasts {sound.seconds:,.1f} s, and longest in [api] is {self._longest:g} s"
        return ""
