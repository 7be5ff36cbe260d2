"""Answers that are no label: counted by their cause, shown, and stored only if the user wants."""

import json
from pathlib import Path
from typing import Any

import pytest

import masa
from command_line import run
from doubled import QUICK, case
from masa.doubles.language_models import LanguageModel, Spoken
from masa.records import Assessment
from server import database

SECRET = "What a lovely day, dear diary"


def says(text: str, label: str) -> Spoken:
    """Cut off a fifth, chat about another."""
    number = int(text.rsplit("(", 1)[1].rstrip(")"))
    if number % 5 == 0:
        return Spoken("I believe that", "length")
    if number % 5 == 1:
        return Spoken(f"{SECRET} {number}.")
    return Spoken(label)


def test_a_run_says_how_many_answers_are_no_label_and_why(tmp_path: Path) -> None:
    with case("openai", count=100) as found:
        assert isinstance(found.double, LanguageModel)
        found.double.says = says
        store = tmp_path / "s.db"
        done = masa.baseline(found.data, found.client(), budget=100, store=store, limits=QUICK)
        assert done.unread == {"cut off": 20, "no label": 20}
        words = "\n".join(done.notes)
        assert (
            "40 of 100 answers cannot be read as a label: 20 were cut off at max_tokens = 64, "
            "20 name no label" in words
        ) or "20 name no label, 20 were cut off at max_tokens = 64" in words
        assert words.count(SECRET) == 3
        again = masa.assess(found.data, found.client(), budget=50, store=store, limits=QUICK)
        assert sum(again.unread.values()) > 0
        assert Assessment.from_dict(again.to_dict()).unread == again.unread
    assert SECRET.encode() not in store.read_bytes()


def test_other_causes_than_in_the_baseline_are_told(tmp_path: Path) -> None:
    with case("openai", count=100) as found:
        assert isinstance(found.double, LanguageModel)
        reply = {False: "I cannot help with that.", True: "The sentiment is hostile."}

        def says(text: str, label: str) -> Spoken:
            number = int(text.rsplit("(", 1)[1].rstrip(")"))
            return Spoken(label if number % 2 else reply[found.double.updated])

        found.double.says = says
        options: dict[str, Any] = {"store": tmp_path / "s.db", "limits": QUICK, "seed": 1}
        masa.baseline(found.data, found.client(), budget=100, **options)
        same = masa.assess(found.data, found.client(), budget=100, **options)
        assert not any("other causes" in note for note in same.notes)
        found.double.updated = True
        now = masa.assess(found.data, found.client(), budget=100, **options | {"seed": 2})
        assert any(
            "other causes" in note and "50 were refused by the model then" in note
            for note in now.notes
        ), now.notes


def test_what_was_said_is_stored_only_if_answers_are_kept(tmp_path: Path) -> None:
    with case("openai", count=60) as found:
        assert isinstance(found.double, LanguageModel)
        found.double.says = says
        store = tmp_path / "s.db"
        options: dict[str, Any] = {"budget": 60, "store": store, "limits": QUICK, "keep": "answers"}
        masa.baseline(found.data, found.client(), **options)
    with database(store) as connection:
        said = connection.execute("SELECT said, prediction, reason FROM call").fetchall()
    assert len(said) == 60
    assert all(text for text, _, _ in said)
    assert {reason for text, _, reason in said if SECRET in text} == {"no label"}
    with pytest.raises(masa.UsageError, match="keep"):
        masa.baseline(found.data, "replay:old", store=None, keep="everything")


def test_scores_of_all_labels_are_stored(tmp_path: Path) -> None:
    with case("amazon-comprehend", count=60) as found:
        store = tmp_path / "s.db"
        masa.baseline(found.data, found.client(), budget=60, store=store, limits=QUICK)
    with database(store) as connection:
        rows = connection.execute("SELECT scores, prediction FROM call").fetchall()
    for scores, prediction in rows:
        found_scores = json.loads(scores)
        assert set(found_scores) == {"pos", "neg", "neu", "mixed"}
        assert max(found_scores, key=lambda name: found_scores[name]) == prediction


def test_a_model_that_is_always_cut_off_is_named_after_twenty_answers(tmp_path: Path) -> None:
    with case("anthropic", count=60) as found:
        assert isinstance(found.double, LanguageModel)
        found.double.says = lambda _text, _label: Spoken("Let me think", "length")
        with pytest.raises(masa.DataError, match="could be read as a label") as caught:
            masa.baseline(
                found.data, found.client(), budget=60, store=tmp_path / "s.db", limits=QUICK
            )
        assert "cut off at max_tokens = 64" in caught.value.hint
        assert "Let me think" in caught.value.hint
        assert found.double.asked < 40


def test_validate_shows_how_one_answer_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with case("anthropic", count=60) as found:
        assert isinstance(found.double, LanguageModel)
        found.double.says = lambda _text, label: Spoken(f"This is not {label}.")
        lines = [
            json.dumps({"input": text, "label": label, "id": number})
            for number, (text, label) in enumerate(found.made)
        ]
        Path("d.jsonl").write_text("\n".join(lines))
        Path("masa.toml").write_text(
            'secrets = ["ANTHROPIC_API_KEY"]\n'
            '[data]\npath = "d.jsonl"\nlabel = "label"\nid = "id"\ninput = "input"\n'
            f'[api]\nclient = "anthropic"\nmodel = "claude-haiku-4-5"\nbase_url = "{found.double.url}"\n'
        )
        refused = run("validate", "--ask", "1")
        assert refused.returncode == 2
        assert "at most" in refused.stderr
        assert not found.double.calls
        done = run("validate", "--ask", "2", "--yes")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("read as '<invalid>'") == 2
        assert "deny a label" in done.stdout
        assert "it said 'This is not" in done.stdout
        assert len(found.double.calls) == 2
        told = json.loads(run("validate", "--ask", "1", "--yes", "--json", "--quiet").stdout)
        assert told["answers"][0]["unread"] == "denied"
        assert told["answers"][0]["cost"] > 0
