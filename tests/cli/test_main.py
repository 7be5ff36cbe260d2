"""The program: what goes wrong, streams that close, exit codes, help."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import masa
from command_line import MASA, SMALL, configure, recorded, replay, run
from masa.cli import main as cli
from masa.cli.options import Command
from server import Server


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return recorded(tmp_path)


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
    words = [*MASA, "replay", str(data), "--label", "label", "--new", "new", "--with-replacement"]
    words += ["--runs", "100000", "--json", "-v"]
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


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_every_option_of_a_command_stands_in_its_help(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command.name, "--help"]) == 0
    shown = capsys.readouterr().out
    for option in command.options:
        kind = option.named.setting.kind
        word = kind.metavar if option.argument else option.named.option.split("/")[0]
        assert word in shown, option.name


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
