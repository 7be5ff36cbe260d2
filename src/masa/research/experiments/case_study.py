"""The paper's case study, Amazon on YELP: what the rule does and how large its error is."""

from math import ceil
from typing import Any

import numpy as np

from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.inference.counts import true_matrix, true_uncertainty
from masa.records import Floats, Matrix, in_order
from masa.research.cases import CASES, LoadedCase
from masa.research.experiments.error_path import summarised
from masa.research.finding import Finding, Sheet
from masa.research.study import CASE_BUDGET, PaperStudy, Part, one_run

TITLE = f"A case study: Amazon on YELP with {CASE_BUDGET:,} queries"
METHODS = ("uniform", "post-stratified", "masa", "optimal")

SIDES = {"0": "positive", "1": "negative"}
SIGNS = {"0": "+", "1": "-", "positive": "+", "negative": "-"}
"""The labels of YELP, in words and as signs."""
GRID_STEP = 40
"""Queries between two looks at how the rule has spread them."""


def case_study(study: PaperStudy) -> Finding:
    """Show strata, allocation of queries, matrices and error curves of the paper's first case."""
    case = CASES[0]
    if case not in study.cases:
        return _skipped("The data has no answers of Amazon's about YELP.")
    if len(Strata.build(study.load(case).data.label)) > CASE_BUDGET // 8:
        return _skipped("The data has too many labels for so few queries.")
    parts = study.parts("case-study", lambda loaded: _part(study, loaded), [case])
    part = parts[case]
    sheets = (_strata_sheet(part), _allocation_sheet(part), _matrices_sheet(part))
    errors = Sheet(
        "errors", ("method", "queries", "mean squared error"), tuple(map(tuple, part["errors"]))
    )
    return Finding("case-study", TITLE, tuple(_words(study, part)), (*sheets, errors))


def _skipped(reason: str) -> Finding:
    return Finding("case-study", TITLE, (), (), skipped=reason)


def _strata_sheet(part: Part) -> Sheet:
    head = (
        "stratum",
        "items",
        "uncertainty score",
        "queries, mean of the runs",
        "queries of the optimum",
    )
    rows = zip(
        part["strata"],
        part["sizes"],
        part["scores"],
        part["spread"][-1],
        part["optimum"],
        strict=True,
    )
    return Sheet("strata", head, tuple(rows))


def _allocation_sheet(part: Part) -> Sheet:
    rows = []
    for at, queries in enumerate(part["grid"]):
        for stratum, name in enumerate(part["strata"]):
            one_run_spent, mean_spent = part["one"][at][stratum], part["spread"][at][stratum]
            optimum = part["optimum"][stratum] * queries / CASE_BUDGET
            rows.append((queries, name, one_run_spent, mean_spent, optimum))
    head = ("queries", "stratum", "queries in it, one run", "queries in it, mean", "optimum")
    return Sheet("allocation", head, tuple(rows))


def _matrices_sheet(part: Part) -> Sheet:
    rows = [
        (kind, label, prediction, value)
        for kind, entries in part["matrices"].items()
        for label, prediction, value in entries
    ]
    return Sheet("matrices", ("matrix", "label", "prediction", "items (%)"), tuple(rows))


def _words(study: PaperStudy, part: Part) -> list[str]:
    names, at = part["strata"], part["at"]
    least = names[int(np.argmin(part["scores"]))]
    most = names[int(np.argmax(part["scores"]))]
    over_optimum = ", ".join(
        f"{name} {_times(spent, best)}"
        for name, spent, best in zip(names, part["spread"][-1], part["optimum"], strict=True)
    )
    words = [
        "Strata: positive (+) and negative (-) texts, split at the median of "
        f"{part['by']} into low (l) and high (h), as the paper splits by the quality score of the "
        "2020 version.",
        f"Squared error at {CASE_BUDGET:,} queries over {study.runs:,} runs: masa "
        f"{at['masa']:.2e}, uniform {at['uniform']:.2e} ({_times(at['uniform'], at['masa'])}), "
        f"post-stratified uniform {at['post-stratified']:.2e} "
        f"({_times(at['post-stratified'], at['masa'])}). The paper compares with uniform sampling "
        "only.",
        f"Least uncertain: {least}, most: {most}. The paper finds sure positive texts (+h) hardly "
        "uncertain, and negative texts more uncertain than positive ones. Queries spent over the "
        f"optimum's: {over_optimum}; the paper finds them close.",
    ]
    if not part["dates"]:
        words.append(
            "There is one date only, so there is no shift to show. The error of a shift is that of "
            "the new matrix, since the old one is known, so the error curves are what they would "
            "be with two dates."
        )
    return words


