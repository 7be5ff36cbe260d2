"""Intervals that hold at all times at once, however often one looks and whenever one stops.

Items are drawn one after the other, with known inclusion probabilities, from those not yet asked.
At each draw the answers known so far, plus the new answer over its inclusion probability, have the
true value as their mean, whatever was answered before: such estimates form a martingale.
docs/sure.md says what follows from that.
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

LARGEST_STAKE = 0.9
"""The largest share of its capital that a bet may risk."""

BET_HORIZONS = (100, 250, 600, 1_500, 4_000, 10_000, 30_000)
"""Numbers of answers after which a run may end. The capital is split equally between bets that are
chosen for each of them; the intervals hold whenever the run ends."""

STEP_HORIZONS = (500, 3_000, 20_000)
"""The same for the steps of the bound on the matrix; fewer, because each costs as much as the
first."""

FIRST_GUESS = 0.01
"""The variance of one estimate before anything is seen, as a share of the largest possible square;
it counts as one answer."""

LARGEST_STEP = 0.8
"""The largest step of the bound on a vector's norm, as in its theorem."""

HALVINGS = 30
"""Halvings in the search for the end of an interval."""


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
    weight_over_probability: Floats
    """(n,) that share over the inclusion probability of the item"""
    largest_weight: Floats
    """(n,) the largest value that the weight over the probability could have had"""
    squares: Floats
    """(n,) the squared distances of the estimates, one per draw, from the mean of those before"""
    error: int = -1
    """the prediction that marks a failed item, or -1"""
    unchanged_bounds: dict[float, float] = field(default_factory=dict)
    """by confidence, the bound on a sum with weights up to 1 to which all answers so far contribute
    zero; a cache"""

    def of_label(self, row: int) -> "ConfidenceSequence":
        """Keep one label, as row 0; the weights of sums then have one row."""
        return replace(self, label=np.where(self.label == row, 0, -1))

    def half_width(self, weights: Weights, confidence: float, centre: float) -> float:
        """Give the half width of an interval around a centre for a sum over the shift."""
        low, high = self.ends(weights, confidence)
        return max(high - centre, centre - low, 0.0)

    def half_width_differing(self, confidence: float, centre: float) -> float:
        """Give the half width of an interval around a centre for the share of differing answers."""
        low, high = self._ends(self.differs.astype(np.float64), 1.0, confidence)
        return max(high - centre, centre - low, 0.0)

    def ends(self, weights: Weights, confidence: float) -> tuple[float, float]:
        """Give the ends of an interval for a sum over the shift that holds at all times at once."""
        values = np.zeros(len(self.label))
        mine = self.label >= 0
        label = self.label[mine]
        values[mine] = weights.at(label, self.new[mine]) - weights.at(label, self.old[mine])
        return self._ends(values, weights.largest_row_range, confidence)

    def _ends(self, values: Floats, value_range: float, confidence: float) -> tuple[float, float]:
        """Give the ends for the weighted sum of values (n,), none of them larger than the range."""
        if not len(values) or value_range <= 0.0:
            return -value_range, value_range
        if values.any():
            low, high = betting(
                self._estimates(values),
                self._known_before(values),
                self.largest_weight * value_range,
                confidence,
            )
        else:
            high = value_range * self._unchanged_bound(confidence)
            low = -high
        # The items that are left cannot add more than their weight.
        known = float((self.weight * values).sum())
        rest = value_range * self.remaining_weight
        return max(low, known - rest), min(high, known + rest)

    def _unchanged_bound(self, confidence: float) -> float:
        """Bound a sum with weights up to 1 to which all answers so far contribute zero."""
        if confidence not in self.unchanged_bounds:
            zero = np.zeros(len(self.label))
            bound = betting(zero, zero, self.largest_weight, confidence)[1]
            self.unchanged_bounds[confidence] = bound
        return self.unchanged_bounds[confidence]

    @property
    def remaining_weight(self) -> float:
        """The weight of the items that are not asked yet."""
        rest = 1.0 - float(self.weight.sum())
        if rest <= 1e-9:  # The weights add up to 1 but for rounding.
            return 0.0
        return rest

    def differing(self) -> float:
        """Estimate the share of answers that differ from the baseline answers."""
        values = self.differs.astype(np.float64)
        known = float((self.weight * values).sum())
        remaining = self.remaining_weight
        if not len(values) or remaining <= 0.0:
            return known
        return min(1.0, known + remaining, max(known, float(self._estimates(values).mean())))

    @property
    def differs(self) -> Bools:
        """Whether answers (n,) differ from the baseline answers; a failed item has no answer."""
        return np.asarray(
            (self.new != self.old) & (self.new != self.error) & (self.old != self.error)
        )

    @property
    def variance(self) -> float:
        """The approximate squared error of the shift, to show while a run is under way."""
        return float(self.squares.sum()) / max(1, len(self.new)) ** 2

    def deviations(self, labels: int, answers: int) -> Floats:
        """Give the approximate standard error of each entry (L, P) of the shift."""
        one_answer = float((self.weight_over_probability**2).max(initial=0.0))
        squares = np.full((labels, answers), 0.5 * one_answer)
        changed = self.new != self.old
        amount = self.weight_over_probability[changed] ** 2
        for side in (self.new, self.old):
            np.add.at(squares, (self.label[changed], side[changed]), amount)
        return np.asarray(np.sqrt(squares) / max(1, len(self.new)))

    def shift(self, labels: int, answers: int) -> Floats:
        """Estimate the shift (L, P).

        It is the mean of one estimate per draw, weighted by the steps that give the smallest
        radius; or the sum of the known answers, once that has a smaller radius.
        """
        best = min(self._steps(0.95), key=lambda found: found.radius)
        amount = self.weight
        if best.radius < self._remaining_radius:
            steps = best.steps
            # An answer counts over its probability at its own step, and as known at later ones.
            later = steps.sum() - np.cumsum(steps)
            amount = (steps * self.weight_over_probability + later * self.weight) / steps.sum()
        total = np.zeros((labels, answers))
        np.add.at(total, (self.label, self.new), amount)
        np.add.at(total, (self.label, self.old), -amount)
        return total

    def radius(self, confidence: float) -> float:
        """Bound the Frobenius error of the estimated shift, at all times at once."""
        if not len(self.new):
            return float("inf")
        # The estimate has the steps that are best at 95%, whatever confidence is asked for.
        usual = [found.radius for found in self._steps(0.95)]
        best = int(np.argmin(usual))
        if usual[best] < self._remaining_radius:
            return self._steps(confidence)[best].radius
        return self._remaining_radius

    @property
    def _remaining_radius(self) -> float:
        """How far the shift can be from the sum of the known answers."""
        return sqrt(2.0) * self.remaining_weight

    def _steps(self, confidence: float) -> "list[_Steps]":
        """Choose steps for each horizon, each step by the answers before it.

        The radius is the empirical Bernstein bound of Martinez-Taboada and Ramdas
        (arXiv 2409.06060) in Euclidean space, for all horizons at once.
        """
        # Twice the largest distance of one estimate of the shift from what is known before it,
        # which is the weight over the probability of one answer.
        scale = 2.0 * sqrt(2.0) * float(self.largest_weight.max(initial=1e-9))
        squares = self.squares / scale**2
        n = np.arange(1, len(squares) + 1)
        variance = (FIRST_GUESS + _sums_before(squares)) / n
        log_factor = log(2.0 * len(STEP_HORIZONS) / (1.0 - confidence))
        found = []
        for horizon in STEP_HORIZONS:
            steps = np.minimum(LARGEST_STEP, np.sqrt(2.0 * log_factor / (variance * horizon)))
            spent = float(np.sum((-np.log1p(-steps) - steps) * squares))
            found.append(_Steps(steps, scale * (spent + log_factor) / float(steps.sum())))
        return found

    def _known_before(self, values: Floats) -> Floats:
        """Give the weighted sum of the values known before each draw (n,)."""
        return _sums_before(self.weight * values)

    def _estimates(self, values: Floats) -> Floats:
        """Give the estimates (n,), one per draw."""
        return self._known_before(values) + self.weight_over_probability * values


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """Weights of the estimates in their mean, and the bound that follows."""

    steps: Floats
    """(n,)"""
    radius: float
    """what the Frobenius error stays below"""


