"""A run that changes its mind: after a rewrite it goes on without the old answers."""

from typing import Any

import numpy as np
import pytest

import masa
from changed_api import recorded
from masa.data.dataset import Dataset
from masa.data.features import Features
from masa.data.strata import adaptive_strata
from masa.inference.counts import true_matrix
from masa.inference.inverse_probability import inverse_probability_estimate
from masa.inference.sample import EntryWeights, Sample
from masa.records import Answer, Column, Floats, Query
from masa.sampling.draws import Draws
from masa.sampling.kernels import predictive as kernel
from masa.sampling.kernels.drawing import run_key
from masa.sampling.layout import Layout
from masa.sampling.predictive import Predictive
from masa.sampling.shrunken import Shrunken
from masa.sampling.switch import Switch

NAMES = ("x", "y", "z", "other")


class Rewritten:
    """An API that was right in half of the cases and is nearly always now, or one of which a few answers changed."""

    def __init__(
        self, items: int = 600, *, rewritten: bool = True, right: float = 0.93, seed: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        label = rng.integers(0, 3, items)
        old = np.where(rng.random(items) < 0.5, label, rng.integers(0, 4, items))
        better = np.where(rng.random(items) < right, label, rng.integers(0, 4, items))
        new = (
            better
            if rewritten
            else np.where(rng.random(items) < 0.05, rng.integers(0, 4, items), old)
        )
        self.data = Dataset.of(
            [NAMES[i] for i in label],
            predictions={"old": [NAMES[i] for i in old], "new": [NAMES[i] for i in new]},
        )
        self.old, self.new = self.data.predictions["old"], self.data.predictions["new"]
        self.features = Features(self.old, np.round(rng.random(items), 2))
        self.strata = adaptive_strata(self.data.label, None, difficulty=self.features.confidence)
        self.weight = self.strata.item_weight

    def layout(self, new: tuple[str, ...] = ()) -> Layout:
        return Layout.of(
            self.data.label, self.features, weight=self.weight, rest=self.strata, new=new
        )

    def source(self, seed: int = 0) -> Switch:
        return Switch(
            Predictive(self.layout(), self.features, seed=seed),
            lambda: Shrunken(self.strata, seed=seed),
        )

    def answer(self, item: int) -> Answer:
        return Answer(item, self.new.values[self.new.codes[item]])

    def play(self, source: Switch, queries: int) -> list[Query]:
        """Ask one at a time."""
        asked: list[Query] = []
        while len(asked) < queries and (more := source.ask(1)):
            asked += more
            source.tell(self.answer(more[0].item))
        return asked

    def estimate(self, asked: list[Query]) -> Floats:
        """Give the estimated new matrix, with the answers by name."""
        places = np.array([query.item for query in asked], np.int64)
        draws = Draws.of([draw for query in asked if (draw := query.draw) is not None])
        answers = Column("new", self.new.values, self.new.codes[places])
        return (
            inverse_probability_estimate(
                self.layout(), self.strata, places, answers, draws, old=self.old
            )
            .shift.new.on(NAMES)
            .values
        )


@pytest.fixture(scope="module")
def case() -> Rewritten:
    return Rewritten()


def test_after_a_rewrite_the_rest_is_drawn_from_strata(case: Rewritten) -> None:
    asked = case.play(case.source(), 300)
    inside = [query for query in asked if query.probability == 0.0]
    assert len({query.item for query in asked}) == 300
    assert 200 < len(inside) < 260
    assert asked[-len(inside) :] == inside
    assert {query.batch for query in inside} == {
        1 + max(query.batch or 0 for query in asked if query.probability)
    }
    assert {query.stratum for query in inside} == set(range(len(case.strata)))


def test_after_a_few_changes_it_is_not() -> None:
    few = Rewritten(rewritten=False)
    asked = few.play(few.source(), 600)
    assert len(asked) == 600
    assert all(query.probability for query in asked)


def test_a_run_goes_on_from_its_journal_after_the_turn_as_before_it(case: Rewritten) -> None:
    whole = case.play(case.source(seed=3), 200)
    turn = next(n for n, query in enumerate(whole) if query.probability == 0.0)
    for asked in (turn - 20, turn, turn + 1, turn + 60):
        again = case.source(seed=3)
        for query in whole[:asked]:
            again.sent(query)
            if query is not whole[asked - 1]:
                again.tell(case.answer(query.item))
        assert again.pending == [whole[asked - 1]]
        again.tell(case.answer(whole[asked - 1].item))
        assert case.play(again, 200 - asked) == whole[asked:]


def test_all_items_give_the_true_matrix_and_none_is_asked_twice(case: Rewritten) -> None:
    asked = case.play(case.source(), 10_000)
    assert sorted(query.item for query in asked) == list(range(600))
    np.testing.assert_allclose(
        case.estimate(asked), true_matrix(case.strata, case.new).on(NAMES).values, atol=1e-9
    )


def test_a_run_estimates_as_the_replays_do(case: Rewritten) -> None:
    """Both err alike, and on the average by little.

    As little as strata that are chosen by their answers do.
    """
    layout, runs = case.layout(case.new.values), 400
    target = layout.targets(np.arange(600), case.new)
    truth = true_matrix(case.strata, case.new).on(layout.names).values
    before = true_matrix(case.strata, case.old).on(layout.names).values
    errors, sums = np.zeros((runs, 1), np.float32), np.zeros((1, truth.size))
    keys = np.array([run_key(1, run) for run in range(runs)], np.uint64)
    asked = kernel.simulate(
        layout.items, layout.cells, layout.goal, layout.prior, layout.canaries(0)[None, :], layout.rest,
        recorded(target), truth - before, keys, np.array([(200, 0)], np.int64),
        errors, sums, np.zeros(runs, np.int64),
        kernel.Audit(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0)), np.zeros((1, 0)),
    )  # fmt: skip
    assert asked == 200 * runs
    spread = float(np.mean(errors.astype(np.float64) ** 2))
    bias = before + (sums[0] / runs).reshape(truth.shape) - truth
    assert float((bias**2).sum()) < 0.2 * spread
    live = [case.estimate(case.play(case.source(seed=seed), 200)) for seed in range(60)]
    true = true_matrix(case.strata, case.new).on(NAMES).values
    squared = float(np.mean([np.sum((found - true) ** 2) for found in live]))
    assert 0.7 < squared / spread < 1.4


