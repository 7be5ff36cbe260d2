"""Runs that stop by themselves: once the shift is known well enough, or the verdict is certain."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from masa.cli.main import main
from masa.data.baseline_answers import from_column
from masa.data.dataset import Dataset
from masa.inference.stopping import FIRST_LOOK, Stopping, critical_value, look_times
from masa.replays.whole_runs import WholeRuns
from masa.settings import Settings


def api(items: int = 3000, *, worse: float = 0.0, seed: int = 0) -> Dataset:
    """Two labels, 85% right.

    A share of the right answers became wrong, and half as many the other way round.
    """
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, items)
    old = np.where(rng.random(items) < 0.85, label, 1 - label)
    flips = rng.random(items) < np.where(old == label, worse, worse / 2)
    new = np.where(flips, 1 - old, old)
    names = np.array(["ham", "spam"])
    return Dataset.of(
        names[label].tolist(), predictions={"old": names[old].tolist(), "new": names[new].tolist()}
    )


def test_looking_often_costs_what_it_costs_a_random_walk() -> None:
    """The mean of the first n of a finite number of items, looked at on its way, each time over its standard error."""
    items, most = 3_000, 2_000
    schedule = np.array(look_times(most))
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.standard_normal((4_000, items)), axis=1)
    mean = walk[:, schedule - 1] / schedule - walk[:, -1:] / items
    largest = np.abs(mean / np.sqrt(1 / schedule - 1 / items)).max(axis=1)
    assert np.mean(largest <= critical_value(look_times(most), items, 0.95)) == pytest.approx(
        0.95, abs=0.01
    )
    assert critical_value((50,), 10**9, 0.99) == pytest.approx(2.5758, abs=1e-3)
    assert (
        critical_value(look_times(1000), 10**9, 0.95)
        < critical_value(look_times(1000), 1100, 0.95)
        < critical_value(look_times(10_000), 10**9, 0.95)
    )


def test_looks_are_few_and_the_same_however_the_answers_come() -> None:
    rule = Stopping(decide=True)
    seen, answers = [], 0
    while (look := rule.next_verdict(answers)) is not None and look < 1_000:
        seen.append(look)
        answers = look
    assert seen[0] == FIRST_LOOK
    assert look_times(1_000) == (*seen, 1_000)
    assert rule.next_verdict(seen[3] + 1) == seen[4]
    assert rule.next_error(0, 6) is None
    assert Stopping(target_error=0.01).next_verdict(0) is None


def test_a_change_that_is_large_is_called_early_and_none_at_all_not_late() -> None:
    large = masa.assess(
        api(worse=0.3), "replay:new", baseline="old", budget=3000, store=None, decide=True
    )
    assert (large.verdict, large.stopped) == ("changed", "decided")
    assert large.queries < 300
    none = masa.assess(
        api(worse=0.0), "replay:new", baseline="old", budget=3000, store=None, decide=True
    )
    assert (none.verdict, none.stopped, none.exit_code) == ("unchanged", "decided", 0)
    assert none.queries < 1500
    small = masa.assess(
        api(worse=0.02), "replay:new", baseline="old", budget=150, store=None, decide=True
    )
    assert (small.verdict, small.stopped, small.exit_code) == ("undecided", "budget", 3)


def test_a_target_is_met_and_no_more() -> None:
    data = api(worse=0.05)
    found = masa.assess(
        data, "replay:new", baseline="old", budget=3000, store=None, target_error=0.02
    )
    assert found.stopped == "target"
    assert found.error_bound is not None
    assert 0.015 < found.error_bound <= 0.02
    with pytest.raises(masa.UsageError, match="target_error is 0"):
        masa.assess(data, "replay:new", baseline="old", budget=10, store=None, target_error=0.0)


def test_what_the_journal_knows_may_be_enough(tmp_path: Path) -> None:
    """A run that is resumed after it knew enough does not ask again.

    A verdict is not looked at more often for that.
    """
    data, store = api(worse=0.3), tmp_path / "masa.db"
    masa.baseline(data, "replay:old", store=store)
    longer = masa.assess(data, "replay:new", budget=1000, store=store, force=True)
    again = masa.assess(
        data,
        "replay:new",
        budget=2000,
        store=store,
        force=True,
        resume=longer.run,
        target_error=0.1,
    )
    assert (again.queries, again.stopped) == (1000, "target")
    decided = masa.assess(data, "replay:new", budget=400, store=store, force=True, decide=True)
    assert decided.stopped == "decided"
    with pytest.raises(masa.UsageError, match="another command"):
        masa.assess(data, "replay:new", budget=400, store=store, force=True, resume=decided.run)


@pytest.mark.parametrize("method", ["auto", "paired", "post-stratified"])
def test_verdicts_are_right_when_they_are_certain(method: str) -> None:
    """Where nothing that matters changed there are few false alarms.

    Intervals hold at the time of stopping.
    """
    for worse in (0.0, 0.03):
        data = api(1500, worse=worse)
        old = from_column(data, data.predictions["old"])
        settings = Settings(method=method, decide=True)
        report = WholeRuns(data, old, data.predictions["new"], settings).play(60)
        assert report.coverage >= 0.9
        assert (report.false_alarms or 0.0) <= 0.05
        assert (report.misses or 0.0) <= 0.05
        assert report.queries_p95 <= 1500


def test_a_replay_tells_how_assessments_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = api(800, worse=0.1)
    rows = ["label,old,new,text"]
    columns = [data.label, data.predictions["old"], data.predictions["new"]]
    rows += [
        ",".join(column.values[column.codes[item]] for column in columns) + ",some words"
        for item in range(800)
    ]
    file = tmp_path / "api.csv"
    file.write_text("\n".join(rows))
    given = [
        "replay",
        str(file),
        "--label",
        "label",
        "--old",
        "old",
        "--new",
        "new",
        "--runs",
        "12",
    ]
    given += ["--method", "paired,optimal", "--budgets", "100", "--text", "text", "--also", "old"]
    for rule in ("decide", "target"):
        assert main([*given, "--target-error", "0.03", "--stop", rule, "--json", "--quiet"]) == 0
        methods = json.loads(capsys.readouterr().out)["methods"]
        assert methods["optimal"]["stopping"] is None
        ended = methods["paired"]["stopping"]
        assert ended["runs"] == 12
        assert 100 <= ended["queries_mean"] <= ended["queries_p95"] <= 800
        assert ended["coverage"] >= 0.75
    assert main([*given, "--stop", "decide", "--quiet"]) == 0
    assert "Assessments that stop by themselves" in capsys.readouterr().out
    assert main([*given, "--stop", "never"]) == 2
    assert main([*given[:4], "--new", "new", "--runs", "2", "--stop", "decide"]) == 2


def counting(data: Dataset) -> tuple[list[int], Callable[[str], str]]:
    """An API that counts its calls; its items are the numbers of the rows."""
    calls: list[int] = []
    new = data.predictions["new"]

    def api(text: str) -> str:
        calls.append(int(text))
        return str(new.values[new.codes[int(text)]])

    return calls, api


def doubtful(changed: bool) -> Dataset:
    """1,000 items of which the 30 least sure are the ones that changed, if any did."""
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, 1000)
    sure = rng.random(1000)
    hit = (np.argsort(np.argsort(sure)) < 30) & changed
    names = np.array(["ham", "spam"])
    return Dataset.of(
        names[label].tolist(),
        predictions={
            "old": names[label].tolist(),
            "new": names[np.where(hit, 1 - label, label)].tolist(),
        },
        numbers={"sure": sure},
        inputs={"text": [str(number) for number in range(1000)]},
    )


def test_a_canary_asks_no_more_than_it_may_and_says_what_it_may_have_missed() -> None:
    calls, api = counting(doubtful(changed=False))
    quiet = masa.assess(
        doubtful(changed=False),
        api,
        baseline="old",
        old_confidence="sure",
        budget=500,
        store=None,
        canary=40,
    )
    assert len(calls) == quiet.queries == 40
    assert (quiet.stopped, quiet.moved, quiet.verdict, quiet.exit_code) == (
        "canary",
        "no sign",
        "undecided",
        3,
    )
    assert any(
        "in 13% of cases if 5% of all answers changed" in note and "5% if 7.2% did" in note
        for note in quiet.notes
    )
    assert replace(quiet, canary_ok=True).exit_code == 0
    with pytest.raises(masa.UsageError, match="canary-ok means nothing"):
        Settings(canary_ok=True)


def test_a_canary_that_sees_a_change_goes_on() -> None:
    data = doubtful(changed=True)
    _, api = counting(data)
    found = masa.assess(
        data, api, baseline="old", old_confidence="sure", budget=400, store=None, canary=20
    )
    assert (found.stopped, found.moved, found.queries) == ("budget", "yes", 400)
    assert not any("canary" in note for note in found.notes)
    with pytest.raises(masa.UsageError, match="paired has no canaries"):
        masa.assess(data, api, baseline="old", budget=400, store=None, canary=20, method="paired")


def test_a_change_for_the_better_need_not_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    better, worse = api(worse=0.3), api(worse=0.3)
    better = replace(
        better, predictions={"old": better.predictions["new"], "new": better.predictions["old"]}
    )
    for data, direction, code in ((better, "better", 0), (worse, "worse", 1)):
        file = tmp_path / f"{direction}.csv"
        columns = [data.label, data.predictions["old"], data.predictions["new"]]
        rows = [
            ",".join(column.values[column.codes[item]] for column in columns)
            for item in range(len(data))
        ]
        file.write_text("\n".join(["label,old,new", *rows]))
        given = [
            "assess",
            str(file),
            "--label",
            "label",
            "--old",
            "old",
            "--api",
            "replay:new",
            "--budget",
            "1000",
        ]
        given += ["--store", str(tmp_path / "masa.db"), "--decide", "--json", "--quiet"]
        assert main([*given, "--fail-on", "worse"]) == code
        assert json.loads(capsys.readouterr().out)["direction"] == direction
        assert main([*given, "--fresh"]) == 1
        capsys.readouterr()
    assert main([*given, "--fail-on", "none"]) == 2


def test_a_canary_of_all_items_asks_each_once() -> None:
    data = doubtful(changed=True).take(np.arange(30))
    calls, api = counting(doubtful(changed=True))
    for canary in (30, 60, 500):
        calls.clear()
        found = masa.assess(
            data,
            api,
            baseline="old",
            old_confidence="sure",
            budget=1000,
            store=None,
            canary=canary,
            tolerance=0.5,
        )
        assert sorted(calls) == list(range(30))
        assert found.verdict == "unchanged"
        assert found.shift is not None


def test_an_api_that_is_down_is_not_a_quiet_canary() -> None:
    def down(text: str) -> str:
        raise RuntimeError(text)

    data = doubtful(changed=False)
    found = masa.assess(
        data, down, baseline="old", old_confidence="sure", budget=300, store=None, canary=10,
        limits=masa.Limits(tries=1, first_wait=0.001),
    )  # fmt: skip
    assert (found.stopped, found.exit_code) == ("failures", 3)
    assert replace(found, canary_ok=True).exit_code == 3


def test_a_quiet_canary_can_be_gone_on_with(tmp_path: Path) -> None:
    data, store = doubtful(changed=False), tmp_path / "masa.db"
    _, api = counting(data)
    given: dict[str, Any] = {"baseline": "old", "old_confidence": "sure", "store": store}
    quiet = masa.assess(data, api, budget=300, canary=20, **given)
    assert (quiet.stopped, quiet.queries) == ("canary", 20)
    more = masa.assess(data, api, budget=300, resume=quiet.run, **given)
    assert (more.stopped, more.queries) == ("budget", 300)
    again = masa.assess(data, api, budget=400, canary=20, resume=quiet.run, **given)
    assert (again.stopped, again.queries) == ("budget", 400), "the canary was over"


def test_what_stops_a_run_still_holds_when_it_has_stopped() -> None:
    """With many calls under way too: nothing is, when the verdict is looked at."""
    for seed in range(12):
        data = api(2000, worse=0.15, seed=seed)
        found = masa.assess(
            data, "replay:new", baseline="old", budget=2000, store=None, decide=True, seed=seed
        )
        assert found.stopped in ("decided", "exhausted")
        assert found.verdict != "undecided"


@pytest.mark.parametrize(("first", "second"), [(0, 40), (4, 40), (40, 0), (40, 4)])
def test_a_run_keeps_the_canaries_that_it_began_with(
    tmp_path: Path, first: int, second: int
) -> None:
    """However many are wanted when it is resumed.

    All items are asked in the end, and what is said on the way is right.
    """
    data = doubtful(changed=True)
    common: dict[str, Any] = {"baseline": "old", "old_confidence": "sure"}
    held = 0
    for seed in range(4):
        options = {**common, "store": tmp_path / f"{seed}.db", "seed": seed}
        begun = masa.assess(data, "replay:new", budget=max(9, first), canary=first, **options)
        later = masa.assess(
            data, "replay:new", budget=300, canary=second, resume=begun.run, **options
        )
        change = later.accuracy_change
        assert change is not None
        held += change.low <= -0.03 <= change.high
        whole = masa.assess(data, "replay:new", budget=2000, resume=begun.run, **options)
        assert whole.queries == whole.answers == len(data)
        assert whole.accuracy_change is not None
        assert whole.accuracy_change.estimate == pytest.approx(-0.03, abs=1e-12)
    assert held >= 3


def test_a_census_leaves_no_doubt_not_even_that_of_rounding() -> None:
    same, moved = doubtful(changed=False), doubtful(changed=True)
    for method in ("auto", "masa"):
        common: dict[str, Any] = {
            "baseline": "old",
            "budget": 2000,
            "store": None,
            "method": method,
        }
        assert masa.assess(same, "replay:new", **common, tolerance=0).verdict == "unchanged"
        assert masa.assess(moved, "replay:new", **common, tolerance=0.03).verdict == "unchanged"
        assert masa.assess(moved, "replay:new", **common, tolerance=0.0299).verdict == "changed"


def test_a_canary_fits_into_its_budget_and_fresh_runs_are_not_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(masa.UsageError, match="the canary is 40 queries and the budget 10"):
        masa.assess(
            doubtful(changed=False), "replay:new", baseline="old", budget=10, canary=40, store=None
        )
    with pytest.raises(masa.UsageError, match="to be resumed"):
        masa.assess(
            doubtful(changed=False),
            "replay:new",
            baseline="old",
            budget=10,
            store=tmp_path / "a.db",
            resume=1,
            fresh=True,
        )


@pytest.mark.parametrize("confidence", [0.0, 0.45, 1.0 - 1e-15, 1.0, float("nan")])
def test_what_cannot_be_that_sure_is_refused_before_anything_is_asked(confidence: float) -> None:
    calls, api = counting(doubtful(changed=False))
    with pytest.raises(masa.UsageError, match="confidence is"):
        masa.assess(
            doubtful(changed=False),
            api,
            baseline="old",
            budget=10,
            store=None,
            confidence=confidence,
        )
    assert not calls


def test_replays_stop_by_any_tolerance_and_at_the_last_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = api(600, worse=0.1)
    columns = [data.label, data.predictions["old"], data.predictions["new"]]
    rows = [
        ",".join(column.values[column.codes[item]] for column in columns)
        for item in range(len(data))
    ]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["label,old,new", *rows]))
    given = [
        "replay",
        str(file),
        "--label",
        "label",
        "--old",
        "old",
        "--new",
        "new",
        "--runs",
        "4",
        "--stop",
        "decide",
        "--json",
    ]
    assert main([*given, "--method", "auto", "--tolerance", "recall=1%,entry=5%", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["methods"]["auto"]["stopping"]["runs"] == 4
    assert main([*given, "--strict", "--budgets", "90", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["methods"]["auto"]["stopping"]["queries_mean"] == 90
    assert main([*given, "--strict", "--method", "masa"]) == 2
    assert "no strict intervals" in capsys.readouterr().err
