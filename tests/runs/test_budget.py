"""Budgets in queries and in money, with calls under way."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from live_runs import client, data
from masa.records import Column
from masa.runs.budget import Budget
from masa.settings import Limits
from server import Server


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
