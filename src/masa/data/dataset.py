"""Labelled items and what is known about them, checked."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from masa.data.files import Inputs, Table
from masa.data.frames import opened
from masa.errors import DataError
from masa.records import (
    INVALID,
    LONGEST_LABEL,
    RESERVED,
    UNLABELLED,
    Bools,
    Column,
    Floats,
    Ints,
    Item,
    in_order,
)

if TYPE_CHECKING:
    import pandas as pd

MAX_LABELS = 1_000
MAX_PREDICTIONS = 10_000
"""The most different values of a column of predictions or groups."""

UNLABELLED_HINT = (
    "label them, leave them out, or keep them with --unlabelled only to tell whether anything "
    "changed"
)

MOST_NAMED = 5
"""The most labels that a note lists."""

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Labelled items and what is known about them; an item is identified by its place, from 0."""

    source: str
    label: Column
    predictions: dict[str, Column] = field(default_factory=dict)
    ids: npt.NDArray[np.object_] | None = None
    """ascending, so that the order of the rows in a file does not matter"""
    difficulty: Floats | None = None
    group: Column | None = None
    cost: Floats | None = None
    numbers: dict[str, Floats] = field(default_factory=dict)
    """more columns of numbers, such as confidences, by name"""
    keys: Ints | None = None
    """(N,) a number for each item that stays the same in other versions of the data"""
    inputs: Inputs | None = None
    """the texts that the API is shown, at the places that `rows` gives"""
    rows: Ints | None = None
    """(N,) the place of each item in `inputs`, where it differs from the place in this data set"""
    notes: tuple[str, ...] = ()
    """sentences about what is odd but not wrong"""

    def __len__(self) -> int:
        return len(self.label.codes)

    def __repr__(self) -> str:
        return f"<Dataset {self.source}: {len(self):,} items, {len(self.label.values):,} labels>"

    def item(self, place: int) -> Item:
        """Return an item as a client sees it, with its place among all that were read."""
        row = self._row(place)
        if self.inputs is None:
            return Item(row, {})
        return Item(row, self.inputs.of(row))

    def items(self) -> Iterator[Item]:
        """Give all items in their order."""
        return (self.item(place) for place in range(len(self)))

    def name(self, place: int) -> str:
        """Return what people call an item: its id, or else its row."""
        if self.ids is not None:
            return str(self.ids[place])
        return f"row {1 + self._row(place):,}"

    def _row(self, place: int) -> int:
        """Return the place of an item among all that were read."""
        if self.rows is None:
            return place
        return int(self.rows[place])

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that items have."""
        return tuple(name for name in self.label.values if name != UNLABELLED)

    @property
    def labelled(self) -> Bools:
        """(N,) whether each item has a label; one without only tells whether anything changed."""
        if UNLABELLED not in self.label.values:
            return np.ones(len(self), np.bool_)
        return np.asarray(self.label.codes != self.label.values.index(UNLABELLED), np.bool_)

    def texts(self, column: str) -> Iterator[str]:
        """Yield the text of an input column, item by item."""
        if self.inputs is None or column not in self.inputs.columns:
            raise DataError(
                f"the data has no column {column!r} of texts", hint="read it with inputs=[...]"
            )
        for place in range(len(self)):
            yield self.item(place).inputs[column]

    def take(self, places: Ints) -> "Dataset":
        """Return the data set of the items at these places, which must be ascending.

        Labels and predictions that none of these items has are left out.
        """
        # The inputs stay those of all items that were read, so their places are kept.
        rows = places
        if self.rows is not None:
            rows = self.rows[places]
        group = None
        if self.group is not None:
            group = _taken(self.group, places)
        return replace(
            self,
            label=_taken(self.label, places),
            predictions={name: _taken(column, places) for name, column in self.predictions.items()},
            ids=_at(self.ids, places),
            difficulty=_at(self.difficulty, places),
            group=group,
            cost=_at(self.cost, places),
            numbers={name: column[places] for name, column in self.numbers.items()},
            keys=_at(self.keys, places),
            rows=rows,
        )

    @classmethod
    def of(
        cls,
        label: Sequence[object],
        *,
        predictions: Mapping[str, Sequence[object]] | None = None,
        difficulty: Sequence[float] | Floats | None = None,
        numbers: Mapping[str, Sequence[float] | Floats] | None = None,
        inputs: Mapping[str, Sequence[str]] | None = None,
        group: Sequence[object] | None = None,
        unlabelled: bool = False,
        source: str = "memory",
    ) -> "Dataset":
        """Make a data set from columns in memory, checked like those of a file.

        The inputs are the texts that the API is shown.

        >>> Dataset.of([0, 1, 1], predictions={"api": [0, 1, None]}).predictions["api"].values
        ('0', '1', '<invalid>')
        """
        answers = predictions or {}
        shown = {name: [str(text) for text in texts] for name, texts in (inputs or {}).items()}
        floats = {name: np.asarray(column, np.float64) for name, column in (numbers or {}).items()}
        columns: list[Sequence[object]] = [label, *answers.values(), *shown.values()]
        if group is not None:
            columns.append(group)
        all_floats = list(floats.items())
        found: dict[str, Any] = {}
        if difficulty is not None:
            found["difficulty"] = np.asarray(difficulty, np.float64)
            all_floats.append(("the difficulty", found["difficulty"]))
        _refuse_lengths(len(label), [*columns, *(column for _, column in all_floats)])
        _refuse_labels(label, source, unlabelled=unlabelled)
        _refuse_nan(all_floats, source)
        labels = _coded("label", label, most=MAX_LABELS, missing=UNLABELLED)
        if labels.values == (UNLABELLED,):
            raise DataError(f"no item of {source} has a label", hint="label some of them")
        coded = {
            name: _coded(name, column, most=MAX_PREDICTIONS) for name, column in answers.items()
        }
        if group is not None:
            found["group"] = _coded("group", group, most=MAX_PREDICTIONS)
        if shown:
            found["inputs"] = Inputs.in_memory(shown)
        return cls(
            source,
            labels,
            coded,
            numbers=floats,
            keys=_keys(shown, [as_text(value) or "" for value in label]),
            notes=_notes(labels, coded.values()),
            **found,
        )

    def fingerprint(self) -> str:
        """Return a text that differs whenever the content differs.

        The same content in another kind of file has the same fingerprint.
        """
        digest = hashlib.sha256()

        # With the length of each part, so that no two lists of parts give the same bytes.
        def add(role: str, *parts: bytes) -> None:
            for part in (role.encode(), *parts):
                digest.update(len(part).to_bytes(8, "little") + part)

        if self.keys is not None:
            add("keys", self.keys.astype("<i8").tobytes())
        columns = [("label", self.label), ("group", self.group), *sorted(self.predictions.items())]
        for role, column in columns:
            if column is not None:
                values = [value.encode() for value in column.values]
                add(role, *values, column.codes.astype("<i4").tobytes())
        arrays = [
            ("difficulty", self.difficulty),
            ("cost", self.cost),
            *sorted(self.numbers.items()),
        ]
        for role, numbers in arrays:
            if numbers is not None:
                add(role, numbers.astype("<f8").tobytes())
        return digest.hexdigest()


def read(
    source: "str | Path | Table | pd.DataFrame",
    *,
    label: str,
    id: str | None = None,
    predictions: Iterable[str] = (),
    difficulty: str | None = None,
    group: str | None = None,
    cost: str | None = None,
    numbers: Iterable[str] = (),
    inputs: Iterable[str] = (),
    unlabelled: bool = False,
) -> Dataset:
    """Read CSV, JSON-lines or Parquet files, or a DataFrame, and check the values.

    Labels and predictions are compared as text. A missing prediction counts as an answer that
    could not be read. With ids the items are sorted by id; without, they keep the order of the
    rows. Rows without a label are refused, unless `unlabelled` keeps them: they only help to tell
    whether anything changed.
    """
    answers = _distinct(predictions)
    shown = _distinct(inputs)
    more_numbers = _distinct(numbers)
    required = _distinct((label, id, group))
    as_written = _distinct((difficulty, cost, *more_numbers, *shown))
    texts = _distinct((*required, *answers))
    with opened(source) as table, table.load(texts=texts, numbers=as_written, id=id) as rows:
        for name in required:
            if name != label:
                rows.refuse_missing(name)
            elif not unlabelled:
                rows.refuse_missing(name, hint=UNLABELLED_HINT)
            if name != id:
                rows.refuse_reserved(name)
        labels = rows.labels(label, most=MAX_LABELS, missing=UNLABELLED)
        if labels.values == (UNLABELLED,):
            raise DataError(
                f"no row of {table.source} has a value in column {label!r}",
                hint="label some of them",
            )
        coded = {name: rows.labels(name, most=MAX_PREDICTIONS) for name in answers}
        found: dict[str, Any] = {}
        if id is not None:
            found["ids"] = rows.ids(id)
        if difficulty is not None:
            found["difficulty"] = rows.number(difficulty)
        if group is not None:
            found["group"] = rows.labels(group, most=MAX_PREDICTIONS)
        if cost is not None:
            found["cost"] = rows.number(cost, low=0.0)
        found["numbers"] = {name: rows.number(name) for name in more_numbers}
        found["keys"] = rows.keys(id=id, inputs=shown, label=label)
        if shown:
            found["inputs"] = rows.inputs(shown)
    notes = _notes(labels, coded.values())
    return Dataset(table.source, labels, coded, notes=notes, **found)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Predictions from a file of their own, by id."""

    ids: npt.NDArray[np.object_]
    answers: Column
    confidence: Floats | None

    def over(self, data: Dataset) -> "tuple[Ints, Answers]":
        """Return the places of the items that have an answer, ascending, and those answers."""
        if data.ids is None:
            raise DataError(
                "answers in a file of their own need ids",
                hint="name the column of ids with --id COL",
            )
        row_of = {name: row for row, name in enumerate(self.ids.tolist())}
        ids = data.ids.tolist()
        places = np.array([place for place, name in enumerate(ids) if name in row_of], np.int64)
        rows = np.array([row_of[ids[place]] for place in places.tolist()], np.int64)
        if not len(rows):
            raise DataError(
                f"no id of {data.source} has an answer", hint="are these the ids of the same items?"
            )
        answers = _taken(self.answers, rows)
        return places, Answers(self.ids[rows], answers, _at(self.confidence, rows))


