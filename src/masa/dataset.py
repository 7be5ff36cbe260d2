"""Labelled items and what is known about them, checked."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from masa.errors import DataError
from masa.records import INVALID, RESERVED, Column, Floats, in_order
from masa.table import Table

MAX_LABELS = 1_000
MAX_PREDICTIONS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Labelled items and what is known about them; an item is known by its place, from 0."""

    source: str
    label: Column
    predictions: dict[str, Column] = field(default_factory=dict)
    ids: npt.NDArray[np.object_] | None = None
    """rising, where there are ids: the order of the rows in a file does not matter then"""
    difficulty: Floats | None = None
    group: Column | None = None
    cost: Floats | None = None
    notes: tuple[str, ...] = ()
    """what is odd but not wrong, in sentences"""

    def __len__(self) -> int:
        return len(self.label.codes)

    @classmethod
    def of(
        cls,
        label: Sequence[object],
        *,
        predictions: Mapping[str, Sequence[object]] | None = None,
        difficulty: Sequence[float] | Floats | None = None,
        source: str = "memory",
    ) -> "Dataset":
        """Make a data set of columns in memory, checked like a file's.

        >>> Dataset.of([0, 1, 1], predictions={"api": [0, 1, None]}).predictions["api"].values
        ('0', '1', '<invalid>')
        """
        numbers = None if difficulty is None else np.asarray(difficulty, np.float64)
        answers = predictions or {}
        lengths = {len(column) for column in (label, *answers.values())} | ({len(numbers)} if numbers is not None else set())
        if lengths != {len(label)} or not len(label):
            raise DataError(f"columns of {sorted(lengths)} items", hint="give columns of the same length, of one item or more")
        for row, value in enumerate(label):
            if as_text(value) in (None, *RESERVED):
                raise DataError(
                    f"{source}, row {row + 1:,}: {value!r} cannot be a label", hint="give every item a label of its own"
                )
        if numbers is not None and np.isnan(numbers).any():
            row = int(np.flatnonzero(np.isnan(numbers))[0])
            raise DataError(
                f"{source}, row {row + 1:,}: the difficulty is not a number", hint="correct it, or leave the item out"
            )
        labels = _coded("label", label, most=MAX_LABELS)
        coded = {name: _coded(name, column, most=MAX_PREDICTIONS) for name, column in answers.items()}
        return cls(source, labels, coded, difficulty=numbers, notes=_notes(labels, coded.values()))

    def fingerprint(self) -> str:
        """Give a text that differs whenever the content differs, whatever the kind of file it came from."""
        digest = hashlib.sha256()

        def add(role: str, *parts: bytes) -> None:
            for part in (role.encode(), *parts):
                digest.update(len(part).to_bytes(8, "little") + part)

        if self.ids is not None:
            add("ids", *(text.encode() for text in self.ids))
        for role, column in [("label", self.label), ("group", self.group), *sorted(self.predictions.items())]:
            if column is not None:
                add(role, *(value.encode() for value in column.values), column.codes.astype("<i4").tobytes())
        for role, numbers in (("difficulty", self.difficulty), ("cost", self.cost)):
            if numbers is not None:
                add(role, numbers.astype("<f8").tobytes())
        return digest.hexdigest()


def read(
    source: str | Path | Table,
    *,
    label: str,
    id: str | None = None,
    predictions: Iterable[str] = (),
    difficulty: str | None = None,
    group: str | None = None,
    cost: str | None = None,
) -> Dataset:
    """Read a CSV, JSON-lines or Parquet file, a glob of them or a folder, and check every value that is used.

    Labels and predictions are compared as text. A missing prediction counts as an answer that could not be read. With ids,
    items come in the order of their ids, else in that of the rows.
    """
    table = source if isinstance(source, Table) else Table.open(source)
    answers = tuple(dict.fromkeys(predictions))
    required = tuple(dict.fromkeys(name for name in (label, id, group) if name is not None))
    numbers = tuple(dict.fromkeys(name for name in (difficulty, cost) if name is not None))
    with table.load(texts=tuple(dict.fromkeys((*required, *answers))), numbers=numbers, id=id) as rows:
        for name in required:
            rows.refuse_missing(name)
            if name != id:
                rows.refuse_reserved(name)
        labels = rows.labels(label, most=MAX_LABELS)
        known = {name: rows.labels(name, most=MAX_PREDICTIONS) for name in answers}
        return Dataset(
            source=table.source,
            label=labels,
            predictions=known,
            ids=None if id is None else rows.ids(id),
            difficulty=None if difficulty is None else rows.number(difficulty),
            group=None if group is None else rows.labels(group, most=MAX_PREDICTIONS),
            cost=None if cost is None else rows.number(cost, low=0.0),
            notes=_notes(labels, known.values()),
        )


def as_text(value: object) -> str | None:
    """Give the text by which a label or prediction in memory is compared, as it would be read from a file; None for none.

    >>> [as_text(value) for value in (3, 3.0, 2.5, True, "3.0", "", None, float("nan"))]
    ['3', '3', '2.5', 'true', '3.0', None, None, None]
    """
    if isinstance(value, str):
        return value or None
    if value is None or str(value) in ("nan", "<NA>", "NaT"):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _coded(name: str, column: Sequence[object], *, most: int) -> Column:
    texts = [as_text(value) or INVALID for value in column]
    values = in_order(tuple(set(texts)))
    if len(values) > most:
        raise DataError(f"{name!r} has {len(values):,} different values, more than {most:,}", hint="is it the right column?")
    code = {value: place for place, value in enumerate(values)}
    return Column(name, values, np.fromiter((code[text] for text in texts), np.int32, len(texts)))


def _notes(label: Column, predictions: Iterable[Column]) -> tuple[str, ...]:
    return (*_lone_labels(label), *(note for column in predictions for note in _oddities(label, column)))


def _lone_labels(label: Column) -> Iterator[str]:
    counts = np.bincount(label.codes, minlength=len(label.values))
    lone = [repr(name) for name, count in zip(label.values, counts, strict=True) if count == 1]
    if len(lone) == 1:
        yield f"only one item has the label {lone[0]}; it is a stratum of its own"
    elif lone:
        some = ", ".join(lone[:5]) + (", ..." if len(lone) > 5 else "")
        yield f"{len(lone)} labels have only one item each ({some}); each is a stratum of its own"


def _oddities(label: Column, answers: Column) -> Iterator[str]:
    """Tell what about a column of predictions is probably not what the user meant."""
    if INVALID in answers.values:
        missing = int(np.count_nonzero(answers.codes == answers.values.index(INVALID)))
        yield f"{answers.name!r} has no prediction for {missing:,} of {len(answers.codes):,} items; they count as {INVALID}"
    plain = {_plain(name): name for name in label.values}
    strangers = [name for name in answers.values if name not in label.values and name not in RESERVED]
    for name in strangers:
        if _plain(name) in plain:
            yield (
                f"{answers.name!r} has the prediction {name!r}, which is not the label {plain[_plain(name)]!r}: "
                "texts are compared as they are"
            )
            return
    if len(strangers) == len([name for name in answers.values if name not in RESERVED]):
        yield f"no prediction in {answers.name!r} is one of the labels in {label.name!r}"


def _plain(name: str) -> str:
    return re.sub(r"\.0+$", "", name.strip().casefold())