def test_the_user_is_told_and_may_forbid_it(case: Rewritten) -> None:
    """Strata serve the whole matrix, so there is a switch only where its error is aimed at."""
    options: dict[str, Any] = {"baseline": "old", "budget": 200, "store": None}
    turned = masa.assess(case.data, "replay:new", target_error=1e-6, **options)
    assert any("switched to method adaptive at answer" in note for note in turned.notes)
    assert turned.method == "predictive"
    assert turned.accuracy_change is not None
    assert (
        turned.accuracy_change.low < turned.accuracy_change.estimate < turned.accuracy_change.high
    )
    for plain in (
        masa.assess(case.data, "replay:new", **options),
        masa.assess(case.data, "replay:new", method="predictive", target_error=1e-6, **options),
    ):
        assert not any("method adaptive" in note for note in plain.notes)


def test_what_was_sent_before_the_turn_is_not_drawn_after_it(case: Rewritten) -> None:
    """Calls that failed before the turn are asked again when a run goes on, and only once."""
    whole = case.play(case.source(seed=3), 200)
    turn = next(n for n, query in enumerate(whole) if query.probability == 0.0)
    failed = {query.item for query in whole[:turn:7]}
    again = case.source(seed=3)
    for query in whole[: turn + 10]:
        again.sent(query)
        if query.item not in failed:
            again.tell(case.answer(query.item))
    rest = again.ask(10_000)
    assert not failed & {query.item for query in rest}
    assert len(rest) + turn + 10 == 600
    for item in failed:
        again.tell(case.answer(item))
    assert {query.item for query in again.pending} == {query.item for query in rest}


def test_intervals_hold_after_the_turn_though_mistakes_are_rare() -> None:
    """Strata without a mistake are asked little, and may have some."""
    rare = Rewritten(3000, seed=2, right=0.985)
    truth = rare.data.label.values
    codes = np.array([rare.new.values.index(name) for name in truth])[rare.data.label.codes]
    old = np.array([rare.old.values.index(name) for name in truth])[rare.data.label.codes]
    change = float((rare.new.codes == codes).mean() - (rare.old.codes == old).mean())
    inside = []
    for seed in range(16):
        found = masa.assess(
            rare.data,
            "replay:new",
            baseline="old",
            budget=700,
            store=None,
            seed=seed,
            target_error=1e-6,
        )
        assert found.accuracy_change is not None
        assert any("method adaptive" in note for note in found.notes)
        inside.append(found.accuracy_change.low <= change <= found.accuracy_change.high)
    assert np.mean(inside) >= 0.9
    zeros = np.zeros(40, np.int64)
    stratum = np.repeat([0, 1], 20)
    halves, fraction = np.array([0.5, 0.5]), np.array([1 / 20, 0.0])
    sample = Sample.by_strata(
        np.arange(40),
        zeros,
        zeros,
        None,
        coefficient=0.0,
        stratum=stratum,
        share=halves,
        fraction=fraction,
    )
    room = sample.of(EntryWeights(np.eye(2)))
    assert room.unit == pytest.approx(0.5 / 20)
    assert 0.08 < room.half_width(1.96) < 0.12
