"""Files of a download, read with messages that name the file and the line."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

from masa.errors import DataError
from masa.research.published.collection import DOWNLOAD


def is_file(path: Path) -> bool:
    """Tell whether a file exists; a path that no file system allows does not."""
    with suppress(OSError, ValueError):
        return path.is_file()
    return False


def is_inside(path: Path, root: Path) -> bool:
    """Tell whether a path stays inside a folder once links and .. are followed."""
    with suppress(OSError, ValueError):
        return path.resolve().is_relative_to(root.resolve())
    return False


def read_text(file: Path) -> str:
    """Read a file as UTF-8, with or without a byte order mark."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise DataError(f"{file}: not UTF-8 at byte {exc.start:,}", hint=DOWNLOAD) from exc
    except FileNotFoundError as exc:
        raise DataError(f"{file} does not exist", hint=DOWNLOAD) from exc
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise DataError(f"{file} cannot be read: {reason}", hint=DOWNLOAD) from exc
    if text.startswith("version https://git-lfs"):
        raise DataError(
            f"{file} is a Git LFS pointer, not the file itself",
            hint="run git lfs pull in the download",
        )
    return text


def read_lines(file: Path) -> list[str]:
    """Read the lines of a file; the last one may lack its line break."""
    text = read_text(file)
    if not text:
        return []
    return text.removesuffix("\n").split("\n")


def csv_rows(file: Path, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a small CSV file that has the wanted columns, each with its line number."""
    reader = csv.DictReader(io.StringIO(read_text(file), newline=""))
    try:
        columns = reader.fieldnames or ()
        missing = [name for name in wanted if name not in columns]
        if missing:
            raise DataError(f"{file}, line 1: no column {missing[0]!r}", hint=DOWNLOAD)
        for row in reader:
            # The reader's marks for a row with too many and for one with too few fields.
            if None in row or None in row.values():
                raise DataError(
                    f"{file}, line {reader.line_num}: not the {len(columns)} fields of the header",
                    hint=DOWNLOAD,
                )
            yield reader.line_num, row
    except csv.Error as exc:
        raise DataError(f"{file}, line {reader.line_num}: not CSV: {exc}", hint=DOWNLOAD) from exc


def json_records(file: Path, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Read a JSON list of objects that all have the wanted keys."""
    try:
        found = json.loads(read_text(file))
    except json.JSONDecodeError as exc:
        raise DataError(
            f"{file}, line {exc.lineno:,}, column {exc.colno:,}: not JSON: {exc.msg}", hint=DOWNLOAD
        ) from exc
    except (ValueError, RecursionError) as exc:
        # Numbers of thousands of digits, or lists nested too deeply.
        raise DataError(f"{file}: not JSON that can be read: {exc}", hint=DOWNLOAD) from exc
    if not isinstance(found, list) or not found:
        raise DataError(f"{file}: not a list of records", hint=DOWNLOAD)
    for number, record in enumerate(found, 1):
        missing = [key for key in wanted if not isinstance(record, dict) or key not in record]
        if missing:
            raise DataError(f"{file}, record {number:,}: no {missing[0]!r}", hint=DOWNLOAD)
    return found


def label_number(text: str, file: Path, line: int) -> str:
    """Read a label, a whole number that may be written as 3.000000e+00."""
    try:
        number = float(text)
        if number == int(number):
            return str(int(number))
    except (ValueError, OverflowError):
        # Not a number, or not a finite one.
        pass
    raise DataError(
        f"{file}, line {line:,}: {text[:40]!r} is not the number of a label", hint=DOWNLOAD
    )


def finite_number(text: str, file: Path, line: int) -> float:
    """Read a finite number or refuse the file."""
    number = number_or_none(text)
    if number is None:
        raise DataError(f"{file}, line {line:,}: {text[:40]!r} is not a number", hint=DOWNLOAD)
    return number


def read_price(text: str, file: Path, line: int) -> float | None:
    """Read a price; None where the text is empty."""
    if not text:
        return None
    number = finite_number(text, file, line)
    if number < 0:
        raise DataError(f"{file}, line {line:,}: {text!r} is not a price", hint=DOWNLOAD)
    return number


def number_or_none(value: object) -> float | None:
    """Read a finite number; None where there is none."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    if not isfinite(number):
        return None
    return number
