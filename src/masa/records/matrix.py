"""Confusion matrices, the shift between two of them, and the counts they are estimated from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from masa.errors import DataError
from masa.records.items import UNLABELLED, in_order
from masa.records.shown import Shown
from masa.records.types import Codes, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Matrix(Shown):
    """A confusion matrix: the share of each pair of label and prediction in all of the data.

    >>> values = np.array([[0.4, 0.1, 0.0], [0.1, 0.3, 0.1]])
    >>> m = Matrix(("no", "yes"), ("no", "yes", "<invalid>"), values)
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
    """(L, P), rows are labels; all entries sum to 1 where something is known about every label"""

    def labelled(self) -> "Matrix":
        """Leave out the row of items without a label."""
        rows = [row for row, label in enumerate(self.labels) if label != UNLABELLED]
        return Matrix(tuple(self.labels[row] for row in rows), self.predictions, self.values[rows])

    @property
    def accuracy(self) -> float:
        """The share of items whose answer is their label."""
        return float(sum(self.correct.values()))

    @property
    def correct(self) -> dict[str, float]:
        """By label, the share of all items that have it and are answered with it."""
        column = {name: j for j, name in enumerate(self.predictions)}
        shares = dict.fromkeys(self.labels, 0.0)
        for i, label in enumerate(self.labels):
            if label in column:
                shares[label] = float(self.values[i, column[label]])
        return shares

    @property
    def recall(self) -> dict[str, float]:
        """By label, the share of its items that are answered with it.

        NaN for a label of weight zero.
        """
        totals = dict(zip(self.labels, self.values.sum(axis=1).tolist(), strict=True))
        return {label: _ratio(share, totals[label]) for label, share in self.correct.items()}

    @property
    def precision(self) -> dict[str, float]:
        """By label, the share of the items answered with it that have it.

        NaN for a label that is never answered.
        """
        totals = dict(zip(self.predictions, self.values.sum(axis=0).tolist(), strict=True))
        return {
            label: _ratio(share, totals.get(label, 0.0)) for label, share in self.correct.items()
        }

    def __repr__(self) -> str:
        return (
            f"<Matrix {len(self.labels)} x {len(self.predictions)}: "
            f"right answers {self.accuracy:.1%}>"
        )

    def to_frame(self) -> "pd.DataFrame":
        """Return it as a table, labels by predictions."""
        import pandas as pd

        return pd.DataFrame(self.values, index=list(self.labels), columns=list(self.predictions))

    def on(self, predictions: tuple[str, ...]) -> "Matrix":
        """Return the same matrix with these columns, which must include all that are not zero."""
        column = {name: j for j, name in enumerate(predictions)}
        values = np.zeros((len(self.labels), len(predictions)))
        for j, name in enumerate(self.predictions):
            if name in column:
                values[:, column[name]] = self.values[:, j]
            elif self.values[:, j].any():
                raise ValueError(f"no column for the prediction {name!r}")
        return Matrix(self.labels, predictions, values)


def _ratio(part: float, whole: float) -> float:
    if whole > 0.0:
        return part / whole
    return float("nan")


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
    """The answers about one stratum."""

    label: str
    level: int
    items: int
    weight: float
    answers: int
    uncertainty: float | None
    """the estimated probability that two of its answers differ; None below two answers"""


@dataclass(frozen=True, slots=True, eq=False)
class Shift(Shown):
    """How an API changed: the new confusion matrix and the old one."""

    old: Matrix
    new: Matrix
    strata: tuple[StratumReport, ...] = ()

    def __post_init__(self) -> None:
        if self.old.labels != self.new.labels:
            raise DataError(
                "the two matrices have different labels "
                f"({len(self.old.labels)} in the old one, {len(self.new.labels)} in the new one)",
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
        return self.to_frame()

    def to_frame(self) -> "pd.DataFrame":
        """Return new minus old as a table, labels by predictions."""
        return Matrix(self.new.labels, self.new.predictions, self.values).to_frame()

    def __repr__(self) -> str:
        old, new = self.accuracy.old, self.accuracy.new
        return f"<Shift of {len(self.new.labels)} labels: right answers {old:.1%} -> {new:.1%}>"

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
        """By label, the recall."""
        return _changes(self.old.recall, self.new.recall)

    @property
    def precision(self) -> dict[str, Change]:
        """By label, the precision."""
        return _changes(self.old.precision, self.new.precision)

    def error(self, truth: "Shift") -> float:
        """Return the Frobenius norm of the difference to the true shift."""
        columns = in_order(self.new.predictions + truth.new.predictions)
        estimated = self.new.on(columns).values - self.old.on(columns).values
        true = truth.new.on(columns).values - truth.old.on(columns).values
        return float(np.linalg.norm(estimated - true))


def _changes(old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, Change]:
    return {label: Change(old[label], new[label]) for label in old}


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The answers of one assessment, counted by stratum and prediction, with their weights.

    A cell is one prediction within one stratum; a group is what the method averages over.
    """

    labels: tuple[str, ...]
    predictions: tuple[str, ...]
    group_share: Floats
    """(G,) the weight of each group: its share of the estimate"""
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
    """(C,) the weight of one answer relative to the share of its group"""
    counts: Codes
    """(C,)"""
