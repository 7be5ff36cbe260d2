"""Killed at every statement that writes, and started again: nothing is lost or paid for twice."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from masa.storage.store import opened
from server import Server, database, journal

Do = Callable[..., tuple[int, dict[str, Any]]]

ENDED = (
    "SELECT run.id, run.kind, run.finished IS NOT NULL, count(baseline.id) "
    "FROM run LEFT JOIN baseline ON baseline.run = run.id GROUP BY run.id"
)
"""Which runs there are, whether each is finished, and how often it was accepted."""

LOST = 1
"""Calls under way when the process was killed: one, since they go out one by one."""


@pytest.fixture
def do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Do]:
    """Do a task in a process that may be killed; give its exit code and its result."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    words = [sys.executable, str(Path(__file__).parents[1] / "mortal.py")]
    running = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stdin is not None
    assert running.stdout is not None
    result = tmp_path / "result.json"

    def done(**task: Any) -> tuple[int, dict[str, Any]]:
        assert running.stdin is not None
        assert running.stdout is not None
        result.unlink(missing_ok=True)
        running.stdin.write(json.dumps({"at": 0, "result": str(result), **task}) + "\n")
        running.stdin.flush()
        code = int(running.stdout.readline())
        return code, json.loads(result.read_text()) if result.exists() else {}

    with running:
        yield done
        running.stdin.close()


@pytest.mark.parametrize("name", ["baseline", "assess", "compare", "refresh", "accept"])
def test_killed_at_every_statement(name: str, do: Do, tmp_path: Path) -> None:
    with Server() as one, Server() as other:
        servers = (one, other)
        before = tmp_path / "before.db"
        with opened(before):
            pass
        task = {"name": name, "urls": [server.url for server in servers]}
        if name in ("refresh", "accept"):
            assert do(name="assess", urls=task["urls"], store=str(before))[0] == 0
        if name == "refresh":
            # A baseline of half of the items is what there is to refresh.
            with database(before) as connection:
                connection.execute("DELETE FROM call WHERE number > 2")
            assert do(name="accept", urls=task["urls"], store=str(before))[0] == 0
        store = tmp_path / "whole.db"
        shutil.copy(before, store)
        _reset(servers)
        code, whole = do(**task, store=str(store))
        assert code == 0
        asked = sum(len(server.requests) for server in servers)
        assert asked == (0 if name == "accept" else whole["result"])
        calls, ended = len(journal(store, "SELECT * FROM call")), journal(store, ENDED)
        assert whole["statements"] > (1 if name == "accept" else 3 * asked)
        for at in range(1, whole["statements"] + 1):
            store = tmp_path / f"{at}.db"
            shutil.copy(before, store)
            _reset(servers)
            code, _ = do(**task, store=str(store), at=at)
            assert code == -9, (name, at)
            # What was killed after it had ended, and before it said so, is not done again.
            if journal(store, ENDED) != ended:
                code, again = do(**task, store=str(store))
                assert code == 0, (name, at)
                assert name == "accept" or again["result"] >= asked - LOST, (name, at)
            texts = Counter(text for server in servers for text in server.answered)
            paid = sum(texts.values())
            # What one side of a comparison lost, the other is not asked about.
            assert asked - LOST <= paid <= asked + LOST, (name, at, texts)
            written = len(journal(store, "SELECT * FROM call"))
            assert calls - LOST <= written <= calls + LOST, (name, at)
            assert journal(store, ENDED) == ended, (name, at)
            for file in tmp_path.glob(f"{at}.db*"):
                file.unlink()


def _reset(servers: tuple[Server, ...]) -> None:
    for server in servers:
        server.requests = []
