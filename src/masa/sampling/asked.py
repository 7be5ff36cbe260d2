"""What was asked and what was answered in one assessment, held in one place."""

from dataclasses import dataclass, field

import numpy as np

from masa.records import ERROR, Answer, Column, Ints, Query, in_order
from masa.sampling.draws import Draws


@dataclass(slots=True)
class Asked:
    """The queries and answers of one assessment, by item, in the order in which they came."""

    queries: dict[int, Query] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)

    def sent(self, query: Query) -> None:
        """Keep a query."""
        self.queries[query.item] = query

    def tell(self, answer: Answer) -> None:
        """Keep an answer."""
        self.answers[answer.item] = answer

    @property
    def failed(self) -> int:
        """How many items failed for good."""
        return sum(answer.prediction == ERROR for answer in self.answers.values())

    def column(self, items: list[int]) -> Column:
        """Give the answers about these items, as a column over them."""
        said = [self.answers[item].prediction for item in items]
        values = in_order(tuple(set(said)))
        code = {value: place for place, value in enumerate(values)}
        return Column("answers", values, np.array([code[value] for value in said], np.int32))

    def draws(self, items: list[int]) -> Draws | None:
        """Give how these items were drawn, where items are drawn in batches."""
        found = [draw for item in items if (draw := self.queries[item].draw) is not None]
        return Draws.of(found) if found else None

    def confidence(self, items: list[int]) -> dict[int, float]:
        """Give the confidence of the answers about these items that came with one."""
        found = {}
        for item in items:
            answer = self.answers[item]
            if answer.confidence is not None and answer.prediction != ERROR:
                found[item] = answer.confidence
        return found

    def places(self) -> Ints:
        """Give the items with an answer (n,), rising: sums then do not depend on who came first."""
        return np.array(sorted(self.answers), np.int64)
