"""Assessments and baselines in the terminal: the verdict first, then why, then what it cost."""

from collections.abc import Iterator
from math import isnan

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from masa.records import (
    ERROR,
    Assessment,
    Baseline,
    Interval,
    Readings,
    Shift,
)
from masa.report import sentences
from masa.report.judged import Judged, judged
from masa.report.shift import heat_map
from masa.report.tables import listing, table
from masa.report.words import brief, counted, percent, plain, points

LABELS_DOWN = 6
"""The most labels in the table of changes by label."""

ITEMS_DOWN = 3
"""The most changed items that are shown, and the most surprising entries."""

STYLES = {"changed": "bold red", "unchanged": "bold green", "undecided": "bold yellow"}
"""The style of each verdict."""

WIDTH = 56
"""The characters of a drawn interval."""


def assessment(found: Assessment) -> RenderableType:
    """Lay out one assessment: the verdict and why, what changed, and what it cost."""
    style = "bold green" if sentences.tone(found) == "better" else STYLES[found.verdict]
    parts: list[RenderableType] = [
        Text.assemble(
            (sentences.word(found), style),
            f"  {sentences.reason(found)}",
            (sentences.over_budget(found), "bold red"),
        ),
        *(drawn(one) for one in judged(found)[:2]),
        Text(sentences.any_change(found)),
    ]
    parts += [Text(line) for line in sentences.what_it_would_take(found)]
    if (right := sentences.accuracy(found)) is not None:
        parts.append(Text(right))
    if found.shift is not None:
        parts += [Text(""), heat_map(found.shift), *_examples(found)]
        if found.readings is not None:
            title = (
                f"Change by label, in points (simultaneous {percent(found.confidence)} intervals)"
            )
            rows = _by_label(found.shift, found.readings, before=brief(found.sides[0]))
            parts += [Text(f"\n{title}"), rows]
            parts += [Text(line) for line in sentences.other_readings(found)]
    if found.groups:
        parts += [Text("\nRight answers by group"), _groups(found)]
    cost = [sentences.ending(found), *sentences.precision(found)]
    parts.append(Text("\n" + "\n".join(cost), style="dim"))
    if (step := sentences.next_step(found)) is not None:
        parts.append(Text(f"Next: {step}", style="dim"))
    return Group(*parts)


def drawn(one: Judged) -> Text:
    """Draw an interval on an axis, with the tolerance around zero."""
    interval, limit = one.interval, one.limit
    far = 1.1 * max(abs(interval.low), abs(interval.high), limit)
    if not far > 0.0:
        return Text("")

    def at(value: float) -> int:
        return min(WIDTH - 1, max(0, round((value + far) / (2 * far) * (WIDTH - 1))))

    signs = ["\u2500"] * WIDTH
    for place in range(at(-limit), at(limit) + 1):
        signs[place] = "\u2591"
    signs[at(0.0)] = "\u253c"
    for place in range(at(interval.low), at(interval.high) + 1):
        signs[place] = "\u2501"
    signs[at(interval.low)], signs[at(interval.high)] = "\u251d", "\u2525"
    signs[at(interval.estimate)] = "\u25cf"
    unit = 1.0 if one.kind == "cost" else 100.0
    line = "".join(signs)
    return Text(f"  {-unit * far:+.3g} {line} {unit * far:+.3g}  (\u2591 tolerance)", style="dim")


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
    spent = sentences.spent(found.queries, found.cost)
    lines.append(f"{spent}; it ended because {sentences.STOPPED[found.stopped]}.")
    lines[0] += sentences.over_budget(found)
    return Text("\n".join(lines))


def _examples(found: Assessment) -> Iterator[RenderableType]:
    """Yield the most surprising entries and some of the items whose answers changed."""
    if found.surprising:
        yield Text("\nMost surprising changes")
        for one in found.surprises(ITEMS_DOWN):
            yield Text(f"  {sentences.surprise(found, one)}")
    shown = found.changed_items[:ITEMS_DOWN]
    if shown:
        title = "Answers that differ"
        if sentences.is_over_time(found):
            title = "Answers that changed"
        yield Text(f"\n{title}, {len(shown)} of {found.differing:,}")
        rows = listing()
        for item in shown:
            rows.add_row(
                f"  {brief(item.item, 40)}",
                f"label {item.label!r}",
                f"{item.old!r} -> {item.new!r}",
                Text(item.how, style="dim"),
                Text(brief(item.text, 60), style="dim"),
            )
        yield rows


def _by_label(shift: Shift, readings: Readings, *, before: str) -> Table:
    """Lay out how recall and precision changed, first where the recall surely changed most."""

    def closeness_to_zero(label: str) -> tuple[float, float]:
        interval = readings.recall[label]
        change = 0.0 if isnan(interval.estimate) else abs(interval.estimate)
        return -max(interval.low, -interval.high, 0.0), -change

    rows = table(
        "label", f"recall, {before}", "change of it", f"precision, {before}", "change of it"
    )
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


def _groups(found: Assessment) -> Table:
    rows = listing()
    for group in found.groups:
        change = "nothing was asked"
        if group.change is not None:
            change = sentences.between(group.change)
        answers = counted(group.answers, "answer")
        rows.add_row(f"  {brief(group.group, 30)}", percent(group.old), change, answers)
    gap = found.gap
    if gap is not None:
        name = f"  gap between {brief(gap.best, 20)} and {brief(gap.worst, 20)}"
        rows.add_row(Text(name), points(gap.old, sign=False), sentences.between(gap.change), "")
    return rows
