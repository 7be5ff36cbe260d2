"""Charts of the paper's study, drawn from what its experiments found."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from masa.report.chart import STYLE
from masa.research.finding import Finding

COLUMNS = 4
WIDTH, HEIGHT = 190, 150
"""Of one panel of twelve."""
NAMES = {"ibm": "IBM", "facepp": "Face++", "ferplus": "FER+", "command": "CMD"}
COLOURS = {**STYLE, "masa, each item once": "#D55E00", "auto": "#CC79A7"}
MOST_SHIFTS = 6
MOST_LABELS = 40
FEW = 12
"""Labels up to which their numbers are written into a matrix."""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Rows = list[dict[str, Any]]


def draw(finding: Finding) -> Any:
    """Draw what an experiment found, if there is anything to see."""
    if (
        finding.skipped
        or finding.what not in DRAWN
        or not any(sheet.rows for sheet in finding.sheets)
    ):
        return None
    chart = DRAWN[finding.what](
        {
            sheet.name: [
                dict(zip(sheet.head, map(_drawable, row), strict=True)) for row in sheet.rows
            ]
            for sheet in finding.sheets
        }
    )
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
    """Leave out signs that an SVG file cannot hold."""
    return NOT_XML.sub("\ufffd", value) if isinstance(value, str) else value


def shown(case: str) -> str:
    """Write a case as people do.

    >>> shown("amazon yelp"), shown("ibm digit")
    ('Amazon, YELP', 'IBM, DIGIT')
    """
    api, _, data = case.partition(" ")
    return f"{named(api)}, {NAMES.get(data, data.upper())}"


def named(api: str) -> str:
    """Write the name of an API as its vendor does."""
    return NAMES.get(api, api.capitalize())


def _panels(rows: Rows, make: "Callable[[str, Rows], Any]") -> Any:
    """Draw a panel a case."""
    import altair as alt

    cases = list(dict.fromkeys(row["case"] for row in rows))
    if not cases:
        return None
    panels = [make(shown(case), [row for row in rows if row["case"] == case]) for case in cases]
    return alt.concat(*panels, columns=COLUMNS).resolve_scale(x="independent", y="independent")


def _line(
    rows: Rows,
    *,
    y: str,
    colour: Any,
    title: str,
    dash: Any = None,
    ytitle: str,
    linear: bool = False,
) -> Any:
    """Draw lines against the number of queries."""
    import altair as alt

    low, high = (pick(row["queries"] for row in rows) for pick in (min, max))
    ticks = [
        tick for power in range(7) for tick in (10**power, 3 * 10**power) if low <= tick <= high
    ]
    values = [row[y] for row in rows]
    tens = [10.0**power for power in range(-12, 3) if min(values) <= 10.0**power <= max(values)]
    tall = (
        alt.Y(f"{y}:Q", scale=alt.Scale(zero=False), title=ytitle)
        if linear
        else alt.Y(
            f"{y}:Q",
            scale=alt.Scale(type="log", nice=False),
            title=ytitle,
            axis=alt.Axis(values=tens or values[:1], format=".0e"),
        )
    )
    encoded: dict[str, Any] = {} if dash is None else {"strokeDash": dash}
    return (
        alt.Chart(
            alt.InlineData(values=rows),
            title=alt.TitleParams(title, fontSize=12, anchor="middle", offset=4),
        )
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X(
                "queries:Q",
                scale=alt.Scale(type="log", nice=False),
                title="queries",
                axis=alt.Axis(values=ticks, format="~s", labelOverlap=False),
            ),
            y=tall,
            color=colour,
            **encoded,
        )
        .properties(width=WIDTH, height=HEIGHT)
    )


def _colours(
    field: str, names: Sequence[str], title: str, colours: Mapping[str, str] = COLOURS
) -> Any:
    import altair as alt

    scale = alt.Scale(domain=list(names), range=[colours.get(name, "#000000") for name in names])
    legend = alt.Legend(
        orient="top",
        columns=len(names),
        labelLimit=260,
        titleFontSize=11,
        labelFontSize=11,
        symbolStrokeWidth=3,
    )
    return alt.Color(f"{field}:N", scale=scale, title=title, legend=legend)


def tradeoffs(sheets: Mapping[str, Rows]) -> Any:
    """Draw squared error against queries, a panel a case."""
    import altair as alt

    methods = [
        "uniform",
        "stratified",
        "post-stratified",
        "masa",
        "optimal",
        "masa, each item once",
    ]
    colour = _colours("method", methods, "")
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

    def panel(title: str, mine: Rows) -> Any:
        return _line(
            mine, y="error", colour=colour, title=title, dash=dashes, ytitle="mean squared error"
        )

    return _panels(rows, panel)


def levels(sheets: Mapping[str, Rows]) -> Any:
    """Draw the squared error of masa by the number of levels, relative to one level."""
    import altair as alt

    counts = [str(count) for count in sorted({row["K"] for row in sheets["relative"]})]
    palette = dict(
        zip(counts, ("#999999", "#56B4E9", "#0072B2", "#E69F00", "#D55E00"), strict=False)
    )
    colour = _colours("K", counts, "levels K", palette)
    dash = alt.StrokeDash(
        "K:N",
        scale=alt.Scale(domain=counts, range=[[3, 3], [1, 0], [1, 0], [1, 0], [1, 0]]),
        legend=None,
    )
    rows = [
        {**row, "K": str(row["K"]), "times": row["squared error relative to K = 1"]}
        for row in sheets["relative"]
    ]
    words = "squared error, K = 1 is 1"
    return _panels(
        rows,
        lambda title, mine: _line(
            mine, y="times", colour=colour, title=title, dash=dash, ytitle=words, linear=True
        ),
    )


def convergence(sheets: Mapping[str, Rows]) -> Any:
    """Draw how the loss nears the optimum's, beside the theorem's slope."""
    import altair as alt

    names = ["a = 1", "a of the theorem", "the slope N^(-5/4)", "the optimum's loss"]
    colours = dict(zip(names, ("#0072B2", "#D55E00", "#888888", "#009E73"), strict=True))
    colour = _colours("line", names, "", colours)
    dash = alt.StrokeDash(
        "line:N", scale=alt.Scale(domain=names, range=[[1, 0], [1, 0], [4, 3], [1, 0]]), legend=None
    )
    rows: Rows = []
    for row in sheets["convergence"]:
        base = {"case": row["case"], "queries": row["queries"]}
        rows.append({**base, "line": row["exploration"], "loss": row["loss less the optimum's"]})
        if row["exploration"] == "a of the theorem":
            rows.append({**base, "line": "the optimum's loss", "loss": row["the optimum's loss"]})
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = [row for row in rows if row["case"] == case and row["line"] == "a of the theorem"]
        last = mine[-1]
        for row in (mine[0], last):
            slope = 1.6 * last["loss"] * (row["queries"] / last["queries"]) ** -1.25
            rows.append({"case": case, "queries": row["queries"], "line": names[2], "loss": slope})
    return _panels(
        rows,
        lambda title, mine: _line(
            mine, y="loss", colour=colour, title=title, dash=dash, ytitle="loss less the optimum's"
        ),
    )


def table1(sheets: Mapping[str, Rows]) -> Any:
    """Draw the queries that each method needs, the paper's figures beside them."""
    import altair as alt

    kinds = {
        "U/S in the paper": ("uniform", "the paper"),
        "uniform": ("uniform", "ours"),
        "post-stratified": ("post-stratified", "ours"),
        "MASA in the paper": ("masa", "the paper"),
        "masa": ("masa", "ours"),
        "optimal": ("optimal", "ours"),
        "masa, each item once": ("masa, each item once", "ours"),
    }
    rows = [
        {"case": shown(row["case"]), "method": method, "source": source, "queries": row[column]}
        for row in (
            {**one, **other} for one, other in zip(sheets["table1"], sheets["methods"], strict=True)
        )
        for column, (method, source) in kinds.items()
        if row[column] is not None
    ]
    methods = list(dict.fromkeys(method for method, _ in kinds.values()))
    shape = alt.Shape(
        "source:N",
        scale=alt.Scale(domain=["the paper", "ours"], range=["diamond", "circle"]),
        title="",
        legend=alt.Legend(orient="top", symbolFillColor="#666666", labelFontSize=11),
    )
    order = [shown(row["case"]) for row in sheets["table1"]]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("case:N", sort=order, title=None, axis=alt.Axis(grid=True))
    )
    return (
        base.mark_point(filled=True, size=90, opacity=0.85)
        .encode(
            x=alt.X(
                "queries:Q",
                scale=alt.Scale(type="log", domain=[300, 30_000], nice=False),
                title="queries for an error of 1% in 95% of runs",
                axis=alt.Axis(values=[300, 500, 1_000, 2_000, 5_000, 10_000, 20_000], format=",d"),
            ),
            color=_colours("method", methods, ""),
            shape=shape,
            stroke=alt.condition(
                "datum.source == 'the paper'", alt.value("black"), alt.value("transparent")
            ),
        )
        .properties(width=640, height=340)
    )


