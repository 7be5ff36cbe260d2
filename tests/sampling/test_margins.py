"""The model of margins: its regressions, what is held out of them, and how far they count."""

from dataclasses import replace

import numpy as np
import pytest
from test_change_model import features

from changed_api import Case
from masa.data.features import Features
from masa.records import Column, Floats
from masa.sampling.kernels import change_model, margins
from masa.sampling.kernels.held_out import held_out
from masa.sampling.layout import Layout
from masa.sampling.predictive import new_margins


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


def plain(wanted: Floats, weight: float, x: Floats, start: Floats) -> Floats:
    """Solve the ridge regression as in a textbook, by its dual, as there are more words than items."""
    left = x @ x.T + np.eye(len(x)) / weight
    return np.asarray(start + x.T @ np.linalg.solve(left, wanted - x @ start))


def test_the_regression_of_margins_is_the_ridge_regression_of_the_textbook(case: Case) -> None:
    layout, rng = case.layout, np.random.default_rng(0)
    asked = np.arange(0, 400, 4, dtype=np.int32)
    x = np.array([features(layout, int(item)) for item in asked])
    start = np.full(x.shape[1], 0.1)
    wanted = x[:, 1] + 0.3 * rng.normal(size=len(asked))
    for weight in (0.2, 1.0):
        found, _ = margins._regressed(
            layout.items, layout.cells, layout.goal, start, asked, wanted, weight
        )
        np.testing.assert_allclose(x @ found, x @ plain(wanted, weight, x, start), atol=0.1)


def test_what_is_held_out_is_near_to_what_a_fit_without_the_item_says(case: Case) -> None:
    layout, rng = case.layout, np.random.default_rng(1)
    asked = np.arange(0, 400, 4, dtype=np.int32)
    x = np.array([features(layout, int(item)) for item in asked])
    start, weight = np.zeros(x.shape[1]), 1.0
    wanted = x[:, 1] + rng.normal(size=len(asked))
    model = plain(wanted, weight, x, start)
    residual = wanted - x @ model
    weights = np.full(len(asked), weight)
    found = held_out(
        layout.items, layout.cells, layout.goal, model, asked, weight * residual, weights
    )
    true = np.array([
        x[one] @ plain(np.delete(wanted, one), weight, np.delete(x, one, 0), start)
        for one in range(len(asked))
    ])  # fmt: skip
    inside = x @ model
    # It goes from the prediction with the item towards that without it, and not beyond.
    assert np.corrcoef(found - inside, true - inside)[0, 1] > 0.9
    moved = np.abs(true - inside) > 0.02
    assert ((found - inside)[moved] / (true - inside)[moved] <= 1.001).all()
    errors = [float(np.mean((said - wanted) ** 2)) for said in (inside, found, true)]
    assert errors[0] < errors[1] <= errors[2] * 1.001


class Moved:
    """Items whose answers change where their confidence was low and moves far, or by luck."""

    def __init__(self, *, telling: bool, items: int = 3000, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        label = rng.integers(0, 8, items)
        margin = rng.normal(2.5, 1.5, items)
        moves = np.where(label < 2, 1.5, 0.1) * rng.normal(size=items)
        after = margin + moves
        if telling:
            flips = after < 0.0
        else:
            flips = rng.random(items) < 0.03
            after = np.where(flips, -np.abs(margin), margin + 0.1 * rng.normal(size=items))
        names = tuple("abcdefgh")
        self.label = Column("label", names, label.astype(np.int32))
        old = Column("old", names, label.astype(np.int32))
        new = np.where(flips, (label + 1) % 8, label).astype(np.int32)
        confidence = 1.0 / (1.0 + np.exp(-margin))
        self.layout = Layout.of(
            self.label,
            Features(old, confidence),
            weight=np.full(items, 1.0 / items),
            new=names,
        )
        self.target = np.where(flips, new, -1).astype(np.int32)
        self.margin = new_margins(self.target, 1.0 / (1.0 + np.exp(-np.abs(after))))

    def chances(self, asked: int, *, margins_known: bool = True) -> tuple[Floats, Floats]:
        """Give the probability of change of items not asked, and whether they changed."""
        items = np.random.default_rng(5).permutation(len(self.target))[:asked].astype(np.int32)
        layout, changed = self.layout, (self.target >= 0).astype(np.float64)
        margin = self.margin[items] if margins_known else np.full(asked, np.nan)
        given = change_model.Asked(
            items, changed[items], self.target[items], margin, np.full(asked, 1.0 / 3000)
        )
        done = np.zeros(len(self.target), np.bool_)
        done[items] = True
        model = change_model.fit(
            layout.items, layout.cells, layout.goal, layout.prior, items, changed[items]
        )
        found = margins.chances(layout.items, layout.cells, layout.goal, model, given, done)
        return found[~done], changed[~done]


def variance(chance: Floats, changed: Floats) -> float:
    """Give the variance of the estimate from one draw by these probabilities, but for a factor."""
    wanted = np.sqrt(chance)
    drawn = margins.EXPLORED / len(chance) + (1 - margins.EXPLORED) * wanted / wanted.sum()
    return float((changed / drawn).sum())


def test_margins_that_tell_make_the_estimate_better_by_far() -> None:
    found = [
        variance(*case.chances(400)) / variance(*case.chances(400, margins_known=False))
        for case in (Moved(telling=True, seed=seed) for seed in range(5))
    ]
    assert np.mean(found) < 0.7


def test_margins_that_tell_nothing_cost_nothing() -> None:
    for asked in (1, 4, 20, 60, 400):
        found = [
            variance(*case.chances(asked)) / variance(*case.chances(asked, margins_known=False))
            for case in (Moved(telling=False, seed=seed) for seed in range(10))
        ]
        assert np.mean(found) < 1.05


def test_without_new_confidences_only_changed_answers_count() -> None:
    case = Moved(telling=True)
    chance, _ = case.chances(200, margins_known=False)
    assert ((chance > 0.0) & (chance < 1.0)).all()
    silent = replace_margins(case)
    np.testing.assert_array_equal(silent.chances(200)[0], chance)


def replace_margins(case: Moved) -> Moved:
    """Take away the confidences of the baseline."""
    case.layout = replace(
        case.layout, items=case.layout.items._replace(margin=np.full(3000, np.nan))
    )
    return case
