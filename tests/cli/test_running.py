"""masa baseline, assess and compare as users meet them, against a real server."""

import json
import os
import pty
import re
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from command_line import MASA, VERDICTS, configure, run, start, wait_for
from server import KEY, VERSION, Server, strange


def test_the_whole_way_from_init_to_a_verdict(server: Server, project: Path) -> None:
    made = run("init", "reviews.csv")
    assert made.returncode == 0
    assert "label: texts of about 3 characters, 3 different" in made.stderr
    written = tomllib.loads(Path("masa.toml").read_text())
    assert written["data"] == {"path": "reviews.csv", "label": "label", "id": "id", "input": "text"}
    assert run("init", "reviews.csv").returncode == 2
    configure(project, server)
    checked = run("validate", "--json")
    assert checked.returncode == 0
    assert json.loads(checked.stdout)["worst_cost"] == pytest.approx(0.3)
    assert server.requests == []
    recorded = run("baseline", "--json", "--budget", "400", "--repeat", "100")
    assert recorded.returncode == 0
    found = json.loads(recorded.stdout)
    assert (found["answers"], found["repeats"]["asked"], found["api_version"]) == (
        300,
        100,
        VERSION,
    )
    assert run("assess").returncode == 0
    server.change = strange
    assessed = run("assess", "--json")
    assert assessed.returncode == 1
    found = json.loads(assessed.stdout)
    assert set(found) >= {
        "run", "verdict", "moved", "stopped", "queries", "cost", "accuracy", "frobenius", "labels", "predictions", "old", "new",
        "delta", "strata", "surprises", "api_version",
    }  # fmt: skip
    assert (found["verdict"], found["moved"], found["stopped"], found["queries"]) == (
        "changed",
        "yes",
        "exhausted",
        300,
    )
    assert set(found["accuracy"]) == {"old", "new", "change", "low", "high"}
    assert set(found["frobenius"]) == {"change", "error_bound"}
    assert len(found["delta"]) == len(found["labels"]) == 3
    assert run("accept", found["run"]).returncode == 0
    assert run("assess").returncode == 0
    for file in project.rglob("*"):
        if file.is_file():
            assert KEY.encode() not in file.read_bytes(), file
            assert file.name == "reviews.csv" or b"The food" not in file.read_bytes(), (
                "texts are not stored"
            )


