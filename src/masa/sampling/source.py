"""The protocol of everything that decides which items are asked."""

from typing import Protocol

from masa.records import Answer, Query


class Source(Protocol):
    """What decides which items are asked: a state machine that never sees an API."""

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next queries, at most n; none while it must wait for answers, or at the end."""

    def sent(self, query: Query) -> None:
        """Count a query as asked that this source did not give: one that a journal has."""

    def tell(self, answer: Answer) -> None:
        """Take the answer to a query."""

    def delayed(self, item: int) -> None:
        """Do not wait for the answer about an item that was asked: it may come late, or never."""
