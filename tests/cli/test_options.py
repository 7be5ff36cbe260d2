"""The options of the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import run
from masa.cli import main as cli
from masa.cli.main import main
from masa.records import Readings
from zoo import zoo


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


def test_an_assessment_takes_all_that_is_known_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = ["id,label,old,old sure,cheap,text,price,who,new"]
    for number in range(500):
        label = rng.choice(["no", "yes"])
        new = label if rng.random() < 0.9 else "no"
        rows.append(
            f"{number},{label},{label},{rng.random():.2f},{label},some text,{rng.integers(1, 5)},{number % 3},{new}"
        )
    (tmp_path / "d.csv").write_text("\n".join(rows))
    given = [
        "d.csv",
        "--label",
        "label",
        "--id",
        "id",
        "--input",
        "text",
        "--api",
        "replay:new",
        "--old",
        "old",
        "--budget",
        "200",
    ]
    more = [
        "--old-confidence",
        "old sure",
        "--also",
        "cheap",
        "--cost",
        "price",
        "--group",
        "who",
        "--weights",
        "accuracy",
    ]
    assert cli.main(["validate", *given, *more, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "predictive"
    assert cli.main(["assess", *given, *more, "--json"]) in (0, 1, 3)
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == "predictive"
    assert [group["group"] for group in found["groups"]] == ["0", "1", "2"]
    assert found["gap"]["low"] <= found["gap"]["estimate"] <= found["gap"]["high"]
    assert cli.main(["assess", *given, *more, "--fresh"]) in (0, 1, 3)
    assert "Right answers by group" in capsys.readouterr().out
    assert cli.main(["report", "1", "--json"]) == 0
    assert "estimate" not in json.loads(capsys.readouterr().out)


def test_the_command_takes_it_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = zoo(changed=0.1, towards=3)
    rows = ["id,label,old,new"] + [
        ",".join(
            [
                str(i),
                *(
                    c.values[c.codes[i]]
                    for c in (data.label, data.predictions["old"], data.predictions["new"])
                ),
            ]
        )
        for i in range(len(data))
    ]
    path = tmp_path / "zoo.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    common = [
        "assess",
        str(path),
        "--label",
        "label",
        "--id",
        "id",
        "--old",
        "old",
        "--api",
        "replay:new",
    ]
    common += ["--store", str(tmp_path / "m.db"), "--budget", "1500"]
    assert main([*common, "--tolerance", "recall=3%", "--strict", "--decide", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["tolerance"], told["direction"]) == ({"recall": 0.03}, "worse")
    assert set(told["intervals"]) == {"delta", "recall", "precision", "norm", "differing", "cost"}
    assert min(interval["high"] for interval in told["intervals"]["recall"].values()) < -0.03
    assert main([*common, "--fail-on", "worse"]) == 1
    shown = capsys.readouterr().out
    assert "Change by label, in points (simultaneous 95% intervals)" in shown
    assert "Share of all answers that differ" in shown
    assert main([*common, "--tolerance", "taste=1"]) == 2
    assert "no tolerance on 'taste'" in capsys.readouterr().err
    assert Readings.from_dict(told["intervals"]).to_dict() == told["intervals"]
