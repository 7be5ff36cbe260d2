"""Change one's mind in the middle of a run: go on without the old answers once they tell little about the new ones."""

from collections.abc import Callable
from dataclasses import replace

from masa.records import Answer, Query
from masa.sampling.predictive import Predictive
from masa.sampling.shrunken import Shrunken


class Switch:
    """Ask where answers have probably changed; after a rewrite, when the labels tell the answers better, stratum by stratum.

    That is decided between two batches, by their answers alone. The rest counts as one more batch, its items drawn at random
    inside their strata from those that were not asked before.
    """

    def __init__(self, first: Predictive, rest: Callable[[], Shrunken]) -> None:
        self._first = first
        self._make = rest
        self._rest: Shrunken | None = None
        """what is asked by after the turn"""
        self._turned = 0
        """the number of the batch that the rest counts as"""
        self._later: list[Query | Answer] = []
        """what a journal says of the time after the turn, until all that it says of the time before is told"""
        self._after: set[int] = set()

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not answered."""
        self._catch_up()
        later = [] if self._rest is None else self._rest.pending
        return self._first.pending + [self._as_batch(query) for query in later]

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next queries, none while answers are outstanding that decide what comes next."""
        self._catch_up()
        if self._rest is None and self._first.should_switch():
            self._rest = self._turn(self._first.batch + 1)
        if self._rest is None:
            return self._first.ask(n)
        queries = [self._as_batch(query) for query in self._rest.ask(n)]
        self._after.update(query.item for query in queries)
        return queries

    def sent(self, query: Query) -> None:
        """Count a query of the journal as asked."""
        if query.probability != 0.0:
            self._first.sent(query)
            return
        self._after.add(query.item)
        self._later.append(query)

    def tell(self, answer: Answer) -> None:
        """Take an answer."""
        if answer.item not in self._after:
            self._first.tell(answer)
            if self._rest is not None:
                self._rest.learn(answer)
        elif self._later or self._rest is None:
            self._later.append(answer)
        else:
            self._rest.tell(answer)

    def _as_batch(self, query: Query) -> Query:
        return replace(query, batch=self._turned, probability=0.0, batch_size=0)

    def _turn(self, batch: int) -> Shrunken:
        self._turned = batch
        rest, answers = self._make(), self._first.answers
        for item in sorted(self._first.asked):
            rest.known(item, answers.get(item))
        return rest

    def _catch_up(self) -> None:
        """Take what the journal says of the time after the turn."""
        later, self._later = self._later, []
        for one in later:
            if isinstance(one, Query):
                self._rest = self._rest or self._turn(one.batch or 0)
                self._rest.sent(one)
            elif self._rest is not None:
                self._rest.tell(one)
