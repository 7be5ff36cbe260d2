"""Predictive sampling: the model, the batches, and what they say of the shift."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import masa
from masa.data.dataset import Dataset
from masa.data.features import Features, Words
from masa.data.strata import Strata
from masa.inference.counts import make_possible, true_matrix
from masa.inference.inverse_probability import inverse_probability_estimate
from masa.records import Answer, Column, Floats, Query
from masa.replays.replay import replay
from masa.sampling.draws import Draws
from masa.sampling.kernels import change_model
from masa.sampling.kernels import predictive as kernel
from masa.sampling.kernels.drawing import run_key
from masa.sampling.layout import Layout
from masa.sampling.predictive import Predictive, changed
from masa.settings import Objective

NO_GROUPS = kernel.Audit(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0))


class Case:
    """A small API that changed.

    Three labels, answers that follow them, changes that follow confidence and a word.
    """

    def __init__(
        self, items: int = 400, *, share: float = 0.15, seed: int = 0, weight: Floats | None = None
    ) -> None:
        rng = np.random.default_rng(seed)
        label = rng.integers(0, 3, items)
        old = np.where(rng.random(items) < 0.7, label, rng.integers(0, 4, items))
        self.confidence = np.round(rng.random(items), 2)
        texts = [" ".join(rng.choice(["a", "b", "c", "odd", "d"], 3)) for _ in range(items)]
        likely = np.exp(-3 * self.confidence) * np.array(
            [3.0 if "odd" in text else 1.0 for text in texts]
        )
        hit = rng.random(items) < share * likely / likely.mean()
        new = np.where(hit, rng.integers(0, 4, items), old)
        names = ["x", "y", "z", "other"]
        self.data = Dataset.of(
            [names[i] for i in label],
            predictions={"old": [names[i] for i in old], "new": [names[i] for i in new]},
        )
        self.new, self.old = self.data.predictions["new"], self.data.predictions["old"]
        self.strata = Strata.build(self.data.label)
        self.weight = np.full(items, 1.0 / items) if weight is None else weight
        self.features = Features(self.old, self.confidence, words=Words.of(texts))
        self.layout = Layout.of(
            self.data.label, self.features, weight=self.weight, new=self.new.values
        )
        self.target = self.layout.targets(np.arange(items), self.new)

    @property
    def shift(self) -> Floats:
        result = np.zeros((len(self.layout.labels), len(self.layout.names)))
        for item, target in enumerate(self.target):
            if target >= 0:
                label = self.data.label.codes[item]
                result[label, target] += self.weight[item]
                result[label, self.layout.old[item]] -= self.weight[item]
        return result

    def simulated(self, runs: int, stops: list[int]) -> tuple[Floats, Floats]:
        """Give the errors (runs, stops) and the mean estimates (stops, L, P)."""
        layout, shift = self.layout, self.shift
        errors, sums = np.zeros((runs, len(stops)), np.float32), np.zeros((len(stops), shift.size))
        keys = np.array([run_key(1, run) for run in range(runs)], np.uint64)
        checkpoints = np.array([(stop, row) for row, stop in enumerate(stops)], np.int64)
        kernel.simulate(
            layout.items, layout.cells, layout.goal, layout.prior, layout.canaries, layout.rest,
            (self.target >= 0).astype(np.float64), self.target, shift, keys, checkpoints, errors, sums, np.zeros(runs, np.int64),
            NO_GROUPS, np.zeros((len(stops), 0)),
        )  # fmt: skip
        return errors.astype(np.float64), (sums / runs).reshape(len(stops), *shift.shape)


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
    found = change_model.fit(layout.items, layout.cells, layout.goal, layout.prior, asked, soft)
    np.testing.assert_allclose(x @ found, x @ best, atol=0.02)
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


@pytest.mark.parametrize("size", [1, 50, 399, 400, 1000])
def test_chances_add_up_to_the_batch_and_none_is_above_one(case: Case, size: int) -> None:
    layout = case.layout
    done = np.zeros(400, np.bool_)
    done[::7] = True
    asked = np.flatnonzero(done).astype(np.int32)
    model = change_model.fit(
        layout.items, layout.cells, layout.goal, layout.prior, asked, np.ones(len(asked))
    )
    moment = change_model.moments(
        layout.items, layout.cells, layout.goal, asked, case.target[asked]
    )
    chance = kernel.inclusion_probabilities(
        layout.items, layout.cells, layout.goal, model, moment, done, size
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


def play(source: Predictive, case: Case, queries: int, rng: np.random.Generator) -> list[Query]:
    """Ask so many, answering in a random order with some outstanding, as a network does."""
    asked: list[Query] = []
    waiting: list[Query] = []
    while len(asked) < queries:
        more = source.ask(min(int(rng.integers(1, 9)), queries - len(asked)))
        asked += more
        waiting += more
        if not waiting:
            break
        rng.shuffle(waiting)
        for query in waiting[: 1 + len(waiting) // 2]:
            source.tell(Answer(query.item, case.new.values[case.new.codes[query.item]]))
        waiting = waiting[1 + len(waiting) // 2 :]
    for query in waiting:
        source.tell(Answer(query.item, case.new.values[case.new.codes[query.item]]))
    return asked


def live_layout(case: Case) -> Layout:
    """As a live run sees it: the new answers' names are not known beforehand."""
    return Layout.of(case.data.label, case.features, weight=case.weight)


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


