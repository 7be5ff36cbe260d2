"""Results in the terminal."""

from collections.abc import Iterator
from math import isnan

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.records import (
    ERROR,
    INVALID,
    Assessment,
    Baseline,
    Forecast,
    Interval,
    Matrix,
    Readings,
    Replay,
    Shift,
)
from masa.report.words import counted, percent, plain, points
from masa.settings import Tolerance
from masa.storage.history import Run

BUDGETS_ACROSS = 3
LABELS_DOWN = 8
ROWS_DOWN, COLUMNS_ACROSS = 16, 12


class Printer(Console):
    """A console that leaves it to the command to say what a reader who has gone means."""

    def on_broken_pipe(self) -> None:
        """Do not end with exit code 1, which is a verdict."""
        raise BrokenPipeError


def show(content: RenderableType, *, width: int | None = None) -> None:
    """Print to standard output; into a pipe or a file at full width and without colour."""
    console = Printer(highlight=False, markup=False, emoji=False, width=width)
    if not console.is_terminal and width is None:
        console = Printer(highlight=False, markup=False, emoji=False, width=200)
    console.print(content)


def replay(result: Replay, *, source: str) -> RenderableType:
    """Lay out a replay: what truly changed, the error at each budget, and the queries for the target with what is saved."""
    levels = f" (label x level of {result.difficulty})" if result.difficulty else " (one a label)"
    how = "items may be asked again" if result.replacement else "each item asked once"
    head = (
        f"{source}: {result.items:,} items, {result.labels:,} labels, {result.predictions:,} predictions, "
        f"{result.strata:,} strata{levels}\n{result.runs:,} runs a method, {how}, seed {result.seed}"
    )
    parts = [Text(head)]
    if result.shift is not None:
        parts.append(Text(f"\nWhat changed: {_changes(result.shift)}"))
    within = f"{percent(result.confidence)} of runs"
    title = f"\nError of the estimated shift (Frobenius norm): root mean square, and what {within} stay below"
    needed = f"\nQueries for an error of {percent(result.target_error)} or less in {within}, give or take a standard error"
    tables: list[RenderableType] = [
        Text(title, style="bold"),
        *_errors(result),
        Text(needed, style="bold"),
        _needed(result),
    ]
    if any(curve.first_change is not None for curve in result.curves):
        tables += [
            Text("\nQueries up to the first answer that changed", style="bold"),
            _first_changes(result),
        ]
    if any(curve.stopping is not None for curve in result.curves):
        tables += [Text("\nAssessments that stop by themselves", style="bold"), _stops(result)]
    if result.groups:
        tables += [
            Text("\nError of each group's change of right answers, root mean square", style="bold"),
            _group_errors(result),
        ]
    return Group(*parts, *tables)


def forecast(found: Forecast) -> RenderableType:
    """Lay out what a precision costs, what a budget buys, and what it cannot see."""
    sure = percent(found.confidence)
    head = (
        f"{found.items:,} items, of whose answers {percent(found.changed)} are taken to have changed ({plain(found.why)})\n"
        "Nothing was asked and nothing was spent: these are assessments of a change that was made up."
    )

    def told(queries: int | None) -> str:
        money = found.money(queries)
        return (
            "-"
            if queries is None
            else f"{queries:,}" + ("" if money is None else f"  ({money:,.2f})")
        )

    costs = _table()
    costs.add_column("error of the shift", no_wrap=True)
    for name in found.costs[0].queries if found.costs else ():
        costs.add_column(name, justify="right", no_wrap=True)
    costs.add_column("--target-error stops", justify="right", no_wrap=True)
    costs.add_column("")
    for cost in found.costs:
        beyond = "saying that nothing changed is as good" if cost.proves_nothing else ""
        costs.add_row(
            percent(cost.error), *map(told, cost.queries.values()), told(cost.until_sure), beyond
        )
    buys = _table()
    for name in ("queries", f"error, {sure}", "accuracy, give or take"):
        buys.add_column(name, justify="right", no_wrap=True)
    for size in found.sizes:
        buys.add_column(f"{100 * size:g}%", justify="right", no_wrap=True)
    for bought in found.buys:
        chances = [f"{100 * chance:.0f}%" for chance in bought.noticed]
        buys.add_row(
            told(bought.queries),
            percent(bought.error),
            f"{100 * bought.accuracy:.2g} points",
            *chances,
        )
    money = "" if found.price is None else " (and money)"
    return Group(
        Text(head),
        Text(
            f"\nQueries{money} for an error of the shift (Frobenius norm) at a confidence of {sure}",
            style="bold",
        ),
        costs,
        Text(
            f"\nWhat a budget buys with {found.method}, and the chance to notice if so many answers changed",
            style="bold",
        ),
        buys,
        Text("\nWhat it cannot see", style="bold"),
        Text("\n".join(f"  {words}" for words in found.blind)),
    )


