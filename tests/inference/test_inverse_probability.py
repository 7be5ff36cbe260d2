"""What answers to items that were drawn with known inclusion probabilities say of the shift."""

import numpy as np
import pytest

import masa
from changed_api import Case, answers_to, draws_of, live_layout, play
from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.inference.counts import make_possible, true_matrix
from masa.inference.inverse_probability import inverse_probability_estimate
from masa.records import Answer, Column
from masa.sampling.kernels import predictive as kernel
from masa.sampling.predictive import Predictive


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


def test_the_estimate_of_a_run_is_that_of_the_replays(case: Case) -> None:
    asked = play(
        Predictive(case.layout, case.features, seed=2), case, 160, np.random.default_rng(0)
    )
    places, answers = answers_to(case, asked)
    found = inverse_probability_estimate(
        case.layout, case.strata, places, answers, draws_of(asked), old=case.old
    )
    batch = np.array([query.batch for query in asked], np.int32)
    sizes = np.array(
        [
            next(query.batch_size for query in asked if query.batch == e)
            for e in range(batch.max() + 1)
        ]
    )
    left = 400 - np.concatenate(([0], np.cumsum(np.bincount(batch))[:-1]))
    counts, _ = kernel.weigh(
        batch, np.array([query.probability for query in asked]), sizes, left, 0
    )
    shift = np.zeros_like(case.shift)
    kernel.add_up(
        case.layout.items,
        case.layout.cells,
        places.astype(np.int32),
        case.target[places],
        counts,
        shift,
    )
    names = case.layout.names
    expected = true_matrix(case.strata, case.old).on(names).values + shift
    make_possible(expected, case.strata.label_weight, case.strata.labels, names)
    np.testing.assert_allclose(found.shift.new.on(names).values, expected, atol=1e-12)
    assert found.shift.new.values.sum() == pytest.approx(1.0)


def test_the_estimate_knows_how_far_it_is_off() -> None:
    case = Case(1500, share=0.1, seed=4)
    truth = true_matrix(case.strata, case.new)
    squared, known, inside = [], [], []
    for seed in range(60):
        asked = play(
            Predictive(live_layout(case), case.features, seed=seed),
            case,
            300,
            np.random.default_rng(seed),
        )
        places, answers = answers_to(case, asked)
        found = inverse_probability_estimate(
            live_layout(case), case.strata, places, answers, draws_of(asked), old=case.old
        )
        names = truth.predictions
        error = float(np.linalg.norm(found.shift.new.on(names).values - truth.values))
        squared.append(error**2)
        known.append(found.matrix.error2)
        inside.append(error <= found.matrix.bound(0.95))
    assert 0.75 < np.mean(known) / np.mean(squared) < 1.35
    assert np.mean(inside) >= 0.9


def test_an_answer_never_heard_before_is_one_of_the_matrix() -> None:
    case = Case(200)
    source = Predictive(live_layout(case), case.features)
    asked = source.ask(60)
    for query in asked:
        source.tell(Answer(query.item, "surprise"))
    while more := source.ask(50):
        asked += more
        for query in more:
            source.tell(Answer(query.item, "surprise"))
    assert len(asked) == 200
    places = np.array([query.item for query in asked], np.int64)
    answers = Column("new", ("surprise",), np.zeros(200, np.int32))
    found = inverse_probability_estimate(
        live_layout(case), case.strata, places, answers, draws_of(asked), old=case.old
    )
    assert found.shift.new.values[
        :, found.shift.new.predictions.index("surprise")
    ].sum() == pytest.approx(1.0)
    assert found.matrix.error2 == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "right", "budget"),
    [pytest.param(60, 0.06, 800, marks=pytest.mark.slow), (40, 0.4, 400)],
)
def test_bounds_hold_where_most_cells_have_few_answers(
    labels: int, right: float, budget: int
) -> None:
    rng = np.random.default_rng(1)
    items = 1500
    label = rng.integers(0, labels, items)
    old = np.where(rng.random(items) < right, label, rng.integers(0, labels, items))
    new = np.where(rng.random(items) < 0.3, rng.integers(0, labels, items), old)
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in old], "new": [f"l{i}" for i in new]},
    )
    strata = Strata.build(data.label)
    before, now = (true_matrix(strata, data.predictions[name]) for name in ("old", "new"))
    truth = masa.Shift(before, now)
    bound, interval = [], []
    for seed in range(20):
        found = masa.assess(
            data, "replay:new", baseline="old", budget=budget, store=None, seed=seed
        )
        assert found.shift is not None
        assert found.error_bound is not None
        assert found.accuracy_change is not None
        bound.append(found.shift.error(truth) <= found.error_bound)
        interval.append(
            found.accuracy_change.low <= truth.accuracy.change <= found.accuracy_change.high
        )
    assert np.mean(bound) >= 0.9
    assert np.mean(interval) >= 0.8  # 0.915 of 200 runs with 40 labels and 400 answers, else 0.95.


def test_accuracy_is_unbiased_where_entries_are_many_and_small() -> None:
    """After a rewrite with many labels most entries are guesses.

    What cannot be is not made up for by right answers.
    """
    rng = np.random.default_rng(0)
    label = rng.integers(0, 60, 2000)
    old = np.where(rng.random(2000) < 0.4, label, rng.integers(0, 60, 2000))
    new = np.where(rng.random(2000) < 0.8, label, rng.integers(0, 60, 2000))
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in old], "new": [f"l{i}" for i in new]},
    )
    truth = float((new == label).mean() - (old == label).mean())
    off = []
    for seed in range(16):
        found = masa.assess(
            data,
            "replay:new",
            baseline="old",
            budget=400,
            store=None,
            seed=seed,
            method="predictive",
        )
        assert found.accuracy_change is not None
        off.append(found.accuracy_change.estimate - truth)
    assert abs(np.mean(off)) < 3.0 * np.std(off) / np.sqrt(len(off)) + 0.002


def test_labels_without_answers_change_like_the_others_and_may_be_anything() -> None:
    """Of accuracy the answers about other labels tell, of the labels themselves nothing does."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 400, 1200)
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in label], "new": [f"l{i}" for i in label]},
    )
    found = masa.assess(data, "replay:new", baseline="old", budget=100, store=None)
    assert found.shift is not None
    assert found.accuracy_change is not None
    assert found.shift.accuracy.change == pytest.approx(0.0)
    assert -0.05 < found.accuracy_change.low < -0.02
    assert found.verdict == "undecided"
    assert any("estimated from how the other labels" in note for note in found.notes)
    assert found.readings is not None
    recalls = found.readings.recall.values()
    assert sum(recall.low == -1.0 for recall in recalls) > 250
