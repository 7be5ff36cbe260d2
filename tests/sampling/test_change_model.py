"""The model of change."""

import numpy as np
import pytest
from scipy.optimize import minimize

from changed_api import Case
from masa.records import Floats
from masa.sampling.kernels import change_model
from masa.sampling.layout import Layout
from masa.sampling.predictive import changed
from masa.settings import Objective


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


def features(layout: Layout, item: int) -> Floats:
    """An item as a plain vector, in the order of the model's coefficients."""
    items, cells = layout.items, layout.cells
    labels, answers = layout.goal.weights.shape
    cell = items.cell[item]
    parts = [np.ones(1), items.numbers[item].astype(np.float64)]
    for size, at in (
        (labels, cells.label[cell]),
        (answers, cells.old[cell]),
        (len(cells.label), cell),
    ):
        one = np.zeros(size)
        one[at] = change_model.KIND_SCALE
        parts.append(one)
    words = np.zeros(layout.prior.vocabulary)
    words[items.words[items.word_start[item] : items.word_start[item + 1]]] = (
        change_model.WORD_SCALE
    )
    return np.concatenate([*parts, words])


def test_the_model_is_the_ridge_regression_that_it_says_it_is(case: Case) -> None:
    layout = case.layout
    asked = np.arange(0, 400, 4, dtype=np.int32)
    soft = changed(case.target[asked], None, np.full(len(asked), np.nan))
    x = np.array([features(layout, int(item)) for item in asked])
    prior = change_model.prior_model(layout.cells, layout.goal, layout.prior)

    def loss(model: Floats) -> tuple[float, Floats]:
        z = x @ model
        missed = 1 / (1 + np.exp(-z)) - soft
        return float(
            np.sum(np.logaddexp(0, z) - soft * z) + 0.5 * np.sum((model - prior) ** 2)
        ), x.T @ missed + model - prior

    best = minimize(loss, prior, jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x
    fitted = change_model.fit(layout.items, layout.cells, layout.goal, layout.prior, asked, soft)
    found = fitted.coefficients
    np.testing.assert_allclose(found, prior + fitted.multiple @ x, atol=1e-9)
    np.testing.assert_allclose(x @ found, x @ best, atol=0.03)
    assert loss(found)[0] - loss(best)[0] < 1e-3
    assert change_model.logit(layout.items, layout.cells, layout.goal, found, 7) == pytest.approx(
        features(layout, 7) @ found
    )


def test_the_variance_is_that_of_the_predicted_answer(case: Case) -> None:
    """For each cell the closed form against the sum over all answers, plain, weighted and linear."""
    asked = np.arange(0, 400, 3, dtype=np.int32)
    for objective in (
        Objective(),
        Objective.read({"x": {"other": 5, "y": 0.5}}),
        Objective.read("accuracy"),
        Objective.read({"cost": {"x": {"other": 7}, "*": {"y": -2}}}),
    ):
        layout = Layout.of(
            case.data.label,
            case.features,
            weight=case.weight,
            objective=objective,
            new=case.new.values,
        )
        target = case.target[asked]
        moment = change_model.moments(layout.items, layout.cells, layout.goal, asked, target)
        answers = len(layout.names)
        share = np.full(answers, change_model.PRIOR_CHANGES / answers)
        np.add.at(share, target[target >= 0], 1.0)
        share /= share.sum()
        cells = layout.cells
        wrong = (cells.right != cells.old)[layout.items.cell[asked]] & (target >= 0)
        mended = (0.5 + np.sum(target[wrong] == cells.right[layout.items.cell[asked]][wrong])) / (
            1.0 + wrong.sum()
        )
        for cell in range(len(cells.label)):
            usual = np.where(np.arange(answers) == cells.old[cell], 0.0, share)
            usual /= usual.sum()
            if cells.right[cell] != cells.old[cell]:
                usual *= 1.0 - mended
                usual[cells.right[cell]] += mended
            seen = np.bincount(
                target[(layout.items.cell[asked] == cell) & (target >= 0)], minlength=answers
            )
            to = (seen + change_model.PRIOR_CHANGES * usual) / (
                seen.sum() + change_model.PRIOR_CHANGES
            )
            weights = layout.goal.weights[cells.label[cell]]
            assert moment[cell, 0] == weights[cells.old[cell]]
            assert moment[cell, 1] == pytest.approx(weights @ to)
            assert moment[cell, 2] == pytest.approx(weights**2 @ to)
            assert moment[cell, 3] == pytest.approx((weights * to) @ (weights * to))
