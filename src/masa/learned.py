"""What an earlier update changed, as far as an assessment saw it: which items it hit and what their answers became."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from masa import _predictive as kernel
from masa import history, journal, live
from masa.assess import drawn
from masa.dataset import Dataset
from masa.errors import DataError, UsageError
from masa.history import Run
from masa.old import Old, columned, laid_over
from masa.plan import Plan, Settings
from masa.records import ERROR, Bools, Column, Floats, Ints
from masa.store import Store
from masa.weighed import Draws

ENOUGH = 5
"""Changed answers from which something can be learned."""


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
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
    data: Dataset, old: Old, settings: Settings, places: Ints, answers: Column, draws: Draws | None = None
) -> Learned | None:
    """Learn from answers about the items at these places (n,), all of whose old answers are known; of few changes nothing.

    By the model that chooses the items of a predictive run. That they were chosen by it, too, makes no difference to it.
    """
    codes = old.answers.on(tuple(dict.fromkeys((*old.answers.values, *answers.values))))
    now, then = answers.on(codes.values).codes, codes.codes[places]
    told = data.labelled[places] & ~np.array([name == ERROR for name in answers.values], np.bool_)[answers.codes]
    changed = told & (now != then)
    if np.count_nonzero(changed) < ENOUGH:
        return None
    plan = Plan.of(data, old, Settings("auto", settings.levels, settings.seed, settings.mix, also=settings.also))
    layout = plan.layout
    assert layout is not None  # noqa: S101 - auto has one where all old answers are known
    error2 = None
    if draws is not None and draws.batch.any() and old.steady:
        error2 = plan.estimated(old, places, answers, draws, finite=True).matrix.error2
    count = len(places)
    places, answers = places[told], Column(answers.name, answers.values, answers.codes[told])
    moved = (layout.targets(places, answers) >= 0).astype(np.float64)
    model = kernel.fit(layout.items, layout.cells, layout.goal, layout.prior, places.astype(np.int32), moved)
    became: dict[tuple[str, str], dict[str, int]] = {}
    wrong, mended = 1.0, 0.5
    labels, names = data.label, codes.values
    for place, before, after in zip(places.tolist(), then[told].tolist(), now[told].tolist(), strict=True):
        if before != after:
            label, was, new = labels.values[labels.codes[place]], names[before], names[after]
            into = became.setdefault((label, was), {})
            into[new] = into.get(new, 0) + 1
            wrong, mended = wrong + (was != label), mended + (was != label and new == label)
    likely = kernel.log_odds(layout.items, layout.cells, layout.goal, model)
    return Learned(likely, became, mended / wrong, count, error2)


def from_run(store: Store, data: Dataset, settings: Settings, run: Run) -> Learned | None:
    """Learn from an assessment in the store, if it was about these items and the old answers of all of them are known."""
    try:
        if run.baseline is not None:
            same, old = laid_over(store, data, history.find(store, run.baseline))
        elif run.settings.get("old") in data.predictions:
            same, old = data, columned(data, data.predictions[run.settings["old"]], run.settings.get("old_confidence"))
        else:
            return None
    except (DataError, UsageError):  # Other items, or no answers.
        return None
    if len(same) < len(data) or not old.complete:
        return None
    past = journal.past(store, run.id)
    places, answers = live.known(data, past)
    mix = None if settings.mix is None else dict(settings.mix)
    alike = run.data == data.fingerprint() and run.settings.get("mix") == mix and not run.settings.get("strict")
    return learned(data, old, settings, places, answers, drawn(data, past, places) if alike and len(places) else None)


def chances(likely: Floats, count: int) -> Floats:
    """Give the chances (N,) with these log odds (N,), all raised by the same amount, that add up to a count.

    >>> chances(np.array([0.0, 0.0, 9.0]), 1).round(2).tolist()
    [0.03, 0.03, 0.94]
    """
    low, high = -likely.max() - 50.0, -likely.min() + 50.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _sigmoid(likely + middle).sum() < count else (low, middle)
    found = _sigmoid(likely + high)
    return np.asarray(found * (count / found.sum()))


def picked(chance: Floats, luck: np.random.Generator) -> Bools:
    """Draw items with these chances (N,), as many as they add up to."""
    order = luck.permutation(len(chance))
    passed = np.floor(np.cumsum(chance[order]) - luck.random() + 1.0)
    result = np.zeros(len(chance), np.bool_)
    result[order] = np.diff(passed, prepend=0.0) > 0.0
    return result


def _sigmoid(numbers: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(numbers, -700.0, 700.0))))
