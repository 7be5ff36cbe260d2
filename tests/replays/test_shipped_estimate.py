"""A replay measures what an assessment ships: the same items, the same estimate."""

from typing import Any

import numpy as np
import pytest

from masa.data.baseline_answers import from_column
from masa.data.dataset import Dataset
from masa.inference.counts import true_matrix
from masa.inference.method import Method
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Answer, Shift, in_order
from masa.replays.replay import replay
from masa.replays.simulate import NewAnswers, simulation
from masa.sampling.kernels.drawing import run_key
from masa.settings import Settings

METHODS = ("uniform", "post-stratified", "stratified", "masa", "adaptive", "paired")


def updated(items: int = 900, labels: int = 5, changed: float = 0.2, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, labels, items)
    old = np.where(rng.random(items) < 0.7, label, rng.integers(0, labels + 1, items))
    new = np.where(rng.random(items) < changed, rng.integers(0, labels + 2, items), old)
    return Dataset.of(
        label.tolist(),
        predictions={"old": old.tolist(), "new": new.tolist()},
        difficulty=rng.random(items),
    )


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("changed", [0.02, 0.3])
def test_the_error_of_a_replay_is_that_of_the_assessment_with_the_same_seed(
    name: str, changed: float
) -> None:
    """One call at a time, because a replay answers each query before it asks the next."""
    data = updated(changed=changed)
    old, new = from_column(data, data.predictions["old"]), data.predictions["new"]
    method = Method.of(data, old, Settings(), name=name, new_answers=new.values)
    truth = Shift(true_matrix(method.strata, old.answers), true_matrix(method.strata, new))
    budgets = (1, 3, 40, 150, 400)
    checkpoints = np.array([(budget, row) for row, budget in enumerate(budgets)], np.int64)
    played = simulation(method, NewAnswers(new)).run(
        np.array([run_key(7, 0)], np.uint64), checkpoints
    )
    trial = Trial(method, old, Stopping(), seed=7)
    for place, budget in enumerate(budgets):
        while len(trial.asked.answers) < budget:
            (query,) = trial.ask(1)
            trial.tell(Answer(query.item, new.values[new.codes[query.item]]))
        found = trial.estimate().shift
        assert played.errors[0, place] == pytest.approx(found.error(truth), rel=1e-5, abs=1e-7)


def test_weights_and_labels_that_are_never_answered_are_measured_alike() -> None:
    data = updated(labels=12, items=600)
    old, new = from_column(data, data.predictions["old"]), data.predictions["new"]
    for weights in ("accuracy", {"0": {"1": 5}}):
        settings = Settings(weights=weights)  # type: ignore[arg-type]
        method = Method.of(data, old, settings, name="post-stratified", new_answers=new.values)
        played = simulation(method, NewAnswers(new)).run(
            np.array([run_key(3, 0)], np.uint64), np.array([(8, 0)], np.int64)
        )
        trial = Trial(method, old, Stopping(), seed=3)
        while len(trial.asked.answers) < 8:
            for query in trial.ask(1):
                trial.tell(Answer(query.item, new.values[new.codes[query.item]]))
        names = in_order(trial.estimate().shift.new.predictions + new.values)
        found, truth = trial.estimate().shift.new.on(names), true_matrix(method.strata, new)
        table = settings.weights.table(found.labels, names)
        off = table * (found.values - truth.on(names).values)
        wanted = abs(off.sum()) if settings.weights.linear else np.linalg.norm(off)
        assert played.errors[0, 0] == pytest.approx(wanted, rel=1e-5, abs=1e-7)


def test_the_papers_estimate_stays_available_and_is_named() -> None:
    """It does not use the old answers, so a quiet update takes it many times the queries."""
    data = updated(items=4000, changed=0.03)
    options: dict[str, Any] = {
        "new": "new",
        "old": "old",
        "methods": ("masa",),
        "runs": 60,
        "budgets": (400,),
    }
    shipped = replay(data, **options).curves[0]
    paper = replay(data, estimator="paper", **options).curves[0]
    without = replay(data, **{**options, "old": None}).curves[0]
    assert shipped.mean_squared_error[0] < 0.5 * paper.mean_squared_error[0]
    assert paper.mean_squared_error == without.mean_squared_error
