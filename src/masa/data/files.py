"""Columns of data files, read through DuckDB: find them, load them, refuse what cannot be used and say where it stands.

Only the columns that are named are read, and text is turned into numbers in DuckDB: what reaches Python is one small
integer an item and column.
"""

import codecs
import csv
import glob
import gzip
import io
import json
import mmap
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, cast

import duckdb
import numpy as np
import numpy.typing as npt

from masa.errors import DataError
from masa.records import (
    INVALID,
    LONGEST_LABEL,
    RESERVED,
    UNLABELLED,
    Column,
    Floats,
    Ints,
    in_order,
)

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
MAX_LINE = 256 << 20
JSON_HINT = 'write one object a line, such as {"label": "yes", "new": "no"}'


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
        """Give an SQL expression for the rows of these files; a folder named label=x adds no column."""
        return f"{self.function}({_paths(files)}, hive_partitioning=false{self.options})"


@dataclass(frozen=True, slots=True)
class Table:
    """Data files and their columns; no row is read yet, but of JSON, whose columns only the rows tell."""

    source: str
    scans: tuple[Scan, ...]

    @classmethod
    def open(cls, source: str | Path) -> "Table":
        """Find the files and their columns."""
        files = _files(str(source))
        formats = {_format(file) for file in files}
        if len(formats) > 1:
            kinds = ", ".join(sorted(formats))
            raise DataError(
                f"{source} holds files of several kinds: {kinds}",
                hint="name one kind: 'folder/*.csv'",
            )
        look = {"csv": _csv_scan, "json": _json_scan, "parquet": _parquet_scan}[formats.pop()]
        scans: list[Scan] = []
        with duckdb.connect() as connection:
            for scan in (look(connection, file) for file in files):
                if scans and (scan.options, scan.fields) == (scans[-1].options, scans[-1].fields):
                    scans[-1] = replace(scan, files=scans[-1].files + scan.files)
                else:
                    scans.append(scan)
        return cls(str(source), tuple(scans))

    @property
    def columns(self) -> list[str]:
        """The columns that every file has."""
        first, *others = (scan.fields for scan in self.scans)
        return [name for name in first if all(name in other for other in others)]

    @contextmanager
    def load(
        self, *, texts: Sequence[str], numbers: Sequence[str], id: str | None = None
    ) -> Iterator["Rows"]:
        """Read these columns into a table of DuckDB's, which goes to disk when memory is short.

        Rows come in the order of their ids, so that the order in the files does not matter, or else as they stand.
        """
        for name in (*texts, *numbers):
            self._require(name)
        # DuckDB's names do not tell Label from label and have meanings of their own (rowid): use none of the user's.
        text = {name: f"t{place}" for place, name in enumerate(texts)}
        number = {name: f"n{place}" for place, name in enumerate(numbers)}
        with tempfile.TemporaryDirectory(prefix="masa-") as spill, _translated(self.source):
            connection = duckdb.connect(config={"temp_directory": spill})
            try:
                selects = []
                for scan in self.scans:
                    wanted = [
                        f"{scan.fields[name].label} AS {alias}" for name, alias in text.items()
                    ]
                    wanted += [
                        f"{scan.fields[name].plain} AS {alias}" for name, alias in number.items()
                    ]
                    selects.append(f"SELECT {', '.join(wanted)} FROM {scan.over(scan.files)}")
                connection.execute(f"CREATE TEMP TABLE loaded AS {' UNION ALL '.join(selects)}")
                if id is None:
                    connection.execute(
                        "CREATE TEMP VIEW rows AS SELECT rowid AS place, * FROM loaded"
                    )
                else:
                    connection.execute(
                        f"CREATE TEMP TABLE rows AS SELECT rowid AS place, * FROM loaded ORDER BY {text[id]}"
                    )
                    connection.execute("DROP TABLE loaded")
                rows = Rows(
                    self, connection, text, number, order="place" if id is None else "rowid"
                )
                if not rows.ask("SELECT count(*) FROM rows")[0][0]:
                    raise DataError(
                        f"{self.source} has columns but no rows",
                        hint="give a file with labelled items",
                    )
                yield rows
            finally:
                connection.close()

    def profile(self, *, most: int = 100_000) -> list["Profile"]:
        """Look at the first rows of every column that can be used."""
        profiles = []
        with duckdb.connect() as connection, _translated(self.source):
            scan = self.scans[0]
            for name in self.columns:
                field = scan.fields[name]
                if field.problem or not name:
                    continue
                looked = f"SELECT {field.label} AS value FROM {scan.over(scan.files)} LIMIT {most}"
                frequent = "SELECT value, count(*) AS times FROM looked WHERE value NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 8"
                asked = (
                    "SELECT count(*), count(value), count(DISTINCT value), avg(length(value)), max(length(value)), "
                    f"count(try_cast(value AS DOUBLE)), "
                    f"(SELECT list(value ORDER BY times DESC, value) FROM ({frequent})) FROM looked"
                )
                row = connection.execute(
                    f"WITH looked AS MATERIALIZED ({looked}) {asked}"
                ).fetchall()[0]
                rows, filled, distinct, mean, longest, numbers, most_frequent = row
                profiles.append(
                    Profile(
                        name,
                        rows,
                        filled,
                        distinct,
                        float(mean or 0.0),
                        int(longest or 0),
                        numbers == filled > 0,
                        tuple(most_frequent or ()),
                    )
                )
        return profiles

    def _require(self, name: str) -> None:
        for scan in self.scans:
            if name in scan.fields:
                if problem := scan.fields[name].problem:
                    hint = (
                        JSON_HINT
                        if scan.function == "read_json"
                        else "masa needs one label, text or number a row"
                    )
                    raise DataError(f"column {name!r} of {scan.files[0]} {problem}", hint=hint)
                continue
            names = [column for column in scan.fields if column]
            close = get_close_matches(name, names, 1) or [
                c for c in names if c.casefold() == name.casefold()
            ]
            listed = ", ".join(repr(column) for column in names[:20]) + (
                ", ..." if len(names) > 20 else ""
            )
            raise DataError(
                f"{scan.files[0]} has no column {name!r}",
                hint=f"did you mean {close[0]!r}?" if close else f"its columns are {listed}",
            )


