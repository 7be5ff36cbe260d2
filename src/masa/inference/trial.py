"""One assessment without any input or output: what to ask, when to stop, what follows.

Live runs drive a trial with the engine and the journal, replays with recorded answers.
"""

from dataclasses import dataclass

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.inference.any_change import AnyChange, any_change, differences
from masa.inference.estimate import Estimate
from masa.inference.method import Method
from masa.inference.noise_alone import wrong_before
from masa.inference.readings import StandardErrors
from masa.inference.stopping import Stopping
from masa.records import ERROR, Answer, ChangedItem, Column, Ints, Query, Stopped
from masa.sampling.asked import Asked


@dataclass(frozen=True, slots=True, eq=False)
class Conclusion:
    """What the answers of an assessment say."""

    places: Ints
    """(n,) the items that were answered, rising"""
    answers: Column
    """over them"""
    estimate: Estimate | None
    """None where nothing follows for all items: no answers, or those of canaries alone"""
    any_change: AnyChange
    compared: list[int]
    """the items whose old and new answers are both known"""
    differing: dict[int, ChangedItem]
    """those of them whose answer changed"""
    after_switch: int
    """how many of the answers came after a switch to stratified sampling"""
    looks: StandardErrors | None
    """how far intervals reach that were looked at during the run"""


class Trial:
    """One assessment: chooses items, keeps what it is told, says when to stop and what follows.

    Nothing but delayed items is under way when the canaries or the verdict are looked at, so that a
    look always sees the same answers.
    """

    def __init__(
        self,
        method: Method,
        old: BaselineAnswers,
        stopping: Stopping,
        *,
        budget: int | None = None,
        canary: int = 0,
        seed: int | None = None,
    ) -> None:
        """Take at most `budget` answers; `canary` is how many are looked at first."""
        items = len(method.data)
        self.asked = Asked()
        self._method = method
        self._old = old
        self._stopping = stopping
        self._source = method.source(seed=seed)
        self._most = min(items, budget or items)
        self._canary = canary
        self._failed = 0
        self._delayed: set[int] = set()
        """items that were asked and that nothing waits for"""
        self._began_looking = False
        self._next_verdict: int | None = None
        """the number of answers after which to look at the verdict"""
        self._next_error: int | None = None
        """the number of answers after which to look at the error"""
        self._error_at = 0
        """the number of answers when the error was last computed"""
        self._error: float | None = None

    def ask(self, n: int = 1) -> list[Query]:
        """Give the next queries, at most n and none beyond the next look."""
        if self._next_verdict is not None:
            n = min(n, self._next_verdict - len(self.asked.queries) + len(self._delayed))
        if self._canary:
            n = min(n, self._canary + self._failed - len(self.asked.queries))
        if n <= 0:
            return []
        queries = self._source.ask(n)
        for query in queries:
            self.asked.sent(query)
        return queries

    def sent(self, query: Query) -> None:
        """Count a query of the journal as asked."""
        self._source.sent(query)
        self.asked.sent(query)

    def delayed(self, item: int) -> None:
        """Do not wait for an item."""
        self._source.delayed(item)
        if item not in self.asked.answers:
            self._delayed.add(item)

    def tell(self, answer: Answer) -> None:
        """Take an answer."""
        self._delayed.discard(answer.item)
        self._source.tell(answer)
        self.asked.tell(answer)
        self._failed += answer.prediction == ERROR

    @property
    def looks(self) -> StandardErrors | None:
        """How far intervals reach that are looked at during the run."""
        return self._stopping.looks(self._most, len(self._method.data))

    def stopped(self) -> Stopped | None:
        """Say why the assessment may stop now, or None."""
        if self._canary and self._canary_is_silent():
            return "canary"
        answers, strata = len(self.asked.answers), len(self._method.strata)
        if not self._began_looking:
            # StandardErrors that a resumed run had before are not repeated.
            self._began_looking = True
            self._next_verdict = self._stopping.next_verdict(answers)
            self._next_error = self._stopping.next_error(0, strata)
        if self._next_verdict is not None and answers >= self._next_verdict:
            self._next_verdict = self._stopping.next_verdict(answers)
            if self._stopping.verdict(self.estimate(), self.looks) != "undecided":
                return "decided"
        if self._next_error is not None and answers >= self._next_error:
            self._next_error = self._stopping.next_error(answers, strata)
            if self._stopping.reached(self.estimate()):
                return "target"
        return None

    def error(self) -> float | None:
        """Give the root of the expected squared error, renewed every few percent of answers."""
        answers = len(self.asked.answers)
        if answers > 2 * len(self._method.strata) and answers > 1.05 * self._error_at:
            self._error_at = answers
            self._error = self.estimate(finite=True).matrix.error2 ** 0.5
        return self._error

    def conclusion(self, asked: Asked | None = None) -> Conclusion:
        """Say what follows from the answers so far, or from those that are given."""
        return conclusion(self._method, self._old, asked or self.asked, self.looks)

    def _canary_is_silent(self) -> bool:
        """Say whether all canaries are answered and none shows a change.

        They are the first items that were asked and did not fail.
        """
        if len(self.asked.queries) - self._failed > self._canary:
            # The journal has more than the canaries: they did show a change then.
            self._canary = 0
            return False
        answers = self.asked.answers
        first = [
            item
            for item in self.asked.queries
            if item in answers and answers[item].prediction != ERROR
        ]
        if len(first) < self._canary:
            return False
        self._canary = 0
        compared, differing = differences(
            self._method.data, self._old, np.array(first, np.int64), self.asked.column(first)
        )
        some_drawn = any(self.asked.queries[item].batch != 0 for item in first)
        found = None
        noisy = differing and not self._old.repeats_itself
        if some_drawn and (noisy or self._old.confidence_twice):
            found = self.estimate(finite=False)
        confidence = self.asked.confidence(first)
        wrong = wrong_before(self._method.data, self._old)
        said = any_change(
            found, self._old, compared, differing, wrong=wrong, confidence=confidence
        ).said
        return said != "yes"

    def estimate(self, *, finite: bool | None = None) -> Estimate:
        """Estimate the shift from the answers so far."""
        if finite is None:
            finite = self._old.repeats_itself
        places = self.asked.places()
        items = places.tolist()
        return self._method.estimate(
            places, self.asked.column(items), self.asked.draws(items), finite=finite
        )


def conclusion(
    method: Method, old: BaselineAnswers, asked: Asked, looks: StandardErrors | None
) -> Conclusion:
    """Say what follows from these answers: the same in whatever order they came."""
    places = asked.places()
    items = places.tolist()
    answers, draws = asked.column(items), asked.draws(items)
    compared, differing = differences(method.data, old, places, answers)
    found, after_switch = None, 0
    # Canaries are not drawn at random: from them alone nothing follows for the other items.
    only_canaries = draws is not None and not draws.batch.any() and not method.exhausted(places)
    if items and not only_canaries:
        found = method.estimate(places, answers, draws, finite=old.repeats_itself)
        if draws is not None:
            after_switch = int(np.count_nonzero(draws.probability == 0.0))
    return Conclusion(
        places,
        answers,
        found,
        any_change(
            found,
            old,
            compared,
            differing,
            wrong=wrong_before(method.data, old),
            confidence=asked.confidence(items),
            looks=looks,
        ),
        compared,
        differing,
        after_switch,
        looks,
    )
