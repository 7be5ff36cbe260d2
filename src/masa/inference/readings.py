"""What is read off a shift, how sure each of it is, and whether it matters."""

from collections.abc import Callable, Iterator
from functools import cached_property
from math import isnan

import numpy as np

from masa.inference.confidence_sequence import ConfidenceSequence
from masa.inference.estimate import Estimate, answered_so, right_answers
from masa.inference.sample import InColumn, Table, Weights
from masa.inference.spread import LARGEST, normal
from masa.records import ERROR, INVALID, Bools, Change, Floats, Interval, Readings
from masa.settings import Objective

PRECISELY = 12
"""Halvings of what the end of a precision's interval may be."""

Looks = Callable[[float], float]
"""Gives how many standard errors an interval of this confidence reaches, with regard to how often it was looked at."""


class Reader:
    """Reads intervals off an estimated shift. What is read at once holds at once: each of m then has 1/m of the doubt."""

    def __init__(self, found: Estimate, confidence: float, looks: Looks | None = None) -> None:
        self._found = found
        self._confidence = confidence
        self._looks = looks or normal
        self._shift = found.shift
        labels = len(self._shift.new.labels)
        self._weight = np.maximum(
            self._shift.old.values.sum(axis=1), self._shift.new.values.sum(axis=1)
        )
        sides = [[one.label for one in side] for side in (found.now, found.then)]
        blind = [
            np.bincount(np.concatenate(side), minlength=labels) == 0
            if side
            else np.zeros(labels, bool)
            for side in sides
        ]
        self._blind: Bools = (blind[0] | blind[1]) & (self._weight > 0.0)
        """(L,) labels of which nothing was answered on one side"""
        self._failed_then, self._failed_now = (
            answered_so(ERROR, side) for side in (found.shift.old, found.shift.new)
        )

    def one_of(self, many: int) -> float:
        """Give the confidence of an interval that is one of many."""
        return 1.0 - (1.0 - self._confidence) / max(many, 1)

    def z(self, many: int = 1) -> float:
        """Give how many standard errors an interval reaches that is one of many."""
        return self._looks(self.one_of(many))

    def half(
        self,
        found: Estimate,
        table: Weights,
        many: int,
        centre: float,
        before: Weights | None = None,
    ) -> float:
        """Give how far from the estimate, the centre, a sum over the matrix may have changed, which is one of many."""
        if found.sequence is not None:
            return found.sequence.half(table, self.one_of(many), centre)
        return found.spread(table, before).reach(self.z(many))

    def accuracy(self) -> Interval:
        """Give the change of the share of right answers."""
        if self._found.sequence is None:
            return self._found.interval(self._confidence, self.z())
        change, right = self._shift.accuracy.change, right_answers(self._shift.new)
        then, now = float(self._failed_then.sum()), float(self._failed_now.sum())
        half = self.half(self._found, Table(right, most=1.0), 1, change)
        at_most = half
        if now > 0.0:  # All that failed may be right.
            right[:, self._shift.new.predictions.index(ERROR)] = 1.0
            at_most = now + self.half(self._found, Table(right, most=1.0), 1, change + now)
        return self._found.possible(change, change - half - then, change + at_most)

    def entries(self) -> tuple[Floats, Floats]:
        """Give the least and the most (L, P) that each entry of the shift may be, all at once."""
        shift = self._shift.values
        half = self._halves[:, :-1]
        weight = np.broadcast_to(self._weight[:, None], shift.shape)
        least, most = (
            (-self._shift.old.values, weight - self._shift.old.values)
            if self._found.old_known
            else (-weight, weight)
        )
        low = np.minimum(np.maximum(shift - half, least) - self._failed_then[:, None], shift)
        high = np.maximum(np.minimum(shift + half + self._failed_now[:, None], most), shift)
        known = (
            1.0 - self._found.uncovered_share
        )  # Of all items, those of labels of which nothing is known being others.
        return np.where(low > 0.0, known * low, low), np.where(high < 0.0, known * high, high)

    @cached_property
    def _halves(self) -> Floats:
        """Give how far each entry of the shift may be off (L, P + 1), in the last column those of answers nobody has given."""
        shift = self._shift.values
        labels, answers = shift.shape
        many = int(np.count_nonzero(self._weight > 0.0)) * (answers + 1)
        half = np.zeros((labels, answers + 1))
        half[self._blind] = 1.0
        for row in np.flatnonzero((self._weight > 0.0) & ~self._blind).tolist():
            alone = self._found.of_label(row)
            seen = alone.answered()
            for column in seen:
                table = np.zeros((1, answers))
                table[0, column] = 1.0
                half[row, column] = self.half(alone, Table(table), many, float(shift[row, column]))
            never = np.setdiff1d(np.arange(answers + 1), seen)  # They are all alike.
            half[row, never] = self.half(alone, Table(np.zeros((1, answers)), most=1.0), many, 0.0)
        return half

    def recall(self) -> dict[str, Interval]:
        """Give, by label, the change of the share that is recognised, all at once."""
        right, many = right_answers(self._shift.new), int(np.count_nonzero(self._weight > 0.0))
        found = {}
        for row, (label, change) in enumerate(self._shift.recall.items()):
            weight = self._weight[row]
            if weight <= 0.0:
                found[label] = Interval(float("nan"), -1.0, 1.0)
                continue
            table = Table(right[row : row + 1] / weight, most=1.0 / weight)
            half = (
                2.0
                if self._blind[row]
                else self.half(self._found.of_label(row), table, many, change.change)
            )
            low, high = (
                half + self._failed_then[row] / weight,
                half + self._failed_now[row] / weight,
            )
            found[label] = self._possible(change, low, high, self._failed_then[row] / weight)
        return found

    def precision(self) -> dict[str, Interval]:
        """Give, by label, the change of the share of what is taken for it that is it, all at once."""
        many, names = len(self._shift.new.labels), self._shift.new.predictions
        unknown = float(self._weight[self._blind].sum())
        lost = self._found.uncovered_share / max(
            1.0 - self._found.uncovered_share, 1e-12
        )  # They may be answered anything, as what failed.
        failed = [float(side.sum()) + lost for side in (self._failed_then, self._failed_now)]
        found = {}
        for row, (label, change) in enumerate(self._shift.precision.items()):
            found[label] = Interval(change.change, -1.0, 1.0)
            if label not in names or self._blind[row]:
                continue
            column = names.index(label)
            then, now = (
                float(matrix.values[:, column].sum())
                for matrix in (self._shift.old, self._shift.new)
            )
            # Of what little is answered nothing can be said: its share of all answers must be known to be above 0 itself.
            known = (
                now
                - self.half(self._found, InColumn(row, column, 1.0, 1.0), many, now - then)
                - failed[1]
                - unknown
            )
            if self._found.sequence is not None and not isnan(change.change):
                ends = self._strict_precision(self._found.sequence, row, column, many)
                slack = [
                    part / (part + least) if part else 0.0
                    for part, least in zip(failed, (then, max(known, 0.0)), strict=True)
                ]
                low, high = (
                    change.change - ends[0] + change.old + sum(slack),
                    ends[1] - change.new + sum(slack),
                )
                found[label] = self._possible(change, low, high, slack[0], slack[0])
            if self._found.sequence is not None or min(known, then - failed[0]) <= 0.0:
                continue
            tables = [
                InColumn(row, column, (1.0 - share) / total, -share / total)
                for share, total in ((change.old, then), (change.new, now))
            ]
            values = self._shift.values[:, column]
            centre = float(
                tables[1].there * values.sum() + (tables[1].here - tables[1].there) * values[row]
            )
            half = self.half(self._found, tables[1], many, centre, tables[0]) * now / known
            off = failed[0] / (failed[0] + then)
            half += off + (failed[1] + unknown) / known
            found[label] = self._possible(change, half, half, off, off)
        return found

    def _possible(
        self, change: Change, below: float, above: float, more: float, less: float = 0.0
    ) -> Interval:
        """Give the interval for a share that is between 0 and 1 now, and before was what it was, or so much more or less."""
        least, most = (
            (max(-1.0, -change.old - more), min(1.0, 1.0 - change.old + less))
            if self._found.old_known
            else (-1.0, 1.0)
        )
        low, high = max(least, change.change - below), min(most, change.change + above)
        return Interval(change.change, min(low, change.change), max(high, change.change))

    def _strict_precision(
        self, sequence: ConfidenceSequence, row: int, column: int, many: int
    ) -> tuple[float, float]:
        """Give the precisions that would make the sum of its column, less that much of it, possible: zero for the true one."""
        old = self._shift.old.values[:, column]
        confidence = self.one_of(many)

        def may_be(precision: float) -> bool:
            low, high = sequence.ends(
                InColumn(row, column, 1.0 - precision, -precision), confidence
            )
            before = float(old[row] - precision * old.sum())
            return low - 1e-12 <= -before <= high + 1e-12

        now = self._shift.new.values[:, column]
        best = float(now[row] / now.sum()) if now.sum() > 0.0 else 0.5
        if not may_be(best):
            return 0.0, 1.0

        def end(outside: float) -> float:
            inside = best
            for _ in range(0 if may_be(outside) else PRECISELY):
                middle = 0.5 * (inside + outside)
                inside, outside = (middle, outside) if may_be(middle) else (inside, middle)
            return outside

        return end(0.0), end(1.0)

    def norm(self) -> Interval:
        """Give the Frobenius norm of the shift: no further from the estimate than the estimate from the shift."""
        norm, bound = self._shift.norm, self._found.bound(self._confidence)
        return Interval(norm, max(0.0, norm - bound), min(LARGEST, norm + bound))

    def differing(self) -> Interval | None:
        """Give the share of all answers that are not as before."""
        share = self._found.differing
        if share is None:
            return None
        if self._found.sequence is not None:
            half = self._found.sequence.half_differing(self._confidence, share)
        else:
            half = (
                self._found.now[0].differing().reach(self.z())
                + float(self._weight[self._blind].sum())
                + self._found.uncovered_share
            )
        failed = float(self._failed_then.sum() + self._failed_now.sum())
        return Interval(share, max(0.0, share - half), min(1.0, share + half + failed))

    def cost(self, objective: Objective) -> Interval | None:
        """Give the change of what mistakes cost, an item."""
        if not objective.linear or objective.accuracy:
            return None
        labels, names = self._shift.new.labels, self._shift.new.predictions
        more = objective.table(labels, (*names, *labels, *objective.names, INVALID))
        table, beyond = more[:, : len(names)], more[:, len(names) :]
        costs = Table(table, beyond.min(axis=1), beyond.max(axis=1))
        change = float((table * self._shift.values).sum())
        far = costs.far(np.arange(len(labels)))
        half = self.half(self._found, costs, 1, change) + float(
            (far * self._weight)[self._blind].sum()
        )
        half += (
            float(far @ (self._failed_then + self._failed_now))
            + float(far.max(initial=0.0)) * 2.0 * self._found.uncovered_share
        )
        return Interval(change, change - half, change + half)

    def all(self, objective: Objective) -> Readings:
        """Read everything."""
        low, high = self.entries()
        return Readings(
            low,
            high,
            self.recall(),
            self.precision(),
            self.norm(),
            self.differing(),
            self.cost(objective),
        )

    def read(self, kind: str, objective: Objective) -> Iterator[tuple[Interval, int]]:
        """Give the intervals of what a tolerance is on, and whether more of it is better (1) or worse (-1).

        Labels that nobody has, and those that were and are never answered, have no recall or no precision.
        """
        if self._found.uncovered_share and kind in ("recall", "precision", "entry"):
            yield Interval(0.0, -1.0, 1.0), 1
        if kind == "accuracy":
            yield self.accuracy(), 1
        elif kind in ("recall", "precision"):
            known = self.recall() if kind == "recall" else self.precision()
            yield from (
                (interval, 1) for interval in known.values() if not isnan(interval.estimate)
            )
        elif kind == "cost":
            cost = self.cost(objective)
            if cost is not None:
                yield cost, -1
        else:
            low, high = self.entries()
            right = right_answers(self._shift.new)
            for row in np.flatnonzero(self._weight > 0.0):
                for column, name in enumerate(self._shift.new.predictions):
                    if name != ERROR:  # A failure is no answer.
                        ends = float(low[row, column]), float(high[row, column])
                        yield (
                            Interval(float(self._shift.values[row, column]), *ends),
                            1 if right[row, column] else -1,
                        )
            unseen = self._halves[:, -1]
            yield Interval(0.0, 0.0, float(unseen[self._weight > 0.0].max(initial=0.0))), -1
