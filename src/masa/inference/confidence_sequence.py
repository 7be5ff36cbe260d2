"""Intervals that hold at all times at once, whenever one looks or stops, and the draws that make it so.

Items are drawn one after the other with known chances from those that were not asked before. What is known of the others plus
an answer over its chance then has the true value as its mean, whatever was answered before: a martingale, of which
docs/sure.md says what follows.
"""

from dataclasses import dataclass, field, replace
from math import log, sqrt

import numpy as np

from masa.data.strata import Strata
from masa.inference.counts import nearest_shares, stratum_reports, true_matrix
from masa.inference.sample import Weights
from masa.records import ERROR, Bools, Column, Floats, Ints, Matrix, Shift, in_order
from masa.sampling.draws import Draws
from masa.sampling.layout import Layout
from masa.sampling.sequential import EVEN, began
from masa.sampling.stratified import counted

BOLD = 0.9
"""The share of what is at stake that a bet may risk."""

LENGTHS = (100, 250, 600, 1_500, 4_000, 10_000, 30_000)
"""Bets and steps are chosen as if a run were to end after so many answers, in equal parts; they hold whenever it does."""

FEW_LENGTHS = (500, 3_000, 20_000)
"""Steps cost as much for every length: there are fewer."""

FIRST_GUESS = 0.01
"""The variance of one estimate before anything is seen, as a share of what its square can be; it counts as one answer."""

LARGEST_STEP = 0.8
"""The largest step of the bound on a vector's norm, as the theorem has it."""


