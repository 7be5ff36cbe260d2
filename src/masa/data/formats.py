"""File formats: which columns a CSV, JSON-lines or Parquet file has, and how DuckDB reads them."""

import codecs
import csv
import glob
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, cast

import duckdb

from masa.errors import DataError

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""The format of a file, by the ending of its name; each may also end in .gz."""

MAX_LINE = 256 << 20
"""The most bytes of one line of a CSV file: 256 MB."""

JSON_HINT = 'write one object per line, such as {"label": "yes", "new": "no"}'


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a file: how SQL reads it, or why it cannot be used."""

    label: str
    """SQL expression for its value as a label: whole floats as integers, an empty text as NULL"""
    plain: str
    """SQL expression for its value as it is written in the file"""
    problem: str = ""
    """why it cannot be used, as the end of the sentence "column NAME of FILE ..." """


@dataclass(frozen=True, slots=True)
class Scan:
    """Files that have the same columns and are read with the same options."""

    files: tuple[str, ...]
    function: str
    """the function of DuckDB that reads them"""
    options: str
    fields: dict[str, Field]

    def over(self, files: Sequence[str]) -> str:
        """Return an SQL expression for the rows of these files."""
        # Without this option a folder named label=x would add a column.
        return f"{self.function}({_paths(files)}, hive_partitioning=false{self.options})"


def format_of(file: str) -> str:
    """Return csv, json or parquet, by the ending of a file's name, or an empty text."""
    name = file.lower().removesuffix(".gz")
    return next((kind for ending, kind in FORMATS.items() if name.endswith(ending)), "")


def scan_of(connection: duckdb.DuckDBPyConnection, file: str) -> Scan:
    """Find the columns of a file. Only JSON needs its rows read for that."""
    kind = format_of(file)
    if kind == "csv":
        return _csv_scan(file)
    if kind == "json":
        return _json_scan(connection, file)
    return _parquet_scan(connection, file)


def quoted(name: str) -> str:
    """Quote the name of a column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def translated(source: str) -> Iterator[None]:
    """Turn DuckDB's errors into a DataError that names the file, the line and what is wrong.

    The message never quotes a value of the file.
    """
    try:
        yield
    except duckdb.InterruptException as exc:
        raise KeyboardInterrupt from exc
    except duckdb.Error as exc:
        raise _explained(str(exc), source) from exc


def _explained(said: str, source: str) -> DataError:
    """Put what DuckDB said into our words."""
    where = source
    if file := re.search(r'in file "(.+?)"|file = (.+)', said):
        where = (file[1] or file[2]).strip()
    if line := re.search(r"Line: (\d+)", said):
        where += f", near line {int(line[1]):,}"
    if columns := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said):
        what = f"{columns[2]} columns where the header has {columns[1]}"
        hint = "quote texts that contain the separator"
        if int(columns[2]) < int(columns[1]):
            hint = "fill in the missing columns"
    elif re.search(r"unicode|UTF-?8", said):
        what, hint = "not UTF-8", "save the file as UTF-8"
    elif "duplicate key" in said:
        what, hint = "an object has the same key twice", "give each key once"
    elif "unterminated quote" in said:
        what = "a quote is opened and not closed"
        hint = 'double the quotes inside quoted texts: ""'
    elif "state machine" in said:
        what = "not well-formed CSV"
        hint = "look for mixed line endings or stray quotes; save the file again as CSV"
    else:
        # What follows a brace may be a value of the user's file, so it is cut off.
        what = said.splitlines()[0].split("Error: ", 1)[-1].split("{")[0]
        hint = "check that the file is complete and has the format that its name says"
    return DataError(f"{where}: {what}", hint=hint)


@dataclass(frozen=True, slots=True)
class _Header:
    """The first line of a CSV file that is not blank."""

    blank_lines: int
    delimiter: str
    names: list[str]


def _csv_header(file: str) -> _Header:
    with _opened(file) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as lines:
        blank = 0
        while (line := lines.readline()) and not line.strip():
            blank += 1
        without_quoted_texts = re.sub(r'"[^"]*"', "", line)
        delimiter = max(",\t;|", key=without_quoted_texts.count)
        # A name in quotes may contain line breaks: read on until the last quote is closed.
        while line.count('"') % 2 and (more := lines.readline()):
            line += more
        cells = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    return _Header(blank, delimiter, [name.strip() for name in cells])


def _csv_scan(file: str) -> Scan:
    try:
        with _opened(file) as raw:
            if raw.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise DataError(f"{file} is in UTF-16", hint="save it as CSV in UTF-8")
        header = _csv_header(file)
    except (OSError, UnicodeError, EOFError, csv.Error) as exc:
        raise DataError(f"{file} cannot be read: {exc}", hint="save it as CSV in UTF-8") from exc
    names = header.names
    if not names:
        raise DataError(f"{file} is empty", hint="give a file with a header and labelled items")
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
    options = (
        f", auto_detect=false, header=true, skip={header.blank_lines}"
        f", delim={literal(header.delimiter)}, quote='\"', escape='\"'"
        f", max_line_size={MAX_LINE}, columns={{{columns}}}{_compression(file)}"
    )
    fields = {
        name: Field(_as_whole_number(f"c{place}"), f"c{place}") for place, name in enumerate(names)
    }
    for name, times in Counter(names).items():
        if times > 1:
            fields[name] = Field("", "", "is in the header more than once")
    return Scan((file,), "read_csv", options, fields)


def _json_scan(connection: duckdb.DuckDBPyConnection, file: str) -> Scan:
    # All rows are read for their keys, however many there are. Without the last option DuckDB
    # takes an object with many keys for a single column of type MAP.
    options = "hive_partitioning=false, sample_size=-1, map_inference_threshold=-1"
    try:
        source = f"read_json({_paths([file])}, {options}{_compression(file)})"
        types = _types(connection, source, file)
    except DataError:
        _refuse_bad_lines(file)
        raise
    if list(types) == ["json"]:
        _refuse_bad_lines(file)
        raise DataError(f"{file} holds no JSON objects", hint=JSON_HINT)
    fields = {}
    for name, kind in types.items():
        fields[name] = _field(name, kind)
        if kind == "JSON":  # A column of numbers and texts mixed.
            fields[name] = Field(_as_whole_number(fields[name].label), fields[name].plain)
    if _may_be_renamed(types):
        fields = _without_renamed(connection, file, fields)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in types)
    return Scan((file,), "read_json", f", columns={{{columns}}}{_compression(file)}", fields)


def _may_be_renamed(names: Collection[str]) -> bool:
    """Say whether a column has the name that DuckDB gives to a key like another one: NAME_1."""
    for name in names:
        base = re.sub(r"_[0-9]+$", "", name).casefold()
        if any(other != name and other.casefold() == base for other in names):
            return True
    return False


def _without_renamed(
    connection: duckdb.DuckDBPyConnection, file: str, fields: dict[str, Field]
) -> dict[str, Field]:
    """Refuse keys that differ only in case, and drop the names that are not in the file.

    DuckDB renames such a key and then finds nothing under the new name.
    """
    objects = f"read_json_objects({_paths([file])}{_compression(file)})"
    rows = connection.execute(f"SELECT DISTINCT unnest(json_keys(json)) FROM {objects}").fetchall()
    keys = [row[0] for row in rows]
    result = dict(fields)
    for key in keys:
        twins = sorted(other for other in keys if other.casefold() == key.casefold())
        if len(twins) > 1:
            listed = ", ".join(map(repr, twins))
            result[key] = Field("", "", f"differs only in case from another: {listed}")
    return {name: field for name, field in result.items() if name in keys}


def _parquet_scan(connection: duckdb.DuckDBPyConnection, file: str) -> Scan:
    source = f"read_parquet({_paths([file])}, hive_partitioning=false)"
    types = _types(connection, source, file)
    fields = {name: _field(name, kind) for name, kind in types.items()}
    return Scan((file,), "read_parquet", "", fields)


def _types(connection: duckdb.DuckDBPyConnection, source: str, file: str) -> dict[str, str]:
    """Return DuckDB's type of each column."""
    with translated(file):
        rows = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    return {str(row[0]): str(row[1]) for row in rows}


