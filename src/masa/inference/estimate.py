"""An estimated shift with its errors, from which every interval and verdict is read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.strata import Strata
from masa.inference.confidence_sequence import ConfidenceSequence, in_sequence
from masa.inference.counts import entry_deviations, matrix_spread
from masa.inference.inverse_probability import inverse_probability_estimate
from masa.inference.moved_share import Reach
from masa.inference.paired import Paired, paired
from masa.inference.sample import EntryWeights, Sample, Weights
from masa.inference.share_change import ShareChange
from masa.inference.spread import LARGEST, Spread, normal, unseen_answers
from masa.records import ERROR, Bools, Column, Floats, Interval, Ints, Matrix, Shift, Tally
from masa.sampling.draws import Draws
from masa.sampling.layout import ItemCells, Layout
from masa.sampling.stratified import counted

CERTAIN = Spread(0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """An estimated shift, and what its errors are."""

    shift: Shift
    matrix: Spread
    """the error of the whole shift"""
    deviations: Floats
    """(L, P) the standard errors of the entries of the shift"""
    accuracy: Spread | None = None
    """the error of the change of accuracy, where it is not read off shares"""
    shares: ShareChange | None = None
    """the answers and what they represent, where the baseline answers of all items are known"""
    groups: "tuple[ShareChange, ...]" = ()
    """the same for each group"""
    uncovered_share: float = 0.0
    """the share of all items whose labels have no baseline answer"""
    now: tuple[Sample, ...] = ()
    """the answers with their weights"""
    then: tuple[Sample, ...] = ()
    """baseline answers, where the old matrix is only an estimate from them"""
    pairs: bool = False
    """whether both matrices are estimates from the same items, which represent others besides"""
    noise: Interval | None = None
    """how often the API contradicts itself, where it does"""
    differing: float | None = None
    """the share of answers that differ from the baseline, where pairs are known"""
    sequence: ConfidenceSequence | None = None
    """the answers in the order of their draws, where intervals must hold at all times at once"""
    labels_in_shares: tuple[str, ...] = ()
    """the labels of the shares, where items without a label are among them"""
    batches: "Callable[[], tuple[Sample, ...]] | None" = None
    """gives the answers of a sequence as batches of one, the form in which weights are stored"""

    def labelled(self) -> "Estimate":
        """Leave out the row of items without a label, about which nothing is estimated."""
        shift = replace(self.shift, old=self.shift.old.labelled(), new=self.shift.new.labelled())
        count = len(shift.new.labels)
        return replace(
            self,
            shift=shift,
            deviations=self.deviations[:count],
            labels_in_shares=self.shift.new.labels,
            now=tuple(one.take(one.label < count) for one in self.now),
            then=tuple(one.take(one.label < count) for one in self.then),
        )

    def answer_weights(self) -> dict[int, tuple[float, float]]:
        """Give, by place, the weight of each answer, and what it adds to the variance."""
        samples = self.now
        if self.batches is not None:
            samples = self.batches()
        return {place: (weight, adds) for one in samples for place, weight, adds in one.weights()}

    def interval(self, confidence: float, z: float | None = None) -> Interval:
        """Give the interval for the change of accuracy.

        It reaches z standard errors, more than usual if it was looked at before. Items that failed
        count as wrong, but all of them may be right; items of labels without an answer may all be
        right, or all wrong.
        """
        if z is None:
            z = normal(confidence)
        change = self.shift.accuracy.change
        if self.shares is not None:
            ends = self.shares.of_answer(self.right_answer, reach(confidence, z))
            below, above = max(0.0, change - ends.low), max(0.0, ends.high - change)
        else:
            below = above = self._half_width(z)
        uncovered = self.uncovered_share * (1.0 + abs(change))
        below += share_of(ERROR, self.shift.old) + uncovered
        above += share_of(ERROR, self.shift.new) + uncovered
        return self.possible(change, change - below, change + above)

    @property
    def right_answer(self) -> Ints:
        """The right answer of each label of the shares, as a place in the predictions, or -1."""
        code = {name: number for number, name in enumerate(self.shift.new.predictions)}
        return np.array(
            [code.get(label, -1) for label in self.labels_in_shares or self.shift.new.labels],
            np.int64,
        )

    def _half_width(self, z: float) -> float:
        """Give the half width of the interval for accuracy where no answer is known of all items.

        Adaptive sampling asks the less of a stratum, the more alike its first answers are. Such a
        stratum shows few mistakes although it may have many.
        """
        assert self.accuracy is not None  # noqa: S101 - there are shares otherwise
        half = self.accuracy.half_of_one(z)
        views = [view for one in self.now if (view := one.by_stratum) is not None]
        right = EntryWeights(right_answers(self.shift.new), unseen_max=1.0)
        careful = sum((view.of(right) for view in views), self._before(right))
        return max(half, careful.half_width(z)) + self.accuracy.unanswered_share

    def possible(self, change: float, low: float, high: float) -> Interval:
        """Cut an interval for the change of accuracy at what is possible."""
        least, most = -1.0, 1.0
        if self.old_known:
            before = self.shift.accuracy.old
            least = max(-1.0, -before - share_of(ERROR, self.shift.old))
            most = 1.0 - before
        return Interval(change, min(max(least, low), change), max(min(most, high), change))

    def bound(self, confidence: float) -> float:
        """Give what the Frobenius error of the shift stays below.

        Failed items may be any answer.
        """
        if self.sequence is None:
            known = self.matrix.bound(confidence)
        else:
            known = self.sequence.radius(confidence)
        failed = share_of(ERROR, self.shift.old) + share_of(ERROR, self.shift.new)
        return min(LARGEST, known + LARGEST * failed + 2.0 * self.uncovered_share)

    def spread(self, table: Weights, before: Weights | None = None) -> Spread:
        """Give the error of the change of a weighted sum over the matrix.

        Before are the weights for the old matrix, where they are others.
        """
        then = table if before is None else before
        paired_with = then if self.pairs else None
        return sum((one.of(table, paired_with) for one in self.now), self._before(then))

    @property
    def old_known(self) -> bool:
        """Whether the old matrix is known, and not only estimated."""
        return not self.then and not self.pairs

    def of_label(self, row: int) -> "Estimate":
        """Keep the answers about one label; weights for their sums have one row."""
        sequence = None
        if self.sequence is not None:
            sequence = self.sequence.of_label(row)
        shares = None
        if self.shares is not None:
            shares = self.shares.of_label(row)
        return replace(
            self,
            now=tuple(one.of_label(row) for one in self.now),
            then=tuple(one.of_label(row) for one in self.then),
            shares=shares,
            sequence=sequence,
        )

    def answered(self) -> Ints:
        """Give the predictions that occur among the answers, old or new."""
        parts = [np.zeros(0, np.int64)]
        for one in (*self.now, *self.then):
            parts += [one.new, one.old]
        if self.sequence is not None:
            mine = self.sequence.label == 0
            parts += [self.sequence.new[mine], self.sequence.old[mine]]
        return np.unique(np.concatenate(parts))

    def _before(self, table: Weights) -> Spread:
        return sum((one.of(table) for one in self.then), CERTAIN)


def reach(confidence: float, z: float) -> Reach:
    """Say how far an interval reaches that is z standard errors long.

    Looking more often hides unseen answers no better, so their number does not grow with z beyond
    what half of the error probability of a single look gives.
    """
    unseen = min(unseen_answers(z) - log(2.0), unseen_answers(normal(confidence)))
    return Reach(z, max(unseen, 0.0))


def right_answers(matrix: Matrix) -> Floats:
    """Give 1 for the entries of right answers, 0 for the others (L, P)."""
    return np.array(
        [[float(label == name) for name in matrix.predictions] for label in matrix.labels]
    )


@dataclass(frozen=True, slots=True, eq=False)
class _NoisyBaseline:
    """The error of the old matrix, where the API contradicts itself.

    Its baseline answers are then one sample of what it might have answered.
    """

    matrix: Spread
    deviations: Floats
    """(L, P)"""
    sample: Sample

    @classmethod
    def of(cls, strata: Strata, old: BaselineAnswers, shift: Shift) -> "_NoisyBaseline":
        tally = counted(strata, old.places, old.answers)
        return cls(
            matrix_spread(tally, strata.size, finite=False),
            entry_deviations(
                _on(tally, shift.new.predictions),
                strata.size,
                rates=rates(shift.old, shift),
                finite=False,
            ),
            _sample(strata, old, shift, tally),
        )


def _sample(strata: Strata, old: BaselineAnswers, shift: Shift, tally: Tally) -> Sample:
    """Give the baseline answers with their weights, as places in the predictions of a shift."""
    place = {name: code for code, name in enumerate(shift.new.predictions)}
    codes = np.array([place[name] for name in old.answers.values], np.int64)[old.answers.codes]
    stratum = strata.of(old.places).astype(np.int64)
    n = np.bincount(stratum, minlength=len(strata))
    return Sample.by_strata(
        old.places,
        strata.label[stratum].astype(np.int64),
        codes,
        None,
        coefficient=0.0,
        stratum=stratum,
        share=tally.group_share,
        fraction=np.where(n > 0, 1.0 / np.maximum(n, 1), 0.0),
        error=place.get(ERROR, -1),
    )


def estimate_from_sequence(
    layout: Layout,
    strata: Strata,
    old: BaselineAnswers,
    places: Ints,
    answers: Column,
    draws: Draws,
) -> Estimate:
    """Estimate the shift from items that were drawn one by one; its errors hold at all times."""
    shift, found = in_sequence(layout, strata, places, answers, draws, old=old.answers)
    spread = Spread(found.variance, 0.0)

    def batches() -> tuple[Sample, ...]:
        weighed = inverse_probability_estimate(
            layout, strata, places, answers, draws, old=old.answers
        )
        return (weighed.sample,)

    return Estimate(
        shift,
        spread,
        found.deviations(*shift.values.shape),
        differing=found.differing(),
        sequence=found,
        batches=batches,
    )


def estimate_from_strata(
    items: ItemCells,
    strata: Strata,
    old: BaselineAnswers,
    places: Ints,
    answers: Column,
    *,
    finite: bool,
    adaptive: bool,
) -> Estimate:
    """Estimate the shift from items that were drawn inside strata, by pairs of answers.

    Adaptive: strata were chosen by their answers.
    """
    before = Column(old.answers.name, old.answers.values, old.answers.codes[places])
    if old.weight is not None:
        # What was asked is a sample of all items, in the proportions of the strata.
        both = paired(strata, places, before, answers, finite=False)
        found = replace(by_pairs(both), uncovered_share=old.uncovered_share)
    else:
        both = paired(strata, places, before, answers, all_old=old.answers, finite=finite)
        found = _known_before(strata, old, both, finite=finite)
    stratum = strata.of(places).astype(np.int64)
    weight, own = both.sample.weight, items.weight[places]
    shares = ShareChange.of(
        items,
        old,
        found.shift.new.predictions,
        places,
        answers,
        weight=weight,
        variance=weight * np.maximum(weight - own, 0.0),
        stratum=stratum if adaptive else None,
        skips_labels=adaptive,
    )
    return replace(found, shares=shares, differing=differing_share(shares))


def differing_share(shares: ShareChange) -> float:
    """Estimate the share of answers that differ from the baseline answers."""
    return shares.differing(Reach(1.0, 1.0)).estimate


def _known_before(strata: Strata, old: BaselineAnswers, both: Paired, *, finite: bool) -> Estimate:
    """Take the change from pairs of answers, where the old answers of all items are known."""
    found = Estimate(both.shift, both.matrix, both.deviations, now=(both.sample,))
    if finite:
        return found
    noise = _NoisyBaseline.of(strata, old, both.shift)
    # What the coefficient takes of the old answers is in the pairs already.
    rest = 1.0 - both.coefficient
    sample = replace(noise.sample, variance_weight=noise.sample.variance_weight * rest**2)
    return replace(
        found,
        matrix=found.matrix + noise.matrix.times(rest),
        deviations=np.hypot(found.deviations, rest * noise.deviations),
        then=(sample,),
    )


def by_pairs(both: Paired) -> Estimate:
    """Take the change from items that both sides answered, where neither matrix is known."""
    return Estimate(
        both.shift,
        both.matrix,
        both.deviations,
        both.accuracy,
        now=(both.sample,),
        pairs=True,
        differing=both.differing,
    )


def estimate_from_batches(
    layout: Layout,
    strata: Strata,
    old: BaselineAnswers,
    places: Ints,
    answers: Column,
    draws: Draws,
    *,
    group: Column | None = None,
    rest: Strata | None = None,
    finite: bool,
) -> Estimate:
    """Estimate the shift from items drawn in batches with known inclusion probabilities."""
    found = inverse_probability_estimate(
        layout,
        strata,
        places,
        answers,
        draws,
        old=old.answers,
        rest=rest,
        finite=finite,
    )

    def shares(only: Bools | None = None) -> ShareChange:
        return ShareChange.of(
            layout.item_cells,
            old,
            found.shift.new.predictions,
            places,
            answers,
            weight=found.represented.weight,
            variance=found.represented.within_group,
            stratum=found.stratum,
            only=only,
        )

    groups: tuple[ShareChange, ...] = ()
    if group is not None:
        groups = tuple(shares(group.codes == number) for number in range(len(group.values)))
    all_shares = shares()
    estimate = Estimate(
        found.shift,
        found.matrix,
        found.deviations,
        shares=all_shares,
        groups=groups,
        uncovered_share=old.uncovered_share,
        now=(found.sample,),
        pairs=old.weight is not None,
        differing=differing_share(all_shares),
    )
    if finite or estimate.pairs:
        return estimate
    noise = _NoisyBaseline.of(strata, old, found.shift)
    return replace(
        estimate,
        matrix=found.matrix + noise.matrix,
        deviations=np.hypot(found.deviations, noise.deviations),
        then=(noise.sample,),
    )


def rates(matrix: Matrix, shift: Shift) -> Floats:
    """Give the share of each prediction within its label (L, P), for a matrix of a shift."""
    weight = shift.old.values.sum(axis=1, keepdims=True)
    return np.asarray(matrix.values / np.where(weight > 0.0, weight, 1.0))


def share_of(prediction: str, matrix: Matrix) -> float:
    """Give the share of all items that get a prediction."""
    return float(answered_so(prediction, matrix).sum())


def answered_so(prediction: str, matrix: Matrix) -> Floats:
    """Give the share of all items (L,) that have a label and get a prediction."""
    if prediction not in matrix.predictions:
        return np.zeros(len(matrix.values))
    return matrix.values[:, matrix.predictions.index(prediction)]


def _on(tally: Tally, predictions: tuple[str, ...]) -> Tally:
    """Lay counts out on these predictions, which must name at least those that occur."""
    place = {name: code for code, name in enumerate(predictions)}
    column = np.array([place[name] for name in tally.predictions], np.int32)
    return replace(tally, predictions=predictions, cell_prediction=column[tally.cell_prediction])


def uniform_queries(found: Estimate, strata: Strata, *, finite: bool) -> int | None:
    """Give the queries that post-stratified uniform sampling needs for the same expected error.

    Without the baseline answers; None where there is no error to reach.
    """
    now = found.shift.new.values
    weight = strata.label_weight[: len(now)]  # Items without a label come last.
    each = float(np.sum(weight - (now**2).sum(axis=1) / np.where(weight > 0.0, weight, 1.0)))
    if found.matrix.error2 <= 0.0 or each <= 0.0:
        return None
    correction = 1.0 / len(strata.items) if finite else 0.0
    return int(np.ceil(1.0 / (found.matrix.error2 / each + correction)))
