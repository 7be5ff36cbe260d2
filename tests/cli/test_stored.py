"""masa accept and masa report."""

import json
from pathlib import Path

import pytest

from command_line import configure, run
from server import Server


@pytest.mark.usefixtures("project")
def test_accepting_what_is_not_there_is_explained() -> None:
    done = run("accept", "7")
    assert done.returncode == 2
    assert "no store" in done.stderr


def test_a_finished_run_is_shown_again(server: Server, project: Path) -> None:
    configure(project, server)
    first = run("assess", "--old", "label", "--budget", "50")
    asked = len(server.requests)
    again = run("report", 1)
    assert again.returncode == 0
    assert again.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    assert json.loads(run("report", 1, "--json").stdout)["run"] == 1
    assert len(server.requests) == asked
    assert run("report", 9).returncode == 2
