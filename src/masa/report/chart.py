"""Charts as a web page, SVG or PNG."""

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masa.errors import MissingPackageError, UsageError
from masa.records import Assessment, Curve, Matrix, Replay, Shift
from masa.report.words import percent

if TYPE_CHECKING:
    import altair as alt

ENDINGS = (".html", ".svg", ".png")

STYLE = {
    "uniform": "#999999",
    "post-stratified": "#E69F00",
    "stratified": "#56B4E9",
    "masa": "#0072B2",
    "optimal": "#009E73",
    "adaptive": "#D55E00",
    "paired": "#CC79A7",
    "predictive": "#8C6D1F",
    "auto": "#000000",
}
"""Colours by Okabe and Ito, which colour-blind readers can distinguish too."""

OTHER_METHODS = "#000000"

WIDE, HIGH = 44, 24
"""The size of an entry of a matrix."""


class ScriptSafe(json.JSONEncoder):
    """JSON for a script inside a page: a name that contains `</script>` cannot end the script."""

    def encode(self, o: object) -> str:
        """Escape the characters that mean something in HTML; JSON reads the same characters."""
        text = super().encode(o)
        for sign, escape in (("<", r"\u003c"), (">", r"\u003e"), ("&", r"\u0026")):
            text = text.replace(sign, escape)
        return text


