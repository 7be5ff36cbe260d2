"""The methods of the paper: which item to ask next, from blocks or strata."""

from dataclasses import dataclass
from difflib import get_close_matches
from math import log

import numpy as np

from masa.data.strata import Strata
from masa.errors import UsageError
from masa.records import ERROR, INVALID, Answer, Codes, Column, Floats, Ints, Query, Tally
from masa.sampling.kernels import drawing as kernel
from masa.settings.methods import MOST_EXPLORATION, PAPER

SMALLEST_WEIGHT = 1e-300
"""The least weight in the optimal allocation: enough for the first query of a stratum, but not for
a second one while any other stratum has a larger weight."""


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """How a method draws from strata and adds up the answers."""

    design: kernel.Design
    rule: kernel.Rule
    group: Codes
    """(S,) the group that each stratum is averaged in"""
    factor: Floats
    """(S,) the weight of one of its answers, relative to the weight of its group"""


def scheme(
    strata: Strata,
    method: str,
    *,
    replacement: bool = False,
    a: float = 1.0,
    uncertainty: Floats | None = None,
) -> Scheme:
    """Lay out a method; `optimal` needs the true uncertainty score of each stratum (S,).

    a is how much the paper's rule explores.
    """
    if method not in PAPER:
        raise _unknown_method(method)
    if not 0.0 <= a <= MOST_EXPLORATION:
        raise UsageError(
            f"the exploration a is {a:g}", hint=f"give a number from 0 to {MOST_EXPLORATION:g}"
        )
    # A block or a group is given by its first stratum: there is one in total, one per label that
    # has items, or one per stratum.
    one, each = np.zeros(1, np.int64), np.arange(len(strata))
    groups = blocks = each
    if method == "uniform":
        groups = blocks = one
    elif method == "post-stratified":
        blocks = one
    elif method == "stratified":
        groups = blocks = np.unique(strata.label, return_index=True)[1]
    group_weight = np.add.reduceat(strata.weight, groups)
    group_owner = strata.label[groups].astype(np.int64)
    factor = np.ones(len(strata))
    if method == "uniform":
        group_owner = one
        factor = strata.weight / (strata.size / strata.start[-1])
    block_weight = np.ones(1) if len(blocks) == 1 else group_weight
    if method == "optimal":
        block_weight = _optimal_weight(strata, uncertainty)
    codes = {"masa": kernel.MASA, "optimal": kernel.OPTIMAL}
    return Scheme(
        design=kernel.Design(
            start=np.append(strata.start[blocks], strata.start[-1]),
            block_weight=block_weight,
            group_weight=group_weight,
            group_owner=group_owner,
        ),
        rule=kernel.Rule(codes.get(method, kernel.EQUAL), float(a), replacement),
        group=(np.searchsorted(groups, each, side="right") - 1).astype(np.int32),
        factor=factor,
    )


