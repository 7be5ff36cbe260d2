"""How sure: closed forms against plain counting.

Intervals that hold as often as they say where they should.
"""

import numpy as np
import pytest
from scipy.stats import poisson

import masa
from masa.data.strata import Strata
from masa.inference.counts import estimated_matrix, matrix_spread, true_matrix
from masa.inference.paired import paired
from masa.inference.spread import Spread, normal, share
from masa.records import Column, Tally
from masa.sampling.stratified import Sampler, counted


def world(items: int = 900, seed: int = 0) -> tuple[Strata, Column, Column]:
    rng = np.random.default_rng(seed)
    label = Column(
        "label", ("a", "b", "c"), rng.choice(3, items, p=[0.5, 0.3, 0.2]).astype(np.int32)
    )
    easy = rng.random(items)
    old = np.where(rng.random(items) < 0.7 + 0.3 * easy, label.codes, rng.choice(3, items)).astype(
        np.int32
    )
    new = np.where(rng.random(items) < 0.9, old, rng.choice(3, items)).astype(np.int32)
    strata = Strata.build(label, difficulty=easy, levels=2)
    return strata, Column("old", ("a", "b", "c"), old), Column("new", ("a", "b", "c"), new)


def drawn(strata: Strata, answers: Column, *, method: str, queries: int, seed: int) -> Tally:
    """Count the answers to so many queries, as an assessment does.

    By stratum, whatever the method.
    """
    places = np.sort(
        [query.item for query in Sampler(strata, method=method, seed=seed).ask(queries)]
    )
    return counted(strata, places, Column(answers.name, answers.values, answers.codes[places]))


@pytest.mark.parametrize("method", ["post-stratified", "stratified", "uniform"])
def test_intervals_of_unbiased_methods_hold_as_often_as_they_say(method: str) -> None:
    strata, _, new = world()
    truth, runs = true_matrix(strata, new), 300
    error = 0
    for seed in range(runs):
        tally = drawn(strata, new, method=method, queries=150, seed=seed)
        found = estimated_matrix(tally)
        distance = float(np.linalg.norm(found.on(truth.predictions).values - truth.values))
        error += distance <= matrix_spread(tally, strata.size).bound()
    assert error / runs >= 0.92


def test_the_expected_error_is_that_of_stratified_sampling() -> None:
    strata, _, new = world()
    truth = true_matrix(strata, new)
    errors, expected = [], []
    for seed in range(400):
        tally = drawn(strata, new, method="post-stratified", queries=300, seed=seed)
        found = estimated_matrix(tally).on(truth.predictions)
        errors.append(float(((found.values - truth.values) ** 2).sum()))
        expected.append(matrix_spread(tally, strata.size).error2)
    assert np.mean(expected) == pytest.approx(np.mean(errors), rel=0.12)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("changed", [0.02, 0.1, 0.9])
def test_pairs_are_as_sure_as_they_say_and_no_worse_than_two_estimates(
    known: bool, changed: float
) -> None:
    strata, old, _ = world()
    rng = np.random.default_rng(5)
    new = Column(
        "new",
        old.values,
        np.where(rng.random(900) < 1 - changed, old.codes, rng.choice(3, 900)).astype(np.int32),
    )
    true = masa.Shift(true_matrix(strata, old), true_matrix(strata, new))
    held = kept = 0
    pairs, alone, surer = [], [], []
    for seed in range(200):
        places = np.sort(np.random.default_rng(seed).permutation(900)[:300])
        a, b = (Column(column.name, column.values, column.codes[places]) for column in (old, new))
        found = paired(strata, places, a, b, all_old=old if known else None)
        held += found.shift.error(true) <= found.matrix.bound()
        assert found.accuracy is not None
        half = found.accuracy.half_of_one(1.96)
        kept += abs(found.shift.accuracy.change - true.accuracy.change) <= half
        pairs.append(found.shift.error(true) ** 2)
        now = estimated_matrix(counted(strata, places, b))
        then = true.old if known else estimated_matrix(counted(strata, places, a))
        alone.append(
            masa.Shift(true.old, now).error(true) ** 2
            if known
            else masa.Shift(then, now).error(true) ** 2
        )
        surer.append(found.matrix.error2)
        assert (found.shift.new.values >= 0).all()
        assert found.shift.new.values.sum(axis=1) == pytest.approx(strata.label_weight)
    assert held / 200 >= 0.92
    assert kept / 200 >= 0.91
    assert np.mean(pairs) <= 1.02 * np.mean(alone)
    assert np.mean(surer) == pytest.approx(np.mean(pairs), rel=0.6 if changed == 0.02 else 0.25)
    if known and changed <= 0.1:
        assert np.mean(pairs) < 0.5 * np.mean(alone)