def _times(number: float, other: float) -> str:
    if other <= 0:
        return "the other is 0"
    return f"{number / other:.3g} times"


def _part(study: PaperStudy, case: LoadedCase) -> Part:
    data, by = case.data, case.difficulty
    if case.own is not None:
        data, by = case.by_itself, "the API's own confidence"
    strata = Strata.build(data.label, difficulty=data.difficulty, levels=2)
    # From where every stratum has two answers, in round numbers.
    first = GRID_STEP * ceil(2 * len(strata) / GRID_STEP)
    grid = np.arange(first, CASE_BUDGET + 1, GRID_STEP)
    s2 = true_uncertainty(strata, case.answers, replacement=True)
    # The optimum spends queries in proportion to p s.
    ideal = strata.weight * np.sqrt(s2)
    mean_allocation = study.trace(strata, case.answers, grid).allocation
    one_allocation = study.trace(strata, case.answers, grid, runs=1).allocation
    curves = study.replay(data, case, METHODS, replacement=True, levels=2)
    errors = [
        (method, queries, mse)
        for method, curve in curves.items()
        for queries, mse in summarised(curve)["path"]
        if 100 <= queries <= 2 * CASE_BUDGET
    ]
    error_at_budget = {
        method: curve.mean_squared_error[curve.queries.index(CASE_BUDGET)]
        for method, curve in curves.items()
    }
    return {
        "by": by,
        "dates": case.old is not None,
        "strata": _stratum_names(data, strata),
        "sizes": strata.size.tolist(),
        "scores": s2.tolist(),
        "grid": grid.tolist(),
        "one": one_allocation.tolist(),
        "spread": mean_allocation.tolist(),
        "optimum": (CASE_BUDGET * ideal / (ideal.sum() or 1.0)).tolist(),
        "errors": errors,
        "at": error_at_budget,
        "matrices": _matrices(study, case, strata),
    }


def _stratum_names(data: Dataset, strata: Strata) -> list[str]:
    """Name each stratum by the sign of its label and, if there are levels, l or h."""
    names = []
    for label, level in zip(strata.label, strata.level, strict=True):
        name = SIGNS.get(strata.labels[label], f"{strata.labels[label]} ")
        if data.difficulty is not None:
            name += "lh"[level]
        names.append(name)
    return names


def _matrices(study: PaperStudy, case: LoadedCase, strata: Strata) -> dict[str, list[Any]]:
    """List the entries of the true and the estimated matrix and their differences, in percent."""
    true = true_matrix(strata, case.answers)
    estimated = Matrix(
        true.labels,
        true.predictions,
        one_run(strata, case.answers, CASE_BUDGET, seed=study.seed, replacement=True),
    )
    old = None
    all_predictions = true.predictions
    if case.old is not None:
        old = true_matrix(strata, case.data.predictions[case.old])
        # An answer may occur on one date only.
        all_predictions = (*true.predictions, *old.predictions)
    columns = in_order(all_predictions)
    new_values = true.on(columns).values.ravel()
    estimate = estimated.on(columns).values.ravel()
    matrices: dict[str, Floats] = {
        "true": new_values,
        "estimated": estimate,
        "estimated less true": estimate - new_values,
    }
    if old is not None:
        old_values = old.on(columns).values.ravel()
        matrices["old"] = old_values
        matrices["true shift"] = new_values - old_values
        matrices["estimated shift"] = estimate - old_values
    places = [
        (SIDES.get(label, label), SIDES.get(prediction, prediction))
        for label in true.labels
        for prediction in columns
    ]
    return {
        kind: [
            (label, prediction, 100 * float(value))
            for (label, prediction), value in zip(places, values, strict=True)
        ]
        for kind, values in matrices.items()
    }
