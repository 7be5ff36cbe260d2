"""What an experiment found: tables, and what they say in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of results."""

    name: str
    head: tuple[str, ...]
    rows: tuple[Sequence[Any], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What an experiment found."""

    what: str
    title: str
    words: tuple[str, ...]
    """paragraphs, for people to read"""
    sheets: tuple[Sheet, ...]
    skipped: str = ""
    """why it could not be carried out"""

    def to_dict(self) -> dict[str, Any]:
        """Give what JSON shows."""
        if self.skipped:
            return {"title": self.title, "skipped": self.skipped}
        sheets = {
            sheet.name: [dict(zip(sheet.head, row, strict=True)) for row in sheet.rows]
            for sheet in self.sheets
        }
        return {"title": self.title, "words": list(self.words), "tables": sheets}
