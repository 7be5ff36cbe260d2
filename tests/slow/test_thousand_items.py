"""Of 1,000 items ten are never answered, in each way: a baseline and an assessment end all the same."""

from pathlib import Path

import pytest

import masa
from live_runs import calls, client, data
from masa.doubles.made_up import reviews
from masa.settings import Limits
from server import WAYS, Server

ITEMS, BUDGET = 1_000, 1_060
LIMITS = Limits(concurrency=16, tries=3, first_wait=0.01, longest_wait=0.05)


@pytest.mark.parametrize("way", WAYS)
def test_ten_of_a_thousand_items_are_never_answered(way: str, tmp_path: Path) -> None:
    bad = {text for text, _ in reviews(ITEMS)[3::100]}
    store = tmp_path / "s.db"
    with Server() as server:
        server.bad = lambda text: way if text in bad else ""
        api = client(server, timeout=0.5)
        old = masa.baseline(data(ITEMS), api, budget=BUDGET, store=store, limits=LIMITS)
        assert (old.errors, old.answers, old.stopped) == (10, 990, "exhausted")
        # Each call in the journal is a request at the server, and none beyond the budget is billed.
        assert len(server.requests) == len(calls(store))
        assert old.queries <= BUDGET
        server.requests = []
        found = masa.assess(
            data(ITEMS), api, budget=600, store=store, limits=LIMITS, tolerance=0.1, seed=1
        )
        assert found.stopped in ("budget", "exhausted")
        assert (found.verdict, found.moved) == ("unchanged", "no sign")
        assert found.queries <= 600
        journal = calls(store, run=2)
        assert len(server.requests) == len(journal)
        assert found.queries == sum(
            outcome not in ("free", "unsent") for _, outcome, _, _ in journal
        )