@dataclass(frozen=True, slots=True)
class Profile:
    """What a column looks like."""

    name: str
    rows: int
    filled: int
    distinct: int
    mean_length: float
    longest: int
    numeric: bool
    frequent: tuple[str, ...]
    """its most frequent values"""

    @property
    def unique(self) -> bool:
        """Whether every row has a value of its own."""
        return self.filled == self.rows == self.distinct > 1


@dataclass(frozen=True, slots=True)
class Rows:
    """The loaded columns, each under a name of its own."""

    table: Table
    connection: duckdb.DuckDBPyConnection
    text: dict[str, str]
    numbers: dict[str, str]
    order: str

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query and give its rows."""
        return self.connection.execute(sql).fetchall()

    def where(self, place: int) -> str:
        """Say where a row is, by its place from 0 over all files; the first row after a header is row 1."""
        files = [(scan, file) for scan in self.table.scans for file in scan.files]
        for scan, file in files[:-1]:
            size = self.ask(f"SELECT count(*) FROM {scan.over([file])}")[0][0]
            if place < size:
                return f"{file}, row {place + 1:,}"
            place -= size
        return f"{files[-1][1]}, row {place + 1:,}"

    def refuse_missing(
        self, name: str, *, hint: str = "fill it in, or leave those rows out of the file"
    ) -> None:
        """Raise if a column has an empty value."""
        missing, first = self.ask(
            f"SELECT count(*), min(place) FROM rows WHERE {self.text[name]} IS NULL"
        )[0]
        if missing:
            more = f" ({missing:,} rows have none)" if missing > 1 else ""
            raise DataError(f"{self.where(first)}: no value in column {name!r}{more}", hint=hint)

    def refuse_reserved(self, name: str) -> None:
        """Raise if a column uses a name that masa keeps for outcomes."""
        column, reserved = self.text[name], ", ".join(literal(word) for word in RESERVED)
        found = self.ask(
            f"SELECT place, {column} FROM rows WHERE {column} IN ({reserved}) ORDER BY place LIMIT 1"
        )
        if found:
            place, value = found[0]
            message = f"{self.where(place)}: column {name!r} has the value {value!r}, a name masa keeps for itself"
            raise DataError(message, hint="rename that label")

    def ids(self, name: str) -> npt.NDArray[np.object_]:
        """Give the values of a column in which none may stand twice."""
        column = self.text[name]
        twice = f"SELECT {column}, min(place), max(place) FROM rows GROUP BY 1 HAVING count(*) > 1 ORDER BY 2 LIMIT 1"
        for value, first, last in self.ask(twice):
            raise DataError(
                f"{self.where(last)}: column {name!r} has {_short(value)} again, first in {self.where(first)}",
                hint="each item needs an id of its own",
            )
        return self._fetch(column).astype(object)

    def labels(self, name: str, *, most: int, missing: str = INVALID) -> Column:
        """Give a column of labels or predictions; no value counts as `missing`, an answer that could not be read."""
        text = f"coalesce(nullif({self.text[name]}, {literal(UNLABELLED)}), {literal(missing)})"
        values = [row[0] for row in self.ask(f"SELECT DISTINCT {text} FROM rows LIMIT {most + 1}")]
        if len(values) > most:
            raise DataError(
                f"column {name!r} of {self.table.source} has more than {most:,} different values",
                hint="is it the right column? masa compares labels; free text must be turned into labels first",
            )
        long = next((value for value in values if len(value) > LONGEST_LABEL), None)
        if long is not None:
            raise DataError(
                f"column {name!r} of {self.table.source} has a value of {len(long):,} characters, {_short(long, 30)}",
                hint=f"is it the right column? a label has at most {LONGEST_LABEL} characters",
            )
        known = in_order(tuple(values))
        kind = f"kind_of_{self.text[name]}"
        self.connection.execute(
            f"CREATE OR REPLACE TYPE {kind} AS ENUM ({', '.join(map(literal, known))})"
        )
        return Column(
            name, known, self._fetch(f"enum_code({text}::{kind})::INTEGER").astype(np.int32)
        )

    def number(self, name: str, *, low: float | None = None) -> Floats:
        """Give a column of numbers, none of them missing or NaN; finite and not below low, if that is given."""
        column = self.numbers[name]
        number = f"try_cast({column} AS DOUBLE)"
        bad = f"{number} IS NULL OR isnan({number})" + (
            "" if low is None else f" OR {number} < {low} OR isinf({number})"
        )
        for place, value in self.ask(
            f"SELECT place, {column} FROM rows WHERE {bad} ORDER BY place LIMIT 1"
        ):
            wanted = "a number" if low is None else f"a number of {low:g} or more"
            wrong = "no value" if value is None else f"{_short(value)}, which is not {wanted}"
            comma = value is not None and re.fullmatch(r"-?[0-9]*,[0-9]+", value)
            hint = (
                "write decimals with a point"
                if comma
                else "correct it, or leave the row out of the file"
            )
            raise DataError(f"{self.where(place)}: column {name!r} has {wrong}", hint=hint)
        return self._fetch(number).astype(np.float64)

    def keys(self, *, id: str | None, inputs: Sequence[str], label: str) -> Ints:
        """Give each item a number that is its own wherever it stands: a hash of its id and its inputs.

        Without an id items with the same inputs are told apart by counting them, without inputs by their row and label.
        """
        texts = [f"coalesce({self.numbers[name]}, '')" for name in inputs]
        same = ", ".join(texts)
        if id is not None:
            parts = ["'id'", self.text[id], *texts]
        elif inputs:
            parts = ["'input'", *texts, f"row_number() OVER (PARTITION BY {same} ORDER BY place)"]
        else:
            parts = ["'row'", "place", f"coalesce({self.text[label]}, '')"]
        # With their lengths, so that no two lists of texts look alike.
        whole = ", ".join(f"length(({part})::VARCHAR), ({part})::VARCHAR" for part in parts)
        return (
            self._fetch(f"md5_number_lower(concat_ws(chr(31), {whole}))")
            .astype(np.uint64)
            .view(np.int64)
        )

    def inputs(self, names: Sequence[str]) -> "Inputs":
        """Give the texts of the input columns, kept on disk: a million of them would not fit in memory."""
        wanted = ", ".join(f"coalesce({self.numbers[name]}, '')" for name in names)
        ends = [0]
        end = 0
        found = self.connection.execute(f"SELECT {wanted} FROM rows ORDER BY {self.order}")
        with tempfile.TemporaryFile(prefix="masa-") as file:
            while rows := found.fetchmany(10_000):
                texts = [text.encode() for row in rows for text in row]
                for text in texts:
                    end += len(text)
                    ends.append(end)
                file.write(b"".join(texts))
            file.flush()
            # The map keeps the file alive.
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if end else b""
        return Inputs(tuple(names), content, np.array(ends, np.int64))

    def _fetch(self, expression: str) -> npt.NDArray[Any]:
        sql = f"SELECT {expression} AS value FROM rows ORDER BY {self.order}"
        return np.asarray(self.connection.execute(sql).fetchnumpy()["value"])


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What the API is shown of each item: the texts of some columns, one after another."""

    columns: tuple[str, ...]
    content: "mmap.mmap | bytes"
    ends: Ints
    """(N * columns + 1,) where each text ends and the next begins"""

    def __reduce__(self) -> tuple[type["Inputs"], tuple[tuple[str, ...], bytes, Ints]]:
        """Go to another process as plain bytes."""
        return Inputs, (self.columns, bytes(self.content), self.ends)

    def of(self, place: int) -> dict[str, str]:
        """Give the texts of one item by column."""
        first = place * len(self.columns)
        return {
            name: self.content[int(self.ends[first + j]) : int(self.ends[first + j + 1])].decode()
            for j, name in enumerate(self.columns)
        }


