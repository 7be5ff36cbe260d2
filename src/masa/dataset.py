"""Read labelled data and recorded answers from files, and check them.

Only the columns that are named are read, through DuckDB, and text is turned into numbers there: what reaches Python is one
small integer an item and column.
"""

import csv
import glob
import gzip
import hashlib
import itertools
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from masa.errors import DataError
from masa.records import INVALID, RESERVED, Codes, Floats, in_order

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
MAX_LABELS = 1_000
MAX_PREDICTIONS = 10_000
MAX_LINE = 256 << 20
JSON_HINT = 'write one object a line, such as {"label": "yes", "new": "no"}'
NUMBER = "number of "
"""Before the name of a column that is read as numbers, so that the same one may also be read as text."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of text: its different values, and for each item which one it has."""

    name: str
    values: tuple[str, ...]
    codes: Codes
    """(N,)"""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Labelled items and what is known about them."""

    source: str
    label: Column
    predictions: dict[str, Column] = field(default_factory=dict)
    ids: npt.NDArray[np.object_] | None = None
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
        columns = {"label": label, **(predictions or {})}
        lengths = {len(column) for column in columns.values()} | ({len(numbers)} if numbers is not None else set())
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
        coded = {name: _coded(name, column) for name, column in columns.items()}
        labels = coded.pop("label")
        return cls(source, labels, coded, difficulty=numbers, notes=_notes(labels, coded.values()))

    def fingerprint(self) -> str:
        """Give a text that differs whenever the content differs.

        It does not depend on the kind of file, nor on the order of the rows where they have ids.
        """
        order = slice(None) if self.ids is None else np.argsort(self.ids, kind="stable")
        digest = hashlib.sha256()

        def add(role: str, *parts: bytes) -> None:
            for part in (role.encode(), *parts):
                digest.update(len(part).to_bytes(8, "little") + part)

        if self.ids is not None:
            add("ids", *(text.encode() for text in self.ids[order]))
        named = [("label", self.label), ("group", self.group), *sorted(self.predictions.items())]
        for role, column in named:
            if column is not None:
                add(role, *(value.encode() for value in column.values), column.codes[order].astype("<i4").tobytes())
        for role, numbers in (("difficulty", self.difficulty), ("cost", self.cost)):
            if numbers is not None:
                add(role, numbers[order].astype("<f8").tobytes())
        return digest.hexdigest()


def read(
    source: str | Path,
    *,
    label: str,
    id: str | None = None,
    predictions: Iterable[str] = (),
    difficulty: str | None = None,
    group: str | None = None,
    cost: str | None = None,
) -> Dataset:
    """Read a CSV, JSON-lines or Parquet file, a glob of them or a folder, and check every value that is used.

    Labels and predictions are compared as text. A missing prediction counts as an answer that could not be read.
    """
    table = Table.open(source)
    answers = tuple(dict.fromkeys(predictions))
    numbers = tuple(dict.fromkeys(name for name in (difficulty, cost) if name is not None))
    texts = tuple(dict.fromkeys(name for name in (label, id, group, *answers) if name is not None))
    with table.load(texts=texts, numbers=numbers) as rows:
        rows.refuse_missing([name for name in (label, id, group) if name is not None])
        rows.refuse_reserved([name for name in (label, group) if name is not None])
        ids = rows.unique(id) if id is not None else None
        labels = rows.column(label, most=MAX_LABELS)
        known = {name: rows.column(name, most=MAX_PREDICTIONS) for name in answers}
        return Dataset(
            source=str(source),
            label=labels,
            predictions=known,
            ids=ids,
            difficulty=None if difficulty is None else rows.number(difficulty),
            group=None if group is None else rows.column(group, most=MAX_PREDICTIONS),
            cost=None if cost is None else rows.number(cost, low=0.0),
            notes=_notes(labels, known.values()),
        )


def column_names(source: str | Path) -> tuple[str, ...]:
    """Give the names of the columns of a data file, reading no more than its head."""
    return tuple(Table.open(source).columns)


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


def _coded(name: str, column: Sequence[object]) -> Column:
    texts = [as_text(value) or INVALID for value in column]
    values = in_order(tuple(set(texts)))
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


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a file: SQL expressions for its value as a label and as it stands, or why it cannot be used."""

    label: str
    plain: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """Files of one layout, and how DuckDB reads them."""

    files: tuple[str, ...]
    function: str
    options: str
    fields: dict[str, Field]

    def over(self, files: Sequence[str]) -> str:
        """Give an SQL expression for the rows of these files."""
        return f"{self.function}({_paths(files)}{self.options})"


