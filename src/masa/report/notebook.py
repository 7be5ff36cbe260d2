"""Results as a notebook shows them: a few lines, a matrix, a table; and as charts."""

from collections.abc import Sequence
from typing import Any

from masa.errors import UsageError
from masa.records import Assessment, Baseline, Forecast, Matrix, Replay, Shift
from masa.report import chart, html, sentences
from masa.report.words import percent, written

Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def as_html(it: Any) -> str:
    """Write a result as a piece of a page."""
    match it:
        case Assessment():
            return _assessment(it)
        case Baseline():
            return _filled(word="BASELINE", lines=html.lines_of(it), grids=html.grids_of(it.matrix))
        case Matrix():
            return _filled(grids=html.grids_of(it))
        case Shift():
            return _filled(grids=(html.grid_of_shift(it, it.values, it.values),))
        case Replay():
            return _filled(table=_of_replay(it))
        case Forecast():
            return _filled(table=_of_forecast(it))
    raise TypeError(f"{type(it).__name__} has no page")


def page(it: Any) -> str:
    """Write a result as a page of its own."""
    if isinstance(it, Assessment):
        return html.assessment(it)
    if isinstance(it, Baseline):
        return html.baseline(it)
    return html.piece(type(it).__name__, as_html(it))


def plot(it: Any, what: str = "") -> Any:
    """Draw a result: of an assessment its `shift`, or its `intervals`."""
    match it, what:
        case Assessment(), "" | "shift":
            return chart.shift(it)
        case Assessment(), "intervals":
            return chart.intervals(it)
        case Replay(), "":
            return chart.replay(it, title=f"{it.items:,} items, {it.runs:,} runs")
        case Forecast(), "" if it.replay is not None:
            return chart.replay(it.replay, title=f"If {percent(it.changed)} of the answers changed")
        case ((Shift() | Matrix()), ""):
            return chart.matrix(it)
    raise UsageError(
        f"a {type(it).__name__} cannot be drawn{f' as {what!r}' if what else ''}",
        hint="an assessment has 'shift' and 'intervals'; shifts, matrices, replays and plans one",
    )


def _assessment(found: Assessment) -> str:
    lines = [
        sentences.reason(found),
        sentences.any_change(found),
        *sentences.what_it_would_take(found),
        *(sentences.surprise(found, one) for one in found.surprises(3)),
        sentences.ending(found),
    ]
    return _filled(
        word=sentences.word(found),
        tone=sentences.tone(found),
        lines=lines,
        drawn=html.drawings_of(found),
        grids=html.matrices(found)["grids"][:1],
    )


def _of_replay(found: Replay) -> Table:
    rows = [
        (
            curve.method,
            *(f"{100 * error:.3g}%" for error in curve.root_mean_squared_error),
            "not reached" if curve.queries_for_target is None else f"{curve.queries_for_target:,}",
        )
        for curve in found.curves
    ]
    budgets = [f"error after {queries:,}" for queries in found.curves[0].queries]
    return ("method", *budgets, f"queries for {percent(found.target_error)}"), rows


def _of_forecast(found: Forecast) -> Table:
    methods = list(found.costs[0].queries) if found.costs else []
    rows = [
        (percent(cost.error), *(written(cost.queries[method]) for method in methods))
        for cost in found.costs
    ]
    return ("total error", *(f"queries, {method}" for method in methods)), rows


def _filled(
    *,
    word: str = "",
    tone: str = "unknown",
    lines: Sequence[str] = (),
    drawn: Sequence[str] = (),
    grids: Sequence[Any] = (),
    table: Table | None = None,
) -> str:
    return html.template("notebook.html").render(
        word=word, tone=tone, lines=lines, drawn=drawn, grids=grids, table=table
    )
