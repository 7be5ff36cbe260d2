"""Switch during a run from predictive to stratified sampling, once the baseline predicts little."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from masa.records import Answer, Query
from masa.sampling.predictive import Predictive
from masa.sampling.shrunken import Shrunken


class Switch:
    """Choose items by a model of change and, if the API was rewritten, stratum by stratum.

    It switches between two batches, by their answers alone, when the labels predict the answers
    better than the baseline answers do. All later queries count as one more batch. Their items are
    drawn at random inside their strata, from those that were not asked before.
    """

    def __init__(
        self, first: Predictive, rest: Callable[[], Shrunken], *, allowed: bool = True
    ) -> None:
        """Switch only where that is allowed, or where the journal shows that the run has."""
        self._first = first
        self._allowed = allowed
        self._make_rest = rest
        self._rest: Shrunken | None = None
        """what chooses the items after the switch; None before it"""
        self._late_batch = 0
        """the number of the batch that all queries after the switch count as"""
        self._late_items: set[int] = set()
        """the items asked after the switch"""
        self._unread: list[Query | Answer] = []
        """journal entries after the switch, kept until all those before it are known"""

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not answered."""
        self._read_journal()
        if self._rest is None:
            return self._first.pending
        return self._first.pending + [self._as_batch(query) for query in self._rest.pending]

    def ask(self, n: int = 1) -> list[Query]:
        """Return the next queries: none while it waits for answers that decide what comes next."""
        self._read_journal()
        if self._rest is None and self._allowed and self._first.should_switch():
            self._rest = self._switch(self._first.batch + 1)
        if self._rest is None:
            return self._first.ask(n)
        queries = [self._as_batch(query) for query in self._rest.ask(n)]
        self._late_items.update(query.item for query in queries)
        return queries

    def sent(self, query: Query) -> None:
        """Count a query of the journal as asked."""
        # Only queries after the switch have the inclusion probability 0.
        if query.probability != 0.0:
            self._first.sent(query)
            return
        self._late_items.add(query.item)
        self._unread.append(query)

    def tell(self, answer: Answer) -> None:
        """Take the answer to a query."""
        if answer.item not in self._late_items:
            self._first.tell(answer)
            if self._rest is not None:
                self._rest.learn(answer)
        elif self._unread or self._rest is None:
            self._unread.append(answer)
        else:
            self._rest.tell(answer)

    def delayed(self, item: int) -> None:
        """Do not wait for an item; after the switch nothing is waited for."""
        self._first.delayed(item)

    def drawn_again(self) -> Iterator[list[Query]]:
        """Draw each batch before a switch again."""
        return self._first.drawn_again()

    def _as_batch(self, query: Query) -> Query:
        return replace(query, batch=self._late_batch, probability=0.0, batch_size=0)

    def _switch(self, batch: int) -> Shrunken:
        """Make what chooses the items from now on, and tell it what was asked and answered."""
        self._late_batch = batch
        rest, answers = self._make_rest(), self._first.answers
        for item in sorted(self._first.asked):
            rest.known(item, answers.get(item))
        return rest

    def _read_journal(self) -> None:
        """Take the entries of the journal that are from the time after the switch."""
        entries, self._unread = self._unread, []
        for entry in entries:
            if isinstance(entry, Query):
                self._rest = self._rest or self._switch(entry.batch or 0)
                self._rest.sent(entry)
            elif self._rest is not None:
                self._rest.tell(entry)
