"""How the share of right answers changed in each group of items."""

from collections.abc import Callable

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.inference.estimate import Estimate
from masa.inference.sample import Sample
from masa.inference.spread import Spread
from masa.records import ERROR, Column, Floats, Gap, GroupReport, Interval, Ints


def by_group(
    found: Estimate,
    data: Dataset,
    old: BaselineAnswers,
    places: Ints,
    confidence: float,
    reach: Callable[[float], float],
) -> tuple[tuple[GroupReport, ...], Gap | None]:
    """Tell how the share of right answers changed in each group, and the gap between the best and the worst of them before.

    All at once: reach gives how many standard errors an interval of some confidence reaches.
    """
    group = data.group
    if group is None or not found.groups:
        return (), None
    code = {name: place for place, name in enumerate(old.answers.values)}
    right = (
        np.array([code.get(name, -1) for name in data.label.values], np.int64)[data.label.codes]
        == old.answers.codes
    )
    items = np.bincount(group.codes[data.labelled], minlength=len(group.values))
    weight = data.labelled.astype(np.float64) if old.weight is None else old.weight
    together = np.bincount(group.codes, weight, len(group.values))
    together[together <= 0.0] = 1.0
    before = np.bincount(group.codes, right * weight, len(group.values)) / together
    asked = np.bincount(group.codes[places[data.labelled[places]]], minlength=len(group.values))

    shared = 1.0 - (1.0 - confidence) / (1 + int(np.count_nonzero(items)))
    z = reach(shared)

    failed = (old.answers.codes == code.get(ERROR, -1)) & data.labelled
    failed_then = (np.bincount(group.codes, failed * weight, len(group.values)) / together).tolist()
    failed_now = _failed_by_group(found.now, group).tolist()

    share = (
        np.bincount(group.codes, weight, len(group.values))
        / max(float(weight.sum()), 1e-300)
        * (1.0 - old.uncovered_share)
    )
    gone = (
        2.0 * old.uncovered_share / np.maximum(share + old.uncovered_share, 1e-300)
    ).tolist()  # Those of lost labels may be anywhere.

    def interval(change: float, spread: Spread, less: float, more: float) -> Interval:
        """Those that failed then may have been right, and so may those that failed now."""
        below, above = spread.ends(shared, z)
        return Interval(change, max(-1.0, change - below - less), min(1.0, change + above + more))

    changes = [
        None if told is None else interval(*told, failed_then[g] + gone[g], failed_now[g] + gone[g])
        for g, told in enumerate(found.groups)
    ]
    reports = tuple(
        GroupReport(name, int(items[g]), int(asked[g]), float(before[g]), changes[g])
        for g, name in enumerate(group.values)
    )
    order = [int(g) for g in np.argsort(-before, kind="stable") if items[g]]
    if not order:
        return reports, None
    top, bottom = order[0], order[-1]
    best, worst = found.groups[top], found.groups[bottom]
    if best is None or worst is None or top == bottom:
        return reports, None
    lost = gone[top] + gone[bottom]
    less, more = (
        failed_then[top] + failed_now[bottom] + lost,
        failed_now[top] + failed_then[bottom] + lost,
    )
    change = interval(best[0] - worst[0], best[1] + worst[1], less, more)
    return reports, Gap(
        group.values[top], group.values[bottom], float(before[top] - before[bottom]), change
    )


def _failed_by_group(now: tuple[Sample, ...], group: Column) -> Floats:
    """Give the share of each group's items (G,) that failed."""
    stand, failed = np.zeros(len(group.values)), np.zeros(len(group.values))
    for one in now:
        np.add.at(stand, group.codes[one.place], one.weight)
        np.add.at(failed, group.codes[one.place], one.weight * (one.new == one.error))
    return failed / np.where(stand > 0.0, stand, 1.0)