def case_study(sheets: Mapping[str, Rows]) -> Any:
    """Draw the matrices, the strata, how queries were spread and the error."""
    import altair as alt

    kinds = list(dict.fromkeys(row["matrix"] for row in sheets["matrices"]))
    matrices = [
        matrix([row for row in sheets["matrices"] if row["matrix"] == kind], kind) for kind in kinds
    ]
    order = [row["stratum"] for row in sheets["strata"]]
    strata = alt.InlineData(values=list(sheets["strata"]))
    across = alt.X("stratum:N", sort=order, axis=alt.Axis(labelAngle=0), title="stratum")
    bars = [
        alt.Chart(strata, title=alt.TitleParams(title, fontSize=12, anchor="middle"))
        .mark_bar(color="#0072B2", size=26)
        .encode(x=across, y=alt.Y(f"{column}:Q", title=column))
        .properties(width=WIDTH, height=HEIGHT)
        for title, column in (
            ("Size of the strata", "items"),
            ("How uncertain they are", "uncertainty score"),
        )
    ]
    palette = dict(zip(order, ("#0072B2", "#56B4E9", "#D55E00", "#E69F00"), strict=False))
    colour = _colours("stratum", order, "stratum", palette)
    spread = alt.InlineData(
        values=[{**row, "one": row["queries in it, one run"]} for row in sheets["allocation"]]
    )
    told = alt.TitleParams("Queries spent (dashed: the optimum)", fontSize=12, anchor="middle")
    lines = alt.Chart(spread, title=told).encode(
        x=alt.X("queries:Q", title="queries in all"), color=colour
    )
    allocation = (
        lines.mark_line(strokeWidth=2).encode(y=alt.Y("one:Q", title="queries in the stratum"))
        + lines.mark_line(strokeDash=[3, 3], strokeWidth=1.3).encode(y="optimum:Q")
    ).properties(width=WIDTH + 60, height=HEIGHT + 20)
    methods = list(dict.fromkeys(row["method"] for row in sheets["errors"]))
    errors = [{**row, "error": row["mean squared error"]} for row in sheets["errors"]]
    colours = _colours("method", methods, "method")
    error = _line(errors, y="error", colour=colours, title="Error", ytitle="mean squared error")
    error = error.properties(width=WIDTH + 60, height=HEIGHT + 20)
    rows = alt.concat(*matrices, columns=3).resolve_scale(color="independent")
    return alt.vconcat(
        rows,
        alt.hconcat(*bars),
        alt.hconcat(allocation, error).resolve_scale(color="independent"),
        spacing=24,
    ).resolve_scale(color="independent")