@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceSequence:
    """Answers in the order in which their items were drawn."""

    label: Ints
    """(n,)"""
    new: Ints
    """(n,)"""
    old: Ints
    """(n,)"""
    weight: Floats
    """(n,) the share of the item in the estimate"""
    over: Floats
    """(n,) that share over the chance with which the item was drawn"""
    most: Floats
    """(n,) what that could have been at the most"""
    squares: Floats
    """(n,) the squared distances of the estimates, one a draw, from the mean of those before them"""
    error: int = -1
    """the answer that stands for none, if there is one"""
    quiet: dict[float, float] = field(default_factory=dict)
    """by confidence, how far a sum may be from zero that no answer has moved; filled when it is asked for"""

    def of_label(self, row: int) -> "ConfidenceSequence":
        """Tell one label from all others; tables for its sums have one row."""
        return replace(self, label=np.where(self.label == row, 0, -1))

    def half(self, table: Weights, confidence: float, centre: float) -> float:
        """Give how far from a centre a sum over the shift may be, at all times at once."""
        low, high = self.ends(table, confidence)
        return max(high - centre, centre - low, 0.0)

    def half_differing(self, confidence: float, centre: float) -> float:
        """Give how far from a centre the share of answers may be that are not as before."""
        low, high = self._ends(self.apart.astype(np.float64), 1.0, confidence)
        return max(high - centre, centre - low, 0.0)

    def ends(self, table: Weights, confidence: float) -> tuple[float, float]:
        """Give the least and the most that a sum over the shift may be, at all times at once."""
        each = np.zeros(len(self.label))
        mine = self.label >= 0
        each[mine] = table.at(self.label[mine], self.new[mine]) - table.at(
            self.label[mine], self.old[mine]
        )
        return self._ends(each, table.farthest, confidence)

    def _ends(self, each: Floats, far: float, confidence: float) -> tuple[float, float]:
        if not len(each) or far <= 0.0:
            return -far, far
        if each.any():
            low, high = betting(self._seen(each), self._before(each), self.most * far, confidence)
        else:
            if confidence not in self.quiet:
                self.quiet[confidence] = betting(each, each, self.most, confidence)[1]
            low, high = -far * self.quiet[confidence], far * self.quiet[confidence]
        # The items that are left cannot add more than they weigh.
        known, rest = float((self.weight * each).sum()), far * self.left
        return max(low, known - rest), min(high, known + rest)

    @property
    def left(self) -> float:
        """The weight of the items that are left."""
        rest = 1.0 - float(self.weight.sum())
        return rest if rest > 1e-9 else 0.0

    def differing(self) -> float:
        """Give the share of answers that are not as before."""
        each = self.apart.astype(np.float64)
        known = float((self.weight * each).sum())
        if not len(each) or self.left <= 0.0:
            return known
        return min(1.0, known + self.left, max(known, float(self._seen(each).mean())))

    @property
    def apart(self) -> Bools:
        """Whether answers (n,) are not as before; a failure is no answer."""
        return np.asarray(
            (self.new != self.old) & (self.new != self.error) & (self.old != self.error)
        )

    @property
    def variance(self) -> float:
        """About what the squared error of the shift is, to show it while a run goes on."""
        return float(self.squares.sum()) / max(1, len(self.new)) ** 2

    def deviations(self, labels: int, answers: int) -> Floats:
        """Give about how far each entry (L, P) of the shift may be off."""
        squares = np.full((labels, answers), 0.5 * float((self.over**2).max(initial=0.0)))
        moved = self.new != self.old
        for side in (self.new, self.old):
            np.add.at(squares, (self.label[moved], side[moved]), self.over[moved] ** 2)
        return np.asarray(np.sqrt(squares) / max(1, len(self.new)))

    def shift(self, labels: int, answers: int) -> Floats:
        """Give the estimated shift (L, P): the mean of one estimate a draw, by steps, those with which it is surest.

        Or what is known, once that is surer.
        """
        steps, radius = min(self._steps(0.95), key=lambda found: found[1])
        total = np.zeros((labels, answers))
        # An answer counts over its chance at its own step, and as known at all later ones.
        later = steps.sum() - np.cumsum(steps)
        amount = (
            (steps * self.over + later * self.weight) / steps.sum()
            if radius < self._rest
            else self.weight
        )
        np.add.at(total, (self.label, self.new), amount)
        np.add.at(total, (self.label, self.old), -amount)
        return total

    def radius(self, confidence: float) -> float:
        """Give what the Frobenius error of the estimated shift stays below, at all times at once."""
        if not len(self.new):
            return float("inf")
        usual = [radius for _, radius in self._steps(0.95)]
        surest = int(np.argmin(usual))
        return self._steps(confidence)[surest][1] if usual[surest] < self._rest else self._rest

    @property
    def _rest(self) -> float:
        """How far the shift can be from what is known of it."""
        return sqrt(2.0) * self.left

    def _steps(self, confidence: float) -> list[tuple[Floats, float]]:
        """Give steps (n,), each chosen by the answers before it, for runs of several lengths, and what the error stays below.

        The empirical Bernstein bound of Martinez-Taboada and Ramdas (arXiv 2409.06060) in Euclidean space, for all at once.
        """
        # Twice how far one estimate of the shift can be from what is known before it: an answer over its chance.
        scale = 2.0 * sqrt(2.0) * float(self.most.max(initial=1e-9))
        squares = self.squares / scale**2
        n = np.arange(1, len(squares) + 1)
        variance = (FIRST_GUESS + np.concatenate(([0.0], np.cumsum(squares)[:-1]))) / n
        doubt = log(2.0 * len(FEW_LENGTHS) / (1.0 - confidence))
        found = []
        for length in FEW_LENGTHS:
            steps = np.minimum(LARGEST_STEP, np.sqrt(2.0 * doubt / (variance * length)))
            spent = float(np.sum((-np.log1p(-steps) - steps) * squares))
            found.append((steps, scale * (spent + doubt) / float(steps.sum())))
        return found

    def _before(self, each: Floats) -> Floats:
        """Give what is known before each draw (n,)."""
        return np.concatenate(([0.0], np.cumsum(self.weight * each)[:-1]))

    def _seen(self, each: Floats) -> Floats:
        """Give the estimates (n,), one a draw."""
        return self._before(each) + self.over * each


def _residuals(
    label: Ints, new: Ints, old: Ints, weight: Floats, over: Floats, most: Floats
) -> Floats:
    """Give the squared distances (n,) of the estimates from the mean of those before them."""
    moved = new != old
    width = 1 + int(max(new.max(initial=0), old.max(initial=0)))
    result = np.zeros(len(moved))
    both = np.concatenate(((label * width + new), (label * width + old)))
    entries, place = np.unique(np.where(np.tile(moved, 2), both, -1), return_inverse=True)
    now, then = place[: len(moved)], place[len(moved) :]
    known, mean = np.zeros(len(entries)), np.zeros(len(entries))
    known_square = mean_square = cross = 0.0
    for t, apart in enumerate(moved.tolist()):
        square = known_square - 2.0 * cross + mean_square
        off = (
            square > 2.0 * most[t] ** 2
        )  # The mean is further from what is known than any estimate can be.
        square = 0.0 if off else square
        if apart:
            ahead = 0.0 if off else known[now[t]] - known[then[t]] - mean[now[t]] + mean[then[t]]
            square += 2.0 * over[t] ** 2 + 2.0 * over[t] * ahead
        result[t] = max(square, 0.0)
        # The mean of the estimates so far, and what is known by now.
        mean *= t / (t + 1.0)
        mean += known / (t + 1.0)
        if apart:
            mean[now[t]] += over[t] / (t + 1.0)
            mean[then[t]] -= over[t] / (t + 1.0)
            known[now[t]] += weight[t]
            known[then[t]] -= weight[t]
        known_square, mean_square, cross = (
            float(known @ known),
            float(mean @ mean),
            float(known @ mean),
        )
    return result


