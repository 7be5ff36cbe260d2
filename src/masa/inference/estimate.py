"""From old and new answers to a change: how large, how sure, where, and whether it matters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.strata import Strata
from masa.inference.confidence_sequence import ConfidenceSequence, in_sequence
from masa.inference.counts import accuracy_spread, entry_deviations, matrix_spread
from masa.inference.inverse_probability import inverse_probability_estimate
from masa.inference.paired import Paired, paired
from masa.inference.sample import EntryWeights, Sample, Weights
from masa.inference.spread import LARGEST, Spread, normal
from masa.records import ERROR, Column, Floats, Interval, Ints, Matrix, Shift, Tally
from masa.sampling.draws import Draws
from masa.sampling.layout import Layout
from masa.sampling.stratified import counted


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A shift, and how far it may be off."""

    shift: Shift
    matrix: Spread
    accuracy: Spread
    deviations: Floats
    """(L, P) of the entries of the shift"""
    old_blind: float = 0.0
    uncovered_share: float = 0.0
    """the share of all items of whose label nothing was known before"""
    groups: "tuple[tuple[float, Spread] | None, ...]" = ()
    """by group, the change of its share of right answers, and how far that may be off"""
    now: tuple[Sample, ...] = ()
    """the answers, as the estimate weighs them"""
    then: tuple[Sample, ...] = ()
    """old answers, where the old matrix is no more than an estimate from them"""
    pairs: bool = False
    """whether both matrices are estimates from the same items, which stand for others besides"""
    differing: float | None = None
    """the share of answers that are not as before, where that is known of pairs"""
    sequence: ConfidenceSequence | None = None
    """the answers in the order of their draws, where intervals are to hold at all times at once"""
    batches: "Callable[[], tuple[Sample, ...]] | None" = None
    """gives the same answers as batches of one, which is what is kept of them"""

    def labelled(self) -> "Estimate":
        """Leave out the row of items without a label, of which nothing is estimated."""
        shift = replace(self.shift, old=self.shift.old.labelled(), new=self.shift.new.labelled())
        count = len(shift.new.labels)
        now, then = (
            tuple(one.take(one.label < count) for one in side) for side in (self.now, self.then)
        )
        return replace(self, shift=shift, deviations=self.deviations[:count], now=now, then=then)

    def answer_weights(self) -> dict[int, tuple[float, float]]:
        """Give, by place, the share of all items that each answer stands for, and what it adds to the variance."""
        samples = self.now if self.batches is None else self.batches()
        return {place: (share, adds) for one in samples for place, share, adds in one.weights()}

    def interval(self, confidence: float, z: float | None = None) -> Interval:
        """Give the interval for the change of accuracy, of z standard errors if it was looked at before.

        Items that failed count as wrong, but all of them may be right; of labels without an answer all may be right or wrong.
        """
        below, above = self.accuracy.ends(confidence, z)
        change = self.shift.accuracy.change
        views = [view for one in self.now if (view := one.by_stratum) is not None]
        if views:
            # Strata that were asked the less the more alike their answers were show few mistakes while they have many.
            table = EntryWeights(right_answers(self.shift.new), unseen_max=1.0)
            careful = sum((view.of(table) for view in views), self._before(table))
            reach = careful.half_width(normal(confidence) if z is None else z)
            below, above = max(below, reach), max(above, reach)
        failed_then, failed_now = (
            share_of(ERROR, matrix) for matrix in (self.shift.old, self.shift.new)
        )
        lost = self.uncovered_share * (1.0 + abs(change))
        below += failed_then + self.old_blind + lost
        above += failed_now + self.accuracy.unanswered_share + lost
        return self.possible(change, change - below, change + above)

    def possible(self, change: float, low: float, high: float) -> Interval:
        """Cut an interval for the change of accuracy at what can be: nothing is right, or everything."""
        least, most = -1.0, 1.0
        if self.old_known:
            before = self.shift.accuracy.old
            least, most = max(-1.0, -before - share_of(ERROR, self.shift.old)), 1.0 - before
        return Interval(change, min(max(least, low), change), max(min(most, high), change))

    def bound(self, confidence: float) -> float:
        """Give what the Frobenius error of the shift stays below; what failed may be any answer."""
        known = (
            self.matrix.bound(confidence)
            if self.sequence is None
            else self.sequence.radius(confidence)
        )
        failed = share_of(ERROR, self.shift.old) + share_of(ERROR, self.shift.new)
        return min(LARGEST, known + LARGEST * failed + 2.0 * self.uncovered_share)

    def spread(self, table: Weights, before: Weights | None = None) -> Spread:
        """Tell how far the change of a sum over the matrix may be off; before is the old matrix's table, if another."""
        then = table if before is None else before
        return sum(
            (one.of(table, then if self.pairs else None) for one in self.now), self._before(then)
        )

    @property
    def old_known(self) -> bool:
        """Whether the old matrix is known, and not only estimated."""
        return not self.then and not self.pairs

    def of_label(self, row: int) -> "Estimate":
        """Keep the answers about one label; tables for their sums have one row."""
        now, then = (tuple(one.of_label(row) for one in side) for side in (self.now, self.then))
        return replace(
            self,
            now=now,
            then=then,
            sequence=None if self.sequence is None else self.sequence.of_label(row),
        )

    def answered(self) -> Ints:
        """Give the predictions that the answers are, or were."""
        parts = [codes for one in (*self.now, *self.then) for codes in (one.new, one.old)]
        if self.sequence is not None:
            parts += [
                codes[self.sequence.label == 0] for codes in (self.sequence.new, self.sequence.old)
            ]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))

    def _before(self, table: Weights) -> Spread:
        return sum((one.of(table) for one in self.then), Spread(0.0, 0.0))


