"""Ask where answers have probably changed: batches drawn by a model of change."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from masa.data.features import MOVED, Features, log_odds
from masa.records import INVALID, Answer, Bools, Codes, Column, Floats, Ints, Query
from masa.sampling.kernels import predictive as kernel
from masa.sampling.kernels.drawing import run_key
from masa.sampling.layout import Layout

SAME_CONFIDENCE = 1e-9
"""Confidences that differ by no more are the same."""


class AnsweredItems(NamedTuple):
    """Items that were asked and answered, in the order of their batches."""

    item: Ints
    """(n,)"""
    batch: Codes
    """(n,)"""
    probability: Floats
    """(n,) the inclusion probability"""
    target: Codes
    """(n,) the answer that each changed to, or -1"""
    confidence: Floats
    """(n,) of the answer, nan where it has none"""
    batch_size: Ints
    """(n,) how many items its batch holds"""

    def then(self, later: "AnsweredItems") -> "AnsweredItems":
        """Add what was asked in later batches."""
        return AnsweredItems(
            np.concatenate((self.item, later.item)),
            np.concatenate((self.batch, later.batch)),
            np.concatenate((self.probability, later.probability)),
            np.concatenate((self.target, later.target)),
            np.concatenate((self.confidence, later.confidence)),
            np.concatenate((self.batch_size, later.batch_size)),
        )


class Predictive:
    """Choose items in batches, by a model of which answers have changed.

    The next batch is drawn when all of the last one is answered; until then `ask` gives nothing
    more.
    """

    def __init__(self, layout: Layout, features: Features, *, seed: int = 0) -> None:
        self._layout = layout
        self._confidence = features.confidence
        self._seed = seed
        self._key = np.uint64(run_key(seed, 0))
        self._sent: dict[int, Query] = {}
        self._answers: dict[int, Answer] = {}
        self._waiting: deque[Query] | None = None
        """what is left of the last batch; None until that is known, after a journal was read"""
        self._read_so_far: AnsweredItems | None = None
        """what was answered when it was last read; None to read everything again"""
        self._unread: list[Query] = []
        """what was sent since then"""
        self._last_batch = 0
        self._delayed: set[int] = set()
        """items that were asked and that nothing waits for"""
        self._canary_count: int | None = None
        """how many canaries this run has, once one of them was sent"""

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not answered, in the order of their items."""
        return [self._sent[item] for item in sorted(self._sent) if item not in self._answers]

    @property
    def answers(self) -> dict[int, str]:
        """What was answered, by item."""
        return {item: answer.prediction or INVALID for item, answer in self._answers.items()}

    @property
    def asked(self) -> set[int]:
        """The items that were asked."""
        return set(self._sent)

    @property
    def batch(self) -> int:
        """The number of the last batch."""
        return self._last_batch

    def should_switch(self) -> bool:
        """Say whether a batch is complete and labels predict answers better than old answers."""
        if self._waiting is None:
            self._waiting = self._rest_of_batch()
        if self._waiting or not self._answers or self._is_waiting_for_answers:
            return False
        layout, past = self._layout, self._all_answered()
        left = layout.left(past.item, past.batch)
        sizes = np.bincount(past.batch)
        counts, _ = kernel.weigh(past.batch, past.probability, sizes, left, 0)
        items = past.item.astype(np.int32)
        return bool(
            kernel.should_switch(
                layout.items, layout.cells, layout.goal, items, past.target, counts
            )
        )

    @property
    def _is_waiting_for_answers(self) -> bool:
        return len(self._answers) + len(self._delayed) < len(self._sent)

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next queries: none while it waits for answers that decide what comes next."""
        if self._waiting is None:
            self._waiting = self._rest_of_batch()
        queries: list[Query] = []
        while len(queries) < n:
            if not self._waiting:
                if self._is_waiting_for_answers:
                    break
                self._waiting = self._batch(1 + self.batch)
                if not self._waiting:
                    break
            query = self._waiting.popleft()
            self._count(query)
            queries.append(query)
        return queries

    def sent(self, query: Query) -> None:
        """Count a query of the journal as asked."""
        self._count(query)
        self._waiting = self._read_so_far = None

    def tell(self, answer: Answer) -> None:
        """Take the answer to a query that was asked."""
        if answer.item not in self._sent:
            raise ValueError(f"item {answer.item} was not asked")
        if answer.item in self._answers or answer.item in self._delayed:
            self._read_so_far = None
        self._delayed.discard(answer.item)
        self._answers[answer.item] = answer

    def delayed(self, item: int) -> None:
        """Draw the next batch without waiting for an item.

        Until its answer comes its batch counts as a smaller one.
        """
        if item in self._sent and item not in self._answers:
            self._delayed.add(item)

    def drawn_again(self) -> Iterator[list[Query]]:
        """Draw each batch again from the answers before it, in the order in which it was asked.

        The canaries, batch 0, come first: as many as this run asked, or else all that there are.
        """
        canaries = (
            self._canaries() if self._canary_count else self._layout.canaries(self._seed)
        ).tolist()
        cell = self._layout.items.cell
        yield [Query(item, int(cell[item]), 0, 1.0, len(canaries)) for item in canaries]
        for number in range(1, self._last_batch + 1):
            yield [query for query in self._batch(number) if query.batch == number]

    def _rest_of_batch(self) -> deque[Query]:
        """Give what is still to be asked of the journal's last batch."""
        if not self._sent:
            return deque()
        last = max(1, self.batch)  # The canaries are asked with the first batch.
        again = self._batch(last)
        drawn = {query.item: query.probability or 0.0 for query in again}
        for query in self._sent.values():
            if query.batch != last:
                continue
            if not np.isclose(drawn.get(query.item, 0.0), query.probability or 0.0):
                # Another version of masa drew this batch. What it asked counts as a smaller one.
                return deque()
        return deque(query for query in again if query.item not in self._sent)

    def _batch(self, number: int) -> deque[Query]:
        """Draw a batch from the answers before it, in the order in which it is to be asked."""
        layout = self._layout
        asked, done = self._before(number)
        canaries = self._canaries() if number <= 1 else np.zeros(0, np.int32)
        done[canaries] = True
        picked, probability = kernel.next_batch(
            layout.items,
            layout.cells,
            layout.goal,
            layout.prior,
            asked,
            done,
            self._key,
            number,
        )
        cell = layout.items.cell
        drawn = zip(picked.tolist(), probability.tolist(), strict=True)
        queries = [Query(item, int(cell[item]), number, float(q), len(picked)) for item, q in drawn]
        if number > 1:
            return deque(queries)
        first = [
            Query(item, int(cell[item]), 0, 1.0, len(canaries))
            for item in canaries.tolist()
            if item not in self._sent
        ]
        # Canaries and drawn items take turns, so that both say something after a few answers.
        in_turn = [query for pair in zip(queries, first, strict=False) for query in pair]
        return deque([*in_turn, *first[len(queries) :], *queries[len(first) :]])

    def _canaries(self) -> Codes:
        """Give the canaries: those that this run began with, however many are wanted now."""
        if self._canary_count is not None:
            return self._layout.canaries(self._seed, self._canary_count)
        if len(self._sent) < 2:
            return self._layout.canaries(self._seed)
        # The second query is a canary if there are any, so this run has none.
        return np.zeros(0, np.int32)

    def _count(self, query: Query) -> None:
        self._sent[query.item] = query
        if query.batch == 0:
            self._canary_count = query.batch_size
        self._unread.append(query)
        self._last_batch = max(self._last_batch, query.batch or 0)

    def _all_answered(self) -> AnsweredItems:
        """Give everything that was asked and is not delayed, when all of it is answered.

        What is new since the last time belongs to later batches and is added at the end.
        """
        if self._read_so_far is None:
            self._read_so_far = self._read(self._answered(self._sent.values()))
        elif self._unread:
            self._read_so_far = self._read_so_far.then(self._read(self._answered(self._unread)))
        self._unread = []
        return self._read_so_far

    def _answered(self, queries: Iterable[Query]) -> list[Query]:
        return [query for query in queries if query.item in self._answers]

    def _before(self, number: int) -> tuple[kernel.Asked, Bools]:
        """Give the items answered before a batch, and a mask (N,) of all that were asked."""
        done = np.zeros(len(self._layout.old), np.bool_)
        if 1 <= self._last_batch < number:
            past = self._all_answered()
            done[list(self._sent)] = True
        else:
            before = [query for query in self._sent.values() if (query.batch or 0) < number]
            done[[query.item for query in before]] = True
            # The first batch is drawn before anything is known, also when it is drawn again.
            past = self._read(self._answered(before) if number > 1 else [])
        confidence = None
        if self._confidence is not None:
            confidence = self._confidence[past.item]
        chance = np.where(past.batch > 0, past.probability / np.maximum(past.batch_size, 1), 0.0)
        asked = kernel.Asked(
            past.item.astype(np.int32),
            changed(past.target, confidence, past.confidence),
            past.target,
            new_margins(past.target, past.confidence),
            chance,
        )
        return asked, done

    def _read(self, queries: Iterable[Query]) -> AnsweredItems:
        """Give what was answered to these queries."""
        ordered = sorted(queries, key=lambda query: (query.batch or 0, query.item))
        items = np.array([query.item for query in ordered], np.int64)
        answers = [self._answers[query.item] for query in ordered]
        return AnsweredItems(
            items,
            np.array([query.batch or 0 for query in ordered], np.int32),
            np.array([query.probability or 0.0 for query in ordered], np.float64),
            self._layout.targets(items, _as_column(answers)),
            np.array([_confidence(answer) for answer in answers], np.float64),
            np.array([query.batch_size for query in ordered], np.int64),
        )


def _as_column(answers: Sequence[Answer]) -> Column:
    said = [answer.prediction or INVALID for answer in answers]
    values = tuple(dict.fromkeys(said))
    code = {value: place for place, value in enumerate(values)}
    return Column("", values, np.array([code[value] for value in said], np.int32))


def _confidence(answer: Answer) -> float:
    return np.nan if answer.confidence is None else answer.confidence


def changed(target: Codes, before: Floats | None, now: Floats) -> Floats:
    """Say how much each answer changed (n,).

    1 if it is another one, a little if only its confidence moved.
    """
    confidence_moved = np.zeros(len(target), np.bool_)
    if before is not None:
        # The comparison is false where one of the two is not known.
        confidence_moved = np.abs(before - now) > SAME_CONFIDENCE
    return np.where(target >= 0, 1.0, np.where(confidence_moved, MOVED, 0.0))


def new_margins(target: Codes, confidence: Floats) -> Floats:
    """Give how far each answer is from the one before the change (n,), nan where that is unknown.

    It is the log odds of the new confidence; they are negative where the answer is another one.
    """
    margin = log_odds(confidence)
    return np.where(target >= 0, -np.abs(margin), margin)
