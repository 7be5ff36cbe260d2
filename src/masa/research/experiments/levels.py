"""The number of levels K: how it changes the error of the paper's rule."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from masa.research.cases import LoadedCase, PaperCase
from masa.research.experiments.error_path import EXACT, ErrorPath, squared_error_at, summarised
from masa.research.finding import Finding, Sheet
from masa.research.study import PaperStudy, Part

TITLE = "The number of levels K"
STUDIED = (1, 2, 3, 5, 10)
"""The numbers of levels that are compared."""


def levels(study: PaperStudy) -> Finding:
    """Replay the paper's rule with several numbers of levels of difficulty."""

    def make(case: LoadedCase) -> Part:
        part = {}
        for count in STUDIED:
            curves = study.replay(case.data, case, ["masa"], replacement=True, levels=count)
            # As text, since the part is kept as JSON, whose keys are texts.
            part[str(count)] = summarised(curves["masa"])
        return part

    parts = study.parts("levels", make)
    needed = tuple(
        (str(case), *(part[str(count)]["needed"] for count in STUDIED))
        for case, part in parts.items()
    )
    sheets = (
        _errors_sheet(parts),
        _relative_sheet(parts),
        Sheet("needed", ("case", *(f"K = {count}" for count in STUDIED)), needed),
    )
    return Finding("levels", TITLE, (_words(needed), *study.missing), sheets)


def _errors_sheet(parts: Mapping[PaperCase, Part]) -> Sheet:
    rows = []
    for case, part in parts.items():
        for count, curve in part.items():
            for queries, mse in curve["path"]:
                if mse > EXACT:
                    rows.append((str(case), int(count), queries, mse))
    return Sheet("levels", ("case", "K", "queries", "mean squared error"), tuple(rows))


def _relative_sheet(parts: Mapping[PaperCase, Part]) -> Sheet:
    rows = []
    for case, part in parts.items():
        one_level = part["1"]["path"]
        grid = _common_queries([curve["path"] for curve in part.values()])
        for count in STUDIED:
            path = part[str(count)]["path"]
            for queries in grid:
                ratio = squared_error_at(path, queries) / squared_error_at(one_level, queries)
                rows.append((str(case), count, queries, ratio))
    return Sheet(
        "relative", ("case", "K", "queries", "squared error relative to K = 1"), tuple(rows)
    )


def _common_queries(paths: Sequence[ErrorPath]) -> list[int]:
    """Choose numbers of queries, from 250 on where there are so many, that all curves reach."""
    last = min(path[-1][0] for path in paths)
    grid = np.unique(np.geomspace(min(250, last), last, 14).astype(np.int64))
    return [int(queries) for queries in grid]


def _words(needed: Sequence[Sequence[Any]]) -> str:
    known = [row for row in needed if None not in row]
    best = [STUDIED[int(np.argmin(row[1:]))] for row in known]
    wins = ", ".join(f"K = {count} in {best.count(count)}" for count in STUDIED if count in best)
    # The first column is the case.
    ten, three = 1 + STUDIED.index(10), 1 + STUDIED.index(3)
    worse = [row for row in known if row[ten] > row[three]]
    return (
        "The paper: 'larger number of partitions usually leads to smaller estimation error for "
        "large samples', and K = 3 is enough. Fewest queries for 1%: "
        f"{wins} of {len(needed)} cases; K = 10 needs more than K = 3 in {len(worse)}. What K "
        "gains over one level a label is what the difficulty tells about the API's mistakes, and "
        "each stratum costs two queries before it tells anything."
    )