def right_answers(matrix: Matrix) -> Floats:
    """Give 1 for the entries of right answers, 0 for the others (L, P)."""
    return np.array(
        [[float(label == name) for name in matrix.predictions] for label in matrix.labels]
    )


def estimate_from_sequence(
    layout: Layout,
    strata: Strata,
    old: BaselineAnswers,
    places: Ints,
    answers: Column,
    draws: Draws,
) -> Estimate:
    """Estimate the shift from answers to items that were drawn one by one; how sure it is holds at all times at once."""
    shift, found = in_sequence(layout, strata, places, answers, draws, old=old.answers)
    spread, rough = Spread(found.variance, 0.0), found.deviations(*shift.values.shape)

    def batches() -> tuple[Sample, ...]:
        return (
            inverse_probability_estimate(
                layout, strata, places, answers, draws, old=old.answers
            ).sample,
        )

    return Estimate(
        shift, spread, spread, rough, differing=found.differing(), sequence=found, batches=batches
    )


def estimate_from_strata(
    strata: Strata, old: BaselineAnswers, places: Ints, answers: Column, *, finite: bool
) -> Estimate:
    """Estimate the shift from answers that were drawn inside strata, by pairs of old and new ones."""
    before = Column(old.answers.name, old.answers.values, old.answers.codes[places])
    if (
        old.weight is not None
    ):  # What was asked is a sample of all items, in the proportions of the strata.
        return replace(
            by_pairs(paired(strata, places, before, answers, finite=False)),
            uncovered_share=old.uncovered_share,
        )
    both = paired(strata, places, before, answers, all_old=old.answers, finite=finite)
    matrix, accuracy, deviations = both.matrix, both.accuracy, both.deviations
    before_too: tuple[Sample, ...] = ()
    if not finite:
        # Where an API contradicts itself, its old answers are one sample of what they might have been.
        then, rest = counted(strata, old.places, old.answers), 1.0 - both.coefficient
        noisy = _weighed_by(strata, old.places, old.answers, both.shift, finite=False)
        before_too = (replace(noisy, variance_weight=noisy.variance_weight * rest**2),)
        matrix += matrix_spread(then, strata.size, finite=False).times(rest)
        accuracy += accuracy_spread(then, strata.size, finite=False).times(rest)
        side = _on(then, both.shift.new.predictions)
        deviations = np.hypot(
            deviations,
            rest
            * entry_deviations(
                side, strata.size, rates=_rates(both.shift.old, both.shift), finite=False
            ),
        )
    return Estimate(
        both.shift,
        matrix,
        accuracy,
        deviations,
        now=(both.sample,),
        then=before_too,
        differing=both.differing,
    )


