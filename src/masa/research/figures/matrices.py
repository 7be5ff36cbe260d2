"""Charts of confusion matrices, of shifts, and of changes of accuracy."""

from collections.abc import Mapping
from typing import Any

from masa.research.figures.colours import colour_scale
from masa.research.figures.curves import HEIGHT, WIDTH, Rows, query_lines
from masa.research.figures.names import api_name

FEW_LABELS = 12
"""Labels up to which the numbers of a matrix are written into it."""
MOST_LABELS = 40
"""Labels, and predictions, that the matrix of a shift shows at most."""
MOST_SHIFTS = 6
"""Shifts that are drawn at most, the largest."""
DARK = 0.6
"""The share of the largest value from which on a cell is so dark that its text is white."""
TALL = {"width": WIDTH + 60, "height": HEIGHT + 20}
"""The size of the two lower panels of the case study."""


def matrix(rows: Rows, title: str, *, reach: float | None = None) -> Any:
    """Draw a confusion matrix, or a difference of two.

    Numbers are written into it if there are few labels. Colours of a difference run from -reach to
    reach, by default the largest absolute value.
    """
    import altair as alt

    values = [row["items (%)"] for row in rows]
    difference = min(values) < 0 or reach is not None
    largest = reach or max(abs(value) for value in values) or 1.0
    labels = list(dict.fromkeys(row["label"] for row in rows))
    predictions = list(dict.fromkeys(row["prediction"] for row in rows))
    cells = [{**row, "value": row["items (%)"]} for row in rows]
    scale, number_format = alt.Scale(scheme="blues", domain=[0, largest]), ".1f"
    # A difference has a sign, so its colours run both ways from 0.
    if difference:
        scale = alt.Scale(scheme="blueorange", domain=[-largest, largest])
        number_format = "+.2f"
    # With many labels the cells are too small for numbers: colours and a legend must do.
    few = len(labels) <= FEW_LABELS
    size, angle, legend = max(110, 46 * len(labels)), 0, None
    if not few:
        size = max(110, min(420, 14 * max(len(labels), len(predictions))))
        angle = -90
        legend = alt.Legend(title="% of items", gradientLength=120)
    base = alt.Chart(
        alt.InlineData(values=cells), title=alt.TitleParams(title, fontSize=12, anchor="middle")
    ).encode(
        x=alt.X(
            "prediction:N", sort=predictions, title="prediction", axis=alt.Axis(labelAngle=angle)
        ),
        y=alt.Y("label:N", sort=labels, title="label"),
    )
    boxes = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=legend))
    if not few:
        return boxes.properties(width=size, height=size)
    numbers = base.mark_text(fontSize=11).encode(
        text=alt.Text("value:Q", format=number_format),
        color=_text_colour("value", largest),
    )
    return (boxes + numbers).properties(width=size, height=size)


def _text_colour(field: str, largest: float) -> Any:
    """Choose white text on dark cells, black text on others."""
    import altair as alt

    dark = f"abs(datum.{field}) > {DARK * largest}"
    return alt.condition(dark, alt.value("white"), alt.value("black"))


def case_study(sheets: Mapping[str, Rows]) -> Any:
    """Draw the matrices, the strata, how queries were spent and the error."""
    import altair as alt

    kinds = list(dict.fromkeys(row["matrix"] for row in sheets["matrices"]))
    matrices = [
        matrix([row for row in sheets["matrices"] if row["matrix"] == kind], kind) for kind in kinds
    ]
    strata = [row["stratum"] for row in sheets["strata"]]
    bars = [
        _stratum_bars(sheets["strata"], strata, "items", "Size of the strata"),
        _stratum_bars(sheets["strata"], strata, "uncertainty score", "How uncertain they are"),
    ]
    allocation = _allocation(sheets["allocation"], strata)
    error = _method_errors(sheets["errors"])
    return alt.vconcat(
        alt.concat(*matrices, columns=3).resolve_scale(color="independent"),
        alt.hconcat(*bars),
        alt.hconcat(allocation, error).resolve_scale(color="independent"),
        spacing=24,
    ).resolve_scale(color="independent")


def _stratum_bars(rows: Rows, strata: list[str], column: str, title: str) -> Any:
    import altair as alt

    across = alt.X("stratum:N", sort=strata, axis=alt.Axis(labelAngle=0), title="stratum")
    return (
        alt.Chart(
            alt.InlineData(values=list(rows)),
            title=alt.TitleParams(title, fontSize=12, anchor="middle"),
        )
        .mark_bar(color="#0072B2", size=26)
        .encode(x=across, y=alt.Y(f"{column}:Q", title=column))
        .properties(width=WIDTH, height=HEIGHT)
    )


