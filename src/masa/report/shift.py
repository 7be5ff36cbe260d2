"""How a confusion matrix changed: a heat map, and the mistakes that changed most."""

from rich.console import Group, RenderableType
from rich.text import Text

from masa.records import Matrix, Shift
from masa.report.tables import table
from masa.report.words import brief

MOST_LABELS = 16
"""A heat map of more labels, or predictions, shows those that changed most."""

STRONG = 0.5
"""A share of the largest change: more is shown with a coloured background."""

SMALLEST = 0.0005
"""A change of less than this would be shown as 0.0 points; it is a dot."""


def heat_map(shift: Shift) -> RenderableType:
    """Show the change of the matrix in points of all items, red for worse and green for better."""
    rows, columns = _largest(shift)
    title = "Change of the confusion matrix, in points of all items"
    if len(rows) * len(columns) < shift.values.size:
        title += " (the rows and columns that changed most)"
    map_table = table("label \\ answer", *(brief(shift.new.predictions[j]) for j in columns))
    largest_change = max(1e-12, float(abs(shift.values).max()))
    for i in rows:
        label = shift.new.labels[i]
        cells = []
        for j in columns:
            is_right = label == shift.new.predictions[j]
            cells.append(_cell(float(shift.values[i, j]), largest_change, is_right=is_right))
        map_table.add_row(Text(brief(label)), *cells)
    return Group(Text(title), map_table)


def _cell(change: float, largest_change: float, *, is_right: bool) -> Text:
    """Write one change; more right answers and fewer mistakes are better."""
    strength = abs(change) / largest_change
    if abs(change) < SMALLEST:
        return Text(".", style="dim")
    style = "red"
    if (change > 0) == is_right:
        style = "green"
    if strength > STRONG:
        style = f"bold white on {style}"
    return Text(f"{100 * change:+.1f}", style=style)


def _largest(shift: Shift) -> tuple[list[int], list[int]]:
    """Return the rows and columns that changed most, in their own order."""
    size = abs(shift.values)
    rows = sorted(range(size.shape[0]), key=lambda i: -size[i].sum())[:MOST_LABELS]
    columns = sorted(range(size.shape[1]), key=lambda j: -size[:, j].sum())[:MOST_LABELS]
    return sorted(rows), sorted(columns)


def largest_mistakes(shift: Shift, *, most: int) -> list[tuple[str, str]]:
    """Return label and prediction of the mistakes whose share changed most, the largest first."""
    entries = []
    for row, label in zip(shift.values.tolist(), shift.new.labels, strict=True):
        for change, prediction in zip(row, shift.new.predictions, strict=True):
            if label != prediction and change:
                entries.append((-abs(change), label, prediction))
    return [(label, prediction) for _, label, prediction in sorted(entries)[:most]]


def rate(matrix: Matrix, label: str, prediction: str) -> float:
    """Return the share of a label's items that get this prediction."""
    if prediction not in matrix.predictions:
        return 0.0
    row = matrix.values[matrix.labels.index(label)]
    return float(row[matrix.predictions.index(prediction)] / row.sum())
