"""Charts of lines against the number of queries, a panel per case."""

from collections.abc import Callable, Mapping
from typing import Any

from masa.research.figures.colours import colour_scale
from masa.research.figures.names import case_name

Rows = list[dict[str, Any]]
"""The rows of a table, by column."""

COLUMNS = 4
"""Panels beside each other."""
WIDTH, HEIGHT = 190, 150
"""The size of one panel of twelve."""


def _panels(rows: Rows, draw_panel: Callable[[str, Rows], Any]) -> Any:
    """Draw a panel per case; None if there is no case."""
    import altair as alt

    cases = list(dict.fromkeys(row["case"] for row in rows))
    if not cases:
        return None
    panels = []
    for case in cases:
        own_rows = [row for row in rows if row["case"] == case]
        panels.append(draw_panel(case_name(case), own_rows))
    return alt.concat(*panels, columns=COLUMNS).resolve_scale(x="independent", y="independent")


def query_lines(
    rows: Rows,
    *,
    y: str,
    colour: Any,
    title: str,
    dash: Any = None,
    ytitle: str,
    linear: bool = False,
) -> Any:
    """Draw the lines of one panel; both axes are logarithmic unless y is to be linear."""
    import altair as alt

    if linear:
        vertical = alt.Y(f"{y}:Q", scale=alt.Scale(zero=False), title=ytitle)
    else:
        vertical = _log_axis(rows, y, ytitle)
    encoded: dict[str, Any] = {}
    if dash is not None:
        encoded["strokeDash"] = dash
    return (
        alt.Chart(
            alt.InlineData(values=rows),
            title=alt.TitleParams(title, fontSize=12, anchor="middle", offset=4),
        )
        .mark_line(strokeWidth=1.8)
        .encode(x=_query_axis(rows), y=vertical, color=colour, **encoded)
        .properties(width=WIDTH, height=HEIGHT)
    )


def _query_axis(rows: Rows) -> Any:
    import altair as alt

    queries = [row["queries"] for row in rows]
    candidates = [factor * 10**power for power in range(7) for factor in (1, 3)]
    ticks = [tick for tick in candidates if min(queries) <= tick <= max(queries)]
    return alt.X(
        "queries:Q",
        scale=alt.Scale(type="log", nice=False),
        title="queries",
        axis=alt.Axis(values=ticks, format="~s", labelOverlap=False),
    )


def _log_axis(rows: Rows, y: str, title: str) -> Any:
    import altair as alt

    values = [row[y] for row in rows]
    # Whole powers of ten only; without one in the range, a single tick at the first value.
    powers = [10.0**power for power in range(-12, 3)]
    ticks = [tick for tick in powers if min(values) <= tick <= max(values)]
    return alt.Y(
        f"{y}:Q",
        scale=alt.Scale(type="log", nice=False),
        title=title,
        axis=alt.Axis(values=ticks or values[:1], format=".0e"),
    )


def tradeoffs(sheets: Mapping[str, Rows]) -> Any:
    """Draw squared error against queries, a panel per case."""
    import altair as alt

    methods = [
        "uniform",
        "stratified",
        "post-stratified",
        "masa",
        "optimal",
        "masa, each item once",
    ]
    colour = colour_scale("method", methods, "")
    dashes = alt.StrokeDash(
        "method:N",
        scale=alt.Scale(domain=methods, range=[[1, 0], [6, 2], [1, 0], [1, 0], [2, 2], [1, 0]]),
        legend=None,
    )
    rows = [
        {**row, "error": row["mean squared error"]}
        for row in sheets["tradeoffs"]
        if row["queries"] >= 100
    ]

    def panel(title: str, own_rows: Rows) -> Any:
        return query_lines(
            own_rows,
            y="error",
            colour=colour,
            title=title,
            dash=dashes,
            ytitle="mean squared error",
        )

    return _panels(rows, panel)


def levels(sheets: Mapping[str, Rows]) -> Any:
    """Draw the squared error of masa by the number of levels, relative to one level."""
    import altair as alt

    counts = [str(count) for count in sorted({row["K"] for row in sheets["relative"]})]
    palette = dict(
        zip(counts, ("#999999", "#56B4E9", "#0072B2", "#E69F00", "#D55E00"), strict=False)
    )
    colour = colour_scale("K", counts, "levels K", palette)
    dash = alt.StrokeDash(
        "K:N",
        scale=alt.Scale(domain=counts, range=[[3, 3], [1, 0], [1, 0], [1, 0], [1, 0]]),
        legend=None,
    )
    rows = [
        {**row, "K": str(row["K"]), "times": row["squared error relative to K = 1"]}
        for row in sheets["relative"]
    ]

    def panel(title: str, own_rows: Rows) -> Any:
        return query_lines(
            own_rows,
            y="times",
            colour=colour,
            title=title,
            dash=dash,
            ytitle="squared error, K = 1 is 1",
            linear=True,
        )

    return _panels(rows, panel)


def convergence(sheets: Mapping[str, Rows]) -> Any:
    """Draw how the loss nears the optimum's, beside the theorem's slope."""
    import altair as alt

    usual, theorem, slope, optimum = (
        "a = 1",
        "a of the theorem",
        "the slope N^(-5/4)",
        "the optimum's loss",
    )
    colours = {usual: "#0072B2", theorem: "#D55E00", slope: "#888888", optimum: "#009E73"}
    colour = colour_scale("line", list(colours), "", colours)
    dash = alt.StrokeDash(
        "line:N",
        scale=alt.Scale(domain=list(colours), range=[[1, 0], [1, 0], [4, 3], [1, 0]]),
        legend=None,
    )
    rows: Rows = []
    for row in sheets["convergence"]:
        base = {"case": row["case"], "queries": row["queries"]}
        rows.append({**base, "line": row["exploration"], "loss": row["loss less the optimum's"]})
        if row["exploration"] == theorem:
            rows.append({**base, "line": optimum, "loss": row["the optimum's loss"]})
    # The theorem is about its own exploration, so its slope starts where that curve does.
    for case in dict.fromkeys(row["case"] for row in rows):
        measured = [row for row in rows if row["case"] == case and row["line"] == theorem]
        rows += _slope_line(measured, slope)

    def panel(title: str, own_rows: Rows) -> Any:
        return query_lines(
            own_rows,
            y="loss",
            colour=colour,
            title=title,
            dash=dash,
            ytitle="loss less the optimum's",
        )

    return _panels(rows, panel)


def _slope_line(measured: Rows, name: str) -> Rows:
    """Draw N^(-5/4) from the first to the last measured point, a little above the last."""
    first, last = measured[0], measured[-1]
    line = []
    for row in (first, last):
        loss = 1.6 * last["loss"] * (row["queries"] / last["queries"]) ** -1.25
        line.append({"case": row["case"], "queries": row["queries"], "line": name, "loss": loss})
    return line