def _stops(result: Replay) -> Table:
    table = _table()
    for name in (
        "method",
        "queries",
        "95% of runs",
        "stopped early",
        "right when they stop",
        "false alarms",
        "misses",
    ):
        table.add_column(name, no_wrap=True, justify="left" if name == "method" else "right")
    for curve in result.curves:
        if (ended := curve.stopping) is not None:
            wrong = [
                "-" if rate is None else percent(rate)
                for rate in (ended.false_alarms, ended.misses)
            ]
            queries = f"{ended.queries_mean:,.0f}", f"{ended.queries_p95:,}"
            table.add_row(
                curve.method, *queries, percent(ended.early), percent(ended.coverage), *wrong
            )
    return table


def _group_errors(result: Replay) -> Table:
    table = _table()
    table.add_column("queries\ngroup", no_wrap=True)
    for curve in result.curves:
        for queries in curve.queries:
            table.add_column(f"{queries:,}\n{curve.method}", justify="right", no_wrap=True)
    for place, name in enumerate(result.groups):
        table.add_row(
            Text(_brief(name)),
            *(percent(error) for curve in result.curves for error in curve.group_errors[place]),
        )
    return table


def _first_changes(result: Replay) -> Table:
    table = _table()
    for name in ("method", "median", "95% of runs"):
        table.add_column(name, no_wrap=True, justify="left" if name == "method" else "right")
    for curve in result.curves:
        if curve.first_change is not None:
            table.add_row(
                curve.method,
                *("-" if count is None else f"{count:,}" for count in curve.first_change),
            )
    return table


def _changes(shift: Shift) -> str:
    """Say in a line what is right now and was before, and the mistakes that changed most."""
    mistakes = [
        f"{label!r} taken for {prediction!r} {percent(_rate(shift.old, label, prediction))} -> "
        f"{percent(_rate(shift.new, label, prediction))}"
        for label, prediction in largest_mistakes(shift, most=3)
    ]
    return "; ".join(
        [f"right answers {percent(shift.accuracy.old)} -> {percent(shift.accuracy.new)}", *mistakes]
    )


def _errors(result: Replay) -> Iterator[Table]:
    """Give one table for every few budgets, so that they fit a narrow terminal."""
    count = len(result.curves[0].queries)
    for first in range(0, count, BUDGETS_ACROSS):
        places = range(first, min(first + BUDGETS_ACROSS, count))
        table = _table()
        table.add_column("queries\nmethod", no_wrap=True)
        for place in places:
            table.add_column(
                f"{result.curves[0].queries[place]:,}\nrms", justify="right", no_wrap=True
            )
            table.add_column(f"\n{percent(result.confidence)}", justify="right", no_wrap=True)
        for curve in result.curves:
            errors = [
                (curve.root_mean_squared_error[place], curve.error_quantile[place])
                for place in places
            ]
            table.add_row(curve.method, *(percent(error) for pair in errors for error in pair))
        if result.no_change_error is not None:
            table.add_row(
                Text("saying nothing changed", style="dim"),
                *[percent(result.no_change_error)] * 2 * len(places),
            )
        yield table


def _needed(result: Replay) -> Table:
    table = _table()
    table.add_column("\nmethod", no_wrap=True)
    table.add_column("\nqueries", justify="right", no_wrap=True)
    table.add_column("\ngive or take", justify="right", no_wrap=True)
    table.add_column("saved against\nuniform", justify="right")
    table.add_column("saved against\npost-stratified", justify="right")
    for curve in result.curves:
        low, high = (f"{end:,}" if end is not None else "?" for end in curve.queries_range)
        needed = (
            ("not reached", "")
            if curve.queries_for_target is None
            else (f"{curve.queries_for_target:,}", f"{low}-{high}")
        )
        saved = [_saving(result, curve.method, other) for other in ("uniform", "post-stratified")]
        table.add_row(curve.method, *needed, *saved)
    return table


def _table() -> Table:
    return Table(header_style="dim", box=None, pad_edge=False, padding=(0, 1))


