"""Plans in the terminal: what a precision costs, what a budget buys, and what it cannot see."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.records import Between, Forecast
from masa.report.tables import table
from masa.report.words import percent, plain

MOST_LABELS = 8
"""Labels of which the smallest change is shown: those that would be missed most easily."""


def forecast(found: Forecast) -> RenderableType:
    """Lay out what a precision costs, what a budget buys, and what it cannot see."""
    money = ""
    if found.price is not None:
        money = " (and money)"
    confidence = percent(found.confidence)
    parts: list[RenderableType] = [
        Text(
            f"{found.items:,} items; it is assumed that {percent(found.changed)} of their answers "
            f"changed ({plain(found.why)})\n"
            "Nothing was asked and nothing was spent: "
            "these are simulated assessments of a made-up change."
        ),
        _head(
            f"Queries{money} for an error of the shift (Frobenius norm, {confidence} confidence)"
        ),
        _costs(found),
    ]
    if any(cost.proves_nothing for cost in found.costs):
        parts.append(Text("* saying that nothing changed is as good", style="dim"))
    if found.replay is None:
        return Group(*parts, Text("What else is simulated follows."))
    if any(cost.range is not None for cost in found.costs):
        words = (
            "range: from a change that hits doubtful answers far more than others "
            "to one that hits all alike"
        )
        if found.costs[0].other_shares:
            words += "; at ...: if that share of the answers changed"
        parts.append(Text(words, style="dim"))
    parts += [
        _head(
            f"What a budget buys with {found.method}, "
            "and the probability of noticing that so many answers changed"
        ),
        _buys(found),
    ]
    if any(bought.smallest for bought in found.buys):
        parts += [
            _head("The smallest change of a label that is noticed with 95%, as a share of it"),
            _smallest(found),
        ]
    return Group(
        *parts,
        _head("What it cannot see"),
        Text("\n".join(f"  {words}" for words in found.blind)),
    )


def _head(words: str) -> Text:
    return Text(f"\n{words}", style="bold")


def _costs(found: Forecast) -> Table:
    first = found.costs[0]
    heads = ["error of the shift", *first.queries]
    if first.range is not None:
        heads.insert(2, "range")
    heads += [f"at {percent(share)}" for share in first.other_shares]
    rows = table(*heads, *([] if found.replay is None else ["--target-error stops"]))
    for cost in found.costs:
        cells = [_spent(found, queries) for queries in cost.queries.values()]
        if cost.range is not None:
            cells.insert(1, _between(cost.range))
        for queries in cost.other_shares.values():
            cells.append("none" if queries == 0 else _spent(found, queries))
        if found.replay is not None:
            cells.append(_spent(found, cost.until_sure))
        rows.add_row(percent(cost.error) + ("*" if cost.proves_nothing else ""), *cells)
    return rows


def _between(found: Between) -> str:
    low, high = (
        "more than there are" if end is None else f"{end:,}" for end in (found.low, found.high)
    )
    return low if low == high else f"{low} to {high}"


def _buys(found: Forecast) -> Table:
    rows = Table(header_style="dim", box=None, pad_edge=False, padding=(0, 1))
    sizes = [f"{100 * size:g}%" for size in found.sizes]
    for name in ("queries", f"error, {percent(found.confidence)}", "accuracy to within", *sizes):
        rows.add_column(name, justify="right", no_wrap=True)
    for bought in found.buys:
        rows.add_row(
            _spent(found, bought.queries),
            percent(bought.error),
            f"{100 * max(0.0, round(bought.accuracy, 9)):.2g} points",
            *(f"{100 * probability:.0f}%" for probability in bought.noticed),
        )
    return rows


def _smallest(found: Forecast) -> Table:
    rows = Table(header_style="dim", box=None, pad_edge=False, padding=(0, 1))
    rows.add_column("label")
    for bought in found.buys:
        what = "1 query" if bought.queries == 1 else f"{bought.queries:,} queries"
        rows.add_column(what, justify="right", no_wrap=True)
    for cells in _labels(found):
        rows.add_row(*cells)
    return rows


def _labels(found: Forecast) -> Iterator[list[str]]:
    """Give the rows of the labels whose changes are missed most easily, and one for the others."""
    last = found.buys[-1].smallest
    hardest = sorted(last, key=lambda name: -(2.0 if last[name] is None else last[name] or 0.0))
    for name in hardest[:MOST_LABELS]:
        yield [plain(name), *(_share(bought.smallest[name]) for bought in found.buys)]
    others = hardest[MOST_LABELS:]
    if others:
        least = [[bought.smallest[name] for name in others] for bought in found.buys]
        worst = [None if None in row else max(one or 0.0 for one in row) for row in least]
        yield [f"{len(others):,} others, at most", *map(_share, worst)]


def _share(value: float | None) -> str:
    return "not even all" if value is None else percent(value)


def _spent(found: Forecast, queries: int | None) -> str:
    """Write a number of queries, with what they cost if that is known."""
    if queries is None:
        return "-"
    money = found.money(queries)
    if money is None:
        return f"{queries:,}"
    return f"{queries:,}  ({money:,.2f})"
