"""The rows of a table, loaded into DuckDB: check the columns and return them as arrays."""

import mmap
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from masa.data.formats import Scan, literal
from masa.data.inputs import Inputs
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


@dataclass(frozen=True, slots=True)
class Rows:
    """The loaded columns, in a table `rows` of DuckDB's with a column `place`: the row, from 0."""

    source: str
    """what the user calls the data"""
    scans: tuple[Scan, ...]
    connection: duckdb.DuckDBPyConnection
    text: dict[str, str]
    """the name in the database of each column that is read as labels"""
    numbers: dict[str, str]
    """the name in the database of each column that is read as it is written"""
    order: str
    """the column that rows are sorted by"""

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        return self.connection.execute(sql).fetchall()

    def where(self, place: int) -> str:
        """Name the file and row of a place, counted from 0 over all files.

        The first row after a header is row 1.
        """
        files = [(scan, file) for scan in self.scans for file in scan.files]
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
        found = f"SELECT count(*), min(place) FROM rows WHERE {self.text[name]} IS NULL"
        missing, first = self.ask(found)[0]
        if not missing:
            return
        more = ""
        if missing > 1:
            more = f" ({missing:,} rows have none)"
        raise DataError(f"{self.where(first)}: no value in column {name!r}{more}", hint=hint)

    def refuse_reserved(self, name: str) -> None:
        """Raise if a column uses a name that masa reserves for outcomes."""
        column = self.text[name]
        reserved = ", ".join(literal(word) for word in RESERVED)
        found = self.ask(
            f"SELECT place, {column} FROM rows "
            f"WHERE {column} IN ({reserved}) ORDER BY place LIMIT 1"
        )
        for place, value in found:
            raise DataError(
                f"{self.where(place)}: column {name!r} has the value {value!r}, "
                "a name that masa reserves for itself",
                hint="rename that label",
            )

    def ids(self, name: str) -> npt.NDArray[np.object_]:
        """Return a column of ids; raise if one of them appears twice."""
        column = self.text[name]
        twice = self.ask(
            f"SELECT {column}, min(place), max(place) FROM rows "
            "GROUP BY 1 HAVING count(*) > 1 ORDER BY 2 LIMIT 1"
        )
        for value, first, last in twice:
            raise DataError(
                f"{self.where(last)}: column {name!r} has {_shortened(value)} again, "
                f"first in {self.where(first)}",
                hint="give each item an id of its own",
            )
        return self._fetch(column).astype(object)

    def labels(self, name: str, *, most: int, missing: str = INVALID) -> Column:
        """Return a column of labels or predictions of at most `most` different values.

        An empty value counts as `missing`, by default an answer that could not be read.
        """
        text = f"coalesce(nullif({self.text[name]}, {literal(UNLABELLED)}), {literal(missing)})"
        values = [row[0] for row in self.ask(f"SELECT DISTINCT {text} FROM rows LIMIT {most + 1}")]
        if len(values) > most:
            raise DataError(
                f"column {name!r} of {self.source} has more than {most:,} different values",
                hint="is it the right column? masa compares labels, not free text",
            )
        for value in values:
            if len(value) > LONGEST_LABEL:
                raise DataError(
                    f"column {name!r} of {self.source} has a value of {len(value):,} characters, "
                    f"{_shortened(value, 30)}",
                    hint=f"is it the right column? a label has at most {LONGEST_LABEL} characters",
                )
        known = in_order(tuple(values))
        # DuckDB turns the texts into codes, so that no text per row reaches Python.
        kind = f"kind_of_{self.text[name]}"
        listed = ", ".join(map(literal, known))
        self.connection.execute(f"CREATE OR REPLACE TYPE {kind} AS ENUM ({listed})")
        codes = self._fetch(f"enum_code({text}::{kind})::INTEGER")
        return Column(name, known, codes.astype(np.int32))

    def number(self, name: str, *, low: float | None = None) -> Floats:
        """Return a column of numbers; raise if one is missing or NaN.

        With `low` all of them must be finite and at least `low`.
        """
        column = self.numbers[name]
        number = f"try_cast({column} AS DOUBLE)"
        bad = f"{number} IS NULL OR isnan({number})"
        wanted = "a number"
        if low is not None:
            bad += f" OR {number} < {low} OR isinf({number})"
            wanted = f"a number of {low:g} or more"
        found = self.ask(f"SELECT place, {column} FROM rows WHERE {bad} ORDER BY place LIMIT 1")
        for place, value in found:
            wrong = "no value"
            hint = "correct it, or leave the row out of the file"
            if value is not None:
                wrong = f"{_shortened(value)}, which is not {wanted}"
                if re.fullmatch(r"-?[0-9]*,[0-9]+", value):
                    hint = "write decimals with a point"
            raise DataError(f"{self.where(place)}: column {name!r} has {wrong}", hint=hint)
        return self._fetch(number).astype(np.float64)

    def keys(self, *, id: str | None, inputs: Sequence[str], label: str) -> Ints:
        """Return a number for each item (N,) that stays the same wherever the item is.

        It is a hash of the id and the inputs. Without an id, items with the same inputs are
        numbered; without inputs, the row and the label are hashed.
        """
        texts = [f"coalesce({self.numbers[name]}, '')" for name in inputs]
        if id is not None:
            parts = ["'id'", self.text[id], *texts]
        elif inputs:
            same_inputs = ", ".join(texts)
            number = f"row_number() OVER (PARTITION BY {same_inputs} ORDER BY place)"
            parts = ["'input'", *texts, number]
        else:
            parts = ["'row'", "place", f"coalesce({self.text[label]}, '')"]
        # With the length of each part, so that no two lists of texts hash the same characters.
        whole = ", ".join(f"length(({part})::VARCHAR), ({part})::VARCHAR" for part in parts)
        hashes = self._fetch(f"md5_number_lower(concat_ws(chr(31), {whole}))")
        return hashes.astype(np.uint64).view(np.int64)

    def inputs(self, names: Sequence[str]) -> Inputs:
        """Return the texts of the input columns, kept on disk.

        A million of them would not fit in memory.
        """
        wanted = ", ".join(f"coalesce({self.numbers[name]}, '')" for name in names)
        found = self.connection.execute(f"SELECT {wanted} FROM rows ORDER BY {self.order}")
        ends = [0]
        content: mmap.mmap | bytes = b""
        with tempfile.TemporaryFile(prefix="masa-") as file:
            while rows := found.fetchmany(10_000):
                texts = [text.encode() for row in rows for text in row]
                for text in texts:
                    ends.append(ends[-1] + len(text))
                file.write(b"".join(texts))
            file.flush()
            if ends[-1]:  # An empty file cannot be mapped.
                # The map keeps the file alive after it is closed.
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return Inputs(tuple(names), content, np.array(ends, np.int64))

    def _fetch(self, expression: str) -> npt.NDArray[Any]:
        sql = f"SELECT {expression} AS value FROM rows ORDER BY {self.order}"
        return np.asarray(self.connection.execute(sql).fetchnumpy()["value"])


def _shortened(value: str, most: int = 60) -> str:
    """Quote a value, cut off after `most` characters."""
    if len(value) > most:
        value = value[:most] + "..."
    return repr(value)