def _saving(result: Replay, method: str, against: str) -> str:
    saving = result.saving(method, against)
    return (
        ""
        if method == against
        else "-"
        if saving is None
        else f"{saving:+.0%}".replace("+", "").replace("-0%", "0%")
    )


def estimate(found: Shift, true: Shift, *, queries: int, items: int) -> RenderableType:
    """Lay one estimated shift beside the true one."""
    table = _table()
    table.add_column(f"masa asked {queries:,} of {items:,} items")
    table.add_column("before", justify="right")
    table.add_column("now, estimated", justify="right")
    table.add_column("now, truly", justify="right")
    table.add_row(
        "right answers",
        *(percent(value) for value in (true.old.accuracy, found.new.accuracy, true.new.accuracy)),
    )
    for label, prediction in largest_mistakes(found, most=4):
        rates = [_rate(matrix, label, prediction) for matrix in (true.old, found.new, true.new)]
        table.add_row(f"{label!r} taken for {prediction!r}", *map(percent, rates))
    error = f"{percent(found.error(true))}; of saying nothing changed: {percent(true.norm)}"
    return Group(table, Text(f"\nError of the estimated shift (Frobenius norm): {error}"))


WORDS = {
    "changed": ("CHANGED", "bold red"),
    "unchanged": ("UNCHANGED", "bold green"),
    "undecided": ("UNDECIDED", "bold yellow"),
}
STOPPED = {
    "budget": "the budget was spent",
    "exhausted": "every item was asked",
    "interrupted": "it was interrupted",
    "failures": "too many calls failed",
    "canary": "the canary saw no change",
    "target": "the error is small enough",
    "decided": "the verdict is certain",
}
MOST_LABELS = 16
"""A heat map of more labels, or predictions, shows those that changed most."""


def assessment(found: Assessment) -> RenderableType:
    """Lay out one assessment: the verdict and why, how the matrix changed, what changed for which items, and what it cost."""
    word, style = WORDS[found.verdict]
    if found.sides != ("before", "now"):
        word = {"changed": "DIFFERENT", "unchanged": "ALIKE"}.get(found.verdict, word)
    parts: list[RenderableType] = [Text.assemble((word, style), f"  {_reason(found)}")]
    parts.append(Text(_moved(found)))
    if found.shift is not None:
        parts += [Text(""), heat_map(found.shift)]
        if found.surprising:
            parts.append(Text("\nMost surprising"))
            is_now = "is now" if found.sides == ("before", "now") else f"is, by {found.sides[1]},"
            parts += [Text(f"  {surprise.told(is_now)}") for surprise in found.surprises(5)]
        if found.changed_items:
            what = (
                "Answers that changed"
                if found.sides == ("before", "now")
                else "Answers that differ"
            )
            parts += [
                Text(f"\n{what}, {min(5, len(found.changed_items))} of {found.differing:,}"),
                _changed(found),
            ]
    if found.readings is not None and found.shift is not None:
        parts += [
            Text(f"\nChange by label, {percent(found.confidence)} intervals that hold at once"),
            _by_label(found, found.readings),
        ]
        parts += [Text(line) for line in _also_read(found.readings)]
    if found.groups:
        parts += [Text("\nRight answers by group"), _groups(found)]
    parts.append(Text("\n" + _cost(found), style="dim"))
    return Group(*parts)


def _by_label(found: Assessment, readings: Readings) -> Table:
    """Lay out how recall and precision changed, of the labels whose recall surely moved first."""
    table = _table()
    for name in ("label", "recall", "change", "precision", "change "):
        table.add_column(name, no_wrap=True, justify="left" if name == "label" else "right")
    shift = found.shift
    if shift is None:
        return table
    recall, precision = shift.recall, shift.precision

    def distance(label: str) -> float:
        interval = readings.recall[label]
        return -max(interval.low, -interval.high, 0.0)

    labels = sorted(shift.new.labels, key=distance)[:LABELS_DOWN]
    for label in labels:
        cells = []
        for now, interval in (
            (recall[label], readings.recall[label]),
            (precision[label], readings.precision[label]),
        ):
            known = interval.low > -1.0 or interval.high < 1.0
            between = (
                f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}" if known else "not known"
            )
            cells += ["-" if isnan(now.old) else f"{100 * now.old:.1f}%", between]
        table.add_row(Text(_brief(label, 30)), *cells)
    if len(labels) < len(shift.new.labels):
        table.add_row(
            f"... and {len(shift.new.labels) - len(labels):,} more (--json)", "", "", "", ""
        )
    return table