def by_pairs(both: Paired) -> Estimate:
    """Take the change from items that were answered on both sides, where neither matrix is known."""
    blind = both.accuracy.unanswered_share
    return Estimate(
        both.shift,
        both.matrix,
        both.accuracy,
        both.deviations,
        blind,
        now=(both.sample,),
        pairs=True,
        differing=both.differing,
    )


def _weighed_by(
    strata: Strata, places: Ints, answers: Column, shift: Shift, *, finite: bool
) -> Sample:
    """Give answers from strata (n,) as they are weighed, as places in the predictions of a shift."""
    place = {name: j for j, name in enumerate(shift.new.predictions)}
    code = np.array([place[name] for name in answers.values], np.int64)[answers.codes]
    stratum = strata.of(places).astype(np.int64)
    n = np.bincount(stratum, minlength=len(strata))
    fraction = np.where(n > 0, 1.0 / np.maximum(n, 1) - (1.0 / strata.size if finite else 0.0), 0.0)
    return Sample.by_strata(
        places,
        strata.label[stratum].astype(np.int64),
        code,
        None,
        coefficient=0.0,
        stratum=stratum,
        share=counted(strata, places, answers).group_share,
        fraction=np.maximum(fraction, 0.0),
        error=place.get(ERROR, -1),
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
    """Estimate the shift from answers to items that were asked with known chances; every item's old answer is known."""
    found = inverse_probability_estimate(
        layout,
        strata,
        places,
        answers,
        draws,
        old=old.answers,
        group=group,
        rest=rest,
        finite=finite,
    )
    blind = found.accuracy.unanswered_share
    known: dict[str, Any] = {
        "groups": found.groups,
        "now": (found.sample,),
        "differing": found.differing,
    }
    known |= {"pairs": old.weight is not None, "uncovered_share": old.uncovered_share}
    if finite or known["pairs"]:
        return Estimate(found.shift, found.matrix, found.accuracy, found.deviations, blind, **known)
    # Where an API contradicts itself, its old answers are one sample of what they might have been.
    then = counted(strata, old.places, old.answers)
    side = _on(then, found.shift.new.predictions)
    scatter = entry_deviations(
        side, strata.size, rates=_rates(found.shift.old, found.shift), finite=False
    )
    return Estimate(
        found.shift,
        found.matrix + matrix_spread(then, strata.size, finite=False),
        found.accuracy + accuracy_spread(then, strata.size, finite=False),
        np.hypot(found.deviations, scatter),
        blind,
        **known,
        then=(_weighed_by(strata, old.places, old.answers, found.shift, finite=False),),
    )


def _rates(matrix: Matrix, shift: Shift) -> Floats:
    """Give the share of each prediction within its label (L, P), for the old or the new matrix of a shift."""
    weight = shift.old.values.sum(axis=1, keepdims=True)
    return np.asarray(matrix.values / np.where(weight > 0.0, weight, 1.0))


def share_of(prediction: str, matrix: Matrix) -> float:
    """Give the share of all items that get a prediction."""
    return float(answered_so(prediction, matrix).sum())


def answered_so(prediction: str, matrix: Matrix) -> Floats:
    """Give the share of all items that are of a label (L,) and get a prediction."""
    place = matrix.predictions.index(prediction) if prediction in matrix.predictions else None
    return np.zeros(len(matrix.values)) if place is None else matrix.values[:, place]


def _on(tally: Tally, predictions: tuple[str, ...]) -> Tally:
    """Lay counts out on these predictions, which must name at least those that occur."""
    place = {name: j for j, name in enumerate(predictions)}
    column = np.array([place[name] for name in tally.predictions], np.int32)
    return replace(tally, predictions=predictions, cell_prediction=column[tally.cell_prediction])


def uniform_queries(found: Estimate, strata: Strata, *, finite: bool) -> int | None:
    """Give the queries that post-stratified uniform sampling needs for the same expected error, without the old answers."""
    now = found.shift.new.values
    weight = strata.label_weight[: len(now)]  # Items without a label come last.
    each = float(np.sum(weight - (now**2).sum(axis=1) / np.where(weight > 0.0, weight, 1.0)))
    if found.matrix.error2 <= 0.0 or each <= 0.0:
        return None
    return int(
        np.ceil(1.0 / (found.matrix.error2 / each + (1.0 / len(strata.items) if finite else 0.0)))
    )
