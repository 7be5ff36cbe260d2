"""Decide what to ask next: a state machine that is told answers and never sees an API."""

from dataclasses import dataclass
from difflib import get_close_matches
from math import log

import numpy as np

from masa.data.strata import Strata
from masa.errors import UsageError
from masa.records import ERROR, INVALID, Answer, Codes, Column, Floats, Ints, Query, Tally
from masa.sampling.kernels import drawing as kernel

METHODS = ("uniform", "post-stratified", "stratified", "masa", "optimal")

MOST_EXPLORATION = 1e12
"""More would let a score overtake strata that have not been asked twice."""

BARELY = 1e-300
"""A weight that earns a stratum its first query and no second one while any other stratum wants it."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How a method draws from strata and adds up what it finds."""

    design: kernel.Design
    rule: kernel.Rule
    group: Codes
    """(S,) the group each stratum is averaged in"""
    factor: Floats
    """(S,) what one of its answers weighs, relative to the share of its group"""


def plan(
    strata: Strata,
    method: str,
    *,
    replacement: bool = False,
    a: float = 1.0,
    uncertainty: Floats | None = None,
) -> Plan:
    """Lay out a method; `optimal` needs the true uncertainty score of each stratum (S,)."""
    if method not in METHODS:
        close = get_close_matches(method, METHODS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"the methods are {', '.join(METHODS)}"
        raise UsageError(f"there is no method {method!r}", hint=hint)
    if not 0.0 <= a <= MOST_EXPLORATION:
        raise UsageError(f"a is {a:g}", hint=f"give a number from 0 to {MOST_EXPLORATION:g}")
    count = len(strata)
    every, whole = np.arange(count), np.ones(1)
    # Blocks and groups name the strata they begin with: one, one a label that has items, or one a stratum.
    one, by_label, by_stratum = (
        np.zeros(1, np.int64),
        np.unique(strata.label, return_index=True)[1],
        every,
    )
    groups = {"uniform": one, "stratified": by_label}.get(method, by_stratum)
    blocks = {"uniform": one, "post-stratified": one, "stratified": by_label}.get(
        method, by_stratum
    )
    group_weight = np.add.reduceat(strata.weight, groups)
    owner = one if method == "uniform" else strata.label[groups].astype(np.int64)
    block_weight = whole if len(blocks) == 1 else group_weight
    if method == "optimal":
        if uncertainty is None:
            raise UsageError(
                "the optimal method must know the answers before it asks",
                hint="use it in replays, where they are recorded; else use masa",
            )
        block_weight = np.where(
            strata.weight > 0.0, np.maximum(strata.weight * np.sqrt(uncertainty), BARELY), 0.0
        )
    codes = {"masa": kernel.MASA, "optimal": kernel.OPTIMAL}
    share_of_items = strata.size / strata.start[-1]
    return Plan(
        design=kernel.Design(
            start=np.append(strata.start[blocks], strata.start[-1]),
            block_weight=block_weight,
            group_weight=group_weight,
            group_owner=owner,
        ),
        rule=kernel.Rule(codes.get(method, kernel.EQUAL), float(a), replacement),
        group=(np.searchsorted(groups, every, side="right") - 1).astype(np.int32),
        factor=strata.weight / share_of_items if method == "uniform" else np.ones(count),
    )


def counted(strata: Strata, places: Ints, answers: Column) -> Tally:
    """Count answers about these places (n,), given as a column of their own, as if they had been drawn stratum by stratum."""
    stratum = strata.of(places).astype(np.int64)
    cells, counts = np.unique(stratum * len(answers.values) + answers.codes, return_counts=True)
    of, prediction = np.divmod(cells, len(answers.values))
    answered = np.bincount(stratum, minlength=len(strata)).astype(np.int64)
    laid_out = plan(strata, "masa")
    return Tally(
        labels=strata.labels,
        predictions=answers.values,
        group_share=kernel.group_shares(laid_out.design, answered),
        group_answers=answered,
        cell_stratum=of.astype(np.int32),
        cell_group=of.astype(np.int32),
        cell_label=strata.label[of],
        cell_prediction=prediction.astype(np.int32),
        cell_factor=np.ones(len(cells)),
        counts=counts.astype(np.int32),
    )


def theory_a(labels: int, levels: int, queries: int) -> float:
    """Give the exploration that the paper's theorem asks for.

    >>> round(theory_a(labels=2, levels=3, queries=2000), 1)
    19.6
    """
    return 2 * log(labels) + log(levels) + 9 / 4 * log(queries)


class Sampler:
    """Choose items to ask the API about, and count what it answers.

    Queries that were asked and not yet answered count as asked. The state depends on which items were asked and what was
    answered, not on the order, so it can be rebuilt by telling it recorded answers.

    >>> from masa.records import Column
    >>> strata = Strata.build(Column("label", ("cat", "dog"), np.array([0, 1, 0, 1, 0], np.int32)))
    >>> sampler = Sampler(strata, method="masa", seed=1)
    >>> for query in sampler.ask(4):
    ...     sampler.tell(Answer(query.item, "cat"))
    >>> sampler.asked, sampler.answered
    (4, 4)
    """

    def __init__(
        self,
        strata: Strata,
        *,
        method: str = "masa",
        seed: int = 0,
        replacement: bool = False,
        a: float = 1.0,
        uncertainty: Floats | None = None,
    ) -> None:
        self.strata = strata
        self.method = method
        self._plan = plan(strata, method, replacement=replacement, a=a, uncertainty=uncertainty)
        self._key = np.uint64(kernel.run_key(seed, 0))
        self._position = np.empty(len(strata.items), np.int64)
        self._position[strata.items] = np.arange(len(strata.items))
        self._stratum = strata.of_position
        self._block = np.repeat(
            np.arange(len(self._plan.design.block_weight)), np.diff(self._plan.design.start)
        )
        self._asks = np.zeros(len(strata.items), np.int64)
        self._tells = np.zeros(len(strata.items), np.int64)
        self._cells: dict[tuple[int, str], int] = {}
        self._state = kernel.new_state(self._plan.design, len(strata.items), cells=64)
        self._drawn = np.zeros(len(self._plan.design.block_weight), np.int64)
        kernel.plant(self._plan.design, self._plan.rule, self._state)

    @property
    def asked(self) -> int:
        """How many queries were asked, answered or not."""
        return int(self._state.issued.sum())

    @property
    def answered(self) -> int:
        """How many answers came."""
        return int(self._state.answered.sum())

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not answered, one each, in the order of their items."""
        items = np.sort(self.strata.items[np.flatnonzero(self._asks > self._tells)])
        return [Query(int(item), int(self._stratum[self._position[item]])) for item in items]

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next n queries, fewer when nothing is left to ask."""
        queries: list[Query] = []
        while len(queries) < n:
            block = int(kernel.choose(self._state.tree, self._state.lead))
            if block < 0:
                break
            position = self._draw(block)
            query = Query(int(self.strata.items[position]), int(self._stratum[position]))
            self.sent(query)
            queries.append(query)
        return queries

    def sent(self, query: Query) -> None:
        """Count a query as asked; `ask` does it by itself, a journal being read again does it here."""
        position = self._locate(query.item)
        if self._asks[position] and not self._plan.rule.replacement:
            raise ValueError(f"item {query.item} was asked before")
        block = self._block[position]
        self._asks[position] += 1
        self._state.issued[block] += 1
        kernel.rescore(self._plan.design, self._plan.rule, self._state, block)

    def tell(self, answer: Answer) -> None:
        """Count an answer, and its query too where that was never asked here."""
        if not isinstance(answer.prediction, str):
            raise TypeError(
                f"the answer about item {answer.item} is {answer.prediction!r}; tell text, "
                f"or {INVALID!r} for one that cannot be read and {ERROR!r} for a call that failed for good"
            )
        position = self._locate(answer.item)
        stratum = int(self._stratum[position])
        if self._tells[position] == self._asks[position]:
            self.sent(Query(answer.item, stratum))
        self._tells[position] += 1
        cell = self._cells.setdefault((stratum, answer.prediction or INVALID), len(self._cells))
        if cell == len(self._state.counts):
            grown = np.concatenate((self._state.counts, np.zeros_like(self._state.counts)))
            self._state = self._state._replace(counts=grown)
        kernel.count(
            self._state.pairs,
            self._state.counts,
            self._state.answered,
            self._plan.group[stratum],
            cell,
        )
        kernel.rescore(self._plan.design, self._plan.rule, self._state, self._block[position])

    def tally(self) -> Tally:
        """Give the counts, in an order that does not depend on the order of the answers."""
        cells = sorted(self._cells)
        predictions = tuple(sorted({prediction for _, prediction in cells}))
        code = {prediction: j for j, prediction in enumerate(predictions)}
        stratum = np.array([s for s, _ in cells], np.int32)
        return Tally(
            labels=self.strata.labels,
            predictions=predictions,
            group_share=kernel.group_shares(self._plan.design, self._state.answered),
            group_answers=self._state.answered.copy(),
            cell_stratum=stratum,
            cell_group=self._plan.group[stratum],
            cell_label=self.strata.label[stratum],
            cell_prediction=np.array([code[prediction] for _, prediction in cells], np.int32),
            cell_factor=self._plan.factor[stratum],
            counts=self._state.counts[[self._cells[cell] for cell in cells]],
        )

    def _draw(self, block: int) -> int:
        """Give the position of the next draw from a block, passing over items that a journal says were asked."""
        start = self._plan.design.start
        first, size = int(start[block]), int(start[block + 1] - start[block])
        while True:
            if self._plan.rule.replacement:
                return first + int(
                    kernel.uniform(self._key, block, self._state.issued[block]) * size
                )
            draw = self._drawn[block]
            position = int(
                kernel.pick(
                    self._state.order, first, size, draw, kernel.uniform(self._key, block, draw)
                )
            )
            self._drawn[block] += 1
            if not self._asks[position]:
                return position

    def _locate(self, item: int) -> int:
        if not 0 <= item < len(self._position):
            raise ValueError(f"there is no item {item}")
        return int(self._position[item])