def read_answers(
    source: str | Path, *, id: str, prediction: str, confidence: str | None = None
) -> Answers:
    """Read predictions by id from a file."""
    numbers = _distinct((confidence,))
    with Table.open(source).load(texts=_distinct((id, prediction)), numbers=numbers, id=id) as rows:
        rows.refuse_missing(id)
        answers = rows.labels(prediction, most=MAX_PREDICTIONS)
        ids = rows.ids(id)
        confidences = None
        if confidence is not None:
            confidences = rows.number(confidence)
        return Answers(ids, answers, confidences)


def as_text(value: object) -> str | None:
    """Return the text by which a value in memory is compared, as if it were read from a file.

    None for a missing value.

    >>> [as_text(value) for value in (3, 3.0, 2.5, True, "3.0", "", None, float("nan"))]
    ['3', '3', '2.5', 'true', '3.0', None, None, None]
    """
    if isinstance(value, str):
        return value or None
    if value is None or str(value) in ("nan", "<NA>", "NaT"):  # As NumPy and pandas write them.
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def oddities(label: Column, answers: Column) -> Iterator[str]:
    """Yield notes on what in a column of predictions is probably not what the user meant."""
    if INVALID in answers.values:
        missing = int(np.count_nonzero(answers.codes == answers.values.index(INVALID)))
        yield (
            f"{answers.name!r} has no prediction for {missing:,} of {len(answers.codes):,} items; "
            f"they count as {INVALID}"
        )
    given = [name for name in answers.values if name not in RESERVED]
    unknown = [name for name in given if name not in label.values]
    similar = {_simplified(name): name for name in label.values}
    for name in unknown:
        if _simplified(name) in similar:
            yield (
                f"{answers.name!r} has the prediction {name!r}, which is not the label "
                f"{similar[_simplified(name)]!r}: texts are compared exactly"
            )
            return
    if len(unknown) == len(given):
        yield f"no prediction in {answers.name!r} is one of the labels in {label.name!r}"