def _csv_scan(_: duckdb.DuckDBPyConnection, file: str) -> Scan:
    try:
        with _opened(file) as raw:
            if raw.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise DataError(f"{file} is in UTF-16", hint="save it as CSV in UTF-8")
        with _opened(file) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as lines:
            blank = 0
            while (line := lines.readline()) and not line.strip():
                blank += 1
            delimiter = max(",\t;|", key=re.sub(r'"[^"]*"', "", line).count)
            while line.count('"') % 2 and (more := lines.readline()):
                line += more
            names = [
                name.strip()
                for name in next(csv.reader([line], delimiter=delimiter, strict=True), [])
            ]
    except (OSError, UnicodeError, EOFError, csv.Error) as exc:
        raise DataError(f"{file} cannot be read: {exc}", hint="save it as CSV in UTF-8") from exc
    if not names:
        raise DataError(f"{file} is empty", hint="give a file with a header and labelled items")
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
    options = (
        f", auto_detect=false, header=true, skip={blank}, delim={literal(delimiter)}, quote='\"', escape='\"'"
        f", max_line_size={MAX_LINE}, columns={{{columns}}}" + _compression(file)
    )
    fields = {name: Field(_whole(f"c{place}"), f"c{place}") for place, name in enumerate(names)}
    for name in names:
        if names.count(name) > 1:
            fields[name] = Field("", "", "stands there more than once")
    return Scan((file,), "read_csv", options, fields)


