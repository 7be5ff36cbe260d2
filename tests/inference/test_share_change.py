"""Intervals for the change of a share hold from the first answer on, and no more is claimed."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import masa
from masa.data.baseline_answers import BaselineAnswers, evenly_weighted, from_column, narrowed
from masa.data.dataset import Dataset
from masa.inference.counts import true_matrix
from masa.inference.estimate import reach
from masa.inference.method import Method
from masa.inference.moved_share import binomial_limits
from masa.inference.readings import Reader
from masa.inference.spread import normal
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Column, Shift
from masa.replays.whole_runs import drive
from masa.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from edges import QUERIES, Cell, drawn, inside, measured


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_the_limits_of_a_share_hold_whatever_the_share_is(confidence: float) -> None:
    """Exactly, for binomial numbers: about as often as they say, and no less by much."""
    far = reach(confidence, normal(confidence))
    for size in (1, 2, 3, 5, 8, 20, 100):
        count = np.arange(size + 1)
        ends = np.array([binomial_limits(k / size, size, far) for k in count.tolist()])
        low, high = count / size - ends[:, 0], count / size + ends[:, 1]
        for share in np.linspace(0.0, 1.0, 81):
            held = binom.pmf(count, size, share)[(low <= share + 1e-9) & (share <= high + 1e-9)]
            assert held.sum() >= confidence - 0.7 * (1.0 - confidence), (size, share)


def mended(items: int = 1000) -> tuple[Dataset, BaselineAnswers, Column]:
    """An API that was wrong about every fifth item and is right now, of which half is known."""
    label = np.arange(items) % 2
    wrong = np.arange(items) % 5 == 0
    old = np.where(wrong, 1 - label, label)
    confidence = 0.5 + 0.4 * np.random.default_rng(0).random(items)
    names = np.array(["no", "yes"])
    data = Dataset.of(names[label].tolist(), predictions={"old": names[old].tolist()})
    places = np.arange(0, items, 2)
    weight, extra = evenly_weighted(data, places, levels=3)
    column = data.predictions["old"]
    known = BaselineAnswers(
        places,
        Column("old", column.values, column.codes[places]),
        confidence[places],
        weight=weight,
        extra_variance=extra,
    )
    data, known = narrowed(data, known)
    return data, known, Column("new", data.label.values, data.label.codes)


@pytest.mark.parametrize("answers", [1, 2, 3, 4, 6])
def test_a_handful_of_answers_never_makes_a_verdict(answers: int) -> None:
    """Once a changed canary alone in its label made the interval as narrow as a point."""
    data, old, new = mended()
    method = Method.of(data, old, Settings())
    for seed in range(20):
        run = Trial(method, old, Stopping(), seed=seed)
        drive(run, new, until=answers, confidence=np.full(len(data), 0.9))
        found = run.conclusion().estimate
        assert found is not None
        interval = Reader(found, 0.95).accuracy()
        assert interval.high - interval.low > 0.3
        assert interval.low <= 0.2 <= interval.high


def test_a_recall_rests_on_the_answers_about_its_label() -> None:
    """Other labels that got better say nothing sure about one with five answers."""
    rng = np.random.default_rng(3)
    label = np.where(np.arange(2000) < 60, 2, rng.integers(0, 2, 2000))
    old = np.where(rng.random(2000) < 0.4, (label + 1) % 3, label)
    names = np.array(["a", "b", "c"])
    new = np.where(label == 2, old, label)
    sides = {"old": names[old].tolist(), "new": names[new].tolist()}
    data = Dataset.of(names[label].tolist(), predictions=sides)
    before = from_column(data, data.predictions["old"])
    run = Trial(Method.of(data, before, Settings()), before, Stopping(), seed=1)
    drive(run, data.predictions["new"], until=150)
    recall = Reader(run.estimate(), 0.95).recall()
    assert recall["a"].low > 0.2
    assert recall["c"].low <= 0.0 <= recall["c"].high


@pytest.mark.parametrize(
    "cell",
    [
        Cell("partial", "yes", "2", "rewrite", "auto", "0"),
        Cell("accepted", "yes", "7", "30%", "auto", "0"),
        pytest.param(Cell("full", "yes", "40", "rewrite", "auto", "0"), marks=pytest.mark.slow),
        Cell("full", "no", "7", "30%", "auto", "0.02"),
        pytest.param(
            Cell("column", "yes", "40", "3%", "post-stratified", "0"), marks=pytest.mark.slow
        ),
        Cell("full", "yes", "7", "rewrite", "adaptive", "0"),
    ],
)
def test_the_worst_cells_of_the_table_hold(cell: Cell) -> None:
    """At every number of answers, all that is shown; the bounds are four standard errors away."""
    runs = 25
    found = measured((cell, range(runs), True))
    shown = ~np.isnan(found[:, :, 0]).all(axis=0)
    assert shown.all() or cell.baseline == "accepted"
    held = np.nanmean(found[:, shown, :7], axis=0)
    assert held.min() >= 0.95 - 4.0 * (0.95 * 0.05 / runs) ** 0.5
    false_verdicts = np.nanmean(found[:, shown, -2:], axis=0)
    assert false_verdicts.max() <= 0.05 + 4.0 * (0.95 * 0.05 / runs) ** 0.5


@pytest.mark.parametrize("labels", ["2", "40"])
@pytest.mark.parametrize("change", ["3%", "rewrite"])
def test_paying_more_never_makes_it_less_sure(labels: str, change: str) -> None:
    found = measured((Cell("full", "yes", labels, change, "auto", "0"), range(12), False))
    width = found[:, :, 7].mean(axis=0)
    assert (np.diff(width) < 0.02 * width[:-1]).all(), width
    assert len(width) == len(QUERIES)


def test_the_few_answers_of_the_textbook_are_not_ours() -> None:
    """Of no change among four answers the textbook is certain."""
    case = drawn(Cell("full", "yes", "2", "3%", "auto", "0"), 0)
    run = Trial(Method.of(case.data, case.old, Settings()), case.old, Stopping(), seed=0)
    drive(run, case.new, until=4)
    found = run.conclusion().estimate
    assert found is not None
    interval = Reader(found, 0.95).accuracy()
    assert interval.high - interval.low > 0.5
    assert inside(case.truth.accuracy.change, interval)


def test_all_asked_leaves_nothing_open_and_groups_know_their_own() -> None:
    label = ["a", "b"] * 50
    new = ["a", "a"] * 50
    data = Dataset.of(label, predictions={"old": label, "new": new}, group=["g"] * 40 + ["h"] * 60)
    found = masa.assess(data, "replay:new", baseline="old", budget=100, store=None)
    assert found.accuracy_change is not None
    assert found.accuracy_change.low == pytest.approx(-0.5)
    assert found.accuracy_change.high == pytest.approx(-0.5)
    few = masa.assess(data, "replay:new", baseline="old", budget=6, store=None)
    for group in few.groups:
        if group.change is not None:
            assert group.change.low <= -0.5 <= group.change.high


def crowded(items: int = 600, seed: int = 3) -> tuple[Dataset, BaselineAnswers, Column]:
    """An API with a dozen labels after a rewrite: most pairs of label and answer have few items."""
    luck = np.random.default_rng(seed)
    names = np.array([f"kind {code:02d}" for code in range(12)])
    label = luck.integers(0, 12, items)
    other = luck.integers(0, 12, (2, items))
    old, new = (np.where(luck.random(items) < 0.6, label, side) for side in other)
    data = Dataset.of(
        names[label].tolist(),
        predictions={"old": names[old].tolist(), "new": names[new].tolist()},
    )
    confidence = luck.random(items)
    known = BaselineAnswers(np.arange(items), data.predictions["old"], confidence)
    return data, known, data.predictions["new"]


def test_all_entries_hold_together_where_few_items_of_a_cell_are_left() -> None:
    """Before ends were whole items, one lay outside in three of four runs after 500 of 600 answers."""
    data, old, new = crowded()
    method = Method.of(data, old, Settings())
    truth = Shift(true_matrix(method.strata, old.answers), true_matrix(method.strata, new))
    held, runs, looks = np.zeros(4), 40, (100, 250, 400, 500)
    for seed in range(runs):
        run = Trial(method, old, Stopping(), seed=seed)
        for place, look in enumerate(looks):
            drive(run, new, until=look, confidence=old.confidence)
            found = run.estimate(finite=True)
            low, high = Reader(found, 0.95).entries()
            on = Shift(
                truth.old.on(found.shift.new.predictions), truth.new.on(found.shift.new.predictions)
            )
            held[place] += ((low - 1e-9 <= on.values) & (on.values <= high + 1e-9)).all()
    assert (held >= 0.9 * runs).all(), held


def test_ends_of_intervals_are_whole_items_and_what_is_known_stays_known() -> None:
    data, old, new = crowded(60)
    run = Trial(Method.of(data, old, Settings()), old, Stopping(), seed=0)
    for look in (1, 4, 20, 59, 60):
        drive(run, new, until=look, confidence=old.confidence)
        ends = Reader(run.estimate(finite=True), 0.95).accuracy()
        for end in (ends.low, ends.high):
            assert end * 60 == pytest.approx(round(end * 60), abs=0.02)
    assert ends.low == pytest.approx(ends.high, abs=1e-12)