def _field(name: str, kind: str) -> Field:
    plain = f"{quoted(name)}::VARCHAR"
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "BLOB", "VARIANT")):
        return Field("", "", "holds lists, objects or bytes")
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        number = f"try_cast({quoted(name)} AS DOUBLE)"
        whole = f"{number} = trunc({number}) AND abs({number}) < 1e15"
        label = (
            f"CASE WHEN isnan({number}) THEN NULL "
            f"WHEN {whole} THEN {number}::BIGINT::VARCHAR ELSE {plain} END"
        )
        return Field(label, plain)
    return Field(f"nullif({plain}, '')", plain)


def _as_whole_number(text: str) -> str:
    """Write an SQL expression that turns texts such as 3.0 into 3.

    A CSV has no types, and one empty cell makes many tools write 3.0 for 3.
    """
    whole = f"regexp_full_match({text}, '-?[0-9]{{1,15}}[.]0+')"
    return f"CASE WHEN {whole} THEN {text}::DOUBLE::BIGINT::VARCHAR ELSE {text} END"


def _json_lines(file: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a JSON-lines file with their numbers from 1; none for a JSON array."""
    with suppress(OSError, EOFError), _opened(file) as lines:
        for number, raw in enumerate(lines, start=1):
            line = raw
            if number == 1:
                line = raw.removeprefix(codecs.BOM_UTF8)
                if line.lstrip().startswith(b"["):
                    return
            if line.strip():
                yield number, line


def _refuse_bad_lines(file: str) -> None:
    """Raise for the first line that is not a JSON object; DuckDB counts lines differently."""
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
    """Open a file for reading, decompressed if it is gzipped."""
    if _is_gzipped(file):
        return cast(IO[bytes], gzip.open(file))
    return open(file, "rb")


def _is_gzipped(file: str) -> bool:
    # The content decides: a gzipped file need not be named .gz.
    with open(file, "rb") as raw:
        return raw.read(2) == b"\x1f\x8b"


def _compression(file: str) -> str:
    if _is_gzipped(file):
        return ", compression='gzip'"
    return ""


def _paths(files: Sequence[str]) -> str:
    # Names are escaped, or DuckDB would read [ and * in them as patterns.
    return "[" + ", ".join(literal(glob.escape(file)) for file in files) + "]"
