"""Assessments and baselines in the terminal: the verdict first, then why, then what it cost."""

from collections.abc import Iterator
from math import isnan

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.records import (
    ERROR,
    INVALID,
    Assessment,
    Baseline,
    ChangedItem,
    Interval,
    Matrix,
    Readings,
    Shift,
)
from masa.report.shift import heat_map
from masa.report.tables import listing, table
from masa.report.words import brief, counted, percent, plain, points
from masa.settings import Tolerance

LABELS_DOWN = 8
"""The most labels in the table of changes by label."""

ITEMS_DOWN = 5
"""The most changed items that are shown, and the most surprising entries."""

WORDS = {
    "changed": ("CHANGED", "bold red"),
    "unchanged": ("UNCHANGED", "bold green"),
    "undecided": ("UNDECIDED", "bold yellow"),
}
"""The word and the style of each verdict."""

COMPARED_WORDS = {"changed": "DIFFERENT", "unchanged": "ALIKE"}
"""The words where two APIs are compared, and not one with its past."""

STOPPED = {
    "budget": "the budget was spent",
    "exhausted": "every item was asked",
    "interrupted": "it was interrupted",
    "failures": "too many calls failed",
    "canary": "the canary found no change",
    "target": "the error is small enough",
    "decided": "the verdict is certain",
}
"""Why a run ended."""


def assessment(found: Assessment) -> RenderableType:
    """Lay out one assessment: the verdict and why, what changed, and what it cost."""
    word, style = WORDS[found.verdict]
    if not _is_over_time(found):
        word = COMPARED_WORDS.get(found.verdict, word)
    parts: list[RenderableType] = [
        Text.assemble((word, style), f"  {_reason(found)}", _over(found)),
        Text(_any_change(found)),
    ]
    parts += [Text(line) for line in _what_it_would_take(found)]
    if found.shift is not None:
        parts += [Text(""), heat_map(found.shift), *_examples(found)]
        if found.readings is not None:
            title = f"Change by label (simultaneous {percent(found.confidence)} intervals)"
            rows = _by_label(found.shift, found.readings, before=brief(found.sides[0]))
            parts += [Text(f"\n{title}"), rows]
            parts += [Text(line) for line in _other_readings(found.readings)]
    if found.groups:
        parts += [Text("\nRight answers by group"), _groups(found)]
    parts.append(Text("\n" + "\n".join(_cost(found)), style="dim"))
    return Group(*parts)


def baseline(found: Baseline) -> RenderableType:
    """Lay out a baseline: what was recorded, how accurate it is, how noisy the API is."""
    unfinished = found.stopped in ("interrupted", "failures")
    title = "Baseline"
    if unfinished:
        title = "Unfinished baseline"
    first = f"{title}, run {found.run}: {found.answers:,} answers about {found.items:,} items"
    if not found.complete and not unfinished:
        first += " (they will represent all)"
    lines = [first]
    if found.matrix is not None:
        lines.append(f"Right answers: {percent(found.matrix.accuracy)}")
    noise = found.contradiction
    if noise is not None:
        lines.append(
            f"Noise: {found.contradicted:,} of {found.repeated:,} items were answered differently "
            f"when asked twice ({percent(noise.low)} to {percent(noise.high)}, 95% interval)"
        )
    if found.api_version:
        lines.append(f"The provider calls its model {plain(found.api_version)}")
    if found.errors:
        lines.append(f"{found.errors:,} items failed for good ({ERROR})")
    spent = _spent(found.queries, found.cost)
    lines.append(f"{spent}; it ended because {STOPPED[found.stopped]}.")
    lines[0] += _over(found).plain
    return Text("\n".join(lines))


def _over(found: Assessment | Baseline) -> Text:
    """Say by how much the budget was exceeded; nothing where it was kept."""
    if not found.over_budget:
        return Text()
    return Text(f". {found.over_budget:.6g} OVER THE BUDGET", style="bold red")


