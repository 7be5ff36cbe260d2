"""Ask where the answers have probably changed: a model of change, batches drawn by it, and what they say of the shift."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from masa.data.features import MOVED, Features
from masa.records import INVALID, Answer, Bools, Codes, Column, Floats, Ints, Query
from masa.sampling.kernels import predictive as kernel
from masa.sampling.kernels.drawing import run_key
from masa.sampling.layout import Layout


class _Past(NamedTuple):
    """Items that were asked and answered, in the order of their batches."""

    known: Ints
    """(n,)"""
    batch: Codes
    """(n,)"""
    probability: Floats
    """(n,)"""
    target: Codes
    """(n,) what each changed to, or -1"""
    confidence: Floats
    """(n,) of the answer, nan where it has none"""

    def then(self, later: "_Past") -> "_Past":
        """Add what was asked in later batches."""
        return _Past(
            np.concatenate((self.known, later.known)),
            np.concatenate((self.batch, later.batch)),
            np.concatenate((self.probability, later.probability)),
            np.concatenate((self.target, later.target)),
            np.concatenate((self.confidence, later.confidence)),
        )


class Predictive:
    """Choose items in batches, by a model of which answers have changed.

    The next batch is drawn when all of the last one is answered; until then `ask` gives nothing once it has been asked.
    """

    def __init__(self, layout: Layout, features: Features, *, seed: int = 0) -> None:
        self._layout = layout
        self._confidence = features.confidence
        self._key = np.uint64(run_key(seed, 0))
        self._sent: dict[int, Query] = {}
        self._answers: dict[int, tuple[str, float | None]] = {}
        self._waiting: deque[Query] | None = None
        self._past: _Past | None = None
        """all that was asked until it was last looked at; none if it is to be looked at anew"""
        self._recent: list[Query] = []
        """what was asked since"""
        self._last = 0
        self._promised: int | None = None
        """how many canaries there are to be, once one of them was sent"""

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not answered, in the order of their items."""
        return [self._sent[item] for item in sorted(self._sent) if item not in self._answers]

    @property
    def answers(self) -> dict[int, str]:
        """What was answered, by item."""
        return {item: prediction for item, (prediction, _) in self._answers.items()}

    @property
    def asked(self) -> set[int]:
        """The items that were asked."""
        return set(self._sent)

    @property
    def batch(self) -> int:
        """The number of the last batch."""
        return self._last

    def should_switch(self) -> bool:
        """Say whether a batch is done, and the labels told the answers so far better than the old answers did."""
        if self._waiting is None:
            self._waiting = self._rest_of_batch()
        if self._waiting or not self._answers or len(self._answers) < len(self._sent):
            return False
        layout, past = self._layout, self._until_now()
        left = layout.left(past.known, past.batch)
        counts, _ = kernel.weigh(past.batch, past.probability, np.bincount(past.batch), left, 0)
        known = past.known.astype(np.int32)
        return bool(
            kernel.should_switch(
                layout.items, layout.cells, layout.goal, known, past.target, counts
            )
        )

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next queries: none while answers are outstanding that decide what comes next, or when all was asked."""
        if self._waiting is None:
            self._waiting = self._rest_of_batch()
        queries: list[Query] = []
        while len(queries) < n:
            if not self._waiting:
                if len(self._answers) < len(self._sent):
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
        self._waiting = self._past = None

    def tell(self, answer: Answer) -> None:
        """Take an answer, to a query that was asked."""
        if answer.item not in self._sent:
            raise ValueError(f"item {answer.item} was not asked")
        if answer.item in self._answers:
            self._past = None
        self._answers[answer.item] = answer.prediction or INVALID, answer.confidence

    def _rest_of_batch(self) -> deque[Query]:
        """Give what the journal's last batch still has to be asked."""
        if not self._sent:
            return deque()
        last = max(1, self.batch)  # The canaries are asked with the first batch.
        again = self._batch(last)
        chance = {query.item: query.probability for query in again}
        mine = [query for query in self._sent.values() if query.batch == last]
        if any(
            not np.isclose(chance.get(query.item) or 0.0, query.probability or 0.0)
            for query in mine
        ):
            return (
                deque()
            )  # Another version of masa drew it. What it asked counts as a smaller batch.
        return deque(query for query in again if query.item not in self._sent)

    def _batch(self, number: int) -> deque[Query]:
        """Draw a batch from the answers to those before it, in the order in which it is to be asked."""
        layout = self._layout
        known, moved, target, done = self._before(number)
        first = self._canaries() if number <= 1 else layout.canaries[:0]
        done[first] = True
        picked, chance = kernel.next_batch(
            layout.items,
            layout.cells,
            layout.goal,
            layout.prior,
            known.astype(np.int32),
            moved,
            target,
            done,
            self._key,
            number,
        )
        cell = layout.items.cell
        queries = [
            Query(item, int(cell[item]), number, float(q), len(picked))
            for item, q in zip(picked.tolist(), chance.tolist(), strict=True)
        ]
        if number > 1:
            return deque(queries)
        canaries = [
            Query(item, int(cell[item]), 0, 1.0, len(first))
            for item in first.tolist()
            if item not in self._sent
        ]
        both = [query for pair in zip(queries, canaries, strict=False) for query in pair]
        return deque([*both, *canaries[len(queries) :], *queries[len(canaries) :]])

    def _canaries(self) -> Codes:
        """Give the items that are asked with the first batch for certain: what a run began with, whatever is wanted now."""
        if self._promised is not None:
            return self._layout.likeliest[: self._promised]
        return self._layout.canaries[
            : None if len(self._sent) < 2 else 0
        ]  # The second query is one, if there are any.

    def _count(self, query: Query) -> None:
        self._sent[query.item] = query
        self._promised = query.batch_size if query.batch == 0 else self._promised
        self._recent.append(query)
        self._last = max(self._last, query.batch or 0)

    def _until_now(self) -> _Past:
        """Give all that was asked, when all of it is answered; what is new since the last time are later batches."""
        if self._past is None:
            self._past = self._read(list(self._sent.values()))
        elif self._recent:
            self._past = self._past.then(self._read(self._recent))
        self._recent = []
        return self._past

    def _before(self, number: int) -> tuple[Ints, Floats, Codes, Bools]:
        """Give the items answered before a batch (n,), how much each changed, what to, and which of all (N,) were asked."""
        done = np.zeros(len(self._layout.old), np.bool_)
        if 1 <= self._last < number:
            past = self._until_now()
            done[past.known] = True
        else:
            before = [query for query in self._sent.values() if (query.batch or 0) < number]
            past = self._read(
                [query for query in before if number > 1 and query.item in self._answers]
            )
            done[[query.item for query in before]] = True
        sure = None if self._confidence is None else self._confidence[past.known]
        return past.known, changed(past.target, sure, past.confidence), past.target, done

    def _read(self, queries: Sequence[Query]) -> _Past:
        """Give what was answered to these queries."""
        queries = sorted(queries, key=lambda query: (query.batch or 0, query.item))
        known = np.array([query.item for query in queries], np.int64)
        answers = [self._answers[query.item] for query in queries]
        values = tuple(dict.fromkeys(prediction for prediction, _ in answers))
        code = {value: j for j, value in enumerate(values)}
        said = Column(
            "", values, np.array([code[prediction] for prediction, _ in answers], np.int32)
        )
        return _Past(
            known,
            np.array([query.batch or 0 for query in queries], np.int32),
            np.array([query.probability or 0.0 for query in queries], np.float64),
            self._layout.targets(known, said),
            np.array([np.nan if sure is None else sure for _, sure in answers], np.float64),
        )


def changed(target: Codes, before: Floats | None, now: Floats) -> Floats:
    """Say how much each answer changed (n,): 1 if it is another one, a little where only its confidence moved."""
    moved = (
        np.zeros(len(target), np.bool_) if before is None else np.abs(before - now) > 1e-9
    )  # False where one is not known.
    return np.where(target >= 0, 1.0, np.where(moved, MOVED, 0.0))