def _also_read(readings: Readings) -> Iterator[str]:
    share = readings.differing
    if share is not None:
        ends = f"between {percent(share.low)} and {percent(share.high)}"
        yield f"Of all answers about {percent(share.estimate)} are not as before, {ends}."
    cost = readings.cost
    if cost is not None:
        yield f"Mistakes cost {cost.estimate:+.3g} more an item, between {cost.low:+.3g} and {cost.high:+.3g}."


def _groups(found: Assessment) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    for group in found.groups:
        change = "nothing was asked" if group.change is None else _between(group.change)
        table.add_row(
            f"  {_brief(group.group, 30)}",
            percent(group.old),
            change,
            counted(group.answers, "answer"),
        )
    gap = found.gap
    if gap is not None:
        between = f"  gap between {_brief(gap.best, 20)} and {_brief(gap.worst, 20)}"
        table.add_row(Text(between), points(gap.old, sign=False), _between(gap.change), "")
    return table


def _between(change: Interval) -> str:
    return (
        f"{points(change.estimate)}, between {100 * change.low:+.1f} and {100 * change.high:+.1f}"
    )


def _reason(found: Assessment) -> str:
    shift, change = found.shift, found.accuracy_change
    if shift is None or change is None:
        return f"there is no answer to judge by: {STOPPED[found.stopped]}"
    sure = percent(found.confidence)
    between = f"between {100 * change.low:+.1f} and {100 * change.high:+.1f}"
    tolerance = Tolerance.read(found.tolerance)
    small = tolerance.limits.get("accuracy") if len(tolerance.limits) == 1 else None
    limits = f"({sure} interval; tolerance {tolerance.words if small is None else points(small, sign=False)})"
    right = f"right answers {percent(shift.accuracy.old)} -> {percent(shift.accuracy.new)}"
    return f"{right}: {points(change.estimate)}, {between} {limits}"


def _moved(found: Assessment) -> str:
    if not found.compared:
        return "BaselineAnswers and new answers are not known of the same items."
    share = f"{found.differing:,} of {found.compared:,} answers differ"
    if found.sides != ("before", "now"):
        return f"{plain(found.sides[0])} -> {plain(found.sides[1])}: {share}."
    share += " from before"
    return {
        "yes": f"It moved: {share}." if found.differing else f"It moved: {found.proof}.",
        "no sign": f"No sign that anything changed: {share}.",
        "noise": f"{found.proof or f'{share}; that may be the API contradicting itself'}.",
    }[found.moved] + (
        f" The provider's version went from {plain(found.api_version.old)} to {plain(found.api_version.new)}."
        if found.api_version.new
        and found.api_version.old
        and found.api_version.new != found.api_version.old
        else ""
    )


def baseline(found: Baseline) -> RenderableType:
    """Lay out a baseline: what was recorded, how right it is, how often the API contradicts itself."""
    unfinished = found.stopped in ("interrupted", "failures")
    what = "Not yet a baseline" if unfinished else "Baseline"
    lines = [f"{what}, run {found.run}: {found.answers:,} answers about {found.items:,} items"]
    if not found.complete and not unfinished:
        lines[0] += " (a part of them, which will stand for all)"
    if found.matrix is not None:
        lines.append(f"Right answers: {percent(found.matrix.accuracy)}")
    noise = found.contradiction
    if noise is not None:
        share = f"{found.contradicted:,} of {found.repeated:,} items asked twice were answered differently"
        lines.append(f"{share} ({percent(noise.low)} to {percent(noise.high)} with 95% confidence)")
    if found.api_version:
        lines.append(f"The provider calls its model {plain(found.api_version)}")
    if found.errors:
        lines.append(f"{found.errors:,} items failed for good ({ERROR})")
    money = "" if found.cost is None else f" for {found.cost:.6g}"
    lines.append(
        f"{counted(found.queries, 'query')}{money}; it ended because {STOPPED[found.stopped]}."
    )
    return Text("\n".join(lines))


def runs(found: list[Run], baselines: set[int]) -> RenderableType:
    """List runs: what they were, what came of them."""
    table = _table()
    for name in ("run", "", "name", "begun", "state", "verdict", "right answers", "queries"):
        table.add_column(name, no_wrap=True)
    for run in found:
        result = run.result or {}
        accuracy = result.get("accuracy")
        right = (
            percent(accuracy["new"])
            if isinstance(accuracy, dict)
            else ""
            if accuracy is None
            else percent(accuracy)
        )
        state = "finished" if run.finished else f"not finished ({run.stopped})"
        mark = "baseline now" if run.id in baselines else ""
        said = ", ".join(word for word in (result.get("verdict"), mark) if word)
        cells = (run.name, run.created[:16].replace("T", " "), state, said, right)
        table.add_row(str(run.id), run.kind, *cells, f"{result['queries']:,}" if result else "")
    return table


