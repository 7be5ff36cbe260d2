"""Tables in memory, read as files are: with the same checks, and the same items."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from masa.data.files import Table
from masa.errors import DataError

SOURCE = "the DataFrame"


@contextmanager
def opened(source: Any) -> Iterator[Table]:
    """Give the table of a file, a glob or a folder, or of a DataFrame for as long as it is read."""
    if isinstance(source, Table):
        yield source
    elif isinstance(source, str | Path):
        yield Table.open(source)
    else:
        with _as_table(source) as table:
            yield table


@contextmanager
def _as_table(frame: Any) -> Iterator[Table]:
    """Write a DataFrame (pandas, polars, Arrow) to a Parquet file for as long as it is read."""
    with tempfile.TemporaryDirectory(prefix="masa-") as folder:
        path = Path(folder) / "frame.parquet"
        _write(frame, path)
        try:
            yield replace(Table.open(path), source=SOURCE)
        except DataError as exc:
            exc.message = exc.message.replace(str(path), SOURCE)
            exc.args = (exc.message,)
            raise


def _write(frame: Any, path: Path) -> None:
    columns = [str(name) for name in getattr(frame, "columns", ())]
    if not columns:
        raise DataError(
            f"{type(frame).__name__} is nothing that masa can read",
            hint="give a file, a folder or a DataFrame with columns",
        )
    if len(set(columns)) < len(columns):
        raise DataError("the DataFrame has two columns of one name", hint="rename one of them")
    try:
        with duckdb.connect() as connection:
            connection.register("frame", _with_text_names(frame))
            connection.execute(f"COPY frame TO '{path}' (FORMAT parquet)")
    except duckdb.Error as exc:
        raise DataError(
            f"the DataFrame cannot be read: {str(exc).splitlines()[0]}",
            hint="columns of texts and numbers can be",
        ) from exc


def _with_text_names(frame: Any) -> Any:
    """Name columns by texts: a DataFrame may have numbers for names."""
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.rename(columns={name: str(name) for name in frame.columns})