def _unknown_method(method: str) -> UsageError:
    hint = f"the methods are {', '.join(PAPER)}"
    close = get_close_matches(method, PAPER, 1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    return UsageError(f"there is no method {method!r}", hint=hint)


def _optimal_weight(strata: Strata, uncertainty: Floats | None) -> Floats:
    """Return the weight of each stratum (S,) times the root of its true uncertainty score (S,)."""
    if uncertainty is None:
        raise UsageError(
            "the method optimal needs to know all answers before it asks",
            hint="use it in replays, where the answers are recorded; elsewhere use masa",
        )
    weight = np.maximum(strata.weight * np.sqrt(uncertainty), SMALLEST_WEIGHT)
    return np.where(strata.weight > 0.0, weight, 0.0)


def counted(strata: Strata, places: Ints, answers: Column) -> Tally:
    """Count the answers about the items at these places (n,), as if drawn stratum by stratum.

    answers (n,) is a column over these places.
    """
    stratum = strata.of(places).astype(np.int64)
    cells, counts = np.unique(stratum * len(answers.values) + answers.codes, return_counts=True)
    cell_stratum, prediction = np.divmod(cells, len(answers.values))
    answered = np.bincount(stratum, minlength=len(strata)).astype(np.int64)
    return Tally(
        labels=strata.labels,
        predictions=answers.values,
        group_share=kernel.group_shares(scheme(strata, "masa").design, answered),
        group_answers=answered,
        cell_stratum=cell_stratum.astype(np.int32),
        cell_group=cell_stratum.astype(np.int32),
        cell_label=strata.label[cell_stratum],
        cell_prediction=prediction.astype(np.int32),
        cell_factor=np.ones(len(cells)),
        counts=counts.astype(np.int32),
    )


def theory_a(labels: int, levels: int, queries: int) -> float:
    """Return the exploration parameter a that the paper's theorem needs.

    >>> round(theory_a(labels=2, levels=3, queries=2000), 1)
    19.6
    """
    return 2 * log(labels) + log(levels) + 9 / 4 * log(queries)


class Sampler:
    """Choose items to ask the API about, and count its answers.

    Queries that are not yet answered count as asked. The state depends on which items were asked
    and what was answered, not on the order, so it can be rebuilt by telling it recorded answers.

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
        self._scheme = scheme(strata, method, replacement=replacement, a=a, uncertainty=uncertainty)
        self._key = np.uint64(kernel.run_key(seed, 0))
        self._position = np.empty(len(strata.items), np.int64)
        self._position[strata.items] = np.arange(len(strata.items))
        self._stratum = strata.of_position
        self._block = np.repeat(
            np.arange(len(self._scheme.design.block_weight)), np.diff(self._scheme.design.start)
        )
        self._asks = np.zeros(len(strata.items), np.int64)
        """(N,) how often each position was asked"""
        self._tells = np.zeros(len(strata.items), np.int64)
        """(N,) how often each position was answered"""
        self._cells: dict[tuple[int, str], int] = {}
        """the cell of each stratum and prediction"""
        self._state = kernel.new_state(self._scheme.design, len(strata.items), cells=64)
        self._drawn = np.zeros(len(self._scheme.design.block_weight), np.int64)
        """(B,) draws from each block, those of items that were asked already included"""
        kernel.plant(self._scheme.design, self._scheme.rule, self._state)

    @classmethod
    def proportional(cls, strata: Strata, *, seed: int = 0) -> "Sampler":
        """Draw from the strata in proportion to their weights, at least one item of each.

        That is the optimal allocation where all strata are equally uncertain.
        """
        return cls(strata, method="optimal", seed=seed, uncertainty=np.ones(len(strata)))

    @property
    def asked(self) -> int:
        """How many queries were asked, answered or not."""
        return int(self._state.issued.sum())

    @property
    def answered(self) -> int:
        """How many answers were received."""
        return int(self._state.answered.sum())

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not answered, one per item, in the order of items."""
        items = np.sort(self.strata.items[np.flatnonzero(self._asks > self._tells)])
        return [Query(int(item), int(self._stratum[self._position[item]])) for item in items]

    def ask(self, n: int = 1) -> list[Query]:
        """Return the next n queries, fewer when nothing is left to ask."""
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
        """Count a query of the journal as asked; `ask` does this for its own queries."""
        position = self._locate(query.item)
        if self._asks[position] and not self._scheme.rule.replacement:
            raise ValueError(f"item {query.item} was asked before")
        block = self._block[position]
        self._asks[position] += 1
        self._state.issued[block] += 1
        kernel.rescore(self._scheme.design, self._scheme.rule, self._state, block)

    def delayed(self, item: int) -> None:
        """Do nothing: no answer is waited for."""

    def tell(self, answer: Answer) -> None:
        """Count an answer, and also its query where that was never asked here."""
        if not isinstance(answer.prediction, str):
            raise TypeError(
                f"the answer about item {answer.item} is {answer.prediction!r}, not text; use "
                f"{INVALID!r} for an answer that cannot be read as a label and {ERROR!r} for an "
                "item that failed for good"
            )
        position = self._locate(answer.item)
        stratum = int(self._stratum[position])
        if self._tells[position] == self._asks[position]:
            self.sent(Query(answer.item, stratum))
        self._tells[position] += 1
        cell = self._cells.setdefault((stratum, answer.prediction or INVALID), len(self._cells))
        if cell == len(self._state.counts):
            # Which predictions there are is known only when they come.
            grown = np.concatenate((self._state.counts, np.zeros_like(self._state.counts)))
            self._state = self._state._replace(counts=grown)
        kernel.count(
            self._state.pairs,
            self._state.counts,
            self._state.answered,
            self._scheme.group[stratum],
            cell,
        )
        kernel.rescore(self._scheme.design, self._scheme.rule, self._state, self._block[position])

    def tally(self) -> Tally:
        """Return the counts, in an order that does not depend on the order of the answers."""
        cells = sorted(self._cells)
        predictions = tuple(sorted({prediction for _, prediction in cells}))
        code = {prediction: j for j, prediction in enumerate(predictions)}
        stratum = np.array([s for s, _ in cells], np.int32)
        return Tally(
            labels=self.strata.labels,
            predictions=predictions,
            group_share=kernel.group_shares(self._scheme.design, self._state.answered),
            group_answers=self._state.answered.copy(),
            cell_stratum=stratum,
            cell_group=self._scheme.group[stratum],
            cell_label=self.strata.label[stratum],
            cell_prediction=np.array([code[prediction] for _, prediction in cells], np.int32),
            cell_factor=self._scheme.factor[stratum],
            counts=self._state.counts[[self._cells[cell] for cell in cells]],
        )

    def _draw(self, block: int) -> int:
        """Return the position of the next draw from a block, skipping items asked already."""
        start = self._scheme.design.start
        first, size = int(start[block]), int(start[block + 1] - start[block])
        if self._scheme.rule.replacement:
            u = kernel.uniform(self._key, block, self._state.issued[block])
            return first + int(u * size)
        while True:
            draw = self._drawn[block]
            u = kernel.uniform(self._key, block, draw)
            position = int(kernel.pick(self._state.order, first, size, draw, u))
            self._drawn[block] += 1
            if not self._asks[position]:
                return position

    def _locate(self, item: int) -> int:
        if not 0 <= item < len(self._position):
            last = len(self._position) - 1
            raise ValueError(f"there is no item {item}; items are numbered from 0 to {last}")
        return int(self._position[item])
