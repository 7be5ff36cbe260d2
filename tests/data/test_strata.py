"""Strata: label by difficulty level."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import UsageError
from masa.records import Column


def column(codes: list[int]) -> Column:
    return Dataset.of(codes).label


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=200),
    st.integers(1, 6),
)
def test_strata_part_the_items_and_respect_order_and_ties(
    items: list[tuple[int, int]], levels: int
) -> None:
    label, difficulty = (
        column([label for label, _ in items]),
        np.array([float(hard) for _, hard in items]),
    )
    strata = Strata.build(label, difficulty=difficulty, levels=levels)
    assert sorted(strata.items.tolist()) == list(range(len(items)))
    assert (strata.size > 0).all()
    assert strata.weight.sum() == pytest.approx(1.0)
    stratum = np.empty(len(items), np.int64)
    stratum[strata.items] = strata.of_position
    for s in range(len(strata)):
        assert {label.codes[item] for item in np.flatnonzero(stratum == s)} == {strata.label[s]}
    for i in range(len(items)):
        for j in range(i):
            if label.codes[i] == label.codes[j]:
                if difficulty[i] == difficulty[j]:
                    assert stratum[i] == stratum[j]
                elif difficulty[i] < difficulty[j]:
                    assert stratum[i] <= stratum[j]


def test_levels_of_different_values_are_equal_in_size() -> None:
    rng = np.random.default_rng(0)
    strata = Strata.build(column([0] * 300 + [1] * 301), difficulty=rng.random(601), levels=3)
    assert strata.size[:3].tolist() == [100, 100, 100]
    assert sorted(strata.size[3:].tolist()) == [100, 100, 101]


def test_direction_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    label, difficulty = column(rng.integers(0, 3, 900).tolist()), np.round(rng.random(900), 2)
    one, other = (Strata.build(label, difficulty=sign * difficulty, levels=3) for sign in (1, -1))

    def parts(strata: Strata) -> set[frozenset[int]]:
        return {
            frozenset(strata.items[a:b].tolist())
            for a, b in zip(strata.start[:-1], strata.start[1:], strict=True)
        }

    assert parts(one) == parts(other)


def test_equal_difficulties_make_one_level_and_empty_levels_go() -> None:
    assert len(Strata.build(column([0] * 90), difficulty=np.zeros(90), levels=3)) == 1
    mostly = np.concatenate((np.zeros(80), [1.0] * 10))
    strata = Strata.build(column([0] * 90), difficulty=mostly, levels=3)
    assert strata.size.tolist() == [80, 10]


def test_labels_with_few_items_stay_in_one_level() -> None:
    strata = Strata.build(column([0] * 29 + [1] * 30), difficulty=np.arange(59.0), levels=3)
    assert strata.label.tolist() == [0, 1, 1, 1]


def test_infinite_and_huge_difficulties_only_count_by_order() -> None:
    hard = np.array([float("-inf"), -1e308, 0, 1e-308, 1e308, float("inf")] * 20)
    assert Strata.build(column([0] * 120), difficulty=hard, levels=3).size.tolist() == [40, 40, 40]


def test_a_mix_sets_the_weights() -> None:
    label = Dataset.of(["a"] * 30 + ["b"] * 70).label
    strata = Strata.build(
        label, difficulty=np.arange(100.0), levels=2, mix={"a": 9e307, "b": 9e307}
    )
    assert strata.label_weight.tolist() == pytest.approx([0.5, 0.5])
    assert Strata.build(label, mix={"a": 0, "b": 2}).weight.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("mix", "said"),
    [
        ({"a": 1.0, "bb": 1.0}, "'bb', which no item has"),
        ({"a": 1.0}, "no share for 'b'"),
        ({"a": -1.0, "b": 2.0}, "'a' the share -1"),
        ({"a": float("nan"), "b": 2.0}, "'a' the share nan"),
        ({"a": 0.0, "b": 0.0}, "everything the share 0"),
    ],
)
def test_an_impossible_mix_is_refused(mix: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Strata.build(Dataset.of(["a", "b"]).label, mix=mix)


@pytest.mark.parametrize("levels", [0, -1, 101])
def test_an_impossible_number_of_levels_is_refused(levels: int) -> None:
    with pytest.raises(UsageError, match="levels is"):
        Strata.build(column([0, 1]), levels=levels)
