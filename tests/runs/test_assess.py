"""Whole assessments of a real HTTP server."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

import masa
from live_runs import QUICK, client, data
from masa.records import Column, Versions
from masa.runs.baseline import baseline
from masa.storage import history
from masa.storage.store import opened
from server import VERSION, Server


def test_a_baseline_then_an_update_is_found_and_named(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    first = baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    assert (first.answers, first.queries, first.complete) == (300, 300, True)
    assert first.cost == pytest.approx(0.3)
    assert first.api_version == VERSION
    server.change = lambda text, label: "neg" if "lovely" in text else label
    found = masa.assess(data(), client(server), budget=150, store=store, limits=QUICK)
    assert (found.moved, found.stopped, found.queries, found.answers) == ("yes", "budget", 150, 150)
    assert found.cost == pytest.approx(0.15)
    assert found.shift is not None
    assert found.shift.accuracy.new < found.shift.accuracy.old
    assert ("pos", "neg") in [(s.label, s.prediction) for s in found.surprises(2)]
    assert all(
        "lovely" in server.requests[0].text or item.new == "neg" for item in found.changed_items
    )
    assert found.api_version == Versions(VERSION, VERSION)


def test_nothing_changed_is_no_sign(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    found = masa.assess(data(), client(server), budget=300, store=store, limits=QUICK)
    assert (found.moved, found.verdict, found.differing, found.exit_code) == (
        "no sign",
        "unchanged",
        0,
        0,
    )
    assert found.shift is not None
    assert found.shift.norm == pytest.approx(0.0, abs=1e-12)


def test_errors_alone_never_make_a_verdict(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    good = baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    server.faults, server.kinds = 1.0, ("400",)
    down = masa.assess(data(), client(server), budget=9, store=store, limits=QUICK)
    assert (down.stopped, down.verdict, down.exit_code) == ("failures", "undecided", 3)
    bad = baseline(data(), client(server), budget=9, store=store, limits=QUICK)
    assert (bad.answers, bad.exit_code) == (0, 3)
    with opened(store) as kept:
        current = history.current(kept, "default")
        assert current is not None
        assert current.id == good.run, "a baseline without answers is none"
    server.faults = 0.15
    some = masa.assess(data(), client(server), budget=300, store=store, limits=QUICK, fresh=True)
    assert some.errors > 20
    assert (some.moved, some.verdict) == ("no sign", "undecided")


def test_it_runs_inside_a_running_loop_as_in_a_notebook(server: Server) -> None:
    async def notebook() -> masa.Assessment:
        return masa.assess(
            data(),
            client(server),
            baseline=Column("old", ("pos",), np.zeros(300, np.int32)),
            budget=10,
            store=None,
        )

    async def awaited() -> masa.Assessment:
        return await masa.assess_async(
            data(),
            client(server),
            baseline=Column("old", ("pos",), np.zeros(300, np.int32)),
            budget=10,
            store=None,
        )

    assert (
        asyncio.run(notebook()).delta.values.tolist()
        == asyncio.run(awaited()).delta.values.tolist()
    )
