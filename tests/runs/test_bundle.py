"""An evidence bundle: what was concluded follows from it, and nothing in it can be altered."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from command_line import inside as run
from masa.runs.verify import verify

CONFIG = """
[data]
path = "data.csv"
label = "label"
id = "id"
input = "text"
old = "old.prediction"

[api]
client = "replay:new.prediction"
"""

Rows = list[dict[str, Any]]


@dataclass
class Parts:
    """What is in a bundle, to be altered."""

    calls: Rows
    items: Rows
    result: dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with the codes of words, made once."""
    return assessed(made(tmp_path_factory.mktemp("bundle")))


def made(tmp_path: Path) -> Path:
    luck, items = np.random.default_rng(0), 1200
    names = np.array(["neg", "neu", "pos"])
    label = luck.integers(0, 3, items)
    old = np.where(luck.random(items) < 0.2, luck.integers(0, 3, items), label)
    new = np.where(luck.random(items) < 0.08, luck.integers(0, 3, items), old)
    sure = luck.random(items)
    rows = [
        f"i{i:04d},secret words {i % 37} {names[label[i]]},{names[label[i]]},{names[old[i]]},{sure[i]:.4f},{names[new[i]]}"
        for i in range(items)
    ]
    head = "id,text,label,old.prediction,old.confidence,new.prediction\n"
    (tmp_path / "data.csv").write_text(head + "\n".join(rows) + "\n")
    (tmp_path / "masa.toml").write_text(CONFIG)
    return tmp_path


def assessed(folder: Path, *more: object, name: str = "b.zip") -> Path:
    done = run("assess", "--budget", 260, *more, cwd=folder)
    assert done.returncode in (0, 1, 3), done.stderr
    written = run("report", "--output", name, "--texts", cwd=folder)
    assert written.returncode == 0, written.stderr
    return folder / name


