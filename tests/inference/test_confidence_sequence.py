"""Strict intervals, which hold whenever one looks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from masa.cli.main import main
from masa.data.baseline_answers import from_column
from masa.data.dataset import Dataset
from masa.inference.method import Method
from masa.inference.readings import Reader
from masa.records import Answer, Assessment, Column, Query
from masa.sampling.draws import Draws
from masa.settings import Settings
from zoo import NAMES, holds, truth_of, zoo


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
