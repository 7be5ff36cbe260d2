"""Runs against real HTTP servers: budgets, journals, resuming, failures, secrets."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from masa.clients import Context
from masa.clients.http import Http, make
from masa.data.strata import Strata
from masa.inference.counts import estimated_matrix
from masa.records import Answer, Column, Versions
from masa.runs.baseline import baseline, import_answers
from masa.runs.budget import Budget
from masa.runs.compare import compare
from masa.runs.engine import Engine
from masa.sampling.stratified import Sampler
from masa.settings import Limits
from masa.storage import history, journal
from masa.storage.journal import Journal
from masa.storage.store import HEAD, opened
from server import KEY, VERSION, Server, database, reviews, strange

QUICK = Limits(concurrency=8, first_wait=0.01, longest_wait=0.05)
ONE = Limits(concurrency=1, first_wait=0.01, longest_wait=0.05)


def data(count: int = 300) -> masa.Dataset:
    texts = reviews(count)
    return masa.Dataset.of(
        [label for _, label in texts], inputs={"text": [text for text, _ in texts]}
    )


def client(server: Server, **options: Any) -> Http:
    given = {
        "url": f"{server.url}/classify",
        "headers": {"Authorization": "Bearer ${SENTIMENT_KEY}"},
        "body": {"text": "{text}"},
        "label": "result.label",
        "confidence": "result.score",
        "version": "header:X-Model-Version",
        "price": 0.001,
        "timeout": 60,
    }
    return make(
        "", given | options, Context(("neg", "neu", "pos"), ("text",), {"SENTIMENT_KEY": KEY})
    )


def calls(store: Path, run: int = 1) -> list[tuple[Any, ...]]:
    with database(store) as connection:
        return connection.execute(
            "SELECT item, outcome, prediction, cost FROM call WHERE run = ? ORDER BY number", [run]
        ).fetchall()


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


@pytest.mark.parametrize("concurrency", [1, 32])
def test_a_budget_in_queries_holds_to_the_call_when_calls_fail(
    concurrency: int, tmp_path: Path
) -> None:
    limits = Limits(concurrency=concurrency, first_wait=0.005, longest_wait=0.02, tries=20)
    with Server(faults=0.4, kinds=("500", "reset", "truncated", "html", "429")) as server:
        found = masa.assess(
            data(),
            client(server),
            baseline=Column("old", ("pos",), np.zeros(300, np.int32)),
            budget=100,
            store=tmp_path / "s.db",
            limits=limits,
        )
        billed = [request for request in server.requests if request.fault != "429"]
        assert len(billed) == 100 == found.queries
        assert any(request.fault == "429" for request in server.requests)
        assert found.answers == len(server.answered) == len(set(server.answered))


def test_a_budget_in_money_is_never_exceeded_while_calls_are_under_way(
    server: Server, tmp_path: Path
) -> None:
    server.delay = 0.02
    old = Column("old", ("pos",), np.zeros(300, np.int32))
    found = masa.assess(
        data(),
        client(server, price="0.003"),
        baseline=old,
        money="0.1",
        store=tmp_path / "s.db",
        limits=Limits(concurrency=50),
    )
    assert len(server.requests) == 33 == found.queries
    assert found.cost == pytest.approx(0.099)


def test_what_is_reserved_comes_back_once_and_never_more() -> None:
    budget = Budget(queries=3, money=100)
    first = budget.reserve(60)
    assert first is not None
    assert budget.reserve(60) is None
    assert not budget.hopeless(60), "the first may turn out to cost less"
    first.sent = True
    first.settle(10)
    first.close()
    assert (budget.spent_queries, budget.spent_money, budget.held_money) == (1, 10, 0)
    second, third = budget.reserve(60), budget.reserve(30)
    assert second is not None
    assert third is not None
    assert budget.reserve(0) is None, "three queries are spent or under way"
    second.sent = True
    second.close()
    third.close()
    assert (budget.spent_queries, budget.spent_money) == (2, 70), (
        "what was sent is paid for, what was not is not"
    )
    assert budget.hopeless(31)


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


def test_an_answer_that_is_half_a_character_is_unreadable_and_harms_nobody(
    server: Server, tmp_path: Path
) -> None:
    old = Column("old", ("pos",), np.zeros(300, np.int32))
    server.change = lambda text, label: (
        "\ud83d" if "(7)" in text else "x\x00\x1b[31m" if "(8)" in text else label
    )
    found = masa.assess(
        data(), client(server), baseline=old, budget=300, store=tmp_path / "s.db", limits=QUICK
    )
    assert found.answers == 300
    assert found.shift is not None
    assert masa.INVALID in found.shift.new.predictions


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


def test_an_api_that_costs_more_than_its_worst_price_is_not_trusted_again(tmp_path: Path) -> None:
    class Dear:
        columns, priced = (), True

        def price(self, _: masa.Item) -> int:
            return 1_000_000

        def describe(self) -> dict[str, Any]:
            return {"api": "dear"}

        async def ask(self, item: masa.Item) -> masa.Reply:
            await asyncio.sleep(0.001)
            return masa.Reply("pos", cost=2_000_000 if item.place % 3 else 1_000_000)

        async def close(self) -> None:
            pass

    old = Column("old", ("pos",), np.zeros(300, np.int32))
    found = masa.assess(
        data(),
        Dear(),
        baseline=old,
        money="0.2",
        store=tmp_path / "s.db",
        limits=Limits(concurrency=8),
    )
    assert found.cost is not None
    assert 0.19 < found.cost <= 0.21
    assert "more than the worst price" in " ".join(found.notes)


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


def test_an_api_that_renames_its_labels_has_changed(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    server.change = lambda _text, label: label.upper()
    found = masa.assess(data(), client(server), budget=100, store=store, limits=QUICK)
    assert (found.verdict, found.moved) == ("changed", "yes")
    assert "'NEG', which is not the label 'neg'" in " ".join(found.notes)


def test_functions_are_known_by_what_they_do() -> None:
    from functools import partial

    from masa.clients import identity

    def one(text: str) -> str:
        return "pos" if text else "neg"

    def made(answer: str) -> Any:
        return lambda _text: answer

    assert identity(one) == identity(one)
    assert identity(made("pos")) != identity(made("neg"))
    assert identity(partial(one, "x")) != identity(partial(one, "y"))
    assert identity(one).startswith("test_live.")
    assert "sk-1" not in identity(partial(one, "sk-1")), "it is stored"


def test_strange_labels_stop_a_run_before_much_is_spent(server: Server, tmp_path: Path) -> None:
    server.change = lambda _text, label: label.upper()
    with pytest.raises(masa.DataError, match="none of the first 20 answers is a label") as caught:
        baseline(data(), client(server), budget=300, store=tmp_path / "s.db", limits=QUICK)
    assert 'labels = { "' in caught.value.hint
    assert len(server.requests) < 40
    server.change = lambda _text, label: "Neg" if label == "neg" else label
    found = baseline(
        data(), client(server), budget=300, store=tmp_path / "s.db", limits=QUICK, fresh=True
    )
    assert "'Neg', which is not the label 'neg'" in " ".join(found.notes)


def test_a_wrong_way_to_the_label_is_told_at_once(server: Server, tmp_path: Path) -> None:
    with pytest.raises(masa.ApiError, match=r"no answer has 'result.lable'") as caught:
        baseline(
            data(),
            client(server, label="result.lable"),
            budget=300,
            store=tmp_path / "s.db",
            limits=QUICK,
        )
    assert "it has result.label, result.score" in caught.value.hint
    assert len(server.requests) < 20


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


def test_a_second_process_on_the_same_run_is_told(server: Server, tmp_path: Path) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    with opened(store) as kept:
        masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
        with database(store) as connection:
            connection.execute("UPDATE run SET finished = NULL")
        with kept.claim(1), pytest.raises(masa.BusyError, match=f"run 1 .*process {os.getpid()}"):
            masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
    assert (
        masa.assess(data(), client(server), baseline=old, budget=6, store=store, limits=ONE).answers
        == 6
    )
    assert not list(tmp_path.glob("*.lock"))


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
    with pytest.raises(masa.UsageError, match="seed: 0 then, 1 now"):
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
    assert len(server.requests) == 1
    assert "does the key work" in caught.value.hint
    assert "wrong key Bearer ***" in caught.value.hint
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())


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


def test_data_that_grew_is_compared_on_the_items_both_have(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(200), client(server), budget=200, store=store, limits=QUICK)
    found = masa.assess(data(300), client(server), budget=300, store=store, limits=QUICK)
    assert (found.items, found.answers, found.stopped) == (200, 200, "exhausted")
    assert "200 items that both have (100 are new, 0 are gone)" in " ".join(found.notes)


def test_another_api_or_prompt_is_refused_with_the_reason(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    other = client(server, body={"text": "Please: {text}"})
    with pytest.raises(masa.UsageError, match="the prompt or body"):
        masa.assess(data(), other, budget=10, store=store)
    forced = masa.assess(data(), other, budget=10, store=store, force=True, limits=QUICK)
    assert "compared all the same" in " ".join(forced.notes)


def test_accepting_a_run_makes_its_answers_the_baseline_for_nothing(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    server.change = strange
    changed = masa.assess(data(), client(server), budget=300, store=store, limits=QUICK)
    assert changed.moved == "yes"
    asked = len(server.requests)
    with opened(store) as kept:
        history.accept(kept, changed.run)
    assert len(server.requests) == asked
    assert (
        masa.assess(data(), client(server), budget=300, store=store, limits=QUICK).moved
        == "no sign"
    )


def test_two_apis_are_asked_about_the_same_items_within_one_budget(
    server: Server, tmp_path: Path
) -> None:
    with Server() as other:
        other.change = lambda text, label: "neg" if "lovely" in text else label
        a, b = client(server), client(other)
        found = compare(
            data(), a, b, budget=200, store=tmp_path / "s.db", limits=QUICK, sides=("one", "two")
        )
        assert sorted(server.answered) == sorted(other.answered)
        assert (found.queries, found.compared, found.cost) == (200, 100, 0.2)
        differ = sum("lovely" in text for text in server.answered)
        assert found.differing == differ > 0
        assert found.accuracy_change is not None
        assert found.accuracy_change.high - found.accuracy_change.low < 0.15, (
            "what they agree on costs no doubt"
        )
        again = compare(
            data(), a, b, budget=200, store=tmp_path / "s.db", limits=QUICK, sides=("one", "two")
        )
        assert again.run > found.run
        assert len(server.requests) == 200


def test_a_comparison_goes_on_where_it_was_interrupted(server: Server, tmp_path: Path) -> None:
    with Server(faults=1.0, kinds=("500",)) as other:
        limits = Limits(concurrency=4, tries=1, first_wait=0.001)
        found = compare(
            data(),
            client(server),
            client(other),
            budget=200,
            store=tmp_path / "s.db",
            limits=limits,
        )
        assert (found.stopped, found.verdict, found.exit_code) == ("failures", "undecided", 3)
        other.faults = 0.0
        again = compare(
            data(),
            client(server),
            client(other),
            budget=200,
            store=tmp_path / "s.db",
            limits=limits,
        )
        assert (again.run, again.compared) == (found.run, 200 - 100 - (found.queries - 100))
        assert len(server.requests) == 100


def test_known_answers_are_taken_over_without_asking(server: Server, tmp_path: Path) -> None:
    known = [server.label(text) for text, _ in reviews(300)]
    values = tuple(sorted(set(known)))
    column = Column("old", values, np.array([values.index(label) for label in known], np.int32))
    taken = import_answers(data(), column, client=client(server), store=tmp_path / "s.db")
    assert (taken.answers, taken.queries, taken.complete) == (300, 0, True)
    found = masa.assess(data(), client(server), budget=100, store=tmp_path / "s.db", limits=QUICK)
    assert (found.moved, found.compared) == ("no sign", 100)


def test_folding_the_journal_afresh_gives_the_result_that_was_given(
    server: Server, tmp_path: Path
) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    server.delay = 0.005
    limits = Limits(concurrency=32)
    found = masa.assess(
        data(), client(server), baseline=old, budget=200, store=store, limits=limits, method="masa"
    )
    with opened(store) as kept:
        past = journal.past(kept, 1)
    sampler = Sampler(Strata.build(data().label))
    place = {key: item for item, key in enumerate(data().keys.tolist())}  # type: ignore[union-attr]
    for key, recorded in past.answers.items():
        sampler.tell(Answer(place[key], recorded.prediction))
    assert found.shift is not None
    assert estimated_matrix(sampler.tally()).on(
        found.shift.new.predictions
    ).values == pytest.approx(found.shift.new.values, abs=1e-12)


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
    assert paused.to_dict() | {"notes": []} == one.to_dict() | {"notes": []}
    with opened(parts) as kept:
        drawn = journal.past(kept, 2).draws
    assert len(drawn) == (190 if method == "predictive" else 0)
    if drawn:
        assert [batch for batch, _, _ in list(drawn.values())[:4]] == [1, 0, 1, 0]
        assert all(0.0 < chance <= 1.0 for _, chance, _ in drawn.values())


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


def test_an_accepted_run_of_chosen_items_stands_for_all(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    server.change = lambda text, label: "neg" if "lovely" in text else label
    first = masa.assess(data(), client(server), budget=200, store=store, limits=QUICK)
    assert first.method == "predictive"
    with opened(store) as kept:
        history.accept(kept, first.run)
    same = masa.assess(data(), client(server), budget=250, store=store, limits=QUICK)
    assert (same.method, same.moved, same.items, same.answers, same.verdict) == (
        "predictive",
        "no sign",
        200,
        200,
        "undecided",
    )
    assert same.shift is not None
    assert first.shift is not None
    assert same.shift.accuracy.old == pytest.approx(first.shift.accuracy.new, abs=0.003)
    server.change = lambda _text, _label: "neu"
    other = masa.assess(data(), client(server), budget=250, store=store, limits=QUICK, seed=1)
    assert (other.moved, other.verdict) == ("yes", "changed")
    with pytest.raises(masa.UsageError, match="chose its items by their answers") as told:
        masa.assess(data(), client(server), budget=250, store=store, limits=QUICK, method="masa")
    assert told.value.exit_code == 2


def test_an_accepted_run_for_another_mix_is_weighed_anew(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    mix = {"neg": 0.9, "neu": 0.05, "pos": 0.05}
    first = masa.assess(data(), client(server), budget=150, store=store, limits=QUICK, mix=mix)
    with opened(store) as kept:
        history.accept(kept, first.run)
    for wanted in (None, mix, {"neg": 0.05, "neu": 0.05, "pos": 0.9}):
        found = masa.assess(
            data(), client(server), budget=250, store=store, limits=QUICK, mix=wanted
        )
        assert (found.moved, found.answers) == ("no sign", 150)
        assert found.shift is not None
        weight = found.shift.old.values.sum(axis=1)
        shares = np.bincount(data().label.codes) / 300 if wanted is None else list(wanted.values())
        assert weight == pytest.approx(shares)


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


def test_a_store_of_an_older_masa_is_brought_up_to_date(tmp_path: Path, server: Server) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    with database(store) as connection:
        for column in ("batch", "chance", "batch_size", "stands", "adds"):
            connection.execute(f"ALTER TABLE call DROP COLUMN {column}")
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
        connection.commit()
    found = masa.assess(data(), client(server), budget=100, store=store, limits=QUICK)
    assert (found.method, found.moved, found.answers) == ("predictive", "no sign", 100)
    with database(store) as connection:
        connection.execute(
            "UPDATE call SET stands = NULL, adds = NULL"
        )  # As an older one left them.
        connection.commit()
    with opened(store) as kept:
        history.accept(kept, found.run)
    with pytest.raises(masa.UsageError, match="does not say what they represent"):
        masa.assess(data(), client(server), budget=100, store=store, limits=QUICK)


def test_a_full_disk_is_a_clear_error_and_what_was_written_stays(
    server: Server, tmp_path: Path
) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
    with database(store) as connection:
        connection.execute("UPDATE run SET finished = NULL")

    async def play() -> None:
        with opened(store) as kept:
            past = journal.past(kept, 1)
            writer = Journal(kept, 1, next_number=past.next_number)
            writer._connection.cursor().execute("PRAGMA max_page_count=1")
            try:
                for item in range(100_000):
                    await writer.sent(item, reserved=0)
            finally:
                await writer.close()

    with pytest.raises(masa.StoreError, match="full") as caught:
        asyncio.run(play())
    assert "run the same command again" in caught.value.hint
    with opened(store) as kept:
        assert len(journal.past(kept, 1).answers) == 5


def test_the_schema_is_what_the_migrations_make(tmp_path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    from masa.storage.store import metadata

    config = Config()
    config.set_main_option(
        "script_location", str(Path(masa.__file__).parent / "storage" / "migrations")
    )
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD
    with opened(tmp_path / "s.db") as kept, kept.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_store_of_a_newer_masa_or_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "s.db"):
        pass
    with database(tmp_path / "s.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(masa.StoreError, match="newer masa"), opened(tmp_path / "s.db"):
        pass
    with database(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(masa.StoreError, match="not one of masa's"), opened(tmp_path / "t.db"):
        pass
    (tmp_path / "u.db").write_text("this is not a database, but a letter to my aunt " * 50)
    with pytest.raises(masa.StoreError, match="not a store"), opened(tmp_path / "u.db"):
        pass


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


def test_of_two_processes_that_start_together_one_is_told(project: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "masa",
        "assess",
        "reviews.csv",
        "--label",
        "label",
        "--old",
        "label",
        "--api",
        "replay:label",
    ]
    for _ in range(2):
        both = [
            subprocess.Popen(
                [*words, "--budget", "200", "--rate", "2/s", "--json"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        while all(process.poll() is None for process in both):
            time.sleep(0.05)
        for process in both:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        results = [json.loads(process.communicate(timeout=120)[0]) for process in both]
        assert sorted("error" in result for result in results) == [False, True]
        assert next(result for result in results if "error" in result)["error"]["kind"] == "busy"
        (project / ".masa" / "masa.db").unlink()