def _simplified(name: str) -> str:
    """Drop case, outer spaces and a decimal part of zeros."""
    return re.sub(r"\.0+$", "", name.strip().casefold())


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    """Return each name once, in order, without None."""
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _at(values: npt.NDArray[Kind] | None, places: Ints) -> npt.NDArray[Kind] | None:
    """Return the values at these places, if there are any values."""
    if values is None:
        return None
    return values[places]


def _taken(column: Column, places: Ints) -> Column:
    """Return the items of a column at these places, without the values that none of them has."""
    kept, codes = np.unique(column.codes[places], return_inverse=True)
    return Column(column.name, tuple(column.values[code] for code in kept), codes.astype(np.int32))


def _refuse_lengths(items: int, columns: Iterable[Sequence[object] | Floats]) -> None:
    if not items:
        raise DataError("the data has no items", hint="give columns of one item or more")
    lengths = sorted({len(column) for column in columns})
    if lengths != [items]:
        raise DataError(
            f"the columns have different lengths: {', '.join(map(str, lengths))} items",
            hint="give columns of the same length",
        )


def _refuse_labels(label: Sequence[object], source: str, *, unlabelled: bool) -> None:
    for row, value in enumerate(label):
        text = as_text(value)
        if text in RESERVED or (text is None and not unlabelled):
            raise DataError(
                f"{source}, row {row + 1:,}: {value!r} cannot be a label",
                hint=f"give every item a label other than {', '.join(RESERVED)}",
            )


