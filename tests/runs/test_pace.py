"""How fast and how many at once, on a real HTTP server."""

import time
from pathlib import Path

import numpy as np

import masa
from live_runs import client, data
from masa.records import Column
from masa.runs.pace import Pace
from masa.settings import Limits
from server import Server


def test_a_rate_limit_is_kept(server: Server, tmp_path: Path) -> None:
    old = Column("old", ("pos",), np.zeros(300, np.int32))
    began = time.monotonic()
    masa.assess(
        data(),
        client(server),
        baseline=old,
        budget=50,
        store=tmp_path / "s.db",
        limits=Limits(rate=100.0),
    )
    assert time.monotonic() - began >= 0.47


def test_concurrency_grows_while_answers_come_and_falls_on_refusals(tmp_path: Path) -> None:
    old = Column("old", ("pos",), np.zeros(300, np.int32))
    with Server(delay=0.1) as server:
        masa.assess(
            data(),
            client(server),
            baseline=old,
            budget=200,
            store=tmp_path / "s.db",
            limits=Limits(concurrency=30),
        )
        assert 20 <= server.most_at_once <= 30
    with Server(delay=0.02, faults=0.3, kinds=("429",)) as server:
        limits = Limits(concurrency=30, first_wait=0.005)
        masa.assess(
            data(), client(server), baseline=old, budget=200, store=tmp_path / "t.db", limits=limits
        )
        late = server.requests[len(server.requests) // 2 :]
        assert server.most_at_once < 20
        assert len(late) > 100


def test_retry_after_is_honoured(tmp_path: Path) -> None:
    old = Column("old", ("pos",), np.zeros(300, np.int32))
    with Server(faults=0.2, kinds=("429-after",)) as server:
        times: list[float] = []
        server.change = lambda _text, label: times.append(time.monotonic()) or label  # type: ignore[func-returns-value]
        masa.assess(
            data(),
            client(server),
            baseline=old,
            budget=40,
            store=tmp_path / "s.db",
            limits=Limits(concurrency=1, first_wait=0.001),
        )
        refused = sum(request.fault == "429-after" for request in server.requests)
        assert refused
        assert times[-1] - times[0] > 0.045 * (refused - 1)


def test_what_was_missed_is_caught_up_with_and_no_second_has_more_calls_than_allowed() -> None:
    pace, sent = Pace(100.0), []
    for pause in (0.0, 0.15, 0.5, 0.0):
        time.sleep(pause)
        sent += [time.monotonic() + max(0.0, pace.turn()) for _ in range(30)]
        time.sleep(max(0.0, sent[-1] - time.monotonic()))
    begun = np.array(sent) - sent[0]
    # The 0.15 s are caught up with, and 0.25 of the 0.5 s.
    assert begun[-1] < 0.29 + 0.3 + 0.3 + 0.3 + 0.25 + 0.1
    for first in range(len(begun) - 100):
        assert begun[first + 100] - begun[first] >= 1.0 - 1e-6