def _is_over_time(found: Assessment) -> bool:
    """Say whether an API is compared with its past, and not with another API."""
    return found.sides == ("before", "now")


def _reason(found: Assessment) -> str:
    """Write the numbers that the verdict is based on."""
    shift, change = found.shift, found.accuracy_change
    if shift is None or change is None:
        return f"there is no answer to judge by: {STOPPED[found.stopped]}"
    tolerance = Tolerance.read(found.tolerance)
    allowed = tolerance.words
    if list(tolerance.limits) == ["accuracy"]:
        allowed = points(tolerance.limits["accuracy"], sign=False)
    right = f"right answers {percent(shift.accuracy.old)} -> {percent(shift.accuracy.new)}"
    interval = f"{percent(found.confidence)} interval"
    return f"{_meaning(found)}{right}: {_between(change)} ({interval}; tolerance {allowed})"


def _meaning(found: Assessment) -> str:
    """Say what the verdict and a proven change mean together."""
    if not _is_over_time(found):
        return ""
    if found.verdict == "changed":
        return f"for the {found.direction}: " if found.direction else ""
    if found.moved != "yes":
        return ""
    if found.verdict == "unchanged":
        return "within the tolerance, though the model behind it is another one: "
    return "the model behind it is another one, but whether that matters is not certain: "


def _what_it_would_take(found: Assessment) -> Iterator[str]:
    """Say how an undecided verdict could be decided."""
    if found.verdict != "undecided" or found.shift is None or not _is_over_time(found):
        return
    if found.more_queries is None:
        if found.stopped == "exhausted":
            yield "Every item was asked: the notes say why that was not enough."
        return
    left = found.items - found.answers - found.errors
    if found.more_queries >= 0.95 * left:
        yield f"It would take about all of the {left:,} items that are left to decide it."
    else:
        yield f"About {found.more_queries:,} more queries would decide it."


def _any_change(found: Assessment) -> str:
    """Say whether any answer changed beyond the API's own noise."""
    if not found.compared and not found.answers:
        return "Nothing was answered that could be compared with the baseline."
    if not found.compared:
        return "The baseline and the new answers are not about the same items."
    share = f"{found.differing:,} of {found.compared:,} answers differ"
    if not _is_over_time(found):
        return f"{plain(found.sides[0])} -> {plain(found.sides[1])}: {share}."
    why = f"{share} from the baseline"
    if found.moved == "noise":
        why = found.proof or f"{why}; that may be the API contradicting itself"
    elif found.moved == "yes" and not found.differing:
        why = found.proof
    said = f"Any change: {found.moved} ({why})."
    old, new = found.api_version.old, found.api_version.new
    if old and new and old != new:
        said += f" The provider's version changed from {plain(old)} to {plain(new)}."
    return said


def _examples(found: Assessment) -> Iterator[RenderableType]:
    """Yield the most surprising entries and some of the items whose answers changed."""
    over_time = _is_over_time(found)
    if found.surprising:
        is_now = "is now"
        if not over_time:
            is_now = f"is, by {found.sides[1]},"
        yield Text("\nMost surprising changes")
        for surprise in found.surprises(ITEMS_DOWN):
            yield Text(f"  {surprise.told(is_now)}")
    shown = found.changed_items[:ITEMS_DOWN]
    if shown:
        title = "Answers that differ"
        if over_time:
            title = "Answers that changed"
        yield Text(f"\n{title}, {len(shown)} of {found.differing:,}")
        rows = listing()
        for item in shown:
            rows.add_row(
                f"  {brief(item.item, 40)}",
                f"label {item.label!r}",
                f"{item.old!r} -> {item.new!r}",
                Text(_judged(item), style="dim"),
            )
        yield rows


def _judged(item: ChangedItem) -> str:
    if item.new == item.label:
        return "better"
    if item.old == item.label:
        return "worse"
    return "wrong both times"


