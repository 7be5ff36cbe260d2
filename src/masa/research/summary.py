"""What the experiments found, on the terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.report.terminal import COLUMNS_ACROSS, ROWS_DOWN
from masa.report.words import plain, written
from masa.research.finding import Finding


def findings(found: Sequence[Finding]) -> RenderableType:
    """Lay out what experiments found: their words, and the tables that are short and narrow."""
    parts: list[RenderableType] = []
    for finding in found:
        parts += [Text(finding.title, style="bold"), Text("")]
        parts += [Text(f"skipped: {finding.skipped}\n")] if finding.skipped else []
        for sheet in finding.sheets:
            if len(sheet.rows) <= ROWS_DOWN and len(sheet.head) <= COLUMNS_ACROSS:
                table = Table(box=None, pad_edge=False)
                for at, column in enumerate(sheet.head):
                    table.add_column(column.strip(), justify="right" if at else "left")
                for row in sheet.rows:
                    table.add_row(*(plain(written(value)) for value in row))
                parts += [table, Text("")]
        parts += [Text(f"{plain(words)}\n") for words in finding.words]
    return Group(*parts)
