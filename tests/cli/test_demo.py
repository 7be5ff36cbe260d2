"""masa demo."""

import json
import subprocess
from pathlib import Path

import pytest

from command_line import SMALL, run


def test_the_demo_finds_the_change_and_its_answers_can_be_replayed(tmp_path: Path) -> None:
    file = tmp_path / "digits.csv"
    done = run("demo", "--save", file, "--json")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)
    assert (found["verdict"], found["moved"], found["queries"]) == ("changed", "yes", 300)
    assert found["truth"]["error"] < found["frobenius"]["error_bound"]
    again = json.loads(replay_demo(file).stdout)
    assert again["data"]["items"] == found["items"] == 1079
    assert again["accuracy"]["change"] == pytest.approx(found["truth"]["accuracy"]["change"])
    assert run("demo", "--save", tmp_path / "nowhere" / "x.csv").returncode == 2


def replay_demo(file: Path) -> subprocess.CompletedProcess[str]:
    return run(
        "replay",
        file,
        "--label",
        "label",
        "--old",
        "old.prediction",
        "--new",
        "new.prediction",
        *SMALL,
        "--json",
    )


def test_the_demo_tells_a_story() -> None:
    done = run("demo")
    assert done.returncode == 0
    for words in (
        "$ masa baseline",
        "$ masa assess",
        "CHANGED",
        "'8' is now",
        "The truth, which masa did not see",
    ):
        assert words in done.stdout