def test_an_unchanged_api_is_known_to_be_unchanged_exactly() -> None:
    strata, old, _ = world()
    places = np.arange(0, 900, 5)
    said = Column("now", old.values, old.codes[places])
    found = paired(strata, places, said, said, all_old=old)
    assert found.coefficient == 1.0
    assert np.abs(found.shift.values).max() < 1e-15
    assert found.accuracy is not None
    assert 0.0 < found.accuracy.half_of_one(1.96) < 0.02


def test_all_asked_leaves_no_doubt_and_little_asked_leaves_much() -> None:
    strata, _, new = world()
    whole = drawn(strata, new, method="masa", queries=900, seed=0)
    assert matrix_spread(whole, strata.size).bound() == pytest.approx(0.0, abs=1e-12)
    assert matrix_spread(whole, strata.size, finite=False).bound() > 0.01
    known = matrix_spread(drawn(strata, new, method="masa", queries=1, seed=0), strata.size)
    assert known.unanswered_share > 0.4
    assert known.bound() > 0.5


def test_shares_of_simple_counts() -> None:
    assert share(0, 0).high == 1.0
    assert share(0, 100).low == 0.0
    assert share(0, 100).high == pytest.approx(0.037, abs=0.001)
    assert share(50, 100).low == pytest.approx(0.404, abs=0.001)


def test_chance_alone_is_seldom_surprising() -> None:
    """Half of the answers are new at random, so that no entry moves but by chance."""
    strata, old, _ = world(3000)
    wrong = total = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        new = Column("new", old.values, old.codes.copy())
        for stratum in range(len(strata)):
            items = strata.items[strata.start[stratum] : strata.start[stratum + 1]]
            new.codes[items] = rng.permutation(new.codes[items])
        places = np.sort(rng.permutation(3000)[:400])
        a, b = (Column(column.name, column.values, column.codes[places]) for column in (old, new))
        found = paired(strata, places, a, b, all_old=old)
        z = np.abs(found.shift.values) / found.deviations
        wrong += int((z > 1.96).sum())
        total += z.size
    assert 0.005 < wrong / total < 0.08


@pytest.mark.parametrize("many", [1, 3, 30, 1000])
def test_counts_of_rare_things_hold_however_many_are_read_at_once(many: int) -> None:
    """Exactly, for Poisson's distribution of any mean, with the doubt shared."""
    doubt = 0.05 / many
    z = normal(1.0 - doubt)
    count = np.arange(400)
    half = np.array([Spread(float(k), 0.0, unit=1.0).half_width(z) for k in count])
    assert half[0] == pytest.approx(
        np.log(2.0 / doubt)
    )  # Nothing met: what chance hides so often and not more.
    for mean in np.geomspace(0.01, 200.0, 300):
        misses = poisson.pmf(count, mean)[np.abs(count - mean) > half].sum()
        assert misses <= 0.9 * doubt


def test_two_doubts_together_scatter_no_less_than_their_sum() -> None:
    rng = np.random.default_rng(0)

    def spread(covariance: np.ndarray) -> Spread:
        square = covariance @ covariance
        traces = (
            float(np.trace(covariance)),
            float(np.trace(square)),
            float(np.trace(square @ covariance)),
        )
        return Spread(traces[0], 0.0, traces)

    for size in (1, 2, 5):
        one, other = (half @ half.T for half in rng.standard_normal((2, size, size)))
        found, true = spread(one) + spread(other), spread(one + other)
        assert found.traces[0] == pytest.approx(true.traces[0])
        assert all(np.array(found.traces) >= np.array(true.traces) * (1.0 - 1e-12))
        assert (spread(one) + spread(3.0 * one)).bound() == pytest.approx(spread(4.0 * one).bound())
