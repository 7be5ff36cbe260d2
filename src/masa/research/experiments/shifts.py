"""Real shifts beside their estimates, where an API was asked on two dates."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from masa.data.dataset import Dataset, read
from masa.data.strata import Strata
from masa.errors import DataError
from masa.inference.counts import true_matrix
from masa.records import Floats, Matrix, Shift
from masa.research.cases import LoadedCase, PaperCase
from masa.research.finding import Finding, Sheet
from masa.research.published import CONFIDENCE, PREDICTION, Stored
from masa.research.study import CASE_BUDGET, LEVELS, PaperStudy, Part, one_run
from masa.runs.assess import assess

TITLE = f"Real shifts and their estimates with up to {CASE_BUDGET:,} queries"
SHIFT_RUNS = 200
"""Replays per method at most: our best method needs more time per run."""
SHIFTS_HEAD = (
    "data set",
    "from",
    "to",
    "estimate",
    "queries",
    "change of accuracy (points)",
    "answers changed (%)",
    "error of one run (%)",
    "root mean squared error (%)",
)
ENTRIES_HEAD = (
    "data set",
    "from",
    "to",
    "label",
    "prediction",
    "true (%)",
    "masa (%)",
    "auto (%)",
)


def shifts(study: PaperStudy) -> Finding:
    """Compare the true shift with what masa and our best method estimate, for each two dates."""
    pairs = [(found, pair) for found in study.sets for pair in found.pairs]
    if not pairs:
        reason = (
            "Every API of this data was asked on one day only; import data with two dates (masa "
            "import hapi, llmdrift or table)."
        )
        return Finding("shifts", TITLE, (), (), skipped=reason)
    rows: list[Sequence[Any]] = []
    entries: list[Sequence[Any]] = []
    for number, (found, (old, new)) in enumerate(pairs):
        study.show_progress(f"shifts: {found.name}, {old} to {new}", number / len(pairs))
        confidence = None
        if old in found.confident:
            confidence = old + CONFIDENCE
        part = study.kept(
            {"what": "shifts", "case": found.name, "old": old},
            _load(found, old, new, confidence),
            partial(_part, study, confidence=confidence),
        )
        rows += [(found.name, old, new, *row) for row in part["rows"]]
        entries += [(found.name, old, new, *entry) for entry in part["entries"]]
    words = (
        "One assessment a method on recorded answers, each item asked once, and the root of the "
        f"mean squared error over {min(study.runs, SHIFT_RUNS)} of them. 'Nothing changed' is what "
        "one may say for free: its error is the norm of the shift.",
        "`masa`, the paper's rule, knows the old matrix; `auto`, our best, also knows what was "
        "answered to each item before.",
    )
    sheets = (
        Sheet("shifts", SHIFTS_HEAD, tuple(rows)),
        Sheet("entries", ENTRIES_HEAD, tuple(entries)),
    )
    return Finding("shifts", TITLE, words, sheets)


def _load(found: Stored, old: str, new: str, confidence: str | None) -> LoadedCase:
    """Read two dates of an API, with its confidence on the first as the difficulty."""
    numbers = []
    if confidence is not None:
        numbers.append(confidence)
    data = read(
        found.path,
        label="label",
        id="id",
        predictions=[old + PREDICTION, new + PREDICTION],
        numbers=numbers,
    )
    if confidence is not None:
        data = replace(data, difficulty=data.numbers[confidence])
    return LoadedCase(
        # None of the paper's 12, so it has no figures of the paper's.
        PaperCase(new, found.name, masa=0, uniform=0, saved=0),
        data,
        new=new + PREDICTION,
        old=old + PREDICTION,
        cheap=None,
        difficulty="",
        own=None,
    )


def _part(study: PaperStudy, case: LoadedCase, confidence: str | None) -> Part:
    data, old, new = case.data, case.old or "", case.new
    strata = Strata.build(data.label)
    truth = Shift(
        true_matrix(strata, data.predictions[old]), true_matrix(strata, data.predictions[new])
    )
    budget = max(1, min(CASE_BUDGET, len(data) // 2))
    curves = study.replay(
        data,
        case,
        ("masa", "auto"),
        old=old,
        old_confidence=confidence,
        budgets=[budget],
        runs=min(study.runs, SHIFT_RUNS),
        # Met at once: only the error at the budget is of interest.
        target_error=0.9,
    )
    found = {
        "masa": Shift(truth.old, _masa_estimate(study, data, new, budget)),
        "auto": _auto_estimate(study, data, old, new, budget, confidence),
    }
    changed = float(np.mean(_texts(data, old) != _texts(data, new)))
    rows: list[Sequence[Any]] = [
        ("the truth", len(data), 100 * truth.accuracy.change, 100 * changed, 0.0, 0.0),
        ("nothing changed", 0, 0.0, 0.0, 100 * truth.norm, 100 * truth.norm),
    ]
    for method, shift in found.items():
        rows.append(
            (
                method,
                budget,
                100 * shift.accuracy.change,
                None,
                100 * shift.error(truth),
                100 * curves[method].root_mean_squared_error[0],
            )
        )
    return {"rows": rows, "entries": _entries(truth, found)}


def _texts(data: Dataset, column: str) -> Any:
    """List the answers of a column as text (n,)."""
    answers = data.predictions[column]
    return np.array(answers.values, object)[answers.codes]


def _masa_estimate(study: PaperStudy, data: Dataset, new: str, budget: int) -> Matrix:
    """Estimate the new matrix by one run of the paper's rule."""
    strata = Strata.build(data.label, difficulty=data.difficulty, levels=LEVELS)
    answers = data.predictions[new]
    values = one_run(strata, answers, budget, seed=study.seed, replacement=False)
    return Matrix(strata.labels, answers.values, values)


def _auto_estimate(
    study: PaperStudy, data: Dataset, old: str, new: str, budget: int, confidence: str | None
) -> Shift:
    """Estimate the shift by one assessment as masa assess does it."""
    found = assess(
        data,
        f"replay:{new}",
        baseline=old,
        budget=budget,
        seed=study.seed,
        old_confidence=confidence,
        store=None,
        fresh=True,
    )
    if found.shift is None:
        raise DataError(
            f"{data.source}: no answer to estimate a shift from",
            hint="look at the answers in the file",
        )
    return found.shift


def _entries(truth: Shift, found: dict[str, Shift]) -> list[Sequence[Any]]:
    """List the entries of the true shift and of both estimates, in percent."""
    columns = truth.new.predictions
    masa, auto = (
        found[method].new.on(columns).values - found[method].old.on(columns).values
        for method in ("masa", "auto")
    )
    shown: tuple[Floats, ...] = (truth.values, masa, auto)
    return [
        (label, prediction, *(100 * float(values[i, j]) for values in shown))
        for i, label in enumerate(truth.new.labels)
        for j, prediction in enumerate(columns)
    ]
