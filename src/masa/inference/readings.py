"""Read numbers with intervals off an estimated shift."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isnan

import numpy as np

from masa.inference.confidence_sequence import ConfidenceSequence
from masa.inference.estimate import Estimate, answered_so, reach, right_answers
from masa.inference.moved_share import Reach
from masa.inference.sample import ColumnWeights, EntryWeights, Sample, Weights
from masa.inference.share_change import ShareChange
from masa.inference.spread import LARGEST, normal
from masa.records import ERROR, INVALID, Bools, Change, Floats, Interval, Readings
from masa.settings import Objective

PRECISION_HALVINGS = 12
"""Halvings in the search for an end of the strict interval of a precision."""

StandardErrors = Callable[[float], float]
"""Gives the number of standard errors of an interval of some confidence, with regard to how often
it is looked at."""


class Reader:
    """Reads intervals off an estimated shift.

    Intervals that are read together hold together: each of m has 1/m of the error probability.
    """

    def __init__(
        self, found: Estimate, confidence: float, looks: StandardErrors | None = None
    ) -> None:
        self._found = found
        self._confidence = confidence
        self._looks = looks or normal
        self._shift = found.shift
        self._weight = np.maximum(
            self._shift.old.values.sum(axis=1), self._shift.new.values.sum(axis=1)
        )
        """(L,) the share of the items of each label"""
        labels = len(self._weight)
        lacking = _without_answers(found.now, labels) | _without_answers(found.then, labels)
        self._unanswered: Bools = lacking & (self._weight > 0.0)
        """(L,) labels without any answer on one of the two sides"""
        self._failed_then = answered_so(ERROR, found.shift.old)
        """(L,) the share of items that failed in the baseline"""
        self._failed_now = answered_so(ERROR, found.shift.new)
        """(L,) the share of items that failed now"""

    def shared_confidence(self, many: int) -> float:
        """Give the confidence of one of many intervals that are read together."""
        return 1.0 - (1.0 - self._confidence) / max(many, 1)

    def z(self, many: int = 1) -> float:
        """Give the number of standard errors of one of many intervals that are read together."""
        return self._looks(self.shared_confidence(many))

    def half_width(
        self,
        found: Estimate,
        weights: Weights,
        many: int,
        centre: float,
        before: Weights | None = None,
    ) -> float:
        """Give the half width of the interval, one of many, for the change of a weighted sum.

        Centre is the estimate. Before are the weights of the old matrix, where they are others.
        """
        if found.sequence is not None:
            return found.sequence.half_width(weights, self.shared_confidence(many), centre)
        return found.spread(weights, before).half_width(self.z(many))

    def accuracy(self) -> Interval:
        """Give the change of the share of right answers."""
        if self._found.sequence is None:
            return self._found.interval(self._confidence, self.z())
        change, right = self._shift.accuracy.change, right_answers(self._shift.new)
        then, now = float(self._failed_then.sum()), float(self._failed_now.sum())
        below = self.half_width(self._found, EntryWeights(right, unseen_max=1.0), 1, change)
        above = below
        if now > 0.0:
            # All items that failed may be right.
            right[:, self._shift.new.predictions.index(ERROR)] = 1.0
            weights = EntryWeights(right, unseen_max=1.0)
            above = now + self.half_width(self._found, weights, 1, change + now)
        return self._found.possible(change, change - below - then, change + above)

    def entries(self) -> tuple[Floats, Floats]:
        """Give the ends (L, P) of the intervals of all entries of the shift, read together."""
        shift, old = self._shift.values, self._shift.old.values
        below, above = self._entry_distances
        weight = np.broadcast_to(self._weight[:, None], shift.shape)
        smallest, largest = -weight, weight
        if self._found.old_known:
            smallest, largest = -old, weight - old
        below, above = below[:, :-1], above[:, :-1]
        low = np.minimum(np.maximum(shift - below, smallest) - self._failed_then[:, None], shift)
        high = np.maximum(np.minimum(shift + above + self._failed_now[:, None], largest), shift)
        # The ends are shares of all items. Those of uncovered labels belong to other rows, so that
        # what is certain here is a smaller share of all.
        covered = 1.0 - self._found.uncovered_share
        return np.where(low > 0.0, covered * low, low), np.where(high < 0.0, covered * high, high)

    @cached_property
    def _entry_distances(self) -> tuple[Floats, Floats]:
        """How far below and above their estimates the entries may be (L, P + 1).

        The last column is for answers nobody gave.
        """
        shift = self._shift.values
        labels, answers = shift.shape
        many = int(np.count_nonzero(self._weight > 0.0)) * (answers + 1)
        below, above = np.zeros((labels, answers + 1)), np.zeros((labels, answers + 1))
        below[self._unanswered] = above[self._unanswered] = 1.0
        for row in np.flatnonzero((self._weight > 0.0) & ~self._unanswered).tolist():
            alone = self._found.of_label(row)
            was_given = np.flatnonzero(self._shift.old.values[row] > 0.0)
            seen = np.union1d(alone.answered(), was_given)
            for column in seen.tolist():
                estimate = float(shift[row, column])
                below[row, column], above[row, column] = self._of_entry(
                    alone, row, column, many, estimate
                )
            # Answers that the label never got are all alike: one interval serves for all.
            never = np.setdiff1d(np.arange(answers + 1), seen)
            less, more = self._of_entry(alone, row, answers, many, 0.0)
            estimates = np.append(shift[row], 0.0)[never]
            below[row, never] = np.maximum(less + estimates, 0.0)
            above[row, never] = np.maximum(more - estimates, 0.0)
        return below, above

    def _of_entry(
        self, alone: Estimate, row: int, column: int, many: int, estimate: float
    ) -> tuple[float, float]:
        """Give how far below and above the estimate an entry may be, one of many.

        Alone are the answers about its label. Nobody gave an answer whose column is beyond those
        that occur.
        """
        if alone.shares is not None:
            return self._of_answer(alone.shares, row, column, many, estimate)
        answers = self._shift.values.shape[1]
        values = np.zeros((1, answers))
        weights = EntryWeights(values, unseen_max=1.0)
        if column < answers:
            values[0, column] = 1.0
            weights = EntryWeights(values)
        half = self.half_width(alone, weights, many, estimate)
        return half, half

    def _of_answer(
        self, shares: ShareChange, row: int, column: int, many: int, estimate: float
    ) -> tuple[float, float]:
        """Give how far below and above its estimate the change of the share of an answer may be."""
        answer = np.full(1 + max(row, int(shares.whole.label.max(initial=0))), -1)
        answer[row] = column
        ends = shares.of_answer(answer, self._reach(many))
        return max(0.0, estimate - ends.low), max(0.0, ends.high - estimate)

    def _reach(self, many: int = 1) -> Reach:
        """Say how far one of many intervals that are read together reaches."""
        return reach(self.shared_confidence(many), self.z(many))

    def recall(self) -> dict[str, Interval]:
        """Give the changes of the recalls by label, read together."""
        right = right_answers(self._shift.new)
        many = int(np.count_nonzero(self._weight > 0.0))
        found = {}
        for row, (label, change) in enumerate(self._shift.recall.items()):
            weight = self._weight[row]
            if weight <= 0.0:
                found[label] = Interval(float("nan"), -1.0, 1.0)
                continue
            below = above = 2.0
            alone = self._found.of_label(row)
            if alone.shares is not None:
                right_answer = int(np.flatnonzero(right[row])[0]) if right[row].any() else -1
                ends = self._of_answer(
                    alone.shares, row, right_answer, many, weight * change.change
                )
                below, above = ends[0] / weight, ends[1] / weight
            elif not self._unanswered[row]:
                weights = EntryWeights(right[row : row + 1] / weight, unseen_max=1.0 / weight)
                below = above = self.half_width(alone, weights, many, change.change)
            # Items that failed may all have been right.
            failed_then = self._failed_then[row] / weight
            failed_now = self._failed_now[row] / weight
            found[label] = self._share_interval(
                change, below + failed_then, above + failed_now, old_up=failed_then
            )
        return found

    def precision(self) -> dict[str, Interval]:
        """Give the changes of the precisions by label, read together."""
        return {
            label: self._one_precision(row, label, change)
            for row, (label, change) in enumerate(self._shift.precision.items())
        }

    def _one_precision(self, row: int, label: str, change: Change) -> Interval:
        """Give the change of the precision of one label."""
        names = self._shift.new.predictions
        nothing_known = Interval(change.change, -1.0, 1.0)
        if label not in names or self._unanswered[row]:
            return nothing_known
        column = self._column(row, names.index(label), change)
        if self._found.sequence is not None:
            if isnan(change.change):
                return nothing_known
            return self._strict_precision(column, self._found.sequence)
        # A precision is not known unless its share of all answers is known to be above zero.
        if min(column.surely_now, column.then - column.failed_then) <= 0.0:
            return nothing_known
        return self._linear_precision(column)

    def _column(self, row: int, column: int, change: Change) -> "_Column":
        """Collect what is known about the answers that name a label."""
        then = float(self._shift.old.values[:, column].sum())
        now = float(self._shift.new.values[:, column].sum())
        # Items of uncovered labels may have any answer, like those that failed.
        covered = 1.0 - self._found.uncovered_share
        uncovered = self._found.uncovered_share / max(covered, 1e-12)
        failed_now = float(self._failed_now.sum()) + uncovered
        unanswered = float(self._weight[self._unanswered].sum())
        weights = ColumnWeights(row, column, 1.0, 1.0)
        half = self.half_width(self._found, weights, self._precisions, now - then)
        return _Column(
            row,
            column,
            change,
            then,
            now,
            surely_now=now - half - failed_now - unanswered,
            failed_then=float(self._failed_then.sum()) + uncovered,
            failed_now=failed_now,
            unanswered=unanswered,
        )

    @property
    def _precisions(self) -> int:
        """How many precisions are read together."""
        return len(self._shift.new.labels)

    def _linear_precision(self, column: "_Column") -> Interval:
        """Give the interval of a precision from its linearised form.

        A precision is a ratio. Linearised, it is a sum over its column with the weights
        (1[right] - precision) / total; the half width grows by how much smaller the total may be.
        """
        before = column.linear_weights(column.change.old, column.then)
        after = column.linear_weights(column.change.new, column.now)
        values = self._shift.values[:, column.column]
        centre = float(
            after.at_others * values.sum() + (after.at_row - after.at_others) * values[column.row]
        )
        half = self.half_width(self._found, after, self._precisions, centre, before)
        half = half * column.now / column.surely_now
        # Items that failed, and labels without answers, may have been any answer.
        failed_then = column.failed_then / (column.failed_then + column.then)
        failed_now = (column.failed_now + column.unanswered) / column.surely_now
        half += failed_then + failed_now
        return self._share_interval(
            column.change, half, half, old_up=failed_then, old_down=failed_then
        )

    def _strict_precision(self, column: "_Column", sequence: ConfidenceSequence) -> Interval:
        """Give the interval of a precision that holds at all times at once."""
        change = column.change
        lowest, highest = self._possible_precisions(sequence, column.row, column.column)
        # Items that failed may have been any answer.
        failed_then = _possible_share(column.failed_then, column.then)
        failed_now = _possible_share(column.failed_now, max(column.surely_now, 0.0))
        failed = failed_then + failed_now
        return self._share_interval(
            change,
            change.change - lowest + change.old + failed,
            highest - change.new + failed,
            old_up=failed_then,
            old_down=failed_then,
        )

    def _possible_precisions(
        self, sequence: ConfidenceSequence, row: int, column: int
    ) -> tuple[float, float]:
        """Give the smallest and the largest precision that the confidence sequence allows.

        For the true precision the right answers of the column, less that share of the whole column,
        are zero. Precisions are tried one by one: no bet may depend on the answers, as those on the
        linearised form would (decision 0012).
        """
        old, new = self._shift.old.values[:, column], self._shift.new.values[:, column]
        confidence = self.shared_confidence(self._precisions)

        def possible(precision: float) -> bool:
            weights = ColumnWeights(row, column, 1.0 - precision, -precision)
            low, high = sequence.ends(weights, confidence)
            before = float(old[row] - precision * old.sum())
            return low - 1e-12 <= -before <= high + 1e-12

        best = 0.5
        if new.sum() > 0.0:
            best = float(new[row] / new.sum())
        if not possible(best):
            return 0.0, 1.0

        def end(outside: float) -> float:
            if possible(outside):
                return outside
            inside = best
            for _ in range(PRECISION_HALVINGS):
                middle = 0.5 * (inside + outside)
                if possible(middle):
                    inside = middle
                else:
                    outside = middle
            return outside

        return end(0.0), end(1.0)

    def _share_interval(
        self, change: Change, below: float, above: float, *, old_up: float, old_down: float = 0.0
    ) -> Interval:
        """Give the interval for the change of a share, cut at what is possible.

        The share is between 0 and 1 now. Before, it was what it was, where that is known, or up to
        so much more (old_up) or less (old_down).
        """
        smallest, largest = -1.0, 1.0
        if self._found.old_known:
            smallest = max(-1.0, -change.old - old_up)
            largest = min(1.0, 1.0 - change.old + old_down)
        low = max(smallest, change.change - below)
        high = min(largest, change.change + above)
        return Interval(change.change, min(low, change.change), max(high, change.change))

    def norm(self) -> Interval:
        """Give the Frobenius norm of the shift.

        It is no further from that of the estimate than the estimate is from the shift.
        """
        norm, bound = self._shift.norm, self._found.bound(self._confidence)
        return Interval(norm, max(0.0, norm - bound), min(LARGEST, norm + bound))

    def differing(self) -> Interval | None:
        """Give the share of all answers that differ from the baseline answers."""
        share = self._found.differing
        if share is None:
            return None
        failed = float(self._failed_then.sum() + self._failed_now.sum())
        if self._found.shares is not None:
            uncovered = self._found.uncovered_share
            ends = self._found.shares.differing(self._reach())
            low = max(0.0, ends.low * (1.0 - uncovered))
            return Interval(share, low, min(1.0, ends.high + uncovered + failed))
        if self._found.sequence is not None:
            half = self._found.sequence.half_width_differing(self._confidence, share)
        else:
            half = self._found.now[0].differing().half_width(self.z())
            half += float(self._weight[self._unanswered].sum())
        return Interval(share, max(0.0, share - half), min(1.0, share + half + failed))

    def differing_beyond_noise(self) -> Interval | None:
        """Give the share of answers that differ, less the share that differs by noise."""
        share, noise = self.differing(), self._found.noise
        if share is None or noise is None:
            return share
        # Both are estimates, and each may be off to the other side.
        return Interval(
            max(0.0, share.estimate - noise.estimate),
            max(0.0, share.low - noise.high),
            max(0.0, share.high - noise.low),
        )

    def cost(self, objective: Objective) -> Interval | None:
        """Give the change of the mean cost of mistakes per item."""
        if not objective.linear or objective.accuracy:
            return None
        labels, names = self._shift.new.labels, self._shift.new.predictions
        # The columns after those of the names are answers that nobody has given so far.
        table = objective.table(labels, (*names, *labels, *objective.names, INVALID))
        seen, unseen = table[:, : len(names)], table[:, len(names) :]
        costs = EntryWeights(seen, unseen.min(axis=1), unseen.max(axis=1))
        change = float((seen * self._shift.values).sum())
        # Items without an answer may cost anything between the least and the most of their label.
        cost_range = costs.row_range(np.arange(len(labels)))
        unanswered = float((cost_range * self._weight)[self._unanswered].sum())
        failed = float(cost_range @ (self._failed_then + self._failed_now))
        uncovered = float(cost_range.max(initial=0.0)) * 2.0 * self._found.uncovered_share
        half = self.half_width(self._found, costs, 1, change) + unanswered
        half += failed + uncovered
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
        """Give the intervals for one kind of tolerance, and whether more is better (1) or not (-1).

        Answers that differ are neither (0).

        Labels without items have no recall. Labels that were and are never answered have no
        precision.
        """
        if self._found.uncovered_share and kind in ("recall", "precision", "entry"):
            # Those of uncovered labels may be anything.
            yield Interval(0.0, -1.0, 1.0), 1
        if kind == "accuracy":
            yield self.accuracy(), 1
        elif kind == "recall":
            yield from _measured(self.recall())
        elif kind == "precision":
            yield from _measured(self.precision())
        elif kind == "answers":
            differing = self.differing_beyond_noise()
            if differing is not None:
                yield differing, 0
        elif kind == "cost":
            cost = self.cost(objective)
            if cost is not None:
                yield cost, -1
        else:
            yield from self._read_entries()

    def _read_entries(self) -> Iterator[tuple[Interval, int]]:
        """Give the intervals of all entries: more right answers are better, more others worse."""
        low, high = self.entries()
        right = right_answers(self._shift.new)
        for row in np.flatnonzero(self._weight > 0.0):
            for column, name in enumerate(self._shift.new.predictions):
                if name == ERROR:  # A failed item has no answer.
                    continue
                better = -1
                if right[row, column]:
                    better = 1
                estimate = float(self._shift.values[row, column])
                ends = float(low[row, column]), float(high[row, column])
                yield Interval(estimate, *ends), better
        unseen = self._entry_distances[1][:, -1]
        yield Interval(0.0, 0.0, float(unseen[self._weight > 0.0].max(initial=0.0))), -1


@dataclass(frozen=True, slots=True)
class _Column:
    """The answers that name a label, which is what its precision is measured on.

    All numbers are shares of all answers.
    """

    row: int
    column: int
    change: Change
    """of the precision"""
    then: float
    """the share of the column before"""
    now: float
    """the share of the column now"""
    surely_now: float
    """what that share is at least"""
    failed_then: float
    """answers that could have been in the column, and are not known"""
    failed_now: float
    unanswered: float
    """the share of labels without answers"""

    def linear_weights(self, precision: float, total: float) -> ColumnWeights:
        """Give the weights of the linearised precision."""
        return ColumnWeights(self.row, self.column, (1.0 - precision) / total, -precision / total)


def _without_answers(samples: tuple[Sample, ...], labels: int) -> Bools:
    """Say which labels (L,) have no answer in these samples; none where there are no samples."""
    if not samples:
        return np.zeros(labels, bool)
    label = np.concatenate([one.label for one in samples])
    return np.asarray(np.bincount(label, minlength=labels) == 0)


def _possible_share(part: float, rest: float) -> float:
    """Give the share of a part in itself and the rest."""
    if not part:
        return 0.0
    return part / (part + rest)


def _measured(intervals: dict[str, Interval]) -> Iterator[tuple[Interval, int]]:
    """Give the intervals that have an estimate; more is better."""
    for interval in intervals.values():
        if not isnan(interval.estimate):
            yield interval, 1
