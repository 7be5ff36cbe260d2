"""Matrices, shifts and what is said about strata."""

import numpy as np
import pytest

import naive
from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import DataError
from masa.inference.counts import estimated_matrix, stratum_reports, true_matrix, true_uncertainty
from masa.records import Answer, Matrix, Shift
from masa.sampling.stratified import Sampler
from masa.settings.methods import PAPER as METHODS


def test_the_true_matrix_counts_pairs() -> None:
    data = Dataset.of(["a", "a", "b", "b"], predictions={"api": ["a", "b", "b", None]})
    strata = Strata.build(data.label)
    matrix = true_matrix(strata, data.predictions["api"])
    assert matrix.predictions == ("a", "b", "<invalid>")
    assert matrix.values.tolist() == [[0.25, 0.25, 0.0], [0.0, 0.25, 0.25]]
    assert (matrix.accuracy, matrix.recall, matrix.precision) == (
        0.5,
        {"a": 0.5, "b": 0.5},
        {"a": 1.0, "b": 0.5},
    )


def test_a_shift_lines_up_predictions_by_name() -> None:
    labels = ("a", "b")
    old = Matrix(labels, ("b", "a"), np.array([[0.1, 0.4], [0.5, 0.0]]))
    new = Matrix(labels, ("a", "<error>"), np.array([[0.5, 0.0], [0.25, 0.25]]))
    shift = Shift(old, new)
    assert shift.delta.columns.tolist() == ["a", "b", "<error>"]
    assert shift.delta.to_numpy()[1].tolist() == [0.25, -0.5, 0.25]
    assert shift.accuracy.change == pytest.approx(-0.4)
    assert shift.recall["a"].change == pytest.approx(0.2)
    assert shift.precision["a"].new == pytest.approx(0.5 / 0.75)
    assert np.isnan(shift.precision["b"].new)
    assert shift.norm == pytest.approx(np.linalg.norm(shift.values))
    assert shift.error(Shift(old, old)) == pytest.approx(shift.norm)
    assert shift.error(shift) == 0.0


def test_matrices_of_different_data_are_not_compared() -> None:
    one, other = (Matrix((name,), ("x",), np.ones((1, 1))) for name in "ab")
    with pytest.raises(DataError):
        Shift(one, other)


def test_strata_tell_their_answers_and_uncertainty() -> None:
    data = Dataset.of(["a"] * 3 + ["b"])
    strata = Strata.build(data.label)
    sampler = Sampler(strata)
    for item, answer in enumerate("aab"):
        sampler.tell(Answer(item, answer))
    a, b = stratum_reports(sampler.tally(), strata)
    assert (a.label, a.items, a.answers, a.weight) == ("a", 3, 3, 0.75)
    assert a.uncertainty == pytest.approx(2 / 3)
    assert (b.answers, b.uncertainty) == (0, None)


def test_the_true_uncertainty_is_the_chance_that_two_draws_differ() -> None:
    answers = ["x", "x", "y", "z", "x"]
    data = Dataset.of(["a"] * 5 + ["b"], predictions={"new": [*answers, "x"]})
    strata, new = Strata.build(data.label), data.predictions["new"]
    again = np.mean([one != other for one in answers for other in answers])
    assert true_uncertainty(strata, new, replacement=True).tolist() == pytest.approx([again, 0.0])
    once = naive.share_of_differing_pairs(answers)
    assert true_uncertainty(strata, new, replacement=False).tolist() == pytest.approx([once, 0.0])


def test_a_stratum_without_answers_takes_its_labels_mean_else_zero() -> None:
    data = Dataset.of(["a"] * 40 + ["b"] * 40)
    strata = Strata.build(data.label, difficulty=np.tile(np.arange(40.0), 2), levels=2)
    sampler = Sampler(strata, method="post-stratified")
    for item in (0, 1, 2):
        sampler.tell(Answer(item, "a" if item else "x"))
    found = estimated_matrix(sampler.tally())
    assert found.values.sum(axis=1).tolist() == pytest.approx([0.5, 0.0])
    assert found.values[0].tolist() == pytest.approx([1 / 3, 1 / 6])


@pytest.mark.parametrize("method", [method for method in METHODS if method != "optimal"])
def test_estimates_are_for_the_given_mix(method: str) -> None:
    """Unbiased for a mix other than the data's.

    The mean of 400 estimates is within 4 standard errors.
    """
    rng = np.random.default_rng(0)
    label = rng.choice(["a", "b", "c"], 500, p=[0.7, 0.2, 0.1])
    answer = np.where(rng.random(500) < 0.6, label, rng.choice(["a", "b"], 500))
    data = Dataset.of(label.tolist(), predictions={"new": answer.tolist()})
    strata = Strata.build(data.label, mix={"a": 1, "b": 1, "c": 2})
    truth = true_matrix(strata, data.predictions["new"])
    assert truth.values.sum(axis=1).tolist() == pytest.approx([0.25, 0.25, 0.5])
    found = []
    for seed in range(400):
        sampler = Sampler(
            strata, method=method, seed=seed, a=1e6
        )  # So much exploration that nothing is adaptive.
        for query in sampler.ask(60):
            sampler.tell(Answer(query.item, str(answer[query.item])))
        found.append(estimated_matrix(sampler.tally()).on(truth.predictions).values)
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0) / 20
    assert (np.abs(mean - truth.values) <= 4 * spread + 1e-12).all()