def matrix(rows: Rows, title: str, *, reach: float | None = None) -> Any:
    """Draw a confusion matrix, or a difference of two; its numbers are written in where there are few labels."""
    import altair as alt

    values = [row["items (%)"] for row in rows]
    difference = min(values) < 0 or reach is not None
    reach = reach or max(abs(value) for value in values) or 1.0
    labels = list(dict.fromkeys(row["label"] for row in rows))
    predictions = list(dict.fromkeys(row["prediction"] for row in rows))
    cells = [{**row, "value": row["items (%)"]} for row in rows]
    scale = (
        alt.Scale(scheme="blueorange", domain=[-reach, reach])
        if difference
        else alt.Scale(scheme="blues", domain=[0, reach])
    )
    size = (
        max(110, min(420, 14 * max(len(labels), len(predictions))))
        if len(labels) > FEW
        else max(110, 46 * len(labels))
    )
    base = alt.Chart(
        alt.InlineData(values=cells), title=alt.TitleParams(title, fontSize=12, anchor="middle")
    ).encode(
        x=alt.X(
            "prediction:N",
            sort=predictions,
            title="prediction",
            axis=alt.Axis(labelAngle=0 if len(labels) <= FEW else -90),
        ),
        y=alt.Y("label:N", sort=labels, title="label"),
    )
    legend = None if len(labels) <= FEW else alt.Legend(title="% of items", gradientLength=120)
    boxes = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=legend))
    if len(labels) > FEW:
        return boxes.properties(width=size, height=size)
    dark = f"abs(datum.value) > {0.6 * reach}"
    style = "+.2f" if difference else ".1f"
    words = base.mark_text(fontSize=11).encode(
        text=alt.Text("value:Q", format=style),
        color=alt.condition(dark, alt.value("white"), alt.value("black")),
    )
    return (boxes + words).properties(width=size, height=size)


