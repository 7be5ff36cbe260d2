"""Error against queries: how the squared error of each method falls, case by case."""

from collections.abc import Mapping

from masa.research.cases import PaperCase
from masa.research.experiments.all_methods import all_methods
from masa.research.experiments.error_path import EXACT, squared_error_at
from masa.research.experiments.number_range import number_range
from masa.research.finding import Finding, Sheet
from masa.research.study import BUDGETS, CASE_BUDGET, PaperStudy, Part

TITLE = "Error against queries"
HEAD = ("case", "method", "queries", "mean squared error")


def tradeoffs(study: PaperStudy) -> Finding:
    """List the mean squared error of each method by number of queries, case by case."""
    parts = all_methods(study)
    rows = []
    for case, part in parts.items():
        curves = {**part["again"], "masa, each item once": part["once"]["masa"]}
        for method, curve in curves.items():
            for queries, mse in curve["path"]:
                # The chart has a logarithmic axis.
                if mse > EXACT:
                    rows.append((str(case), method, queries, mse))
    words = [*_words(parts), *study.missing]
    return Finding("tradeoffs", TITLE, tuple(words), (Sheet("tradeoffs", HEAD, tuple(rows)),))


def _words(parts: Mapping[PaperCase, Part]) -> list[str]:
    uniform = _times_masa(parts, "uniform", CASE_BUDGET)
    if not uniform:
        return []
    post_stratified = _times_masa(parts, "post-stratified", CASE_BUDGET)
    above_ten = sum(ratio > 10 for ratio in uniform.values())
    early = _times_masa(parts, "uniform", BUDGETS[0])
    late = _times_masa(parts, "uniform", BUDGETS[-1])
    growth = number_range(late[case] / early[case] for case in late if case in early)
    return [
        f"With {CASE_BUDGET:,} queries uniform sampling has {number_range(uniform.values())} times "
        f"the squared error of masa, above 10 times in {above_ten} of {len(uniform)} cases; the "
        "paper's text says 'usually an order of magnitude'. Post-stratified uniform sampling has "
        f"{number_range(post_stratified.values())} times.",
        "The paper says that the gap to uniform sampling remains stable. From "
        f"{BUDGETS[0]:,} to {BUDGETS[-1]:,} queries the ratio of the squared errors grows by "
        f"{growth} times.",
    ]


def _times_masa(
    parts: Mapping[PaperCase, Part], method: str, queries: int
) -> dict[PaperCase, float]:
    """Divide the squared error of a method by that of masa, where masa's is not 0."""
    ratios = {}
    for case, part in parts.items():
        error = squared_error_at(part["again"][method]["path"], queries)
        masa = squared_error_at(part["again"]["masa"]["path"], queries)
        if masa > 1e-12:
            ratios[case] = error / masa
    return ratios
