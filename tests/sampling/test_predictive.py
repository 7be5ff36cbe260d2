"""Predictive sampling: the batches, and runs in them."""

from dataclasses import replace

import numpy as np
import pytest

from changed_api import Case, asked, live_layout, play
from masa.records import Answer
from masa.sampling.kernels import predictive as kernel
from masa.sampling.kernels.drawing import run_key
from masa.sampling.predictive import Predictive


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


@pytest.mark.parametrize("size", [1, 50, 399, 400, 1000])
def test_chances_add_up_to_the_batch_and_none_is_above_one(case: Case, size: int) -> None:
    layout = case.layout
    done = np.zeros(400, np.bool_)
    done[::7] = True
    items = np.flatnonzero(done).astype(np.int32)
    chance = kernel.next_probabilities(
        layout.items,
        layout.cells,
        layout.goal,
        layout.prior,
        asked(items, case.target[items]),
        done,
        size,
    )
    left = int((~done).sum())
    assert chance.sum() == pytest.approx(min(size, left))
    assert not chance[done].any()
    assert ((chance[~done] > 0) & (chance[~done] <= 1)).all()


def test_items_are_drawn_as_often_as_their_chance_says(case: Case) -> None:
    rng = np.random.default_rng(3)
    chance = rng.random(400) ** 3
    chance[5] = 1.0
    chance[6] = 0.0
    chance *= 40 / chance.sum()
    chance = np.minimum(chance, 1.0)
    times = np.zeros(400)
    runs = 4000
    for run in range(runs):
        batch = kernel.draw(case.layout.items.order, chance, np.uint64(run_key(0, run)), 1)
        assert len(set(batch.tolist())) == len(batch)
        assert abs(len(batch) - chance.sum()) < 1.0 + 1e-9
        times[batch] += 1
    assert np.abs(times / runs - chance).max() < 5 * np.sqrt(0.25 / runs)


def test_estimates_are_right_on_average_wherever_a_batch_is_interrupted(case: Case) -> None:
    stops = [30, 75, 100, 130, 250]
    errors, mean = case.simulated(3000, stops)
    mse = (errors**2).mean(axis=0)
    bias = ((mean - case.shift) ** 2).sum(axis=(1, 2)) - mse / len(errors)
    assert (bias / mse < 0.02).all(), bias / mse
    assert (np.diff(mse) < 0).all()


def test_all_answers_give_the_exact_shift(case: Case) -> None:
    errors, _ = case.simulated(3, [400, 1000])
    assert errors.max() < 1e-9


def test_it_needs_fewer_queries_than_a_random_sample(case: Case) -> None:
    errors, _ = case.simulated(300, [200])
    rng = np.random.default_rng(0)
    label, layout = case.data.label.codes, case.layout
    by_chance = []
    for _ in range(300):
        sample = rng.choice(400, 200, replace=False)
        found = np.zeros_like(case.shift)
        for item in sample[case.target[sample] >= 0]:
            found[label[item], case.target[item]] += 1 / 200
            found[label[item], layout.old[item]] -= 1 / 200
        by_chance.append(np.sum((found - case.shift) ** 2))
    assert (errors**2).mean() < 0.8 * np.mean(by_chance)


def test_what_is_asked_depends_on_the_answers_and_not_on_their_order(case: Case) -> None:
    one, other = (Predictive(live_layout(case), case.features, seed=5) for _ in range(2))
    first = play(one, case, 230, np.random.default_rng(0))
    second = play(other, case, 230, np.random.default_rng(99))
    assert first == second
    assert len({query.item for query in first}) == 230
    assert [query.batch for query in first[:4]] == [1, 0, 1, 0]
    assert {query.probability for query in first if query.batch == 0} == {1.0}


@pytest.mark.parametrize("answered", [1, 37, 58, 59, 150])
def test_a_run_goes_on_from_its_journal(case: Case, answered: int) -> None:
    whole = play(
        Predictive(live_layout(case), case.features, seed=5), case, 240, np.random.default_rng(0)
    )
    again = Predictive(live_layout(case), case.features, seed=5)
    for query in whole[:answered]:
        again.sent(query)
        if query is not whole[0]:
            again.tell(Answer(query.item, case.new.values[case.new.codes[query.item]]))
    assert again.pending == [whole[0]]
    again.tell(Answer(whole[0].item, case.new.values[case.new.codes[whole[0].item]]))
    assert play(again, case, 240 - answered, np.random.default_rng(1)) == whole[answered:]


def test_of_two_answers_about_an_item_the_last_one_counts(case: Case) -> None:
    whole = play(
        Predictive(live_layout(case), case.features, seed=5), case, 200, np.random.default_rng(0)
    )
    done = [query for query in whole if (query.batch or 0) < (whole[-1].batch or 0)]
    told, anew = (Predictive(live_layout(case), case.features, seed=5) for _ in range(2))
    assert play(told, case, len(done), np.random.default_rng(0)) == done
    assert not told.should_switch()  # It has looked at all batches now.
    layout = live_layout(case)
    answers = {query.item: case.new.values[case.new.codes[query.item]] for query in done}
    corrected = [query.item for query in done if query.batch == done[-1].batch]
    answers |= {item: layout.names[(layout.old[item] + 1) % 2] for item in corrected}
    for item in corrected:
        told.tell(Answer(item, answers[item]))
    for query in done:
        anew.sent(query)
        anew.tell(Answer(query.item, answers[query.item]))
    more = told.ask(20)
    assert more == anew.ask(20)
    assert more != whole[len(done) : len(done) + 20]


def test_a_batch_that_cannot_be_drawn_again_counts_as_a_smaller_one(case: Case) -> None:
    whole = play(
        Predictive(live_layout(case), case.features, seed=5), case, 80, np.random.default_rng(0)
    )
    last = whole[-1].batch
    again = Predictive(live_layout(case), case.features, seed=5)
    for query in whole:
        other = (
            query
            if query.batch != last
            else replace(query, probability=0.5 * (query.probability or 0.0))
        )
        again.sent(other)
        again.tell(Answer(query.item, case.new.values[case.new.codes[query.item]]))
    more = again.ask(20)
    assert {query.batch for query in more} == {(last or 0) + 1}
    assert not {query.item for query in more} & {query.item for query in whole}
