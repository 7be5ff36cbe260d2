"""Calls under way: failing, refused, forbidden, cancelled, stopped."""

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from live_runs import ONE, QUICK, client, data
from masa.clients import Context
from masa.clients.http import make
from masa.data.strata import Strata
from masa.doubles.made_up import reviews
from masa.records import Column
from masa.runs.budget import Budget
from masa.runs.engine import Engine
from masa.sampling.stratified import Sampler
from masa.settings import Limits
from masa.storage import history
from masa.storage.journal import Journal
from masa.storage.store import opened
from server import Server


@pytest.mark.parametrize("price", ["0.04", "0.001"])
def test_stopping_at_once_near_the_end_of_a_budget_does_not_hang(
    server: Server, tmp_path: Path, price: str
) -> None:
    """The last calls are under way and the next one waits for what they give back."""
    server.delay = 300

    async def play() -> str:
        with opened(tmp_path / "s.db") as kept:
            history.begin(kept, history.Draft("x", "assess", {}, {}, np.arange(9), "d"))
            writer = Journal(kept, 1)
            asked = client(server, price=price, timeout=300)
            budget = Budget(queries=5, money=100_000_000)
            items = data()
            engine = Engine(
                client=asked,
                journal=writer,
                budget=budget,
                limits=Limits(),
                item=items.item,
                key=lambda i: i,
            )
            asyncio.get_running_loop().call_later(0.5, engine.stop)
            asyncio.get_running_loop().call_later(0.7, engine.abandon)
            stopped = await asyncio.wait_for(engine.run(Sampler(Strata.build(items.label))), 60)
            await writer.close()
            await asked.close()
            assert (budget.held_queries, budget.held_money) == (0, 0)
            return stopped

    assert asyncio.run(play()) == "interrupted"


def test_cancelling_stops_paying(server: Server, tmp_path: Path) -> None:
    server.faults, server.kinds = 1.0, ("500",)

    async def play() -> int:
        old = Column("old", ("pos",), np.zeros(300, np.int32))
        work = masa.assess_async(
            data(),
            client(server),
            baseline=old,
            budget=300,
            store=tmp_path / "s.db",
            limits=Limits(first_wait=0.2),
        )
        task = asyncio.create_task(work)
        while len(server.requests) < 5 and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        asked = len(server.requests)
        await asyncio.sleep(0.5)
        assert len(server.requests) == asked
        return asked

    assert asyncio.run(play()) > 0


def test_aiohttp_sends_nothing_by_itself(tmp_path: Path) -> None:
    old = Column("old", ("pos",), np.zeros(300, np.int32))
    with Server(faults=0.5, kinds=("reset",)) as server:
        asked = client(server, url=f"{server.url}/classify?text={{text}}", method="GET", body=None)
        found = masa.assess(
            data(),
            asked,
            baseline=old,
            budget=60,
            store=tmp_path / "s.db",
            limits=Limits(first_wait=0.001, tries=20),
        )
        assert len(server.requests) == found.queries == 60


def test_one_item_that_is_forbidden_does_not_stop_the_others(
    server: Server, tmp_path: Path
) -> None:
    real, old = client(server), Column("old", ("pos",), np.zeros(300, np.int32))

    class Guarded:
        columns, priced = (), False
        price, describe, close = real.price, real.describe, real.close

        async def ask(self, item: masa.Item) -> masa.Reply:
            if "(7)" in item.text:
                raise masa.Fatal("HTTP 403", unless_answered=True)
            return await real.ask(item)

    found = masa.assess(
        data(), Guarded(), baseline=old, budget=300, store=tmp_path / "s.db", limits=QUICK
    )
    assert (found.errors, found.answers, found.stopped) == (1, 299, "exhausted")


def test_too_many_failures_are_no_verdict_however_often_one_asks(
    server: Server, tmp_path: Path
) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    server.faults, server.kinds = 0.5, ("400",)
    for _ in range(3):
        found = masa.assess(
            data(), client(server), baseline=old, budget=18, store=store, limits=ONE, tolerance=0.9
        )
        assert (found.stopped, found.verdict, found.exit_code) == ("failures", "undecided", 3)


def test_items_that_are_forbidden_before_anything_is_answered_are_put_off(
    server: Server, tmp_path: Path
) -> None:
    real, old = client(server), Column("old", ("pos",), np.zeros(300, np.int32))
    calls: list[str] = []

    class Guarded:
        columns, priced = (), False
        price, describe, close = real.price, real.describe, real.close

        async def ask(self, item: masa.Item) -> masa.Reply:
            calls.append(item.text)
            if item.text in calls[:2]:
                raise masa.Fatal("HTTP 403", unless_answered=True)
            return await real.ask(item)

    found = masa.assess(
        data(), Guarded(), baseline=old, budget=400, store=tmp_path / "s.db", limits=ONE
    )
    assert (found.errors, found.answers, found.stopped) == (2, 298, "exhausted")


