"""How the share of right answers changed in each group of items."""

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.inference.estimate import Estimate, reach
from masa.inference.moved_share import Reach
from masa.inference.sample import Sample
from masa.inference.share_change import ShareChange
from masa.records import ERROR, Column, Floats, Gap, GroupReport, Interval, Ints

FEW_ANSWERS = 10
"""With fewer answers than this about one of two groups, the limits of both are added."""


def by_group(
    found: Estimate,
    data: Dataset,
    old: BaselineAnswers,
    places: Ints,
    confidence: float,
    standard_errors: Callable[[float], float],
) -> tuple[tuple[GroupReport, ...], Gap | None]:
    """Report the change of accuracy in each group, and of the gap between the best and the worst.

    Best and worst are meant before the change. All intervals are read together; standard_errors
    gives the number of standard errors of an interval of some confidence.
    """
    group = data.group
    if group is None or not found.groups:
        return (), None
    groups = _Groups.of(found, data, old, places, group)
    shared_confidence = 1.0 - (1.0 - confidence) / (1 + int(np.count_nonzero(groups.items)))
    z = standard_errors(shared_confidence)

    changes = [_change(found, one, reach(shared_confidence, z)) for one in found.groups]
    reports = []
    for g, name in enumerate(group.values):
        change = changes[g]
        if change is not None:
            # Items that failed, then or now, may have been right.
            less = groups.failed_then[g] + groups.uncovered[g]
            more = groups.failed_now[g] + groups.uncovered[g]
            change = _widened(change, less, more)
        items, asked = int(groups.items[g]), int(groups.asked[g])
        reports.append(GroupReport(name, items, asked, float(groups.before[g]), change))

    by_accuracy = np.argsort(-groups.before, kind="stable")
    order = [int(g) for g in by_accuracy if groups.items[g]]
    if not order:
        return tuple(reports), None
    top, bottom = order[0], order[-1]
    best, worst = changes[top], changes[bottom]
    if best is None or worst is None or top == bottom:
        return tuple(reports), None
    # Failed items of one group may have made the gap wider, those of the other narrower.
    uncovered = groups.uncovered[top] + groups.uncovered[bottom]
    less = groups.failed_then[top] + groups.failed_now[bottom] + uncovered
    more = groups.failed_now[top] + groups.failed_then[bottom] + uncovered
    gap = Gap(
        group.values[top],
        group.values[bottom],
        float(groups.before[top] - groups.before[bottom]),
        _widened(_difference(best, worst, few=_few(groups, top, bottom)), less, more, most=2.0),
    )
    return tuple(reports), gap


def _few(groups: "_Groups", one: int, other: int) -> bool:
    """Say whether one of two groups has so few answers that its limits are those of ignorance."""
    return min(int(groups.asked[one]), int(groups.asked[other])) < FEW_ANSWERS


def _change(found: Estimate, shares: ShareChange, reach: Reach) -> Interval | None:
    """Give the change of the accuracy of a group, from its own answers; None where it has none."""
    weight = float(shares.errors.weight.sum())
    if weight <= 0.0 or not len(shares.answers.new):
        return None
    change = shares.of_answer(found.right_answer, reach)
    return Interval(change.estimate / weight, change.low / weight, change.high / weight)


def _widened(change: Interval, less: float, more: float, *, most: float = 1.0) -> Interval:
    """Make an interval for a change wider, as far as that is possible."""
    return Interval(change.estimate, max(-most, change.low - less), min(most, change.high + more))


def _difference(one: Interval, other: Interval, *, few: bool) -> Interval:
    """Give the difference of two independent numbers; distances are added by squares.

    With few answers a distance is where nothing is known, which adds up as it is.
    """
    change = one.estimate - other.estimate
    below = one.estimate - one.low, other.high - other.estimate
    above = one.high - one.estimate, other.estimate - other.low
    if few:
        return Interval(change, change - sum(below), change + sum(above))
    return Interval(change, change - hypot(*below), change + hypot(*above))


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """What is known about groups (G,) besides the change of their accuracy."""

    items: Ints
    """(G,) the number of items with a label"""
    asked: Ints
    """(G,) how many of them were asked"""
    before: Floats
    """(G,) the share of right baseline answers"""
    failed_then: list[float]
    """(G,) the share of items that failed in the baseline"""
    failed_now: list[float]
    """(G,) the share of items that failed now"""
    uncovered: list[float]
    """(G,) how much of the accuracy the items of uncovered labels could change"""

    @classmethod
    def of(
        cls,
        found: Estimate,
        data: Dataset,
        old: BaselineAnswers,
        places: Ints,
        group: Column,
    ) -> "_Groups":
        count = len(group.values)
        weight = old.weight
        if weight is None:
            weight = data.labelled.astype(np.float64)
        group_weight = np.bincount(group.codes, weight, count)
        share = group_weight / max(float(weight.sum()), 1e-300) * (1.0 - old.uncovered_share)
        total = np.where(group_weight <= 0.0, 1.0, group_weight)

        code = {name: number for number, name in enumerate(old.answers.values)}
        right_of_label = np.array([code.get(name, -1) for name in data.label.values], np.int64)
        right = right_of_label[data.label.codes] == old.answers.codes
        failed = (old.answers.codes == code.get(ERROR, -1)) & data.labelled
        # Items of uncovered labels may be in any group.
        uncovered = 2.0 * old.uncovered_share / np.maximum(share + old.uncovered_share, 1e-300)
        return cls(
            items=np.bincount(group.codes[data.labelled], minlength=count),
            asked=np.bincount(group.codes[places[data.labelled[places]]], minlength=count),
            before=np.bincount(group.codes, right * weight, count) / total,
            failed_then=(np.bincount(group.codes, failed * weight, count) / total).tolist(),
            failed_now=_failed_share(found.now, group).tolist(),
            uncovered=uncovered.tolist(),
        )


def _failed_share(samples: tuple[Sample, ...], group: Column) -> Floats:
    """Give the share of each group's items (G,) that failed."""
    weight, failed = np.zeros(len(group.values)), np.zeros(len(group.values))
    for one in samples:
        np.add.at(weight, group.codes[one.place], one.weight)
        np.add.at(failed, group.codes[one.place], one.weight * (one.new == one.error))
    return failed / np.where(weight > 0.0, weight, 1.0)
