"""Rows without a label."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from masa.data.dataset import Dataset


def half_labelled(folder: Path, *, changed: str) -> Path:
    """300 items, two of three with a label, the least sure of those without.

    One in ten changed, or only unlabelled ones.
    """
    rng = np.random.default_rng(3)
    rows = ["id,label,old,new,sure"]
    for number in range(300):
        label, sure = ("cat", "dog")[number % 2], rng.random()
        known = number % 3 != 0
        old = label if rng.random() < 0.8 else "dog"
        flips = rng.random() < (0.5 if not known else 0.1 if changed == "all" else 0.0)
        new = {"cat": "dog", "dog": "cat"}[old] if flips else old
        rows.append(
            f"{number},{label if known else ''},{old},{new},{sure * (1.0 if known else 0.1):.4f}"
        )
    file = folder / "half.csv"
    file.write_text("\n".join(rows))
    return file


def test_rows_without_a_label_tell_only_whether_anything_changed(tmp_path: Path) -> None:
    file = half_labelled(tmp_path, changed="unlabelled")
    columns: dict[str, Any] = {
        "label": "label",
        "id": "id",
        "predictions": ["old", "new"],
        "numbers": ["sure"],
    }
    with pytest.raises(masa.DataError, match="row 1: no value in column 'label'") as refused:
        masa.read(file, **columns)
    assert "--unlabelled" in (refused.value.hint or "")
    data = masa.read(file, unlabelled=True, **columns)
    assert data.labels == ("cat", "dog")
    found = masa.assess(
        data, "replay:new", baseline="old", old_confidence="sure", budget=60, store=None
    )
    assert found.moved == "yes"
    assert found.shift is not None
    assert found.shift.new.labels == ("cat", "dog")
    assert found.shift.norm == pytest.approx(0.0)
    assert {item.label for item in found.changed_items} == {"<unlabelled>"}
    assert any("100 of 300 items have no label" in note for note in found.notes)
    whole = masa.assess(
        data, "replay:new", baseline="old", old_confidence="sure", budget=300, store=None
    )
    assert whole.answers < 300, "without a label only canaries are asked"
    with pytest.raises(masa.UsageError, match="paired asks only about items with a label"):
        masa.assess(data, "replay:new", baseline="old", budget=60, store=None, method="paired")


def test_what_has_no_label_does_not_sway_the_estimate(tmp_path: Path) -> None:
    file = half_labelled(tmp_path, changed="all")
    columns: dict[str, Any] = {
        "label": "label",
        "id": "id",
        "predictions": ["old", "new"],
        "numbers": ["sure"],
    }
    data = masa.read(file, unlabelled=True, **columns)
    alone = data.take(np.flatnonzero(data.labelled))
    assert alone.label.values == ("cat", "dog")
    both = [
        masa.assess(
            given, "replay:new", baseline="old", old_confidence="sure", budget=300, store=None
        )
        for given in (data, alone)
    ]
    assert both[1].answers == 200
    shifts = [found.shift for found in both]
    assert shifts[0] is not None
    assert shifts[1] is not None
    np.testing.assert_allclose(shifts[0].new.values, shifts[1].new.values, atol=1e-12)
    changes = [found.accuracy_change for found in both]
    assert changes[0] is not None
    assert changes[1] is not None
    assert changes[0].estimate == pytest.approx(changes[1].estimate, abs=1e-8)


def test_a_baseline_has_the_rows_without_a_label(tmp_path: Path) -> None:
    file = half_labelled(tmp_path, changed="all")
    data = masa.read(file, label="label", id="id", predictions=["old", "new"], unlabelled=True)
    store = tmp_path / "masa.db"
    made = masa.baseline(data, "replay:old", store=store)
    assert made.answers == 300
    assert made.matrix is not None
    assert made.matrix.labels == ("cat", "dog")
    assert made.matrix.values.sum() == pytest.approx(1.0)
    found = masa.assess(data, "replay:new", budget=150, store=store, force=True)
    assert found.method == "predictive"
    assert found.shift is not None
    assert found.shift.new.labels == ("cat", "dog")


def test_rows_without_a_label_are_asked_where_nothing_tells_them_apart() -> None:
    label = ["cat", "dog", None, None] * 50
    old = ["cat", "dog", "cat", "dog"] * 50
    new = ["cat", "dog", "dog", "cat"] * 50
    data = Dataset.of(label, predictions={"old": old, "new": new}, unlabelled=True)
    found = masa.assess(data, "replay:new", baseline="old", budget=100, store=None)
    assert found.moved == "yes"
    assert any("96 of the items without a label were not asked" in note for note in found.notes)
    many = masa.assess(data, "replay:new", baseline="old", budget=60, store=None, canary=40)
    assert many.moved == "yes"