def draws_of(queries: list[Query]) -> Draws:
    return Draws.of([draw for query in queries if (draw := query.draw) is not None])


def answers_to(
    case: Case, queries: list[Query]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Column]:
    places = np.array([query.item for query in queries], np.int64)
    return places, Column("new", case.new.values, case.new.codes[places])


def test_the_estimate_of_a_run_is_that_of_the_replays(case: Case) -> None:
    asked = play(
        Predictive(case.layout, case.features, seed=2), case, 160, np.random.default_rng(0)
    )
    places, answers = answers_to(case, asked)
    found = inverse_probability_estimate(
        case.layout, case.strata, places, answers, draws_of(asked), old=case.old
    )
    batch = np.array([query.batch for query in asked], np.int32)
    sizes = np.array(
        [
            next(query.batch_size for query in asked if query.batch == e)
            for e in range(batch.max() + 1)
        ]
    )
    left = 400 - np.concatenate(([0], np.cumsum(np.bincount(batch))[:-1]))
    counts, _ = kernel.weigh(
        batch, np.array([query.probability for query in asked]), sizes, left, 0
    )
    shift = np.zeros_like(case.shift)
    kernel.add_up(
        case.layout.items,
        case.layout.cells,
        places.astype(np.int32),
        case.target[places],
        counts,
        shift,
    )
    names = case.layout.names
    expected = true_matrix(case.strata, case.old).on(names).values + shift
    make_possible(expected, case.strata.label_weight, case.strata.labels, names)
    np.testing.assert_allclose(found.shift.new.on(names).values, expected, atol=1e-12)
    assert found.shift.new.values.sum() == pytest.approx(1.0)


def test_the_estimate_knows_how_far_it_is_off() -> None:
    case = Case(1500, share=0.1, seed=4)
    truth = true_matrix(case.strata, case.new)
    squared, known, inside, gain = [], [], [], []
    for seed in range(60):
        asked = play(
            Predictive(live_layout(case), case.features, seed=seed),
            case,
            300,
            np.random.default_rng(seed),
        )
        places, answers = answers_to(case, asked)
        found = inverse_probability_estimate(
            live_layout(case), case.strata, places, answers, draws_of(asked), old=case.old
        )
        names = truth.predictions
        error = float(np.linalg.norm(found.shift.new.on(names).values - truth.values))
        squared.append(error**2)
        known.append(found.matrix.error2)
        inside.append(error <= found.matrix.bound(0.95))
        true_gain = truth.accuracy - true_matrix(case.strata, case.old).accuracy
        below, above = found.accuracy.ends(0.95)
        gain.append(-below <= true_gain - found.shift.accuracy.change <= above)
    assert 0.75 < np.mean(known) / np.mean(squared) < 1.35
    assert np.mean(inside) >= 0.9
    assert np.mean(gain) >= 0.9


def test_an_answer_never_heard_before_is_one_of_the_matrix() -> None:
    case = Case(200)
    source = Predictive(live_layout(case), case.features)
    asked = source.ask(60)
    for query in asked:
        source.tell(Answer(query.item, "surprise"))
    while more := source.ask(50):
        asked += more
        for query in more:
            source.tell(Answer(query.item, "surprise"))
    assert len(asked) == 200
    places = np.array([query.item for query in asked], np.int64)
    answers = Column("new", ("surprise",), np.zeros(200, np.int32))
    found = inverse_probability_estimate(
        live_layout(case), case.strata, places, answers, draws_of(asked), old=case.old
    )
    assert found.shift.new.values[
        :, found.shift.new.predictions.index("surprise")
    ].sum() == pytest.approx(1.0)
    assert found.matrix.error2 == pytest.approx(0.0, abs=1e-12)


def test_items_of_no_weight_are_not_asked() -> None:
    weight = np.full(300, 1 / 150)
    weight[::2] = 0.0
    case = Case(300, weight=weight)
    asked = play(Predictive(live_layout(case), case.features), case, 300, np.random.default_rng(0))
    assert len(asked) == 150
    assert all(query.item % 2 for query in asked)


