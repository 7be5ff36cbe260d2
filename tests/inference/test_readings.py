"""What is read off a shift, and how sure each of it is."""

import json
from pathlib import Path

import numpy as np
import pytest

import masa
from masa.cli.main import main
from masa.data.dataset import Dataset
from masa.records import Assessment, Shift
from zoo import holds, truth_of, zoo


def all_held(found: Assessment, truth: Shift) -> list[bool]:
    read = found.readings
    assert read is not None
    assert found.accuracy_change is not None
    assert read.differing is not None
    return [
        holds(truth.accuracy.change, found.accuracy_change),
        bool(((read.low - 1e-12 <= truth.values) & (truth.values <= read.high + 1e-12)).all()),
        all(holds(change.change, read.recall[label]) for label, change in truth.recall.items()),
        all(
            holds(change.change, read.precision[label]) for label, change in truth.precision.items()
        ),
        holds(truth.norm, read.norm),
    ]


@pytest.mark.parametrize("method", ["auto", "paired", "adaptive", "masa", "post-stratified"])
def test_what_is_read_off_a_shift_holds_at_once(method: str) -> None:
    held = []
    for seed in range(8):
        data = zoo(seed=seed)
        found = masa.assess(
            data, "replay:new", baseline="old", budget=500, store=None, seed=seed, method=method
        )
        held += all_held(found, truth_of(data))
        read = found.readings
        assert read is not None
        assert read.cost is None
        assert (read.low <= read.high).all()
    assert np.mean(held) >= 0.93


def test_of_few_answers_little_is_known_and_never_nothing() -> None:
    data = zoo()
    found = masa.assess(
        data, "replay:new", baseline="old", budget=12, store=None, method="uniform", seed=5
    )
    read = found.readings
    assert read is not None
    assert found.shift is not None
    assert read.precision["owl"].low == -1.0
    assert read.precision["owl"].high == 1.0
    assert read.recall["owl"].high - read.recall["owl"].low > 0.9
    weight = found.shift.old.values.sum(axis=1)
    row = found.shift.new.labels.index("owl")
    if not any(stratum.answers for stratum in found.shift.strata if stratum.label == "owl"):
        assert np.allclose(read.high[row] - read.low[row], weight[row])
    everything = masa.assess(data, "replay:new", baseline="old", budget=3000, store=None)
    assert everything.readings is not None
    assert all(all_held(everything, truth_of(data)))
    assert np.allclose(everything.readings.low, everything.readings.high, atol=1e-9)
    again = masa.Assessment.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.readings is not None
    assert np.allclose(again.readings.low, read.low)
    assert again.to_dict() == found.to_dict()


def test_costs_of_mistakes_have_an_interval() -> None:
    data = zoo(changed=0.1, towards=3)
    costs = {"cost": {"cat": {"owl": 10}, "dog": {"owl": 5}}}
    table = np.zeros((4, 4))
    table[0, 3], table[1, 3] = 10.0, 5.0
    real = float((table * truth_of(data).values).sum())
    held = 0
    for seed in range(12):
        found = masa.assess(
            data, "replay:new", baseline="old", budget=600, store=None, weights=costs, seed=seed
        )
        assert found.readings is not None
        assert found.readings.cost is not None
        held += holds(real, found.readings.cost)
    assert held >= 11
    judged = masa.assess(
        data,
        "replay:new",
        baseline="old",
        budget=600,
        store=None,
        weights=costs,
        tolerance={"cost": 0.1},
        decide=True,
    )
    assert (judged.verdict, judged.direction, judged.stopped) == ("changed", "worse", "decided")
    assert judged.tolerance == {"cost": 0.1}
    with pytest.raises(masa.UsageError, match="needs to know what they cost"):
        masa.assess(
            data, "replay:new", baseline="old", budget=600, store=None, tolerance={"cost": 0.1}
        )


def test_a_missing_baseline_adds_its_doubt(tmp_path: Path) -> None:
    data = zoo(changed=0.0)
    store = tmp_path / "masa.db"
    masa.baseline(data, "replay:old", budget=600, store=store)
    for method in ("auto", "post-stratified", "adaptive", "masa", "uniform"):
        part = masa.assess(data, "replay:old", budget=600, store=store, method=method, seed=3)
        whole = masa.assess(
            data, "replay:old", baseline="old", budget=600, store=None, method=method, seed=3
        )
        assert part.readings is not None
        assert whole.readings is not None
        assert part.error_bound is not None
        assert part.error_bound > 0.0
        assert ((part.readings.high - part.readings.low) > 0.0).all()
        assert all(holds(0.0, interval) for interval in part.readings.recall.values())
        assert (
            part.readings.differing is None
            or part.readings.differing.low == 0.0 < part.readings.differing.high
        )
    with pytest.raises(masa.UsageError, match="only part of the items"):
        masa.assess(data, "replay:old", budget=600, store=store, method="paired")


