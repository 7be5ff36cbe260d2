"""Labelled items and what is known about them, checked."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from masa.data.files import Inputs, Table
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
    numbers: dict[str, Floats] = field(default_factory=dict)
    """more columns of numbers, such as confidences, by name"""
    keys: Ints | None = None
    """(N,) a number for each item that is its own in other versions of the data too"""
    inputs: Inputs | None = None
    """what the API is shown, at the place that `rows` says"""
    rows: Ints | None = None
    """(N,) the place of each item in `inputs`, where that is not its own"""
    notes: tuple[str, ...] = ()
    """what is odd but not wrong, in sentences"""

    def __len__(self) -> int:
        return len(self.label.codes)

    def __repr__(self) -> str:
        return f"<Dataset {self.source}: {len(self):,} items, {len(self.label.values):,} labels>"

    def item(self, place: int) -> Item:
        """Give an item as a client sees it: at its place among all that were read."""
        row = place if self.rows is None else int(self.rows[place])
        return Item(row, {} if self.inputs is None else self.inputs.of(row))

    def name(self, place: int) -> str:
        """Give what people call an item: its id, or else its row."""
        if self.ids is not None:
            return str(self.ids[place])
        return f"row {1 + (place if self.rows is None else int(self.rows[place])):,}"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that items have."""
        return tuple(name for name in self.label.values if name != UNLABELLED)

    @property
    def labelled(self) -> Bools:
        """(N,) whether each item has a label; one that has none can only tell whether anything changed."""
        if UNLABELLED not in self.label.values:
            return np.ones(len(self), np.bool_)
        return np.asarray(self.label.codes != self.label.values.index(UNLABELLED), np.bool_)

    def texts(self, column: str) -> Iterator[str]:
        """Give the text of an input column, item by item."""
        if self.inputs is None or column not in self.inputs.columns:
            raise DataError(
                f"the data has no column {column!r} of texts", hint="read it with inputs=[...]"
            )
        for place in range(len(self)):
            yield self.item(place).inputs[column]

    def take(self, places: Ints) -> "Dataset":
        """Give the data set of these items, in rising order of their places; labels that none of them has are gone."""
        rows = places if self.rows is None else self.rows[places]
        return replace(
            self,
            label=_taken(self.label, places),
            predictions={name: _taken(column, places) for name, column in self.predictions.items()},
            ids=None if self.ids is None else self.ids[places],
            difficulty=None if self.difficulty is None else self.difficulty[places],
            group=None if self.group is None else _taken(self.group, places),
            cost=None if self.cost is None else self.cost[places],
            numbers={name: column[places] for name, column in self.numbers.items()},
            keys=None if self.keys is None else self.keys[places],
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
        """Make a data set of columns in memory, checked like a file's; inputs are the texts that the API is shown.

        >>> Dataset.of([0, 1, 1], predictions={"api": [0, 1, None]}).predictions["api"].values
        ('0', '1', '<invalid>')
        """
        hardness = None if difficulty is None else np.asarray(difficulty, np.float64)
        more = {name: np.asarray(column, np.float64) for name, column in (numbers or {}).items()}
        answers = predictions or {}
        shown = {name: [str(text) for text in texts] for name, texts in (inputs or {}).items()}
        columns: list[Sequence[object] | Floats] = [
            label,
            *answers.values(),
            *shown.values(),
            *more.values(),
        ]
        columns += [] if group is None else [group]
        lengths = {len(column) for column in columns} | (
            {len(hardness)} if hardness is not None else set()
        )
        if lengths != {len(label)} or not len(label):
            raise DataError(
                f"columns of {sorted(lengths)} items",
                hint="give columns of the same length, of one item or more",
            )
        for row, value in enumerate(label):
            if as_text(value) in RESERVED or (as_text(value) is None and not unlabelled):
                raise DataError(
                    f"{source}, row {row + 1:,}: {value!r} cannot be a label",
                    hint="give every item a label of its own",
                )
        for name, column in (
            *more.items(),
            *((("the difficulty", hardness),) if hardness is not None else ()),
        ):
            if np.isnan(column).any():
                row = int(np.flatnonzero(np.isnan(column))[0])
                raise DataError(
                    f"{source}, row {row + 1:,}: {name} is not a number",
                    hint="correct it, or leave the item out",
                )
        labels = _coded("label", label, most=MAX_LABELS, missing=UNLABELLED)
        if labels.values == (UNLABELLED,):
            raise DataError(f"no item of {source} has a label", hint="label some of them")
        coded = {
            name: _coded(name, column, most=MAX_PREDICTIONS) for name, column in answers.items()
        }
        return cls(
            source,
            labels,
            coded,
            difficulty=hardness,
            group=None if group is None else _coded("group", group, most=MAX_PREDICTIONS),
            numbers=more,
            keys=_keys(shown, [as_text(value) or "" for value in label]),
            inputs=_in_memory(shown) if shown else None,
            notes=_notes(labels, coded.values()),
        )

    def fingerprint(self) -> str:
        """Give a text that differs whenever the content differs, whatever the kind of file it came from."""
        digest = hashlib.sha256()

        def add(role: str, *parts: bytes) -> None:
            for part in (role.encode(), *parts):
                digest.update(len(part).to_bytes(8, "little") + part)

        if self.keys is not None:
            add("keys", self.keys.astype("<i8").tobytes())
        for role, column in [
            ("label", self.label),
            ("group", self.group),
            *sorted(self.predictions.items()),
        ]:
            if column is not None:
                add(
                    role,
                    *(value.encode() for value in column.values),
                    column.codes.astype("<i4").tobytes(),
                )
        for role, numbers in (
            ("difficulty", self.difficulty),
            ("cost", self.cost),
            *sorted(self.numbers.items()),
        ):
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
    numbers: Iterable[str] = (),
    inputs: Iterable[str] = (),
    unlabelled: bool = False,
) -> Dataset:
    """Read a CSV, JSON-lines or Parquet file, a glob of them or a folder, and check every value that is used.

    Labels and predictions are compared as text. A missing prediction counts as an answer that could not be read. With ids,
    items come in the order of their ids, else in that of the rows. Rows without a label are refused, or kept to tell whether
    anything changed.
    """
    table = source if isinstance(source, Table) else Table.open(source)
    answers = tuple(dict.fromkeys(predictions))
    required = tuple(dict.fromkeys(name for name in (label, id, group) if name is not None))
    shown = tuple(dict.fromkeys(inputs))
    counted = tuple(dict.fromkeys(numbers))
    plain = tuple(
        dict.fromkeys(name for name in (difficulty, cost, *counted, *shown) if name is not None)
    )
    with table.load(
        texts=tuple(dict.fromkeys((*required, *answers))), numbers=plain, id=id
    ) as rows:
        for name in required:
            if name != label:
                rows.refuse_missing(name)
            elif not unlabelled:
                rows.refuse_missing(
                    name,
                    hint="label them, leave them out, or let them only tell whether anything changed: --unlabelled",
                )
            if name != id:
                rows.refuse_reserved(name)
        labels = rows.labels(label, most=MAX_LABELS, missing=UNLABELLED)
        if labels.values == (UNLABELLED,):
            raise DataError(
                f"no row of {table.source} has a value in column {label!r}",
                hint="label some of them",
            )
        known = {name: rows.labels(name, most=MAX_PREDICTIONS) for name in answers}
        return Dataset(
            source=table.source,
            label=labels,
            predictions=known,
            ids=None if id is None else rows.ids(id),
            difficulty=None if difficulty is None else rows.number(difficulty),
            group=None if group is None else rows.labels(group, most=MAX_PREDICTIONS),
            cost=None if cost is None else rows.number(cost, low=0.0),
            numbers={name: rows.number(name) for name in counted},
            keys=rows.keys(id=id, inputs=shown, label=label),
            inputs=rows.inputs(shown) if shown else None,
            notes=_notes(labels, known.values()),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Predictions from a file of their own, by id."""

    ids: npt.NDArray[np.object_]
    answers: Column
    confidence: Floats | None

    def over(self, data: Dataset) -> "tuple[Ints, Answers]":
        """Give the places of the data's items that have an answer, rising, and the answers in that order."""
        if data.ids is None:
            raise DataError(
                "answers in a file of their own need ids",
                hint="name the column of ids with --id COL",
            )
        row = {name: number for number, name in enumerate(self.ids.tolist())}
        places = np.array(
            [place for place, name in enumerate(data.ids.tolist()) if name in row], np.int64
        )
        rows = np.array([row[data.ids[place]] for place in places.tolist()], np.int64)
        if not len(rows):
            raise DataError(
                f"no id of {data.source} has an answer", hint="are these the ids of the same items?"
            )
        confidence = None if self.confidence is None else self.confidence[rows]
        return places, Answers(self.ids[rows], _taken(self.answers, rows), confidence)


def read_answers(
    source: str | Path, *, id: str, prediction: str, confidence: str | None = None
) -> Answers:
    """Read predictions by id from a file."""
    numbers = () if confidence is None else (confidence,)
    with Table.open(source).load(
        texts=tuple(dict.fromkeys((id, prediction))), numbers=numbers, id=id
    ) as rows:
        rows.refuse_missing(id)
        answers = rows.labels(prediction, most=MAX_PREDICTIONS)
        return Answers(
            rows.ids(id), answers, None if confidence is None else rows.number(confidence)
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


def _taken(column: Column, places: Ints) -> Column:
    kept, codes = np.unique(column.codes[places], return_inverse=True)
    return Column(column.name, tuple(column.values[code] for code in kept), codes.astype(np.int32))


def _keys(inputs: Mapping[str, Sequence[str]], labels: Sequence[str]) -> Ints:
    """Give the same keys as a file with these columns and no ids would have."""
    if inputs:
        seen: Counter[tuple[str, ...]] = Counter()
        parts: list[tuple[str, ...]] = []
        for texts in zip(*inputs.values(), strict=True):
            seen[texts] += 1
            parts.append(("input", *texts, str(seen[texts])))
    else:
        parts = [("row", str(place), label) for place, label in enumerate(labels)]
    whole = ("\x1f".join(f"{len(text)}\x1f{text}" for text in part) for part in parts)
    hashes = (hashlib.md5(text.encode(), usedforsecurity=False).digest()[8:] for text in whole)
    return np.array([int.from_bytes(half, "little", signed=True) for half in hashes], np.int64)


def _in_memory(inputs: Mapping[str, Sequence[str]]) -> Inputs:
    texts = [text.encode() for row in zip(*inputs.values(), strict=True) for text in row]
    return Inputs(
        tuple(inputs),
        b"".join(texts),
        np.concatenate(([0], np.cumsum([len(text) for text in texts]))).astype(np.int64),
    )


def _coded(name: str, column: Sequence[object], *, most: int, missing: str = INVALID) -> Column:
    known = (as_text(value) for value in column)
    texts = [missing if value in (None, UNLABELLED) else value for value in known]
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
    return (
        *_without(label),
        *_lone_labels(label),
        *(note for column in predictions for note in oddities(label, column)),
    )


def _without(label: Column) -> Iterator[str]:
    if UNLABELLED in label.values:
        count = int(np.count_nonzero(label.codes == label.values.index(UNLABELLED)))
        yield f"{count:,} of {len(label.codes):,} items have no label; they only help to tell whether anything changed"


def _lone_labels(label: Column) -> Iterator[str]:
    counts = np.bincount(label.codes, minlength=len(label.values))
    lone = [
        repr(name)
        for name, count in zip(label.values, counts, strict=True)
        if count == 1 and name != UNLABELLED
    ]
    if len(lone) == 1:
        yield f"only one item has the label {lone[0]}; it is a stratum of its own"
    elif lone:
        some = ", ".join(lone[:5]) + (", ..." if len(lone) > 5 else "")
        yield f"{len(lone)} labels have only one item each ({some}); each is a stratum of its own"


def oddities(label: Column, answers: Column) -> Iterator[str]:
    """Tell what about a column of predictions is probably not what the user meant."""
    if INVALID in answers.values:
        missing = int(np.count_nonzero(answers.codes == answers.values.index(INVALID)))
        yield f"{answers.name!r} has no prediction for {missing:,} of {len(answers.codes):,} items; they count as {INVALID}"
    plain = {_plain(name): name for name in label.values}
    strangers = [
        name for name in answers.values if name not in label.values and name not in RESERVED
    ]
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
