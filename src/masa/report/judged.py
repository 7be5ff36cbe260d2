"""What a verdict rests on: the interval of each tolerance that lies furthest out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan

from masa.records import ERROR, Assessment, Interval, Readings, Shift
from masa.settings import Tolerance


@dataclass(frozen=True, slots=True)
class Judged:
    """One interval, and the change that does not matter."""

    kind: str
    """accuracy, recall, precision, entry, answers or cost"""
    name: str
    """the quantity in words"""
    interval: Interval
    limit: float
    old: float | None = None
    """its value before, where it is a share"""

    @property
    def outside(self) -> float:
        """How far beyond its tolerance the whole interval lies; negative where part is inside."""
        return max(self.interval.low - self.limit, -self.limit - self.interval.high)

    @property
    def furthest(self) -> float:
        """How far beyond its tolerance any end lies."""
        return max(abs(self.interval.low), abs(self.interval.high)) - self.limit


def judged(found: Assessment) -> tuple[Judged, ...]:
    """Give for each tolerance the interval that decides: surely outside, or the furthest end."""
    result = []
    for kind, limit in Tolerance.read(found.tolerance).limits.items():
        read = [
            Judged(kind, name, interval, limit, old) for name, interval, old in _read(found, kind)
        ]
        outside = [one for one in read if one.outside > 0.0]
        if outside:
            result.append(max(outside, key=lambda one: one.outside))
        elif read:
            result.append(max(read, key=lambda one: one.furthest))
    return tuple(sorted(result, key=lambda one: -one.outside))


def _read(found: Assessment, kind: str) -> Iterator[tuple[str, Interval, float | None]]:
    """Give the intervals of one kind by their names, with the values before."""
    shift, readings = found.shift, found.readings
    if shift is None or found.accuracy_change is None:
        return
    if kind == "accuracy":
        yield "right answers", found.accuracy_change, shift.accuracy.old
    elif readings is None:
        return
    elif kind == "recall":
        yield from _by_label("recall", readings.recall, shift.old.recall)
    elif kind == "precision":
        yield from _by_label("precision", readings.precision, shift.old.precision)
    elif kind == "answers" and readings.differing is not None:
        yield "answers that differ", readings.differing, None
    elif kind == "cost" and readings.cost is not None:
        yield "cost of mistakes per item", readings.cost, None
    elif kind == "entry":
        yield from _entries(shift, readings)


def _entries(shift: Shift, readings: Readings) -> Iterator[tuple[str, Interval, float | None]]:
    for i, label in enumerate(shift.new.labels):
        for j, answer in enumerate(shift.new.predictions):
            if answer != ERROR:
                change, old = float(shift.values[i, j]), float(shift.old.values[i, j])
                ends = float(readings.low[i, j]), float(readings.high[i, j])
                yield f"{label!r} taken for {answer!r}", Interval(change, *ends), old


def _by_label(
    what: str, intervals: Mapping[str, Interval], old: Mapping[str, float]
) -> Iterator[tuple[str, Interval, float | None]]:
    for label, interval in intervals.items():
        if not isnan(interval.estimate):
            before = old[label]
            yield f"{what} of {label!r}", interval, None if isnan(before) else before
