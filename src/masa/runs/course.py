"""How a run went: how its error fell, where its queries went, how its result was made."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from masa.data.dataset import Dataset
from masa.inference.estimate import Estimate
from masa.inference.method import Method
from masa.inference.readings import Reader
from masa.inference.trial import conclusion
from masa.records import UNLABELLED, Floats, Ints, LabelQueries, Made, Step
from masa.sampling.asked import Asked
from masa.settings import Settings
from masa.storage import history
from masa.storage.history import Run

FEWEST = 10
"""Answers before which no step is shown."""

STEPS = 7
"""The most steps before the last one."""

PRIOR_ANSWERS = 10.0
"""How many answers the share of changes of all labels counts for, in that of each."""


def steps(
    method: Method, asked: Asked, last: Estimate | None, confidence: float
) -> tuple[Step, ...]:
    """Say what was known after some of the answers, and at the end."""
    assert method.old is not None  # noqa: S101 - an assessment has a baseline
    found = []
    for count in _counts(len(asked.answers)):
        now = conclusion(method, method.old, _first(asked, count), None).estimate
        if now is not None:
            found.append(_step(now, count, confidence))
    if last is not None:
        found.append(_step(last, len(asked.answers), confidence))
    return tuple(found)


def _counts(answers: int) -> Iterator[int]:
    """Give the numbers of answers to look at: each half as many again as the one before."""
    counts: list[int] = []
    count = answers / 1.5
    while count >= FEWEST and len(counts) < STEPS:
        counts.append(int(count))
        count /= 1.5
    return reversed(counts)


def _first(asked: Asked, count: int) -> Asked:
    """Keep the first answers, in the order in which they were asked for."""
    found = Asked()
    for item, query in asked.queries.items():
        if len(found.answers) >= count:
            break
        if item in asked.answers:
            found.sent(query)
            found.tell(asked.answers[item])
    return found


def _step(found: Estimate, count: int, confidence: float) -> Step:
    change = Reader(found, confidence).accuracy()
    return Step(count, found.bound(confidence), change.estimate, change.low, change.high)


def label_queries(method: Method, found: Estimate | None, places: Ints) -> tuple[LabelQueries, ...]:
    """Say how many answers each label got, and how many the best allocation would give it.

    The best is in proportion to the weight of a label and the standard deviation of a change of
    its answers, as they are estimated in the end; no label gets more than it has items.
    """
    strata = method.strata
    # Items without a label are no row of the matrix; their label is the last.
    labels = len(strata.labels) - (UNLABELLED in strata.labels)
    items = np.bincount(strata.label, strata.size, labels).astype(np.int64)[:labels]
    got = np.bincount(strata.label[strata.of(places)], minlength=labels)[:labels]
    best = got.astype(np.float64)
    if found is not None and len(places):
        best = _allocated(
            strata.label_weight[:labels] * _deviation(found, got), items, int(got.sum())
        )
    return tuple(
        LabelQueries(name, int(items[row]), int(got[row]), round(float(best[row]), 1))
        for row, name in enumerate(strata.labels[:labels])
    )


def _deviation(found: Estimate, answers: Ints) -> Floats:
    """Give the standard deviation of a change of an answer, by label (L,)."""
    old, values = found.shift.old.values, found.shift.values
    weight = np.maximum(old.sum(axis=1), 1e-12)
    rate = np.abs(values).sum(axis=1) / weight / 2.0
    if found.differing is not None:
        # Changes that cancel out are not in the shift: the rate of all items counts, too.
        rate = (rate * answers + found.differing * PRIOR_ANSWERS) / (answers + PRIOR_ANSWERS)
    mean = (values / weight[:, None]) ** 2
    return np.asarray(np.sqrt(np.maximum(2.0 * rate - mean.sum(axis=1), rate**2)))


def _allocated(share: Floats, items: Ints, queries: int) -> Floats:
    """Give queries in proportion to a share (L,), none more than its items."""
    best = np.zeros(len(share))
    open_rows = share > 0.0
    left = float(min(queries, items.sum()))
    while left > 1e-9 and open_rows.any():
        wanted = left * share * open_rows / share[open_rows].sum()
        full = open_rows & (best + wanted >= items)
        if not full.any():
            return np.asarray(best + wanted)
        left -= float((items - best)[full].sum())
        best[full] = items[full]
        open_rows &= ~full
    return best


def made(run: Run, data: Dataset, baseline: str, settings: Settings, *, budget: int | None) -> Made:
    """Say how the result of a run was made."""
    from importlib.metadata import version

    return Made(
        masa=version("masa-shift"),
        name=run.name,
        began=run.created,
        ended=history.now(),
        data=run.data,
        source=Path(data.source).name,
        api=without_secrets(str(run.comparable.get("api", ""))),
        baseline=baseline,
        settings={**settings.to_dict(), "seed": run.seed, "budget": budget},
    )


def without_secrets(api: str) -> str:
    """Take out of an address what may be a password: a user, and what follows a question mark.

    >>> without_secrets("POST https://me:word@api.example.com/v1?key=1 of mine")
    'POST https://api.example.com/v1 of mine'
    """
    return re.sub(r"\?\S*", "", re.sub(r"//[^/@\s]*@", "//", api))
