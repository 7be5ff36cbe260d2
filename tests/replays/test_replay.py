"""Replays: many assessments on recorded predictions."""

from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from masa.data.dataset import Dataset
from masa.errors import UsageError
from masa.records import Replay
from masa.replays.curve import _bias_share, _grid, cores
from masa.replays.replay import replay


def data(items: int = 600, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, items)
    old = np.where(rng.random(items) < 0.9, label, rng.integers(0, 5, items))
    new = np.where(rng.random(items) < 0.7, old, rng.integers(0, 5, items))
    return Dataset.of(
        label.tolist(),
        predictions={"old": old.tolist(), "new": new.tolist()},
        difficulty=rng.random(items),
    )


def test_the_same_seed_gives_the_same_numbers_whatever_the_workers() -> None:
    def numbers(result: Replay) -> object:
        return [
            (c.mean_squared_error, c.error_quantile, c.bias_share, c.queries_for_target, c.path)
            for c in result.curves
        ]

    one = replay(data(), new="new", old="old", runs=100, seed=4, target_error=0.05)
    assert numbers(
        replay(data(), new="new", old="old", runs=100, seed=4, target_error=0.05, workers=5)
    ) == numbers(one)
    assert numbers(
        replay(data(), new="new", old="old", runs=100, seed=5, target_error=0.05)
    ) != numbers(one)
    assert cores() >= 1


def test_asking_every_item_once_leaves_no_error() -> None:
    result = replay(data(), new="new", runs=20, budgets=[600], target_error=1e-6)
    for curve in result.curves:
        assert curve.error_quantile[0] < 1e-7
        assert curve.queries_for_target is not None
        assert curve.queries_for_target <= 600


def test_queries_for_the_target_are_the_first_that_reach_it() -> None:
    """On a grid no coarser than 2% around the answer, and nothing before it reaches the target."""
    rng = np.random.default_rng(0)
    two = Dataset.of(
        rng.integers(0, 2, 600).tolist(), predictions={"new": rng.integers(0, 2, 600).tolist()}
    )
    for known, target, confidence in (
        (data(), 0.005, 0.95),
        (data(), 0.02, 0.95),
        (data(), 0.4, 0.95),
        (two, 0.01, 0.5),
    ):
        options: dict[str, Any] = {"target_error": target, "confidence": confidence}
        for curve in replay(
            known, new="new", runs=200, replacement=True, budgets=[50], **options
        ).curves:
            needed = curve.queries_for_target
            assert needed is not None
            below = [point for point in curve.path if point.queries < needed]
            at = next(point for point in curve.path if point.queries == needed)
            assert at.error_quantile <= target
            assert all(point.error_quantile > target for point in below)
            assert not below or needed <= max(1.02 * below[-1].queries, below[-1].queries + 1)


def test_the_range_holds_the_answer_and_narrows_with_runs() -> None:
    wide, narrow = (
        replay(
            data(), new="new", runs=runs, target_error=0.02, replacement=True, methods=["masa"]
        ).curves[0]
        for runs in (50, 5000)
    )
    for curve in (wide, narrow):
        low, high = curve.queries_range
        assert low is not None
        assert high is not None
        assert curve.queries_for_target is not None
        assert low <= curve.queries_for_target <= high
    assert np.ptp(np.array(narrow.queries_range, float)) < np.ptp(
        np.array(wide.queries_range, float)
    )


def test_a_quantile_that_the_runs_cannot_show_is_warned_of() -> None:
    assert any(
        "too few" in note
        for note in replay(data(), new="new", runs=50, confidence=0.999, methods=["masa"]).notes
    )


def test_the_chart_has_points_up_to_the_last_budget() -> None:
    """Between two far points a straight line would be drawn that no run ever took."""
    for curve in replay(
        data(items=5000), new="new", runs=5, target_error=0.2, budgets=[4000]
    ).curves:
        queries = np.array([point.queries for point in curve.path])
        assert (queries[1:] <= np.maximum(1.2 * queries[:-1], queries[:-1] + 1)).all()


def test_the_grid_is_fine_where_it_says_so() -> None:
    for low, high in ((1, 1), (1, 10), (5, 3), (100, 5000), (9_999, 10_000)):
        grid = _grid(low, high, [7])
        assert (np.diff(grid) > 0).all()
        assert {1, 7, high} <= set(grid.tolist())
        fine = grid[(grid >= low) & (grid <= high)]
        assert (fine[1:] <= np.maximum(1.02 * fine[:-1], fine[:-1] + 1)).all()


