"""masa replay as users and scripts meet it."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from command_line import SMALL, recorded, replay, run
from masa.cli import main as cli
from masa.settings.methods import PAPER as METHODS


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return recorded(tmp_path)


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
