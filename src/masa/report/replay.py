"""Replays in the terminal: the error of each method, and the queries it needs."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.records import Curve, Replay, Shift
from masa.report.shift import largest_mistakes, rate
from masa.report.tables import table
from masa.report.words import brief, percent

BUDGETS_ACROSS = 3
"""The most budgets in one table, so that it fits a narrow terminal."""


def replay(result: Replay, *, source: str) -> RenderableType:
    """Lay out a replay.

    What truly changed, the error at each budget, the queries for the target and what is saved.
    """
    strata = "one per label"
    if result.difficulty:
        strata = f"label x level of {result.difficulty}"
    how = "each item asked once"
    if result.replacement:
        how = "items may be asked again"
    parts: list[RenderableType] = [
        Text(
            f"{source}: {result.items:,} items, {result.labels:,} labels, "
            f"{result.predictions:,} predictions, {result.strata:,} strata ({strata})\n"
            f"{result.runs:,} runs per method, {how}, seed {result.seed}"
        )
    ]
    if result.shift is not None:
        parts.append(Text(f"\nWhat changed: {_changes(result.shift)}"))
    within = f"{percent(result.confidence)} of runs"
    parts += [
        _title(
            "Error of the estimated shift (Frobenius norm): "
            f"root mean square, and what {within} stay below"
        ),
        *_errors(result),
        _title(
            f"Queries for an error of {percent(result.target_error)} or less in {within}, "
            "with the range for one standard error"
        ),
        _needed(result),
    ]
    if any(curve.first_change is not None for curve in result.curves):
        title = "Queries up to the first answer that changed"
        parts += [_title(title), _first_changes(result.curves)]
    if any(curve.stopping is not None for curve in result.curves):
        parts += [_title("Assessments that stop by themselves"), _stops(result.curves)]
    if result.groups:
        title = "Error of the change of right answers by group, root mean square"
        parts += [_title(title), _group_errors(result)]
    return Group(*parts)


def estimate(found: Shift, true: Shift, *, queries: int, items: int) -> RenderableType:
    """Lay out one estimated shift beside the true one."""
    asked = f"masa asked {queries:,} of {items:,} items"
    rows = table(asked, "before", "now, estimated", "now, truly", wrap=True)
    matrices = (true.old, found.new, true.new)
    rows.add_row("right answers", *(percent(matrix.accuracy) for matrix in matrices))
    for label, prediction in largest_mistakes(found, most=4):
        rates = [percent(rate(matrix, label, prediction)) for matrix in matrices]
        rows.add_row(f"{label!r} taken for {prediction!r}", *rates)
    error = f"{percent(found.error(true))}; of saying nothing changed: {percent(true.norm)}"
    return Group(rows, Text(f"\nError of the estimated shift (Frobenius norm): {error}"))


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _changes(shift: Shift) -> str:
    """Write in one line how accuracy changed, and the mistakes that changed most."""
    parts = [f"right answers {percent(shift.accuracy.old)} -> {percent(shift.accuracy.new)}"]
    for label, prediction in largest_mistakes(shift, most=3):
        before = percent(rate(shift.old, label, prediction))
        now = percent(rate(shift.new, label, prediction))
        parts.append(f"{label!r} taken for {prediction!r} {before} -> {now}")
    return "; ".join(parts)


def _errors(result: Replay) -> Iterator[Table]:
    """Yield one table for every few budgets."""
    budgets = result.curves[0].queries
    for first in range(0, len(budgets), BUDGETS_ACROSS):
        places = range(first, min(first + BUDGETS_ACROSS, len(budgets)))
        headers = []
        for place in places:
            headers += [f"{budgets[place]:,}\nrms", f"\n{percent(result.confidence)}"]
        rows = table("queries\nmethod", *headers)
        for curve in result.curves:
            cells = []
            for place in places:
                cells.append(percent(curve.root_mean_squared_error[place]))
                cells.append(percent(curve.error_quantile[place]))
            rows.add_row(curve.method, *cells)
        if result.no_change_error is not None:
            trivial = [percent(result.no_change_error)] * 2 * len(places)
            rows.add_row(Text("saying nothing changed", style="dim"), *trivial)
        yield rows


def _needed(result: Replay) -> Table:
    """Lay out the queries that each method needs for the target."""
    rows = table("\nmethod", "\nqueries", "\nrange")
    rows.add_column("saved against\nuniform", justify="right")
    rows.add_column("saved against\npost-stratified", justify="right")
    for curve in result.curves:
        queries, span = "not reached", ""
        if curve.queries_for_target is not None:
            low, high = (_number(end, unknown="?") for end in curve.queries_range)
            queries, span = f"{curve.queries_for_target:,}", f"{low}-{high}"
        saved = [_saving(result, curve.method, other) for other in ("uniform", "post-stratified")]
        rows.add_row(curve.method, queries, span, *saved)
    return rows


def _saving(result: Replay, method: str, against: str) -> str:
    if method == against:
        return ""
    saving = result.saving(method, against)
    if saving is None:
        return "-"
    return f"{saving:.0%}".replace("-0%", "0%")


def _first_changes(curves: tuple[Curve, ...]) -> Table:
    rows = table("method", "median", "95% of runs")
    for curve in curves:
        if curve.first_change is not None:
            rows.add_row(curve.method, *(_number(count) for count in curve.first_change))
    return rows


def _stops(curves: tuple[Curve, ...]) -> Table:
    """Lay out when assessments stop, and how often they are right then."""
    rows = table(
        "method",
        "mean queries",
        "95% of runs",
        "stopped early",
        "coverage",
        "false alarms",
        "misses",
    )
    for curve in curves:
        ended = curve.stopping
        if ended is not None:
            rows.add_row(
                curve.method,
                f"{ended.queries_mean:,.0f}",
                f"{ended.queries_p95:,}",
                percent(ended.early),
                percent(ended.coverage),
                _rate(ended.false_alarms),
                _rate(ended.misses),
            )
    return rows


def _group_errors(result: Replay) -> Table:
    headers = []
    for curve in result.curves:
        headers += [f"{queries:,}\n{curve.method}" for queries in curve.queries]
    rows = table("queries\ngroup", *headers)
    for place, name in enumerate(result.groups):
        cells = []
        for curve in result.curves:
            cells += [percent(error) for error in curve.group_errors[place]]
        rows.add_row(Text(brief(name)), *cells)
    return rows


def _number(count: int | None, unknown: str = "-") -> str:
    if count is None:
        return unknown
    return f"{count:,}"


def _rate(share: float | None) -> str:
    if share is None:
        return "-"
    return percent(share)