def test_dear_items_are_asked_less_often() -> None:
    case = Case(600)
    cost = np.ones(600)
    cost[::2] = 16.0
    layout = Layout.of(
        case.data.label, case.features, weight=case.weight, cost=cost, new=case.new.values
    )
    picked, chance = kernel.next_batch(
        layout.items, layout.cells, layout.goal, layout.prior, np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int32),
        np.zeros(600, np.bool_), np.uint64(1), 1,
    )  # fmt: skip
    dear = picked % 2 == 0
    assert 2 * dear.sum() < (~dear).sum()
    assert chance.min() > 0


def grouped() -> Dataset:
    """A small group that got worse among a large one that did not."""
    rng = np.random.default_rng(0)
    items = 4000
    small = rng.random(items) < 0.1
    label = rng.integers(0, 2, items)
    old = np.where(rng.random(items) < np.where(small, 0.8, 0.9), label, 1 - label)
    new = np.where(small & (rng.random(items) < 0.25), 1 - label, old)
    return Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in old], "new": [f"l{i}" for i in new]},
        group=["small" if one else "large" for one in small],
    )


def test_the_data_may_be_mixed_anew_by_groups() -> None:
    data = grouped()
    assert data.group is not None
    plain, even = (
        masa.assess(data, "replay:new", baseline="old", budget=4000, store=None, mix=mix)
        for mix in (None, {"small": 0.5, "large": 0.5})
    )
    assert plain.accuracy_change is not None
    assert even.accuracy_change is not None
    by_group = [report.change for report in even.groups]
    assert all(change is not None for change in by_group)
    assert even.accuracy_change.estimate == pytest.approx(
        np.mean([change.estimate for change in by_group if change]), abs=1e-6
    )
    assert plain.accuracy_change.estimate > even.accuracy_change.estimate
    with pytest.raises(masa.UsageError, match="no share for 'large'"):
        masa.assess(data, "replay:new", baseline="old", budget=10, store=None, mix={"small": 1.0})


def test_replays_tell_how_well_each_group_is_known() -> None:
    data = grouped()
    found = replay(data, new="new", old="old", budgets=[300, 4000], runs=40, target_error=0.02)
    assert found.groups == ("large", "small")
    (curve,) = found.curves
    assert curve.method == "predictive"
    large, small = curve.group_errors
    assert large[0] < 1e-6, "nothing changed there"
    assert small[0] < 0.06, "of random items there would be 30, which are off by 0.08"
    assert max(large[1], small[1]) < 1e-6
    assert found.to_dict()["methods"]["predictive"]["group_errors"] == {
        "large": list(large),
        "small": list(small),
    }
    with pytest.raises(masa.UsageError, match="masa does not know groups"):
        replay(data, new="new", old="old", methods=["masa"], runs=2)


def test_free_answers_and_moved_confidences_are_clues() -> None:
    old = Column("old", ("a", "b"), np.array([0, 0, 1, 1], np.int32))
    other = Column("other", ("b", "c"), np.array([0, 1, 0, 1], np.int32))
    assert Features(old, also=(other,)).disagreeing().ravel().tolist() == [1.0, 1.0, 0.0, 1.0]
    target = np.array([-1, -1, 3, -1], np.int32)
    moved = changed(target, np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.5, 0.6, 0.5, np.nan]))
    assert moved[0] == moved[3] == 0.0
    assert moved[2] == 1.0
    assert 0.0 < moved[1] < 1.0


def test_groups_are_known_alike_and_the_gap_between_them_is_told() -> None:
    data, items = grouped(), 4000
    assert data.group is not None
    label, old, new = (
        np.array(column.values)[column.codes]
        for column in (data.label, data.predictions["old"], data.predictions["new"])
    )
    small = data.group.codes == data.group.values.index("small")
    truth = [
        (new[part] == label[part]).mean() - (old[part] == label[part]).mean()
        for part in (small, ~small)
    ]
    inside = []
    for seed in range(14):
        found = masa.assess(data, "replay:new", baseline="old", budget=500, store=None, seed=seed)
        many, few = found.groups
        assert (few.group, many.group, few.items + many.items) == ("small", "large", items)
        assert few.answers > 120  # A tenth of the items, and far more than a tenth of the answers.
        assert few.change is not None
        assert many.change is not None
        assert found.gap is not None
        assert (found.gap.best, found.gap.worst) == ("large", "small")
        assert found.gap.change.estimate == pytest.approx(
            many.change.estimate - few.change.estimate
        )
        inside += [
            few.change.low <= truth[0] <= few.change.high,
            many.change.low <= truth[1] <= many.change.high,
        ]
        inside.append(found.gap.change.low <= truth[1] - truth[0] <= found.gap.change.high)
        assert found.gap.change.low > 0.0
    assert np.mean(inside) >= 0.92
    again = masa.Assessment.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (again.groups, again.gap) == (found.groups, found.gap)
    with pytest.raises(masa.UsageError, match="does not know groups"):
        masa.assess(data, "replay:new", baseline="old", budget=500, store=None, method="paired")