def test_what_nobody_has_answered_so_far_may_still_come() -> None:
    """One label and one answer: a handful of answers proves nothing about any of it."""
    same = Dataset.of(["yes"] * 500, predictions={"old": ["yes"] * 500, "new": ["yes"] * 500})
    for tolerance in ("recall=1%", "entry=1%"):
        for strict in (False, True):
            found = masa.assess(
                same,
                "replay:new",
                baseline="old",
                budget=5,
                store=None,
                tolerance=tolerance,
                strict=strict,
            )
            assert found.verdict == "undecided", (tolerance, strict)
    labels = ["x", "y", "w"] * 200
    said = ["x", "y", "x"] * 200
    never = Dataset.of(labels, predictions={"old": said, "new": said})
    found = masa.assess(never, "replay:new", baseline="old", budget=40, store=None)
    assert found.readings is not None
    assert found.readings.recall["w"].high > 0.05
    costs = {"cost": {"x": {"w": 100, "y": 1}}}
    dear = masa.assess(
        never,
        "replay:new",
        baseline="old",
        budget=40,
        store=None,
        weights=costs,
        tolerance={"cost": 0.5},
    )
    assert dear.verdict == "undecided"
    only = {"cost": {"x": {"w": 5}}}
    assert (
        masa.assess(
            never, "replay:new", baseline="old", budget=40, store=None, weights=only
        ).readings
        is not None
    )
    known = masa.assess(
        never, "replay:new", baseline="old", budget=600, store=None, tolerance="precision=50%"
    )
    assert known.verdict == "unchanged"  # Nobody ever said 'w': it has no precision.


def test_failures_are_no_answers() -> None:
    data = zoo(items=700, changed=0.0)
    old = data.predictions["old"]
    asked = Dataset.of(
        [data.label.values[code] for code in data.label.codes],
        predictions={"old": [old.values[code] for code in old.codes]},
        inputs={"text": [str(place) for place in range(len(data))]},
    )

    def api(text: str) -> str:
        if int(text) % 7 == 0:
            raise ValueError("not today")
        return str(old.values[old.codes[int(text)]])

    for strict in (False, True):
        found = masa.assess(
            asked,
            api,
            baseline="old",
            budget=2000,
            store=None,
            strict=strict,
            tolerance="entry=1%",
            limits=masa.Limits(tries=1, failures=1.0),
        )
        assert found.errors == 100
        assert found.verdict != "changed"
        assert found.readings is not None
        assert found.readings.differing is not None
        assert found.readings.differing.estimate < 1e-9
        assert found.readings.differing.high == pytest.approx(1 / 7, abs=0.01)
        assert found.accuracy_change is not None
        assert found.accuracy_change.low < 0.0 <= found.accuracy_change.high


@pytest.mark.parametrize("strict", [False, True])
def test_those_that_failed_may_be_anything(strict: bool) -> None:
    """A rare label whose precision a few failures could halve; nothing else differs."""
    label = ["rare"] * 20 + ["ham", "spam"] * 490
    data = Dataset.of(
        label, predictions={"old": label}, inputs={"text": [str(place) for place in range(1000)]}
    )

    def api(text: str) -> str:
        if 20 <= int(text) < 40:
            raise ValueError("not today")
        return label[int(text)]

    limits = masa.Limits(tries=1, failures=1.0)
    found = masa.assess(
        data,
        api,
        baseline="old",
        budget=2000,
        store=None,
        strict=strict,
        tolerance="precision=10%",
        limits=limits,
    )
    assert found.verdict == "undecided"
    assert found.readings is not None
    assert found.readings.precision["rare"].low < -0.49
    assert found.readings.precision["ham"].low > -0.1
    assert found.readings.norm.low == 0.0
    assert not found.surprising
    for one in (
        *found.readings.precision.values(),
        *found.readings.recall.values(),
        found.accuracy_change,
    ):
        assert one is not None
        unknown = (one.low, one.high) == (-1.0, 1.0)
        assert unknown or -1.0 <= one.low <= one.estimate <= one.high <= 1e-12  # All were right.


def test_of_a_label_without_old_answers_nothing_is_surprising(tmp_path: Path) -> None:
    data, store = zoo(changed=0.0), tmp_path / "masa.db"
    masa.baseline(data, "replay:old", budget=4, store=store)
    found = masa.assess(data, "replay:old", budget=400, store=store)
    assert not found.surprising


@pytest.mark.parametrize("strict", [False, True])
def test_a_label_that_an_accepted_run_never_asked_about_is_not_known_from_it(
    strict: bool, tmp_path: Path
) -> None:
    label = ["rare"] * 6 + ["ham", "spam"] * 1000
    said = ["ham"] * 6 + label[6:]
    data = Dataset.of(
        label, predictions={"old": label, "new": said}, difficulty=[1.0] * 6 + [0.5] * 2000
    )
    store = tmp_path / "a.db"
    masa.baseline(data, "replay:old", budget=3000, store=store)
    for seed in range(20):
        first = masa.assess(
            data,
            "replay:new",
            budget=55,
            store=store,
            strict=strict,
            seed=seed,
            force=True,
            baseline=1,
        )
        if any("rare" in note and "nothing was asked" in note for note in first.notes):
            break
    else:
        pytest.fail("it asks about every label")
    assert main(["accept", str(first.run), "--store", str(store)]) == 0
    for tolerance in ("recall=5%", "precision=5%", "entry=5%", "accuracy=0.2%"):
        again = masa.assess(
            data, "replay:new", budget=3000, store=store, tolerance=tolerance, seed=len(tolerance)
        )
        assert again.verdict == "undecided"
        assert not again.surprising
        assert again.error_bound is not None
        assert again.error_bound > 6 / 2006
        assert any("no answers about 1 of the labels ('rare')" in note for note in again.notes)
