"""The verdict on anything that a tolerance may be on."""

from typing import Any

import pytest

import masa
from masa.settings import Tolerance
from zoo import truth_of, zoo


def test_a_tolerance_may_be_on_any_label_or_entry() -> None:
    data = zoo(changed=0.08, towards=3)
    common: dict[str, Any] = {"baseline": "old", "budget": 2000, "store": None}
    real = truth_of(data)
    assert real.recall["cat"].change < -0.05
    judged = masa.assess(data, "replay:new", **common, tolerance="recall=3%")
    assert (judged.verdict, judged.direction) == ("changed", "worse")
    wide = masa.assess(data, "replay:new", **common, tolerance="recall=20%")
    assert wide.verdict == "unchanged"
    entry = masa.assess(data, "replay:new", **common, tolerance="entry=0.01")
    assert (entry.verdict, entry.direction) == ("changed", "worse")
    both = masa.assess(data, "replay:new", **common, tolerance="accuracy=50%,recall=3%")
    assert both.verdict == "changed"
    assert (
        "3 points of recall of any label"
        in masa.settings.tolerance.Tolerance.read("recall=3%").words
    )
    for wrong in ("f1=0.1", "recall=lots", "recall=2", "", "nan"):
        with pytest.raises(masa.UsageError):
            Tolerance.read(wrong)


def test_what_is_more_than_wanted_never_alarms() -> None:
    """A change that is certain and below the tolerance is no alarm, for any kind of tolerance."""
    data = zoo(changed=0.02)
    for tolerance in ("accuracy=5%", "recall=30%", "entry=5%", "precision=40%"):
        found = masa.assess(
            data, "replay:new", baseline="old", budget=2500, store=None, tolerance=tolerance
        )
        assert (found.verdict, found.moved, found.exit_code) == ("unchanged", "yes", 0), tolerance


def test_labels_without_weight_have_no_say() -> None:
    data = zoo(items=1000, changed=0.02)
    mix = {"cat": 0.5, "dog": 0.5, "fox": 0.0, "owl": 0.0}
    found = masa.assess(
        data, "replay:new", baseline="old", budget=1000, store=None, mix=mix, tolerance="recall=20%"
    )
    assert found.verdict == "unchanged"


def test_what_is_shown_is_what_is_judged_by() -> None:
    """With several tolerances all intervals share the doubt, those that are shown too."""
    data = zoo(changed=0.03)
    common: dict[str, Any] = {"baseline": "old", "budget": 1200, "store": None}
    alone = masa.assess(data, "replay:new", **common, tolerance="recall=10%")
    both = masa.assess(data, "replay:new", **common, tolerance="accuracy=50%,recall=10%")
    assert alone.readings is not None
    assert both.readings is not None
    assert all(
        both.readings.recall[label].low <= interval.low
        for label, interval in alone.readings.recall.items()
    )
    assert any(
        both.readings.recall[label].low < interval.low
        for label, interval in alone.readings.recall.items()
    )
    widest = max(max(-one.low, one.high) for one in both.readings.recall.values())
    for limit, said in ((widest + 1e-9, "unchanged"), (widest - 1e-4, "undecided")):
        found = masa.assess(
            data, "replay:new", **common, tolerance={"accuracy": 0.5, "recall": limit}
        )
        assert found.verdict == said
    with pytest.raises(masa.UsageError, match="more than one tolerance on recall"):
        Tolerance.read("recall=1%,recall=50%")
