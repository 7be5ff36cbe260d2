"""Charts of the experiments, drawn with Altair from the tables of their findings.

`curves` draws lines against the number of queries, `matrices` confusion matrices and shifts,
`points` one mark per case or API; `names` and `colours` keep these the same in all charts. Nothing
here computes a result or writes a file. Altair is an optional package, so it is imported only where
something is drawn.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from masa.research.figures import curves, matrices, points
from masa.research.figures.curves import Rows
from masa.research.finding import Finding

__all__ = ["DRAWN", "draw"]

DRAWN: dict[str, Callable[[Mapping[str, Rows]], Any]] = {
    "datasets": points.datasets,
    "overview": matrices.overview,
    "case-study": matrices.case_study,
    "table1": points.table1,
    "tradeoffs": curves.tradeoffs,
    "levels": curves.levels,
    "convergence": curves.convergence,
    "shifts": matrices.shifts,
    "speed": points.speed,
}
"""The chart of each experiment, from the rows of its tables by name of the table."""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML, and so an SVG file, cannot hold."""


def draw(finding: Finding) -> Any:
    """Draw a finding; None if there is nothing to see."""
    if finding.skipped or finding.what not in DRAWN:
        return None
    if not any(sheet.rows for sheet in finding.sheets):
        return None
    tables = {}
    for sheet in finding.sheets:
        tables[sheet.name] = [
            dict(zip(sheet.head, map(_drawable, row), strict=True)) for row in sheet.rows
        ]
    chart = DRAWN[finding.what](tables)
    if chart is None:
        return None
    return (
        chart.properties(title=finding.title)
        .configure_view(strokeOpacity=0)
        .configure_axis(
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            gridColor="#e6e6e6",
            domainColor="#888888",
        )
        .configure_title(fontSize=14, anchor="start", offset=12)
        .configure_header(labelFontSize=12)
    )


def _drawable(value: Any) -> Any:
    if isinstance(value, str):
        return NOT_XML.sub("\ufffd", value)
    return value