def overview(sheets: Mapping[str, Rows]) -> Any:
    """Draw the change of accuracy, API by data set."""
    import altair as alt

    rows = [
        {**row, "api": named(row["api"]), "points": row["change (points)"]}
        for row in sheets["overview"]
    ]
    reach = max(abs(row["points"]) for row in rows) or 1.0
    scale = alt.Scale(scheme="blueorange", domain=[-reach, reach], reverse=True)
    colour = alt.Color(
        "points:Q", scale=scale, title="change (points)", legend=alt.Legend(gradientLength=100)
    )
    dark = alt.condition(
        f"abs(datum.points) > {0.6 * reach}", alt.value("white"), alt.value("black")
    )
    panels = []
    for years in dict.fromkeys(row["years"] for row in rows):
        mine = alt.InlineData(values=[row for row in rows if row["years"] == years])
        base = alt.Chart(mine, title=alt.TitleParams(years, fontSize=12, anchor="start")).encode(
            x=alt.X("data set:N", title=None, axis=alt.Axis(labelAngle=-40)),
            y=alt.Y("api:N", title=None),
        )
        words = base.mark_text(fontSize=11).encode(
            text=alt.Text("points:Q", format="+.1f"), color=dark
        )
        panels.append(
            (base.mark_rect().encode(color=colour) + words).properties(
                width=alt.Step(56), height=alt.Step(34)
            )
        )
    return alt.concat(*panels, columns=2)


