"""What is read off a shift, how sure each of it is, and the verdict on any of it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from masa.cli.main import main
from masa.data.baseline_answers import from_column
from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.inference.counts import true_matrix
from masa.inference.method import Method
from masa.inference.readings import Reader
from masa.records import Answer, Assessment, Column, Interval, Query, Readings, Shift
from masa.sampling.draws import Draws
from masa.settings import Settings, Tolerance

NAMES = np.array(["cat", "dog", "fox", "owl"])


def zoo(
    items: int = 3000, *, seed: int = 0, changed: float = 0.05, towards: int | None = None
) -> Dataset:
    """Four labels of unlike size, 80% right.

    Some answers changed, to any other one or rather to one.
    """
    rng = np.random.default_rng(seed)
    label = rng.choice(4, items, p=[0.5, 0.3, 0.15, 0.05])
    old = np.where(rng.random(items) < 0.8, label, rng.integers(0, 4, items))
    other = (old + rng.integers(1, 4, items)) % 4 if towards is None else np.full(items, towards)
    new = np.where(rng.random(items) < changed, other, old)
    return Dataset.of(
        NAMES[label].tolist(),
        predictions={"old": NAMES[old].tolist(), "new": NAMES[new].tolist()},
        difficulty=rng.random(items).tolist(),
    )


def truth_of(data: Dataset) -> Shift:
    strata = Strata.build(data.label)
    before, after = (true_matrix(strata, data.predictions[name]) for name in ("old", "new"))
    return Shift(before, after)


def holds(value: float, interval: Interval) -> bool:
    return interval.low - 1e-12 <= value <= interval.high + 1e-12


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


def test_a_tolerance_may_be_on_any_label_or_entry() -> None:
    data = zoo(changed=0.08, towards=3)
    common: dict[str, Any] = {"baseline": "old", "budget": 2000, "store": None}
    real = truth_of(data)
    assert real.recall["cat"].change < -0.05
    judged = masa.assess(data, "replay:new", **common, tolerance="recall=3%")
    assert (judged.verdict, judged.direction) == ("changed", "worse")
    wide = masa.assess(data, "replay:new", **common, tolerance="recall=20%")
    assert wide.verdict == "unchanged"
    entry = masa.assess(data, "replay:new", **common, tolerance="entry=0.01")
    assert (entry.verdict, entry.direction) == ("changed", "worse")
    both = masa.assess(data, "replay:new", **common, tolerance="accuracy=50%,recall=3%")
    assert both.verdict == "changed"
    assert (
        "3 points of recall of any label"
        in masa.settings.tolerance.Tolerance.read("recall=3%").words
    )
    for wrong in ("f1=0.1", "recall=lots", "recall=2", "", "nan"):
        with pytest.raises(masa.UsageError):
            Tolerance.read(wrong)


def test_what_is_more_than_wanted_never_alarms() -> None:
    """A change that is certain and below the tolerance is no alarm, for any kind of tolerance."""
    data = zoo(changed=0.02)
    for tolerance in ("accuracy=5%", "recall=30%", "entry=5%", "precision=40%"):
        found = masa.assess(
            data, "replay:new", baseline="old", budget=2500, store=None, tolerance=tolerance
        )
        assert (found.verdict, found.moved, found.exit_code) == ("unchanged", "yes", 0), tolerance


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


def test_strict_intervals_hold_whenever_one_looks() -> None:
    data = zoo(items=1500, changed=0.06)
    truth = truth_of(data)
    old = from_column(data, data.predictions["old"])
    method = Method.of(data, old, Settings(strict=True))
    new = data.predictions["new"]
    for seed in range(2):
        source, asked = method.source(seed=seed), list[Query]()
        while queries := source.ask(25):
            for query in queries:
                source.tell(Answer(query.item, new.values[new.codes[query.item]]))
            asked += queries
            places = np.array([query.item for query in asked], np.int64)
            answers = Column("new", new.values, new.codes[places])
            draws = Draws.of([query.draw for query in asked if query.draw is not None])
            found = method.estimate(places, answers, draws, finite=True)
            assert holds(truth.accuracy.change, Reader(found, 0.95).accuracy())
            assert found.shift.error(truth) <= found.bound(0.95) + 1e-12
        assert len(asked) == len(data)
        accuracy = Reader(found, 0.95).accuracy()
        assert accuracy.high - accuracy.low < 1e-9
        assert found.shift.error(truth) < 1e-9
        assert found.bound(0.95) < 1e-9


def test_the_draws_of_a_strict_run_say_what_they_say() -> None:
    """An answer over its chance, and what is known: on average that is the truth at every draw."""
    data = zoo(items=400, changed=0.1)
    truth = truth_of(data).accuracy.change
    old = from_column(data, data.predictions["old"])
    method = Method.of(data, old, Settings(strict=True))
    new = data.predictions["new"]
    right = data.label.on(tuple(NAMES)).codes
    gain = (new.on(tuple(NAMES)).codes == right).astype(float) - (
        old.answers.on(tuple(NAMES)).codes == right
    )
    seen = []
    for seed in range(300):
        source, known, row = method.source(seed=seed), 0.0, []
        for _ in range(4):
            queries = source.ask(50)
            for query in queries:
                assert query.probability is not None
                row.append(known + gain[query.item] / len(data) / query.probability)
                known += gain[query.item] / len(data)
                source.tell(Answer(query.item, new.values[new.codes[query.item]]))
        seen.append(row)
    mean = np.array(seen).mean(axis=0)
    scatter = np.array(seen).std(axis=0) / 300**0.5
    assert np.abs((mean - truth) / scatter).max() < 4.5
    assert np.abs(((mean - truth) / scatter).mean()) < 0.5


def test_one_step_of_the_bound_on_a_norm_is_a_fair_game() -> None:
    """The inequality that the bound rests on, tried at random and where it is tight."""
    rng = np.random.default_rng(0)
    for _ in range(3000):
        size, values = int(rng.integers(1, 4)), int(rng.integers(2, 4))
        x = rng.normal(size=(values, size))
        x *= (
            0.5
            / np.linalg.norm(x, axis=1, keepdims=True)
            * rng.choice([1.0, 1.0, rng.random()], size=(values, 1))
        )
        chance = rng.dirichlet(np.full(values, 0.5))
        mean = chance @ x
        guess = rng.normal(size=size)
        guess *= 0.5 * rng.random() / np.linalg.norm(guess)
        step = 0.8 * rng.random() ** 0.5
        before = rng.normal(size=size) * rng.exponential()
        shrunk = np.exp((np.log1p(-step) + step) * ((x - guess) ** 2).sum(axis=1))
        after = chance @ (np.cosh(np.linalg.norm(before + step * (x - mean), axis=1)) * shrunk)
        assert after <= np.cosh(np.linalg.norm(before)) * (1.0 + 1e-12)


def test_a_strict_run_goes_on_where_it_ended(tmp_path: Path) -> None:
    data = zoo(changed=0.3)
    options: dict[str, Any] = {"baseline": "old", "strict": True, "decide": True}
    first = masa.assess(data, "replay:new", store=tmp_path / "a.db", budget=70, **options)
    assert (first.queries, first.verdict) == (70, "undecided")
    again = {**options, "resume": first.run}
    found = masa.assess(data, "replay:new", store=tmp_path / "a.db", budget=400, **again)
    at_once = masa.assess(data, "replay:new", store=tmp_path / "b.db", budget=400, **options)
    assert (found.verdict, found.direction, found.stopped) == ("changed", "worse", "decided")
    assert found.accuracy_change == at_once.accuracy_change
    assert found.error_bound == pytest.approx(at_once.error_bound)


def test_strict_says_where_it_cannot_be() -> None:
    data = zoo()
    for options, why in (
        ({"method": "masa"}, "old answer of every item"),
        ({"canary": 20}, "know no canary"),
    ):
        with pytest.raises(masa.UsageError, match=why):
            masa.assess(
                data, "replay:new", baseline="old", budget=100, store=None, strict=True, **options
            )


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


def test_labels_without_weight_have_no_say() -> None:
    data = zoo(items=1000, changed=0.02)
    mix = {"cat": 0.5, "dog": 0.5, "fox": 0.0, "owl": 0.0}
    found = masa.assess(
        data, "replay:new", baseline="old", budget=1000, store=None, mix=mix, tolerance="recall=20%"
    )
    assert found.verdict == "unchanged"


def test_the_command_takes_it_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = zoo(changed=0.1, towards=3)
    rows = ["id,label,old,new"] + [
        ",".join(
            [
                str(i),
                *(
                    c.values[c.codes[i]]
                    for c in (data.label, data.predictions["old"], data.predictions["new"])
                ),
            ]
        )
        for i in range(len(data))
    ]
    path = tmp_path / "zoo.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    common = [
        "assess",
        str(path),
        "--label",
        "label",
        "--id",
        "id",
        "--old",
        "old",
        "--api",
        "replay:new",
    ]
    common += ["--store", str(tmp_path / "m.db"), "--budget", "1500"]
    assert main([*common, "--tolerance", "recall=3%", "--strict", "--decide", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["tolerance"], told["direction"]) == ({"recall": 0.03}, "worse")
    assert set(told["intervals"]) == {"delta", "recall", "precision", "norm", "differing", "cost"}
    assert min(interval["high"] for interval in told["intervals"]["recall"].values()) < -0.03
    assert main([*common, "--fail-on", "worse"]) == 1
    shown = capsys.readouterr().out
    assert "Change by label (simultaneous 95% intervals)" in shown
    assert "Share of all answers that differ" in shown
    assert main([*common, "--tolerance", "taste=1"]) == 2
    assert "no tolerance on 'taste'" in capsys.readouterr().err
    assert Readings.from_dict(told["intervals"]).to_dict() == told["intervals"]


def test_what_is_shown_is_what_is_judged_by() -> None:
    """With several tolerances all intervals share the doubt, those that are shown too."""
    data = zoo(changed=0.03)
    common: dict[str, Any] = {"baseline": "old", "budget": 1200, "store": None}
    alone = masa.assess(data, "replay:new", **common, tolerance="recall=10%")
    both = masa.assess(data, "replay:new", **common, tolerance="accuracy=50%,recall=10%")
    assert alone.readings is not None
    assert both.readings is not None
    assert all(
        both.readings.recall[label].low < interval.low
        for label, interval in alone.readings.recall.items()
    )
    widest = max(max(-one.low, one.high) for one in both.readings.recall.values())
    for limit, said in ((widest + 1e-9, "unchanged"), (widest - 1e-4, "undecided")):
        found = masa.assess(
            data, "replay:new", **common, tolerance={"accuracy": 0.5, "recall": limit}
        )
        assert found.verdict == said
    with pytest.raises(masa.UsageError, match="more than one tolerance on recall"):
        Tolerance.read("recall=1%,recall=50%")


def test_an_accepted_strict_run_is_as_unsure_as_it_was(tmp_path: Path) -> None:
    data, store = zoo(changed=0.0), tmp_path / "masa.db"
    masa.baseline(data, "replay:old", budget=len(data), store=store)
    first = masa.assess(data, "replay:old", budget=20, store=store, strict=True)
    assert main(["accept", str(first.run), "--store", str(store)]) == 0
    again = masa.assess(data, "replay:old", budget=3000, store=store)
    assert again.error_bound is not None
    assert again.error_bound > 0.05
    assert again.accuracy_change is not None
    assert holds(0.0, again.accuracy_change)


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


def test_a_strict_run_goes_on_after_failures_and_loses_nothing(tmp_path: Path) -> None:
    data = zoo(items=600, changed=0.15)
    new, down, calls = data.predictions["new"], [True], [0]
    texts = [str(place) for place in range(600)]
    asked = Dataset.of(
        [data.label.values[code] for code in data.label.codes],
        predictions={
            "old": [data.predictions["old"].values[code] for code in data.predictions["old"].codes]
        },
        inputs={"text": texts},
    )

    def api(text: str) -> str:
        calls[0] += 1
        if down[0] and calls[0] > 40 and calls[0] % 2:
            raise ValueError("down")
        return str(new.values[new.codes[int(text)]])

    def run(resume: int | None) -> Assessment:
        limits = masa.Limits(tries=1, concurrency=8)
        return masa.assess(
            asked,
            api,
            baseline="old",
            budget=2000,
            store=tmp_path / "a.db",
            limits=limits,
            strict=True,
            resume=resume,
        )

    first = run(None)
    assert first.stopped == "failures"
    down[0] = False
    found = run(first.run)
    assert (found.stopped, found.answers) == ("exhausted", 600)
    truth = truth_of(data).accuracy.change
    assert found.accuracy_change is not None
    assert found.accuracy_change.low == pytest.approx(truth, abs=1e-9)
    assert found.accuracy_change.high == pytest.approx(truth, abs=1e-9)


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


def test_groups_allow_for_what_failed() -> None:
    label = ["ham", "spam"] * 200
    texts = [str(place) for place in range(400)]
    data = Dataset.of(
        label, predictions={"old": label}, inputs={"text": texts}, group=["g"] * 200 + ["h"] * 200
    )

    def api(text: str) -> str:
        if int(text) < 40:
            raise ValueError("not today")
        return label[int(text)]

    found = masa.assess(
        data, api, baseline="old", budget=900, store=None, limits=masa.Limits(tries=1, failures=1.0)
    )
    change = found.groups[0].change
    assert change is not None
    assert change.low == pytest.approx(-0.2)
    assert change.high == pytest.approx(0.0, abs=1e-12)
    assert found.gap is not None
    assert found.gap.change.low <= 0.0 <= found.gap.change.high + 1e-12