def _sums_before(values: Floats) -> Floats:
    """Give the sum of the values before each one (n,)."""
    return np.concatenate(([0.0], np.cumsum(values)[:-1]))


def _squared_residuals(
    label: Ints,
    new: Ints,
    old: Ints,
    weight: Floats,
    weight_over_probability: Floats,
    largest_weight: Floats,
) -> Floats:
    """Give the squared distances (n,) of the estimates of the shift from the mean of those before.

    All arguments are (n,), in the order of the draws.
    """
    changed = new != old
    # Only entries of answers that changed are ever touched; all others share one place.
    width = 1 + int(max(new.max(initial=0), old.max(initial=0)))
    entry = np.concatenate(((label * width + new), (label * width + old)))
    entries, place = np.unique(np.where(np.tile(changed, 2), entry, -1), return_inverse=True)
    to, origin = place[: len(changed)], place[len(changed) :]
    known, mean = np.zeros(len(entries)), np.zeros(len(entries))
    known_square = mean_square = product = 0.0
    result = np.zeros(len(changed))
    for t, differs in enumerate(changed.tolist()):
        # |known - mean|^2, or 0 where the mean is further from what is known than any estimate can
        # be: the residual is then taken from what is known.
        square = known_square - 2.0 * product + mean_square
        too_far = square > 2.0 * largest_weight[t] ** 2
        if too_far:
            square = 0.0
        amount = weight_over_probability[t]
        if differs:
            ahead = 0.0
            if not too_far:
                ahead = known[to[t]] - known[origin[t]] - mean[to[t]] + mean[origin[t]]
            square += 2.0 * amount**2 + 2.0 * amount * ahead
        result[t] = max(square, 0.0)
        # The mean of the estimates so far, and what is known by now.
        mean *= t / (t + 1.0)
        mean += known / (t + 1.0)
        if differs:
            mean[to[t]] += amount / (t + 1.0)
            mean[origin[t]] -= amount / (t + 1.0)
            known[to[t]] += weight[t]
            known[origin[t]] -= weight[t]
        known_square = float(known @ known)
        mean_square = float(mean @ mean)
        product = float(known @ mean)
    return result


