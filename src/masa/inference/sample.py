"""Answers as an estimate weighs them: enough to tell the error of any sum over the matrix."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from masa.inference.spread import KAPPA, Spread
from masa.records import Bools, Floats, Ints


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
        most, least = (
            np.maximum(self.values.max(axis=1), self.most),
            np.minimum(self.values.min(axis=1), self.least),
        )
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
        return np.where(
            answer == self.column, np.where(label == self.row, self.here, self.there), 0.0
        )

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
    weight: Floats
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
        return cls(
            place,
            label,
            new,
            new if old is None else old,
            lean,
            adds,
            each[stratum],
            stratum,
            share,
            True,
            error,
        )

    def take(self, mine: Bools) -> "Sample":
        """Keep some of the answers (n,), all of a label or none."""
        return replace(
            self,
            **{
                name: getattr(self, name)[mine]
                for name in ("place", "label", "new", "old", "adds", "weight", "group")
            },
            more=None if self.more is None else self.more[mine],
            least=None
            if self.least is None
            else self.least.take(np.isin(self.least.label, self.label[mine])),
        )

    def weights(self) -> Iterator[tuple[int, float, float]]:
        """Give the place of each answer, the share of all items that it stands for, and what it adds to the variance."""
        times = np.ones(len(self.place)) if self.times is None else self.times[self.group]
        adds = self.adds if self.more is None else self.adds + self.more
        yield from zip(
            self.place.tolist(),
            (self.weight * times).tolist(),
            (adds * times**2).tolist(),
            strict=True,
        )

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
        return self._wider(
            self.spread(each, far), None if self.least is None else self.least.of(table, before)
        )

    @property
    def by_stratum(self) -> "Sample | None":
        """The view of the answers by strata, where there is one."""
        return self if self.shrunk else self.least

    @property
    def apart(self) -> Bools:
        """Whether answers (n,) are not as before; a failure is no answer."""
        return np.asarray(
            (self.new != self.old) & (self.new != self.error) & (self.old != self.error)
        )

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
            mean = np.bincount(group, self.weight * values) / self.whole[own]
            variance = float((self.adds * (values - mean[group]) ** 2).sum())
            adds = self.adds
            if self.more is not None:
                by_label = np.bincount(self.label, self.weight * values) / np.maximum(
                    np.bincount(self.label, self.weight), 1e-300
                )
                variance += float((self.more * (values - by_label[self.label]) ** 2).sum())
                adds = adds + self.more
            most = adds * far**2
            total = float(most.sum())
            return Spread(
                variance, 0.0, unit=sqrt(float((most**2).sum()) / total) if total > 0.0 else 0.0
            )
        n = np.bincount(group).astype(np.float64)
        reach = np.zeros(len(own))
        reach[group] = far
        weight = np.bincount(group, self.adds)
        squares = np.maximum(
            np.bincount(group, values**2) - np.bincount(group, values) ** 2 / n, 0.0
        )
        squares = np.divide(squares, reach**2, out=np.zeros(len(own)), where=reach > 0.0)
        some = reach > 0.0
        usual = (squares[some].sum() + 1.0) / (np.sum(n[some] - 1.0) + 2.0)
        variance = float(np.sum(weight * reach**2 * (squares + KAPPA * usual) / (n - 1.0 + KAPPA)))
        unit = weight * reach / np.maximum(self.whole[own], 1e-300)
        return Spread(variance, 0.0, unit=float(np.linalg.norm(unit)))
