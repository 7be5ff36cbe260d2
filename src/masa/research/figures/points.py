"""Charts of one mark per case or API: needed queries, accuracies, speeds."""

import re
from collections.abc import Mapping
from typing import Any

from masa.research.figures.colours import colour_scale
from masa.research.figures.curves import Rows
from masa.research.figures.names import api_name, case_name, data_name

CHEAP_MODEL = "a cheap model"
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#000000",
)
"""The colours of APIs, in the order of their names."""


def table1(sheets: Mapping[str, Rows]) -> Any:
    """Draw the queries that each method needs, the paper's figures beside them."""
    import altair as alt

    columns = {
        "U/S in the paper": ("uniform", "the paper"),
        "uniform": ("uniform", "ours"),
        "post-stratified": ("post-stratified", "ours"),
        "MASA in the paper": ("masa", "the paper"),
        "masa": ("masa", "ours"),
        "optimal": ("optimal", "ours"),
        "masa, each item once": ("masa, each item once", "ours"),
    }
    rows = []
    for comparison, others in zip(sheets["table1"], sheets["methods"], strict=True):
        counts = {**comparison, **others}
        for column, (method, source) in columns.items():
            if counts[column] is None:
                continue
            rows.append(
                {
                    "case": case_name(counts["case"]),
                    "method": method,
                    "source": source,
                    "queries": counts[column],
                }
            )
    methods = list(dict.fromkeys(method for method, _ in columns.values()))
    shape = alt.Shape(
        "source:N",
        scale=alt.Scale(domain=["the paper", "ours"], range=["diamond", "circle"]),
        title="",
        legend=alt.Legend(orient="top", symbolFillColor="#666666", labelFontSize=11),
    )
    order = [case_name(row["case"]) for row in sheets["table1"]]
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
            color=colour_scale("method", methods, ""),
            shape=shape,
            # An outline sets the paper's figures off from ours.
            stroke=alt.condition(
                "datum.source == 'the paper'", alt.value("black"), alt.value("transparent")
            ),
        )
        .properties(width=640, height=340)
    )


def datasets(sheets: Mapping[str, Rows]) -> Any:
    """Draw how often each API is right."""
    import altair as alt

    rows = [_accuracy_point(row) for row in sheets["datasets"]]
    # Cheap models come last and in grey: they are not what is assessed.
    apis = sorted({row["api"] for row in rows}, key=lambda name: (name == CHEAP_MODEL, name))
    colours = {api: PALETTE[at % len(PALETTE)] for at, api in enumerate(apis)}
    colours[CHEAP_MODEL] = "#999999"
    dates = list(dict.fromkeys(row["date"] for row in rows))
    legend = None
    if len(dates) > 1:
        legend = alt.Legend(title="date")
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=True, size=90, opacity=0.9)
        .encode(
            x=alt.X("right:Q", title="accuracy (%)", scale=alt.Scale(zero=False)),
            y=alt.Y("data:N", title=None, axis=alt.Axis(grid=True)),
            color=colour_scale("api", apis, "", colours),
            shape=alt.Shape("date:N", sort=dates, legend=legend),
        )
        .properties(width=560, height=alt.Step(30))
    )


def _accuracy_point(row: Mapping[str, Any]) -> dict[str, Any]:
    api, _, date = row["recorded answers"].partition("@")
    name = api_name(api)
    if api.startswith("github"):
        name = CHEAP_MODEL
    if re.fullmatch(r"\d\d-\d\d-\d\d", date):
        # A date such as 20-03-29 is shown by its year.
        date = f"20{date[:2]}"
    return {
        "data": data_name(row["data set"]),
        "api": name,
        "date": date or "-",
        "right": row["accuracy (%)"],
    }


def speed(sheets: Mapping[str, Rows]) -> Any:
    """Draw how many times as fast a run is."""
    import altair as alt

    rows = [
        {"case": case_name(row["case"]), "times": row["times as fast"]} for row in sheets["speed"]
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("case:N", sort=None, title=None),
        x=alt.X("times:Q", title="times as fast as plain Python"),
    )
    words = base.mark_text(align="left", dx=4).encode(text=alt.Text("times:Q", format=",.0f"))
    return (base.mark_bar(color="#0072B2") + words).properties(width=520, height=alt.Step(22))
