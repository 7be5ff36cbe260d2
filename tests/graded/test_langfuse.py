"""What Langfuse exports, in the forms that its documentation describes; made here, not there."""

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

import masa
from masa.graded import LAYOUTS, Grades, Wanted


def score(trace: str, name: str, value: Any, **more: Any) -> dict[str, Any]:
    base = {"trace_id": trace, "observation_id": None, "name": name, "value": value}
    base |= {"source": "EVAL", "data_type": "NUMERIC", "string_value": None}
    return {"id": f"s-{trace}-{name}-{more.get('timestamp', '')}", **base, **more}


def trace(key: str) -> dict[str, Any]:
    return {"id": key, "name": "chat", "input": {"q": f"What is {key}?"}, "output": f"It is {key}."}


SCORES = [
    score("t1", "helpful", 4),
    score("t2", "helpful", 2, timestamp="2026-01-02 00:00:00"),
    score("t2", "helpful", 5, timestamp="2026-01-01 00:00:00"),
    score("t3", "helpful", 1),
    score("t9", "helpful", 3),
    score("t1", "helpful", 5, source="ANNOTATION"),
    score("t2", "quality", 2, source="ANNOTATION"),
]
TRACES = [trace("t1"), trace("t2"), trace("t3")]


def read(path: Path, **wanted: Any) -> Grades:
    return LAYOUTS["langfuse"](path, Wanted(**wanted))


def write(folder: Path, kind: str) -> Path:
    for name, rows in (("scores", SCORES), ("traces", TRACES)):
        (folder / name).mkdir()
        file = folder / name / f"2026.{kind}"
        if kind == "jsonl":
            file.write_text("\n".join(map(json.dumps, rows)))
        elif kind == "json":
            file.write_text(json.dumps(rows))
        elif kind == "csv":
            with file.open("w", newline="") as out:
                writer = csv.DictWriter(out, list(rows[0]), extrasaction="ignore")
                writer.writeheader()
                for row in rows:
                    texts = {k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()}
                    writer.writerow(texts)
        else:
            lines = folder / "rows.tmp"
            lines.write_text("\n".join(map(json.dumps, rows)))
            with duckdb.connect() as connection:
                connection.execute(
                    f"COPY (SELECT * FROM read_json('{lines}', format='newline_delimited')) "
                    f"TO '{file}' (FORMAT parquet)"
                )
            lines.unlink()
    return folder


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
def test_scores_and_traces_in_one_folder_become_items(tmp_path: Path, kind: str) -> None:
    found = read(write(tmp_path, kind))
    assert {one.id: one.grade for one in found.grades} == {
        "t1": "4",
        "t2": "2" if kind != "csv" else "5",  # The CSV here has no times: the last counts.
        "t3": "1",
    }
    assert {one.id: one.human for one in found.grades} == {"t1": "5", "t2": None, "t3": None}
    assert json.loads(found.grades[0].shown["input"]) == {"q": "What is t1?"}
    notes = "\n".join(found.notes)
    assert "1 of 4 grades are left out: what they are about is not among the files" in notes
    assert "1 outputs were graded again, and otherwise" in notes
    assert not found.as_asked


def test_traces_from_the_api_hold_their_scores(tmp_path: Path) -> None:
    made = [
        {
            **trace("t1"),
            "scores": [
                {"name": "ok", "value": 1, "source": "EVAL", "dataType": "BOOLEAN"},
                {"name": "ok", "value": 0, "source": "ANNOTATION", "dataType": "BOOLEAN"},
            ],
        },
        {
            **trace("t2"),
            "scores": [
                {
                    "name": "ok",
                    "value": 0,
                    "stringValue": "False",
                    "source": "EVAL",
                    "dataType": "BOOLEAN",
                }
            ],
        },
    ]
    (tmp_path / "page.json").write_text(json.dumps({"data": made, "meta": {"page": 1}}))
    found = read(tmp_path / "page.json")
    assert [(one.id, one.grade, one.human) for one in found.grades] == [
        ("t1", "true", "false"),
        ("t2", "false", None),
    ]


