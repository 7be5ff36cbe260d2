"""How likely a change is noticed that has not been seen yet: by its size, and by label."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from masa.inference.method import Method
from masa.records import Floats, Ints
from masa.replays.expected import played
from masa.replays.simulate import NewAnswers, recorded_for
from masa.sampling.kernels import expectation as kernel

RUNS = 8
"""Runs of which the mean is taken."""

NOTICED = 0.95
"""A change of a label is taken to be noticed if it is with this probability."""

FALSE_ALARMS = 0.02
"""How often noise alone may pass for a change."""


@dataclass(frozen=True, slots=True, eq=False)
class AskedUnchanged:
    """Which items runs ask as long as nothing has changed: until then nothing else decides it."""

    runs: tuple[Ints, ...]
    """(n,) the items of each run, in their order"""

    @classmethod
    def of(cls, method: Method, most: int) -> "AskedUnchanged":
        """Run some assessments of an API that did not change."""
        layout = method.layout
        assert layout is not None and method.old is not None  # noqa: S101, PT018
        recorded = recorded_for(method, NewAnswers(method.old.answers))
        items = len(layout.old)
        nothing = kernel.Changes(np.zeros(items), np.full(items, -1, np.int32))
        runs = [
            played(
                layout,
                recorded,
                nothing,
                seed=0,
                number=number,
                least=-1.0,
                fewest=most,
                most=most,
            ).asked
            for number in range(RUNS)
        ]
        return cls(tuple(runs))

    def noticed(self, hit: Floats, budgets: Sequence[int]) -> tuple[float, ...]:
        """Give the probability, by budget, that an answer that changed is among those asked.

        hit (N,) is the probability of each item that its answer changed. As many change as they
        add up to.
        """
        total = float(hit.sum())
        shares = [np.concatenate(([0.0], np.cumsum(hit[run]))) / total for run in self.runs]
        return tuple(
            float(
                np.mean(
                    [
                        1.0 - _missed(share[min(budget, len(share) - 1)], total, len(hit))
                        for share in shares
                    ]
                )
            )
            for budget in budgets
        )

    def of_label(self, label: Ints, labels: int, budget: int) -> Floats:
        """Give how many items of each label (L,) a budget asks, on average over the runs."""
        counts = [np.bincount(label[run[:budget]], minlength=labels) for run in self.runs]
        return np.asarray(np.mean(counts, axis=0))


def _missed(share: float, changed: float, items: int) -> float:
    """Give the probability that none of the changed items is in a part that has this share of them.

    It is that of drawing without replacement: exact where all items are as likely to change.
    """
    from scipy.special import gammaln

    rest = (1.0 - min(share, 1.0)) * items
    if rest < changed - 1e-9:
        return 0.0
    ways = [gammaln(size + 1.0) - gammaln(max(0.0, size - changed) + 1.0) for size in (rest, items)]
    return float(np.exp(ways[0] - ways[1]))


def smallest_change(asked: float, items: int) -> float | None:
    """Give the smallest share of the answers of a label whose change is noticed with 95%.

    For an API that repeats itself, if any of them are as likely to change. None where even a change
    of all of them may be missed.

    >>> smallest_change(20, 1000), smallest_change(0.5, 1000)
    (0.138, None)
    >>> smallest_change(50, 50)
    0.02
    """
    number = int(asked)
    if number < 1 or items < 1:
        return None
    number = min(number, items)
    # The probability to ask none of k changed items falls with k, item by item.
    missed, k = 1.0, 0
    while missed > 1.0 - NOTICED:
        missed *= max(0, items - number - k) / (items - k)
        k += 1
    return k / items


def smallest_beyond_noise(
    asked: float, of_all: int, *, contradicted: int, repeated: int
) -> float | None:
    """Give about the same for an API that contradicts itself, as in so many of the items repeated.

    What is noticed is that more answers differ than noise explains, among all that were asked.

    >>> smallest_beyond_noise(100, 100, contradicted=0, repeated=500)
    0.05
    >>> smallest_beyond_noise(4, 100, contradicted=30, repeated=500) is None
    True
    """
    from scipy.stats import betabinom, binom

    noise = (contradicted + 0.5, repeated - contradicted + 0.5)
    limit = int(betabinom.ppf(1.0 - FALSE_ALARMS, of_all, *noise))
    rate = noise[0] / sum(noise)
    for percent in range(1, 101):
        differs = rate + (1.0 - rate) * percent / 100.0 * min(asked, of_all) / of_all
        if binom.sf(limit, of_all, differs) >= NOTICED:
            return percent / 100.0
    return None