def test_bias_is_shown_where_it_is_and_not_where_it_is_not() -> None:
    """Post-stratified estimates of a few queries lean on zeros for unseen strata.

    Uniform ones are unbiased.
    """
    result = replay(
        data(), new="new", runs=3000, budgets=[3, 100], methods=["uniform", "stratified"]
    )
    uniform, stratified = result.curves
    assert max(share for share in uniform.bias_share if share is not None) < 0.01
    assert stratified.bias_share[0] is not None
    assert stratified.bias_share[0] > 0.1
    assert replay(data(), new="new", runs=1, budgets=[50], methods=["masa"]).curves[
        0
    ].bias_share == (None,)


def test_the_error_of_saying_nothing_changed_is_the_norm_of_the_shift() -> None:
    recorded = data()
    result = replay(recorded, new="new", old="old", runs=10)
    truth = np.zeros((4, 5))
    for name, sign in (("new", 1), ("old", -1)):
        column = recorded.predictions[name]
        names = np.array([int(column.values[code]) for code in column.codes])
        np.add.at(truth, (recorded.label.codes, names), sign / len(recorded))
    assert result.no_change_error == pytest.approx(np.linalg.norm(truth))
    assert replay(recorded, new="new", runs=10).no_change_error is None


def test_a_target_above_that_error_is_warned_of() -> None:
    norm = replay(data(), new="new", old="old", runs=1).no_change_error
    assert norm is not None
    for factor, warned in ((1.001, True), (0.999, False)):
        result = replay(data(), new="new", old="old", runs=10, target_error=norm * factor)
        assert any("proves nothing" in note for note in result.notes) == warned


def test_budgets_too_small_for_masa_are_warned_of() -> None:
    """There are 12 strata, and each is asked twice first."""
    for budget, warned in ((23, True), (24, False)):
        result = replay(data(), new="new", runs=10, budgets=[budget, 300])
        assert any("tells little below 24 queries" in note for note in result.notes) == warned


def test_budgets_beyond_the_items_are_cut_and_said() -> None:
    result = replay(data(), new="new", runs=5, budgets=[100, 5000, 7000], methods=["masa"])
    assert result.curves[0].queries == (100, 600)
    assert any("600 queries at most" in note for note in result.notes)
    assert replay(data(), new="new", runs=5, methods=["masa"]).curves[0].queries == (500,)
    assert replay(data(items=40), new="new", runs=5, methods=["masa"]).curves[0].queries == (40,)


def test_a_target_out_of_reach_is_none() -> None:
    result = replay(
        data(), new="new", runs=3, target_error=1e-6, replacement=True, methods=["uniform", "masa"]
    )
    assert [curve.queries_for_target for curve in result.curves] == [None, None]
    assert (
        sum("does not reach the target within 1,000,000 queries" in note for note in result.notes)
        == 2
    )
    assert result.saving("masa", "uniform") is None


def test_the_search_goes_on_until_the_target_is_reached_or_the_limit_is() -> None:
    """Without exploration two equal answers settle a stratum for good, however many queries follow."""
    rng = np.random.default_rng(0)
    label = np.repeat(["sure", "unsure"], 500)
    wrong = rng.random(1000) < np.where(label == "sure", 0.02, 0.5)
    stuck = Dataset.of(label.tolist(), predictions={"new": np.where(wrong, "x", label).tolist()})
    result = replay(stuck, new="new", runs=40, a=0.0, replacement=True, methods=["masa"])
    assert result.curves[0].path[-1].queries == 1_000_000
    assert result.curves[0].queries_for_target is None


