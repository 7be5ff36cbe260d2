"""Results in the terminal: print what the other files of this room lay out, and list runs."""

from collections.abc import Mapping
from io import StringIO
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from masa.report.assessment import assessment, baseline
from masa.report.forecast import forecast
from masa.report.replay import estimate, replay
from masa.report.shift import heat_map, largest_mistakes
from masa.report.tables import table
from masa.report.words import percent, plain
from masa.storage.history import Run

__all__ = [
    "COLUMNS_ACROSS",
    "ROWS_DOWN",
    "Printer",
    "as_text",
    "assessment",
    "baseline",
    "estimate",
    "forecast",
    "heat_map",
    "largest_mistakes",
    "replay",
    "runs",
    "show",
    "verified",
]

ROWS_DOWN, COLUMNS_ACROSS = 16, 12
"""The most rows and columns of a table in the summary of the paper's study."""

WIDE = 200
"""The width of output into a pipe or a file."""


class Printer(Console):
    """A console that lets the command decide what happens when the reader is gone."""

    def on_broken_pipe(self) -> None:
        """Do not exit with code 1, which is a verdict."""
        raise BrokenPipeError


def show(content: RenderableType, *, width: int | None = None) -> None:
    """Print to standard output; into a pipe or a file at full width and without colour."""
    console = Printer(highlight=False, markup=False, emoji=False, width=width)
    if not console.is_terminal and width is None:
        console = Printer(highlight=False, markup=False, emoji=False, width=WIDE)
    console.print(content)


def as_text(content: RenderableType) -> str:
    """Write what would be printed, for a file."""
    out = StringIO()
    Printer(file=out, highlight=False, markup=False, emoji=False, width=WIDE).print(content)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def verified(found: Mapping[str, Any]) -> RenderableType:
    """Tell what came of computing a result again."""
    parts = [
        Text("VERIFIED", "bold green")
        if found["verified"]
        else Text("NOT VERIFIED: the result does not follow from this evidence", "bold red")
    ]
    for title, key in (
        ("Computed again and the same", "agreed"),
        ("Not the same", "differs"),
        ("Not checked", "unchecked"),
    ):
        if found[key]:
            parts += [Text(f"{title}:"), *(Text(f"  {plain(line)}") for line in found[key])]
    return Group(*parts)


def runs(found: list[Run], baselines: set[int]) -> RenderableType:
    """List runs: what they were, and what came of them."""
    rows = table()
    for name in ("run", "kind", "name", "started", "state", "verdict", "right answers", "queries"):
        rows.add_column(name, no_wrap=True)
    for run in found:
        result = run.result or {}
        state = f"not finished ({run.stopped})"
        if run.finished:
            state = "finished"
        said = []
        if result.get("verdict"):
            said.append(result["verdict"])
        if run.id in baselines:
            said.append("baseline now")
        queries = ""
        if "queries" in result:
            queries = f"{result['queries']:,}"
        rows.add_row(
            str(run.id),
            run.kind,
            run.name,
            run.created[:16].replace("T", " "),
            state,
            ", ".join(said),
            _accuracy(result.get("accuracy")),
            queries,
        )
    return rows


def _accuracy(value: "dict[str, float] | float | None") -> str:
    """Write the accuracy in the result of a baseline, or the new one of an assessment."""
    if value is None:
        return ""
    if isinstance(value, dict):
        value = value["new"]
    return percent(value)