def heat_map(shift: Shift) -> RenderableType:
    """Show the change of the matrix in points of all items: red for the worse, green for the better."""
    rows, columns = _largest(shift)
    most = max(1e-12, float(abs(shift.values).max()))
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("label \\ answer", no_wrap=True)
    for j in columns:
        table.add_column(_brief(shift.new.predictions[j]), justify="right", no_wrap=True)
    for i in rows:
        cells = []
        for j in columns:
            value = float(shift.values[i, j])
            right = shift.new.labels[i] == shift.new.predictions[j]
            strength = abs(value) / most if abs(value) >= 0.0005 else 0.0
            colour = "green" if (value > 0) == right else "red"
            style = (
                "dim"
                if strength < 0.02
                else f"bold white on {colour}"
                if strength > 0.5
                else colour
            )
            cells.append(Text("." if strength < 0.02 else f"{100 * value:+.1f}", style=style))
        table.add_row(Text(_brief(shift.new.labels[i])), *cells)
    hidden = shift.values.size - len(rows) * len(columns)
    title = "Change of the confusion matrix, in points of all items" + (
        " (the rows and columns that changed most)" if hidden else ""
    )
    return Group(Text(title), table)


def _largest(shift: Shift) -> tuple[list[int], list[int]]:
    """Give the rows and columns that changed most, in their own order."""
    size = abs(shift.values)
    rows = sorted(sorted(range(size.shape[0]), key=lambda i: -size[i].sum())[:MOST_LABELS])
    columns = sorted(sorted(range(size.shape[1]), key=lambda j: -size[:, j].sum())[:MOST_LABELS])
    return rows, columns


def _brief(name: str, most: int = 12) -> str:
    name = plain(name)
    return name if len(name) <= most else name[: most - 1] + "\u2026"


def _changed(found: Assessment) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    for item in found.changed_items[:5]:
        verdict = (
            "better"
            if item.new == item.label
            else "worse"
            if item.old == item.label
            else "wrong either way"
        )
        table.add_row(
            f"  {_brief(item.item, 40)}",
            f"label {item.label!r}",
            f"{item.old!r} -> {item.new!r}",
            Text(verdict, style="dim"),
        )
    return table


def _cost(found: Assessment) -> str:
    money = "" if found.cost is None else f" for {found.cost:.6g}"
    lines = [
        f"Run {found.run}: {counted(found.queries, 'query')}{money}, {counted(found.answers, 'answer')}; {found.items:,} items."
    ]
    lines[0] += f" It ended because {STOPPED[found.stopped]}."
    if found.errors:
        lines.append(
            f"{found.errors:,} items failed for good ({ERROR}); they are a column of the matrix, not wrong answers."
        )
    if found.error_bound is not None:
        bound = f"The shift is known to within {percent(found.error_bound)} (Frobenius norm, {percent(found.confidence)})"
        lines.append(
            bound
            + (
                f"; post-stratified uniform sampling would have needed about {found.uniform_queries:,} queries for that."
                if found.uniform_queries
                else "."
            )
        )
    new = None if found.shift is None else found.shift.new
    invalid = (
        new.values[:, new.predictions.index(INVALID)].sum()
        if new is not None and INVALID in new.predictions
        else 0.0
    )
    if invalid > 0.0:
        lines.append(f"{percent(invalid)} of the answers could not be read as a label ({INVALID}).")
    return "\n".join(lines)


def largest_mistakes(shift: Shift, *, most: int) -> list[tuple[str, str]]:
    """Give the label and prediction of the mistakes whose share changed most, the largest first."""
    entries = [
        (-abs(change), label, prediction)
        for row, label in zip(shift.values.tolist(), shift.new.labels, strict=True)
        for change, prediction in zip(row, shift.new.predictions, strict=True)
        if label != prediction and change
    ]
    return [(label, prediction) for _, label, prediction in sorted(entries)[:most]]


def _rate(matrix: Matrix, label: str, prediction: str) -> float:
    """Give the share of a label's items that get this prediction."""
    row = matrix.values[matrix.labels.index(label)]
    return (
        float(row[matrix.predictions.index(prediction)] / row.sum())
        if prediction in matrix.predictions
        else 0.0
    )
