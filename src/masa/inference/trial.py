"""One assessment without any input or output: what to ask, what was answered, when to stop, what follows."""

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.inference.any_change import differences, moved
from masa.inference.estimate import Estimate
from masa.inference.method import Plan
from masa.inference.readings import Looks
from masa.inference.stopping import Stopping
from masa.records import ERROR, Answer, Column, Query, Stopped
from masa.sampling.draws import Draws


class Told:
    """What chooses items, keeping what it is told, to say how sure the estimate is by now, and whether that is enough."""

    def __init__(
        self, plan: Plan, old: BaselineAnswers, stopping: Stopping, most: int, canary: int = 0
    ) -> None:
        self._plan = plan
        self._old = old
        self._stopping = stopping
        self._most = most
        self._canary = canary
        self._looks: tuple[int | None, int | None] | None = None
        """after how many answers to look at the verdict and at the error, once the journal has been told"""
        self._asked: dict[int, Query] = {}
        self._answered: dict[int, str] = {}
        self._confidence: dict[int, float] = {}
        self._failed = 0
        self._known: tuple[int, float | None] = (0, None)

    def ask(self, n: int = 1) -> list[Query]:
        """Ask what chooses; nothing is under way when the canary or the verdict is looked at."""
        look = None if self._looks is None else self._looks[0]
        if look is not None:
            n = min(n, look - len(self._asked))
        if self._canary:
            n = min(n, self._canary + self._failed - len(self._asked))
        queries = self._plan.source.ask(n) if n > 0 else []
        self._asked.update((query.item, query) for query in queries)
        return queries

    def sent(self, query: Query) -> None:
        """Tell what chooses."""
        self._plan.source.sent(query)
        self._asked[query.item] = query

    def tell(self, answer: Answer) -> None:
        """Tell what chooses."""
        self._plan.source.tell(answer)
        self._answered[answer.item] = answer.prediction
        if answer.confidence is not None:
            self._confidence[answer.item] = answer.confidence
        self._failed += answer.prediction == ERROR

    def error(self) -> float | None:
        """Give the root of the expected squared error, anew after every few percent of answers."""
        count, known = self._known
        if len(self._answered) > 2 * len(self._plan.strata) and len(self._answered) > 1.05 * count:
            known = self._estimated(finite=True).matrix.error2 ** 0.5
            self._known = len(self._answered), known
        return known

    @property
    def looks(self) -> Looks | None:
        """How far intervals reach that are looked at during the run."""
        return self._stopping.looks(self._most, len(self._plan.data))

    def enough(self) -> "Stopped | None":
        """Say why the run may stop now, or None."""
        if self._canary and self._sung():
            return "canary"
        answers, strata = len(self._answered), len(self._plan.strata)
        if self._looks is None:
            # What a run that goes on has looked at before it does not look at again.
            self._looks = self._stopping.next_verdict(answers), self._stopping.next_error(0, strata)
        verdict, error = self._looks
        if verdict is not None and answers >= verdict:
            self._looks = self._stopping.next_verdict(answers), error
            if (
                self._stopping.verdict(self._estimated(finite=self._finite), self.looks)
                != "undecided"
            ):
                return "decided"
        if error is not None and answers >= error:
            self._looks = self._looks[0], self._stopping.next_error(answers, strata)
            if self._stopping.reached(self._estimated(finite=self._finite)):
                return "target"
        return None

    @property
    def _finite(self) -> bool:
        return self._old.repeats_itself

    def _sung(self) -> bool:
        """Say whether the canary is over and saw nothing: its items are the first that were asked and did not fail."""
        if len(self._asked) - self._failed > self._canary:  # The journal went on after it.
            self._canary = 0
            return False
        first = [item for item in self._asked if self._answered.get(item, ERROR) != ERROR]
        if len(first) < self._canary:
            return False
        self._canary = 0
        data, old = self._plan.data, self._old
        compared_to, differing = differences(
            data, old, np.array(first, np.int64), self._column(first)
        )
        some = any(self._asked[item].batch != 0 for item in first)
        found = (
            self._estimated(finite=False) if differing and not old.repeats_itself and some else None
        )
        confidence = {
            item: sure for item in first if (sure := self._confidence.get(item)) is not None
        }
        return moved(found, old, compared_to, differing, confidence=confidence).said != "yes"

    def _estimated(self, *, finite: bool) -> Estimate:
        items = list(self._answered)
        draws = [draw for item in items if (draw := self._asked[item].draw) is not None]
        places, found = np.array(items, np.int64), Draws.of(draws) if draws else None
        return self._plan.estimated(self._old, places, self._column(items), found, finite=finite)

    def _column(self, items: list[int]) -> Column:
        answers = [self._answered[item] for item in items]
        values = tuple(dict.fromkeys(answers))
        code = {value: j for j, value in enumerate(values)}
        return Column("answers", values, np.array([code[value] for value in answers], np.int32))
