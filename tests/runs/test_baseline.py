"""Recording what an API answers now, within a budget, twice, or from known answers."""

from pathlib import Path

import numpy as np
import pytest

import masa
from live_runs import QUICK, client, data
from masa.doubles.made_up import reviews
from masa.records import Column
from masa.runs.baseline import baseline, import_answers
from server import Server


def test_an_api_that_contradicts_itself_is_measured_and_called_noise(
    server: Server, tmp_path: Path
) -> None:
    import random

    chance = random.Random(3)
    server.change = lambda _text, label: (
        chance.choice(("pos", "neg", "neu")) if chance.random() < 0.3 else label
    )
    store = tmp_path / "s.db"
    first = baseline(data(), client(server), budget=500, repeat=200, store=store, limits=QUICK)
    assert (first.answers, first.repeated, first.queries) == (300, 200, 500)
    assert 30 <= first.contradicted <= 100
    noise = first.contradiction
    assert noise is not None
    assert noise.low < first.contradicted / 200 < noise.high
    found = masa.assess(data(), client(server), budget=150, store=store, limits=QUICK)
    assert found.moved == "noise"
    assert "% of 200 items asked twice were answered differently" in found.proof
    server.change = lambda _text, _label: "pos"
    assert masa.assess(data(), client(server), budget=150, store=store, limits=QUICK).moved == "yes"


def test_a_budget_is_shared_by_items_and_those_asked_twice(server: Server, tmp_path: Path) -> None:
    found = baseline(
        data(), client(server), budget=100, repeat=99, store=tmp_path / "s.db", limits=QUICK
    )
    assert (found.answers, found.repeated, found.queries) == (50, 50, 100)
    more = baseline(
        data(),
        client(server),
        budget=200,
        repeat=99,
        store=tmp_path / "s.db",
        limits=QUICK,
        resume=found.run,
    )
    assert (more.answers, more.repeated, more.queries) == (101, 99, 200)


def test_a_baseline_within_a_budget_covers_every_stratum_and_its_doubt_counts(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "s.db"
    part = baseline(data(), client(server), budget=60, store=store, limits=QUICK)
    assert (part.answers, part.complete) == (60, False)
    assert part.matrix is not None
    assert min(part.matrix.values.sum(axis=1)) > 0
    server.change = lambda text, label: "neg" if "lovely" in text else label
    found = masa.assess(data(), client(server), budget=300, store=store, limits=QUICK, seed=1)
    assert (found.stopped, found.answers, found.items, found.moved) == ("exhausted", 60, 60, "yes")
    assert "60 of 300 items" in " ".join(found.notes)
    assert found.accuracy_change is not None
    assert found.error_bound is not None
    assert found.accuracy_change.high - found.accuracy_change.low > 0.05, (
        "all of them were asked, but not all items"
    )
    assert found.error_bound > 0.05


def test_known_answers_are_taken_over_without_asking(server: Server, tmp_path: Path) -> None:
    known = [server.label(text) for text, _ in reviews(300)]
    values = tuple(sorted(set(known)))
    column = Column("old", values, np.array([values.index(label) for label in known], np.int32))
    taken = import_answers(data(), column, client=client(server), store=tmp_path / "s.db")
    assert (taken.answers, taken.queries, taken.complete) == (300, 0, True)
    found = masa.assess(data(), client(server), budget=100, store=tmp_path / "s.db", limits=QUICK)
    assert (found.moved, found.compared) == ("no sign", 100)


def test_a_baseline_that_cannot_be_accepted_is_not_finished_either(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are one transaction: a process that dies between them would pay everything again."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("masa.storage.history._accept", die)
        with pytest.raises(KeyboardInterrupt):
            masa.baseline(data(), client(server), budget=40, store=tmp_path / "s.db", limits=QUICK)
    asked = len(server.requests)
    found = masa.baseline(data(), client(server), budget=40, store=tmp_path / "s.db", limits=QUICK)
    assert (found.run, found.answers, len(server.requests)) == (1, 40, asked)
