"""Plans in the terminal: what a precision costs, what a budget buys, and what it cannot see."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.records import Forecast
from masa.report.tables import table
from masa.report.words import percent, plain


def forecast(found: Forecast) -> RenderableType:
    """Lay out what a precision costs, what a budget buys, and what it cannot see."""
    money = ""
    if found.price is not None:
        money = " (and money)"
    confidence = percent(found.confidence)
    return Group(
        Text(
            f"{found.items:,} items; it is assumed that {percent(found.changed)} of their answers "
            f"changed ({plain(found.why)})\n"
            "Nothing was asked and nothing was spent: "
            "these are simulated assessments of a made-up change."
        ),
        Text(
            f"\nQueries{money} for an error of the shift (Frobenius norm, {confidence} confidence)",
            style="bold",
        ),
        _costs(found),
        Text(
            f"\nWhat a budget buys with {found.method}, "
            "and the probability of noticing that so many answers changed",
            style="bold",
        ),
        _buys(found),
        Text("\nWhat it cannot see", style="bold"),
        Text("\n".join(f"  {words}" for words in found.blind)),
    )


def _costs(found: Forecast) -> Table:
    methods = []
    if found.costs:
        methods = list(found.costs[0].queries)
    rows = table("error of the shift", *methods, "--target-error stops")
    rows.add_column("")
    for cost in found.costs:
        remark = ""
        if cost.proves_nothing:
            remark = "saying that nothing changed is as good"
        queries = [_spent(found, queries) for queries in cost.queries.values()]
        rows.add_row(percent(cost.error), *queries, _spent(found, cost.until_sure), remark)
    return rows


def _buys(found: Forecast) -> Table:
    rows = Table(header_style="dim", box=None, pad_edge=False, padding=(0, 1))
    sizes = [f"{100 * size:g}%" for size in found.sizes]
    for name in ("queries", f"error, {percent(found.confidence)}", "accuracy to within", *sizes):
        rows.add_column(name, justify="right", no_wrap=True)
    for bought in found.buys:
        rows.add_row(
            _spent(found, bought.queries),
            percent(bought.error),
            f"{100 * bought.accuracy:.2g} points",
            *(f"{100 * probability:.0f}%" for probability in bought.noticed),
        )
    return rows


def _spent(found: Forecast, queries: int | None) -> str:
    """Write a number of queries, with what they cost if that is known."""
    if queries is None:
        return "-"
    money = found.money(queries)
    if money is None:
        return f"{queries:,}"
    return f"{queries:,}  ({money:,.2f})"
