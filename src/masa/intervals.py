"""How sure an estimate is.

These are the plain intervals of stratified sampling, with variances shrunk towards each other. That the sampling adapts to
the answers is not accounted for beyond that; docs/method.md says how often they hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import hypot, log, sqrt

import numpy as np

from masa.records import Bools, Floats, Interval, Ints, Tally

KAPPA = 10.0
"""Answers' worth of belief that a group's variance is that of all groups."""

UNKNOWN = 2.6
"""How much larger than its mean a squared error may be while no variance has been seen."""

MOST_PREDICTIONS = 1_000
"""With more different predictions for one label the scatter of the squared error is taken as unknown."""

DOUBT = 0.8
"""Standard errors of a variance that the interval for one number allows for."""

SPARE = 1.05
"""How many times as large a variance may be as answers show that were chosen by a model of change."""

UNMET = 0.57
"""Answers' worth of belief that what one adds is what one adds that is like none so far."""

LARGEST = sqrt(2.0)
"""No two matrices are further apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What is known of the squared error of an estimated matrix, or of one number in it."""

    error2: float
    """its expectation"""
    deviation: float
    """the standard error of that expectation"""
    traces: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """of the plug-in covariance, its square and its cube"""
    blind: float = 0.0
    """the share of the data of whose label nothing was answered"""
    unit: float = 0.0
    """what one more answer that is like none so far might add"""
    better: tuple[tuple[float, float], ...] = ()
    """of answers that make the number larger, where they are told from others: their part of error2, and what one of them adds"""
    worse: tuple[tuple[float, float], ...] = ()
    """of those that make it smaller"""

    def __add__(self, other: "Spread") -> "Spread":
        """Give the spread of the difference of two independent estimates.

        The traces of a sum of covariances are what they are at the most: as if both were alike, but for their size.
        """
        both = zip(self.traces, other.traces, (1, 2, 3), strict=True)
        traces = [(max(mine, 0.0) ** (1 / power) + max(theirs, 0.0) ** (1 / power)) ** power for mine, theirs, power in both]
        return Spread(
            self.error2 + other.error2,
            sqrt(self.deviation**2 + other.deviation**2),
            (traces[0], traces[1], traces[2]),
            max(self.blind, other.blind),
            hypot(self.unit, other.unit),
            (*self.better, *other.worse),
            (*self.worse, *other.better),
        )

    def times(self, factor: float) -> "Spread":
        """Give the spread of a multiple of the estimate."""
        square = factor**2
        traces = (self.traces[0] * square, self.traces[1] * square**2, self.traces[2] * square**3)
        sides = [tuple((variance * square, unit * abs(factor)) for variance, unit in side) for side in (self.better, self.worse)]
        better, worse = sides if factor >= 0.0 else reversed(sides)
        return Spread(self.error2 * square, self.deviation * square, traces, self.blind, self.unit * abs(factor), better, worse)

    def bound(self, confidence: float = 0.95) -> float:
        """Bound the Frobenius error: its expectation, what is not known of that, and how a squared error scatters."""
        from scipy.special import chdtri, ndtri

        trace, square, cube = self.traces
        factor = UNKNOWN
        if trace > 0.0 and cube > 0.0:
            freedom = square**3 / cube**2
            scatter = (float(chdtri(freedom, 1.0 - confidence)) - freedom) / sqrt(2.0 * freedom)
            factor = max(1.0, 1.0 + sqrt(2.0 * square) / trace * scatter)
        known = (self.error2 + max(0.0, float(ndtri(confidence))) * self.deviation) * factor
        return min(LARGEST, sqrt(known) + LARGEST * self.blind)

    @classmethod
    def of_one(cls, adds: Floats, values: Floats, blind: float, *, variance: float | None = None) -> "Spread":
        """Tell how far one number may be off from what each answer adds (n,) for a residual of 1.

        Values (n,) are 1 for answers for the better, -1 for those for the worse. Their variance is another where something is
        usual of them, from which they differ less.
        """
        sides = [adds[values > 0.0], adds[values < 0.0]]
        both, total = sum(float(side.sum()) for side in sides), float(adds.sum())
        varies = both if variance is None else variance
        less = varies / both if both > 0.0 else 1.0
        one = sqrt(float((adds**2).sum()) / total) if total > 0.0 else 0.0

        def part(side: Floats) -> tuple[tuple[float, float], ...]:
            if one <= 0.0:
                return ()
            unit = (float((side**1.5).sum()) + UNMET * one**3) / (float(side.sum()) + UNMET * one**2)
            return ((SPARE * less * float(side.sum()), sqrt(min(less, 1.0)) * unit),)

        return cls(varies, 0.0, blind=blind, better=part(sides[0]), worse=part(sides[1]))

    def ends(self, confidence: float = 0.95, z: float | None = None) -> tuple[float, float]:
        """Give how far an interval for one number reaches down and up, of z standard errors if it was looked at before.

        What got better and what got worse have limits of their own, and are put together by squares (Zou and Donner 2008). What
        was never met is hidden no better for having looked before: no more than half of the doubt is kept for it.
        """
        far = normal(confidence) if z is None else z
        hidden = min(_hidden(far) - log(2.0), _hidden(normal(confidence)))
        told = sum(variance for variance, _ in (*self.better, *self.worse))
        rest = far**2 * max(0.0, self.error2 - told + DOUBT * self.deviation)
        sides = [[_limits(*part, far, max(hidden, 0.0)) for part in side] for side in (self.better, self.worse)]
        (more_better, less_better), (more_worse, less_worse) = (
            tuple(sum(limits[end] ** 2 for limits in side) for end in (0, 1)) for side in sides
        )
        return sqrt(more_worse + less_better + rest), sqrt(more_better + less_worse + rest)

    def reach(self, z: float) -> float:
        """Give the half width of an interval of z standard errors for a number that few answers may bear on.

        Were the number this much larger, it would vary more, by so many more answers of a unit: Wilson's argument, by weight.
        Of answers that were never met there may be as many as chance would have hidden.
        """
        unsure = _hidden(z) * self.unit / 2.0
        return unsure + sqrt(unsure**2 + z**2 * self.error2)