def test_adaptive_accuracy_is_too_high_where_errors_are_rare_and_plain_accuracy_is_not() -> None:
    """A stratum whose first answers are right is asked less, so that its errors are found late."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 10, 2000)
    answer = np.where(rng.random(2000) < 0.1, rng.integers(0, 10, 2000), label)
    rare = Dataset.of(
        label.tolist(), predictions={"new": answer.tolist()}, difficulty=rng.random(2000)
    )
    result = replay(rare, new="new", runs=2000, budgets=[200], methods=["masa", "stratified"])
    masa, plain = result.curves
    (note,) = result.notes
    assert "accuracy that masa finds" in note
    assert "points too high on average: it asks less where its first answers agree" in note
    assert masa.accuracy_bias[0] > 0.003
    assert abs(plain.accuracy_bias[0]) < 4 * 0.02 / 2000**0.5


def test_labels_that_are_not_reached_make_accuracy_too_low_and_that_is_said() -> None:
    label = [str(place) for place in range(50) for _ in range(20)]
    result = replay(
        Dataset.of(label, predictions={"new": label}),
        new="new",
        runs=200,
        budgets=[30],
        methods=["masa", "stratified"],
    )
    assert (
        sum(
            "too low on average: labels without answers count as zero" in note
            for note in result.notes
        )
        == 2
    )


def test_the_bias_that_few_runs_show_is_not_counted() -> None:
    estimates = np.random.default_rng(0).normal(size=(10, 2000))
    mse = float(np.mean(np.sum(estimates**2, axis=1)))
    assert np.sum(estimates.mean(axis=0) ** 2) / mse == pytest.approx(0.1, abs=0.01)
    assert _bias_share(estimates.mean(axis=0), mse, 10) == pytest.approx(0.0, abs=0.01)
    shifted = estimates + 1.0
    mse = float(np.mean(np.sum(shifted**2, axis=1)))
    assert _bias_share(shifted.mean(axis=0), mse, 10) == pytest.approx(0.5, abs=0.02)
    assert _bias_share(np.zeros(2), 0.0, 10) == 0.0


def test_a_perfect_api_is_known_after_one_look_at_each_stratum() -> None:
    label = ["a"] * 50 + ["b"] * 50
    result = replay(
        Dataset.of(label, predictions={"new": label}),
        new="new",
        runs=50,
        methods=["optimal", "masa", "stratified"],
    )
    assert [curve.queries_for_target for curve in result.curves] == [2, 2, 2]


def test_one_item_one_label_one_answer_works() -> None:
    result = replay(Dataset.of(["a"], predictions={"new": ["b"]}), new="new", runs=3)
    assert [curve.queries_for_target for curve in result.curves] == [1] * 6
    again = replay(
        Dataset.of(["a"], predictions={"new": ["b"]}), new="new", runs=3, replacement=True
    )
    assert [curve.error_quantile for curve in again.curves] == [(0.0, 0.0, 0.0)] * 5


def test_theory_is_the_theorems_exploration() -> None:
    """For 4 labels, 3 levels and the largest budget."""
    by_name, by_value, usual = (
        replay(data(), new="new", runs=100, budgets=[100, 400], methods=["masa"], a=a)
        .curves[0]
        .mean_squared_error
        for a in ("theory", 2 * log(4) + log(3) + 9 / 4 * log(400), 1.0)
    )
    assert by_name == by_value != usual


def test_the_answer_does_not_depend_on_the_budgets() -> None:
    """A rare label makes post-stratified sampling far dearer than its closed form says."""
    label = [str(place) for place in range(9) for _ in range(540)] + ["rare"] * 100
    perfect = Dataset.of(label, predictions={"new": label})
    needed = [
        replay(perfect, new="new", runs=200, budgets=budgets, methods=["post-stratified"])
        .curves[0]
        .queries_for_target
        for budgets in ([50], [500, 1000, 2000], [10, 4000])
    ]
    assert max(number or 0 for number in needed) <= 1.02 * min(number or 0 for number in needed)


def test_reported_errors_are_those_of_the_closed_form() -> None:
    """Through the whole of replay().

    The mean squared error of uniform sampling is (1 - sum of C^2)/n (N - n)/(N - 1).
    """
    known, runs = data(), 4000
    column = known.predictions["new"]
    truth = np.zeros((4, len(column.values)))
    np.add.at(truth, (known.label.codes, column.codes), 1 / len(known))
    curve = replay(known, new="new", runs=runs, budgets=[50, 300], methods=["uniform"]).curves[0]
    for place, n in enumerate((50, 300)):
        expected = (1 - np.sum(truth**2)) / n * (len(known) - n) / (len(known) - 1)
        # The squared error of one run varies by less than its mean.
        assert abs(curve.mean_squared_error[place] / expected - 1) < 4 / runs**0.5
        point = next(point for point in curve.path if point.queries == n)
        assert point.root_mean_squared_error**2 == pytest.approx(curve.mean_squared_error[place])
        assert (
            point.error_quantile
            == curve.error_quantile[place]
            > curve.root_mean_squared_error[place]
        )


def test_savings_are_shares_of_the_other_methods_queries() -> None:
    result = replay(data(), new="new", runs=50, target_error=0.05, replacement=True)
    uniform, masa = (
        curve.queries_for_target for curve in result.curves if curve.method in ("uniform", "masa")
    )
    assert uniform is not None
    assert masa is not None
    assert result.saving("masa", "uniform") == 1 - masa / uniform > 0


def test_rounding_is_not_taken_for_bias() -> None:
    for curve in replay(data(items=300), new="new", runs=20, budgets=[300]).curves:
        assert curve.bias_share == (0.0,)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"runs": 0}, "runs is 0"),
        ({"target_error": 0.0}, "target_error is 0"),
        ({"target_error": 1e-300}, "target_error is 1e-300"),
        ({"target_error": 1.0}, "target_error is 1"),
        ({"new": "nwe"}, "no predictions 'nwe'"),
        ({"target_error": float("nan")}, "target_error is nan"),
        ({"confidence": 1.0}, "confidence is 1"),
        ({"confidence": 0.9999999999999999}, "confidence is 0.99"),
        ({"seed": -1}, "seed is -1"),
        ({"budgets": [0]}, r"budgets is \[0\]"),
        ({"budgets": []}, r"budgets is \[\]"),
        ({"budgets": [10**12]}, "budgets are 1000000000000"),
        ({"a": -1.0}, "a is -1"),
        ({"a": "lots"}, "a is 'lots'"),
        ({"methods": ["mesa"]}, r"methods is \['mesa'\]"),
        ({"methods": []}, r"methods is \[\]"),
        ({"methods": ["masa", "masa"]}, "methods is"),
        ({"levels": 0}, "levels is 0"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replay(data(), **{"new": "new", **options})


def test_difficulty_falls_back_on_the_old_confidence(tmp_path: Path) -> None:
    rows = "".join(f"{'ab'[i % 2]},{'ab'[i % 3 % 2]},{i / 100},{'ab'[i % 2]}\n" for i in range(100))
    (tmp_path / "a.csv").write_text("label,v1.prediction,v1.confidence,v2.prediction\n" + rows)
    options: dict[str, Any] = {"label": "label", "new": "v2.prediction", "runs": 5}
    with_old = replay(tmp_path / "a.csv", old="v1.prediction", **options)
    assert (with_old.strata, with_old.difficulty) == (
        6,
        "'v1.confidence', the confidence of the old answers",
    )
    peeked = replay(
        tmp_path / "a.csv", **{**options, "new": "v1.prediction", "difficulty": "v1.confidence"}
    )
    assert any("only after paying" in note for note in peeked.notes)
    without = replay(tmp_path / "a.csv", **options)
    assert (without.strata, without.difficulty) == (2, "")


# Queries for a Frobenius error of 1% in 95% of runs, from an independent prototype: uniform, post-stratified, masa and optimal
# with replacement, masa asking each item once. With 1,000 runs the figures of small cases are good to about 10%.
KNOWN = {
    ("microsoft", "ferplus", "github-cnn"): (17_512, 5_329, 4_975, 5_068, 2_779),
    ("google", "command", "github-deepspeech"): (13_739, 2_832, 2_272, 2_110, 2_158),
}


@pytest.mark.parametrize("case", KNOWN)
def test_real_predictions_need_the_known_queries(
    frugalml: Path, case: tuple[str, str, str]
) -> None:
    api, name, cheap = case
    options: dict[str, Any] = {
        "label": "label",
        "new": f"{api}.prediction",
        "difficulty": f"{cheap}.confidence",
        "runs": 1000,
    }
    paper = replay(
        frugalml / f"{name}.parquet",
        methods=["uniform", "post-stratified", "masa", "optimal"],
        replacement=True,
        **options,
    )
    once = replay(frugalml / f"{name}.parquet", methods=["masa"], **options)
    found = [curve.queries_for_target for curve in (*paper.curves, *once.curves)]
    assert found == pytest.approx(KNOWN[case], rel=0.15)
