"""Data files, read through DuckDB: find them and their columns, load the columns that are named.

Only the named columns are read, and DuckDB turns texts into codes: what reaches Python is one
small integer per item and column.
"""

import glob
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import duckdb

from masa.data.formats import (
    FORMATS,
    JSON_HINT,
    Scan,
    format_of,
    literal,
    quoted,
    scan_of,
    translated,
)
from masa.data.inputs import Inputs
from masa.data.rows import Rows
from masa.errors import DataError

__all__ = ["Inputs", "Profile", "Rows", "Table", "literal", "quoted"]

BYTES_PER_ROW = 150
"""The memory that a row takes while it is read and used, where it has a label and two answers."""

MOST_PROFILED = 500
"""The most columns that are looked at to find out what they hold."""

MOST_NAMED = 20
"""The most columns that a message lists."""


@dataclass(frozen=True, slots=True)
class Table:
    """Data files and their columns. No row is read yet, except of JSON, to find its columns."""

    source: str
    scans: tuple[Scan, ...]

    @classmethod
    def open(cls, source: str | Path) -> "Table":
        """Find the files of a path, a glob or a folder, and their columns."""
        files = _files(str(source))
        formats = {format_of(file) for file in files}
        if len(formats) > 1:
            raise DataError(
                f"{source} holds files of several kinds: {', '.join(sorted(formats))}",
                hint="name one kind: 'folder/*.csv'",
            )
        scans: list[Scan] = []
        with duckdb.connect() as connection:
            for file in files:
                found = scan_of(connection, file)
                if scans and _same_layout(scans[-1], found):
                    scans[-1] = replace(found, files=scans[-1].files + found.files)
                else:
                    scans.append(found)
        return cls(str(source), tuple(scans))

    @property
    def columns(self) -> list[str]:
        """The columns that every file has."""
        first, *others = (scan.fields for scan in self.scans)
        return [name for name in first if all(name in other for other in others)]

    @contextmanager
    def load(
        self, *, texts: Sequence[str], numbers: Sequence[str], id: str | None = None
    ) -> Iterator[Rows]:
        """Read these columns into a table of DuckDB's, which goes to disk when memory is short.

        With ids the rows are sorted by id, so that their order in the files does not matter;
        without ids they keep that order.
        """
        for name in (*texts, *numbers):
            self._require(name)
        # DuckDB does not distinguish Label from label, and some names (rowid) mean something to
        # it: no name of the user's reaches the database.
        text = {name: f"t{place}" for place, name in enumerate(texts)}
        number = {name: f"n{place}" for place, name in enumerate(numbers)}
        selects = " UNION ALL ".join(_select(scan, text, number) for scan in self.scans)
        self._refuse_too_many(self._counted())
        with tempfile.TemporaryDirectory(prefix="masa-") as spill, translated(self.source):
            connection = duckdb.connect(config={"temp_directory": spill})
            try:
                connection.execute(f"CREATE TEMP TABLE loaded AS {selects}")
                with_places = "SELECT rowid AS place, * FROM loaded"
                order = "place"
                if id is None:
                    connection.execute(f"CREATE TEMP VIEW rows AS {with_places}")
                else:
                    connection.execute(
                        f"CREATE TEMP TABLE rows AS {with_places} ORDER BY {text[id]}"
                    )
                    connection.execute("DROP TABLE loaded")
                    order = "rowid"
                rows = Rows(self.source, self.scans, connection, text, number, order)
                count = rows.ask("SELECT count(*) FROM rows")[0][0]
                if not count:
                    raise DataError(
                        f"{self.source} has columns but no rows",
                        hint="give a file with labelled items",
                    )
                self._refuse_too_many(count)
                yield rows
            finally:
                connection.close()

    def _counted(self) -> int:
        """Count the rows of Parquet files, which say how many they have; others count as none."""
        count = 0
        with duckdb.connect() as connection, translated(self.source):
            for scan in self.scans:
                if scan.function == "read_parquet":
                    rows = f"SELECT count(*) FROM {scan.over(scan.files)}"
                    count += connection.execute(rows).fetchall()[0][0]
        return count

    def _refuse_too_many(self, rows: int) -> None:
        """Raise for more rows than this machine has memory for: a tiny file can hold billions."""
        memory = _memory()
        if rows * BYTES_PER_ROW > memory:
            raise DataError(
                f"{self.source} has {rows:,} rows, for which masa needs about "
                f"{rows * BYTES_PER_ROW / 2**30:,.0f} GB of memory, and this machine has "
                f"{memory / 2**30:.3g}",
                hint="give a random sample of them: a million rows say as much",
            )

    def profile(self, *, most: int = 100_000) -> list["Profile"]:
        """Describe the columns that can be used by their first `most` rows.

        Of very many columns the first and the last are described, where labels usually are.
        """
        scan = self.scans[0]
        named = [name for name in self.columns if name and not scan.fields[name].problem]
        if len(named) > MOST_PROFILED:
            named = named[: MOST_PROFILED // 2] + named[-MOST_PROFILED // 2 :]
        if not named:
            return []
        place = {name: f"c{number}" for number, name in enumerate(named)}
        wanted = ", ".join(f"{scan.fields[name].label} AS {place[name]}" for name in named)
        with duckdb.connect() as connection, translated(self.source):
            # Read once, not once for each column.
            connection.execute(
                f"CREATE TEMP TABLE first_rows AS "
                f"SELECT {wanted} FROM {scan.over(scan.files)} LIMIT {most}"
            )
            return [
                _profile(connection, name, f"SELECT {place[name]} AS value FROM first_rows")
                for name in named
            ]

    def _require(self, name: str) -> None:
        """Raise if a column is missing from a file or cannot be used."""
        for scan in self.scans:
            if name not in scan.fields:
                raise DataError(
                    f"{scan.files[0]} has no column {name!r}",
                    hint=_suggestion(name, [column for column in scan.fields if column]),
                )
            if problem := scan.fields[name].problem:
                hint = "masa needs one label, text or number per row"
                if scan.function == "read_json":
                    hint = JSON_HINT
                raise DataError(f"column {name!r} of {scan.files[0]} {problem}", hint=hint)


@dataclass(frozen=True, slots=True)
class Profile:
    """A summary of one column."""

    name: str
    rows: int
    filled: int
    """rows with a value"""
    distinct: int
    """different values"""
    mean_length: float
    """characters per value"""
    longest: int
    """characters of the longest value"""
    numeric: bool
    """whether all of its values are numbers"""
    frequent: tuple[str, ...]
    """its most frequent values"""

    @property
    def unique(self) -> bool:
        """Whether every row has a value of its own."""
        return self.filled == self.rows == self.distinct > 1


def _profile(connection: duckdb.DuckDBPyConnection, name: str, values: str) -> Profile:
    """Describe the values that an SQL query gives."""
    frequent = (
        "SELECT value, count(*) AS times FROM looked WHERE value NOT NULL "
        "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 8"
    )
    rows, filled, distinct, mean_length, longest, numbers, most_frequent = connection.execute(
        f"WITH looked AS MATERIALIZED ({values}) "
        "SELECT count(*), count(value), count(DISTINCT value), "
        "avg(length(value)), max(length(value)), count(try_cast(value AS DOUBLE)), "
        f"(SELECT list(value ORDER BY times DESC, value) FROM ({frequent})) FROM looked"
    ).fetchall()[0]
    return Profile(
        name,
        rows,
        filled,
        distinct,
        mean_length=float(mean_length or 0.0),
        longest=int(longest or 0),
        numeric=numbers == filled > 0,
        frequent=tuple(most_frequent or ()),
    )


def _memory() -> float:
    """Give the bytes of memory of this machine, or infinity where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return math.inf


def _same_layout(one: Scan, other: Scan) -> bool:
    return (one.options, one.fields) == (other.options, other.fields)


def _select(scan: Scan, text: Mapping[str, str], number: Mapping[str, str]) -> str:
    """Write the query that reads columns under other names: text as labels, numbers as written."""
    wanted = [f"{scan.fields[name].label} AS {alias}" for name, alias in text.items()]
    wanted += [f"{scan.fields[name].plain} AS {alias}" for name, alias in number.items()]
    return f"SELECT {', '.join(wanted)} FROM {scan.over(scan.files)}"


def _suggestion(name: str, columns: Sequence[str]) -> str:
    """Suggest the column that was probably meant, or list them."""
    close = get_close_matches(name, columns, 1)
    close += [column for column in columns if column.casefold() == name.casefold()]
    if close:
        return f"did you mean {close[0]!r}?"
    listed = ", ".join(repr(column) for column in columns[:MOST_NAMED])
    if len(columns) > MOST_NAMED:
        listed += ", ..."
    return f"its columns are {listed}"


def _files(source: str) -> list[str]:
    """Find the files of a path, a glob or a folder, sorted."""
    path = Path(source)
    if path.is_dir():
        files = _files_in(path)
        if not files:
            raise DataError(
                f"{source} holds no data files", hint=f"masa reads {', '.join(FORMATS)}"
            )
    elif path.is_file():
        files = [source]
    else:
        files = sorted(file for file in glob.glob(source, recursive=True) if Path(file).is_file())
        if not files:
            raise _not_found(path, source)
    for file in files:
        if not format_of(file):
            raise DataError(
                f"{file}: masa does not know this kind of file",
                hint=f"save it as CSV or Parquet; masa reads {', '.join(FORMATS)}",
            )
        if file != file.encode(errors="replace").decode():
            raise DataError(f"the name of {file!r} is not UTF-8", hint="rename the file")
    return files


def _files_in(folder: Path) -> list[str]:
    """Find the data files of a folder and its subfolders, without the hidden ones."""
    files = []
    for file in folder.rglob("*"):
        inside = file.relative_to(folder)
        hidden = any(part.startswith((".", "_")) for part in inside.parts)
        if not hidden and format_of(str(file)) and file.is_file():
            files.append(str(file))
    return sorted(files)


def _not_found(path: Path, source: str) -> DataError:
    """Explain why a source has no files."""
    if path.exists():
        return DataError(f"{source} is not a file", hint="give a file, a glob or a folder")
    if glob.has_magic(source):
        return DataError(
            f"no file matches {source}", hint="give a file, a glob in quotes or a folder"
        )
    neighbours = []
    if path.parent.is_dir():
        neighbours = [str(file) for file in path.parent.iterdir()]
    hint = "give a file, a glob or a folder"
    if close := get_close_matches(source, neighbours, 1):
        hint = f"did you mean {close[0]}?"
    return DataError(f"{source} does not exist", hint=hint)


def folder_of(source: str) -> Path:
    """Give the folder that names of images and sounds in the data are relative to."""
    path = Path(source).resolve()
    return path if path.is_dir() else path.parent
