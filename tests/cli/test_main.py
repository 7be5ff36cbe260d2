"""The command line as users and scripts meet it."""

import json
import os
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from masa.cli import main as cli
from masa.sampling.stratified import METHODS

MASA = [sys.executable, "-m", "masa"]
SMALL = "--runs", "20", "--budgets", "10,20"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        f"{i},{'yes' if i % 2 else 'no'},{'yes' if i % 3 else 'no'},{'yes' if i % 5 else 'no'},{i % 17}"
        for i in range(200)
    ]
    (tmp_path / "d.csv").write_text("id,label,old,new,hard\n" + "\n".join(rows) + "\n")
    return tmp_path / "d.csv"


def run(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [*MASA, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )
    return done


def replay(data: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return run("replay", data, "--label", "label", "--new", "new", *SMALL, *more)


def test_json_is_one_object_with_the_promised_keys(data: Path) -> None:
    done = replay(data, "--old", "old", "--difficulty", "hard", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["data"] == {"items": 200, "labels": 2, "predictions": 2, "strata": 6}
    assert (found["runs"], found["seed"], found["replacement"]) == (20, 0, False)
    assert found["no_change_error"] > 0
    assert found["accuracy"]["change"] == pytest.approx(
        found["accuracy"]["new"] - found["accuracy"]["old"]
    )
    assert list(found["methods"]) == [
        "uniform",
        "post-stratified",
        "stratified",
        "masa",
        "optimal",
        "adaptive",
        "paired",
    ]
    for method in found["methods"].values():
        assert method["queries"] == [10, 20]
        assert {
            len(method[key]) for key in ("mean_squared_error", "error_quantile", "bias_share")
        } == {2}
        assert isinstance(method["queries_for_target"], int)
        assert method["draws_per_second"] > 0


def test_the_table_shows_every_method_and_the_error_of_no_change(data: Path) -> None:
    done = replay(data, "--old", "old", "--target-error", "5%")
    assert done.returncode == 0
    for words in (
        *METHODS,
        "What changed: right answers",
        "saying nothing changed",
        "Queries for an error of 5% or less in 95% of runs",
        "post-stratified",
    ):
        assert words in done.stdout


def test_notes_go_to_standard_error_unless_quiet(data: Path) -> None:
    noisy, quiet = (
        replay(data, "--old", "old", "--target-error", "0.9"),
        replay(data, "--old", "old", "--target-error", "90%", "--quiet"),
    )
    assert "proves nothing" in noisy.stderr
    assert "proves nothing" not in noisy.stdout
    assert quiet.stderr == ""


@pytest.mark.parametrize("ending", ["html", "svg", "png"])
def test_charts_are_written_in_each_format(data: Path, tmp_path: Path, ending: str) -> None:
    chart = tmp_path / f"chart.{ending}"
    assert replay(data, "--old", "old", "--plot", chart).returncode == 0
    content = chart.read_bytes()
    start = {"html": b"<!DOCTYPE html>", "svg": b"<svg", "png": b"\x89PNG"}[ending]
    assert content.lstrip().startswith(start)
    if ending == "svg":
        for words in (b"post-stratified", b"queries", b"target 1%", b"saying nothing changed"):
            assert words in content
    if ending == "html":
        assert b"<script src=" not in content


def test_a_name_cannot_put_a_script_into_a_page(tmp_path: Path) -> None:
    class Scripts(HTMLParser):
        found = 0

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
            self.found += tag in ("script", "img")

    counts = []
    for name in ("plain", "</script><script>alert(1)</script><img src=x onerror=alert(2)>"):
        (tmp_path / "d.csv").write_text(f"label,{name}\n" + "yes,no\nno,no\n" * 20)
        chart = tmp_path / "chart.html"
        assert (
            run(
                "replay",
                tmp_path / "d.csv",
                "--label",
                "label",
                "--new",
                name,
                *SMALL,
                "--plot",
                chart,
            ).returncode
            == 0
        )
        page = Scripts()
        page.feed(chart.read_text())
        counts.append(page.found)
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        ("replay nowhere.csv --label label --new new", "data", "nowhere.csv does not exist"),
        ("replay DATA --label lable --new new", "data", "did you mean 'label'?"),
        ("replay DATA --new new", "usage", "--label"),
        ("replay", "usage", "DATA"),
        ("GOOD --nwe x", "usage", "--nwe"),
        ("GOOD --runs many", "usage", "--runs"),
        ("GOOD --budgets 0", "usage", "--budgets is '0'"),
        ("GOOD --budgets a,b", "usage", "500,1000,2000"),
        ("GOOD --mix yes=1", "usage", "no share for 'no'"),
        ("GOOD --mix yes:1", "usage", "'yes:1' where label=share"),
        ("GOOD --mix yes=1,yes=2", "usage", "twice"),
        ('GOOD --mix {"yes":1' + "0" * 400 + "}", "usage", "cannot be read"),
        ("GOOD --target-error 1", "usage", "such as 0.01 or 1%"),
        ("GOOD --target-error lots", "usage", "--target-error is 'lots'"),
        ("GOOD --confidence 95", "usage", "such as 0.95 or 95%"),
        ("GOOD --id new", "data", "column 'new' has 'no' again"),
        ("GOOD --mix nowhere.json", "usage", "nowhere.json"),
        ("GOOD --method mesa", "usage", "did you mean 'masa'?"),
        ("GOOD --a much", "usage", "a is 'much'"),
        ("GOOD --plot chart.pdf", "usage", ".svg"),
        ("GOOD --plot nowhere/chart.svg", "usage", "no folder"),
        ("GOOD --difficulty label", "data", "'no', which is not a number"),
        ("nonsense", "usage", "nonsense"),
    ],
)
def test_what_users_get_wrong_exits_2_and_says_what_and_how(
    data: Path, capsys: pytest.CaptureFixture[str], words: str, kind: str, said: str
) -> None:
    typed = [
        str(data) if word == "DATA" else word
        for word in words.replace("GOOD", "replay DATA --label label --new new").split()
    ]
    assert cli.main(typed) == 2
    plain = capsys.readouterr()
    assert plain.out == ""
    assert said in plain.err
    assert cli.main([*typed, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == kind
    assert said in error["message"] + error["hint"]
    assert set(error) == {"kind", "message", "hint"}


def test_a_defect_exits_70_with_a_log_and_never_looks_like_a_verdict(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(sys.modules["masa.replays.replay"], "read_recorded", broken)
    assert cli.main(["replay", str(data), "--label", "label", "--new", "new", "--json"]) == 70
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "defect"
    log = Path(error["hint"].split()[-1])
    assert "ZeroDivisionError: oops" in log.read_text()
    log.unlink()


def test_a_package_that_is_not_installed_is_named(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    assert (
        cli.main(["replay", str(data), "--label", "label", "--new", "new", "--plot", "chart.svg"])
        == 2
    )
    assert "pip install altair vl-convert-python" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert cli.main(["demo"]) == 2
    assert "pip install scikit-learn" in capsys.readouterr().err


def test_a_long_replay_can_be_interrupted(data: Path) -> None:
    words = [
        *MASA,
        "replay",
        str(data),
        "--label",
        "label",
        "--new",
        "new",
        "--runs",
        "100000",
        "--with-replacement",
        "--json",
        "-v",
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "strata of" not in process.stderr.readline():  # The last word before the replay begins.
        assert process.poll() is None
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert time.monotonic() - begun < 60
    assert json.loads(out)["error"]["kind"] == "interrupted"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_and_is_no_verdict(data: Path) -> None:
    with open("/dev/full", "w") as full:
        words = [*MASA, "replay", str(data), "--label", "label", "--new", "new", *SMALL]
        for more in ([], ["--json"]):
            done = subprocess.run(
                [*words, *more],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 2
            assert "no space left" in done.stderr


def test_a_reader_that_leaves_is_no_verdict(data: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    words = [
        *MASA,
        "replay",
        str(data),
        "--label",
        "label",
        "--new",
        "new",
        *SMALL,
        "--json",
        "--quiet",
    ]
    done = subprocess.run(
        words, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_text_that_the_terminal_cannot_show_does_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("label,猫[red]\n" + "yes,no\nno,no\n" * 20, encoding="utf-8")
    done = run(
        "replay", tmp_path / "d.csv", "--label", "label", "--new", "猫[red]", "--old", "猫[red]", *SMALL,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_version_help_and_verbosity(data: Path) -> None:
    assert run("--version").stdout.strip() == f"masa {masa.__version__}"
    assert "replay" in run().stdout
    assert "--budgets" in run("replay", "-h").stdout
    loud = replay(data, "-v", "--difficulty", "hard")
    assert "fingerprint" in loud.stderr
    assert "6 strata" in loud.stderr


def test_help_imports_nothing_heavy() -> None:
    """`masa --help` must stay quick to start.

    These modules take longer to load than all the rest.
    """
    heavy = ("numpy", "numba", "duckdb", "pandas", "rich")
    code = f"import sys; from masa.cli.main import main; main(['--help']); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip().endswith("[]")


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


def test_replays_know_old_answers_free_answers_texts_weights_and_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    rows = ["label,old,old sure,cheap,text,price,new"]
    for _ in range(400):
        label, word = rng.choice(["no", "yes"]), rng.choice(["plain", "odd"])
        old = label if rng.random() < 0.8 else "no"
        new = "no" if word == "odd" and rng.random() < 0.3 else old
        rows.append(
            f"{label},{old},{rng.random():.2f},{rng.choice(['no', 'yes'])},a {word} text,{rng.integers(0, 5)},{new}"
        )
    file = tmp_path / "d.csv"
    file.write_text("\n".join(rows))
    known = [
        "--label",
        "label",
        "--new",
        "new",
        "--old",
        "old",
        "--old-confidence",
        "old sure",
        "--also",
        "cheap",
        "--text",
        "text",
    ]
    given = [
        *known,
        "--cost",
        "price",
        "--runs",
        "30",
        "--budgets",
        "100",
        "--method",
        "adaptive,paired,predictive,auto",
    ]
    assert cli.main(["replay", str(file), *given, "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert list(found["methods"]) == ["adaptive", "paired", "predictive", "auto"]
    assert (
        found["methods"]["auto"]["queries_for_target"]
        == found["methods"]["predictive"]["queries_for_target"]
    )
    assert (
        1
        <= found["methods"]["auto"]["first_change"]["median"]
        <= found["methods"]["auto"]["first_change"]["p95"]
    )
    assert any("method predictive: uses the baseline answers" in note for note in found["notes"])
    assert (
        cli.main(
            ["replay", str(file), *given, "--weights", '{"cost": {"yes": {"no": 5}}}', "--json"]
        )
        == 0
    )
    costs = json.loads(capsys.readouterr().out)
    assert costs["no_change_error"] != found["no_change_error"]
    assert cli.main(["replay", str(file), *given]) == 0
    assert "Queries up to the first answer that changed" in capsys.readouterr().out
    for wrong, told in (
        (["--method", "predictiv"], "did you mean 'predictive'"),
        (["--method", "paired", "--with-replacement"], "asks each item once"),
        (["--weights", "nothing.json"], "the weights cannot be read"),
        (["--also", "nobody"], "nobody"),
    ):
        assert cli.main(["replay", str(file), *known, "--runs", "5", *wrong]) == 2
        assert told in capsys.readouterr().err
    assert (
        cli.main(["replay", str(file), "--label", "label", "--new", "new", "--method", "paired"])
        == 2
    )
    assert "needs the old answers" in capsys.readouterr().err


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
