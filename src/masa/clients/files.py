"""Images and sounds that are sent to an API: read when they are asked about, and never stored.

The input column holds the name of a file, relative to the folder of the data, or a URL. What lies
outside that folder is read only if the user allows it: a data file may be a stranger's, and
whatever it names would be sent to the API.
"""

import base64
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from masa.clients.web import Web
from masa.errors import ConfigError, DataError, Rejected
from masa.records import Item

ALLOW = "outside = true in [api] allows it, if you trust the data"

UNKNOWN = "application/octet-stream"

KINDS = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
    b"II*\0": "image/tiff",
    b"MM\0*": "image/tiff",
    b"RIFF": "audio/wav",
    b"fLaC": "audio/flac",
    b"OggS": "audio/ogg",
    b"ID3": "audio/mpeg",
}
"""What a file is, by its first bytes."""


class Files:
    """The files that a column of inputs names."""

    def __init__(
        self, column: str, *, folder: Path | None, outside: bool, most: int, web: Web | None = None
    ) -> None:
        """Take the folder of the data, the most bytes of a file, and what fetches URLs.

        Without `web`, URLs are left to the API.
        """
        self.column = column
        self._folder = folder
        self._outside = outside
        self._most = most
        self._web = web

    def name(self, item: Item) -> str:
        """Give what the column holds for an item."""
        return item.inputs[self.column].strip()

    def url(self, item: Item) -> str | None:
        """Give the URL that the item names, if it is one."""
        name = self.name(item)
        return name if is_url(name) else None

    def check(self, items: Iterable[Item]) -> None:
        """Raise for the first file that cannot be sent: missing, too large, or outside."""
        for item in items:
            if self.url(item) is None:
                self._found(item)
            elif self._web is not None and not self._outside:
                raise DataError(f"{self.where(item)} is a URL, which masa would fetch", hint=ALLOW)

    def size(self, item: Item) -> int:
        """Give the bytes of the file about an item, or the most that it may have."""
        if self.url(item) is not None:
            return self._most
        return self._found(item).stat().st_size

    def path(self, item: Item) -> Path | None:
        """Give the file about an item, or None where it is a URL."""
        return self._found(item) if self.url(item) is None else None

    async def read(self, item: Item) -> bytes:
        """Read the file about an item, or fetch it from its URL."""
        url = self.url(item)
        if url is not None:
            if self._web is None or not self._outside:
                raise Rejected("a URL that may not be fetched", billed=False)
            return await self._web.fetch(url, most=self._most)
        try:
            # Checked again: the file may have been replaced since.
            with self._found(item).open("rb") as file:
                content = file.read(self._most + 1)
        except (DataError, OSError) as exc:
            raise Rejected("its file cannot be read any more", billed=False) from exc
        if len(content) > self._most:
            raise Rejected(f"its file is larger than {in_words(self._most)}", billed=False)
        return content

    def _found(self, item: Item) -> Path:
        """Find the file that an item names; raise where it may not be sent."""
        name = self.name(item)
        folder = (self._folder or Path.cwd()).resolve()
        try:
            path = (folder / name).resolve()
            found = path.stat()
        except (OSError, ValueError, RuntimeError) as exc:
            raise DataError(
                f"{self.where(item)} is no file that can be read",
                hint=f"names are relative to the folder of the data, {folder}",
            ) from exc
        if not self._outside and not path.is_relative_to(folder):
            raise DataError(f"{self.where(item)} lies outside the folder {folder}", hint=ALLOW)
        # A pipe or a device may never come to its end.
        if not stat.S_ISREG(found.st_mode) or not os.access(path, os.R_OK):
            raise DataError(
                f"{self.where(item)} is not a file that can be read",
                hint="give names of files",
            )
        if not found.st_size:
            raise DataError(f"{self.where(item)} has 0 bytes", hint="leave its row out of the data")
        if found.st_size > self._most:
            raise DataError(
                f"{self.where(item)} has {found.st_size:,} bytes; "
                f"the API takes at most {in_words(self._most)}",
                hint="make the file smaller, or leave the row out of the data",
            )
        return path

    def where(self, item: Item) -> str:
        """Say where an item names its file."""
        return f"column {self.column!r}: {self.name(item)[:200]!r}"


def is_url(name: str) -> bool:
    """Say whether an input is the address of a file in the web.

    >>> is_url("https://example.com/a.png"), is_url("faces/a.png")
    (True, False)
    """
    return name.lower().startswith(("http://", "https://"))


def kind_of(content: Path | bytes) -> str:
    """Tell what a file is by its first bytes.

    >>> kind_of(b"RIFF....WAVE"), kind_of(b"?")
    ('audio/wav', 'application/octet-stream')
    """
    if isinstance(content, Path):
        with content.open("rb") as file:
            content = file.read(12)
    if content[8:12] == b"WEBP":  # It begins with RIFF, as WAV files do.
        return "image/webp"
    for first, kind in KINDS.items():
        if content.startswith(first):
            return kind
    return UNKNOWN


def in_base64(content: bytes) -> str:
    """Write bytes as base64 text."""
    return base64.b64encode(content).decode()


def only_column(inputs: tuple[str, ...], *, client: str, what: str) -> str:
    """Give the one input column that a service reads."""
    if len(inputs) != 1:
        raise ConfigError(
            f"{client} reads one column, and {len(inputs)} are named",
            hint=f"name the column of {what}: --input COL, or input in [data]",
        )
    return inputs[0]


def in_words(size: int) -> str:
    """Write a number of bytes.

    >>> in_words(6 << 20), in_words(2_000_000)
    ('6 MiB', '2 MB')
    """
    if size % (1 << 20) == 0:
        return f"{size >> 20} MiB"
    return f"{size / 1e6:g} MB"