def _json_scan(connection: duckdb.DuckDBPyConnection, file: str) -> Scan:
    try:
        # All rows tell the columns, however many; without the last option DuckDB takes many columns for one map.
        look = f"hive_partitioning=false, sample_size=-1, map_inference_threshold=-1{_compression(file)}"
        types = _types(connection, f"read_json({_paths([file])}, {look})", file)
    except DataError:
        _refuse_bad_lines(file)
        raise
    if list(types) == ["json"]:
        _refuse_bad_lines(file)
        raise DataError(f"{file} holds no JSON objects", hint=JSON_HINT)
    fields = {name: _field(name, kind) for name, kind in types.items()}
    fields |= {
        name: Field(_whole(field.label), field.plain)
        for name, field in fields.items()
        if types[name] == "JSON"
    }
    bases = [(name, re.sub(r"_[0-9]+$", "", name).casefold()) for name in types]
    if any(other != name and other.casefold() == base for name, base in bases for other in types):
        # DuckDB calls a key that differs from another only in case by another name, under which it then finds nothing.
        objects = f"read_json_objects({_paths([file])}{_compression(file)})"
        keys = [
            row[0]
            for row in connection.execute(
                f"SELECT DISTINCT unnest(json_keys(json)) FROM {objects}"
            ).fetchall()
        ]
        for key in keys:
            twins = sorted(other for other in keys if other.casefold() == key.casefold())
            if len(twins) > 1:
                fields[key] = Field(
                    "", "", f"has a twin that differs only in case: {', '.join(map(repr, twins))}"
                )
        fields = {name: field for name, field in fields.items() if name in keys}
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in types)
    return Scan((file,), "read_json", f", columns={{{columns}}}{_compression(file)}", fields)


