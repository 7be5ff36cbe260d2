"""Replies that are not labels."""

from pathlib import Path

import numpy as np
import pytest

import masa
from live_runs import QUICK, client, data
from masa.records import Column
from masa.runs.baseline import baseline
from server import Server


def test_an_answer_that_is_half_a_character_is_unreadable_and_harms_nobody(
    server: Server, tmp_path: Path
) -> None:
    old = Column("old", ("pos",), np.zeros(300, np.int32))
    server.change = lambda text, label: (
        "\ud83d" if "(7)" in text else "x\x00\x1b[31m" if "(8)" in text else label
    )
    found = masa.assess(
        data(), client(server), baseline=old, budget=300, store=tmp_path / "s.db", limits=QUICK
    )
    assert found.answers == 300
    assert found.shift is not None
    assert masa.INVALID in found.shift.new.predictions


def test_an_api_that_renames_its_labels_has_changed(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    server.change = lambda _text, label: label.upper()
    found = masa.assess(data(), client(server), budget=100, store=store, limits=QUICK)
    assert (found.verdict, found.moved) == ("changed", "yes")
    assert "'NEG', which is not the label 'neg'" in " ".join(found.notes)


def test_strange_labels_stop_a_run_before_much_is_spent(server: Server, tmp_path: Path) -> None:
    server.change = lambda _text, label: label.upper()
    with pytest.raises(masa.DataError, match="none of the first 20 answers is a label") as caught:
        baseline(data(), client(server), budget=300, store=tmp_path / "s.db", limits=QUICK)
    assert 'labels = { "' in caught.value.hint
    assert len(server.requests) < 40
    server.change = lambda _text, label: "Neg" if label == "neg" else label
    found = baseline(
        data(), client(server), budget=300, store=tmp_path / "s.db", limits=QUICK, fresh=True
    )
    assert "'Neg', which is not the label 'neg'" in " ".join(found.notes)


def test_a_wrong_way_to_the_label_is_told_at_once(server: Server, tmp_path: Path) -> None:
    with pytest.raises(masa.ApiError, match=r"no answer has 'result.lable'") as caught:
        baseline(
            data(),
            client(server, label="result.lable"),
            budget=300,
            store=tmp_path / "s.db",
            limits=QUICK,
        )
    assert "it has result.label, result.score" in caught.value.hint
    assert len(server.requests) < 20
