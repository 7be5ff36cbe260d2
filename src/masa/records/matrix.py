"""Confusion matrices, the shift between two of them, and the counts they are estimated from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from masa.errors import DataError
from masa.records.items import UNLABELLED, in_order
from masa.records.types import Codes, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the range it is likely to be in."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A confusion matrix: the share of each prediction for each label, over all of the data.

    >>> m = Matrix(("no", "yes"), ("no", "yes", "<invalid>"), np.array([[0.4, 0.1, 0.0], [0.1, 0.3, 0.1]]))
    >>> round(m.accuracy, 3)
    0.7
    >>> {label: round(value, 3) for label, value in m.recall.items()}
    {'no': 0.8, 'yes': 0.6}
    >>> {label: round(value, 3) for label, value in m.precision.items()}
    {'no': 0.8, 'yes': 0.75}
    """

    labels: tuple[str, ...]
    predictions: tuple[str, ...]
    values: Floats
    """(L, P), rows are labels; all entries together make 1 where something is known of every label"""

    def labelled(self) -> "Matrix":
        """Leave out the row of items without a label, of which nothing is known."""
        rows = [row for row, label in enumerate(self.labels) if label != UNLABELLED]
        return Matrix(tuple(self.labels[row] for row in rows), self.predictions, self.values[rows])

    @property
    def accuracy(self) -> float:
        """The share of items answered with their label."""
        return float(sum(self.correct.values()))

    @property
    def correct(self) -> dict[str, float]:
        """The share, of all of the data, that has this label and is answered with it."""
        column = {name: j for j, name in enumerate(self.predictions)}
        return {
            label: float(self.values[i, column[label]]) if label in column else 0.0
            for i, label in enumerate(self.labels)
        }

    @property
    def recall(self) -> dict[str, float]:
        """Of the items with this label, the share answered with it; NaN for a label of weight zero."""
        totals = dict(zip(self.labels, self.values.sum(axis=1).tolist(), strict=True))
        return {label: _ratio(share, totals[label]) for label, share in self.correct.items()}

    @property
    def precision(self) -> dict[str, float]:
        """Of the items answered with this label, the share that has it; NaN for one never answered."""
        totals = dict(zip(self.predictions, self.values.sum(axis=0).tolist(), strict=True))
        return {
            label: _ratio(share, totals.get(label, 0.0)) for label, share in self.correct.items()
        }

    def on(self, predictions: tuple[str, ...]) -> "Matrix":
        """Lay the same matrix out on these columns, which must name at least those that are not zero."""
        column = {name: j for j, name in enumerate(predictions)}
        values = np.zeros((len(self.labels), len(predictions)))
        for j, name in enumerate(self.predictions):
            if name in column:
                values[:, column[name]] = self.values[:, j]
            elif self.values[:, j].any():
                raise ValueError(f"no column for the prediction {name!r}")
        return Matrix(self.labels, predictions, values)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else float("nan")


@dataclass(frozen=True, slots=True)
class Change:
    """One number before and after."""

    old: float
    new: float

    @property
    def change(self) -> float:
        """New minus old."""
        return self.new - self.old


@dataclass(frozen=True, slots=True)
class StratumReport:
    """What was asked of one stratum and what came of it."""

    label: str
    level: int
    items: int
    weight: float
    answers: int
    uncertainty: float | None
    """The estimated chance that two of its answers differ; unknown below two answers"""


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """How an API changed: the new confusion matrix against the old one."""

    old: Matrix
    new: Matrix
    strata: tuple[StratumReport, ...] = ()

    def __post_init__(self) -> None:
        if self.old.labels != self.new.labels:
            raise DataError(
                f"the old matrix has {len(self.old.labels)} labels and the new one {len(self.new.labels)}, not the same ones",
                hint="measure both on the same labelled data",
            )
        if self.old.predictions != self.new.predictions:
            both = in_order(self.old.predictions + self.new.predictions)
            object.__setattr__(self, "old", self.old.on(both))
            object.__setattr__(self, "new", self.new.on(both))

    @property
    def values(self) -> Floats:
        """(L, P) new minus old."""
        return self.new.values - self.old.values

    @property
    def delta(self) -> "pd.DataFrame":
        """New minus old as a table, labels by predictions."""
        import pandas as pd

        return pd.DataFrame(
            self.values, index=list(self.new.labels), columns=list(self.new.predictions)
        )

    @property
    def norm(self) -> float:
        """The Frobenius norm of the shift: also the error of saying that nothing changed."""
        return float(np.linalg.norm(self.values))

    @property
    def accuracy(self) -> Change:
        """The share of right answers."""
        return Change(self.old.accuracy, self.new.accuracy)

    @property
    def recall(self) -> dict[str, Change]:
        """For each label, how much of it is recognised."""
        return _changes(self.old.recall, self.new.recall)

    @property
    def precision(self) -> dict[str, Change]:
        """For each label, how much of what is taken for it is it."""
        return _changes(self.old.precision, self.new.precision)

    def error(self, truth: "Shift") -> float:
        """Give the Frobenius norm of the difference to the true shift."""
        columns = in_order(self.new.predictions + truth.new.predictions)
        mine = self.new.on(columns).values - self.old.on(columns).values
        return float(
            np.linalg.norm(mine - (truth.new.on(columns).values - truth.old.on(columns).values))
        )


def _changes(old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, Change]:
    return {label: Change(old[label], new[label]) for label in old}


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The answers of one assessment, counted by stratum and prediction, with what each count weighs.

    A cell is one prediction within one stratum; a group is what the method averages over.
    """

    labels: tuple[str, ...]
    predictions: tuple[str, ...]
    group_share: Floats
    """(G,) the share of the estimate that each group stands for"""
    group_answers: Ints
    """(G,)"""
    cell_stratum: Codes
    """(C,)"""
    cell_group: Codes
    """(C,)"""
    cell_label: Codes
    """(C,)"""
    cell_prediction: Codes
    """(C,)"""
    cell_factor: Floats
    """(C,) the weight of one answer relative to its group's share"""
    counts: Codes
    """(C,)"""