@pytest.mark.parametrize(("labels", "right", "budget"), [(60, 0.06, 800), (40, 0.4, 400)])
def test_bounds_hold_where_most_cells_have_few_answers(
    labels: int, right: float, budget: int
) -> None:
    rng = np.random.default_rng(1)
    items = 1500
    label = rng.integers(0, labels, items)
    old = np.where(rng.random(items) < right, label, rng.integers(0, labels, items))
    new = np.where(rng.random(items) < 0.3, rng.integers(0, labels, items), old)
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in old], "new": [f"l{i}" for i in new]},
    )
    strata = Strata.build(data.label)
    before, now = (true_matrix(strata, data.predictions[name]) for name in ("old", "new"))
    truth = masa.Shift(before, now)
    bound, interval = [], []
    for seed in range(30):
        found = masa.assess(
            data, "replay:new", baseline="old", budget=budget, store=None, seed=seed
        )
        assert found.shift is not None
        assert found.error_bound is not None
        assert found.accuracy_change is not None
        bound.append(found.shift.error(truth) <= found.error_bound)
        interval.append(
            found.accuracy_change.low <= truth.accuracy.change <= found.accuracy_change.high
        )
    assert np.mean(bound) >= 0.9
    assert np.mean(interval) >= 0.8  # 0.915 of 200 runs with 40 labels and 400 answers, else 0.95.


def test_accuracy_is_unbiased_where_entries_are_many_and_small() -> None:
    """After a rewrite with many labels most entries are guesses.

    What cannot be is not made up for by right answers.
    """
    rng = np.random.default_rng(0)
    label = rng.integers(0, 60, 2000)
    old = np.where(rng.random(2000) < 0.4, label, rng.integers(0, 60, 2000))
    new = np.where(rng.random(2000) < 0.8, label, rng.integers(0, 60, 2000))
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in old], "new": [f"l{i}" for i in new]},
    )
    truth = float((new == label).mean() - (old == label).mean())
    off = []
    for seed in range(16):
        found = masa.assess(
            data,
            "replay:new",
            baseline="old",
            budget=400,
            store=None,
            seed=seed,
            method="predictive",
        )
        assert found.accuracy_change is not None
        off.append(found.accuracy_change.estimate - truth)
    assert abs(np.mean(off)) < 3.0 * np.std(off) / np.sqrt(len(off)) + 0.002


def test_free_items_do_not_crowd_out_the_others() -> None:
    rng = np.random.default_rng(0)
    free = np.arange(3000) % 2 == 0
    label = rng.integers(0, 2, 3000)
    new = np.where(~free & (rng.random(3000) < 0.3), 1 - label, label)
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in label], "new": [f"l{i}" for i in new]},
    )
    data = replace(data, cost=np.where(free, 0.0, 1.0))
    for method in ("predictive", "paired", "adaptive"):
        found = masa.assess(
            data, "replay:new", baseline="old", budget=600, store=None, method=method
        )
        assert found.verdict == "changed", method


def test_canaries_alone_make_no_estimate_and_one_answer_no_verdict() -> None:
    case = Case(600, seed=3)
    data = replace(case.data, numbers={"sure": case.confidence})
    found = masa.assess(
        data, "replay:new", baseline="old", old_confidence="sure", budget=1, store=None
    )
    assert found.verdict == "undecided"


def test_labels_without_answers_are_as_before_and_may_be_anything() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 400, 1200)
    data = Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in label], "new": [f"l{i}" for i in label]},
    )
    found = masa.assess(data, "replay:new", baseline="old", budget=100, store=None)
    assert found.shift is not None
    assert found.accuracy_change is not None
    assert found.shift.accuracy.change == pytest.approx(0.0)
    assert found.accuracy_change.low < -0.5
    assert found.verdict == "undecided"
    assert any("taken to be as before" in note for note in found.notes)


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


def test_a_reserved_name_is_no_answer() -> None:
    data = Dataset.of(
        ["a", "b"] * 30, predictions={"old": ["a", "<unlabelled>"] * 30, "new": ["a", "b"] * 30}
    )
    assert data.predictions["old"].values == ("a", "<invalid>")
    assert masa.assess(data, "replay:new", baseline="old", budget=30, store=None).shift is not None
