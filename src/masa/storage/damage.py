"""Rows that cannot be what masa wrote, because somebody edited the store or a disk failed.

SQLite keeps any value in any column, so the types are checked before rows are used.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from masa.errors import StoreError
from masa.storage.schema import SETTLED, TO_BE_ASKED_AGAIN, call

TYPES: dict[type[Any], tuple[str, ...]] = {
    sql.Integer: ("integer",),
    sql.Boolean: ("integer",),
    sql.Float: ("real", "integer"),
    sql.String: ("text",),
    sql.JSON: ("text",),
    sql.LargeBinary: ("blob",),
}
"""What SQLite may call a value of each type."""


def check(
    connection: sql.Connection, path: Path, table: sql.Table, where: sql.ColumnElement[bool]
) -> None:
    """Raise if one of these rows of a table holds a value that masa never writes."""
    number: sql.ColumnElement[Any] = sql.literal_column("rowid")
    wrong = sql.select(number).select_from(table).where(where & ~is_whole(table))
    row = connection.execute(wrong.limit(1)).first()
    if row is not None:
        raise damaged(path, f"row {row[0]} of the table {table.name}")


def check_calls(connection: sql.Connection, path: Path, number: int) -> None:
    """Raise if the journal of a run holds a value that masa never writes."""
    settled = call.c.outcome.in_(SETTLED)
    whole = (
        is_whole(call)
        & (call.c.outcome.is_(None) | call.c.outcome.in_((*SETTLED, *TO_BE_ASKED_AGAIN)))
        & (call.c.outcome.is_(None) | ~settled | call.c.prediction.is_not(None))
        & (call.c.stands.is_(None) == call.c.adds.is_(None))
        & (call.c.batch.is_(None) | call.c.chance.is_not(None) & call.c.batch_size.is_not(None))
    )
    mine = sql.select(call.c.number).where((call.c.run == number) & ~whole)
    wrong = connection.execute(mine.limit(1)).first()
    if wrong is not None:
        raise damaged(path, f"call {wrong.number} of run {number}")


def is_whole(table: sql.Table) -> sql.ColumnElement[bool]:
    """Write the condition that every value of a row is of the type of its column."""
    parts: list[sql.ColumnElement[bool]] = []
    for column in table.columns:
        kind = next(kind for kind in TYPES if isinstance(column.type, kind))
        allowed = TYPES[kind] + ("null",) * bool(column.nullable)
        parts.append(sql.func.typeof(column).in_(allowed))
        if kind is sql.JSON:
            text = sql.type_coerce(column, sql.String)
            kinds = ("object", "null") if column.nullable else ("object",)
            valid = sql.func.json_valid(text) & sql.func.json_type(text).in_(kinds)
            parts.append(text.is_(None) | valid)
    return sql.and_(*parts)


@contextmanager
def readable(path: Path, number: int) -> Iterator[None]:
    """Translate what goes wrong when a stored result is not what masa stored."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise damaged(path, f"the result of run {number}") from exc


def damaged(path: Path, what: str) -> StoreError:
    """Say what of a store is damaged."""
    return StoreError(
        f"{path} is damaged, or was edited: {what} cannot be what masa wrote",
        hint="restore an earlier copy of it, or give another place with --store",
    )
