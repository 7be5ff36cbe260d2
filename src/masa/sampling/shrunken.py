"""Strata with shrunken variances: by label and old answer where those are known, else by what a cheap model makes of an item."""

import numpy as np

from masa.data.features import OTHER, prices
from masa.data.strata import Strata
from masa.records import INVALID, Answer, Codes, Column, Floats, Query, in_order
from masa.sampling.kernels import shrunken as kernel
from masa.sampling.kernels.drawing import choose, pick, run_key, uniform
from masa.settings import Objective

SPARE = 64
"""Answers that were never given before and are told apart."""

CAREFUL, BOLD = 40.0, 10.0
"""Answers' worth of belief in the common variance: with old answers, where changes are rare and easily missed, and without."""


def designed(
    strata: Strata,
    names: tuple[str, ...],
    *,
    old: Column | None,
    objective: Objective,
    cost: Floats | None = None,
) -> kernel.Design:
    """Lay the strata out for the kernels, with the answers by these names; old (N,) are the old answers, if they are used."""
    known = np.zeros((len(strata), len(names)))
    if old is not None:
        code = _places(names, old)[old.codes[strata.items]]
        np.add.at(known, (strata.of_position, code), 1.0)
        known /= strata.size[:, None]
    price = (
        np.add.reduceat(prices(cost, len(strata.items))[strata.items], strata.start[:-1])
        / strata.size
    )
    return kernel.Design(
        start=strata.start,
        weight=strata.weight,
        urge=strata.weight / np.sqrt(price),
        label=strata.label,
        known=known,
        goal=objective.table(strata.labels, names),
        linear=objective.linear,
        kappa=BOLD if old is None else CAREFUL,
    )


def _places(names: tuple[str, ...], column: Column) -> Codes:
    place = {name: code for code, name in enumerate(names)}
    return np.array([place[name] for name in column.values], np.int32)


class Shrunken:
    """Choose items stratum by stratum; queries that were asked and not yet answered count as asked."""

    def __init__(
        self,
        strata: Strata,
        *,
        old: Column | None = None,
        objective: Objective | None = None,
        cost: Floats | None = None,
        seed: int = 0,
    ) -> None:
        self.strata = strata
        known = in_order((*strata.labels, *(() if old is None else old.values)))
        names = (*known, *(f"{OTHER}{number}" for number in range(SPARE)))
        self._code = {name: code for code, name in enumerate(known)}
        self._last = len(names) - 1
        self._before = None if old is None else _places(names, old)[old.codes]
        self._design = designed(
            strata, names, old=old, objective=objective or Objective(), cost=cost
        )
        self._state = kernel.new_state(self._design)
        self._key = np.uint64(run_key(seed, 0))
        self._position = np.empty(len(strata.items), np.int64)
        self._position[strata.items] = np.arange(len(strata.items))
        self._stratum = strata.of_position
        self._asked = np.zeros(len(strata.items), np.bool_)
        self._answered = np.zeros(len(strata.items), np.bool_)
        self._drawn = np.zeros(len(strata), np.int64)

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not answered, in the order of their items."""
        items = np.sort(self.strata.items[np.flatnonzero(self._asked & ~self._answered)])
        return [Query(int(item), int(self._stratum[self._position[item]])) for item in items]

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next n queries, fewer when nothing is left to ask."""
        queries: list[Query] = []
        while len(queries) < n:
            stratum = int(choose(self._state.tree, self._state.lead))
            if stratum < 0:
                break
            query = Query(self._draw(stratum), stratum)
            self.sent(query)
            queries.append(query)
        return queries

    def sent(self, query: Query) -> None:
        """Count a query as asked; `ask` does it by itself, a journal being read again does it here."""
        position = self._position[query.item]
        if self._asked[position]:
            raise ValueError(f"item {query.item} was asked before")
        self._asked[position] = True
        stratum = self._stratum[position]
        self._state.issued[stratum] += 1
        kernel.rescore(self._design, self._state, stratum)

    def known(self, item: int, prediction: str | None) -> None:
        """Do not ask about an item that was drawn elsewhere, and learn from its answer, if that is there."""
        position = self._position[item]
        self._asked[position] = self._answered[position] = True
        self._state.left[self._stratum[position]] -= 1
        if prediction is None:
            kernel.rescore(self._design, self._state, self._stratum[position])
        else:
            self._count(item, prediction)

    def learn(self, answer: Answer) -> None:
        """Learn from an answer about an item that was drawn elsewhere."""
        self._count(answer.item, answer.prediction)

    def tell(self, answer: Answer) -> None:
        """Count an answer, and its query too where that was never asked here."""
        position = self._position[answer.item]
        if not self._asked[position]:
            self.sent(Query(answer.item, -1))
        self._answered[position] = True
        self._count(answer.item, answer.prediction)

    def _count(self, item: int, prediction: str) -> None:
        # So many answers that were never given before are told apart; all others are taken for the last of them.
        new = self._code.setdefault(prediction or INVALID, min(len(self._code), self._last))
        old = -1 if self._before is None else int(self._before[item])
        kernel.count(self._design, self._state, self._stratum[self._position[item]], new, old)

    def _draw(self, stratum: int) -> int:
        """Give the next item of a stratum, passing over those that a journal says were asked."""
        first, last = int(self.strata.start[stratum]), int(self.strata.start[stratum + 1])
        while True:
            draw = self._drawn[stratum]
            position = int(
                pick(
                    self._state.order, first, last - first, draw, uniform(self._key, stratum, draw)
                )
            )
            self._drawn[stratum] += 1
            if not self._asked[position]:
                return int(self.strata.items[position])