def normal(confidence: float) -> float:
    """Give how many standard errors a two-sided interval reaches."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + confidence / 2))


def _hidden(z: float) -> float:
    """Give how many rare answers are not met with the chance that a normal number is beyond z."""
    from scipy.special import log_ndtr

    return -float(log_ndtr(-z))


def _limits(variance: float, unit: float, z: float, hidden: float) -> tuple[float, float]:
    """Give how much more and how much less a sum of rare answers may be, each of which adds a unit.

    They are about the mid-P limits of a Poisson number, by weight; while none was met there may be as many as are hidden.

    >>> [round(end, 1) for end in _limits(0.0, 1.0, 1.96, 3.0)]
    [3.0, 0.0]
    >>> [round(end, 1) for end in _limits(10.0, 1.0, 1.96, 3.0)]  # Ten of one each: there are 5.2 to 17.9.
    [7.9, 4.8]
    """
    room = max(0.0, sqrt(hidden) - z / 2.0) ** 2
    half, aside = z * sqrt(variance + room * unit**2), unit * (room + z**2 / 4.0)
    return half + aside, max(0.0, half - aside)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Weights of the entries of a matrix, to be summed up."""

    values: Floats
    """(L, P)"""
    least: float | Floats = 0.0
    """the least and the most that answers weigh which nobody has given so far, of all labels or of each (L,)"""
    most: float | Floats = 0.0

    def at(self, label: Ints, answer: Ints) -> Floats:
        """Give the weight of each of some entries (n,)."""
        return np.asarray(self.values[label, answer])

    def far(self, label: Ints) -> Floats:
        """Give by how much weights differ at the most within the row of each label (n,)."""
        most, least = np.maximum(self.values.max(axis=1), self.most), np.minimum(self.values.min(axis=1), self.least)
        return np.asarray((most - least)[label])

    @property
    def farthest(self) -> float:
        """By how much weights differ at the most within a row."""
        return float(self.far(np.arange(len(self.values))).max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class InColumn:
    """One weight in one place of a column of a matrix, another in the rest of the column, none elsewhere."""

    row: int
    column: int
    here: float
    there: float

    def at(self, label: Ints, answer: Ints) -> Floats:
        """Give the weight of each of some entries (n,)."""
        return np.where(answer == self.column, np.where(label == self.row, self.here, self.there), 0.0)

    def far(self, label: Ints) -> Floats:
        """Give by how much weights differ at the most within the row of each label (n,)."""
        return np.where(label == self.row, abs(self.here), abs(self.there))

    @property
    def farthest(self) -> float:
        """By how much weights differ at the most within a row."""
        return max(abs(self.here), abs(self.there))


Weights = Table | InColumn


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Answers as an estimate weighs them: enough to tell how far any sum over the matrix may be off."""

    place: Ints
    """(n,) the item"""
    label: Ints
    """(n,)"""
    new: Ints
    """(n,)"""
    old: Ints
    """(n,) what was answered before, where the estimate leans on that; else anything"""
    lean: float
    """how much of the old answer is taken from each new one"""
    adds: Floats
    """(n,) what a residual of 1 adds to the variance"""
    stands: Floats
    """(n,) the share of the estimate that the answer stands for"""
    group: Ints
    """(n,) those that are alike, all of one label"""
    whole: Floats
    """(G,) what the answers of a group stand for together"""
    shrunk: bool
    """whether groups are strata, whose variances are shrunk towards each other"""
    error: int = -1
    """the answer that stands for none, if there is one"""
    least: "Sample | None" = None
    """another view of these answers, taken where it is the less sure one"""
    times: Floats | None = None
    """(G,) what makes the answers of a group stand for as much as they should, where they stand for more or less"""
    more: Floats | None = None
    """(n,) what a residual within its label adds besides, where the items stand for others"""

    @classmethod
    def by_strata(
        cls,
        place: Ints,
        label: Ints,
        new: Ints,
        old: Ints | None,
        *,
        lean: float,
        stratum: Ints,
        share: Floats,
        fraction: Floats,
        error: int = -1,
    ) -> "Sample":
        """Take answers (n,) from strata (S,), each of which stands for a share; a mean varies by a fraction of an answer."""
        n = np.bincount(stratum, minlength=len(share))
        each = share / np.maximum(n, 1)
        adds = (each * share * fraction)[stratum]
        return cls(place, label, new, new if old is None else old, lean, adds, each[stratum], stratum, share, True, error)

    def take(self, mine: Bools) -> "Sample":
        """Keep some of the answers (n,), all of a label or none."""
        return replace(
            self,
            **{name: getattr(self, name)[mine] for name in ("place", "label", "new", "old", "adds", "stands", "group")},
            more=None if self.more is None else self.more[mine],
            least=None if self.least is None else self.least.take(np.isin(self.least.label, self.label[mine])),
        )

    def weights(self) -> Iterator[tuple[int, float, float]]:
        """Give the place of each answer, the share of all items that it stands for, and what it adds to the variance."""
        times = np.ones(len(self.place)) if self.times is None else self.times[self.group]
        adds = self.adds if self.more is None else self.adds + self.more
        yield from zip(self.place.tolist(), (self.stands * times).tolist(), (adds * times**2).tolist(), strict=True)

    def of_label(self, label: int) -> "Sample":
        """Keep the answers about one label, as if there were no other."""
        mine = self.take(self.label == label)
        least = None if self.least is None else self.least.of_label(label)
        return replace(mine, label=np.zeros(len(mine.label), np.int64), least=least)

    def of(self, table: Weights, before: Weights | None = None) -> Spread:
        """Tell how far a sum over the matrix may be off, or less that of another over the old one."""
        then = table if before is None else before
        each = table.at(self.label, self.new)
        if self.lean:
            each = each - self.lean * then.at(self.label, self.old)
        far = np.maximum(table.far(self.label), then.far(self.label))
        return self._wider(self.spread(each, far), None if self.least is None else self.least.of(table, before))

    @property
    def by_stratum(self) -> "Sample | None":
        """The view of the answers by strata, where there is one."""
        return self if self.shrunk else self.least

    @property
    def apart(self) -> Bools:
        """Whether answers (n,) are not as before; a failure is no answer."""
        return np.asarray((self.new != self.old) & (self.new != self.error) & (self.old != self.error))

    def differing(self) -> Spread:
        """Tell how far the share of answers that differ from the old ones may be off."""
        mine = self.spread(self.apart.astype(np.float64), np.ones(len(self.new)))
        return self._wider(mine, None if self.least is None else self.least.differing())

    @staticmethod
    def _wider(mine: Spread, other: Spread | None) -> Spread:
        return mine if other is None or mine.reach(2.0) >= other.reach(2.0) else other

    def spread(self, values: Floats, far: Floats) -> Spread:
        """Tell how far a sum of values (n,) may be off, which differ by at most so much (n,) among those of a label."""
        if not len(values) or not (far > 0.0).any():
            return Spread(0.0, 0.0)
        own, group = np.unique(self.group, return_inverse=True)
        if not self.shrunk:
            mean = np.bincount(group, self.stands * values) / self.whole[own]
            variance = float((self.adds * (values - mean[group]) ** 2).sum())
            adds = self.adds
            if self.more is not None:
                by_label = np.bincount(self.label, self.stands * values) / np.maximum(
                    np.bincount(self.label, self.stands), 1e-300
                )
                variance += float((self.more * (values - by_label[self.label]) ** 2).sum())
                adds = adds + self.more
            most = adds * far**2
            total = float(most.sum())
            return Spread(variance, 0.0, unit=sqrt(float((most**2).sum()) / total) if total > 0.0 else 0.0)
        n = np.bincount(group).astype(np.float64)
        reach = np.zeros(len(own))
        reach[group] = far
        weight = np.bincount(group, self.adds)
        squares = np.maximum(np.bincount(group, values**2) - np.bincount(group, values) ** 2 / n, 0.0)
        squares = np.divide(squares, reach**2, out=np.zeros(len(own)), where=reach > 0.0)
        some = reach > 0.0
        usual = (squares[some].sum() + 1.0) / (np.sum(n[some] - 1.0) + 2.0)
        variance = float(np.sum(weight * reach**2 * (squares + KAPPA * usual) / (n - 1.0 + KAPPA)))
        unit = weight * reach / np.maximum(self.whole[own], 1e-300)
        return Spread(variance, 0.0, unit=float(np.linalg.norm(unit)))


def matrix_spread(tally: Tally, items: Ints, *, finite: bool = True) -> Spread:
    """Tell how far a matrix may be off that was estimated from counts by stratum.

    Items (G,) are those of each stratum; that they are not endless counts only for an API that repeats itself (finite).
    """
    n, fraction = _sizes(tally, items, finite=finite)
    squares = n - np.bincount(tally.cell_group, tally.counts.astype(np.float64) ** 2, len(items)) / np.maximum(n, 1.0)
    return pooled(tally.group_share, n, fraction, squares, _traces(tally, n, fraction))


def accuracy_spread(tally: Tally, items: Ints, *, finite: bool = True) -> Spread:
    """Tell how far the estimated share of right answers may be off."""
    n, fraction = _sizes(tally, items, finite=finite)
    mean = _right(tally) / np.maximum(n, 1.0)
    return pooled(tally.group_share, n, fraction, n * mean * (1.0 - mean), (0.0, 0.0, 0.0))


def entry_deviations(tally: Tally, items: Ints, *, rates: Floats, finite: bool = True) -> Floats:
    """Give the standard error of each entry (L, P) of an estimated matrix, if its rate (L, P) within the label were as before.

    What has never been answered is not taken for impossible: the variance is at least that of the old rate.
    """
    n, fraction = _sizes(tally, items, finite=finite)
    variance = np.zeros((len(tally.labels), len(tally.predictions)))
    for label in np.unique(tally.cell_label):
        mine = tally.cell_label == label
        groups = np.unique(tally.cell_group[mine])
        counts = np.zeros((len(groups), len(tally.predictions)))
        np.add.at(counts, (np.searchsorted(groups, tally.cell_group[mine]), tally.cell_prediction[mine]), tally.counts[mine])
        size = n[groups, None]
        usual = (counts.sum(axis=0) + 0.5) / (size.sum() + 1.0)
        squares = counts * (1.0 - counts / size) + KAPPA * usual * (1.0 - usual)
        weight = (tally.group_share[groups] ** 2 * fraction[groups])[:, None]
        before = rates[label] * (1.0 - rates[label])
        variance[label] = (weight * np.maximum(squares / (size - 1.0 + KAPPA), before)).sum(axis=0)
    return np.sqrt(variance)


def _sizes(tally: Tally, items: Ints, *, finite: bool) -> tuple[Floats, Floats]:
    """Give the answers n (G,) and what the variance of a mean is of the variance of an answer, 1/n - 1/M (G,)."""
    n = tally.group_answers.astype(np.float64)
    fraction = 1.0 / np.maximum(n, 1.0) - (1.0 / items if finite else 0.0)
    return n, np.where(n > 0, np.maximum(fraction, 0.0), 0.0)


def _right(tally: Tally) -> Floats:
    """Count the right answers of each group (G,)."""
    pairs = zip(tally.cell_label.tolist(), tally.cell_prediction.tolist(), strict=True)
    right = np.array([tally.labels[i] == tally.predictions[j] for i, j in pairs], np.float64)
    return np.bincount(tally.cell_group, tally.counts * right, len(tally.group_answers)).astype(np.float64)


def pooled(share: Floats, n: Floats, fraction: Floats, squares: Floats, traces: tuple[float, float, float]) -> Spread:
    """Shrink the groups' sums of squares (G,) towards each other and add them up; share (G,) is what each stands for."""
    seen = n > 0
    usual = (squares[seen].sum() + 1.0) / (np.sum(n[seen] - 1.0) + 2.0)
    squares = squares + KAPPA * usual
    degrees = np.maximum(n - 1.0, 0.0) + KAPPA
    weight = share**2 * fraction
    blind = 1.0 - float(share[seen].sum())
    return Spread(
        error2=float(np.sum(weight * squares / degrees)),
        deviation=float(np.sqrt(np.sum((weight / degrees) ** 2 * 2.0 * squares))),
        traces=traces,
        blind=blind if blind > 1e-9 else 0.0,
    )


def _traces(tally: Tally, n: Floats, fraction: Floats) -> tuple[float, float, float]:
    """Add up, over the labels, the traces of the plug-in covariance, its square and its cube."""
    total = np.zeros(3)
    for label in np.unique(tally.cell_label):
        mine = np.flatnonzero(tally.cell_label == label)
        groups, group = np.unique(tally.cell_group[mine], return_inverse=True)
        predictions, prediction = np.unique(tally.cell_prediction[mine], return_inverse=True)
        if len(predictions) > MOST_PREDICTIONS:
            return 0.0, 0.0, 0.0
        mean = np.zeros((len(groups), len(predictions)))
        np.add.at(mean, (group, prediction), tally.counts[mine])
        mean /= n[groups, None]
        scale = tally.group_share[groups] ** 2 * fraction[groups]
        covariance = np.diag(scale @ mean) - (scale[:, None] * mean).T @ mean
        second = covariance @ covariance
        total += np.trace(covariance), np.trace(second), np.sum(second * covariance)
    return float(total[0]), float(total[1]), float(total[2])


def share(part: int, whole: int, *, confidence: float = 0.95) -> Interval:
    """Estimate a share from a simple count (Wilson's interval); of nothing, anything may be.

    >>> round(share(0, 40).high, 4)
    0.0876
    """
    from scipy.special import ndtri

    if not whole:
        return Interval(float("nan"), 0.0, 1.0)
    z = float(ndtri(0.5 + confidence / 2))
    p = part / whole
    centre = (p + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z / (1 + z * z / whole) * sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole))
    return Interval(p, max(0.0, centre - half) if part else 0.0, min(1.0, centre + half) if part < whole else 1.0)
