"""The experiments of the paper's study: one file per table or figure, and the table of them all.

Each file has a function of the same name that takes the study and returns a `Finding`. What several
share has a file of its own: `error_path` (an error curve as tables show it), `all_methods` (replays
of every method), `paper_bound` (the paper's stopping rule), `number_range` (ranges in words) and
`data_folder` (the data sets to study). Charts, pages and the terminal are not here: see `figures`,
`book` and `summary`.

Chen, Cai, Zaharia and Zou: Did the Model Change? Efficiently Assessing Machine Learning API Shifts,
2021.
"""

from collections.abc import Callable

from masa.errors import UsageError
from masa.research.experiments import (
    case_study,
    convergence,
    datasets,
    levels,
    overview,
    shifts,
    speed,
    table1,
    tradeoffs,
)
from masa.research.experiments.data_folder import data_sets
from masa.research.finding import Finding
from masa.research.study import PaperStudy

__all__ = ["EXPERIMENTS", "data_sets", "find", "wanted"]

EXPERIMENTS: dict[str, Callable[[PaperStudy], Finding]] = {
    "datasets": datasets.datasets,
    "overview": overview.overview,
    "case-study": case_study.case_study,
    "table1": table1.table1,
    "tradeoffs": tradeoffs.tradeoffs,
    "levels": levels.levels,
    "convergence": convergence.convergence,
    "shifts": shifts.shifts,
    "speed": speed.speed,
}
"""What can be reproduced, in the order of `all`."""

NEED_A_CASE = {
    "table1": table1.TITLE,
    "tradeoffs": tradeoffs.TITLE,
    "levels": levels.TITLE,
    "convergence": convergence.TITLE,
    "speed": speed.TITLE,
}
"""The experiments that need at least one of the paper's cases, and their titles."""


def find(study: PaperStudy, what: str) -> Finding:
    """Carry out one experiment, or say why the data does not allow it."""
    if what in NEED_A_CASE and not study.cases:
        reason = (
            "The data has none of the paper's 12 cases: an API of one of its vendors on one of its "
            "data sets."
        )
        return Finding(what, NEED_A_CASE[what], (), (), skipped=reason)
    return EXPERIMENTS[what](study)


def wanted(what: str) -> tuple[str, ...]:
    """List the experiments that a user means: one by its name, or `all`."""
    if what == "all":
        return tuple(EXPERIMENTS)
    if what not in EXPERIMENTS:
        raise UsageError(
            f"there is nothing called {what!r} to reproduce",
            hint=f"there are {', '.join(EXPERIMENTS)} and all",
        )
    return (what,)