@dataclass(frozen=True, slots=True)
class Table:
    """Data files and the columns they all have; nothing is read yet but their heads."""

    source: str
    scans: tuple[Scan, ...]

    @classmethod
    def open(cls, source: str | Path) -> "Table":
        """Find the files and their columns."""
        files = _files(str(source))
        formats = {_format(file) for file in files}
        if len(formats) > 1:
            raise DataError(
                f"{source} holds files of several kinds: {', '.join(sorted(formats))}", hint="name one kind: 'folder/*.csv'"
            )
        look = {"csv": _csv_scan, "json": _json_scan, "parquet": _parquet_scan}[formats.pop()]
        scans = []
        for (options, fields), group in itertools.groupby(map(look, files), key=lambda scan: (scan.options, scan.fields)):
            alike = list(group)
            scans.append(Scan(tuple(scan.files[0] for scan in alike), alike[0].function, options, fields))
        return cls(str(source), tuple(scans))

    @property
    def columns(self) -> list[str]:
        """The columns that every file has."""
        first, *others = (scan.fields for scan in self.scans)
        return [name for name in first if all(name in other for other in others)]

    @contextmanager
    def load(self, *, texts: Sequence[str], numbers: Sequence[str]) -> Iterator["Rows"]:
        """Read these columns, as text, into a table of DuckDB's, which goes to disk when memory is short."""
        for name in (*texts, *numbers):
            self._require(name)
        with tempfile.TemporaryDirectory(prefix="masa-") as spill:
            connection = duckdb.connect(config={"temp_directory": spill})
            try:
                selects = []
                for scan in self.scans:
                    wanted = [f"{scan.fields[name].label} AS {_quoted(name)}" for name in texts]
                    wanted += [f"{scan.fields[name].plain} AS {_quoted(NUMBER + name)}" for name in numbers]
                    selects.append(f"SELECT {', '.join(wanted)} FROM {scan.over(scan.files)}")
                with _translated(self.source):
                    connection.execute(f"CREATE TEMP TABLE rows AS {' UNION ALL '.join(selects)}")
                rows = Rows(self, connection)
                if not rows.ask("SELECT count(*) FROM rows")[0][0]:
                    raise DataError(f"{self.source} has columns but no rows", hint="give a file with labelled items")
                yield rows
            finally:
                connection.close()

    def _require(self, name: str) -> None:
        for scan in self.scans:
            if name in scan.fields:
                if problem := scan.fields[name].problem:
                    hint = JSON_HINT if scan.function == "read_json" else "masa needs one label, text or number a row"
                    raise DataError(f"column {name!r} of {scan.files[0]} {problem}", hint=hint)
                continue
            names = [column for column in scan.fields if column]
            close = get_close_matches(name, names, 1) or [c for c in names if c.casefold() == name.casefold()]
            listed = ", ".join(repr(column) for column in names[:20]) + (", ..." if len(names) > 20 else "")
            raise DataError(
                f"{scan.files[0]} has no column {name!r}",
                hint=f"did you mean {close[0]!r}?" if close else f"its columns are {listed}",
            )


