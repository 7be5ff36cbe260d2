"""How much accuracy changed, API by data set."""

import re
from collections.abc import Sequence
from typing import Any

from masa.data.dataset import read
from masa.data.strata import Strata
from masa.inference.counts import true_matrix
from masa.research.finding import Finding, Sheet
from masa.research.published import PREDICTION, Stored
from masa.research.study import PaperStudy

TITLE = "How much accuracy changed, API by data set"
HEAD = (
    "data set",
    "api",
    "years",
    "from",
    "to",
    "accuracy then (%)",
    "accuracy now (%)",
    "change (points)",
    "more than 1 point",
)
YEARS, CHANGE, LARGE = (
    HEAD.index(column) for column in ("years", "change (points)", "more than 1 point")
)


def overview(study: PaperStudy) -> Finding:
    """Measure the change of accuracy of each API between consecutive dates."""
    pairs = [(found, pair) for found in study.sets for pair in found.pairs]
    if not pairs:
        reason = (
            "Every API of this data was asked on one day only. The change of accuracy needs two: "
            "the authors' HAPI has 2020, 2021 and 2022 (masa import hapi PATH)."
        )
        return Finding("overview", TITLE, (), (), skipped=reason)
    rows = []
    for number, (found, (old, new)) in enumerate(pairs):
        study.show_progress(f"overview: {found.name}", number / len(pairs))
        rows.append(_row(found, old, new))
    words = []
    for years in dict.fromkeys(row[YEARS] for row in rows):
        changes = [row for row in rows if row[YEARS] == years]
        large = [row for row in changes if row[LARGE]]
        worse = [row for row in large if row[CHANGE] < 0]
        words.append(
            f"From {years} accuracy changed by more than 1 point in {len(large)} of {len(changes)} "
            f"cases, for the worse in {len(worse)} of them."
        )
    words.append("The paper: 12 of 36, from spring 2020 to spring 2021.")
    return Finding("overview", TITLE, tuple(words), (Sheet("overview", HEAD, tuple(rows)),))


def _row(found: Stored, old: str, new: str) -> Sequence[Any]:
    columns = [old + PREDICTION, new + PREDICTION]
    data = read(found.path, label="label", id="id", predictions=columns)
    strata = Strata.build(data.label)
    then, now = (true_matrix(strata, data.predictions[column]).accuracy for column in columns)
    return (
        found.name,
        old.partition("@")[0],
        _years(old, new),
        _date(old),
        _date(new),
        100 * then,
        100 * now,
        100 * (now - then),
        abs(now - then) > 0.01,
    )


def _date(name: str) -> str:
    return name.partition("@")[2]


def _years(old: str, new: str) -> str:
    """Name two dates by their years if they are dates such as 20-03-29, else as they are.

    >>> _years("google@20-03-29", "google@21-02-16"), _years("vader@2.5", "vader@3.2.1")
    ('2020 to 2021', '2.5 to 3.2.1')
    """
    dates = [_date(old), _date(new)]
    if all(re.fullmatch(r"(20)?\d\d-\d\d-\d\d", date) for date in dates):
        dates = [f"20{date[-8:-6]}" for date in dates]
    return " to ".join(dates)