def altered(path: Path, folder: Path, change: Callable[[Parts], None]) -> Path:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    calls = [json.loads(line) for line in parts["calls.jsonl"].splitlines()]
    items = [json.loads(line) for line in parts["items.jsonl"].splitlines()]
    result = json.loads(parts["result.json"])
    change(Parts(calls, items, result))
    parts["calls.jsonl"] = "".join(json.dumps(row) + "\n" for row in calls)
    parts["items.jsonl"] = "".join(json.dumps(row) + "\n" for row in items)
    parts["result.json"] = json.dumps(result)
    other = folder / "altered.zip"
    with zipfile.ZipFile(other, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return other


def flip(parts: Parts) -> None:
    parts.calls[50]["answer"] = {"neg": "pos", "pos": "neg", "neu": "pos"}[
        parts.calls[50]["answer"]
    ]


def change_a_chance(parts: Parts) -> None:
    parts.calls[60]["probability"] *= 1.001


def remove_an_item(parts: Parts) -> None:
    asked = {call["key"] for call in parts.calls}
    parts.items.remove(next(item for item in parts.items if item["key"] not in asked))


def remove_an_answer(parts: Parts) -> None:
    parts.calls.pop(70)


def swap_the_item(parts: Parts) -> None:
    """As if another item of the same cell had been drawn: the estimate stays the same."""
    asked = {call["key"] for call in parts.calls}
    of_key = {item["key"]: item for item in parts.items}
    for call in parts.calls:
        mine = of_key[call["key"]]
        for other in parts.items:
            alike = (other["label"], other["old"]) == (mine["label"], mine["old"])
            if alike and other["key"] not in asked and call["batch"] > 1:
                call["key"] = other["key"]
                return


def improve_the_verdict(parts: Parts) -> None:
    parts.result["verdict"] = "unchanged"


def narrow_an_interval(parts: Parts) -> None:
    parts.result["accuracy"]["low"] += 1e-6


def change_a_change(parts: Parts) -> None:
    parts.result["delta"][0][0] -= 0.1


def change_the_proof(parts: Parts) -> None:
    parts.result["proof"] = "nothing"


def narrow_a_step(parts: Parts) -> None:
    parts.result["steps"][0]["low"] += 0.01


def leave_out_the_last_batches(parts: Parts) -> None:
    """As if the run had ended earlier: what is left is a run of its own, but not this one."""
    parts.calls[:] = [call for call in parts.calls if call["batch"] <= 1]


def leave_out_the_canaries(parts: Parts) -> None:
    parts.calls[:] = [call for call in parts.calls if call["batch"] != 0]


def test_a_bundle_is_verified_and_holds_no_texts(bundle: Path) -> None:
    found = verify(bundle)
    assert found.differs == ()
    assert any("which items were drawn" in line for line in found.agreed)
    assert found.exit_code == 0
    with zipfile.ZipFile(bundle) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert b"secret words" not in everything
    assert b"i0001" not in everything
    told = run("verify", bundle.name, cwd=bundle.parent)
    assert (told.returncode, told.stdout.splitlines()[0]) == (0, "VERIFIED")


@pytest.mark.parametrize(
    "change",
    [
        flip,
        change_a_chance,
        remove_an_item,
        remove_an_answer,
        swap_the_item,
        improve_the_verdict,
        narrow_an_interval,
        change_a_change,
        change_the_proof,
        narrow_a_step,
        leave_out_the_last_batches,
        leave_out_the_canaries,
    ],
)
def test_whatever_is_altered_is_found(bundle: Path, tmp_path: Path, change: Any) -> None:
    found = verify(altered(bundle, tmp_path, change))
    assert found.differs
    assert found.agreed == ()
    assert found.exit_code == 1


@pytest.mark.parametrize(
    "more",
    [
        ("--method", "post-stratified"),
        ("--method", "paired"),
        ("--decide",),
        ("--tolerance", "recall=5%", "--mix", "neg=0.5,neu=0.3,pos=0.2"),
    ],
)
def test_other_ways_to_assess_are_verified_and_what_cannot_be_is_said(
    folder: Path, more: tuple[str, ...]
) -> None:
    found = verify(assessed(folder, *more))
    assert found.differs == ()
    strata = "--method" in more
    assert any(line.startswith("the choice of items") for line in found.unchecked) == strata


def test_a_bundle_of_a_stored_baseline_is_verified(folder: Path) -> None:
    config = CONFIG.replace('old = "old.prediction"\n', "")
    (folder / "masa.toml").write_text(config.replace("new.prediction", "old.prediction"))
    done = run("baseline", "--budget", 900, "--repeat", 100, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "masa.toml").write_text(config)
    done = run("assess", "--budget", 200, "--force", cwd=folder)
    assert done.returncode in (0, 1, 3), done.stderr
    assert run("report", "--output", "b.zip", "--texts", cwd=folder).returncode == 0
    assert verify(folder / "b.zip").differs == ()


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_what_is_no_bundle_is_an_error_not_a_verdict(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    done = run("verify", "x.zip", cwd=tmp_path)
    assert done.returncode == 2
    assert "x.zip" in done.stderr


def test_other_data_makes_no_bundle(folder: Path) -> None:
    assessed(folder)
    text = (folder / "data.csv").read_text()
    (folder / "data.csv").write_text(text.replace(",pos,", ",neg,", 1))
    done = run("report", "--output", "b2.zip", cwd=folder)
    assert done.returncode == 2
    assert "are not those of the assessment" in done.stderr


def test_answers_are_given_back_with_and_without_the_data(folder: Path) -> None:
    assessed(folder)
    for ending in ("csv", "jsonl", "parquet"):
        assert run("answers", "--output", f"a.{ending}", "--texts", cwd=folder).returncode == 0
    rows = [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()]
    assert len(rows) == 260
    assert rows[0]["text"].startswith("secret words")
    assert sum(row["weight"] for row in rows) == pytest.approx(1.0, abs=0.01)
    assert {row["old_confidence"] is not None for row in rows} == {True}
    read = masa.read(folder / "a.parquet", label="label", predictions=["old", "new"])
    assert len(read) == 260
    (folder / "data.csv").unlink()
    done = run("answers", "--json", cwd=folder)
    told = json.loads(done.stdout)["answers"]
    assert [row["new"] for row in told] == [row["new"] for row in rows]
    assert {row["item"] for row in told} == {None}
    assert "items are not named" in done.stderr


def test_a_report_tells_what_changed_since_the_last_run_too(folder: Path) -> None:
    assessed(folder)
    assert "since run" not in run("report", cwd=folder).stdout
    assert run("assess", "--budget", 400, "--fresh", cwd=folder).returncode in (0, 1, 3)
    told = json.loads(run("report", "--json", cwd=folder).stdout)["notes"]
    assert any(note.startswith("since run 1 (") and "0 of " in note for note in told)


def test_a_report_names_all_changed_items_and_texts_only_where_wanted(folder: Path) -> None:
    assessed(folder)
    told = json.loads(run("report", "--json", cwd=folder).stdout)
    assert len(told["changed_items"]) == told["changed"]["differing"] > 5
    assert run("report", "--output", "r.html", cwd=folder).returncode == 0
    assert "secret words" not in (folder / "r.html").read_text()
    assert run("report", "--output", "t.html", "--texts", cwd=folder).returncode == 0
    assert "secret words" in (folder / "t.html").read_text()
    listed = json.loads(run("history", "--json", "--kind", "assess", cwd=folder).stdout)["runs"]
    assert [one["queries"] for one in listed] == [260]
    assert run("history", "--since", "yesterday", cwd=folder).returncode == 2
