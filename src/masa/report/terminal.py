"""Results in the terminal."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.records import Matrix, Replay, Shift


def show(content: RenderableType, *, width: int | None = None) -> None:
    """Print to standard output; into a pipe or a file at full width and without colour."""
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    if not console.is_terminal and width is None:
        console = Console(highlight=False, markup=False, emoji=False, width=200)
    console.print(content)


def replay(result: Replay, *, source: str) -> RenderableType:
    """Lay out a replay: the error at each budget, and the queries for the target with what each method saves."""
    levels = f" (label x level of {result.difficulty})" if result.difficulty else " (one a label)"
    how = "items may be asked again" if result.replacement else "each item asked once"
    head = Text(
        f"{source}: {result.items:,} items, {result.labels:,} labels, {result.predictions:,} predictions, "
        f"{result.strata:,} strata{levels}\n{result.runs:,} runs a method, {how}, seed {result.seed}\n"
    )
    return Group(head, _errors(result), Text(), _needed(result))


def _errors(result: Replay) -> Table:
    table = _table(
        f"Error of the estimated shift (Frobenius norm): root mean square, and what {result.confidence:.0%} of runs stay below"
    )
    table.add_column("queries\nmethod", no_wrap=True)
    for queries in result.curves[0].queries:
        table.add_column(f"{queries:,}\nrms", justify="right")
        table.add_column(f"\n{result.confidence:.0%}", justify="right")
    for curve in result.curves:
        pairs = zip(curve.root_mean_squared_error, curve.error_quantile, strict=True)
        table.add_row(curve.method, *(percent(error) for pair in pairs for error in pair))
    if result.no_change_error is not None:
        same = [percent(result.no_change_error)] * 2 * len(result.curves[0].queries)
        table.add_row(Text("saying nothing changed", style="dim"), *same)
    return table


def _needed(result: Replay) -> Table:
    table = _table(f"Queries for an error of {percent(result.target_error)} or less in {result.confidence:.0%} of runs")
    table.add_column("\nmethod", no_wrap=True)
    table.add_column("\nqueries", justify="right")
    table.add_column("saved against\nuniform", justify="right")
    table.add_column("saved against\npost-stratified", justify="right")
    for curve in result.curves:
        needed = "not reached" if curve.queries_for_target is None else f"{curve.queries_for_target:,}"
        saved = [_saving(result, curve.method, other) for other in ("uniform", "post-stratified")]
        table.add_row(curve.method, needed, *saved)
    return table


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False, padding=(0, 1)
    )


def _saving(result: Replay, method: str, against: str) -> str:
    saving = result.saving(method, against)
    return "" if method == against else "-" if saving is None else f"{saving:+.0%}".replace("+", "").replace("-0%", "0%")


def percent(value: float) -> str:
    """Write a share as a percentage with three digits.

    >>> percent(0.0123456), percent(0.000012), percent(0.25)
    ('1.23%', '0.0012%', '25%')
    """
    return f"{value:.1e}" if 0 < value < 1e-7 else f"{100 * value:.3g}%"


def estimate(found: Shift, true: Shift, *, queries: int, items: int) -> RenderableType:
    """Lay one estimated shift beside the true one."""
    table = Table(header_style="dim", box=None, pad_edge=False, padding=(0, 1))
    table.add_column(f"masa asked {queries:,} of {items:,} items")
    table.add_column("before", justify="right")
    table.add_column("now, estimated", justify="right")
    table.add_column("now, truly", justify="right")
    table.add_row("right answers", *(percent(value) for value in (true.old.accuracy, found.new.accuracy, true.new.accuracy)))
    for label, prediction in largest_mistakes(found, most=4):
        rates = [_rate(matrix, label, prediction) for matrix in (true.old, found.new, true.new)]
        table.add_row(f"{label!r} taken for {prediction!r}", *map(percent, rates))
    error = f"{percent(found.error(true))}; of saying nothing changed: {percent(true.norm)}"
    return Group(table, Text(f"\nError of the estimated shift (Frobenius norm): {error}"))


def largest_mistakes(shift: Shift, *, most: int) -> list[tuple[str, str]]:
    """Give the label and prediction of the mistakes whose share changed most, the largest first."""
    entries = [
        (-abs(change), label, prediction)
        for row, label in zip(shift.values.tolist(), shift.new.labels, strict=True)
        for change, prediction in zip(row, shift.new.predictions, strict=True)
        if label != prediction and change
    ]
    return [(label, prediction) for _, label, prediction in sorted(entries)[:most]]


def _rate(matrix: Matrix, label: str, prediction: str) -> float:
    """Give the share of a label's items that get this prediction."""
    row = matrix.values[matrix.labels.index(label)]
    return float(row[matrix.predictions.index(prediction)] / row.sum()) if prediction in matrix.predictions else 0.0