def _parquet_scan(connection: duckdb.DuckDBPyConnection, file: str) -> Scan:
    types = _types(connection, f"read_parquet({_paths([file])}, hive_partitioning=false)", file)
    return Scan(
        (file,), "read_parquet", "", {name: _field(name, kind) for name, kind in types.items()}
    )


def _types(connection: duckdb.DuckDBPyConnection, scan: str, file: str) -> dict[str, str]:
    with _translated(file):
        return {
            str(row[0]): str(row[1])
            for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
        }


def _field(name: str, kind: str) -> Field:
    plain = f"{quoted(name)}::VARCHAR"
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "BLOB", "VARIANT")):
        return Field("", "", "holds lists, objects or bytes")
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        number = f"try_cast({quoted(name)} AS DOUBLE)"
        whole = f"{number} = trunc({number}) AND abs({number}) < 1e15"
        return Field(
            f"CASE WHEN isnan({number}) THEN NULL WHEN {whole} THEN {number}::BIGINT::VARCHAR ELSE {plain} END",
            plain,
        )
    return Field(f"nullif({plain}, '')", plain)


def _whole(text: str) -> str:
    """Write whole floats as whole numbers, in SQL: a CSV has no types, and one empty cell turns 3 into 3.0 in many tools."""
    return f"CASE WHEN regexp_full_match({text}, '-?[0-9]{{1,15}}[.]0+') THEN {text}::DOUBLE::BIGINT::VARCHAR ELSE {text} END"


def _json_lines(file: str) -> Iterator[tuple[int, bytes]]:
    """Give the lines of a file of JSON lines, numbered from 1; none for one array over many lines."""
    with suppress(OSError, EOFError), _opened(file) as lines:
        for number, raw in enumerate(lines, start=1):
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            if number == 1 and line.lstrip().startswith(b"["):
                return
            if line.strip():
                yield number, line


def _refuse_bad_lines(file: str) -> None:
    """Raise with the first line that is not a JSON object; DuckDB counts lines differently."""
    for number, line in _json_lines(file):
        where = f"{file}, line {number:,}"
        try:
            content = json.loads(line)
        except UnicodeDecodeError as exc:
            raise DataError(f"{where}: not UTF-8", hint="save the file as UTF-8") from exc
        except (ValueError, RecursionError) as exc:
            raise DataError(f"{where}: not JSON: {exc}", hint=JSON_HINT) from exc
        if not isinstance(content, dict):
            raise DataError(f"{where}: not a JSON object", hint=JSON_HINT)


