"""masa init, validate, baseline, assess and accept as users meet them, against a real server."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from server import KEY, VERSION, Server, strange

MASA = [sys.executable, "-m", "masa"]


def run(*words: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MASA, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def configure(
    folder: Path,
    server: Server,
    *,
    more: str = "",
    budget: str = "queries = 300",
    timeout: float = 20,
) -> None:
    (folder / "masa.toml").write_text(
        f"""
[data]
path = "reviews.csv"
label = "label"
id = "id"
input = "text"

[api]
client = "http"
url = "{server.url}/classify"
headers = {{ Authorization = "Bearer ${{SENTIMENT_KEY}}" }}
body = {{ text = "{{text}}" }}
label = "result.label"
confidence = "result.score"
version = "header:X-Model-Version"
price = 0.001
timeout = {timeout}
{more}
[budget]
{budget}

[limits]
concurrency = 4
"""
    )


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
    assert a | {"run": 0} == b | {"run": 0}
    assert Path(".masa/.gitignore").read_text() == "*\n"


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MASA, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def wait_for(server: Server, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(server.requests) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


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
    assert run("assess", "--old", "label", "--yes", "--quiet").returncode in (0, 1, 3)
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[data]\npath = "reviews.csv"\nlable = "label"\n',
            ("unknown key 'data.lable'", "did you mean 'label'?"),
        ),
        ("[dta]\n", ("unknown key 'dta'", "did you mean 'data'?")),
        ('[data]\npath = "reviews.csv"\n', ("no column of labels",)),
        ('[data]\npath = "reviews.csv"\nlabel = "label"\n', ("no API was given",)),
        (
            '[data]\npath = "nowhere.csv"\nlabel = "label"\n[api]\nclient = "http"\n',
            ("nowhere.csv does not exist",),
        ),
        (
            '[data]\npath = "reviews.csv"\nlabel = "label"\n[api]\nclient = "htp"\n',
            ("no client 'htp'", "did you mean 'http'?"),
        ),
        (
            '[data]\npath = "reviews.csv"\nlabel = "label"\n[api]\nclient = "http"\n'
            'url = "http://x/{text}"\nlabel = "a"\nprice = 1\n',
            ("{text}",),
        ),
        ("[data\n", ("is not TOML",)),
        (
            '[budget]\nqueries = 0\n[data]\npath = "reviews.csv"\nlabel = "label"\n',
            ("budget.queries", "1 or more"),
        ),
        (
            '[limits]\nrate = "fast"\n[data]\npath = "reviews.csv"\nlabel = "label"\n',
            ("limits.rate", "600/min"),
        ),
    ],
)
def test_bad_configurations_are_explained(project: Path, text: str, words: tuple[str, ...]) -> None:
    (project / "masa.toml").write_text(text)
    done = run("validate", "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    for word in words:
        assert word in error["message"] + error["hint"]
    assert error["hint"]


@pytest.mark.parametrize(
    "words",
    [
        ("--budget", "0"),
        ("--budget", "-5"),
        ("--money", "0"),
        ("--money", "much"),
        ("--price", "free"),
        ("--rate", "0"),
        ("--concurrency", "0"),
        ("--levels", "0"),
        ("--method", "magic"),
        ("--tolerance", "2"),
        ("--seed", "x"),
    ],
)
@pytest.mark.usefixtures("project")
def test_bad_options_are_explained(words: tuple[str, str]) -> None:
    done = run(
        "assess",
        "reviews.csv",
        "--label",
        "label",
        "--old",
        "label",
        "--api",
        "replay:label",
        *words,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) <= 3
    assert "Traceback" not in done.stderr


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


def test_the_clients_are_listed() -> None:
    assert set(json.loads(run("clients", "--json").stdout)["clients"]) >= {
        "replay",
        "http",
        "openai",
        "python",
    }


@pytest.mark.usefixtures("project")
def test_accepting_what_is_not_there_is_explained() -> None:
    done = run("accept", "7")
    assert done.returncode == 2
    assert "no store" in done.stderr


def test_two_apis_side_by_side(server: Server, project: Path) -> None:
    with Server() as other:
        other.change = strange
        configure(project, server)
        with open("masa.toml", "a") as file:
            file.write(
                f"""
