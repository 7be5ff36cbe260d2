"""Baselines do not wither: what is accepted, refreshed and drawn from month to month."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import masa
from masa.data.baseline_answers import BaselineAnswers, evenly_weighted, narrowed
from masa.data.dataset import Dataset
from masa.inference.method import Method
from masa.inference.readings import Reader
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Column
from masa.replays.whole_runs import drive
from masa.runs.journalled import keys
from masa.runs.past_runs import accepted
from masa.settings import Settings
from masa.storage import journal
from masa.storage.store import opened

ITEMS = 3000


def api(*, changed: float = 0.3, seed: int = 0) -> Dataset:
    """An API that was right about 80% of the items, and an update that changed some answers."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, ITEMS)
    old = np.where(rng.random(ITEMS) < 0.2, 1 - label, label)
    new = np.where(rng.random(ITEMS) < changed, 1 - old, old)
    names = np.array(["ham", "spam"])
    sides = {"old": names[old].tolist(), "new": names[new].tolist()}
    return Dataset.of(names[label].tolist(), predictions=sides)


@pytest.fixture
def kept(tmp_path: Path) -> dict[str, Any]:
    return {"store": tmp_path / "masa.db", "force": True}


def asked(kept: dict[str, Any], run: int) -> set[int]:
    with opened(kept["store"]) as store:
        return set(journal.past(store, run).answers)


def accept(kept: dict[str, Any], run: int) -> Any:
    with opened(kept["store"]) as store:
        return accepted(store, run)


def test_months_without_a_change_leave_the_baseline_as_large_as_it_was(
    kept: dict[str, Any],
) -> None:
    data = api()
    masa.baseline(data, "replay:old", budget=1400, repeat=100, **kept)
    for _ in range(4):
        found = masa.assess(data, "replay:old", budget=1000, decide=True, **kept)
        assert found.verdict == "unchanged"
        assert found.items == 1300
        told = accept(kept, found.run)
        assert (told.answers, told.updates, told.lost) == (1300, True, 0)
    assert any("from several runs" in note for note in found.notes)


def test_an_update_takes_the_new_answers_of_what_was_asked(kept: dict[str, Any]) -> None:
    """A change within the tolerance is in the baseline once it is accepted, and no alarm later."""
    data = api(changed=0.01, seed=3)
    masa.baseline(data, "replay:old", **kept)
    found = masa.assess(data, "replay:new", budget=ITEMS, tolerance=0.05, **kept)
    assert (found.verdict, found.moved) == ("unchanged", "yes")
    accept(kept, found.run)
    again = masa.assess(data, "replay:new", budget=ITEMS, tolerance=0.05, **kept)
    assert (again.differing, again.moved) == (0, "no sign")


def test_after_a_change_only_its_own_answers_count_and_a_refresh_mends_it(
    kept: dict[str, Any],
) -> None:
    data = api()
    told: list[str] = []
    masa.baseline(data, "replay:old", budget=1500, repeat=100, **kept)
    found = masa.assess(data, "replay:new", budget=1400, decide=True, **kept)
    assert found.verdict == "changed"
    few = accept(kept, found.run)
    assert not few.updates
    assert few.answers == found.answers
    assert few.at_best == pytest.approx(3.0 / found.answers, rel=0.2)
    assert f"--refresh {few.lost}" in few.words
    stuck = masa.assess(data, "replay:new", budget=1400, tell=told.append, **kept)
    assert stuck.verdict == "undecided"
    assert stuck.more_queries is None
    assert any("cannot show that nothing changed" in note for note in told)
    assert any("every item of the baseline was asked" in note for note in stuck.notes)
    more = masa.baseline(data, "replay:new", refresh=1000, **kept)
    assert more.answers == found.answers + 1000
    mended = masa.assess(data, "replay:new", budget=1400, decide=True, **kept)
    assert mended.verdict == "unchanged"
    masa.baseline(data, "replay:new", refresh=ITEMS, **kept)
    with pytest.raises(masa.UsageError, match="an answer about every item"):
        masa.baseline(data, "replay:new", refresh=1, **kept)


def test_a_refreshed_baseline_is_unbiased_and_as_sure_as_it_says() -> None:
    """Over many baselines: an accepted one of 300 items and 300 that were added."""
    data = api(changed=0.1, seed=5)
    names = data.predictions
    right = data.label.codes
    truth = float((names["new"].codes == right).mean() - (names["old"].codes == right).mean())
    assert sum(_holds(data, seed, truth) for seed in range(25)) >= 21


