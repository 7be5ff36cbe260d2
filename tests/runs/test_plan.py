"""What a precision costs and what a budget buys, before anything is spent."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from masa.cli.main import main
from masa.clients import Function
from masa.clients.replay import ReplayClient
from masa.data.baseline_answers import from_column
from masa.data.dataset import Dataset
from masa.records import Column, Curve, Point
from masa.replays.made_up_change import made_up_change, queries_for
from masa.replays.replay import replay
from masa.runs.earlier_change import learned_from_run
from masa.runs.plan import plan
from masa.runs.stored_baseline import lay_over
from masa.settings import Settings
from masa.storage import history
from masa.storage.store import opened

NAMES = np.array(["ham", "spam"])


def mail(items: int = 3000, *, changed: float = 0.05, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, items)
    sure = rng.random(items)
    old = np.where(rng.random(items) < 0.6 + 0.4 * sure, label, 1 - label)
    new = np.where(rng.random(items) < changed * 1.5 * (1.0 - sure) ** 0.5, 1 - old, old)
    return Dataset.of(
        NAMES[label].tolist(),
        predictions={"old": NAMES[old].tolist(), "new": NAMES[new].tolist()},
        numbers={"sure": sure.tolist()},
        inputs={"text": [f"mail {place}" for place in range(items)]},
    )


def test_a_plan_promises_about_what_is_then_needed() -> None:
    data = mail()
    old, new = (data.predictions[name] for name in ("old", "new"))
    share = float(np.mean(old.codes != new.codes))
    planned = made_up_change(
        data, from_column(data, old, "sure"), Settings(), runs=40, methods=("auto",)
    )
    method = planned.laid_out(0.01)
    promised = planned.curve(method, share, budgets=(300,), error=0.01).queries_for_target
    real = replay(
        data,
        new="new",
        old="old",
        old_confidence="sure",
        methods=("auto",),
        budgets=(300,),
        runs=100,
        target_error=0.01,
    )
    needed = real.curves[0].queries_for_target
    assert promised is not None
    assert needed is not None
    assert 0.8 < promised / needed < 1.25


def test_what_is_made_up_is_what_was_asked_for() -> None:
    data = mail()
    case = made_up_change(
        data, from_column(data, data.predictions["old"], "sure"), Settings(), runs=10
    )
    for share in (0.001, 0.03, 0.5, 1.0):
        new = case.changed(share).predictions["new"]
        old = data.predictions["old"].on(new.values)
        assert np.count_nonzero(new.codes != old.codes) == round(share * len(data))
    few = case.changed(0.05).predictions["new"]
    hit = few.codes != data.predictions["old"].on(few.values).codes
    assert data.numbers["sure"][hit].mean() < 0.45  # Rather where it was unsure.
    assert np.array_equal(few.codes, case.changed(0.05).predictions["new"].codes)


def test_more_queries_buy_more_and_smaller_errors_cost_more() -> None:
    data, shown = mail(), list[masa.Forecast]()
    found = plan(
        data,
        ReplayClient(data.predictions["old"]),
        baseline="old",
        settings=Settings(old_confidence="sure"),
        errors=(0.03, 0.015),
        budgets=(100, 400),
        price=0.01,
        early=shown.append,
        runs=40,
        store=None,
    )
    large, small = found.costs
    assert [cost.queries["auto"] for cost in shown[0].costs] == [
        large.queries["auto"],
        small.queries["auto"],
    ]
    assert (shown[0].replay, shown[0].buys) == (None, ())
    assert any("uses the baseline answers" in note for note in found.notes)
    assert small.range is not None
    assert (small.range.low or 0) <= (small.queries["auto"] or 0) <= (small.range.high or 0)
    assert set(found.buys[0].smallest) == {"ham", "spam"}
    assert (large.error, small.error) == (0.03, 0.015)
    for method in ("auto", "masa", "post-stratified"):
        few, many = large.queries[method], small.queries[method]
        assert few is not None
        assert many is not None
        assert few < many
    assert small.until_sure is None or small.until_sure > 0.8 * (small.queries["auto"] or 0)
    few_queries, more_queries = found.buys
    assert few_queries.error > more_queries.error
    assert few_queries.accuracy > more_queries.accuracy
    assert list(more_queries.noticed) == sorted(more_queries.noticed)
    assert more_queries.noticed[-1] == 1.0
    assert found.money(400) == pytest.approx(4.0)
    assert "a guess" in found.why
    assert any("100 queries" in words for words in found.blind)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["precision"][0]["methods"]["auto"]["cost"] == pytest.approx(
        0.01 * (large.queries["auto"] or 0)
    )
    with pytest.raises(masa.UsageError, match="changed is 0"):
        plan(data, ReplayClient(data.predictions["old"]), baseline="old", changed=0.0, store=None)


def test_it_learns_from_what_earlier_runs_found_and_asks_nothing(tmp_path: Path) -> None:
    data = mail(1500, changed=0.2)
    store = tmp_path / "masa.db"
    old, new = (data.predictions[name] for name in ("old", "new"))
    calls = 0

    def api(text: Any) -> str:
        nonlocal calls
        calls += 1
        place = int(text.rsplit(maxsplit=1)[-1])
        return str(new.values[new.codes[place]] if calls > 1500 else old.values[old.codes[place]])

    client = Function(api)
    masa.baseline(data, client, budget=1500, store=store)
    run = masa.assess(data, client, budget=300, store=store)
    before = calls
    found = plan(
        data, client, errors=(0.05,), budgets=(50,), runs=10, methods=("auto",), store=store
    )
    assert calls == before
    assert found.why == f"what run {run.run} found"
    assert run.readings is not None
    assert run.readings.differing is not None
    assert found.changed == pytest.approx(run.readings.differing.estimate)
    assert found.price is None


def test_an_earlier_run_tells_which_answers_change_and_what_they_become(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    offer = rng.random(2000) < 0.15
    label = np.where(rng.random(2000) < 0.5, "ham", "spam")
    old = np.where(rng.random(2000) < 0.9, label, np.where(label == "ham", "spam", "ham"))
    new = np.where(offer & (old == "ham"), "junk", old)
    data = Dataset.of(
        label.tolist(),
        predictions={"old": old.tolist(), "new": new.tolist()},
        inputs={
            "text": [f"an {'offer' if offer[i] else 'answer'} number {i}" for i in range(2000)]
        },
    )
    store = tmp_path / "masa.db"
    calls = 0

    def api(text: Any) -> str:
        nonlocal calls
        calls += 1
        place = int(text.rsplit(maxsplit=1)[-1])
        return str(new[place] if calls > 2000 else old[place])

    client = Function(api)
    masa.baseline(data, client, budget=2000, store=store)
    assessed = masa.assess(data, client, budget=500, store=store)
    with opened(store) as kept:
        run = history.find(kept, assessed.run)
        now = lay_over(kept, data, history.find(kept, run.baseline or 0))[1]
        like = learned_from_run(kept, data, now, Settings(), run)
        half = learned_from_run(
            kept,
            *lay_over(kept, data.take(np.arange(1000)), history.find(kept, run.baseline or 0)),
            Settings(),
            run,
        )
        other = mail(50)
        nothing = learned_from_run(
            kept, other, from_column(other, other.predictions["old"]), Settings(), run
        )
    assert like is not None
    assert like.answers == 500
    assert like.error2 is not None
    assert half is not None
    assert half.answers < 500
    assert nothing is None
    assert {name for to in like.became.values() for name in to} == {"junk"}
    made_up = made_up_change(
        data,
        from_column(data, data.predictions["old"]),
        Settings(),
        runs=40,
        methods=("auto",),
        like=like,
    )
    again = made_up.changed(0.05).predictions["new"]
    hit = again.codes != data.predictions["old"].on(again.values).codes
    assert np.mean(offer[hit] & (old[hit] == "ham")) > 0.8
    method = made_up.laid_out(0.02)
    assert 0.6 < made_up.error_ratio(float(np.mean(old != new)), method) < 1.6
    by_strata = replace(made_up, methods=("masa",))
    assert by_strata.error_ratio(0.05, method) == 1.0  # Of that nothing was learned.
    found = plan(
        data, client, errors=(0.02,), budgets=(100,), runs=20, methods=("auto",), store=store
    )
    assert any(f"as changed in run {assessed.run}" in note for note in found.notes)
    real = replay(
        data,
        new="new",
        old="old",
        text="text",
        methods=("auto",),
        budgets=(100,),
        runs=100,
        target_error=0.02,
    )
    promised, needed = found.costs[0].queries["auto"], real.curves[0].queries_for_target
    assert promised is not None
    assert needed is not None
    assert 0.7 < promised / needed < 1.4
    more = plan(
        data,
        client,
        errors=(0.02,),
        budgets=(100,),
        changed=0.3,
        runs=20,
        methods=("masa", "auto"),
        store=store,
    )
    assert (more.costs[0].queries["auto"] or 0) > 1.5 * promised
    assert (more.costs[0].queries["masa"] or 0) > 0
    masa.baseline(
        data, client, budget=2000, store=store
    )  # Who plans from now on starts from the new answers.
    with opened(store) as kept:
        after = lay_over(kept, data, history.current(kept, "default") or run)[1]
        anew = learned_from_run(kept, data, after, Settings(), run)
    assert anew is not None
    assert anew.log_odds[new == old] == pytest.approx(like.log_odds[new == old])
    assert (
        anew.log_odds[new == "junk"] < like.log_odds[new == "junk"] - 0.5
    ).all()  # They are no longer what changed then.


def test_calls_of_the_baseline_that_failed_are_no_answers() -> None:
    data = mail(400)
    old = [data.predictions["old"].values[code] for code in data.predictions["old"].codes]
    answers = Column(
        "old",
        (*NAMES.tolist(), masa.records.ERROR),
        np.where(np.arange(400) % 9 == 0, 2, old_codes(old)),
    )
    case = made_up_change(data, from_column(data, answers), Settings(), runs=10, methods=("auto",))
    assert masa.records.ERROR not in case.changed(0.1).predictions["new"].values
    none = Column("old", (masa.records.ERROR,), np.zeros(400, np.int32))
    with pytest.raises(masa.UsageError, match="all calls of the baseline failed"):
        made_up_change(data, from_column(data, none), Settings(), runs=10)


def old_codes(names: list[str]) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array([NAMES.tolist().index(name) for name in names], np.int32)


def test_a_curve_that_goes_up_and_down_is_read_in_the_middle() -> None:
    path = [
        Point(queries, error, error)
        for queries, error in ((100, 0.04), (200, 0.019), (300, 0.021), (400, 0.01))
    ]
    curve = Curve("auto", (), (), (), (), (), None, (None, None), 0.0, tuple(path))
    at = queries_for(curve, 0.02)
    assert at is not None
    assert 199 <= at <= 300
    assert queries_for(curve, 0.05) == 100
    assert queries_for(curve, 0.001) is None


def test_a_baseline_within_a_budget_can_be_planned_from(tmp_path: Path) -> None:
    data = mail(1500)
    store = tmp_path / "masa.db"
    masa.baseline(data, "replay:old", budget=500, store=store)
    found = plan(
        data,
        ReplayClient(data.predictions["old"]),
        errors=(0.05,),
        budgets=(100,),
        runs=60,
        store=store,
    )
    whole = plan(
        data,
        ReplayClient(data.predictions["old"]),
        baseline="old",
        errors=(0.05,),
        budgets=(100,),
        runs=60,
        store=None,
    )
    assert (found.items, found.method) == (500, "auto")
    assert any("500 of 1,500 items" in note for note in found.notes)
    assert found.buys[0].error > whole.buys[0].error


def test_the_command_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = mail(1200)
    rows = ["label,old,sure"] + [
        f"{data.label.values[data.label.codes[i]]},{data.predictions['old'].values[data.predictions['old'].codes[i]]},"
        f"{data.numbers['sure'][i]}"
        for i in range(len(data))
    ]
    path, chart = tmp_path / "mail.csv", tmp_path / "plan.svg"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    common = [
        "plan",
        str(path),
        "--label",
        "label",
        "--old",
        "old",
        "--old-confidence",
        "sure",
        "--store",
        str(tmp_path / "m.db"),
    ]
    quick = [
        *common,
        "--runs",
        "20",
        "--target-error",
        "5%,3%",
        "--budgets",
        "100",
        "--method",
        "auto",
    ]
    assert main([*quick, "--changed", "10%", "--price", "0.002", "--plot", str(chart)]) == 0
    shown = capsys.readouterr().out
    assert "Nothing was asked and nothing was spent" in shown
    assert "What it cannot see" in shown
    assert "(0.20)" in shown
    assert chart.read_text(encoding="utf-8").startswith("<svg")
    assert main([*quick, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [cost["error"] for cost in told["precision"]] == [0.05, 0.03]
    assert (
        main(
            [
                "plan",
                str(path),
                "--label",
                "label",
                "--store",
                str(tmp_path / "m.db"),
                "--api",
                "replay:old",
            ]
        )
        == 2
    )
    assert "there is no baseline" in capsys.readouterr().err


def test_an_api_that_contradicts_itself_is_planned_as_one(tmp_path: Path) -> None:
    data = mail(1000)
    store = tmp_path / "masa.db"
    old = data.predictions["old"]
    luck = np.random.default_rng(0)

    def api(text: Any) -> str:
        code = old.codes[int(text.rsplit(maxsplit=1)[-1])]
        return str(old.values[1 - code if luck.random() < 0.06 else code])

    client = Function(api)
    made_first = masa.baseline(data, client, budget=1300, repeat=300, store=store)
    assert made_first.contradicted > 10
    found = plan(
        data, client, errors=(0.004,), budgets=(200,), runs=10, methods=("auto",), store=store
    )
    assert found.costs[0].until_sure is None  # Out of reach.
    assert found.buys[0].noticed[0] < 0.5
    assert any("this one does not" in note for note in found.notes)


def test_items_without_a_label_have_no_part_in_a_plan(tmp_path: Path) -> None:
    data = mail(600)
    label, old = (
        [column.values[code] for code in column.codes]
        for column in (data.label, data.predictions["old"])
    )
    rows = ["label,old"] + [f"{'' if i % 9 == 0 else label[i]},{old[i]}" for i in range(len(data))]
    path = tmp_path / "mail.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "masa.toml").write_text(
        f'[data]\npath = "{path}"\nlabel = "label"\nold = "old"\nunlabelled = true\n',
        encoding="utf-8",
    )
    quick = [
        "--runs",
        "10",
        "--target-error",
        "5%",
        "--budgets",
        "50",
        "--method",
        "auto",
        "--store",
        str(tmp_path / "m.db"),
    ]
    assert main(["plan", "--config", str(tmp_path / "masa.toml"), *quick]) == 0
