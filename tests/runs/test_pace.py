"""How fast and how many at once, on a real HTTP server."""

import time
from pathlib import Path

import numpy as np

import masa
from live_runs import client, data
from masa.records import Column
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
