"""What a run survives: an API that fails in every way, and being killed at any moment.

`make slow`.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from command_line import MASA, VERDICTS, configure
from masa.doubles.made_up import reviews
from server import Server, database, journal, strange

KILLS = int(os.environ.get("MASA_KILLS", "200"))


def assess(folder: Path, *words: object) -> dict[str, Any]:
    done = subprocess.run(
        [*MASA, "assess", "--old", "label", "--json", "--quiet", "--seed", "0", *map(str, words)],
        cwd=folder, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode in VERDICTS, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    keys = (
        "labels",
        "predictions",
        "old",
        "new",
        "delta",
        "accuracy",
        "frobenius",
        "surprises",
        "strata",
        "answers",
        "changed",
    )
    return all(one[key] == other[key] for key in keys)


def rows(folder: Path) -> list[tuple[Any, ...]]:
    statement = "SELECT number, item, outcome, prediction FROM call ORDER BY run, number"
    return journal(folder / ".masa" / "masa.db", statement)


@pytest.mark.parametrize("concurrency", [1, 32])
def test_a_third_of_the_calls_fail_in_every_way(project: Path, concurrency: int) -> None:
    """Faults cost calls, so the run without faults is given as many calls as the other had answers."""
    budget = 280
    with Server(faults=0.3, seed=concurrency) as server:
        server.change = strange
        configure(project, server, timeout=1.5, budget=f"queries = {budget}")
        limits = f"concurrency = {concurrency}\ntries = 12\n"
        text = (project / "masa.toml").read_text().replace("concurrency = 4\n", limits)
        (project / "masa.toml").write_text(text)
        faulty = assess(project)
        kinds = Counter(request.fault for request in server.requests)
        billed = [request for request in server.requests if not request.fault.startswith("429")]
        assert all(kinds[kind] for kind in server.kinds), kinds
        assert faulty["queries"] == len(billed) == budget, "the budget holds to the call"
        assert faulty["stopped"] == "budget"
        assert faulty["errors"] == 0
        assert faulty["answers"] == len(server.answered) == len(set(server.answered))
        assert any(prediction.startswith("new-") for prediction in faulty["predictions"])
        texts = server.answered
        server.faults, server.requests = 0.0, []
        # In a store of its own: what another run asked lately would be asked less.
        clean = assess(project, "--budget", faulty["answers"], "--store", project / "clean.db")
        if concurrency == 1:
            assert server.answered == texts, "the same items in the same order"
            assert same(faulty, clean), "the same shift"


@pytest.mark.parametrize("concurrency", [1, 32])
def test_killed_at_random_moments_and_resumed(project: Path, concurrency: int) -> None:
    chance = random.Random(concurrency)
    count, delay = 3000, 0.004
    with Server(delay=delay) as server:
        server.change = strange
        with (project / "reviews.csv").open("w", encoding="utf-8") as file:
            file.write(
                "id,label,text\n"
                + "".join(
                    f'r{i},{label},"{text}"\n' for i, (text, label) in enumerate(reviews(count))
                )
            )
        configure(project, server, budget="queries = 2900")
        text = (
            (project / "masa.toml")
            .read_text()
            .replace("concurrency = 4", f"concurrency = {concurrency}")
        )
        if concurrency > 1:
            text += 'rate = "40/s"\n'
        (project / "masa.toml").write_text(text)
        known: dict[int, str] = {}
        killed = working = 0
        while killed < KILLS:
            before = len(server.requests)
            running = subprocess.Popen(
                [*MASA, "assess", "--old", "label", "--json", "--quiet", "--seed", "0"],
                cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if chance.random() < 0.9:  # Mostly while it is working, sometimes while it starts.
                while len(server.requests) == before and running.poll() is None:
                    time.sleep(0.001)
                time.sleep(chance.random() * 0.06)
            else:
                time.sleep(chance.random())
            assert running.poll() is None, running.communicate()
            running.send_signal(signal.SIGKILL)
            running.communicate()
            killed += 1
            working += len(server.requests) > before
            now = {
                item: prediction
                for _, item, outcome, prediction in rows(project)
                if outcome == "answer"
            }
            assert known.items() <= now.items(), "an answer in the journal is never lost"
            known = now
        assert working > 0.6 * KILLS
        found = assess(project, "--budget", len(rows(project)) + 50)
        calls = rows(project)
        answered = [item for _, item, outcome, _ in calls if outcome == "answer"]
        assert len(answered) == len(set(answered)), "no item with an answer is asked again"
        assert found["run"] == 1
        assert found["queries"] == len(calls), "every call that may have been billed counts"
        assert len(server.requests) <= len(calls), "no call is sent before it is written down"
        lost = len(calls) - len(answered)
        assert lost <= KILLS * concurrency
        texts = list(dict.fromkeys(server.answered))
        server.requests = []
        other = project / "clean"
        other.mkdir()
        for name in ("reviews.csv", "masa.toml"):
            (other / name).write_text((project / name).read_text().replace('rate = "40/s"\n', ""))
        if concurrency == 1:
            clean = assess(other, "--budget", len(answered))
            assert list(dict.fromkeys(server.answered)) == texts, (
                "the same items as without interruption"
            )
            assert same(found, clean), "and the same result"
        asked = len(server.requests)
        with database(project / ".masa" / "masa.db") as store:
            store.execute("UPDATE run SET finished = NULL, result = NULL")
        again = assess(project, "--budget", found["queries"])
        assert len(server.requests) == asked, "nothing is asked again"
        assert same(found, again), "folding the journal afresh gives what was printed"


def test_a_full_disk_is_a_clear_error_and_the_run_goes_on_afterwards(
    project: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], check=False
        ).returncode
    ):
        pytest.skip("needs to mount a small disk, which takes root")
    try:
        with Server() as server:
            configure(project, server)
            store = disk / "masa.db"
            assess(project, "--store", store, "--budget", 10)
            filler = disk / "filler"
            left = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize - 150_000
            filler.write_bytes(b"x" * left)
            before = len(server.requests)
            words = [
                *MASA,
                "assess",
                "--old",
                "label",
                "--json",
                "--store",
                str(store),
                "--seed",
                "2",
            ]
            full = subprocess.run(
                words, cwd=project, capture_output=True, text=True, timeout=60, check=False
            )
            assert full.returncode == 2, full.stdout
            assert json.loads(full.stdout)["error"]["kind"] in ("store", "disk")
            assert "run the same command again" in full.stderr
            assert len(server.requests) > before, "it filled up while the run was under way"
            filler.unlink()
            done = subprocess.run(
                words, cwd=project, capture_output=True, text=True, timeout=60, check=False
            )
            found = json.loads(done.stdout)
            assert (found["run"], found["answers"] > 250) == (2, True)
    finally:
        subprocess.run(["umount", disk], check=False)
