"""The GitHub action: the same shell scripts, on a made-up event, with a `gh` that keeps what it is told."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / ".github" / "action"

GH = '''#!{python}
"""A stand-in for GitHub's program: comments and issues are files in a folder."""
import json, os, sys
from pathlib import Path

words, store = sys.argv[2:], Path(os.environ["GITHUB_STORE"])
assert sys.argv[1] == "api"
assert os.environ["GH_TOKEN"] == "a token"
method, fields, path = "GET", {{}}, ""
while words:
    word = words.pop(0)
    if word == "--method": method = words.pop(0)
    elif word == "--header": words.pop(0)
    elif word == "--field":
        name, _, value = words.pop(0).partition("=")
        fields[name] = Path(value[1:]).read_text() if value.startswith("@") else value
    elif not word.startswith("--"): path = word
kind = "comments" if "comments" in path else "issues"
known = json.loads((store / kind).read_text()) if (store / kind).exists() else []
with (store / "log").open("a") as log: log.write(f"{{method}} {{path}}\\n")
if method == "GET":
    print(json.dumps([[one for one in known if one.get("state", "open") == "open"]]))
elif method == "POST":
    known.append({{"id": 100 + len(known), "number": 7 + len(known), "state": "open", **fields}})
else:
    number = int(path.rsplit("/", 1)[1])
    next(one for one in known if number in (one["id"], one["number"])).update(fields)
(store / kind).write_text(json.dumps(known))
'''

CONFIG = """
[data]
path = "data.csv"
label = "label"
id = "id"
old = "old"

[api]
client = "replay:{}"
{}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("action")
    luck, items = np.random.default_rng(0), 800
    label = np.array(["ham", "spam"])[luck.integers(0, 2, items)]
    other = np.where(label == "ham", "spam", "ham")
    old = np.where(luck.random(items) < 0.1, other, label)
    new = np.where(luck.random(items) < 0.3, other, old)
    rows = [f"{i},{label[i]},{old[i]},{old[i]},{new[i]}" for i in range(items)]
    (tmp_path / "data.csv").write_text("id,label,old,same,new\n" + "\n".join(rows) + "\n")
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(GH.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 12}}))
    return tmp_path


@pytest.fixture(scope="module")
def changed(folder: Path) -> dict[str, str]:
    return assessed(folder, "new")


@pytest.fixture(scope="module")
def same(folder: Path) -> dict[str, str]:
    return assessed(folder, "same")


@pytest.fixture(autouse=True)
def nothing_told(folder: Path) -> None:
    for name in ("comments", "issues", "log"):
        (folder / name).unlink(missing_ok=True)
    (folder / "event.json").write_text(json.dumps({"pull_request": {"number": 12}}))


def step(folder: Path, script: str, **more: str) -> subprocess.CompletedProcess[str]:
    here = Path(sys.executable).parent
    env = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{here}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(folder),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_REPOSITORY": "me/mine",
        "GITHUB_RUN_ID": "99",
        "GITHUB_STORE": str(folder),
        "GH_TOKEN": "a token",
        **more,
    }
    return subprocess.run(
        ["bash", str(SCRIPTS / script)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def assessed(folder: Path, column: str, api: str = "") -> dict[str, str]:
    (folder / "masa.toml").write_text(CONFIG.format(column, api))
    (folder / "output").unlink(missing_ok=True)
    done = step(folder, "assess.sh", MASA_CONFIG="masa.toml", MASA_CANARY="0", MASA_BUDGET="700")
    assert done.returncode == 0, done.stderr
    lines = (folder / "output").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def told(folder: Path, said: dict[str, str], where: str) -> list[dict[str, Any]]:
    done = step(
        folder, "tell.sh", MASA_TELL=where, MASA_CODE=said["exit-code"], MASA_REPORT=said["report"]
    )
    assert done.returncode == 0, done.stderr
    kept = folder / ("comments" if where == "comment" else "issues")
    found: list[dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else []
    return found


def test_a_change_fails_the_step_and_is_in_the_summary(
    folder: Path, changed: dict[str, str], same: dict[str, str]
) -> None:
    assert (changed["verdict"], changed["exit-code"]) == ("changed", "1")
    report = Path(changed["report"])
    assert sorted(one.name for one in report.iterdir() if one.name != "comment.md") == [
        "log.txt",
        "report.html",
        "report.json",
        "report.md",
        "report.txt",
        "report.xml",
    ]
    summary = (folder / "summary.md").read_text()
    assert summary.startswith("> [!CAUTION]\n> **CHANGED** for the worse")
    assert same["exit-code"] == "0"


def test_one_comment_is_kept_up_to_date(
    folder: Path, changed: dict[str, str], same: dict[str, str]
) -> None:
    comments = told(folder, changed, "comment")
    assert len(comments) == 1
    assert "CHANGED" in comments[0]["body"]
    comments = told(folder, same, "comment")
    assert len(comments) == 1
    assert "UNCHANGED" in comments[0]["body"]
    assert "repos/me/mine/issues/12/comments" in (folder / "log").read_text()
    (folder / "event.json").write_text("{}")
    assert len(told(folder, same, "comment")) == 1


def test_an_issue_is_opened_updated_and_closed(
    folder: Path, changed: dict[str, str], same: dict[str, str]
) -> None:
    assert told(folder, same, "issue") == []
    for _ in range(2):
        issues = told(folder, changed, "issue")
        assert [one["state"] for one in issues] == ["open"]
    undecided = {**changed, "verdict": "undecided", "exit-code": "3"}
    assert [one["state"] for one in told(folder, undecided, "issue")] == ["open"]
    # A silent canary has exit code 0 and no verdict.
    silent = {**same, "verdict": "undecided"}
    assert [one["state"] for one in told(folder, silent, "issue")] == ["closed"]


def test_what_could_not_be_measured_is_no_verdict(folder: Path) -> None:
    data = folder / "data.csv"
    data.rename(folder / "gone.csv")
    said = assessed(folder, "new")
    (folder / "gone.csv").rename(data)
    assert (said["verdict"], said["exit-code"]) == ("error", "2")
    assert "NOT MEASURED" in (folder / "summary.md").read_text()
    assert told(folder, said, "issue") == []


def test_the_action_names_scripts_and_outputs_that_are_there() -> None:
    text = (ROOT / "action.yml").read_text()
    for name in re.findall(r"/\.github/action/([\w.]+)", text):
        assert (SCRIPTS / name).is_file()
    for name in re.findall(r"steps\.assess\.outputs\.([\w-]+)", text):
        assert f'echo "{name}=' in (SCRIPTS / "assess.sh").read_text()
    # What a user gives reaches the shell through the environment alone.
    for script in re.findall(r"run: (.*)", text):
        assert "${{" not in script