def _by_label(shift: Shift, readings: Readings, *, before: str) -> Table:
    """Lay out how recall and precision changed, first where the recall surely changed most."""

    def closeness_to_zero(label: str) -> float:
        interval = readings.recall[label]
        return -max(interval.low, -interval.high, 0.0)

    rows = table("label", f"recall, {before}", "change", f"precision, {before}", "change")
    labels = sorted(shift.new.labels, key=closeness_to_zero)
    for label in labels[:LABELS_DOWN]:
        rows.add_row(
            Text(brief(label, 30)),
            _share(shift.recall[label].old),
            _span(readings.recall[label]),
            _share(shift.precision[label].old),
            _span(readings.precision[label]),
        )
    hidden = len(labels) - LABELS_DOWN
    if hidden > 0:
        rows.add_row(f"... and {hidden:,} more (--json)", "", "", "", "")
    return rows


def _share(value: float) -> str:
    if isnan(value):
        return "-"
    return f"{100 * value:.1f}%"


def _span(interval: Interval) -> str:
    # A share cannot change by more than 1, so such an interval says nothing.
    if not (interval.low > -1.0 or interval.high < 1.0):
        return "not known"
    return f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}"


def _between(change: Interval) -> str:
    ends = f"between {100 * change.low:+.1f} and {100 * change.high:+.1f}"
    return f"{points(change.estimate)}, {ends}"


def _other_readings(readings: Readings) -> Iterator[str]:
    share = readings.differing
    if share is not None:
        ends = f"between {percent(share.low)} and {percent(share.high)}"
        yield f"Share of all answers that differ: {percent(share.estimate)}, {ends}."
    cost = readings.cost
    if cost is not None:
        ends = f"between {cost.low:+.3g} and {cost.high:+.3g}"
        yield f"Change of the cost of mistakes per item: {cost.estimate:+.3g}, {ends}."


def _groups(found: Assessment) -> Table:
    rows = listing()
    for group in found.groups:
        change = "nothing was asked"
        if group.change is not None:
            change = _between(group.change)
        answers = counted(group.answers, "answer")
        rows.add_row(f"  {brief(group.group, 30)}", percent(group.old), change, answers)
    gap = found.gap
    if gap is not None:
        name = f"  gap between {brief(gap.best, 20)} and {brief(gap.worst, 20)}"
        rows.add_row(Text(name), points(gap.old, sign=False), _between(gap.change), "")
    return rows


def _cost(found: Assessment) -> Iterator[str]:
    """Yield what the run cost, what failed, and how precise the result is."""
    yield (
        f"Run {found.run}: {_spent(found.queries, found.cost)}, "
        f"{counted(found.answers, 'answer')}; {found.items:,} items. "
        f"It ended because {STOPPED[found.stopped]}. Seed {found.seed}."
    )
    if found.errors:
        yield (
            f"{found.errors:,} items failed for good ({ERROR}); "
            "they are a column of the matrix, not wrong answers."
        )
    if found.error_bound is not None:
        bound = (
            f"The error of the shift is at most {percent(found.error_bound)} "
            f"(Frobenius norm, {percent(found.confidence)} confidence)"
        )
        if found.uniform_queries:
            bound += (
                "; post-stratified uniform sampling would have needed about "
                f"{found.uniform_queries:,} queries for that"
            )
        yield f"{bound}."
    if found.shift is not None:
        unreadable = _unreadable(found.shift.new)
        if unreadable > 0.0:
            yield f"{percent(unreadable)} of the answers could not be read as a label ({INVALID})."


def _unreadable(matrix: Matrix) -> float:
    if INVALID not in matrix.predictions:
        return 0.0
    return float(matrix.values[:, matrix.predictions.index(INVALID)].sum())


def _spent(queries: int, cost: float | None) -> str:
    spent = counted(queries, "query")
    if cost is not None:
        spent += f" for {cost:.6g}"
    return spent
