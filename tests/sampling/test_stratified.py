"""The sampler as a live assessment uses it."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import UsageError
from masa.inference.counts import estimated_matrix, recorded_answers, stratum_reports, true_matrix
from masa.records import Answer, Column, Query
from masa.sampling import stratified as sampler
from masa.sampling.kernels import drawing as kernel
from masa.sampling.stratified import Sampler
from masa.settings.methods import PAPER as METHODS

LIVE = [method for method in METHODS if method != "optimal"]


def case(seed: int = 0, items: int = 300) -> tuple[Strata, Column]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, items)
    answer = np.where(rng.random(items) < 0.7, label, rng.integers(0, 5, items))
    data = Dataset.of(
        label.tolist(), predictions={"new": answer.tolist()}, difficulty=rng.random(items)
    )
    return Strata.build(data.label, difficulty=data.difficulty), data.predictions["new"]


def answered(query: Query, answers: Column) -> Answer:
    return Answer(query.item, answers.values[answers.codes[query.item]])


def state(one: Sampler) -> tuple[object, ...]:
    tally = one.tally()
    return (
        one.asked,
        one.answered,
        tally.predictions,
        tally.cell_stratum.tolist(),
        tally.cell_prediction.tolist(),
        tally.counts.tolist(),
        one._state.pairs.tolist(),
        one._state.tree.tolist(),
    )


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("method", LIVE)
def test_a_live_sampler_asks_what_the_first_replay_asks(method: str, replacement: bool) -> None:
    strata, answers = case()
    live = Sampler(strata, method=method, seed=7, replacement=replacement)
    scheme = sampler.scheme(strata, method, replacement=replacement)
    recorded = recorded_answers(strata, answers, group=scheme.group, factor=scheme.factor)
    state = kernel.new_state(scheme.design, len(strata.items), len(recorded.cell_entry))
    kernel.plant(scheme.design, scheme.rule, state)
    key, seen = np.uint64(kernel.run_key(7, 0)), np.zeros(len(state.counts) + 1, np.int32)
    for _ in range(290):
        (query,) = live.ask(1)
        assert (
            query.item
            == strata.items[
                kernel.advance(scheme.design, recorded, scheme.rule, state, seen, key, 1)
            ]
        )
        live.tell(answered(query, answers))
    entries = np.zeros(len(recorded.truth))
    kernel.add_up(scheme.design, recorded, state, seen, entries)
    found = estimated_matrix(live.tally())
    assert np.sort(found.values[found.values > 0]) == pytest.approx(np.sort(entries[entries > 0]))


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(LIVE), st.booleans(), st.integers(1, 17), st.randoms(use_true_random=False))
def test_answers_in_any_order_give_the_same_state(
    method: str, replacement: bool, batch: int, rng: random.Random
) -> None:
    strata, answers = case()
    live = Sampler(strata, method=method, replacement=replacement)
    log: list[Query] = []
    while len(log) < 100:
        queries = live.ask(batch)
        log += queries
        for query in rng.sample(queries, len(queries)):
            live.tell(answered(query, answers))
    again = Sampler(strata, method=method, replacement=replacement)
    for query in rng.sample(log, len(log)):
        again.tell(answered(query, answers))
    assert state(again) == state(live)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("method", LIVE)
def test_a_rebuilt_sampler_goes_on_where_the_first_one_was(method: str, replacement: bool) -> None:
    strata, answers = case()
    whole = Sampler(strata, method=method, seed=3, replacement=replacement)
    journal: list[Query] = []
    for _ in range(120):
        journal += whole.ask(1)
        whole.tell(answered(journal[-1], answers))
    rebuilt = Sampler(strata, method=method, seed=3, replacement=replacement)
    for query in reversed(journal[:60]):
        rebuilt.sent(query)
    for query in journal[:60]:
        rebuilt.tell(answered(query, answers))
    for query in journal[60:]:
        assert rebuilt.ask(1) == [query]
        rebuilt.tell(answered(query, answers))
    assert state(rebuilt) == state(whole)


@pytest.mark.parametrize("method", LIVE)
def test_each_item_is_asked_once_and_then_all_is_known(method: str) -> None:
    strata, answers = case(items=100)
    live = Sampler(strata, method=method)
    asked = []
    while queries := live.ask(7):
        asked += [query.item for query in queries]
        for query in queries:
            live.tell(answered(query, answers))
    assert sorted(asked) == list(range(100))
    truth = true_matrix(strata, answers)
    found = estimated_matrix(live.tally()).on(truth.predictions)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-12)


def test_labels_of_share_zero_are_not_paid_for() -> None:
    label = Dataset.of(["a"] * 50 + ["b"] * 50).label
    strata = Strata.build(label, mix={"a": 1, "b": 0})
    for method in ("masa", "stratified"):
        live = Sampler(strata, method=method)
        assert {label.values[label.codes[query.item]] for query in live.ask(100)} == {"a"}
        assert live.ask(1) == []


def test_pending_queries_spread_over_the_strata() -> None:
    """Two hundred queries in flight go where sequential ones would, not all to the stratum that leads."""
    strata, answers = case(items=3000)
    live, sequential = Sampler(strata), Sampler(strata)
    for one, batch in ((live, 200), (sequential, 1)):
        while one.asked < 1000:
            for query in one.ask(batch):
                one.tell(answered(query, answers))
    there, here = (
        np.array([report.answers for report in stratum_reports(one.tally(), strata)])
        for one in (live, sequential)
    )
    assert np.abs(there - here).max() < 0.25 * here.mean()


def test_unanswered_queries_are_not_taken_for_certain_answers() -> None:
    strata, _ = case(items=3000)
    live = Sampler(strata)
    counts = np.bincount([query.stratum for query in live.ask(400)], minlength=len(strata))
    assert counts.min() > 0.5 * counts.mean()


def test_pending_queries_are_those_without_an_answer() -> None:
    strata, _ = case(items=50)
    live = Sampler(strata)
    queries = live.ask(9)
    for query in queries[::2]:
        live.tell(Answer(query.item, "x"))
    assert sorted(live.pending, key=queries.index) == queries[1::2]


def test_an_answer_counts_once() -> None:
    strata, _ = case(items=20)
    live = Sampler(strata)
    (query,) = live.ask(1)
    live.tell(Answer(query.item, "x"))
    with pytest.raises(ValueError, match="asked before"):
        live.tell(Answer(query.item, "x"))
    with pytest.raises(ValueError, match="no item 20"):
        live.tell(Answer(20, "x"))


def test_an_answer_that_is_not_text_is_refused_when_it_is_told() -> None:
    live = Sampler(case(items=20)[0])
    with pytest.raises(TypeError, match="<invalid>"):
        live.tell(Answer(0, None))  # type: ignore[arg-type]
    assert live.asked == 0


def test_an_empty_answer_is_one_that_could_not_be_read() -> None:
    live = Sampler(case(items=20)[0])
    live.tell(Answer(0, ""))
    assert live.tally().predictions == ("<invalid>",)


def test_predictions_no_item_has_are_columns() -> None:
    strata, _ = case(items=200)
    live = Sampler(strata)
    for number, query in enumerate(live.ask(100)):
        live.tell(Answer(query.item, f"never seen {number}"))
    found = estimated_matrix(live.tally())
    assert len(found.predictions) == 100
    assert found.values.sum() == pytest.approx(1.0)
    assert found.accuracy == 0.0


def test_labels_without_items_weigh_nothing() -> None:
    strata = Strata.build(Column("label", ("a", "b", "c"), np.array([0, 0, 2, 2], np.int32)))
    for method in LIVE:
        live = Sampler(strata, method=method)
        for query in live.ask(4):
            live.tell(Answer(query.item, "x"))
        assert estimated_matrix(live.tally()).values.tolist() == [[0.5], [0.0], [0.5]]


@pytest.mark.parametrize("a", [-1.0, float("nan"), float("inf"), 1e30])
def test_an_impossible_exploration_is_refused(a: float) -> None:
    with pytest.raises(UsageError, match="a is"):
        Sampler(case(items=20)[0], a=a)


def test_nothing_is_estimated_from_no_answers() -> None:
    with pytest.raises(UsageError, match="no answer"):
        estimated_matrix(Sampler(case(items=20)[0]).tally())


@pytest.mark.parametrize("method", ["optimal", "Masa", ""])
def test_methods_that_cannot_be_used_live_are_refused(method: str) -> None:
    with pytest.raises(UsageError):
        Sampler(case(items=20)[0], method=method)
