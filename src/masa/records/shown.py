"""How results show themselves in a notebook: by the room that reports, which is above this one.

The records know that it exists, by its name, and nothing else of it.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

REPORT = "masa.report.notebook"


class Shown:
    """A result that a notebook shows, that can be drawn and written to a page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return str(_asked("as_html", self))

    def plot(self, what: str = "") -> Any:
        """Draw it, as an Altair chart."""
        return _asked("plot", self, what)

    def to_html(self, path: "str | Path | None" = None) -> str:
        """Return it as a page of its own, and write it to a file if one is named."""
        page = str(_asked("page", self))
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page


def _asked(what: str, *given: Any) -> Any:
    return getattr(import_module(REPORT), what)(*given)
