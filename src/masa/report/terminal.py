"""Results in the terminal."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.records import Matrix, Replay, Shift
from masa.report import percent

BUDGETS_ACROSS = 3


def show(content: RenderableType, *, width: int | None = None) -> None:
    """Print to standard output; into a pipe or a file at full width and without colour."""
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    if not console.is_terminal and width is None:
        console = Console(highlight=False, markup=False, emoji=False, width=200)
    console.print(content)


def replay(result: Replay, *, source: str) -> RenderableType:
    """Lay out a replay: what truly changed, the error at each budget, and the queries for the target with what is saved."""
    levels = f" (label x level of {result.difficulty})" if result.difficulty else " (one a label)"
    how = "items may be asked again" if result.replacement else "each item asked once"
    head = (
        f"{source}: {result.items:,} items, {result.labels:,} labels, {result.predictions:,} predictions, "
        f"{result.strata:,} strata{levels}\n{result.runs:,} runs a method, {how}, seed {result.seed}"
    )
    parts = [Text(head)]
    if result.shift is not None:
        parts.append(Text(f"\nWhat changed: {_changes(result.shift)}"))
    within = f"{percent(result.confidence)} of runs"
    title = f"\nError of the estimated shift (Frobenius norm): root mean square, and what {within} stay below"
    needed = f"\nQueries for an error of {percent(result.target_error)} or less in {within}, give or take a standard error"
    return Group(*parts, Text(title, style="bold"), *_errors(result), Text(needed, style="bold"), _needed(result))


def _changes(shift: Shift) -> str:
    """Say in a line what is right now and was before, and the mistakes that changed most."""
    mistakes = [
        f"{label!r} taken for {prediction!r} {percent(_rate(shift.old, label, prediction))} -> "
        f"{percent(_rate(shift.new, label, prediction))}"
        for label, prediction in largest_mistakes(shift, most=3)
    ]
    return "; ".join([f"right answers {percent(shift.accuracy.old)} -> {percent(shift.accuracy.new)}", *mistakes])


def _errors(result: Replay) -> Iterator[Table]:
    """Give one table for every few budgets, so that they fit a narrow terminal."""
    count = len(result.curves[0].queries)
    for first in range(0, count, BUDGETS_ACROSS):
        places = range(first, min(first + BUDGETS_ACROSS, count))
        table = _table()
        table.add_column("queries\nmethod", no_wrap=True)
        for place in places:
            table.add_column(f"{result.curves[0].queries[place]:,}\nrms", justify="right", no_wrap=True)
            table.add_column(f"\n{percent(result.confidence)}", justify="right", no_wrap=True)
        for curve in result.curves:
            errors = [(curve.root_mean_squared_error[place], curve.error_quantile[place]) for place in places]
            table.add_row(curve.method, *(percent(error) for pair in errors for error in pair))
        if result.no_change_error is not None:
            table.add_row(Text("saying nothing changed", style="dim"), *[percent(result.no_change_error)] * 2 * len(places))
        yield table


def _needed(result: Replay) -> Table:
    table = _table()
    table.add_column("\nmethod", no_wrap=True)
    table.add_column("\nqueries", justify="right", no_wrap=True)
    table.add_column("\ngive or take", justify="right", no_wrap=True)
    table.add_column("saved against\nuniform", justify="right")
    table.add_column("saved against\npost-stratified", justify="right")
    for curve in result.curves:
        low, high = (f"{end:,}" if end is not None else "?" for end in curve.queries_range)
        needed = ("not reached", "") if curve.queries_for_target is None else (f"{curve.queries_for_target:,}", f"{low}-{high}")
        saved = [_saving(result, curve.method, other) for other in ("uniform", "post-stratified")]
        table.add_row(curve.method, *needed, *saved)
    return table


def _table() -> Table:
    return Table(header_style="dim", box=None, pad_edge=False, padding=(0, 1))


def _saving(result: Replay, method: str, against: str) -> str:
    saving = result.saving(method, against)
    return "" if method == against else "-" if saving is None else f"{saving:+.0%}".replace("+", "").replace("-0%", "0%")


def estimate(found: Shift, true: Shift, *, queries: int, items: int) -> RenderableType:
    """Lay one estimated shift beside the true one."""
    table = _table()
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
