"""What an experiment returns: tables, and what they say in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of results."""

    name: str
    head: tuple[str, ...]
    """the names of the columns"""
    rows: tuple[Sequence[Any], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of an experiment."""

    what: str
    """the experiment's name, as users type it"""
    title: str
    words: tuple[str, ...]
    """paragraphs for people to read"""
    sheets: tuple[Sheet, ...]
    skipped: str = ""
    """why the experiment could not be carried out; empty if it was"""

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON shows."""
        if self.skipped:
            return {"title": self.title, "skipped": self.skipped}
        sheets = {
            sheet.name: [dict(zip(sheet.head, row, strict=True)) for row in sheet.rows]
            for sheet in self.sheets
        }
        return {"title": self.title, "words": list(self.words), "tables": sheets}
