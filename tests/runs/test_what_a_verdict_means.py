"""What a verdict says beside its word, what it would take, and what makes exit code 1."""

from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import masa
from masa.data.dataset import Dataset
from masa.records import Assessment
from masa.report import terminal


def shuffled(items: int = 2000, *, changed: float = 0.2) -> Dataset:
    """An update that changed answers, for the better as often as for the worse."""
    rng = np.random.default_rng(4)
    label = rng.integers(0, 2, items)
    old = np.where(rng.random(items) < 0.5, 1 - label, label)
    new = np.where(rng.random(items) < changed, 1 - old, old)
    names = np.array(["no", "yes"])
    sides = {"old": names[old].tolist(), "new": names[new].tolist()}
    return Dataset.of(names[label].tolist(), predictions=sides)


def assessed(data: Dataset, **options: Any) -> Assessment:
    return masa.assess(data, "replay:new", baseline="old", store=None, **options)


def shown(found: Assessment) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(terminal.assessment(found))
    return console.export_text()


def test_unchanged_accuracy_of_another_model_is_said_in_one_sentence() -> None:
    found = assessed(shuffled(), budget=2000, tolerance=0.05)
    assert (found.verdict, found.moved, found.exit_code) == ("unchanged", "yes", 0)
    first = shown(found).splitlines()[0]
    assert first.startswith(
        "UNCHANGED  within the tolerance, though the model behind it is another"
    )


def test_fail_on_moved_fails_for_any_proven_change() -> None:
    data = shuffled()
    assert assessed(data, budget=2000, tolerance=0.05, fail_on="moved").exit_code == 1
    same = shuffled(changed=0.0)
    assert assessed(same, budget=2000, tolerance=0.05, fail_on="moved").exit_code == 0


def test_a_tolerance_on_answers_judges_how_many_differ() -> None:
    data = shuffled()
    few = assessed(data, budget=400, tolerance="answers=5%")
    assert (few.verdict, few.direction, few.exit_code) == ("changed", None, 1)
    many = assessed(data, budget=400, tolerance="answers=40%")
    assert many.verdict == "unchanged"
    assert shown(few).startswith("CHANGED  answers that differ 21.1%, between 17.6% and 25.1%")
    assert "Right answers 49.6% -> 50.3%" in shown(few)


@pytest.mark.parametrize("budget", [1, 4, 20])
def test_with_few_answers_it_says_what_it_would_take(budget: int) -> None:
    found = assessed(shuffled(changed=0.02), budget=budget)
    assert found.verdict == "undecided"
    assert found.more_queries is not None
    assert found.more_queries > budget
    assert "items that are left" in shown(found) or "more queries would decide" in shown(found)


def test_as_many_more_queries_as_it_says_do_decide_it() -> None:
    """About: twice as many do in most runs, and half as many in few."""
    data = shuffled(8000, changed=0.02)
    enough = 0
    for seed in range(8):
        found = assessed(data, budget=400, seed=seed)
        if found.verdict != "undecided":
            enough += 1
            continue
        assert found.more_queries is not None
        more = assessed(data, budget=400 + 2 * found.more_queries, seed=seed)
        enough += more.verdict != "undecided"
    assert enough >= 6


def test_labels_that_differ_by_case_are_named_before_anything_is_spent() -> None:
    label = ["Yes", "yes", "no"] * 20
    data = Dataset.of(label, predictions={"old": label})
    told: list[str] = []
    asked: list[str] = []

    def api(text: str) -> str:
        assert told, "it is said before the first call"
        asked.append(text)
        return "yes"

    with_text = Dataset.of(
        label, predictions={"old": label}, inputs={"text": [str(n) for n in range(60)]}
    )
    masa.assess(with_text, api, baseline="old", budget=5, store=None, tell=told.append)
    assert asked
    assert any("'Yes' and 'yes'" in note for note in told)
    told.clear()
    masa.baseline(with_text, api, budget=5, store=None, tell=told.append)
    assert any("'Yes' and 'yes'" in note for note in told)
    assert any("'Yes' and 'yes'" in note for note in data.notes)


def test_an_api_with_labels_in_another_case_stops_early_with_a_column_too() -> None:
    """A column of answers may have been read in another way than the API is now."""
    label = ["yes", "no"] * 200
    data = Dataset.of(
        label, predictions={"old": label}, inputs={"text": [str(n) for n in range(400)]}
    )
    asked: list[str] = []

    def api(text: str) -> str:
        asked.append(text)
        return "YES" if int(text) % 2 == 0 else "NO"

    with pytest.raises(masa.DataError, match="none of the first 20 answers is a label"):
        masa.assess(data, api, baseline="old", budget=400, concurrency=1, store=None)
    assert len(asked) <= 25


@pytest.mark.parametrize("budget", [4, 20, 200])
def test_labels_that_are_the_old_answers_cannot_tell_better_from_worse(budget: int) -> None:
    data = shuffled(changed=0.5)
    old = data.predictions["old"]
    said = [old.values[code] for code in old.codes]
    new = data.predictions["new"]
    sides = {"old": said, "new": [new.values[code] for code in new.codes]}
    of_old = assessed(Dataset.of(said, predictions=sides), budget=budget, seed=1)
    assert of_old.differing
    assert any("new ones may as well be better" in note for note in of_old.notes)
    of_people = assessed(data, budget=budget, seed=1)
    assert not any("may as well be better" in note for note in of_people.notes)
