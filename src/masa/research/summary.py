"""Findings of the experiments, laid out for the terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.report.terminal import COLUMNS_ACROSS, ROWS_DOWN
from masa.report.words import plain, written
from masa.research.finding import Finding, Sheet


def findings(found: Sequence[Finding]) -> RenderableType:
    """Lay out findings: their words, and their tables if these are short and narrow."""
    parts: list[RenderableType] = []
    for finding in found:
        parts += [Text(finding.title, style="bold"), Text("")]
        if finding.skipped:
            parts.append(Text(f"skipped: {finding.skipped}\n"))
        for sheet in finding.sheets:
            # Larger tables are in their CSV files.
            if len(sheet.rows) <= ROWS_DOWN and len(sheet.head) <= COLUMNS_ACROSS:
                parts += [_table(sheet), Text("")]
        parts += [Text(f"{plain(words)}\n") for words in finding.words]
    return Group(*parts)


def _table(sheet: Sheet) -> Table:
    table = Table(box=None, pad_edge=False)
    first, *others = sheet.head
    table.add_column(first.strip(), justify="left")
    for column in others:
        table.add_column(column.strip(), justify="right")
    for row in sheet.rows:
        table.add_row(*(plain(written(value)) for value in row))
    return table
