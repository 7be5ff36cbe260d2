"""Colours of the charts' lines and points, with their legend."""

from collections.abc import Mapping, Sequence
from typing import Any

from masa.report.chart import STYLE

METHOD_COLOURS = {**STYLE, "masa, each item once": "#D55E00", "auto": "#CC79A7"}
"""The colour of each method, the same as in reports."""


def colour_scale(
    field: str, names: Sequence[str], title: str, colours: Mapping[str, str] = METHOD_COLOURS
) -> Any:
    """Colour marks by a field, with a legend above the chart; unknown names are black."""
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