@dataclass(frozen=True, slots=True)
class Rows:
    """The loaded columns; row numbers start at 1 after the header."""

    table: Table
    connection: duckdb.DuckDBPyConnection

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query and give its rows."""
        return self.connection.execute(sql).fetchall()

    def place(self, row: int) -> str:
        """Say where row (from 0, over all files) is."""
        places = [(scan, file) for scan in self.table.scans for file in scan.files]
        for scan, file in places[:-1]:
            size = self.ask(f"SELECT count(*) FROM {scan.over([file])}")[0][0]
            if row < size:
                return f"{file}, row {row + 1:,}"
            row -= size
        return f"{places[-1][1]}, row {row + 1:,}"

    def refuse_missing(self, names: Sequence[str]) -> None:
        """Raise if one of these columns has an empty value."""
        for name in names:
            found = self.ask(f"SELECT count(*), min(rowid) FROM rows WHERE {_quoted(name)} IS NULL")
            missing, first = found[0]
            if missing:
                more = f" ({missing:,} rows have none)" if missing > 1 else ""
                raise DataError(
                    f"{self.place(first)}: no value in column {name!r}{more}",
                    hint="fill it in, or leave those rows out of the file",
                )

    def refuse_reserved(self, names: Sequence[str]) -> None:
        """Raise if one of these columns uses a name that masa keeps for outcomes."""
        reserved = ", ".join(_literal(name) for name in RESERVED)
        for name in names:
            found = self.ask(f"SELECT rowid, {_quoted(name)} FROM rows WHERE {_quoted(name)} IN ({reserved}) LIMIT 1")
            if found:
                raise DataError(
                    f"{self.place(found[0][0])}: column {name!r} has the value {found[0][1]!r}, a name masa keeps for itself",
                    hint="rename that label",
                )

    def unique(self, name: str) -> npt.NDArray[np.object_]:
        """Give the values of a column in which none may stand twice."""
        column = _quoted(name)
        found = self.ask(f"SELECT {column}, min(rowid), max(rowid) FROM rows GROUP BY 1 HAVING count(*) > 1 ORDER BY 2 LIMIT 1")
        if found:
            value, first, last = found[0]
            raise DataError(
                f"{self.place(last)}: column {name!r} has {_short(value)} again, first in {self.place(first)}",
                hint="each item needs an id of its own",
            )
        return self._fetch(f"SELECT {column} AS v FROM rows ORDER BY rowid").astype(object)

    def column(self, name: str, *, most: int) -> Column:
        """Give a column of text; no value counts as an answer that could not be read."""
        text = f"coalesce({_quoted(name)}, {_literal(INVALID)})"
        values = [row[0] for row in self.ask(f"SELECT DISTINCT {text} FROM rows LIMIT {most + 1}")]
        if len(values) > most:
            raise DataError(
                f"column {name!r} of {self.table.source} has more than {most:,} different values, such as {_short(values[0])}",
                hint="is it the right column? masa compares labels; free text must be turned into labels first",
            )
        known = in_order(tuple(values))
        kind = f"kind_{len(self.ask('SELECT 1 FROM duckdb_types() WHERE NOT internal'))}"
        self.connection.execute(f"CREATE TYPE {kind} AS ENUM ({', '.join(_literal(value) for value in known)})")
        codes = self._fetch(f"SELECT enum_code({text}::{kind})::INTEGER AS v FROM rows ORDER BY rowid")
        return Column(name, known, codes.astype(np.int32))

    def number(self, name: str, *, low: float = float("-inf")) -> Floats:
        """Give a column of numbers, none of them missing, NaN or below the lowest allowed."""
        column = _quoted(NUMBER + name)
        number = f"try_cast({column} AS DOUBLE)"
        bad = f"{number} IS NULL OR isnan({number})" + (f" OR {number} < {low} OR isinf({number})" if low > float("-inf") else "")
        found = self.ask(f"SELECT rowid, {column} FROM rows WHERE {bad} ORDER BY rowid LIMIT 1")
        if found:
            row, value = found[0]
            wrong = (
                "no value" if value is None else f"{_short(value)}, which is not a number" + (" of 0 or more" if low == 0 else "")
            )
            comma = value is not None and re.fullmatch(r"-?[0-9]*,[0-9]+", value)
            hint = "write decimals with a point" if comma else "correct it, or leave the row out of the file"
            raise DataError(f"{self.place(row)}: column {name!r} has {wrong}", hint=hint)
        return self._fetch(f"SELECT {number} AS v FROM rows ORDER BY rowid").astype(np.float64)

    def _fetch(self, sql: str) -> npt.NDArray[Any]:
        return np.asarray(self.connection.execute(sql).fetchnumpy()["v"])


def _csv_scan(file: str) -> Scan:
    try:
        with open(file, "rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        opener: Any = gzip.open if packed else open
        with opener(file, "rb") as raw:
            encoding = "utf-16" if raw.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with opener(file, "rt", encoding=encoding, newline="") as lines:
            blank = 0
            while (line := lines.readline()) and not line.strip():
                blank += 1
            delimiter = max(",\t;|", key=re.sub(r'"[^"]*"', "", line).count)
            while line.count('"') % 2 and (more := lines.readline()):
                line += more
            names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except (OSError, UnicodeError, EOFError, csv.Error) as exc:
        raise DataError(f"{file} cannot be read: {exc}", hint="save it as CSV in UTF-8") from exc
    names = [name.strip() for name in names]
    if not names:
        raise DataError(f"{file} is empty", hint="give a file with a header and labelled items")
    # Columns are read by place, so that names alike but for case, or standing twice, cannot be mixed up.
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
    options = (
        f", auto_detect=false, header=true, skip={blank}, delim={_literal(delimiter)}, quote='\"', escape='\"'"
        f", max_line_size={MAX_LINE}, columns={{{columns}}}"
        + (", encoding='utf-16'" if encoding == "utf-16" else "")
        + (", compression='gzip'" if packed else "")
    )
    fields = {name: Field(_whole(f"c{place}"), f"c{place}") for place, name in enumerate(names)}
    for name in names:
        if names.count(name) > 1:
            fields[name] = Field("", "", "stands there more than once")
    return Scan((file,), "read_csv", options, fields)


def _json_scan(file: str) -> Scan:
    try:
        types = _types(f"read_json({_paths([file])}, sample_size=-1)", file)
    except DataError:
        _refuse_bad_lines(file)
        raise
    if list(types) == ["json"]:
        _refuse_bad_lines(file)
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in types)
    return Scan((file,), "read_json", f", columns={{{columns}}}", {name: _field(name, kind) for name, kind in types.items()})


def _refuse_bad_lines(file: str) -> None:
    """Raise with the first line of a file of JSON lines that is not an object; DuckDB counts lines differently."""
    opener: Any = gzip.open if file.lower().endswith(".gz") else open
    with suppress(OSError, EOFError), opener(file, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1 and line.lstrip().startswith(b"["):
                return  # One array over many lines.
            try:
                if line.strip() and not isinstance(json.loads(line), dict):
                    raise DataError(f"{file}, line {number:,}: not a JSON object", hint=JSON_HINT)
            except UnicodeDecodeError as exc:
                raise DataError(f"{file}, line {number:,}: not UTF-8", hint="save the file as UTF-8") from exc
            except (ValueError, RecursionError) as exc:
                raise DataError(f"{file}, line {number:,}: not JSON: {exc}", hint=JSON_HINT) from exc


def _parquet_scan(file: str) -> Scan:
    types = _types(f"read_parquet({_paths([file])})", file)
    return Scan((file,), "read_parquet", "", {name: _field(name, kind) for name, kind in types.items()})


def _types(scan: str, file: str) -> dict[str, str]:
    with _translated(file), duckdb.connect() as connection:
        return {str(row[0]): str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}


def _whole(text: str) -> str:
    """Write whole floats as whole numbers, in SQL: a CSV has no types, and one empty cell turns 3 into 3.0 in many tools."""
    return f"CASE WHEN regexp_full_match({text}, '-?[0-9]{{1,15}}[.]0+') THEN {text}::DOUBLE::BIGINT::VARCHAR ELSE {text} END"


def _field(name: str, kind: str) -> Field:
    plain = f"{_quoted(name)}::VARCHAR"
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "BLOB", "VARIANT")):
        return Field("", "", "holds lists, objects or bytes")
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        number = f"try_cast({_quoted(name)} AS DOUBLE)"
        whole = f"{number} = trunc({number}) AND abs({number}) < 1e15"
        return Field(f"CASE WHEN isnan({number}) THEN NULL WHEN {whole} THEN {number}::BIGINT::VARCHAR ELSE {plain} END", plain)
    return Field(plain, plain)


@contextmanager
def _translated(source: str) -> Iterator[None]:
    """Turn DuckDB's complaints into ours: the file, the line, what is wrong; never the text of the line."""
    try:
        yield
    except duckdb.Error as exc:
        said = str(exc)
        file = re.search(r'in file "(.+?)"|file = (.+)', said)
        where = (file[1] or file[2]).strip() if file else source
        line = re.search(r"Line: (\d+)|in line (\d+)", said)
        if line:
            where += f", line {int(line[1] or line[2]):,}"
        columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said)
        if columns:
            few = int(columns[2]) < int(columns[1])
            what = f"{columns[2]} columns where the header has {columns[1]}"
            hint = "fill in what is missing" if few else "quote texts that hold the separator"
        elif "unicode" in said or "UTF-8" in said:
            what, hint = "not UTF-8", "save the file as UTF-8"
        elif "unterminated quote" in said:
            what, hint = "a quote is opened and not closed", 'double the quotes inside quoted texts: ""'
        elif "state machine" in said:
            what, hint = "not well-formed CSV", "look for mixed line endings or stray quotes; save the file again as CSV"
        else:
            what, hint = (
                said.splitlines()[0].split("Error: ", 1)[-1],
                "check that the file is whole and of the kind its name says",
            )
        raise DataError(f"{where}: {what}", hint=hint) from exc