def test_the_key_is_nowhere(server: Server, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the URL, the headers and the body.

    With faults, with a wrong key, with all that can be logged.
    """
    configure(project, server, timeout=2)
    text = (project / "masa.toml").read_text()
    text = text.replace('/classify"', '/classify?token=${SENTIMENT_KEY}"').replace(
        '"{text}" }', '"{text}", key = "${SENTIMENT_KEY}" }'
    )
    (project / "masa.toml").write_text(text)
    monkeypatch.setenv("TMPDIR", str(project))
    said: list[str] = []
    for faults, kinds, key in (
        (0.5, ("500", "reset", "html", "timeout"), KEY),
        (0.0, (), f"x{KEY}"),
        (1.0, ("404",), KEY),
    ):
        server.faults, server.kinds = faults, kinds
        monkeypatch.setenv("SENTIMENT_KEY", key)
        done = run("assess", "--old", "label", "--budget", "40", "--seed", len(said), "-v", "-v")
        said.append(done.stdout + done.stderr)
        said.append(
            run("assess", "--old", "label", "--budget", "40", "--seed", len(said), "--json").stdout
        )
    assert f"Bearer {KEY}" in [request.headers["Authorization"] for request in server.requests]
    assert KEY in {request.body["key"] for request in server.requests}
    assert "HTTP 401" in "".join(said)
    assert "HTTP 404" in "".join(said)
    assert "connection lost" in "".join(said)
    said += [run("report", 1).stdout, run("validate").stdout]
    for text in said:
        assert KEY not in text
    for file in project.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_the_summary_says_what_changed(server: Server, project: Path) -> None:
    configure(project, server)
    run("baseline")
    server.change = lambda text, label: "neg" if label == "pos" and "lecture" in text else label
    shown = run("assess", "--budget", "250")
    assert shown.returncode == 1
    for words in (
        "CHANGED",
        "right answers",
        "Any change: yes",
        "Change of the confusion matrix",
        "'pos' is now taken for 'neg'",
        "-> 'neg'",
        "250 queries for 0.25",
    ):
        assert words in shown.stdout
    assert (
        "method predictive: uses the baseline answers, their confidence, the words of the texts"
        in shown.stderr
    )
    assert "does not allow for the sampling being adaptive" not in shown.stderr
    assert (
        "does not allow for the sampling being adaptive"
        in run("assess", "--budget", "250", "--method", "paired").stderr
    )


@pytest.mark.usefixtures("project")
def test_without_a_configuration() -> None:
    rows = [f"{i},{'ab'[i % 2]},{'ab'[i % 2]},{'ab'[i % 2] if i % 7 else 'b'}" for i in range(400)]
    Path("d.csv").write_text("id,label,old,new\n" + "\n".join(rows) + "\n")
    words = (
        "assess",
        "d.csv",
        "--label",
        "label",
        "--old",
        "old",
        "--api",
        "replay:new",
        "--budget",
        200,
        "--seed",
        1,
        "--json",
    )
    first, second = run(*words), run(*words)
    assert first.returncode in (1, 3)
    a, b = json.loads(first.stdout), json.loads(second.stdout)
    assert (a["run"], b["run"]) == (1, 2)
    assert a | {"run": 0, "made": {}} == b | {"run": 0, "made": {}}
    assert Path(".masa/.gitignore").read_text() == "*\n"


def test_ctrl_c_stops_cleanly_and_prints_the_command_that_goes_on(
    server: Server, project: Path
) -> None:
    configure(project, server)
    server.delay = 0.3
    words = "assess", "--old", "label", "--json", "--budget", "120"
    running = start(*words)
    wait_for(server, 30)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 130
    found = json.loads(out)
    assert (found["stopped"], found["verdict"]) == ("interrupted", "undecided")
    assert found["answers"] == len(server.requests), "calls under way are waited for"
    server.delay = 0.0
    command = re.search(r"to resume it: masa (.*)", err)
    assert command is not None
    again = run(*command[1].split())
    assert json.loads(again.stdout)["run"] == found["run"]
    assert len(server.requests) == len(set(server.answered)) == 120


def test_ctrl_c_twice_does_not_wait(server: Server, project: Path) -> None:
    configure(project, server, timeout=300)
    server.delay = 300
    running = start("assess", "--old", "label", "--json")
    wait_for(server, 4)
    began = time.monotonic()
    running.send_signal(signal.SIGINT)
    time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=120)
    assert running.returncode == 130
    assert time.monotonic() - began < 120
    server.delay = 0.0
    found = json.loads(run("assess", "--old", "label", "--json", "--budget", "50").stdout)
    assert (found["queries"], found["answers"]) == (50, 46), (
        "calls that were not waited for count as spent"
    )


def test_two_processes_cannot_work_on_one_run(server: Server, project: Path) -> None:
    configure(project, server)
    server.delay = 1
    running = start("assess", "--old", "label")
    wait_for(server, 10)
    second = run("assess", "--old", "label", "--json")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=120)
    assert second.returncode == 2
    assert json.loads(second.stdout)["error"]["kind"] == "busy"


def test_an_api_that_is_down_is_not_a_verdict(server: Server, project: Path) -> None:
    configure(project, server)
    with open("masa.toml", "a") as file:
        file.write("tries = 1\n")
    server.faults, server.kinds = 1.0, ("500",)
    down = run("assess", "--old", "label", "--json")
    assert down.returncode == 3
    found = json.loads(down.stdout)
    assert (found["stopped"], found["verdict"], found["accuracy"]) == (
        "failures",
        "undecided",
        None,
    )
    assert "HTTP 500" in down.stderr
    server.faults = 0.0
    assert (
        json.loads(run("assess", "--old", "label", "--json", "--quiet").stdout)["run"]
        == found["run"]
    )


def test_money_is_not_spent_without_a_budget_or_a_yes(server: Server, project: Path) -> None:
    configure(project, server, budget="")
    refused = run("assess", "--old", "label")
    assert refused.returncode == 2
    assert "up to 300 queries, at most 0.3" in refused.stderr
    assert server.requests == []
    assert run("assess", "--old", "label", "--yes", "--quiet").returncode in VERDICTS
    assert len(server.requests) == 300


def test_a_person_is_asked_before_paid_calls(server: Server, project: Path) -> None:
    configure(project, server, budget="")
    for answer, code, asked in (("n\n", 2, 0), ("y\n", None, 300)):
        leader, follower = pty.openpty()
        running = subprocess.Popen(
            [*MASA, "assess", "--old", "label"],
            stdin=follower,
            stderr=follower,
            stdout=subprocess.PIPE,
        )
        os.close(follower)
        shown = b""
        while b"Go on?" not in shown:
            shown += os.read(leader, 1000)
        os.write(leader, answer.encode())
        while running.poll() is None:
            try:
                os.read(leader, 10_000)
            except OSError:
                break
        running.communicate(timeout=120)
        os.close(leader)
        assert len(server.requests) == asked
        assert running.returncode == code or code is None


def test_answers_are_imported_from_a_column_or_another_file(server: Server, project: Path) -> None:
    configure(project, server)
    taken = run("baseline", "--import", "label", "--json")
    assert (taken.returncode, json.loads(taken.stdout)["answers"], server.requests) == (0, 300, [])
    Path("old.csv").write_text(
        "id,said\n" + "".join(f"r{number:04},pos\n" for number in range(100, 400))
    )
    other = run("baseline", "--import", "said", "--from", "old.csv", "--json")
    assert json.loads(other.stdout)["answers"] == 200
    assessed = run("assess", "--json", "--budget", "100")
    assert "200 items that both have (100 are new, 0 are gone)" in assessed.stderr
    assert run("baseline", "--import", "nothing").returncode == 2


def test_two_apis_side_by_side(
    server: Server, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server() as other:
        other.change = strange
        configure(project, server)
        with open("masa.toml", "a") as file:
            file.write(
                f"""
[apis.new]
client = "http"
url = "{other.url}/classify"
headers = {{ Authorization = "Bearer ${{OTHER_KEY}}" }}
body = {{ text = "{{text}}" }}
label = "result.label"
price = 0.002
"""
            )
        monkeypatch.setenv("OTHER_KEY", KEY)
        shown = run("compare", "api", "new", "--budget", "400")
        assert shown.returncode == 1
        assert "api -> new: " in shown.stdout
        assert "DIFFERENT" in shown.stdout
        assert "is, by new," in shown.stdout
        assert len(server.requests) == len(other.requests) == 200
        recorded = json.loads(
            run("compare", "replay:label", "new", "--budget", "100", "--json").stdout
        )
        assert recorded["sides"] == ["replay:label", "new"]
        assert run("compare", "api", "nwe").returncode == 2
