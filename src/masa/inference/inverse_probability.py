"""Estimate a change from answers to items that were drawn with known inclusion probabilities."""

from dataclasses import dataclass, replace

import numpy as np

from masa.data.strata import Strata
from masa.inference.counts import (
    make_possible,
    matrix_spread,
    stratum_reports,
    true_matrix,
    variance_fraction,
)
from masa.inference.sample import Sample
from masa.inference.spread import Spread
from masa.inference.weighted_answers import RepresentedWeights, WeightedAnswers
from masa.records import Column, Floats, Ints, Matrix, Shift, in_order
from masa.sampling.draws import Draws
from masa.sampling.layout import Layout
from masa.sampling.stratified import counted


@dataclass(frozen=True, slots=True, eq=False)
class InverseProbabilityEstimate:
    """A shift estimated by inverse inclusion probabilities, with its errors."""

    shift: Shift
    matrix: Spread
    deviations: Floats
    """(L, P) the standard error of each entry of the shift"""
    sample: Sample
    """the answers, coded as places in the predictions of the shift"""
    represented: RepresentedWeights
    """what each of the answers represents"""
    stratum: Ints | None = None
    """(n,) the stratum of each answer after a switch to strata, -1 before it"""


def inverse_probability_estimate(
    layout: Layout,
    strata: Strata,
    places: Ints,
    answers: Column,
    draws: Draws,
    *,
    old: Column,
    rest: Strata | None = None,
    finite: bool = True,
) -> InverseProbabilityEstimate:
    """Estimate the shift from the answers about these places (n,).

    Old are the baseline answers of all items (N,). Strata are only used for reports and label
    weights; rest are the strata inside which items were drawn after the switch to stratified
    sampling. Labels without answers are taken to have changed as the others did, but anything may
    have become of them: their share is the `unanswered_share` of the matrix.
    """
    before = true_matrix(strata, old)
    names = in_order(before.predictions + answers.values)
    weighted = WeightedAnswers.of(layout, names, places, answers, draws, finite=finite)
    answered = np.bincount(weighted.label, minlength=len(layout.labels)) > 0
    label_weight = strata.label_weight

    values = before.on(names).values
    after = values + weighted.shift()
    make_possible(after, label_weight, layout.labels, names)

    spreads = weighted.spreads(float(label_weight[~answered].sum()))
    deviations = spreads.deviations
    # An entry of a label without answers may have changed by up to the weight of the label.
    deviations[~answered] = label_weight[~answered, None]
    found = InverseProbabilityEstimate(
        Shift(
            Matrix(layout.labels, names, values),
            Matrix(layout.labels, names, after),
            stratum_reports(counted(strata, places, answers), strata),
        ),
        spreads.matrix,
        deviations,
        weighted.sample(),
        RepresentedWeights.of(layout, places, draws, finite=True),
    )
    if rest is None or not (draws.probability == 0.0).any():
        return found
    return _no_surer_than_strata(found, rest, places, answers, draws, finite=finite)


def _no_surer_than_strata(
    found: InverseProbabilityEstimate,
    rest: Strata,
    places: Ints,
    answers: Column,
    draws: Draws,
    *,
    finite: bool,
) -> InverseProbabilityEstimate:
    """Make errors at least as large as those of the strata that were asked after the switch.

    Strata were chosen by their answers: those without a mistake are asked little, and may have
    some.
    """
    inside = draws.probability == 0.0
    later = places[inside]
    stratum = rest.of(later).astype(np.int64)
    tally = counted(rest, later, Column(answers.name, answers.values, answers.codes[inside]))
    # The strata hold only the items that were not asked before the switch.
    asked_before = np.bincount(rest.of(places[~inside]), minlength=len(rest))
    left = np.maximum(rest.size - asked_before, 1)
    matrix = matrix_spread(tally, left, finite=finite)
    if found.matrix.bound() >= matrix.bound():
        matrix = found.matrix
    sample = found.sample
    view = Sample.by_strata(
        later,
        sample.label[inside],
        sample.new[inside],
        sample.old[inside],
        coefficient=0.0,
        stratum=stratum,
        share=tally.group_share,
        fraction=variance_fraction(tally.group_answers, left, finite=finite),
        error=sample.error,
    )
    late_stratum = np.full(len(places), -1)
    late_stratum[inside] = stratum
    sample = replace(sample, stratified_view=view)
    return replace(found, matrix=matrix, sample=sample, stratum=late_stratum)
