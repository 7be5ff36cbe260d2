"""One bad item never stops a run: it fails, and the others are answered."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import masa
from live_runs import calls, client, data
from masa.doubles.made_up import reviews
from masa.records import Column
from masa.settings import Limits
from server import KEY, WAYS, Server

LIMITS = Limits(concurrency=8, tries=3, first_wait=0.01, longest_wait=0.05)


def every(step: int, way: str) -> Callable[[str], str]:
    """Never answer about one item in so many, in this way."""
    bad = {text for text, _ in reviews(300)[3::step]}
    return lambda text: way if text in bad else ""


def same_answers(server: Server) -> Column:
    said = [server.label(text) for text, _ in reviews(300)]
    values = tuple(sorted(set(said)))
    return Column("old", values, np.array([values.index(one) for one in said], np.int32))


@pytest.mark.parametrize("way", WAYS)
def test_a_baseline_ends_by_itself_without_the_items_that_never_answer(
    server: Server, tmp_path: Path, way: str
) -> None:
    server.bad = every(100, way)
    found = masa.baseline(
        data(), client(server, timeout=0.5), budget=400, store=tmp_path / "s.db", limits=LIMITS
    )
    assert (found.errors, found.answers, found.stopped) == (3, 297, "exhausted")
    assert found.queries <= 297 + 3 * LIMITS.tries
    # It is accepted: an assessment finds it.
    server.bad = lambda _text: ""
    again = masa.assess(data(), client(server), budget=60, store=tmp_path / "s.db", limits=LIMITS)
    assert again.answers == 60


@pytest.mark.parametrize("way", WAYS)
def test_an_assessment_ends_by_itself_without_the_items_that_never_answer(
    server: Server, tmp_path: Path, way: str
) -> None:
    server.bad = every(100, way)
    found = masa.assess(
        data(),
        client(server, timeout=0.5),
        baseline=same_answers(server),
        budget=400,
        store=tmp_path / "s.db",
        limits=LIMITS,
        tolerance=0.1,
    )
    assert (found.errors, found.answers, found.stopped) == (3, 297, "exhausted")
    assert (found.verdict, found.exit_code) == ("unchanged", 0)
    assert found.queries == sum(
        outcome not in ("free", "unsent") for _, outcome, _, _ in calls(tmp_path / "s.db")
    )


def test_the_others_do_not_wait_for_an_item_that_hangs(server: Server, tmp_path: Path) -> None:
    """Every batch of 50 has such items; waiting for each of them in turn would take a minute."""
    server.bad = every(25, "timeout")
    began = time.monotonic()
    found = masa.assess(
        data(),
        client(server, timeout=0.5),
        baseline=same_answers(server),
        budget=400,
        store=tmp_path / "s.db",
        limits=Limits(concurrency=8, tries=6, first_wait=0.01, longest_wait=0.05),
    )
    assert (found.errors, found.answers) == (12, 288)
    assert time.monotonic() - began < 40.0


def test_a_key_that_stops_working_stops_the_run_and_its_items_are_asked_again(
    server: Server, tmp_path: Path
) -> None:
    server.bad = lambda _text: "401" if len(server.requests) > 100 else ""
    old = same_answers(server)

    def assess() -> masa.Assessment:
        return masa.assess(
            data(), client(server), baseline=old, budget=400, store=tmp_path / "s.db", limits=LIMITS
        )

    with pytest.raises(masa.ApiError, match="HTTP 401"):
        assess()
    assert len(server.requests) < 100 + 2 * (10 + LIMITS.concurrency)
    assert all(outcome != "error" for _, outcome, _, _ in calls(tmp_path / "s.db"))
    server.bad = lambda _text: ""
    found = assess()
    assert (found.run, found.errors, found.answers, found.stopped) == (1, 0, 300, "exhausted")


def test_items_that_failed_in_an_earlier_session_come_last(server: Server, tmp_path: Path) -> None:
    def baseline(tries: int) -> masa.Baseline:
        limits = Limits(concurrency=3, tries=tries, first_wait=0.01)
        return masa.baseline(
            data(), client(server), budget=500, store=tmp_path / "s.db", limits=limits
        )

    never = every(100, "500")
    server.bad = lambda text: never(text) or ("401" if len(server.requests) > 240 else "")
    with pytest.raises(masa.ApiError, match="HTTP 401"):
        baseline(100)
    server.bad, earlier = never, Counter(request.text for request in server.requests)
    failed = {text for text, tries in earlier.items() if never(text) and tries > 1}
    assert failed
    before = len(server.requests)
    second = baseline(3)
    assert (second.run, second.errors, second.answers) == (1, 3, 297)
    asked = [request.text for request in server.requests[before:]]
    new = [text for text in asked if text not in earlier]
    assert len(new) > 30
    assert min(asked.index(text) for text in failed) > len(new) - 8


def test_refusals_because_of_the_rate_are_not_held_against_single_items(tmp_path: Path) -> None:
    """Most calls are refused, and in the end every item is answered."""
    with Server(faults=0.8, kinds=("429",), seed=3) as server:
        found = masa.baseline(
            data(),
            client(server),
            budget=300,
            store=tmp_path / "s.db",
            limits=Limits(concurrency=8, tries=3, first_wait=0.002, longest_wait=0.01),
        )
        assert (found.errors, found.answers, found.queries) == (0, 300, 300)


def test_patience_ends_a_call_that_may_take_longer(server: Server, tmp_path: Path) -> None:
    server.bad = lambda _text: "timeout"
    began = time.monotonic()
    found = masa.assess(
        data(),
        client(server, timeout=60),
        baseline=same_answers(server),
        budget=100,
        store=tmp_path / "s.db",
        limits=Limits(patience=1.0),
    )
    assert (found.stopped, found.exit_code) == ("failures", 3)
    assert time.monotonic() - began < 15.0
    assert KEY.encode() not in (tmp_path / "s.db").read_bytes()
