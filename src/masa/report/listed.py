"""Tables as files: the entries of a shift as CSV, answers as CSV, JSON lines or Parquet."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from masa.errors import UsageError
from masa.records import AnswerTable, Assessment

ENTRY_COLUMNS = ("label", "answer", "old", "new", "change", "low", "high")
ANSWER_ENDINGS = (".csv", ".jsonl", ".parquet")

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def entries(found: Assessment) -> str:
    """Write all entries of the shift with their intervals as CSV; shares of all items."""
    shift, readings = found.shift, found.readings
    if shift is None or readings is None:
        raise UsageError(
            f"run {found.run} has no matrix: nothing was answered", hint="report it as JSON"
        )
    rows = [
        (
            text(label),
            text(answer),
            *(
                float(values[i, j])
                for values in (
                    shift.old.values,
                    shift.new.values,
                    shift.values,
                    readings.low,
                    readings.high,
                )
            ),
        )
        for i, label in enumerate(shift.new.labels)
        for j, answer in enumerate(shift.new.predictions)
    ]
    return _csv(ENTRY_COLUMNS, rows)


def answers(table: AnswerTable, kind: str) -> str:
    """Write the answers of a run as csv or jsonl."""
    if kind == "jsonl":
        return "".join(
            json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in table.records()
        )
    rows = [[text(value) if isinstance(value, str) else value for value in r] for r in table.rows()]
    return _csv(table.names, rows)


def save_answers(table: AnswerTable, path: Path) -> None:
    """Write the answers of a run to a file; its ending says how."""
    ending = path.suffix.lower()
    if ending not in ANSWER_ENDINGS:
        raise UsageError(
            f"{path} is not a kind of table that masa can write",
            hint=f"end its name in {', '.join(ANSWER_ENDINGS)}",
        )
    try:
        if ending == ".parquet":
            _parquet(table, path)
        else:
            path.write_text(answers(table, ending[1:]), encoding="utf-8")
    except (OSError, duckdb.Error) as exc:
        why = getattr(exc, "strerror", None) or str(exc).splitlines()[0]
        raise UsageError(f"{path} cannot be written: {why}", hint="give another place") from exc


def _parquet(table: AnswerTable, path: Path) -> None:
    """Let DuckDB write the file, from a frame."""
    frame = table.to_frame()
    with duckdb.connect() as connection:
        connection.register("answers", frame)
        connection.execute(
            f"COPY answers TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)"
        )


def text(value: str) -> str:
    """Keep a spreadsheet from taking a text for a formula.

    >>> text("=1+1"), text("cat"), text("-1")
    ("'=1+1", 'cat', '-1')
    """
    if not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue()