def _opened(file: str) -> IO[bytes]:
    """Open a file for reading, unpacked."""
    return cast(IO[bytes], gzip.open(file) if _packed(file) else open(file, "rb"))


def _packed(file: str) -> bool:
    with open(file, "rb") as raw:
        return raw.read(2) == b"\x1f\x8b"


def _compression(file: str) -> str:
    return ", compression='gzip'" if _packed(file) else ""


@contextmanager
def _translated(source: str) -> Iterator[None]:
    """Turn DuckDB's complaints into ours: the file, the line, what is wrong; never the text that stands there."""
    try:
        yield
    except duckdb.InterruptException as exc:
        raise KeyboardInterrupt from exc
    except duckdb.Error as exc:
        said = str(exc)
        file = re.search(r'in file "(.+?)"|file = (.+)', said)
        where = (file[1] or file[2]).strip() if file else source
        line = re.search(r"Line: (\d+)", said)
        if line:
            where += f", near line {int(line[1]):,}"
        columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said)
        if columns:
            few = int(columns[2]) < int(columns[1])
            what = f"{columns[2]} columns where the header has {columns[1]}"
            hint = "fill in what is missing" if few else "quote texts that hold the separator"
        elif re.search(r"unicode|UTF-?8", said):
            what, hint = "not UTF-8", "save the file as UTF-8"
        elif "duplicate key" in said:
            what, hint = "an object has a key twice", "give each key once"
        elif "unterminated quote" in said:
            what, hint = (
                "a quote is opened and not closed",
                'double the quotes inside quoted texts: ""',
            )
        elif "state machine" in said:
            what, hint = (
                "not well-formed CSV",
                "look for mixed line endings or stray quotes; save the file again as CSV",
            )
        else:
            # What follows a brace is likely to be the user's.
            what = said.splitlines()[0].split("Error: ", 1)[-1].split("{")[0]
            hint = "check that the file is whole and of the kind its name says"
        raise DataError(f"{where}: {what}", hint=hint) from exc


def _files(source: str) -> list[str]:
    path = Path(source)
    if path.is_dir():
        files = sorted(
            str(file)
            for file in path.rglob("*")
            if file.is_file() and _format(str(file)) and not _hidden(file, path)
        )
        if not files:
            raise DataError(
                f"{source} holds no data files", hint=f"masa reads {', '.join(FORMATS)}"
            )
    elif path.is_file():
        files = [source]
    else:
        files = sorted(file for file in glob.glob(source, recursive=True) if Path(file).is_file())
        if not files:
            raise _missing(path, source)
    for file in files:
        if not _format(file):
            kinds = ", ".join(FORMATS)
            raise DataError(
                f"{file}: masa does not know this kind of file",
                hint=f"save it as CSV or Parquet; masa reads {kinds}",
            )
        if file != file.encode(errors="replace").decode():
            raise DataError(f"the name of {file!r} is not UTF-8", hint="rename the file")
    return files


def _missing(path: Path, source: str) -> DataError:
    if path.exists():
        return DataError(f"{source} is not a file", hint="give a file, a glob or a folder")
    if glob.has_magic(source):
        return DataError(
            f"no file matches {source}", hint="give a file, a glob in quotes or a folder"
        )
    beside = [str(file) for file in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(source, beside, 1)
    return DataError(
        f"{source} does not exist",
        hint=f"did you mean {close[0]}?" if close else "give a file, a glob or a folder",
    )


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _format(file: str) -> str:
    name = file.lower().removesuffix(".gz")
    return next((kind for ending, kind in FORMATS.items() if name.endswith(ending)), "")


def _paths(files: Sequence[str]) -> str:
    return "[" + ", ".join(literal(glob.escape(file)) for file in files) + "]"


def quoted(name: str) -> str:
    """Write the name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Write a text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _short(value: str, most: int = 60) -> str:
    return repr(value if len(value) <= most else value[:most] + "...")
