"""What promptfoo exports. The file was made by promptfoo 0.121.20 itself, and shortened."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import masa
from masa.cli.judge_draft import written
from masa.graded import LAYOUTS, Grades, Wanted

EXPORT = Path(__file__).parent / "exports" / "promptfoo-0.121.20.json"


def read(path: Path = EXPORT, **wanted: Any) -> Grades:
    return LAYOUTS["promptfoo"](path, Wanted(**wanted))


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[Callable[[Any], object]], Path]:
    def edit(change: Callable[[Any], object]) -> Path:
        content = json.loads(EXPORT.read_text())
        change(content)
        (tmp_path / "edited.json").write_text(json.dumps(content))
        return tmp_path / "edited.json"

    return edit


def parts(content: Any, result: int) -> list[dict[str, Any]]:
    found = content["results"]["results"][result]["gradingResult"]["componentResults"]
    assert isinstance(found, list)
    return found


def test_what_a_rubric_graded_becomes_items_with_what_was_asked_word_by_word() -> None:
    found = read()
    assert len(found.grades) == 16
    assert found.by_people == 12
    assert found.as_asked
    first = found.grades[0]
    assert first.shown["question"] == "Where is my parcel?"
    assert first.shown["rubric"] == "Answers Where is my parcel? politely"
    assert first.asked is not None
    assert first.asked.startswith("<Output>\nAbout Where is my parcel?")
    assert {one.grade for one in found.grades} == {"pass", "fail"}
    failed = next(one for one in found.grades if one.grade == "fail")
    assert failed.confidence == 0.8  # The score is 0.2.
    judge = found.judge
    assert (judge.client, judge.model) == ("openai", "gpt-4o")
    assert judge.system is not None
    assert "user-specified rubric" in judge.system
    assert judge.names == {"true": "pass", "false": "fail"}


def test_the_labels_are_those_of_people_where_they_graded_all_or_if_wished() -> None:
    found = read()
    assert found.labelled_by(None) == "judge"
    graded = replace(found, grades=tuple(one for one in found.grades if one.human is not None))
    assert graded.labelled_by(None) == "human"
    by_people = list(found.rows(found.labelled_by("human")))
    assert sum(row["label"] is None for row in by_people) == 4
    assert by_people[0]["label"] == by_people[0]["human"] != by_people[0]["judge.prediction"]
    by_judge = list(found.rows(found.labelled_by("judge")))
    assert all(row["label"] == row["judge.prediction"] for row in by_judge)


def test_a_failed_output_says_not_which_of_two_rubrics_failed(
    edited: Callable[[Callable[[Any], object]], Path],
) -> None:
    def second(content: Any) -> None:
        for at in (0, 1):
            rubric = dict(parts(content, at)[0])
            rubric["assertion"] = {**rubric["assertion"], "metric": "tone"}
            parts(content, at).append({"pass": True, "componentResults": [rubric]})

    path = edited(second)
    found = read(path)
    assert len(found.grades) == 18
    assert [one.human for one in found.grades[:4]] == [None, None, "pass", "pass"]
    assert len({one.id for one in found.grades}) == 18
    assert len(read(path, score="tone").grades) == 2
    with pytest.raises(masa.DataError, match="no llm-rubric has the metric 'style'"):
        read(path, score="style")


def test_grades_that_cannot_be_asked_again_are_left_out_or_no_baseline(
    edited: Callable[[Callable[[Any], object]], Path],
) -> None:
    def other(content: Any) -> None:
        parts(content, 0)[0]["assertion"]["type"] = "factuality"
        parts(content, 1)[0]["assertion"]["type"] = "not-llm-rubric"
        parts(content, 2)[0]["pass"] = None
        del parts(content, 3)[0]["metadata"]

    found = read(edited(other))
    assert len(found.grades) == 13
    assert not found.as_asked
    notes = "\n".join(found.notes)
    assert "1 grades by factuality are left out" in notes
    assert "1 grades by not-llm-rubric are left out" in notes
    assert "1 grades without pass or fail are left out" in notes
    assert "are no baseline for a prompt of masa's" in notes
    assert "judge_prompt" not in next(found.rows("judge"))


def test_rows_whose_instructions_differ_are_not_taken_for_the_same_question(
    edited: Callable[[Callable[[Any], object]], Path],
) -> None:
    def other(content: Any) -> None:
        metadata = parts(content, 0)[0]["metadata"]
        metadata["renderedGradingPrompt"] = metadata["renderedGradingPrompt"].replace(
            "You are grading", "You grade"
        )

    found = read(edited(other))
    assert not found.as_asked
    assert found.judge.system is None
    assert any("differ from row to row" in note for note in found.notes)


def test_json_lines_are_read_too(tmp_path: Path) -> None:
    content = json.loads(EXPORT.read_text())
    lines = [json.dumps(one) for one in content["results"]["results"]]
    (tmp_path / "out.jsonl").write_text("\n".join(lines))
    assert [one.grade for one in read(tmp_path / "out.jsonl").grades] == [
        one.grade for one in read().grades
    ]


def test_a_variable_that_is_called_like_a_column_of_masas_is_kept_under_another_name(
    edited: Callable[[Callable[[Any], object]], Path],
) -> None:
    def other(content: Any) -> None:
        content["results"]["results"][0]["vars"] = {
            "ID": "x", "output": "y", "list": [1, "é"], 'a "{b}"\n': "z", "{}": "w",
        }  # fmt: skip

    shown = read(edited(other)).grades[0].shown
    assert shown["vars.ID"] == "x"
    assert shown["vars.output"] == "y"
    assert shown["list"] == '[1, "é"]'
    assert (shown["a b"], shown["variable"]) == ("z", "w")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r.csv", "question,Status\nx,PASS\n", "grades without what was graded"),
        ("r.json", "{", "line 1, column 2: not JSON"),
        ("r.json", "[1, 2]", "nothing in it was graded"),
        ("r.json", '{"results": {"table": {}}}', "no result of promptfoo"),
        ("r.json", '{"results": {"results": [{"gradingResult": null}]}}', "no output was graded"),
        ("r.json", '{"results": [{"gradingResult": {"componentResults": [3, {}]}}]}', "no output"),
        ("r.jsonl", '{"id": 1}\n{"id": \n', "line 2, column 8: not JSON"),
        ("r.json", "\ufeff[", "not JSON"),
    ],
)
def test_other_files_are_refused_with_what_to_do(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(masa.MasaError, match=words) as caught:
        read(tmp_path / name)
    assert caught.value.hint
    assert not isinstance(caught.value, masa.ApiError)


def test_what_only_looks_like_a_fail_is_left_out(
    edited: Callable[[Callable[[Any], object]], Path],
) -> None:
    def other(content: Any) -> None:
        failed = {"pass": False, "score": 0}
        parts(content, 0)[0].update(failed, reason="HTTP 503", metadata={"graderError": True})
        parts(content, 1)[0].update(failed, reason="API error: 429 Too Many Requests")
        parts(content, 2)[0].update(failed, reason="?", metadata={})
        for at, passed, score in ((3, True, 0.9), (4, False, 0.6), (5, False, 0.9)):
            parts(content, at)[0].update({"pass": passed, "score": score})
            parts(content, at)[0]["assertion"]["threshold"] = 0.8

    found = read(edited(other))
    assert len(found.grades) == 12
    assert found.as_asked
    assert [one.grade for one in found.grades[:2]] == ["pass", "fail"]
    assert [one.confidence for one in found.grades[:2]] == [0.9, pytest.approx(0.1)]
    notes = "\n".join(found.notes)
    assert "3 grades that the judge failed to give are left out" in notes
    assert "1 grades below a threshold are left out: they fail whatever the judge" in notes


def test_a_prompt_with_images_cannot_be_asked_again(
    edited: Callable[[Callable[[Any], object]], Path],
) -> None:
    def other(content: Any) -> None:
        parts(content, 0)[0]["metadata"]["renderedGradingPromptImages"] = 1

    assert not read(edited(other)).as_asked


@pytest.mark.parametrize(
    ("provider", "client", "model"),
    [
        ("openai:chat:llama3.1:8b", "openai", "llama3.1:8b"),
        ("openai:ft:gpt-4o-mini:acme::x", "openai", "ft:gpt-4o-mini:acme::x"),
        ("openai:responses:gpt-5-mini", "openai", "gpt-5-mini"),
        ("anthropic:messages:claude-haiku-4-5", "anthropic", "claude-haiku-4-5"),
        ("bedrock:converse:amazon.nova-lite-v1:0", "bedrock", "amazon.nova-lite-v1:0"),
        ("ollama:chat:llama3.3:70b", "openai", ""),
        ("file://judge.py", "openai", ""),
    ],
)
def test_the_judge_is_named_as_its_provider_names_it(
    provider: str, client: str, model: str, edited: Callable[[Callable[[Any], object]], Path]
) -> None:
    setup = {
        "apiBaseUrl": "http://localhost:8000/v1",
        "apiKeyEnvar": "MY_KEY",
        "temperature": 0.7,
        "max_tokens": 300,
        "top_p": 0.1,
    }

    def other(content: Any) -> None:
        for result in content["results"]["results"]:
            for part in result["gradingResult"]["componentResults"]:
                part["assertion"]["provider"] = {"id": provider, "config": setup}

    found = read(edited(other))
    judge = found.judge
    assert (judge.client, judge.model, judge.key) == (client, model, "MY_KEY")
    assert (judge.temperature, judge.max_tokens) == (0.7, 300)
    assert judge.api == ("responses" if "responses" in provider else "")
    assert any("no client for the model that graded" in note for note in found.notes) == (not model)
    text = written(found, "data.jsonl", layout="promptfoo", label_by="judge")
    config = tomllib.loads(text)
    if client != "bedrock":  # Amazon's package finds its keys.
        assert "secrets" not in config  # An export does not decide which key goes where.
        assert '# secrets = ["MY_KEY"]' in text
        assert config["api"]["key"] == "${MY_KEY}"
    assert config["api"].get("model", "") == model
    assert config["api"]["temperature"] == 0.7
    assert config["api"]["extra"] == {"top_p": 0.1}


@pytest.mark.parametrize("strange", [5, True, "x", {"a": 1}])
def test_results_in_another_form_are_no_grades(
    strange: Any, edited: Callable[[Callable[[Any], object]], Path]
) -> None:
    def other(content: Any) -> None:
        grading = content["results"]["results"][0]["gradingResult"]
        parts(content, 1)[0]["score"] = 10**400
        grading["componentResults"] = strange

    assert len(read(edited(other)).grades) == 15


def test_half_of_a_character_does_not_spoil_the_configuration(
    edited: Callable[[Callable[[Any], object]], Path],
) -> None:
    def other(content: Any) -> None:
        for at in range(len(content["results"]["results"])):
            for part in parts(content, at):
                if "provider" in part["assertion"]:
                    part["assertion"]["provider"] = "openai:gpt-4o\ud83d"

    text = written(read(edited(other)), "d.jsonl", layout="promptfoo", label_by="judge")
    assert tomllib.loads(text.encode().decode())
