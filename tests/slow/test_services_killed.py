"""Each service's double failing a third of all calls, and masa killed midway: nothing is lost."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from command_line import MASA
from doubled import SERVICES, case
from masa.cli.service_demo import configuration
from server import database

BUDGET = 400


@pytest.mark.parametrize("service", SERVICES)
def test_killed_midway_the_budget_is_met_to_the_call(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with case(service, count=240, faults=0.3, seed=5) as found:
        double = found.double
        double.delay = 0.02
        for name, _ in found.made:
            if found.entry.reads in ("image", "sound"):
                (tmp_path / name).write_bytes((found.folder / name).read_bytes())
        lines = [
            json.dumps({"id": number, "input": text, "label": label})
            for number, (text, label) in enumerate(found.made)
        ]
        (tmp_path / "items.jsonl").write_text("\n".join(lines))
        text = configuration(service, found.entry.options(double.url), found.entry.secrets)
        text += "\n[limits]\nconcurrency = 4\ntries = 20\n"
        (tmp_path / "masa.toml").write_text(text)
        monkeypatch.chdir(tmp_path)
        command = [*MASA, "baseline", "--budget", str(BUDGET), "--quiet"]
        for stop in (40, 120, 200):
            running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            deadline = time.monotonic() + 120
            while double.asked < stop and running.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.005)
            running.send_signal(signal.SIGKILL)
            running.wait()
        done = subprocess.run(
            [*command, "--json"], capture_output=True, text=True, check=False, timeout=300
        )
        found_now = json.loads(done.stdout)
        with database(tmp_path / ".masa" / "masa.db") as connection:
            made = connection.execute("SELECT item, outcome, prediction FROM call").fetchall()
        # Written down before it was sent: what was killed in between was never seen.
        under_way = sum(outcome is None for _, outcome, _ in made)
        assert len(made) - under_way <= double.asked <= len(made)
        spent = sum(outcome not in ("free", "unsent") for _, outcome, _ in made)
        assert found_now["queries"] == spent <= BUDGET
        answered = [item for item, outcome, _ in made if outcome == "answer"]
        assert len(answered) == len(set(answered)) == found_now["answers"] == 240
        truth = sorted(found.truth(text, updated=False) for text, _ in found.made)
        assert sorted(said for _, outcome, said in made if outcome == "answer") == truth