def test_scores_of_an_observation_or_of_a_trace_known_by_its_root(tmp_path: Path) -> None:
    rows = [
        {"id": "o1", "trace_id": "t1", "parent_observation_id": "", "input": "a", "output": "b"},
        {"id": "o2", "trace_id": "t1", "parent_observation_id": "o1", "input": "c", "output": "d"},
    ]
    scores = [
        score("t1", "tone", 0, data_type="CATEGORICAL", string_value="rude"),
        score("t1", "tone", 1, data_type="CATEGORICAL", string_value="kind", observation_id="o2"),
    ]
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, [*rows, *scores])))
    found = read(tmp_path)
    assert {one.id: (one.grade, one.shown["output"]) for one in found.grades} == {
        "t1": ("rude", "b"),
        "o2": ("kind", "d"),
    }


def test_what_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    folder = write(tmp_path / "a", "jsonl")
    assert read(folder, human="quality").grades[1].human == "2"
    assert any("--human quality makes it the label" in note for note in only_quality(tmp_path))
    with pytest.raises(masa.DataError, match="nobody gave the score 'x'") as caught:
        read(folder, human="x")
    assert "helpful, quality" in caught.value.hint
    with pytest.raises(masa.DataError, match="no evaluator gave the score 'x'"):
        read(folder, score="x")
    (folder / "scores" / "more.json").write_text(json.dumps([score("t1", "polite", 0.5)]))
    with pytest.raises(masa.UsageError, match="several scores of evaluators: helpful, polite"):
        read(folder)
    with pytest.raises(masa.DataError, match=r"the grade 0\.5 is not a whole number") as caught:
        read(folder, score="polite")
    assert "--pass-at" in caught.value.hint
    assert read(folder, score="polite", pass_at=0.5).grades[0].grade == "pass"


def only_quality(folder: Path) -> tuple[str, ...]:
    kept = [one for one in SCORES if one["name"] == "quality" or one["source"] == "EVAL"]
    (folder / "b").mkdir()
    (folder / "b" / "s.jsonl").write_text("\n".join(map(json.dumps, [*kept, *TRACES])))
    return read(folder / "b").notes


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "no scores with a source"),
        ([trace("t1")], "no scores with a source"),
        ([{**trace("t1"), "helpful": [1]}], "no scores with a source"),
        ([score("t1", "helpful", 1)], "what was graded is not among the files"),
        (
            [score("t1", "helpful", 1, source="ANNOTATION"), trace("t1")],
            "no scores of an evaluator",
        ),
        ([score("t1", "helpful", "many"), trace("t1")], "'many' is no grade"),
    ],
)
def test_exports_that_lack_something_say_what(
    tmp_path: Path, rows: list[dict[str, Any]], words: str
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(rows))
    with pytest.raises(masa.DataError, match=words) as caught:
        read(tmp_path)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("kind", "value", "word", "grade"),
    [
        ("BOOLEAN", None, "True", "true"),
        ("BOOLEAN", "", "False", "false"),
        ("BOOLEAN", "1.00", None, "true"),
        ("BOOLEAN", 0, "False", "false"),
        ("BOOLEAN", "Yes", None, "true"),
        ("CATEGORICAL", None, "good", "good"),
        ("CATEGORICAL", "good", None, "good"),
    ],
)
def test_a_grade_is_read_from_the_number_or_the_word(
    kind: str, value: Any, word: str | None, grade: str, tmp_path: Path
) -> None:
    told = {"data_type": kind, "string_value": word}
    rows = [trace("t1"), score("t1", "ok", value, **told), score("t1", "ok", None, data_type=kind)]
    (tmp_path / "all.json").write_text(json.dumps(rows))
    assert [one.grade for one in read(tmp_path).grades] == [grade]


def test_values_that_json_does_not_know_are_shown_as_text(tmp_path: Path) -> None:
    rows = [score("t1", "ok", 4)]
    (tmp_path / "scores.json").write_text(json.dumps(rows))
    with duckdb.connect() as connection:
        shown = "{'when': TIMESTAMP '2026-01-02 03:04:05', 'cost': 1.50::DECIMAL(9, 2)}"
        connection.execute(
            f"COPY (SELECT 't1' AS id, {shown} AS input, 'a' AS output) "
            f"TO '{tmp_path / 'traces.parquet'}' (FORMAT parquet)"
        )
    assert "2026-01-02 03:04:05" in read(tmp_path).grades[0].shown["input"]
