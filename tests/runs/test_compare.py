"""Two APIs asked about the same items."""

from pathlib import Path

from live_runs import QUICK, client, data
from masa.runs.compare import compare
from masa.settings import Limits
from server import Server


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