[apis.new]
client = "http"
url = "{other.url}/classify"
headers = {{ Authorization = "Bearer ${{SENTIMENT_KEY}}" }}
body = {{ text = "{{text}}" }}
label = "result.label"
price = 0.002
"""
            )
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


@pytest.mark.parametrize(
    "words",
    [
        ("assess", "--old", "label", "--budget", "30"),
        ("baseline", "--budget", "30", "--fresh"),
        ("history",),
    ],
)
def test_a_reader_who_has_gone_is_not_a_verdict(
    server: Server, project: Path, words: tuple[str, ...]
) -> None:
    configure(project, server)
    run("baseline", "--budget", "25")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*MASA, *words], stdout=writer, stderr=subprocess.PIPE, check=False, timeout=120
    )
    os.close(writer)
    assert done.returncode == 141


def test_closed_streams_are_not_a_verdict(server: Server, project: Path) -> None:
    configure(project, server)
    usual = run("assess", "--old", "label", "--budget", "300").returncode
    for closed in ("<&-", ">&-", "2>&-"):
        line = f"{sys.executable} -m masa assess --old label --budget 300 {closed}"
        assert (
            subprocess.run(
                line, shell=True, capture_output=True, timeout=120, check=False
            ).returncode
            == usual
        )


def test_a_module_that_ends_the_program_is_not_a_verdict(project: Path) -> None:
    (project / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    words = (
        "assess",
        "reviews.csv",
        "--label",
        "label",
        "--old",
        "label",
        "--input",
        "text",
        "--budget",
        "5",
        "--price",
        "0",
    )
    done = run(*words, "--api", "python:leaves:f")
    assert done.returncode == 2
    assert "cannot be imported" in done.stderr


def test_a_function_that_hangs_does_not_keep_the_program(project: Path) -> None:
    (project / "slow.py").write_text("import time\ndef f(text):\n    time.sleep(300)\n")
    (project / "masa.toml").write_text(
        '[data]\npath = "reviews.csv"\nlabel = "label"\nold = "label"\ninput = "text"\n'
        '[api]\nclient = "python:slow:f"\nprice = 0\ntimeout = 0.2\n[limits]\ntries = 1\n[budget]\nqueries = 30\n'
    )
    done = run("assess", timeout=120)
    assert done.returncode == 3
    assert "no answer in 0.2 s" in done.stderr


def test_labels_cannot_steer_the_terminal(server: Server, project: Path) -> None:
    configure(project, server)
    server.change = lambda text, label: "\x1b[31mred\x07" if "lovely" in text else label
    for words in (("baseline",), ("assess", "--old", "label"), ("history",)):
        done = run(*words)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr


@pytest.mark.parametrize("place", ["reviews.csv/x.db", "/proc/x/y.db", "a" * 300 + "/x.db"])
def test_a_store_that_cannot_be_is_explained(project: Path, place: str) -> None:
    done = run(
        "assess",
        "reviews.csv",
        "--label",
        "label",
        "--old",
        "label",
        "--api",
        "replay:label",
        "--store",
        place,
    )
    assert done.returncode == 2
    assert "can be written" in done.stderr
    assert sorted(file.name for file in project.iterdir()) == ["reviews.csv"]


def test_odd_names_of_stores_are_kept_to(project: Path) -> None:
    for place in ("a?b=c.db", ":memory:", "50% & more.db"):
        assert (
            run(
                "assess",
                "reviews.csv",
                "--label",
                "label",
                "--old",
                "label",
                "--api",
                "replay:label",
                "--store",
                place,
            ).returncode
            == 0
        )
        assert (project / place).is_file()
