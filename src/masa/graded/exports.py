"""Files that a tool exported, read as records, with messages that name the file and the line."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from masa.errors import DataError

AGAIN = "export it again"
KINDS = (".json", ".jsonl", ".ndjson", ".csv", ".parquet")

Record = dict[str, Any]


def files_in(path: Path) -> list[Path]:
    """Give the exported files at a path: itself, or those in a folder and in its folders."""
    if not path.exists():
        raise DataError(f"{path} does not exist", hint="give the file or folder that you exported")
    if path.is_file():
        return [path]
    found = sorted(one for one in path.rglob("*") if one.suffix.lower() in KINDS and one.is_file())
    if not found:
        raise DataError(f"{path} holds no file of JSON, CSV or Parquet", hint=AGAIN)
    return found


def content_of(file: Path) -> Any:
    """Read a file of JSON; one of JSON lines becomes a list."""
    text = _text(file)
    try:
        return json.loads(text)
    except json.JSONDecodeError as exc:
        if exc.lineno == 1 and exc.msg != "Extra data":
            raise _not_json(file, exc) from exc
    except (ValueError, RecursionError) as exc:
        raise DataError(f"{file}: not JSON that can be read: {exc}", hint=AGAIN) from exc
    return list(_lines(file, text))


def records(file: Path) -> list[Record]:
    """Read the records of a file; the names of their fields are written in one way."""
    kind = file.suffix.lower()
    if kind == ".csv":
        found: list[Any] = list(_csv(file))
    elif kind == ".parquet":
        found = list(_parquet(file))
    else:
        found = list(_in_json(content_of(file)))
    return [in_one_way(record) for record in found if isinstance(record, dict)]


def in_one_way(record: Mapping[Any, Any]) -> Record:
    """Write the names of fields in lower case with underscores.

    >>> in_one_way({"traceId": 1, "string_value": 2, "Data Type": 3})
    {'trace_id': 1, 'string_value': 2, 'data_type': 3}
    """
    return {
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\s+", "_", str(name).strip()).lower(): value
        for name, value in record.items()
    }


def _in_json(content: Any) -> Iterator[Any]:
    """Give the records of a list, of the lists in an object, and the object itself."""
    if isinstance(content, list):
        yield from content
    elif isinstance(content, dict):
        for part in content.values():
            if isinstance(part, list):
                yield from part
            elif isinstance(part, dict):
                yield part
        yield content


def _lines(file: Path, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except json.JSONDecodeError as exc:
            raise _not_json(file, exc, number) from exc
        except (ValueError, RecursionError) as exc:
            raise DataError(f"{file}, line {number:,}: not JSON: {exc}", hint=AGAIN) from exc


def _not_json(file: Path, exc: json.JSONDecodeError, line: int | None = None) -> DataError:
    return DataError(
        f"{file}, line {line or exc.lineno:,}, column {exc.colno:,}: not JSON: {exc.msg}",
        hint=AGAIN,
    )


def _csv(file: Path) -> Iterator[Record]:
    # Outputs of models are long.
    csv.field_size_limit(1 << 30)
    reader = csv.DictReader(io.StringIO(_text(file), newline=""))
    try:
        for row in reader:
            yield {name: value for name, value in row.items() if name is not None}
    except csv.Error as exc:
        raise DataError(f"{file}, line {reader.line_num:,}: not CSV: {exc}", hint=AGAIN) from exc


def _parquet(file: Path) -> Iterator[Record]:
    import duckdb

    try:
        with duckdb.connect() as connection:
            found = connection.execute("SELECT * FROM read_parquet(?)", [str(file)])
            names = [column[0] for column in found.description]
            while rows := found.fetchmany(1000):
                for row in rows:
                    yield dict(zip(names, row, strict=True))
    except duckdb.Error as exc:
        said = str(exc).splitlines()[0][:200]
        raise DataError(f"{file} cannot be read: {said}", hint=AGAIN) from exc


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise DataError(f"{file}: not UTF-8 at byte {exc.start:,}", hint=AGAIN) from exc
    except OSError as exc:
        raise DataError(f"{file} cannot be read: {exc.strerror}", hint=AGAIN) from exc