def datasets(sheets: Mapping[str, Rows]) -> Any:
    """Draw how often each API is right."""
    import altair as alt

    rows = []
    for row in sheets["datasets"]:
        api, _, date = row["recorded answers"].partition("@")
        name = "a cheap model" if api.startswith("github") else named(api)
        data = NAMES.get(row["data set"], row["data set"].upper())
        when = f"20{date[:2]}" if re.fullmatch(r"\d\d-\d\d-\d\d", date) else date
        rows.append({"data": data, "api": name, "date": when or "-", "right": row["accuracy (%)"]})
    apis = sorted({row["api"] for row in rows}, key=lambda name: (name == "a cheap model", name))
    palette = (
        "#0072B2",
        "#E69F00",
        "#009E73",
        "#CC79A7",
        "#56B4E9",
        "#D55E00",
        "#F0E442",
        "#000000",
    )
    colours = {
        name: "#999999" if name == "a cheap model" else palette[at % len(palette)]
        for at, name in enumerate(apis)
    }
    dates = list(dict.fromkeys(row["date"] for row in rows))
    legend = alt.Legend(title="date") if len(dates) > 1 else None
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=True, size=90, opacity=0.9)
        .encode(
            x=alt.X("right:Q", title="accuracy (%)", scale=alt.Scale(zero=False)),
            y=alt.Y("data:N", title=None, axis=alt.Axis(grid=True)),
            color=_colours("api", apis, "", colours),
            shape=alt.Shape("date:N", sort=dates, legend=legend),
        )
        .properties(width=560, height=alt.Step(30))
    )


def shifts(sheets: Mapping[str, Rows]) -> Any:
    """Draw the largest shifts as matrices: the truth and two estimates of it."""
    import altair as alt

    by_pair: dict[tuple[str, str, str], Rows] = {}
    for row in sheets["entries"]:
        by_pair.setdefault((row["data set"], row["from"], row["to"]), []).append(row)
    largest = sorted(by_pair, key=lambda pair: -sum(row["true (%)"] ** 2 for row in by_pair[pair]))[
        :MOST_SHIFTS
    ]
    lines = []
    for data, old, new in largest:
        whole = by_pair[data, old, new]
        mine = _busiest(whole)
        api, _, date = old.partition("@")
        pair = f"{data}, {api}, {date} to {new.partition('@')[2]}" + (
            ", where most changed" if len(mine) < len(whole) else ""
        )
        reach = max(abs(row[f"{name} (%)"]) for row in mine for name in ("true", "masa", "auto"))
        panels = [
            matrix([{**row, "items (%)": row[f"{name} (%)"]} for row in mine], words, reach=reach)
            for name, words in (
                ("true", "the truth"),
                ("masa", "as masa estimates it"),
                ("auto", "as auto does"),
            )
        ]
        lines.append(
            alt.hconcat(*panels, title=alt.TitleParams(pair, fontSize=13, anchor="start", offset=6))
        )
    return alt.vconcat(*lines, spacing=30).resolve_scale(color="independent")


def _busiest(rows: Rows) -> Rows:
    """Leave the labels and predictions that changed most, where there are more than can be read."""
    for side in ("label", "prediction"):
        moved: dict[str, float] = {}
        for row in rows:
            moved[row[side]] = moved.get(row[side], 0.0) + abs(row["true (%)"])
        kept = set(sorted(moved, key=lambda name: -moved[name])[:MOST_LABELS])
        rows = [row for row in rows if row[side] in kept]
    return rows


def speed(sheets: Mapping[str, Rows]) -> Any:
    """Draw how many times as fast a run is."""
    import altair as alt

    rows = [{"case": shown(row["case"]), "times": row["times as fast"]} for row in sheets["speed"]]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("case:N", sort=None, title=None),
        x=alt.X("times:Q", title="times as fast as plain Python"),
    )
    words = base.mark_text(align="left", dx=4).encode(text=alt.Text("times:Q", format=",.0f"))
    return (base.mark_bar(color="#0072B2") + words).properties(width=520, height=alt.Step(22))


DRAWN: dict[str, Callable[[Mapping[str, Rows]], Any]] = {
    "datasets": datasets,
    "overview": overview,
    "case-study": case_study,
    "table1": table1,
    "tradeoffs": tradeoffs,
    "levels": levels,
    "convergence": convergence,
    "shifts": shifts,
    "speed": speed,
}
