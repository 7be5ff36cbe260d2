"""A published data set in memory, and the checks that all layouts share."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from masa.data.dataset import MAX_LABELS
from masa.errors import DataError
from masa.records import RESERVED

PREDICTION, CONFIDENCE = ".prediction", ".confidence"
"""The endings of the columns that hold an API's answers and its confidences."""
DOWNLOAD = "download it again"
"""The hint for a download that is damaged."""
PARTIAL = "download it again, or leave out what is not there with --partial"
"""The hint for a download of which something is missing."""
ALIASES = {
    "audiomnist": "amnist",
    "cmd": "command",
    "fer+": "ferplus",
    "fer": "ferplus",
    "affectnet": "afnet",
}
"""Other names of the paper's data sets."""
MOST_LISTED = 10
"""Ids or labels that a message lists at most."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What one API answered about every item of a data set, on one day."""

    api: str
    predictions: Sequence[str | None]
    """one per item; None where the answer could not be read"""
    confidences: Sequence[float | None] | None = None
    """one per item; None where there is none"""
    date: str = ""
    """empty where it is not known"""
    price: float | None = None
    """US dollars for 10,000 queries"""

    @property
    def name(self) -> str:
        """The name of its columns: API, or API@DATE where the date is known."""
        if not self.date:
            return self.api
        return f"{self.api}@{self.date}"


@dataclass(frozen=True, slots=True)
class Collection:
    """A published data set: labels, and what APIs answered."""

    name: str
    task: str
    ids: Sequence[str]
    labels: Sequence[str]
    recordings: tuple[Recording, ...]
    """those of one API in the order of their dates; none for a data set that is left out"""
    source: str
    """the file or folder it was read from"""
    notes: tuple[str, ...] = ()
    inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """what an API is shown, by column, where the source has it"""


def check(found: Collection) -> None:
    """Refuse names, labels and texts that could not be told apart or read back once written."""
    _check_names(found)
    if not found.ids:
        raise DataError(f"{found.source} holds no items", hint=DOWNLOAD)
    for key, label in zip(found.ids, found.labels, strict=True):
        if not label or label in RESERVED:
            raise DataError(
                f"{found.source}, item {key!r}: {label!r} cannot be a label", hint="rename it"
            )
    if len(set(found.labels)) > MAX_LABELS:
        raise DataError(
            f"{found.source} has more than {MAX_LABELS:,} labels", hint="is it the right column?"
        )
    texts = {*found.ids, *found.labels}
    for recording in found.recordings:
        texts.update(answer for answer in recording.predictions if answer is not None)
    for text in texts:
        # A lone surrogate, which JSON can hold, does not survive this.
        if text != text.encode(errors="replace").decode():
            raise DataError(f"{found.source}: {text!r} cannot be written as UTF-8", hint=DOWNLOAD)


def _check_names(found: Collection) -> None:
    for name in found.inputs:
        if name.casefold() in ("id", "label") or name.endswith((PREDICTION, CONFIDENCE)):
            raise DataError(
                f"{found.source}: {name!r} cannot be kept as it is called", hint="rename the column"
            )
    seen: dict[str, str] = {}
    for recording in found.recordings:
        if not recording.api:
            raise DataError(
                f"{found.source}: an API without a name", hint="name it with letters or digits"
            )
        # Columns that differ in upper and lower case only are one and the same to DuckDB.
        other = seen.setdefault(recording.name.casefold(), recording.name)
        if other != recording.name or sum(one.name == other for one in found.recordings) > 1:
            raise DataError(
                f"{found.source}: two recordings are called {recording.name!r}",
                hint="give each API and date a name of its own",
            )


def refuse_repeated(ids: Sequence[str], where: object) -> None:
    """Refuse empty ids and ids that occur twice."""
    seen: dict[str, int] = {}
    for row, key in enumerate(ids, 1):
        if not key:
            raise DataError(f"{where}, row {row:,}: no id", hint=DOWNLOAD)
        if seen.setdefault(key, row) != row:
            raise DataError(
                f"{where}, row {row:,}: {key!r} again, first in row {seen[key]:,}", hint=DOWNLOAD
            )


def other_items(
    wanted: Sequence[str], found: Mapping[str, object], source: str, other: str, *, partial: bool
) -> list[str]:
    """Refuse answers about other items than the labelled ones, or return a note about them."""
    known = set(wanted)
    missing = [key for key in wanted if key not in found]
    unknown = [key for key in found if key not in known]
    if missing:
        what = f"no answer about {len(missing):,} items of {other}"
    elif unknown:
        what = f"{len(unknown):,} items that {other} does not have"
    else:
        return []
    listed = ", ".join(repr(key) for key in (missing or unknown)[:MOST_LISTED])
    words = f"{source}: {what}: {listed}"
    if not partial:
        raise DataError(words, hint=PARTIAL)
    return [words]


def left_out_note(name: str, kept: int, items: int) -> list[str]:
    """Return a note about items that not every recording has, if there are any."""
    if kept >= items:
        return []
    return [
        f"{name}: {items - kept:,} of {items:,} items are left out: not every recording has them"
    ]


def unknown_label_notes(
    name: str, labels: Sequence[str], recordings: Iterable[Recording]
) -> Iterator[str]:
    """Name the answers that are no item's label."""
    known = set(labels)
    for recording in recordings:
        given = {answer for answer in recording.predictions if answer is not None}
        unknown = sorted(given - known)
        if not unknown:
            continue
        count = sum(answer in unknown for answer in recording.predictions)
        listed = ", ".join(map(repr, unknown[:MOST_LISTED]))
        if len(unknown) > MOST_LISTED:
            listed += ", ..."
        yield (
            f"{name}: {recording.name} answered {listed}, which is no item's label, {count:,} times"
        )


def api_name(name: str) -> str:
    """Name an API in lower-case letters, digits and hyphens.

    >>> api_name("GitHub(DeepSpeech)"), api_name("Face++"), api_name("MS Speech")
    ('github-deepspeech', 'facepp', 'ms-speech')
    """
    return re.sub(r"[^\w.]+", "-", name.strip().lower().replace("++", "pp")).strip("-")


def data_set_name(name: str) -> str:
    """Name a data set as the paper does, else in lower-case letters, digits and hyphens.

    >>> data_set_name("AUDIOMNIST"), data_set_name("My reviews!")
    ('amnist', 'my-reviews')
    """
    plain = re.sub(r"[^\w.+]+", "-", name.strip().lower()).strip("-.") or "data"
    return ALIASES.get(plain, plain)