def _files(source: str) -> list[str]:
    path = Path(source)
    if path.is_dir():
        files = sorted(str(file) for file in path.rglob("*") if file.is_file() and _format(str(file)) and not _hidden(file, path))
        if not files:
            raise DataError(f"{source} holds no data files", hint=f"masa reads {', '.join(FORMATS)}")
        return files
    found = [source] if path.is_file() else sorted(file for file in glob.glob(source, recursive=True) if Path(file).is_file())
    if not found and path.exists():
        raise DataError(f"{source} is not a file", hint="give a file, a glob or a folder")
    if not found and glob.has_magic(source):
        raise DataError(f"no file matches {source}", hint="give a file, a glob in quotes or a folder")
    if not found:
        beside = [str(file) for file in path.parent.iterdir()] if path.parent.is_dir() else []
        close = get_close_matches(source, beside, 1)
        raise DataError(
            f"{source} does not exist", hint=f"did you mean {close[0]}?" if close else "give a file, a glob or a folder"
        )
    for file in found:
        if not _format(file):
            kinds = ", ".join(FORMATS)
            raise DataError(
                f"{file}: masa does not know this kind of file", hint=f"save it as CSV or Parquet; masa reads {kinds}"
            )
    return found


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _format(file: str) -> str:
    name = file.lower().removesuffix(".gz")
    return next((kind for ending, kind in FORMATS.items() if name.endswith(ending)), "")


def _paths(files: Sequence[str]) -> str:
    return "[" + ", ".join(_literal(glob.escape(file)) for file in files) + "]"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _short(value: str, most: int = 60) -> str:
    return repr(value if len(value) <= most else value[:most] + "...")
