"""The kinds of reports, by name and by the ending of a file: the same facts in each."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masa.errors import UsageError

if TYPE_CHECKING:  # The command line lists the kinds before anything heavy is loaded.
    from masa.records import Assessment, Baseline

FORMATS = {
    "text": ".txt",
    "json": ".json",
    "html": ".html",
    "markdown": ".md",
    "junit": ".xml",
    "csv": ".csv",
    "svg": ".svg",
    "png": ".png",
    "bundle": ".zip",
}
"""The kinds of reports, and the ending of a file of each."""

PICTURES = ("svg", "png")

ALSO = {".htm": "html", ".markdown": "markdown"}
"""Other endings."""

OF_BASELINES = ("text", "json", "html")
"""The kinds of reports that baselines have."""


def chosen(name: str | None, output: Path | None) -> str:
    """Choose the kind of report: what is named, else by the ending of the file, else text.

    >>> chosen(None, Path("report.html")), chosen("markdown", Path("summary")), chosen(None, None)
    ('html', 'markdown', 'text')
    """
    if name is not None:
        return name
    if output is None:
        return "text"
    of_ending = {ending: kind for kind, ending in FORMATS.items()} | ALSO
    kind = of_ending.get(output.suffix.lower())
    if kind is None:
        raise UsageError(
            f"{output} does not say what kind of report it is",
            hint=f"end its name in {', '.join(FORMATS.values())}, or give --format",
        )
    return kind


def written(found: "Assessment | Baseline", kind: str) -> str:
    """Write a result as a text of this kind."""
    from masa.records import Baseline
    from masa.report import html, junit, listed, markdown

    if isinstance(found, Baseline):
        if kind not in OF_BASELINES:
            raise UsageError(
                f"run {found.run} is a baseline, and has no report as {kind}",
                hint=f"there are {', '.join(OF_BASELINES)}",
            )
        return html.baseline(found) if kind == "html" else _json(found.to_dict())
    ways: dict[str, Callable[[Assessment], str]] = {
        "html": html.assessment,
        "markdown": markdown.assessment,
        "junit": junit.assessment,
        "csv": listed.entries,
        "json": lambda one: _json(one.to_dict()),
    }
    return ways[kind](found)


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def save(text: str, path: Path) -> None:
    """Write a report to a file."""
    if not path.parent.is_dir():
        raise UsageError(
            f"there is no folder {path.parent} to write {path.name} into", hint="make it first"
        )
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as exc:
        raise UsageError(
            f"{path} cannot be written: {exc.strerror or exc}", hint="give another place"
        ) from exc


def refuse_to_replace(output: Path | None, kept: Iterable[Path]) -> None:
    """Raise if a file that is to be written is one that masa needs: data, settings, a store."""
    for other in kept:
        if output is not None and output.exists() and other.exists() and output.samefile(other):
            raise UsageError(
                f"{output} is read by masa, and would be replaced", hint="give another place"
            )