def test_failures_are_not_wrong_answers_and_too_many_stop_the_run(tmp_path: Path) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    with Server(faults=1.0, kinds=("500",)) as server:
        limits = Limits(concurrency=4, tries=2, first_wait=0.001)
        found = masa.assess(
            data(), client(server), baseline=old, budget=200, store=store, limits=limits
        )
        assert (found.stopped, found.verdict, found.exit_code, found.shift) == (
            "failures",
            "undecided",
            3,
            None,
        )
        assert "HTTP 500" in " ".join(found.notes)
        assert found.queries == len(server.requests) < 40
        server.faults = 0.0
        again = masa.assess(
            data(), client(server), baseline=old, budget=200, store=store, limits=limits
        )
        assert (again.run, again.queries, again.errors) == (found.run, 200, 0), (
            "items are not to blame for an outage"
        )


def test_an_item_that_fails_for_good_is_a_column_of_its_own(server: Server, tmp_path: Path) -> None:
    real = client(server)

    class Picky:
        columns = ()
        priced = False
        price, describe, close = real.price, real.describe, real.close

        async def ask(self, item: masa.Item) -> masa.Reply:
            if "room" in item.text:
                raise masa.Rejected("HTTP 400")
            return await real.ask(item)

    old = Column("old", ("pos",), np.zeros(300, np.int32))
    found = masa.assess(
        data(), Picky(), baseline=old, budget=300, store=tmp_path / "s.db", limits=QUICK
    )
    assert found.shift is not None
    assert found.errors == sum("room" in text for text, _ in reviews(300))
    assert found.shift.new.predictions[-1] == masa.ERROR
    assert found.compared == 300 - found.errors
    assert found.cost is None


def test_a_wrong_key_stops_at_once_and_is_shown_nowhere(server: Server, tmp_path: Path) -> None:
    secret = "sk-wrong-77aa"
    bad = make(
        "",
        {
            "url": f"{server.url}/classify",
            "headers": {"Authorization": "Bearer ${K}"},
            "body": {"text": "{text}"},
            "label": "result.label",
            "price": 1,
        },
        Context(("pos",), ("text",), {"K": secret}),
    )
    with pytest.raises(masa.ApiError, match="HTTP 401") as caught:
        masa.assess(
            data(),
            bad,
            baseline=Column("old", ("pos",), np.zeros(300, np.int32)),
            budget=100,
            store=tmp_path / "s.db",
            limits=ONE,
        )
    assert len(server.requests) == 2, "one more, for perhaps it was about the first item alone"
    assert "does the key work" in caught.value.hint
    assert "wrong key Bearer ***" in caught.value.hint
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_batch_waits_for_its_last_answer_and_then_goes_on(tmp_path: Path) -> None:
    """With more calls allowed than a batch has items, and some of them failing for good."""
    old = Column("old", ("pos",), np.zeros(300, np.int32))
    limits = Limits(concurrency=200, first_wait=0.005, longest_wait=0.02, tries=2, failures=0.9)
    with Server(faults=0.2, kinds=("500",)) as server:
        server.delay = 0.01
        found = masa.assess(
            data(),
            client(server),
            baseline=old,
            budget=1000,
            store=tmp_path / "s.db",
            limits=limits,
        )
    assert (found.method, found.stopped) == ("predictive", "exhausted")
    assert found.answers + found.errors == 300
    assert found.errors > 0


def test_a_long_pause_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    class Never:
        columns, priced = (), False

        def price(self, _: masa.Item) -> int:
            return 0

        def describe(self) -> dict[str, Any]:
            return {"api": "never"}

        async def ask(self, _: masa.Item) -> masa.Reply:
            raise masa.Refused(retry_after=200)

        async def close(self) -> None:
            pass

    async def play() -> float:
        with opened(tmp_path / "s.db") as kept:
            history.begin(kept, history.Draft("x", "assess", {}, {}, np.arange(9), "d"))
            writer = Journal(kept, 1)
            engine = Engine(
                client=Never(),
                journal=writer,
                budget=Budget(9),
                limits=Limits(),
                item=lambda i: masa.Item(i, {}),
                key=lambda i: i,
            )
            began = time.monotonic()
            asyncio.get_running_loop().call_later(0.2, engine.stop)
            sampler = Sampler(Strata.build(Column("label", ("a",), np.zeros(9, np.int32))))
            assert await engine.run(sampler) == "interrupted"
            await writer.close()
            return time.monotonic() - began

    assert asyncio.run(play()) < 60
