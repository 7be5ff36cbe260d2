"""Weights, costs and clues of items, and whom they make predictive sampling ask."""

from dataclasses import replace

import numpy as np

import masa
from changed_api import Case, asked, live_layout, play
from masa.data.dataset import Dataset
from masa.data.features import Features
from masa.records import Column
from masa.sampling.kernels import predictive as kernel
from masa.sampling.layout import Layout
from masa.sampling.predictive import Predictive, changed


def test_items_of_no_weight_are_not_asked() -> None:
    weight = np.full(300, 1 / 150)
    weight[::2] = 0.0
    case = Case(300, weight=weight)
    asked = play(Predictive(live_layout(case), case.features), case, 300, np.random.default_rng(0))
    assert len(asked) == 150
    assert all(query.item % 2 for query in asked)


def test_dear_items_are_asked_less_often() -> None:
    case = Case(600)
    cost = np.ones(600)
    cost[::2] = 16.0
    layout = Layout.of(
        case.data.label, case.features, weight=case.weight, cost=cost, new=case.new.values
    )
    picked, chance = kernel.next_batch(
        layout.items, layout.cells, layout.goal, layout.prior, asked(np.zeros(0, np.int32), np.zeros(0, np.int32)),
        np.zeros(600, np.bool_), np.uint64(1), 1,
    )  # fmt: skip
    dear = picked % 2 == 0
    assert 2 * dear.sum() < (~dear).sum()
    assert chance.min() > 0


def test_free_answers_and_moved_confidences_are_clues() -> None:
    old = Column("old", ("a", "b"), np.array([0, 0, 1, 1], np.int32))
    other = Column("other", ("b", "c"), np.array([0, 1, 0, 1], np.int32))
    assert Features(old, also=(other,)).disagreeing().ravel().tolist() == [1.0, 1.0, 0.0, 1.0]
    target = np.array([-1, -1, 3, -1], np.int32)
    moved = changed(target, np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.5, 0.6, 0.5, np.nan]))
    assert moved[0] == moved[3] == 0.0
    assert moved[2] == 1.0
    assert 0.0 < moved[1] < 1.0


def test_free_items_do_not_crowd_out_the_others() -> None:
    rng = np.random.default_rng(0)
    free = np.arange(3000) % 2 == 0
    label = rng.integers(0, 2, 3000)
    new = np.where(~free & (rng.random(3000) < 0.3), 1 - label, label)
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in label], "new": [f"l{i}" for i in new]},
    )
    data = replace(data, cost=np.where(free, 0.0, 1.0))
    for method in ("predictive", "paired", "adaptive"):
        found = masa.assess(
            data, "replay:new", baseline="old", budget=600, store=None, method=method
        )
        assert found.verdict == "changed", method


def test_canaries_alone_make_no_estimate_and_one_answer_no_verdict() -> None:
    case = Case(600, seed=3)
    data = replace(case.data, numbers={"sure": case.confidence})
    found = masa.assess(
        data, "replay:new", baseline="old", old_confidence="sure", budget=1, store=None
    )
    assert found.verdict == "undecided"
