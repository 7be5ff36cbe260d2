"""Choose items from strata with shrunken variances.

The strata are by label and baseline answer where these are known, else by what a cheap model
predicts for an item.
"""

import numpy as np

from masa.data.features import OTHER, prices
from masa.data.strata import Strata
from masa.records import INVALID, Answer, Codes, Column, Floats, Query, in_order
from masa.sampling.kernels import shrunken as kernel
from masa.sampling.kernels.drawing import choose, pick, run_key, uniform
from masa.settings import Objective

SPARE = 64
"""How many answers that were never given before are told apart."""

WITH_BASELINE, WITHOUT_BASELINE = 40.0, 10.0
"""How many answers the pooled variance counts for in the variance of a stratum.

More with baseline answers, where changes are rare and easily missed."""


def designed(
    strata: Strata,
    names: tuple[str, ...],
    *,
    old: Column | None,
    objective: Objective,
    cost: Floats | None = None,
) -> kernel.ShrunkenDesign:
    """Lay the strata out for the kernels, with the answers by these names.

    old (N,) are the baseline answers, if they are used; cost (N,) is the price of each item.
    """
    baseline_share = np.zeros((len(strata), len(names)))
    kappa = WITHOUT_BASELINE
    if old is not None:
        kappa = WITH_BASELINE
        code = _codes(names, old)[old.codes[strata.items]]
        np.add.at(baseline_share, (strata.of_position, code), 1.0)
        baseline_share /= strata.size[:, None]
    item_price = prices(cost, len(strata.items))[strata.items]
    mean_price = np.add.reduceat(item_price, strata.start[:-1]) / strata.size
    return kernel.ShrunkenDesign(
        start=strata.start,
        weight=strata.weight,
        priority=strata.weight / np.sqrt(mean_price),
        label=strata.label,
        baseline_share=baseline_share,
        goal=objective.table(strata.labels, names),
        linear=objective.linear,
        kappa=kappa,
    )


def _codes(names: tuple[str, ...], column: Column) -> Codes:
    """Return the index in names of each value of a column."""
    code_of = {name: code for code, name in enumerate(names)}
    return np.array([code_of[name] for name in column.values], np.int32)


class Shrunken:
    """Choose items stratum by stratum; queries that are not yet answered count as asked."""

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
        known = in_order(strata.labels if old is None else (*strata.labels, *old.values))
        names = (*known, *(f"{OTHER}{number}" for number in range(SPARE)))
        self._code = {name: code for code, name in enumerate(known)}
        self._last_code = len(names) - 1
        self._baseline: Codes | None = None
        """(N,) the code of the baseline answer of each item"""
        if old is not None:
            self._baseline = _codes(names, old)[old.codes]
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
        """(S,) draws from each stratum, those of items that were asked already included"""

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not answered, in the order of their items."""
        items = np.sort(self.strata.items[np.flatnonzero(self._asked & ~self._answered)])
        return [Query(int(item), int(self._stratum[self._position[item]])) for item in items]

    def ask(self, n: int = 1) -> list[Query]:
        """Return the next n queries, fewer when nothing is left to ask."""
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
        """Count a query of the journal as asked; `ask` does this for its own queries."""
        position = self._position[query.item]
        if self._asked[position]:
            raise ValueError(f"item {query.item} was asked before")
        self._asked[position] = True
        stratum = self._stratum[position]
        self._state.issued[stratum] += 1
        kernel.rescore(self._design, self._state, stratum)

    def known(self, item: int, prediction: str | None) -> None:
        """Never ask about an item that was drawn elsewhere; learn from its answer if known."""
        position = self._position[item]
        self._asked[position] = self._answered[position] = True
        self._state.available[self._stratum[position]] -= 1
        if prediction is None:
            kernel.rescore(self._design, self._state, self._stratum[position])
        else:
            self._count(item, prediction)

    def learn(self, answer: Answer) -> None:
        """Learn from an answer about an item that was drawn elsewhere."""
        self._count(answer.item, answer.prediction)

    def tell(self, answer: Answer) -> None:
        """Count an answer, and also its query where that was never asked here."""
        position = self._position[answer.item]
        if not self._asked[position]:
            self.sent(Query(answer.item, -1))
        self._answered[position] = True
        self._count(answer.item, answer.prediction)

    def delayed(self, item: int) -> None:
        """Do nothing: no answer is waited for."""

    def _count(self, item: int, prediction: str) -> None:
        # Once all spare codes are taken, further new answers share the last one.
        next_code = min(len(self._code), self._last_code)
        new = self._code.setdefault(prediction or INVALID, next_code)
        old = -1
        if self._baseline is not None:
            old = int(self._baseline[item])
        kernel.count(self._design, self._state, self._stratum[self._position[item]], new, old)

    def _draw(self, stratum: int) -> int:
        """Return the next item of a stratum, skipping those that were asked already."""
        first = int(self.strata.start[stratum])
        size = int(self.strata.start[stratum + 1]) - first
        while True:
            draw = self._drawn[stratum]
            u = uniform(self._key, stratum, draw)
            position = int(pick(self._state.order, first, size, draw, u))
            self._drawn[stratum] += 1
            if not self._asked[position]:
                return int(self.strata.items[position])
