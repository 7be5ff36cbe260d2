"""Runs that stop by themselves: once the shift is known well enough, or the verdict is certain."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import masa
from masa.cli import app
from masa.dataset import Dataset
from masa.old import columned
from masa.plan import Settings
from masa.rehearse import rehearse
from masa.stopping import FIRST_LOOK, GROWTH, Stopping, critical, looks


def api(items: int = 3000, *, worse: float = 0.0, seed: int = 0) -> Dataset:
    """Two labels, 85% right; a share of the right answers became wrong, and half as many the other way round."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, items)
    old = np.where(rng.random(items) < 0.85, label, 1 - label)
    flips = rng.random(items) < np.where(old == label, worse, worse / 2)
    new = np.where(flips, 1 - old, old)
    names = np.array(["ham", "spam"])
    return Dataset.of(names[label].tolist(), predictions={"old": names[old].tolist(), "new": names[new].tolist()})


def test_looking_often_costs_what_it_costs_a_random_walk() -> None:
    count = looks(5_000)
    rng = np.random.default_rng(0)
    z = rng.standard_normal(200_000)
    largest = np.abs(z)
    for _ in range(count - 1):
        z = z / np.sqrt(GROWTH) + np.sqrt(1 - 1 / GROWTH) * rng.standard_normal(len(z))
        largest = np.maximum(largest, np.abs(z))
    assert critical(count, 0.95) == pytest.approx(np.quantile(largest, 0.95), abs=0.02)
    assert critical(1, 0.99) == pytest.approx(2.5758, abs=1e-3)


def test_looks_are_few_and_the_same_however_the_answers_come() -> None:
    rule = Stopping(decide=True)
    seen, answers = [], 0
    while (look := rule.next_look(answers, 6)) is not None and look <= 1_000:
        seen.append(look)
        answers = look
    assert seen[0] == FIRST_LOOK
    assert len(seen) <= looks(1_000)
    assert rule.next_look(seen[3] + 1, 6) == seen[4]
    assert Stopping().next_look(0, 6) is None


def test_a_change_that_is_large_is_called_early_and_none_at_all_not_late() -> None:
    large = masa.assess(api(worse=0.3), "replay:new", baseline="old", budget=3000, store=None, decide=True)
    assert (large.verdict, large.stopped) == ("changed", "decided")
    assert large.queries < 300
    none = masa.assess(api(worse=0.0), "replay:new", baseline="old", budget=3000, store=None, decide=True)
    assert (none.verdict, none.stopped, none.exit_code) == ("unchanged", "decided", 0)
    assert none.queries < 1500
    small = masa.assess(api(worse=0.02), "replay:new", baseline="old", budget=150, store=None, decide=True)
    assert (small.verdict, small.stopped, small.exit_code) == ("undecided", "budget", 3)


def test_a_target_is_met_and_no_more() -> None:
    data = api(worse=0.05)
    found = masa.assess(data, "replay:new", baseline="old", budget=3000, store=None, target_error=0.02)
    assert found.stopped == "target"
    assert found.error_bound is not None
    assert 0.015 < found.error_bound <= 0.02
    with pytest.raises(masa.UsageError, match="target error is 0"):
        masa.assess(data, "replay:new", baseline="old", budget=10, store=None, target_error=0.0)


def test_what_the_journal_knows_may_be_enough(tmp_path: Path) -> None:
    """A run that was interrupted after it knew enough does not ask again."""
    data, store = api(worse=0.3), tmp_path / "masa.db"
    masa.baseline(data, "replay:old", store=store)
    whole = masa.assess(data, "replay:new", budget=400, store=store, force=True, decide=True)
    assert whole.stopped == "decided"
    longer = masa.assess(data, "replay:new", budget=400, store=store, force=True, fresh=True)
    again = masa.assess(data, "replay:new", budget=400, store=store, force=True, resume=longer.run, decide=True)
    assert (again.queries, again.stopped) == (400, "decided")


@pytest.mark.parametrize("method", ["auto", "paired", "post-stratified"])
def test_verdicts_are_right_when_they_are_certain(method: str) -> None:
    """Where nothing that matters changed there are few false alarms, and intervals hold at the time of stopping."""
    for worse in (0.0, 0.03):
        data = api(1500, worse=worse)
        report = rehearse(
            data,
            new=data.predictions["new"],
            old=columned(data, data.predictions["old"]),
            settings=Settings(method),
            stopping=Stopping(decide=True),
            runs=60,
        )
        assert report.coverage >= 0.9
        assert (report.false_alarms or 0.0) <= 0.05
        assert (report.misses or 0.0) <= 0.05
        assert report.queries_p95 <= 1500


def test_a_replay_tells_how_assessments_stop(tmp_path: Path) -> None:
    data = api(800, worse=0.1)
    rows = ["label,old,new"]
    columns = [data.label, data.predictions["old"], data.predictions["new"]]
    rows += [",".join(column.values[column.codes[item]] for column in columns) for item in range(800)]
    file = tmp_path / "api.csv"
    file.write_text("\n".join(rows))
    given = ["replay", str(file), "--label", "label", "--old", "old", "--new", "new", "--runs", "12"]
    given += ["--method", "paired,optimal", "--budgets", "100"]
    for rule in ("decide", "target"):
        shown = CliRunner().invoke(app, [*given, "--target-error", "0.03", "--stop", rule, "--json", "--quiet"])
        assert shown.exit_code == 0, shown.output
        methods = json.loads(shown.stdout)["methods"]
        assert methods["optimal"]["stopping"] is None
        ended = methods["paired"]["stopping"]
        assert ended["runs"] == 12
        assert 100 <= ended["queries_mean"] <= ended["queries_p95"] <= 800
        assert ended["coverage"] >= 0.75
    plain = CliRunner().invoke(app, [*given, "--stop", "decide", "--quiet"])
    assert "Assessments that stop by themselves" in plain.stdout
    assert CliRunner().invoke(app, [*given[:4], "--new", "new", "--stop", "decide"]).exit_code != 0
