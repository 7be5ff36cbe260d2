"""Recorded predictions as a client: the only one that holds the truth."""

from collections.abc import Mapping, Sequence
from typing import Any

from masa.records import INVALID, Column, Item, Reply


class ReplayClient:
    """Answer from a column of the data, at no cost."""

    columns: Sequence[str] = ()
    priced = True

    def __init__(self, column: Column) -> None:
        self._column = column
        self._known = tuple(None if value == INVALID else value for value in column.values)

    def price(self, _: Item) -> int:
        """Nothing is paid."""
        return 0

    def describe(self) -> Mapping[str, Any]:
        """Name the column."""
        return {"api": f"replay:{self._column.name}"}

    async def ask(self, item: Item) -> Reply:
        """Look the answer up."""
        return Reply(self._known[self._column.codes[item.place]])

    async def close(self) -> None:
        """Nothing is held."""
