"""Recorded predictions as a client: the only one that holds the truth."""

from collections.abc import Mapping, Sequence
from typing import Any

from masa.clients.options import Price, Settings
from masa.records import INVALID, Column, Ints, Item, Reply


class Options(Settings):
    """The keys of `[api]` for `client = "replay:COLUMN"`."""

    price: Price = 0
    """what a call would cost, to see what a run would"""


class ReplayClient:
    """Answer from a column of the data; nothing is paid, whatever price is counted."""

    columns: Sequence[str] = ()

    def __init__(
        self, column: Column, options: Options | None = None, *, rows: Ints | None = None
    ) -> None:
        """Take a column of the data, and where that is a part of what was read its rows (N,)."""
        price = None if options is None else options.price
        self.priced = isinstance(price, int)
        self._price = price if isinstance(price, int) else 0
        self._column = column
        self._place = (
            None if rows is None else {row: place for place, row in enumerate(rows.tolist())}
        )
        self._known = tuple(None if value == INVALID else value for value in column.values)

    def price(self, _: Item) -> int:
        """Give the price that is played with."""
        return self._price

    def describe(self) -> Mapping[str, Any]:
        """Name the column."""
        return {"api": f"replay:{self._column.name}"}

    async def ask(self, item: Item) -> Reply:
        """Look the answer up."""
        place = item.place if self._place is None else self._place[item.place]
        return Reply(self._known[self._column.codes[place]])

    async def close(self) -> None:
        """Do nothing: nothing is held."""
