"""Strata with shrunken variances against a slow twin, and what objectives make of them."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from masa.data.dataset import Dataset
from masa.data.features import Features
from masa.data.strata import Strata, adaptive_strata, paired_strata
from masa.errors import UsageError
from masa.inference.counts import true_matrix
from masa.records import Answer, Column, Floats
from masa.replays.replay import replay
from masa.sampling.kernels import shrunken as kernel
from masa.sampling.shrunken import Shrunken, designed
from masa.settings import Objective

OBJECTIVES = [
    Objective(),
    Objective.read({"l0": {"l1": 3.0}, "*": {"l2": 0.5}}),
    Objective.read("accuracy"),
    Objective.read({"cost": {"l0": {"l1": 2.0}, "l1": {"*": 1.0, "l1": 0.0}}}),
]


class Twin:
    """One assessment by the book: every sum afresh, every time."""

    def __init__(
        self, design: kernel.ShrunkenDesign, new: list[int], old: list[int], key: int
    ) -> None:
        self.design, self.new, self.old, self.key = design, new, old, key
        self.strata = [
            list(range(first, last))
            for first, last in zip(design.start[:-1], design.start[1:], strict=True)
        ]
        self.asked: list[list[int]] = [[] for _ in self.strata]
        self.renewed, self.common, self.coefficient = 0, 0.0, 0.0
        self.renew()

    def vectors(self, s: int, coefficient: float) -> Floats:
        """The residuals, new less coefficient times old, with the goal's weights.

        (n, P) or (n, 1).
        """
        design, weights = self.design, self.design.goal[self.design.label[s]]
        rows = []
        for position in self.asked[s]:
            row = np.zeros(len(weights))
            row[self.new[position]] += weights[self.new[position]]
            if self.old[position] >= 0:
                row[self.old[position]] -= coefficient * weights[self.old[position]]
            rows.append([row.sum()] if design.linear else row)
        return np.array(rows)

    def squares(self, s: int, coefficient: float) -> float:
        found = self.vectors(s, coefficient)
        return float(((found - found.mean(axis=0)) ** 2).sum())

    def renew(self) -> None:
        best = [0.0, 0.0]
        for s, asked in enumerate(self.asked):
            n = len(asked)
            if n >= 2:
                factor = self.design.weight[s] ** 2 * (1 / n - 1 / len(self.strata[s])) / (n - 1)
                y, less = self.vectors(s, 0.0), self.vectors(s, 1.0)
                x = y - less
                best[0] += factor * float(((y - y.mean(axis=0)) * (x - x.mean(axis=0))).sum())
                best[1] += factor * float(((x - x.mean(axis=0)) ** 2).sum())
        self.coefficient = min(1.0, max(0.0, best[0] / best[1])) if best[1] > 1e-300 else 0.0
        some = [s for s, asked in enumerate(self.asked) if asked]
        answers = sum(map(len, self.asked))
        scale = (
            sum(float((self.vectors(s, 0.0) ** 2).sum()) for s in some) / answers
            if answers
            else 1.0
        )
        total = sum(self.squares(s, self.coefficient) for s in some)
        self.common = (total + scale) / (sum(len(self.asked[s]) - 1 for s in some) + 2)
        self.renewed = answers

    def step(self) -> int | None:
        scores = []
        for s, asked in enumerate(self.asked):
            n, priority = len(asked), self.design.priority[s]
            if priority == 0 or n == len(self.strata[s]):
                scores.append(-1.0)
            elif n < 2:
                scores.append(1e6 * (2 - n) + priority)
            else:
                shrunk = (self.squares(s, self.coefficient) + self.design.kappa * self.common) / (
                    n - 1 + self.design.kappa
                )
                scores.append(priority * sqrt(shrunk / (n * (n + 1))))
        if max(scores) < 0:
            return None
        s = int(np.argmax(np.round(scores, 15)))
        left, n = self.strata[s], len(self.asked[s])
        place = n + int(naive.random(self.key, s, n) * (len(left) - n))
        left[n], left[place] = left[place], left[n]
        self.asked[s].append(left[n])
        if sum(map(len, self.asked)) > 1.01 * self.renewed:
            self.renew()
        return left[n]

    def matrix(self) -> Floats:
        labels = self.design.goal.shape[0]
        result = np.zeros(self.design.goal.shape)
        weight, covered = np.zeros(labels), np.zeros(labels)
        for s, asked in enumerate(self.asked):
            weight[self.design.label[s]] += self.design.weight[s]
            covered[self.design.label[s]] += self.design.weight[s] if asked else 0.0
        for s, asked in enumerate(self.asked):
            label = self.design.label[s]
            for position in asked:
                each = self.design.weight[s] * weight[label] / covered[label] / len(asked)
                result[label, self.new[position]] += each
                if self.old[position] >= 0:
                    result[label, self.old[position]] -= self.coefficient * each
            if asked:
                result[label] += (
                    self.coefficient
                    * self.design.weight[s]
                    * weight[label]
                    / covered[label]
                    * self.design.baseline_share[s]
                )
        return result


@settings(max_examples=40, deadline=None)
@given(
    items=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=60
    ),
    objective=st.sampled_from(OBJECTIVES),
    use_old=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_the_kernel_equals_its_twin_draw_by_draw(
    items: list[tuple[int, int, int]], objective: Objective, use_old: bool, seed: int
) -> None:
    items = [(0, 0, 1), (1, 1, 1), *items]
    data = Dataset.of(
        [f"l{label}" for label, _, _ in items],
        predictions={
            "old": [f"l{old}" for _, old, _ in items],
            "new": [f"l{new}" for _, _, new in items],
        },
    )
    old, new = data.predictions["old"], data.predictions["new"]
    strata = Strata.build(data.label, by=old, few=6) if use_old else Strata.build(data.label)
    names = ("l0", "l1", "l2", "l3")
    design = designed(strata, names, old=old if use_old else None, objective=objective)
    said = [int(new.values[code][1:]) for code in new.codes[strata.items]]
    was = [int(old.values[code][1:]) if use_old else -1 for code in old.codes[strata.items]]
    twin = Twin(design, said, was, naive.run_key(seed, 0))
    stops = sorted({1, 2, 5, len(items) // 2, len(items)})
    truth = np.zeros(design.goal.shape)
    keys = np.array([naive.run_key(seed, 0)], np.uint64)
    for stop in stops:
        while sum(map(len, twin.asked)) < stop and twin.step() is not None:
            pass
        errors, sums = np.zeros((1, 1), np.float32), np.zeros((1, truth.size))
        kernel.simulate(
            design, kernel.new_state(design), np.array(said, np.int32), np.array(was, np.int32), np.zeros(len(said), np.bool_),
            truth, keys, np.array([(stop, 0)], np.int64), errors, sums, np.zeros(1, np.int64),
        )  # fmt: skip
        np.testing.assert_allclose(sums[0].reshape(truth.shape), twin.matrix(), atol=1e-9)


def test_small_cells_are_put_together_within_their_label() -> None:
    label = Column("label", ("a", "b"), np.repeat([0, 1], 100).astype(np.int32))
    old = Column(
        "old", ("x", "y", "z"), np.array([0] * 90 + [1] * 5 + [2] * 5 + [1] * 100, np.int32)
    )
    strata = paired_strata(label, Features(old, np.arange(200.0)))
    assert strata.kind.tolist() == [-1, 0, 0, 0, 1, 1, 1]
    assert strata.size.tolist() == [10, 30, 30, 30, 33, 34, 33]
    assert strata.weight.sum() == pytest.approx(1.0)
    few = adaptive_strata(label, old, difficulty=np.arange(200.0))
    assert set(few.level.tolist()) == {0, 1}


@pytest.mark.parametrize("method", ["paired", "adaptive", "predictive", "auto"])
def test_all_answers_give_the_exact_matrix_and_nothing_changed_costs_little(method: str) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 300)
    old = np.where(rng.random(300) < 0.8, label, rng.integers(0, 3, 300))
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in old], "new": [f"l{i}" for i in old]},
    )
    curve = replay(data, new="new", old="old", methods=[method], budgets=[300], runs=20).curves[0]
    assert curve.error_quantile == pytest.approx((0.0,), abs=1e-9)
    assert curve.first_change is None
    if method != "adaptive":
        assert curve.queries_for_target is not None
        assert curve.queries_for_target < 60


def test_the_sampler_asks_what_the_replay_asks_one_at_a_time_and_counts_what_is_under_way() -> None:
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, 400)
    old = np.where(rng.random(400) < 0.7, label, 1 - label)
    new = np.where(rng.random(400) < 0.1, 1 - old, old)
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in old], "new": [f"l{i}" for i in new]},
    )
    said, was = data.predictions["new"], data.predictions["old"]
    strata = paired_strata(data.label, Features(was))
    one, many = (Shrunken(strata, old=was, seed=3) for _ in range(2))
    asked = []
    for _ in range(120):
        query = one.ask()[0]
        one.tell(Answer(query.item, said.values[said.codes[query.item]]))
        asked.append(query.item)
    assert len(set(asked)) == 120
    together = many.ask(120)
    assert len({query.item for query in together}) == 120
    assert len(many.pending) == 120
    again = Shrunken(strata, old=was, seed=3)
    for item in sorted(asked):
        again.tell(Answer(item, said.values[said.codes[item]]))
    left = {query.item for query in again.ask(1000)}
    assert left == set(range(400)) - set(asked)
    many.tell(Answer(together[0].item, "never heard"))
    assert len(many.pending) == 119
    with pytest.raises(ValueError, match="asked before"):
        again.sent(together[0])


def test_weights_steer_queries_and_are_what_errors_are_measured_by() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 2000)
    new = np.where(rng.random(2000) < 0.3, 1 - label, label)
    data = Dataset.of([f"l{i}" for i in label], predictions={"new": [f"l{i}" for i in new]})
    plain, only = (
        replay(
            data, new="new", methods=["masa", "adaptive"], budgets=[200], runs=400, weights=weights
        )
        for weights in (None, {"*": {"*": 0}, "l0": {"l0": 1, "l1": 1}})
    )
    masa, adaptive = (curve.mean_squared_error[0] for curve in only.curves)
    assert adaptive < 0.7 * masa  # All queries go to the label that counts.
    assert masa < 0.7 * plain.curves[0].mean_squared_error[0]
    accuracy = replay(
        data, new="new", methods=["adaptive"], budgets=[200], runs=400, weights="accuracy"
    ).curves[0]
    assert accuracy.mean_squared_error[0] == pytest.approx(0.3 * 0.7 / 200 * 0.9, rel=0.25)


def test_bad_weights_are_told() -> None:
    for weights in (
        "nothing.json",
        {},
        {"a": 1},
        {"a": {"b": "x"}},
        {"a": {"b": -1}},
        {"cost": {"a": {"b": float("nan")}}},
    ):
        with pytest.raises(UsageError):
            Objective.read(weights)
    with pytest.raises(UsageError, match="which no item has"):
        Objective.read({"zzz": {"b": 1}}).table(("a",), ("b",))
    with pytest.raises(UsageError, match="0 everywhere"):
        Objective.read({"*": {"*": 0}}).table(("a",), ("b",))
    assert Objective.read('{"a": {"*": 2}}').table(("a", "b"), ("a", "b")).tolist() == [
        [2.0, 2.0],
        [1.0, 1.0],
    ]


def test_prices_steer_queries() -> None:
    label = Column("label", ("a", "b"), np.repeat([0, 1], 500).astype(np.int32))
    cost = np.where(label.codes == 0, 100.0, 1.0)
    sampler = Shrunken(Strata.build(label), cost=cost)
    rng = np.random.default_rng(0)
    asked = []
    for _ in range(200):
        query = sampler.ask()[0]
        sampler.tell(Answer(query.item, str(rng.integers(0, 2))))
        asked.append(query.item < 500)
    assert 10 <= sum(asked) <= 30


def test_the_coefficient_is_what_the_estimate_uses() -> None:
    """In strata of several old answers these explain the new ones.

    If nothing changed, two answers are as good as all.
    """
    rng = np.random.default_rng(2)
    label = Column("label", ("l0", "l1"), rng.integers(0, 2, 500).astype(np.int32))
    old = Column("old", ("l0", "l1"), rng.integers(0, 2, 500).astype(np.int32))
    strata = Strata.build(label)
    design = designed(strata, ("l0", "l1"), old=old, objective=Objective())
    errors, sums = np.zeros((1, 1), np.float32), np.zeros((1, 4))
    said = old.codes[strata.items]
    truth = true_matrix(strata, old).values
    kernel.simulate(
        design, kernel.new_state(design), said, said, np.zeros(500, np.bool_), truth, np.array([5], np.uint64),
        np.array([(20, 0)], np.int64), errors, sums, np.zeros(1, np.int64),
    )  # fmt: skip
    assert errors[0, 0] < 1e-9