def _refuse_nan(columns: Iterable[tuple[str, Floats]], source: str) -> None:
    for name, column in columns:
        bad_rows = np.flatnonzero(np.isnan(column))
        if len(bad_rows):
            raise DataError(
                f"{source}, row {int(bad_rows[0]) + 1:,}: {name} is not a number",
                hint="correct it, or leave the item out",
            )


def _keys(inputs: Mapping[str, Sequence[str]], labels: Sequence[str]) -> Ints:
    """Return the same keys (N,) as a file with these columns and no ids would have."""
    if inputs:
        seen: Counter[tuple[str, ...]] = Counter()
        parts: list[tuple[str, ...]] = []
        for texts in zip(*inputs.values(), strict=True):
            seen[texts] += 1
            parts.append(("input", *texts, str(seen[texts])))
    else:
        parts = [("row", str(place), label) for place, label in enumerate(labels)]
    # The same characters as `Rows.keys` hashes in SQL.
    whole = ("\x1f".join(f"{len(text)}\x1f{text}" for text in part) for part in parts)
    hashes = (hashlib.md5(text.encode(), usedforsecurity=False).digest()[8:] for text in whole)
    return np.array([int.from_bytes(half, "little", signed=True) for half in hashes], np.int64)


def _coded(name: str, column: Sequence[object], *, most: int, missing: str = INVALID) -> Column:
    """Make a column of values in memory, which an empty value turns into `missing`."""
    texts = []
    for value in column:
        text = as_text(value)
        if text is None or text == UNLABELLED:
            text = missing
        texts.append(text)
    values = in_order(tuple(set(texts)))
    if any(len(value) > LONGEST_LABEL for value in values):
        raise DataError(
            f"{name!r} has a value of more than {LONGEST_LABEL} characters",
            hint="is it the right column?",
        )
    if len(values) > most:
        raise DataError(
            f"{name!r} has {len(values):,} different values, more than {most:,}",
            hint="is it the right column?",
        )
    code = {value: place for place, value in enumerate(values)}
    return Column(name, values, np.fromiter((code[text] for text in texts), np.int32, len(texts)))


def _notes(label: Column, predictions: Iterable[Column]) -> tuple[str, ...]:
    notes = [*_unlabelled_note(label), *similar_labels(label), *_lone_label_note(label)]
    for column in predictions:
        notes += oddities(label, column)
    return tuple(notes)


def _unlabelled_note(label: Column) -> Iterator[str]:
    if UNLABELLED in label.values:
        count = int(np.count_nonzero(label.codes == label.values.index(UNLABELLED)))
        yield (
            f"{count:,} of {len(label.codes):,} items have no label; "
            "they only help to tell whether anything changed"
        )


def similar_labels(label: Column) -> Iterator[str]:
    """Name the labels that differ by case or spaces alone."""
    alike: dict[str, list[str]] = {}
    for name in label.values:
        if name != UNLABELLED:
            alike.setdefault(_simplified(name), []).append(repr(name))
    pairs = [" and ".join(names) for names in alike.values() if len(names) > 1]
    if pairs:
        listed = "; ".join(pairs[:MOST_NAMED])
        if len(pairs) > MOST_NAMED:
            listed += "; ..."
        yield (
            f"labels that differ only by case, spaces or a decimal part are different labels: "
            f"{listed}; make them one in the data if they mean the same"
        )


def _lone_label_note(label: Column) -> Iterator[str]:
    """Name the labels that only one item has."""
    counts = np.bincount(label.codes, minlength=len(label.values)).tolist()
    lone = [
        repr(name)
        for name, count in zip(label.values, counts, strict=True)
        if count == 1 and name != UNLABELLED
    ]
    if len(lone) == 1:
        yield f"only one item has the label {lone[0]}; it is a stratum of its own"
    elif lone:
        listed = ", ".join(lone[:MOST_NAMED])
        if len(lone) > MOST_NAMED:
            listed += ", ..."
        yield f"{len(lone)} labels have only one item each ({listed}); each is a stratum of its own"
