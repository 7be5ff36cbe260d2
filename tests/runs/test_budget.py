"""Budgets in queries and in money, with calls under way."""

import asyncio
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import masa
from asking import context
from live_runs import client, data
from masa import clients
from masa.records import Assessment, Column
from masa.report.assessment import assessment
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


def assess_chat(server: Server, money: str, **more: Any) -> Assessment:
    """Assess a model whose tokens are billed as the server counts them."""
    options = {
        "model": "tiny",
        "base_url": f"{server.url}/v1",
        "input_price": 1.0,
        "output_price": 2.0,
        "timeout": 60,
    }
    found: Assessment = masa.assess(
        data(),
        clients.make("openai", options, context()),
        baseline=Column("old", ("pos",), np.zeros(300, np.int32)),
        money=money,
        store=None,
        **more,
    )
    return found


def test_the_first_price_is_learnt_from_one_call(server: Server) -> None:
    server.delay = 0.02
    server.more_tokens = lambda _: 7_500_000
    found = assess_chat(server, "0.005")
    assert len(server.requests) == 1
    assert found.cost == pytest.approx(7.5, abs=0.01)
    assert found.over_budget == pytest.approx(7.495, abs=0.01)
    assert found.to_dict()["over_budget"] == found.over_budget
    assert Assessment.from_dict(found.to_dict()).over_budget == found.over_budget
    assert "over the budget" in found.summary().splitlines()[0]
    console = Console(width=1000, record=True, file=StringIO())
    console.print(assessment(found))
    verdict = console.export_text().splitlines()[0]
    assert verdict.endswith(f"{found.over_budget:.6g} OVER THE BUDGET")


def test_a_price_that_rises_ends_the_calls_that_are_not_sent(server: Server) -> None:
    server.delay = 0.02
    server.more_tokens = lambda requests: 7_500_000 if requests > 100 else 0
    found = assess_chat(server, "5", limits=Limits(concurrency=8))
    assert server.most_at_once == 8
    dear = len(server.requests) - 100
    assert 1 <= dear <= 8 + 8, "those under way when the first dear answer came"
    assert found.over_budget > 0


def test_a_budget_that_holds_says_nothing_and_asks_as_many_at_once_as_it_may(
    server: Server,
) -> None:
    server.delay = 0.02
    found = assess_chat(server, "5", limits=Limits(concurrency=32))
    assert server.most_at_once == 32
    assert found.over_budget == 0.0
    assert "over the budget" not in found.summary()
