"""A small API that changed, and predictive runs on it."""

import numpy as np

from masa.data.dataset import Dataset
from masa.data.features import Features, Words
from masa.data.strata import Strata
from masa.records import Answer, Codes, Column, Floats, Query
from masa.sampling.draws import Draws
from masa.sampling.kernels import predictive as kernel
from masa.sampling.kernels.drawing import run_key
from masa.sampling.layout import Layout
from masa.sampling.predictive import Predictive


def recorded(target: Codes) -> kernel.Recorded:
    """Give what each item would answer, without confidences."""
    return kernel.Recorded((target >= 0).astype(np.float64), target, np.full(len(target), np.nan))


def asked(items: Codes, target: Codes) -> kernel.Asked:
    """Give items that were asked, without confidences, each as likely as any."""
    changed = (target >= 0).astype(np.float64)
    none = np.full(len(items), np.nan)
    return kernel.Asked(items.astype(np.int32), changed, target, none, np.full(len(items), 0.01))


NO_GROUPS = kernel.Audit(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0))


class Case:
    """A small API that changed.

    Three labels, answers that follow them, changes that follow confidence and a word.
    """

    def __init__(
        self, items: int = 400, *, share: float = 0.15, seed: int = 0, weight: Floats | None = None
    ) -> None:
        rng = np.random.default_rng(seed)
        label = rng.integers(0, 3, items)
        old = np.where(rng.random(items) < 0.7, label, rng.integers(0, 4, items))
        self.confidence = np.round(rng.random(items), 2)
        texts = [" ".join(rng.choice(["a", "b", "c", "odd", "d"], 3)) for _ in range(items)]
        likely = np.exp(-3 * self.confidence) * np.array(
            [3.0 if "odd" in text else 1.0 for text in texts]
        )
        hit = rng.random(items) < share * likely / likely.mean()
        new = np.where(hit, rng.integers(0, 4, items), old)
        names = ["x", "y", "z", "other"]
        self.data = Dataset.of(
            [names[i] for i in label],
            predictions={"old": [names[i] for i in old], "new": [names[i] for i in new]},
        )
        self.new, self.old = self.data.predictions["new"], self.data.predictions["old"]
        self.strata = Strata.build(self.data.label)
        self.weight = np.full(items, 1.0 / items) if weight is None else weight
        self.features = Features(self.old, self.confidence, words=Words.of(texts))
        self.layout = Layout.of(
            self.data.label, self.features, weight=self.weight, new=self.new.values
        )
        self.target = self.layout.targets(np.arange(items), self.new)

    @property
    def shift(self) -> Floats:
        result = np.zeros((len(self.layout.labels), len(self.layout.names)))
        for item, target in enumerate(self.target):
            if target >= 0:
                label = self.data.label.codes[item]
                result[label, target] += self.weight[item]
                result[label, self.layout.old[item]] -= self.weight[item]
        return result

    def simulated(self, runs: int, stops: list[int]) -> tuple[Floats, Floats]:
        """Give the errors (runs, stops) and the mean estimates (stops, L, P)."""
        layout, shift = self.layout, self.shift
        errors, sums = np.zeros((runs, len(stops)), np.float32), np.zeros((len(stops), shift.size))
        keys = np.array([run_key(1, run) for run in range(runs)], np.uint64)
        checkpoints = np.array([(stop, row) for row, stop in enumerate(stops)], np.int64)
        kernel.simulate(
            layout.items, layout.cells, layout.goal, layout.prior, layout.canaries(0)[None, :], layout.rest,
            recorded(self.target), shift, keys, checkpoints, errors, sums, np.zeros(runs, np.int64),
            NO_GROUPS, np.zeros((len(stops), 0)),
        )  # fmt: skip
        return errors.astype(np.float64), (sums / runs).reshape(len(stops), *shift.shape)


def play(source: Predictive, case: Case, queries: int, rng: np.random.Generator) -> list[Query]:
    """Ask so many, answering in a random order with some outstanding, as a network does."""
    asked: list[Query] = []
    waiting: list[Query] = []
    while len(asked) < queries:
        more = source.ask(min(int(rng.integers(1, 9)), queries - len(asked)))
        asked += more
        waiting += more
        if not waiting:
            break
        rng.shuffle(waiting)
        for query in waiting[: 1 + len(waiting) // 2]:
            source.tell(Answer(query.item, case.new.values[case.new.codes[query.item]]))
        waiting = waiting[1 + len(waiting) // 2 :]
    for query in waiting:
        source.tell(Answer(query.item, case.new.values[case.new.codes[query.item]]))
    return asked


def live_layout(case: Case) -> Layout:
    """As a live run sees it: the new answers' names are not known beforehand."""
    return Layout.of(case.data.label, case.features, weight=case.weight)


def draws_of(queries: list[Query]) -> Draws:
    return Draws.of([draw for query in queries if (draw := query.draw) is not None])


def answers_to(
    case: Case, queries: list[Query]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Column]:
    places = np.array([query.item for query in queries], np.int64)
    return places, Column("new", case.new.values, case.new.codes[places])
