"""What an earlier update changed, as far as an assessment saw it: which items it hit and what their answers became."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.inference.method import Plan
from masa.records import ERROR, Bools, Column, Floats, Ints, in_order
from masa.sampling.draws import Draws
from masa.sampling.kernels import predictive as kernel
from masa.sampling.layout import Layout
from masa.settings import Settings

ENOUGH = 5
"""Changed answers from which something can be learned."""


@dataclass(frozen=True, slots=True, eq=False)
class LearnedChange:
    """Which items an update hits, and what their answers become."""

    likely: Floats
    """(N,) the log odds that the answer about each item changes"""
    became: Mapping[tuple[str, str], Mapping[str, int]]
    """by label and old answer, how often it became what"""
    mended: float
    """how often a wrong answer that changed became right"""
    answers: int
    """that this was learned from"""
    error2: float | None
    """the squared error of the shift that they left, where items were drawn in batches"""


def learned(
    data: Dataset,
    then: BaselineAnswers,
    now: BaselineAnswers,
    settings: Settings,
    places: Ints,
    answers: Column,
    draws: Draws | None = None,
) -> LearnedChange | None:
    """Learn from answers about the items at these places (n,) how they changed since then, for those who plan from now.

    All items' old answers must be known, of then and of now. By the model that chooses the items of a predictive run; that they
    were chosen by it, too, makes no difference to it. From few changes nothing is learned.
    """
    before = then.answers.on(in_order((*then.answers.values, *answers.values)))
    names, was, new = before.values, before.codes[places], answers.on(before.values).codes
    failed = np.array([name == ERROR for name in names], np.bool_)
    told = data.labelled[places] & ~failed[was] & ~failed[new]
    changed = (was != new) & told
    if np.count_nonzero(changed) < ENOUGH:
        return None
    auto = Settings("auto", settings.levels, settings.seed, settings.mix, also=settings.also)
    plan = Plan.of(data, then, auto)
    first, layout = plan.layout, (plan if now is then else Plan.of(data, now, auto)).layout
    assert first is not None and layout is not None  # noqa: S101, PT018 - auto has one where all old answers are known
    asked, moved = places[told].astype(np.int32), changed[told].astype(np.float64)
    model = carried(
        kernel.fit(first.items, first.cells, first.goal, first.prior, asked, moved), first, layout
    )
    if model is None:
        return None
    became: dict[tuple[str, str], dict[str, int]] = {}
    wrong, mended = 1.0, 0.5
    for place, old, after in zip(
        places[changed].tolist(), was[changed].tolist(), new[changed].tolist(), strict=True
    ):
        label = data.label.values[data.label.codes[place]]
        into = became.setdefault((label, names[old]), {})
        into[names[after]] = into.get(names[after], 0) + 1
        wrong, mended = (
            wrong + (names[old] != label),
            mended + (names[old] != label and names[after] == label),
        )
    error2 = None
    if draws is not None and draws.batch.any() and then.weight is None:
        error2 = plan.estimated(then, places, answers, draws, finite=True).matrix.error2
    likely = kernel.log_odds(layout.items, layout.cells, layout.goal, model)
    return LearnedChange(likely, became, mended / wrong, len(places), error2)


def carried(model: Floats, first: Layout, then: Layout) -> Floats | None:
    """Give a model of one layout for another one of the same items, where that knows the same of them.

    BaselineAnswers answers, and labels with an old answer, that were not there at first sway nothing.
    """
    numbers, labels = 1 + first.items.numbers.shape[1], len(first.labels)
    if first is then:
        return model
    if (
        numbers != 1 + then.items.numbers.shape[1]
        or first.prior.vocabulary != then.prior.vocabulary
    ):
        return None

    def cells(layout: Layout) -> list[tuple[int, str]]:
        pairs = zip(layout.cells.label.tolist(), layout.cells.old.tolist(), strict=True)
        return [(label, layout.names[old]) for label, old in pairs]

    answer = dict(zip(first.names, model[numbers + labels :].tolist(), strict=False))
    cell = dict(
        zip(cells(first), model[numbers + labels + len(first.names) :].tolist(), strict=False)
    )
    words = numbers + labels + len(first.names) + len(first.cells.label)
    return np.concatenate(
        (
            model[: numbers + labels],
            [answer.get(name, 0.0) for name in then.names],
            [cell.get(pair, 0.0) for pair in cells(then)],
            model[words:],
        )
    )


def chances(likely: Floats, count: int) -> Floats:
    """Give the chances (N,) with these log odds (N,), all raised by the same amount, that add up to a count.

    >>> chances(np.array([0.0, 0.0, 9.0]), 1).round(2).tolist()
    [0.01, 0.01, 0.98]
    """
    from scipy.special import expit

    low, high = -likely.max() - 50.0, -likely.min() + 50.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(likely + middle).sum() < count else (low, middle)
    found = expit(likely + high)
    return np.asarray(found * (count / found.sum()))


def picked(chance: Floats, luck: np.random.Generator) -> Bools:
    """Draw items with these chances (N,), as many as they add up to."""
    order = luck.permutation(len(chance))
    passed = np.floor(np.cumsum(chance[order]) - luck.random() + 1.0)
    result = np.zeros(len(chance), np.bool_)
    result[order] = np.diff(passed, prepend=0.0) > 0.0
    return result