def _holds(data: Dataset, seed: int, truth: float) -> bool:
    rng = np.random.default_rng(seed)
    old = data.predictions["old"]

    def known(places: np.ndarray) -> BaselineAnswers:
        weight, extra = evenly_weighted(data, places, 3)
        column = Column("old", old.values, old.codes[places])
        return BaselineAnswers(places, column, weight=weight, extra_variance=extra)

    order = rng.permutation(ITEMS)
    first, more = known(np.sort(order[:300])), known(np.sort(order[300:600]))
    both = first.joined_by(replace(more, weight=None), data)
    assert both.weight is not None
    assert both.weight.sum() == pytest.approx(1.0)
    part, both = narrowed(data, both)
    new = data.predictions["new"]
    run = Trial(Method.of(part, both, Settings()), both, Stopping(), seed=seed)
    places = np.sort(order[:600])
    drive(run, Column("new", new.values, new.codes[places]), until=200)
    interval = Reader(run.estimate(), 0.95).accuracy()
    return interval.low <= truth <= interval.high


@pytest.mark.new_seeds
def test_every_run_asks_other_items_and_a_seed_repeats_one(kept: dict[str, Any]) -> None:
    data = api()
    masa.baseline(data, "replay:old", **kept)
    first = masa.assess(data, "replay:old", budget=300, **kept)
    second = masa.assess(data, "replay:old", budget=300, **kept)
    assert first.seed != second.seed
    both = asked(kept, first.run) & asked(kept, second.run)
    # About 30 of 300 are the same by chance; batches drawn from one order make that uneven.
    assert len(both) < 100
    again = masa.assess(data, "replay:old", budget=300, seed=first.seed, **kept)
    assert again.seed == first.seed
    longer = masa.assess(data, "replay:old", budget=400, resume=second.run, **kept)
    assert longer.seed == second.seed
    assert asked(kept, second.run) >= asked(kept, first.run) & asked(kept, second.run)


@pytest.mark.new_seeds
def test_every_run_has_canaries_of_its_own_where_answers_are_doubtful(kept: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    label = ["a", "b"] * 500
    data = Dataset.of(label, predictions={"old": label}, numbers={"sure": rng.random(1000)})
    found = [
        masa.assess(
            data,
            "replay:old",
            baseline="old",
            old_confidence="sure",
            canary=20,
            budget=40,
            name=str(month),
            **kept,
        )
        for month in range(2)
    ]
    with opened(kept["store"]) as store:
        drawn = [journal.past(store, one.run).draws for one in found]
    canaries = [{key for key, draw in each.items() if draw[0] == 0} for each in drawn]
    assert min(map(len, canaries)) >= 10
    assert len(canaries[0] & canaries[1]) < 5
    with opened(kept["store"]) as store:
        sure = dict(zip(keys(data).tolist(), data.numbers["sure"].tolist(), strict=True))
    assert np.mean([sure[key] for key in canaries[0] | canaries[1]]) < 0.3


def test_what_is_new_in_the_data_is_not_represented_by_a_refreshed_baseline(
    kept: dict[str, Any],
) -> None:
    """Items that had no chance of being drawn are left out, and it is said."""
    data = api()
    masa.baseline(data.take(np.arange(1500)), "replay:old", budget=700, **kept)
    masa.baseline(data, "replay:old", refresh=100, budget=900, **kept)
    found = masa.assess(data, "replay:old", budget=2000, **kept)
    assert found.items == 800, "a refresh asks no more than it says, whatever the budget"
    assert any("1,500 are new" in note for note in found.notes)
    masa.baseline(data, "replay:old", refresh=700, **kept)
    with pytest.raises(masa.UsageError, match="every item that was in its data"):
        masa.baseline(data, "replay:old", refresh=10, **kept)


def test_a_run_on_part_of_the_data_leaves_the_rest_of_the_baseline(kept: dict[str, Any]) -> None:
    data = api()
    masa.baseline(data, "replay:old", **kept)
    part = data.take(np.arange(600))
    found = masa.assess(part, "replay:old", budget=600, **kept)
    assert found.verdict == "unchanged"
    told = accept(kept, found.run)
    assert (told.answers, told.items) == (ITEMS, ITEMS)
    again = masa.assess(data, "replay:old", budget=10, **kept)
    assert again.items == ITEMS
    assert any("600 of run 2" in note and "2,400 of run 1" in note for note in again.notes)
    other = masa.assess(data.take(np.arange(600, ITEMS)), "replay:old", budget=10, **kept)
    assert other.items == ITEMS - 600


def test_what_can_never_be_decided_promises_no_number_of_queries(kept: dict[str, Any]) -> None:
    data = api()
    masa.baseline(data, "replay:old", budget=200, **kept)
    found = masa.assess(data, "replay:old", budget=150, **kept)
    assert (found.verdict, found.more_queries) == ("undecided", None)
