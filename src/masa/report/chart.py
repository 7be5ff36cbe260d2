"""Charts as a page, SVG or PNG."""

from pathlib import Path
from typing import TYPE_CHECKING

from masa.errors import MissingPackageError, UsageError
from masa.records import Replay

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


def check(path: Path) -> None:
    """Refuse what could not be written, before any long work is done for it."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{path} is not a kind of chart masa can write", hint=f"end its name in {', '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write {path.name} into", hint="make it first")
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="give the name of a file")
    try:
        import altair
        import vl_convert  # noqa: F401
    except ImportError as exc:
        raise MissingPackageError(f"charts need the package {exc.name}", hint="pip install 'masa-shift[plot]'") from exc
    del altair


def save(chart: "alt.LayerChart", path: Path) -> None:
    """Write a chart; a page works offline, with nothing to load."""
    try:
        match path.suffix.lower():
            case ".html":
                chart.save(str(path), format="html", inline=True)
            case ".png":
                chart.save(str(path), format="png", scale_factor=2)
            case _:
                chart.save(str(path), format="svg")
    except OSError as exc:
        raise UsageError(f"{path} cannot be written: {exc.strerror or exc}", hint="give another place with --plot") from exc


def replay(result: Replay, *, title: str) -> "alt.LayerChart":
    """Draw the error that each method stays below against the number of queries."""
    import altair as alt

    from_ = 2 * result.strata
    rows = [
        {"queries": point.queries, "error": 100 * point.error_quantile, "method": curve.method}
        for curve in result.curves
        for point in curve.path
        if point.queries >= min(from_, curve.path[-1].queries // 2) and point.error_quantile > 0
    ]
    methods = [curve.method for curve in result.curves]
    lines = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                "queries:Q", scale=alt.Scale(type="log", nice=False), title="queries", axis=alt.Axis(format=",d", grid=False)
            ),
            y=alt.Y(
                "error:Q",
                scale=alt.Scale(type="log", nice=False),
                title=f"error that {result.confidence:.0%} of runs stay below (%, Frobenius norm)",
                axis=alt.Axis(format="~g"),
            ),
            color=alt.Color(
                "method:N",
                title="method",
                sort=methods,
                scale=alt.Scale(domain=methods, range=[STYLE.get(method, "#000000") for method in methods]),
            ),
            tooltip=[
                alt.Tooltip("method:N"),
                alt.Tooltip("queries:Q", format=","),
                alt.Tooltip("error:Q", format=".3g", title="error (%)"),
            ],
        )
    )
    marks = [{"error": 100 * result.target_error, "what": f"target {100 * result.target_error:.3g}%"}]
    if result.no_change_error:
        marks.append({"error": 100 * result.no_change_error, "what": "saying nothing changed"})
    base = alt.Chart(alt.InlineData(values=marks)).encode(y="error:Q")
    rules = base.mark_rule(strokeDash=[4, 4], color="#444444")
    words = base.mark_text(align="right", baseline="bottom", dy=-2, color="#444444", x="width").encode(text="what:N")
    layers: alt.LayerChart = lines + rules + words
    return layers.properties(title=title, width=560, height=360)
