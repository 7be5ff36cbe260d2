"""Recorded predictions as a client: the only client that holds the truth."""

from collections.abc import Mapping, Sequence
from typing import Any

from masa.clients.options import OptionsModel, Price, whole_price
from masa.records import INVALID, Column, Ints, Item, Reply


class ReplayOptions(OptionsModel):
    """The keys of `[api]` for `client = "replay:COLUMN"`."""

    price: Price = 0
    """what a call would cost, to see what a run would cost"""


class ReplayClient:
    """Answer from a column of the data. Nothing is paid, whatever price is counted."""

    columns: Sequence[str] = ()

    def __init__(
        self, column: Column, options: ReplayOptions | None = None, *, rows: Ints | None = None
    ) -> None:
        """Take a column of the data and, if that is a part of what was read, its rows (N,)."""
        price = None
        if options is not None:
            price = options.price
        self.priced = isinstance(price, int)
        self._price = whole_price(price)
        self._column = column
        self._place_of_row: dict[int, int] | None = None
        if rows is not None:
            self._place_of_row = {row: place for place, row in enumerate(rows.tolist())}
        self._labels: list[str | None] = list(column.values)
        if INVALID in self._labels:
            self._labels[self._labels.index(INVALID)] = None

    def price(self, _: Item) -> int:
        """Return the price that a call would have."""
        return self._price

    def describe(self) -> Mapping[str, Any]:
        """Name the column."""
        return {"api": f"replay:{self._column.name}"}

    async def ask(self, item: Item) -> Reply:
        """Look up the answer."""
        place = item.place
        if self._place_of_row is not None:
            place = self._place_of_row[item.place]
        return Reply(self._labels[self._column.codes[place]])

    async def close(self) -> None:
        """Do nothing: there are no connections."""
