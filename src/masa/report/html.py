"""An assessment or a baseline as one page that opens anywhere: no script, nothing loaded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masa.records import Assessment, Baseline, Floats, Interval, Matrix, Shift
from masa.report import drawings, sentences
from masa.report.drawings import Axis
from masa.report.judged import Judged, judged
from masa.report.words import percent, points
from masa.settings import Tolerance

if TYPE_CHECKING:
    from jinja2 import Environment, Template

MOST_ACROSS = 40
"""A matrix with more labels or answers shows those that changed most."""

MOST_ENTRIES = 500
"""The most entries that are listed."""

MOST_ITEMS = 500
"""The most changed items that are listed."""

MOST_LABELS = 200
"""The most labels whose changes are listed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of a matrix as it is shown."""

    value: float
    strength: float
    """from 0 to 1: how strong its colour is"""
    tone: str = ""
    """better or worse, where the interval does not hold 0"""
    low: float | None = None
    high: float | None = None
    hint: str = ""
    digits: int = 1

    @property
    def text(self) -> str:
        """The value in points, a dot where it would be zero."""
        if abs(100 * self.value) < 0.5 * 0.1**self.digits:
            return "\u00b7"
        if self.low is None:
            return f"{100 * self.value:.{self.digits}f}"
        return f"{100 * self.value:+.{self.digits}f}".replace("-", "\u2212")


@dataclass(frozen=True, slots=True)
class Grid:
    """A matrix as it is shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the shift with its interval, in a list."""

    label: str
    answer: str
    old: float
    new: float
    low: float
    high: float
    tone: str


@dataclass(frozen=True, slots=True)
class Row:
    """One change in a list of changes."""

    name: str
    old: float | None
    change: Interval
    drawn: str
    tone: str

    @property
    def known(self) -> bool:
        """Whether anything is known about it."""
        return self.change.low > -1.0 or self.change.high < 1.0


def assessment(found: Assessment) -> str:
    """Write an assessment as a page."""
    shown = found.all_changed_items
    worst_first = sorted(
        shown,
        key=lambda one: ("worse", "wrong both times", "better").index(
            one.how or "wrong both times"
        ),
    )
    page = {
        "found": found,
        "sentences": sentences,
        "judged": [_drawn(one, found) for one in judged(found)],
        "changes": list(_changes(found)),
        "items": worst_first[:MOST_ITEMS],
        "more_items": found.differing - min(len(worst_first), MOST_ITEMS),
        "with_texts": any(one.text for one in shown),
        "allocation": _allocation(found),
        "course": _course(found),
        "tolerance": Tolerance.read(found.tolerance).words,
        **matrices(found),
    }
    return template("assessment.html").render(page)


def baseline(found: Baseline) -> str:
    """Write a baseline as a page."""
    grids = grids_of(found.matrix)
    page = {"found": found, "lines": lines_of(found), "grid": grids[0] if grids else None}
    return template("baseline.html").render(page)


def piece(title: str, inside: str) -> str:
    """Make a page of a piece that is HTML already."""
    from markupsafe import Markup

    return template("piece.html").render(title=title, inside=Markup(inside))  # noqa: S704


def lines_of(found: Baseline) -> list[str]:
    """Tell a baseline in lines."""
    from masa.report.assessment import baseline as in_words

    return str(in_words(found)).split("\n")


def grids_of(matrix: Matrix | None) -> tuple[Grid, ...]:
    """Lay out one matrix, if there is one."""
    if matrix is None:
        return ()
    largest = max(float(matrix.values.max()), 1e-12)
    return (_plain_grid("What was answered", matrix, *_largest(matrix.values), largest),)


def drawings_of(found: Assessment) -> list[str]:
    """Draw the intervals that the verdict rests on."""
    return [_drawn(one, found)["svg"] for one in judged(found)]


def matrices(found: Assessment) -> dict[str, Any]:
    """Lay out the shift, the old and the new matrix, and the entries that surely changed."""
    shift, readings = found.shift, found.readings
    if shift is None:
        return {"grids": (), "entries": (), "more_entries": 0, "cut": False}
    rows, columns = _largest(shift.values)
    low, high = (shift.values, shift.values) if readings is None else (readings.low, readings.high)
    entries = list(_entries(shift, low, high))
    top = max(float(shift.old.values.max()), float(shift.new.values.max()), 1e-12)
    names = [f"{side[:1].upper()}{side[1:]}" for side in found.sides]
    return {
        "grids": (
            grid_of_shift(shift, low, high),
            _plain_grid(names[0], shift.old, rows, columns, top),
            _plain_grid(names[1], shift.new, rows, columns, top),
        ),
        "entries": entries[:MOST_ENTRIES],
        "more_entries": max(0, len(entries) - MOST_ENTRIES),
        "cut": len(rows) * len(columns) < shift.values.size,
    }


def _largest(values: Floats) -> tuple[list[int], list[int]]:
    """Give the rows and columns with the most in them, in their own order."""
    size = abs(values)
    rows = sorted(range(size.shape[0]), key=lambda i: -size[i].sum())[:MOST_ACROSS]
    columns = sorted(range(size.shape[1]), key=lambda j: -size[:, j].sum())[:MOST_ACROSS]
    return sorted(rows), sorted(columns)


def _digits(largest: float) -> int:
    """Give the digits after the point with which entries are told apart."""
    return 1 + sum(100 * largest < limit for limit in (1.0, 0.1))


def grid_of_shift(shift: Shift, low: Floats, high: Floats) -> Grid:
    """Lay out a shift and the ends of the intervals of its entries (L, P)."""
    rows, columns = _largest(shift.values)
    largest = max(float(abs(shift.values).max()), 1e-12)
    labels, answers = shift.new.labels, shift.new.predictions
    digits = _digits(largest)

    def cell(i: int, j: int) -> Cell:
        value, least, most = float(shift.values[i, j]), float(low[i, j]), float(high[i, j])
        hint = (
            f"{labels[i]!r} answered {answers[j]!r}: {percent(float(shift.old.values[i, j]))} -> "
            f"{percent(max(0.0, float(shift.new.values[i, j])))} of all items, "
            f"change {sentences.between(Interval(value, least, most))}"
        )
        tone = _tone(labels[i] == answers[j], least, most)
        strength = round(min(1.0, abs(value) / largest), 2)
        return Cell(value, strength, tone, least, most, hint, digits)

    return Grid(
        "What changed",
        tuple(answers[j] for j in columns),
        tuple((labels[i], tuple(cell(i, j) for j in columns)) for i in rows),
        signed=True,
    )


def _plain_grid(
    title: str, matrix: Matrix, rows: list[int], columns: list[int], largest: float
) -> Grid:
    values = matrix.values
    return Grid(
        title,
        tuple(matrix.predictions[j] for j in columns),
        tuple(
            (
                matrix.labels[i],
                tuple(
                    Cell(
                        max(0.0, float(values[i, j])),
                        round(max(0.0, float(values[i, j])) / largest, 2),
                        digits=_digits(largest),
                    )
                    for j in columns
                ),
            )
            for i in rows
        ),
    )


def _tone(is_right: bool, low: float, high: float) -> str:
    """Say whether a change is surely better or worse; nothing where the interval holds 0."""
    if low <= 0.0 <= high:
        return ""
    return "better" if (low > 0.0) == is_right else "worse"


def _entries(shift: Shift, low: Floats, high: Floats) -> Iterator[Entry]:
    """Give the entries that surely changed, the largest change first."""
    sure = (low > 0.0) | (high < 0.0)
    order = abs(shift.values * sure).argsort(axis=None)[::-1][: int(sure.sum())]
    for place in order.tolist():
        i, j = divmod(place, shift.values.shape[1])
        label, answer = shift.new.labels[i], shift.new.predictions[j]
        ends = float(low[i, j]), float(high[i, j])
        old, new = float(shift.old.values[i, j]), float(shift.new.values[i, j])
        yield Entry(label, answer, old, new, *ends, _tone(label == answer, *ends))


def _drawn(one: Judged, found: Assessment) -> dict[str, Any]:
    """Draw an interval that the verdict rests on."""
    axis = Axis.of(one.interval.low, one.interval.high, -one.limit, one.limit)
    tone = sentences.tone(found)
    unit = 1.0 if one.kind == "cost" else 100.0
    return {
        "one": one,
        "svg": drawings.interval(axis, one.interval, tolerance=one.limit, tone=tone, height=40),
        "ends": [f"{unit * end:+.3g}" for end in (axis.low, axis.high)],
        "unit": "" if one.kind == "cost" else "points",
    }


def _changes(found: Assessment) -> Iterator[tuple[str, list[Row], int]]:
    """Give the lists of changes: recall and precision by label, groups."""
    shift, readings = found.shift, found.readings
    if shift is None or readings is None:
        return
    sides: tuple[tuple[str, Mapping[str, Interval], Mapping[str, float]], ...] = (
        ("recall", readings.recall, shift.old.recall),
        ("precision", readings.precision, shift.old.precision),
    )
    for what, intervals, old in sides:
        rows = list(_rows(intervals, old))
        title = {
            "recall": "Recall by label: the share of its items that are answered with it",
            "precision": "Precision by label: the share of answers with it that are right",
        }[what]
        yield title, rows[:MOST_LABELS], max(0, len(rows) - MOST_LABELS)
    if found.groups:
        named = {one.group: one.change or Interval(float("nan"), -1.0, 1.0) for one in found.groups}
        before = {one.group: one.old for one in found.groups}
        yield "Right answers by group", list(_rows(named, before)), 0


def _rows(intervals: Mapping[str, Interval], old: Mapping[str, float]) -> Iterator[Row]:
    """Lay out changes, first those that surely changed most."""
    known = [one for one in intervals.values() if one.low > -1.0 or one.high < 1.0]
    axis = Axis.of(*(end for one in known for end in (one.low, one.high)))

    def place(name: str) -> tuple[float, float]:
        one = intervals[name]
        change = 0.0 if isnan(one.estimate) else abs(one.estimate)
        return -max(one.low, -one.high, 0.0), -change

    for name in sorted(intervals, key=place):
        one, before = intervals[name], old[name]
        tone = _tone(True, one.low, one.high)
        drawn = "" if isnan(one.estimate) else drawings.interval(axis, one, tone=tone)
        yield Row(name, None if isnan(before) else before, one, drawn, tone)


def _allocation(found: Assessment) -> list[dict[str, Any]]:
    """Lay out where the queries went, first where most went."""
    labels = sorted(found.label_queries, key=lambda one: -one.answers)[:MOST_ACROSS]
    most = max((max(one.answers, one.best) for one in labels), default=0.0)
    return [
        {"one": one, "drawn": drawings.allocation(one.answers, one.best, most)} for one in labels
    ]


def _course(found: Assessment) -> str:
    """Draw how the interval narrowed, where there is more than its end."""
    if len(found.steps) < 2:
        return ""
    return drawings.course(found.steps, Tolerance.read(found.tolerance).limits.get("accuracy"))


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": _percent, "points": points, "span": _span}
    return made


def template(name: str) -> "Template":
    """Give a template by its name."""
    return _environment().get_template(name)


def _percent(value: float | None) -> str:
    return "" if value is None or isnan(value) else percent(value)


def _span(interval: Interval) -> str:
    """Write the ends of an interval in points."""
    if not (interval.low > -1.0 or interval.high < 1.0) or isnan(interval.low):
        return "not known"
    text = f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}"
    return text.replace("-", "\u2212")
