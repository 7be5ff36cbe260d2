"""Which items an update hit and what their answers became, learned from an assessment of it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.inference.method import Method
from masa.records import ERROR, Bools, Column, Floats, Ints, in_order
from masa.sampling.draws import Draws
from masa.sampling.kernels import predictive as kernel
from masa.sampling.layout import Layout
from masa.settings import Settings

ENOUGH = 5
"""Nothing is learned from fewer changed answers."""


@dataclass(frozen=True, slots=True, eq=False)
class LearnedChange:
    """Which items an update hits, and what their answers become."""

    log_odds: Floats
    """(N,) the log odds that the answer about each item changes"""
    became: Mapping[tuple[str, str], Mapping[str, int]]
    """by label and old answer, how often it became which answer"""
    becomes_right: float
    """how often a wrong answer that changed became right"""
    answers: int
    """the number of answers that this was learned from"""
    error2: float | None
    """the squared error of the shift that they left, where items were drawn in batches"""


def learned_change(
    data: Dataset,
    then: BaselineAnswers,
    now: BaselineAnswers,
    settings: Settings,
    places: Ints,
    answers: Column,
    draws: Draws | None = None,
) -> LearnedChange | None:
    """Learn from answers about these items (n,) how they changed since `then`.

    It serves a plan that starts from the baseline `now`. Every item has an answer in both. The
    model is the one that draws the items of a predictive run; that these were drawn by it makes no
    difference to the fit. Nothing is learned from few changes.
    """
    before = then.answers.on(in_order((*then.answers.values, *answers.values)))
    names, was, new = before.values, before.codes[places], answers.on(before.values).codes
    failed = np.array([name == ERROR for name in names], np.bool_)
    usable = data.labelled[places] & ~failed[was] & ~failed[new]
    changed = (was != new) & usable
    if np.count_nonzero(changed) < ENOUGH:
        return None
    auto = Settings(
        levels=settings.levels, seed=settings.seed, mix=settings.mix, also=settings.also
    )
    method = Method.of(data, then, auto)
    method_now = method if now is then else Method.of(data, now, auto)
    first, layout = method.layout, method_now.layout
    assert first is not None and layout is not None  # noqa: S101, PT018 - auto is predictive here
    items = places[usable].astype(np.int32)
    fitted = kernel.fit(
        first.items, first.cells, first.goal, first.prior, items, changed[usable].astype(np.float64)
    )
    model = carried_over(fitted.coefficients, first, layout)
    if model is None:
        return None
    error2 = None
    if draws is not None and draws.batch.any() and then.weight is None:
        error2 = method.estimate(places, answers, draws, finite=True).matrix.error2
    label = np.array(data.label.values, object)[data.label.codes[places[changed]]].tolist()
    old_name = [names[code] for code in was[changed].tolist()]
    new_name = [names[code] for code in new[changed].tolist()]
    return LearnedChange(
        kernel.log_odds(layout.items, layout.cells, layout.goal, model),
        _counted(label, old_name, new_name),
        _becomes_right(label, old_name, new_name),
        len(places),
        error2,
    )


def _counted(
    label: list[str], old: list[str], new: list[str]
) -> dict[tuple[str, str], dict[str, int]]:
    """Count what each answer became, by label and old answer."""
    became: dict[tuple[str, str], dict[str, int]] = {}
    for of, was, is_now in zip(label, old, new, strict=True):
        into = became.setdefault((of, was), {})
        into[is_now] = into.get(is_now, 0) + 1
    return became


def _becomes_right(label: list[str], old: list[str], new: list[str]) -> float:
    """Give how often wrong answers that changed became right.

    Half a success in one made-up case keeps it from 0 and 1.
    """
    wrong, right = 1.0, 0.5
    for of, was, is_now in zip(label, old, new, strict=True):
        if was != of:
            wrong += 1.0
            right += is_now == of
    return right / wrong


def carried_over(model: Floats, first: Layout, then: Layout) -> Floats | None:
    """Give a model of one layout for another one of the same items.

    None where they have other features. Old answers, and labels with an old answer, that the first
    layout does not have get the coefficient 0.
    """
    if first is then:
        return model
    numbers, labels = 1 + first.items.numbers.shape[1], len(first.labels)
    same_numbers = numbers == 1 + then.items.numbers.shape[1]
    if not same_numbers or first.prior.vocabulary != then.prior.vocabulary:
        return None
    # A model holds, one after the other: numbers, labels, old answers, cells, words.
    answers_at = numbers + labels
    cells_at = answers_at + len(first.names)
    words_at = cells_at + len(first.cells.label)
    by_answer = dict(zip(first.names, model[answers_at:cells_at].tolist(), strict=True))
    by_cell = dict(zip(_cells(first), model[cells_at:words_at].tolist(), strict=True))
    return np.concatenate(
        (
            model[:answers_at],
            [by_answer.get(name, 0.0) for name in then.names],
            [by_cell.get(pair, 0.0) for pair in _cells(then)],
            model[words_at:],
        )
    )


def _cells(layout: Layout) -> list[tuple[int, str]]:
    """Give the label and the old answer of each cell."""
    pairs = zip(layout.cells.label.tolist(), layout.cells.old.tolist(), strict=True)
    return [(label, layout.names[old]) for label, old in pairs]


def probabilities(log_odds: Floats, count: int) -> Floats:
    """Give the probabilities (N,) that add up to a count.

    All of the log odds are raised by the same amount.

    >>> probabilities(np.array([0.0, 0.0, 9.0]), 1).round(2).tolist()
    [0.01, 0.01, 0.98]
    """
    from scipy.special import expit

    low, high = -log_odds.max() - 50.0, -log_odds.min() + 50.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if expit(log_odds + middle).sum() < count:
            low = middle
        else:
            high = middle
    found = expit(log_odds + high)
    return np.asarray(found * (count / found.sum()))


def draw_items(probability: Floats, rng: np.random.Generator) -> Bools:
    """Draw items with these inclusion probabilities (N,), as many as they add up to."""
    order = rng.permutation(len(probability))
    passed = np.floor(np.cumsum(probability[order]) - rng.random() + 1.0)
    result = np.zeros(len(probability), np.bool_)
    result[order] = np.diff(passed, prepend=0.0) > 0.0
    return result