def betting(
    estimates: Floats, known: Floats, value_range: Floats, confidence: float
) -> tuple[float, float]:
    """Give the ends of an interval for the common mean of estimates, at all times at once.

    Each of the estimates (n,) lies within a range (n,) of what is known before it (n,). The
    interval holds the values against which no bettor has become rich. The bets are those of
    Waudby-Smith and Ramdas (2024), predictable and truncated, with half of the capital on either
    side, in equal parts for runs of several lengths.
    """
    n = np.arange(1, len(estimates) + 1)
    mean_before = np.concatenate(([0.0], (np.cumsum(estimates) / n)[:-1]))
    squares_before = _sums_before((estimates - mean_before) ** 2)
    variance = (FIRST_GUESS * value_range[0] ** 2 + squares_before) / n
    rich = log(2.0 / (1.0 - confidence))
    bets = np.sqrt(2.0 * rich / (variance * np.array(BET_HORIZONS)[:, None]))
    smallest, largest = known - value_range, known + value_range

    def rejected(value: float, sign: float) -> bool:
        """Say whether a bettor against this value, from below (1) or above (-1), became rich."""
        at_risk = value - smallest
        if sign <= 0.0:
            at_risk = largest - value
        stakes = np.minimum(bets, LARGEST_STAKE / np.maximum(at_risk, 1e-300))
        log_wealth = np.log1p(stakes * sign * (estimates - value)).sum(axis=1)
        return float(np.logaddexp.reduce(log_wealth)) - log(len(BET_HORIZONS)) >= rich

    def end(outside: float, inside: float, sign: float) -> float:
        """Search between a value outside, unless it is not rejected, and one that is inside."""
        if not rejected(outside, sign):
            return outside
        for _ in range(HALVINGS):
            middle = 0.5 * (outside + inside)
            if rejected(middle, sign):
                outside = middle
            else:
                inside = middle
        return outside

    low, high = float(smallest.max()), float(largest.min())
    centre = min(max(float(estimates.mean()), min(low, high)), max(low, high))
    low, high = end(low, centre, 1.0), end(high, centre, -1.0)
    return min(low, high), max(low, high)


def in_sequence(
    layout: Layout, strata: Strata, places: Ints, answers: Column, draws: Draws, *, old: Column
) -> tuple[Shift, ConfidenceSequence]:
    """Estimate the shift from answers about these places (n,), in the order of their draws.

    Answers count only as far as all items that were drawn before them are answered.
    """
    order = _answered_in_order(draws)
    items = places[order]
    before = true_matrix(strata, old)
    names = in_order(before.predictions + answers.values)
    code = {name: number for number, name in enumerate(names)}

    def coded(column: Column, which: Ints) -> Ints:
        return np.array([code[name] for name in column.values], np.int64)[column.codes[which]]

    label = layout.cells.label[layout.items.cell[items]].astype(np.int64)
    new, was = coded(answers, order), coded(old, items)
    weight = layout.items.weight[items]
    weight_over_probability = weight / draws.probability[order]
    # No probability is below the share EVEN of what is proportional to the weights left, as they
    # were when the model of the draw was fitted.
    left = 1.0 - _sums_before(weight)
    first_draws = [began(draw) - 1 for draw in range(1, len(items) + 1)]
    largest_weight = np.maximum(left[np.array(first_draws, np.int64)], 0.0) / EVEN
    sequence = ConfidenceSequence(
        label,
        new,
        was,
        weight,
        weight_over_probability,
        largest_weight,
        _squared_residuals(label, new, was, weight, weight_over_probability, largest_weight),
        code.get(ERROR, -1),
    )
    values = before.on(names).values
    after = values.copy()
    if len(items):
        after += sequence.shift(len(layout.labels), len(names))
    for row, total in enumerate(strata.label_weight):
        after[row] = nearest_shares(after[row], float(total))
    shift = Shift(
        Matrix(layout.labels, names, values),
        Matrix(layout.labels, names, after),
        stratum_reports(counted(strata, places, answers), strata),
    )
    return shift, sequence


def _answered_in_order(draws: Draws) -> Ints:
    """Give the answers (m,) in the order of their draws, up to the first draw without an answer."""
    order = np.argsort(draws.batch, kind="stable")
    complete = draws.batch[order] == 1 + np.arange(len(order))
    return order[: int(np.argmin(np.concatenate((complete, [False]))))]
