"""Baselines of which not every item's answer is known."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import masa
from masa import history
from masa.dataset import Dataset
from masa.estimate import true_matrix
from masa.old import Old, evenly, narrowed
from masa.plan import Plan, Settings
from masa.records import Assessment, Column
from masa.store import opened
from masa.strata import Strata
from masa.weighed import Draws

ITEMS = 3000


def updates() -> Dataset:
    """An API that changed twice: first many doubtful answers, then right answers that became wrong, most of them of one label."""
    rng = np.random.default_rng(5)
    names = np.array(["cat", "dog", "fox"])
    label = rng.choice(3, ITEMS, p=[0.6, 0.3, 0.1])
    doubt = rng.random(ITEMS)
    first = np.where(rng.random(ITEMS) < 0.3 * doubt, (label + 1) % 3, label)
    second = np.where(rng.random(ITEMS) < 0.2 * doubt, (first + 1) % 3, first)
    third = np.where(rng.random(ITEMS) < np.array([0.02, 0.08, 0.1])[label], (second + 2) % 3, second)
    columns = {"first": names[first].tolist(), "second": names[second].tolist(), "third": names[third].tolist()}
    return Dataset.of(names[label].tolist(), predictions=columns, numbers={"sure": (1.0 - doubt).tolist()})


def change(data: Dataset, old: str, new: str) -> float:
    strata = Strata.build(data.label)
    before, after = (true_matrix(strata, data.predictions[name]) for name in (old, new))
    return masa.Shift(before, after).accuracy.change


def accepted(data: Dataset, store: Path, seed: int) -> Assessment:
    """Assess what changed since a run of chosen items, which was accepted."""
    name = f"accepted {seed}"
    run = masa.assess(
        data, "replay:second", baseline="first", old_confidence="sure", budget=400, seed=seed, name=name, store=store
    )
    with opened(store) as kept:
        history.accept(kept, run.run)
    return masa.assess(data, "replay:third", budget=300, seed=seed, name=name, store=store, force=True)


def budgeted(data: Dataset, store: Path, seed: int) -> Assessment:
    """Assess what changed since a baseline within a budget."""
    name = f"budgeted {seed}"
    masa.baseline(data, "replay:second", budget=400, seed=seed, name=name, store=store)
    return masa.assess(data, "replay:third", budget=300, seed=seed, name=name, store=store, force=True)


@pytest.mark.parametrize("assessed", [accepted, budgeted])
def test_items_that_stand_for_others_are_right_on_average_and_as_sure_as_they_say(
    assessed: Callable[[Dataset, Path, int], Assessment], tmp_path: Path
) -> None:
    data, runs = updates(), 40
    truth = change(data, "second", "third")
    found = [assessed(data, tmp_path / "masa.db", seed) for seed in range(runs)]
    assert {(one.items, one.answers) for one in found} == {(400, 300)}
    intervals = [one.accuracy_change for one in found if one.accuracy_change is not None]
    errors = np.array([one.estimate - truth for one in intervals])
    halves = np.array([(one.high - one.low) / 2 for one in intervals])
    assert abs(errors.mean()) < 3 * errors.std() / runs**0.5
    assert 0.7 < errors.std() / (halves.mean() / 1.96) < 1.25
    assert np.mean([one.low <= truth <= one.high for one in intervals]) >= 0.9


def test_all_known_items_leave_the_doubt_of_a_sample() -> None:
    """A census of a random sample: the variance is that of the sample, with what is known of the strata."""
    data = updates()
    new, old = (data.predictions[name] for name in ("third", "second"))
    truth, errors, variances = change(data, "second", "third"), [], []
    for seed in range(200):
        places = np.sort(np.random.default_rng(seed).choice(ITEMS, 500, replace=False))
        stands, beyond = evenly(data, places, 3)
        assert stands.sum() == pytest.approx(1.0)
        then = Column(old.name, old.values, old.codes[places])
        kept, known = narrowed(data, Old(places, then, stands=stands, beyond=beyond))
        plan = Plan.of(kept, known, Settings())
        source, queries = plan.make(seed), list[masa.Query]()
        while some := source.ask(100):
            for query in some:
                source.tell(masa.Answer(query.item, new.values[new.codes[places[query.item]]]))
            queries += some
        at = np.array([query.item for query in queries], np.int64)
        assert len(at) == 500
        draws = Draws.of([query.draw for query in queries if query.draw is not None])
        answers = Column(new.name, new.values, new.codes[places[at]])
        found = plan.estimated(known, at, answers, draws, finite=True)
        errors.append(found.shift.accuracy.change - truth)
        variances.append(found.accuracy.error2)
    assert np.std(errors) ** 2 == pytest.approx(np.mean(variances), rel=0.25)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / 200**0.5
