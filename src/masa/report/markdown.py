"""An assessment in Markdown, as GitHub and GitLab show it: for summaries, comments and issues."""

import re
from collections.abc import Iterator, Sequence
from math import isnan

from masa.records import Assessment, ChangedItem
from masa.report import sentences
from masa.report.words import brief, percent, plain

ALERTS = {
    "worse": "CAUTION",
    "changed": "CAUTION",
    "better": "IMPORTANT",
    "unknown": "WARNING",
    "fine": "TIP",
}
"""The kind of alert for each tone."""

ITEMS = 20
"""The most changed items that are listed."""

ROWS = 10
"""The most labels that are listed."""

LONGEST = 60_000
"""The most characters: a comment on GitHub may have 65,536."""


def assessment(found: Assessment) -> str:
    """Write an assessment; sections only where there is something to say, details folded."""
    shown = found.all_changed_items
    name = "" if found.made is None else f"{escaped(found.made.name)}, "
    lines = [
        f"> [!{ALERTS[sentences.tone(found)]}]",
        f"> **{sentences.word(found)}** {escaped(sentences.reason(found))}"
        f"{escaped(sentences.over_budget(found))}",
        "",
        f"{name}run {found.run}. {escaped(sentences.any_change(found))}",
        *(escaped(line) for line in sentences.what_it_would_take(found)),
    ]
    if (right := sentences.accuracy(found)) is not None:
        lines.append(escaped(right))
    if found.surprising:
        lines += ["", "**Most surprising**", ""]
        lines += [f"- {escaped(sentences.surprise(found, one))}" for one in found.surprises(5)]
    for part in (_labels(found), _groups(found), _items(found, shown), _rest(found)):
        lines += part
    text = "\n".join(lines) + "\n"
    if len(text) > LONGEST:
        text = text[:LONGEST].rsplit("\n", 1)[0] + "\n\n(shortened)\n"
    return text


def _labels(found: Assessment) -> Iterator[str]:
    """Fold the changes by label."""
    shift, readings = found.shift, found.readings
    if shift is None or readings is None:
        return
    ordered = sorted(
        readings.recall, key=lambda one: -max(readings.recall[one].low, -readings.recall[one].high)
    )
    yield from _folded("Recall by label")
    yield f"| label | {escaped(found.sides[0])} | change, points |"
    yield "|---|---:|---:|"
    for label in ordered[:ROWS]:
        one, old = readings.recall[label], shift.recall[label].old
        if one.low <= -1.0 and one.high >= 1.0:
            ends = "not known"
        else:
            ends = f"{100 * one.low:+.1f} to {100 * one.high:+.1f}"
        before = "" if isnan(old) else percent(old)
        yield f"| {cell(label)} | {before} | {ends} |"
    if len(ordered) > ROWS:
        yield f"| and {len(ordered) - ROWS:,} more | | |"
    yield from ("", "</details>")


def _groups(found: Assessment) -> Iterator[str]:
    if not found.groups:
        return
    yield from _folded("Right answers by group")
    yield f"| group | {escaped(found.sides[0])} | change | answers |"
    yield "|---|---:|---:|---:|"
    for one in found.groups[:ITEMS]:
        change = "nothing was asked" if one.change is None else sentences.between(one.change)
        yield f"| {cell(one.group)} | {percent(one.old)} | {change} | {one.answers:,} |"
    yield from ("", "</details>")


def _items(found: Assessment, shown: Sequence[ChangedItem]) -> Iterator[str]:
    """Fold the items whose answers changed."""
    if not shown:
        return
    what = "changed" if sentences.is_over_time(found) else "differ"
    first = shown[:ITEMS]
    yield from _folded(f"Answers that {what}: {len(first):,} of {found.differing:,}")
    texts = any(one.text for one in first)
    yield "| item | label | answer | that is |" + (" text |" if texts else "")
    yield "|---|---|---|---|" + ("---|" if texts else "")
    for one in first:
        row = f"| {cell(one.item)} | {cell(one.label)} | {cell(one.old)} → {cell(one.new)} "
        yield row + f"| {one.how} |" + (f" {cell(one.text, 200)} |" if texts else "")
    yield from ("", "</details>")


def _rest(found: Assessment) -> Iterator[str]:
    """Fold what the run could not see, the notes, and how it was made."""
    yield from _folded("What this run could not see, and how it was made")
    yield from (f"- {escaped(line)}" for line in sentences.not_seen(found))
    yield from ("", escaped(sentences.ending(found)))
    yield from (escaped(line) for line in sentences.precision(found))
    if found.notes:
        yield ""
        yield from (f"- {escaped(note)}" for note in found.notes)
    yield from ("", "| | |", "|---|---|")
    yield from (f"| {name} | {cell(value, 120)} |" for name, value in sentences.how_made(found))
    yield from ("", "</details>")


def _folded(title: str) -> tuple[str, ...]:
    return ("", "<details>", f"<summary>{escaped(title)}</summary>", "")


def escaped(text: str) -> str:
    r"""Escape a text so that it is text in Markdown, and mentions nobody.

    >>> print(escaped("<b>*x*</b> @you"))
    &lt;b&gt;\*x\*&lt;/b&gt; @&#8203;you
    """
    text = plain(text.replace("\n", " "))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", text)
    return re.sub(r"@(?=\w)", "@&#8203;", text).replace("://", ":&#8203;//")


def cell(text: str, most: int = 40) -> str:
    """Escape a text for a cell of a table."""
    return escaped(brief(text, most))