def _allocation(rows: Rows, strata: list[str]) -> Any:
    """Draw the queries that one run spent in each stratum, and dashed the optimum's."""
    import altair as alt

    palette = dict(zip(strata, ("#0072B2", "#56B4E9", "#D55E00", "#E69F00"), strict=False))
    colour = colour_scale("stratum", strata, "stratum", palette)
    spent = alt.InlineData(values=[{**row, "one": row["queries in it, one run"]} for row in rows])
    title = alt.TitleParams("Queries spent (dashed: the optimum)", fontSize=12, anchor="middle")
    lines = alt.Chart(spent, title=title).encode(
        x=alt.X("queries:Q", title="queries in all"), color=colour
    )
    one_run = lines.mark_line(strokeWidth=2).encode(
        y=alt.Y("one:Q", title="queries in the stratum")
    )
    optimum = lines.mark_line(strokeDash=[3, 3], strokeWidth=1.3).encode(y="optimum:Q")
    return (one_run + optimum).properties(**TALL)


def _method_errors(rows: Rows) -> Any:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    errors = [{**row, "error": row["mean squared error"]} for row in rows]
    colours = colour_scale("method", methods, "method")
    chart = query_lines(
        errors, y="error", colour=colours, title="Error", ytitle="mean squared error"
    )
    return chart.properties(**TALL)


def overview(sheets: Mapping[str, Rows]) -> Any:
    """Draw the change of accuracy, API by data set."""
    import altair as alt

    rows = [
        {**row, "api": api_name(row["api"]), "points": row["change (points)"]}
        for row in sheets["overview"]
    ]
    largest = max(abs(row["points"]) for row in rows) or 1.0
    # Reversed: a loss of accuracy is orange.
    scale = alt.Scale(scheme="blueorange", domain=[-largest, largest], reverse=True)
    colour = alt.Color(
        "points:Q", scale=scale, title="change (points)", legend=alt.Legend(gradientLength=100)
    )
    panels = []
    for years in dict.fromkeys(row["years"] for row in rows):
        data = alt.InlineData(values=[row for row in rows if row["years"] == years])
        base = alt.Chart(data, title=alt.TitleParams(years, fontSize=12, anchor="start")).encode(
            x=alt.X("data set:N", title=None, axis=alt.Axis(labelAngle=-40)),
            y=alt.Y("api:N", title=None),
        )
        boxes = base.mark_rect().encode(color=colour)
        numbers = base.mark_text(fontSize=11).encode(
            text=alt.Text("points:Q", format="+.1f"), color=_text_colour("points", largest)
        )
        panels.append((boxes + numbers).properties(width=alt.Step(56), height=alt.Step(34)))
    return alt.concat(*panels, columns=2)


def shifts(sheets: Mapping[str, Rows]) -> Any:
    """Draw the largest shifts as matrices: the truth and two estimates of it."""
    import altair as alt

    by_pair: dict[tuple[str, str, str], Rows] = {}
    for row in sheets["entries"]:
        by_pair.setdefault((row["data set"], row["from"], row["to"]), []).append(row)

    def size(pair: tuple[str, str, str]) -> Any:
        return sum(row["true (%)"] ** 2 for row in by_pair[pair])

    largest = sorted(by_pair, key=lambda pair: -size(pair))[:MOST_SHIFTS]
    lines = [_shift_line(pair, by_pair[pair]) for pair in largest]
    return alt.vconcat(*lines, spacing=30).resolve_scale(color="independent")


def _shift_line(pair: tuple[str, str, str], rows: Rows) -> Any:
    """Draw the truth and both estimates of one shift beside each other, in the same colours."""
    import altair as alt

    data, old, new = pair
    shown = _most_changed(rows)
    api, _, old_date = old.partition("@")
    title = f"{data}, {api}, {old_date} to {new.partition('@')[2]}"
    if len(shown) < len(rows):
        title += ", where most changed"
    titles = {
        "true": "the truth",
        "masa": "as masa estimates it",
        "auto": "as auto does",
    }
    # One range for all three, so that their colours can be compared.
    reach = max(abs(row[f"{name} (%)"]) for row in shown for name in titles)
    panels = []
    for name, words in titles.items():
        cells = [{**row, "items (%)": row[f"{name} (%)"]} for row in shown]
        panels.append(matrix(cells, words, reach=reach))
    return alt.hconcat(*panels, title=alt.TitleParams(title, fontSize=13, anchor="start", offset=6))


def _most_changed(rows: Rows) -> Rows:
    """Keep the labels and predictions that changed most, as many as can be read."""
    for side in ("label", "prediction"):
        change: dict[str, float] = {}
        for row in rows:
            change[row[side]] = change.get(row[side], 0.0) + abs(row["true (%)"])
        by_change = sorted(change, key=change.__getitem__, reverse=True)
        kept = set(by_change[:MOST_LABELS])
        rows = [row for row in rows if row[side] in kept]
    return rows