def betting(seen: Floats, known: Floats, reach: Floats, confidence: float) -> tuple[float, float]:
    """Give the values that nobody who bet against them has become rich by, at all times at once.

    Seen (n,) are numbers of one mean, each within reach (n,) of what is known before it (n,). The bets are those of Waudby-Smith
    and Ramdas (2024), predictable and truncated, half of the money on either side, in equal parts for runs of several lengths.
    """
    n = np.arange(1, len(seen) + 1)
    before = np.concatenate(([0.0], (np.cumsum(seen) / n)[:-1]))
    variance = (
        FIRST_GUESS * reach[0] ** 2 + np.concatenate(([0.0], np.cumsum((seen - before) ** 2)[:-1]))
    ) / n
    rich = log(2.0 / (1.0 - confidence))
    bets = np.sqrt(2.0 * rich / (variance * np.array(LENGTHS)[:, None]))
    lowest, highest = known - reach, known + reach
    least, most = float(lowest.max()), float(highest.min())

    def won(value: float, sign: float) -> bool:
        edge = value - lowest if sign > 0.0 else highest - value
        stakes = np.minimum(bets, BOLD / np.maximum(edge, 1e-300))
        wealth = np.log1p(stakes * sign * (seen - value)).sum(axis=1)
        return float(np.logaddexp.reduce(wealth)) - log(len(LENGTHS)) >= rich

    def edge(begin: float, end: float, sign: float) -> float:
        # Won against begin, not against end: somewhere between.
        for _ in range(30):
            middle = 0.5 * (begin + end)
            begin, end = (middle, end) if won(middle, sign) else (begin, middle)
        return begin

    centre = min(max(float(seen.mean()), min(least, most)), max(least, most))
    low = edge(least, centre, 1.0) if won(least, 1.0) else least
    high = edge(most, centre, -1.0) if won(most, -1.0) else most
    return min(low, high), max(low, high)


def in_sequence(
    layout: Layout, strata: Strata, places: Ints, answers: Column, draws: Draws, *, old: Column
) -> tuple[Shift, ConfidenceSequence]:
    """Estimate the shift from answers about these places (n,), as far as all that were drawn before are answered."""
    order = np.argsort(draws.batch, kind="stable")
    order = order[
        : int(np.argmin(np.concatenate((draws.batch[order] == 1 + np.arange(len(order)), [False]))))
    ]
    before = true_matrix(strata, old)
    names = in_order(before.predictions + answers.values)
    place = {name: code for code, name in enumerate(names)}

    def coded(column: Column, which: Ints) -> Ints:
        return np.array([place[name] for name in column.values], np.int64)[column.codes[which]]

    items = places[order]
    label = layout.cells.label[layout.items.cell[items]].astype(np.int64)
    weight = layout.items.weight[items]
    left = 1.0 - np.concatenate(([0.0], np.cumsum(weight)[:-1]))
    begun = left[np.array([began(draw) - 1 for draw in range(1, len(items) + 1)], np.int64)]
    now, then, over, most = (
        coded(answers, order),
        coded(old, items),
        weight / draws.probability[order],
        np.maximum(begun, 0.0) / EVEN,
    )
    squares = _residuals(label, now, then, weight, over, most)
    found = ConfidenceSequence(label, now, then, weight, over, most, squares, place.get(ERROR, -1))
    values = before.on(names).values
    after = values.copy()
    if len(items):
        after += found.shift(len(layout.labels), len(names))
    for row, total in enumerate(strata.label_weight):
        after[row] = nearest_shares(after[row], float(total))
    reports = stratum_reports(counted(strata, places, answers), strata)
    return Shift(
        Matrix(layout.labels, names, values), Matrix(layout.labels, names, after), reports
    ), found
