"""Runs that are interrupted, resumed, set aside or mistaken for another."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from live_runs import ONE, QUICK, calls, client, data
from masa.records import Column
from masa.runs.baseline import baseline
from masa.storage import history, journal
from masa.storage.store import opened
from server import Server, database


def test_a_run_that_was_set_aside_stays_aside(server: Server, tmp_path: Path) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
    with database(store) as connection:
        connection.execute("UPDATE run SET finished = NULL")
    assert (
        masa.assess(
            data(), client(server), baseline=old, budget=5, store=store, limits=ONE, fresh=True
        ).run
        == 2
    )
    assert (
        masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE).run
        == 3
    )


def test_the_same_call_goes_on_and_asks_nothing_twice(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    whole = masa.assess(
        data(), client(server), baseline=old, budget=80, store=None, limits=ONE, seed=3
    )
    texts, server.requests = server.answered, []

    class Enough(Exception):
        pass

    def stop_at(count: int) -> Any:
        def progress(_what: str, _done: float) -> None:
            if len(server.requests) >= count:
                raise Enough

        return progress

    asked = client(server)
    for count in (20, 50):
        monkeypatch.setattr("masa.runs.watch.SHOWN_EVERY", 0.0)
        with pytest.raises(Enough):
            masa.assess(
                data(),
                asked,
                baseline=old,
                budget=80,
                store=store,
                limits=ONE,
                seed=3,
                progress=stop_at(count),
            )
    found = masa.assess(data(), asked, baseline=old, budget=80, store=store, limits=ONE, seed=3)
    assert found.run == 1
    assert server.answered == texts
    assert (found.shift.values == whole.shift.values).all()  # type: ignore[union-attr]
    again = masa.assess(data(), asked, baseline=old, budget=80, store=store, limits=ONE, seed=3)
    assert again.run == 2, "a finished run is not gone on with: the API may have changed since"
    larger = masa.assess(
        data(), asked, baseline=old, budget=90, store=store, limits=ONE, seed=3, resume=1
    )
    assert (larger.run, larger.queries, larger.answers) == (1, 90, 90)


def test_an_unanswered_call_counts_as_spent_and_its_item_is_asked_first(
    server: Server, tmp_path: Path
) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    masa.assess(data(), client(server), baseline=old, budget=10, store=store, limits=ONE)
    with database(store) as connection:
        lost = connection.execute(
            "UPDATE call SET outcome = NULL, cost = NULL, ended = NULL WHERE number = 4 RETURNING item"
        ).fetchone()[0]
        connection.execute("UPDATE run SET finished = NULL")
    server.requests = []
    found = masa.assess(data(), client(server), baseline=old, budget=12, store=store, limits=ONE)
    assert (found.queries, found.answers, len(server.requests)) == (12, 11, 2)
    assert [item for item, *_ in calls(store)].count(lost) == 2
    assert calls(store)[10][0] == lost


def test_an_old_unfinished_run_is_not_mixed_with_new_answers(
    server: Server, tmp_path: Path
) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
    with database(store) as connection:
        connection.execute("UPDATE run SET finished = NULL, touched = '2026-01-01T00:00:00+00:00'")
    found = masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
    assert found.run == 2
    assert "too old" in " ".join(found.notes)
    assert (
        masa.assess(
            data(), client(server), baseline=old, budget=7, store=store, limits=ONE, resume=1
        ).answers
        == 7
    )


def test_another_command_cannot_go_on_with_a_run(server: Server, tmp_path: Path) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
    with pytest.raises(masa.UsageError, match="seed: null then, 1 now"):
        masa.assess(data(), client(server), baseline=old, budget=5, store=store, seed=1, resume=1)
    with pytest.raises(masa.UsageError, match="the data is not the same"):
        masa.assess(
            data(299),
            client(server),
            baseline=Column("old", ("pos",), np.zeros(299, np.int32)),
            budget=5,
            store=store,
            resume=1,
        )
    with pytest.raises(masa.UsageError, match="there is no run 9"):
        masa.assess(data(), client(server), baseline=old, budget=5, store=store, resume=9)


@pytest.mark.parametrize("method", ["predictive", "paired", "adaptive"])
def test_a_run_in_pieces_gives_what_a_run_in_one_gives(
    server: Server, tmp_path: Path, method: str
) -> None:
    """Batches are drawn again from the journal.

    What strata are asked next depends on the order of answers, so one at a time.
    """
    whole, parts = tmp_path / "whole.db", tmp_path / "parts.db"
    limits = QUICK if method == "predictive" else ONE
    for store in (whole, parts):
        baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    server.change = lambda text, label: "neg" if "lovely" in text else label
    one = masa.assess(data(), client(server), budget=190, store=whole, limits=limits, method=method)
    for budget in (1, 17, 60, 61, 120, 190):
        paused = masa.assess(
            data(), client(server), budget=budget, store=parts, limits=limits, method=method
        )
        with opened(parts) as kept:
            history.pause(kept, paused.run, "interrupted")
    assert sorted(calls(whole, 2)) == sorted(calls(parts, 2))
    aside: dict[str, object] = {"notes": [], "made": None}
    assert paused.to_dict() | aside == one.to_dict() | aside
    with opened(parts) as kept:
        drawn = journal.past(kept, 2).draws
    assert len(drawn) == (190 if method == "predictive" else 0)
    if drawn:
        assert [batch for batch, _, _ in list(drawn.values())[:4]] == [1, 0, 1, 0]
        assert all(0.0 < chance <= 1.0 for _, chance, _ in drawn.values())


def test_other_old_answers_make_another_run(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    for name, code in (("one", 0), ("other", 1)):
        old = Column(name, ("neg", "pos"), np.full(300, code, np.int32))
        found = masa.assess(
            data(), client(server), baseline=old, budget=20, store=store, limits=QUICK
        )
        with opened(store) as kept:
            history.pause(kept, found.run, "interrupted")
    assert found.run == 2
    with pytest.raises(masa.UsageError, match="weights: "):
        masa.assess(
            data(),
            client(server),
            baseline=old,
            budget=20,
            store=store,
            limits=QUICK,
            resume=2,
            weights="accuracy",
        )
