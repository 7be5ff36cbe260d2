"""Markdown, JUnit, CSV and JSON: the same facts, and text that stays text."""

import csv
import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import masa
from made_runs import HOSTILE, run
from masa.records import Assessment
from masa.report import formats, junit, listed, markdown, sentences


@pytest.fixture(scope="module")
def found() -> Assessment:
    return run(7, 3000, 800)


def test_markdown_begins_with_an_alert_and_the_verdict_in_one_line(found: Assessment) -> None:
    lines = markdown.assessment(found).splitlines()
    assert lines[0] == "> [!CAUTION]"
    assert lines[1].startswith("> **CHANGED** for the worse: right answers ")
    assert lines[2] == ""
    kinds = {
        "unchanged": "TIP",
        "undecided": "WARNING",
    }
    for verdict, kind in kinds.items():
        other = markdown.assessment(replace(found, verdict=verdict, direction=None))
        assert other.startswith(f"> [!{kind}]\n")


def test_markdown_holds_no_links_mentions_or_html_of_others(found: Assessment) -> None:
    text = markdown.assessment(found)
    assert "<script" not in text
    assert "http://" not in text
    assert "@everyone" not in text
    assert not re.search(r"(?<!\\)\](?=\()", text)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for row in rows:
        columns = row.replace("\\|", "").count("|") - 1
        assert columns in (2, 3, 4, 5)


def test_markdown_fits_into_a_comment_whatever_the_labels(found: Assessment) -> None:
    many = replace(found, notes=tuple(f"note {number} " + "x" * 500 for number in range(300)))
    assert len(markdown.assessment(many)) < 65_536


@pytest.mark.parametrize(
    ("verdict", "direction", "failures", "errors"),
    [("changed", "worse", 2, 0), ("unchanged", None, 0, 0), ("undecided", None, 0, 1)],
)
def test_junit_fails_where_the_command_would(
    found: Assessment, verdict: str, direction: str | None, failures: int, errors: int
) -> None:
    told = replace(found, verdict=verdict, direction=direction)
    suite = ElementTree.fromstring(junit.assessment(told))[0]
    assert (int(suite.get("failures", 0)), int(suite.get("errors", 0))) == (failures, errors)
    assert (told.exit_code == 1) == bool(failures)
    assert (told.exit_code == 3) == bool(errors)
    if failures:
        message = suite.find("testcase/failure")
        assert message is not None
        assert message.get("message") == sentences.headline(told)


def test_csv_has_every_entry_and_no_formulas(found: Assessment) -> None:
    rows = list(csv.DictReader(io.StringIO(listed.entries(found))))
    assert len(rows) == 49
    assert found.shift is not None
    assert found.readings is not None
    names = found.shift.new.labels
    for row, (i, j) in zip(rows, ((i, j) for i in range(7) for j in range(7)), strict=True):
        assert row["label"].removeprefix("'") == names[i]
        assert not row["label"].startswith(("=", "+", "-", "@"))
        assert float(row["change"]) == float(found.shift.values[i, j])
        assert float(row["low"]) == float(found.readings.low[i, j])


def test_json_is_read_back_as_it_was(found: Assessment) -> None:
    told = json.loads(formats.written(found, "json"))
    assert told["schema"] == 2
    again = Assessment.from_dict(told)
    assert again.to_dict() == found.to_dict()
    assert set(HOSTILE) <= set(told["labels"])


def test_with_another_tolerance_the_headline_tells_what_is_judged() -> None:
    data = masa.Dataset.of(
        ["ill", "well"] * 300,
        predictions={
            "old": ["ill", "well"] * 300,
            "new": [*(["well", "well"] * 90), *(["ill", "well"] * 210)],
        },
    )
    found = masa.assess(
        data, "replay:new", baseline="old", budget=500, store=None, tolerance="recall=5%"
    )
    assert "for the worse: recall of 'ill' 100% -> 70" in sentences.headline(found)
    right = sentences.accuracy(found)
    assert right is not None
    assert right.startswith("Right answers 100% -> 85")


def test_the_ending_of_a_file_says_what_it_will_be() -> None:
    from pathlib import Path

    for kind, ending in formats.FORMATS.items():
        assert formats.chosen(None, Path(f"report{ending}")) == kind
    with pytest.raises(masa.UsageError, match=r"report\.doc does not say"):
        formats.chosen(None, Path("report.doc"))


def test_results_show_themselves_in_a_notebook(found: Assessment) -> None:
    assert found.shift is not None
    for it in (found, found.shift, found.shift.new):
        piece = it._repr_html_()
        assert "<script" not in piece
        assert piece.strip().startswith('<div class="masa">')
    assert len(found.to_frame()) == found.answers
    assert found.shift.to_frame().equals(found.delta)
    for what in ("shift", "intervals"):
        assert found.plot(what).to_dict()["layer"]
    with pytest.raises(masa.UsageError, match="cannot be drawn as 'taste'"):
        found.plot("taste")
