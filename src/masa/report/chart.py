"""Charts as a page, SVG or PNG."""

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masa.errors import MissingPackageError, UsageError
from masa.records import Replay
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
}
"""Okabe and Ito's colours, told apart by colour-blind readers too."""


class ScriptSafe(json.JSONEncoder):
    """JSON that may stand inside a script of a page: a name that holds `</script>` cannot end it."""

    def encode(self, o: object) -> str:
        """Write the characters that mean something in HTML as escapes, which JSON reads as the same characters."""
        return (
            super()
            .encode(o)
            .replace("<", r"\u003c")
            .replace(">", r"\u003e")
            .replace("&", r"\u0026")
        )


def check(path: Path) -> None:
    """Refuse what could not be written, before any long work is done for it."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"{path} is not a kind of chart masa can write",
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
    """Write a chart; a page works offline, with nothing to load."""
    try:
        match path.suffix.lower():
            case ".html":
                path.write_text(
                    chart.to_html(inline=True, json_kwds={"cls": ScriptSafe}), encoding="utf-8"
                )
            case ".png":
                chart.save(str(path), format="png", scale_factor=2)
            case _:
                chart.save(str(path), format="svg")
    except OSError as exc:
        raise UsageError(
            f"{path} cannot be written: {exc.strerror or exc}",
            hint="give another place with --plot",
        ) from exc


def replay(result: Replay, *, title: str) -> "alt.LayerChart":
    """Draw the error that each method stays below against the number of queries."""
    import altair as alt

    # Once every item is asked the error is zero, which no logarithm shows: draw down to a third of the target.
    floor = min(result.target_error, result.no_change_error or result.target_error) / 3
    first = min(2 * result.strata, result.curves[0].queries[0])
    rows = [
        {
            "queries": point.queries,
            "error": 100 * max(point.error_quantile, floor),
            "method": curve.method,
        }
        for curve in result.curves
        for point, before in zip(curve.path, (None, *curve.path), strict=False)
        if point.queries >= first and (before is None or before.error_quantile > floor)
    ]
    methods = [curve.method for curve in result.curves]
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
                title=f"error that {percent(result.confidence)} of runs stay below (%, Frobenius norm)",
                axis=alt.Axis(format="~g"),
            ),
            color=alt.Color(
                "method:N",
                title="method",
                sort=methods,
                scale=alt.Scale(
                    domain=methods, range=[STYLE.get(method, "#000000") for method in methods]
                ),
            ),
            tooltip=[
                alt.Tooltip("method:N"),
                alt.Tooltip("queries:Q", format=","),
                alt.Tooltip("error:Q", format=".3g", title="error (%)"),
            ],
        )
    )
    layers: alt.LayerChart = lines + _mark(
        result.target_error, f"target {100 * result.target_error:.3g}%", above=False
    )
    if result.no_change_error:
        layers += _mark(
            result.no_change_error,
            f"saying nothing changed {100 * result.no_change_error:.3g}%",
            above=True,
        )
    return layers.properties(title=title, width=560, height=360)


def _mark(error: float, words: str, *, above: bool) -> "alt.LayerChart":
    """Draw a level across the chart, with words at its left end."""
    import altair as alt

    base = alt.Chart(alt.InlineData(values=[{"error": 100 * error, "words": words}])).encode(
        y="error:Q"
    )
    line = base.mark_rule(strokeDash=[4, 4], color="#444444")
    place: dict[str, Any] = {
        "align": "left",
        "baseline": "bottom" if above else "top",
        "x": 4,
        "dy": -3 if above else 3,
    }
    halo = base.mark_text(**place, stroke="white", strokeWidth=4).encode(text="words:N")
    text = base.mark_text(**place, color="#444444").encode(text="words:N")
    layers: alt.LayerChart = line + halo + text
    return layers