def check(path: Path) -> None:
    """Raise if a chart could not be written, before any long work is done for it."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"{path} is not a kind of chart that masa can write",
            hint=f"end its name in {', '.join(ENDINGS)}",
        )
    if not path.parent.is_dir():
        raise UsageError(
            f"there is no folder {path.parent} to write {path.name} into", hint="make it first"
        )
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="give the name of a file")
    for package in ("altair", "vl_convert"):
        try:
            import_module(package)
        except ImportError as exc:
            raise MissingPackageError(
                f"charts need the package {package}", hint="pip install altair vl-convert-python"
            ) from exc


def save(chart: Any, path: Path) -> None:
    """Write a chart; a page works offline and loads nothing."""
    try:
        match path.suffix.lower():
            case ".html":
                page = chart.to_html(inline=True, json_kwds={"cls": ScriptSafe})
                path.write_text(page, encoding="utf-8")
            case ".png":
                chart.save(str(path), format="png", scale_factor=2)
            case _:
                chart.save(str(path), format="svg")
    except OSError as exc:
        raise UsageError(
            f"{path} cannot be written: {exc.strerror or exc}",
            hint="give another place",
        ) from exc


def shift(found: Assessment) -> "alt.LayerChart":
    """Draw how the matrix changed: white where the interval holds 0, blue better, orange worse."""
    import altair as alt

    change = _shift_of(found)
    base = alt.Chart(alt.InlineData(values=_entries(found, change))).encode(
        **_sides(change.new),
        tooltip=[
            alt.Tooltip("label:N"),
            alt.Tooltip("answer:N"),
            *(alt.Tooltip(f"{name}:Q", format="+.2f") for name in ("change", "low", "high")),
        ],
    )
    scale = alt.Scale(scheme="blueorange", domainMid=0.0, reverse=False)
    legend = alt.Legend(title=["worse (+)", "better (\u2212)"])
    squares = base.mark_rect(stroke="#dddddd").encode(
        color=alt.Color("worse:Q", scale=scale, legend=legend)
    )
    words = base.mark_text(fontSize=10).encode(text=alt.Text("change:Q", format="+.1f"))
    layers: alt.LayerChart = squares + words
    title = f"{found.verdict.upper()}: change of the confusion matrix, in points of all items"
    return layers.properties(title=title, width=alt.Step(WIDE), height=alt.Step(HIGH))


def _sides(it: Matrix) -> dict[str, Any]:
    """Give the two sides of a matrix, in its own order."""
    import altair as alt

    axis = alt.Axis(labelLimit=140)
    return {
        "x": alt.X("answer:N", sort=list(it.predictions), title="answer", axis=axis),
        "y": alt.Y("label:N", sort=list(it.labels), title="label", axis=axis),
    }


def _entries(found: Assessment, change: Shift) -> list[dict[str, Any]]:
    """Give the entries of a shift in points; `worse` is 0 where the interval holds 0."""
    readings, rows = found.readings, []
    for i, label in enumerate(change.new.labels):
        for j, answer in enumerate(change.new.predictions):
            value = 100 * float(change.values[i, j])
            low = high = value
            if readings is not None:
                low, high = 100 * float(readings.low[i, j]), 100 * float(readings.high[i, j])
            sure = low > 0.0 or high < 0.0
            worse = 0.0 if not sure else -value if label == answer else value
            row = {"label": label, "answer": answer, "change": value}
            rows.append({**row, "low": low, "high": high, "worse": worse})
    return rows


def matrix(found: "Shift | Matrix") -> "alt.LayerChart":
    """Draw a matrix, or the change of one, in points of all items."""
    import altair as alt

    it = found.new if isinstance(found, Shift) else found
    rows = [
        {"label": label, "answer": answer, "points": 100 * float(found.values[i, j])}
        for i, label in enumerate(it.labels)
        for j, answer in enumerate(it.predictions)
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(**_sides(it))
    scale = alt.Scale(scheme="greys")
    if isinstance(found, Shift):
        scale = alt.Scale(scheme="purplegreen", domainMid=0.0)
    squares = base.mark_rect(opacity=0.7).encode(color=alt.Color("points:Q", scale=scale))
    layers: alt.LayerChart = squares + base.mark_text(fontSize=10).encode(
        text=alt.Text("points:Q", format=".1f")
    )
    return layers.properties(width=alt.Step(WIDE), height=alt.Step(HIGH))


def intervals(found: Assessment) -> "alt.LayerChart":
    """Draw how right answers and the recall of each label changed, with intervals."""
    import altair as alt

    change, readings = _shift_of(found), found.readings
    shown = {} if found.accuracy_change is None else {"right answers": found.accuracy_change}
    if readings is not None:
        shown |= {f"recall of {label!r}": one for label, one in readings.recall.items()}
    rows = [
        {"name": name, "change": 100 * one.estimate, "low": 100 * one.low, "high": 100 * one.high}
        for name, one in shown.items()
        if one.estimate == one.estimate
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("name:N", sort=list(shown), title=None)
    )
    bars = base.mark_rule(strokeWidth=3, color="#0072B2").encode(
        x=alt.X("low:Q", title="change, points"), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=60, color="#000000", opacity=1).encode(x="change:Q")
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color="#999999")
    layers: alt.LayerChart = zero.encode(x="zero:Q") + bars + dots
    return layers.properties(title=f"{found.verdict}: {percent(change.accuracy.new)} right now")


def _shift_of(found: Assessment) -> Shift:
    if found.shift is None:
        raise UsageError(
            f"run {found.run} has nothing to draw: nothing was answered",
            hint="masa report shows what is known",
        )
    return found.shift


def replay(result: Replay, *, title: str) -> "alt.LayerChart":
    """Draw the error that each method stays below against the number of queries."""
    import altair as alt

    # Once every item is asked the error is zero, which a logarithmic axis cannot show: the chart
    # ends at a third of the target.
    floor = min(result.target_error, result.no_change_error or result.target_error) / 3
    first = min(2 * result.strata, result.curves[0].queries[0])
    rows = []
    for curve in result.curves:
        rows += _rows(curve, first, floor)
    methods = [curve.method for curve in result.curves]
    colours = [STYLE.get(method, OTHER_METHODS) for method in methods]
    within = f"{percent(result.confidence)} of runs"
    lines = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                "queries:Q",
                scale=alt.Scale(type="log", nice=False),
                title="queries",
                axis=alt.Axis(format=",d", grid=False),
            ),
            y=alt.Y(
                "error:Q",
                scale=alt.Scale(type="log", nice=False),
                title=f"error that {within} stay below (%, Frobenius norm)",
                axis=alt.Axis(format="~g"),
            ),
            color=alt.Color(
                "method:N",
                title="method",
                sort=methods,
                scale=alt.Scale(domain=methods, range=colours),
            ),
            tooltip=[
                alt.Tooltip("method:N"),
                alt.Tooltip("queries:Q", format=","),
                alt.Tooltip("error:Q", format=".3g", title="error (%)"),
            ],
        )
    )
    target = f"target {100 * result.target_error:.3g}%"
    layers: alt.LayerChart = lines + _mark(result.target_error, target, above=False)
    if result.no_change_error:
        trivial = f"saying nothing changed {100 * result.no_change_error:.3g}%"
        layers += _mark(result.no_change_error, trivial, above=True)
    return layers.properties(title=title, width=560, height=360)


def _rows(curve: Curve, first: int, floor: float) -> list[dict[str, Any]]:
    """Return the points of a curve from `first` queries on, but only one in a row at the floor."""
    rows = []
    above_floor = True
    for point in curve.path:
        if point.queries >= first and above_floor:
            error = max(point.error_quantile, floor)
            rows.append({"queries": point.queries, "error": 100 * error, "method": curve.method})
        above_floor = point.error_quantile > floor
    return rows


def _mark(error: float, words: str, *, above: bool) -> "alt.LayerChart":
    """Draw a horizontal line across the chart, with words above or below its left end."""
    import altair as alt

    base = alt.Chart(alt.InlineData(values=[{"error": 100 * error, "words": words}])).encode(
        y="error:Q"
    )
    line = base.mark_rule(strokeDash=[4, 4], color="#444444")
    place: dict[str, Any] = {"align": "left", "baseline": "top", "x": 4, "dy": 3}
    if above:
        place |= {"baseline": "bottom", "dy": -3}
    halo = base.mark_text(**place, stroke="white", strokeWidth=4).encode(text="words:N")
    text = base.mark_text(**place, color="#444444").encode(text="words:N")
    layers: alt.LayerChart = line + halo + text
    return layers
