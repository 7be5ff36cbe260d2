"""The paper's study on real predictions: its tables and figures, its published numbers beside ours.

Chen, Cai, Zaharia and Zou: Did the Model Change? Efficiently Assessing Machine Learning API Shifts, 2021.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from masa.data.dataset import Dataset, read
from masa.data.strata import Strata
from masa.errors import DataError, UsageError
from masa.inference.counts import true_matrix, true_uncertainty
from masa.records import Curve, Floats, Ints, Matrix, Shift, in_order
from masa.research.finding import Finding, Sheet
from masa.research.published import (
    CONFIDENCE,
    PARTIAL,
    PREDICTION,
    Stored,
    collections,
    layout_of,
    save,
    stored,
)
from masa.research.study import (
    BUDGETS,
    CASES,
    CONFIDENT,
    ERROR,
    LEVELS,
    Case,
    Loaded,
    Part,
    Study,
    one_run,
    plain,
    told,
)
from masa.runs.assess import assess
from masa.sampling import stratified as sampler

STUDIED = (1, 2, 3, 5, 10)
"""Numbers of levels whose effect is looked at."""
FAR = 32_768
"""Queries up to which the rule is watched to converge."""
FINE = 1.01
CASE_BUDGET = 2_000
SHIFT_RUNS = 200
"""Runs of the comparison on real shifts at the most: our best method thinks for longer."""
SPEED_RUNS = 400
HOEFFDING = log(2 / (1 - CONFIDENT)) / 2
"""c such that the mean of n Bernoulli variables is within sqrt(c/n) of its expectation with a chance of 95%."""
CONSTANTS = (0.0, *np.geomspace(0.01, 4_000, 57).tolist())
WITH_REPLACEMENT = ("uniform", "stratified", "post-stratified", "masa", "optimal")
EACH_ONCE = ("post-stratified", "masa", "adaptive")
FEW_RUNS = 100
"""Below this, shares of runs tell little."""

SETS = {
    "yelp": ("SA", 20_000, 2),
    "imdb": ("SA", 25_000, 2),
    "waimai": ("SA", 11_987, 2),
    "shop": ("SA", 62_774, 2),
    "ferplus": ("FER", 6_358, 7),
    "rafdb": ("FER", 15_339, 7),
    "expw": ("FER", 31_510, 7),
    "afnet": ("FER", 87_401, 7),
    "digit": ("STT", 2_000, 10),
    "amnist": ("STT", 30_000, 10),
    "command": ("STT", 64_727, 31),
    "fluent": ("STT", 30_043, 31),
}
"""The paper's data sets: task, items and classes as it prints them."""

PRICES = {
    "SA": {"google": 2.5, "amazon": 0.75, "baidu": 3.5},
    "FER": {"google": 15.0, "microsoft": 10.0, "facepp": 5.0},
    "STT": {"google": 60.0, "microsoft": 41.0, "ibm": 25.0},
}
"""US dollars for 10,000 queries, as the paper prints them."""

SIDES = {"0": "positive", "1": "negative"}
SIGNS = {"0": "+", "1": "-", "positive": "+", "negative": "-"}
"""The labels of YELP, in words and in signs."""


def datasets(study: Study) -> Finding:
    """Tell sizes, classes, prices, and how often each API is right."""
    rows: list[Sequence[Any]] = []
    for number, found in enumerate(study.sets):
        study.say(f"datasets: {found.name}", number / len(study.sets))
        task, items, classes = SETS.get(found.name, (found.task.upper(), None, None))
        data = read(
            found.path,
            label="label",
            id="id",
            predictions=[name + PREDICTION for name in found.recorded],
        )
        strata = Strata.build(data.label)
        for name in found.recorded:
            api = name.split("@")[0]
            matrix = true_matrix(strata, data.predictions[name + PREDICTION])
            odd = len(set(matrix.predictions) - set(data.labels))
            price = found.prices.get(api, PRICES.get(task, {}).get(api))
            rows.append(
                (
                    found.name,
                    task,
                    len(data),
                    items,
                    len(data.labels),
                    classes,
                    name,
                    price,
                    100 * matrix.accuracy,
                    odd,
                )
            )
    head = (
        "data set",
        "task",
        "items",
        "items in the paper",
        "classes",
        "classes in the paper",
        "recorded answers",
    )
    sheet = Sheet(
        "datasets",
        (*head, "USD for 10,000 queries", "accuracy (%)", "answers that are no label"),
        tuple(rows),
    )
    known = [row for row in rows if row[3] is not None]
    wrong = sorted({row[0] for row in known if row[2] != row[3]})
    words = [
        "Prices are those of the download where it has them, else the paper's.",
        f"Sizes differ from the paper's: {', '.join(wrong)}."
        if wrong
        else "Sizes are the paper's."
        if known
        else "",
    ]
    absent = [name for name in SETS if name not in study.by_name]
    words += [f"Not in the data: {', '.join(absent)}."] if absent else []
    return Finding("datasets", "The data sets and APIs", tuple(filter(None, words)), (sheet,))


def overview(study: Study) -> Finding:
    """Tell how much accuracy changed, API by data set."""
    title = "How much accuracy changed, API by data set"
    pairs = [(found, pair) for found in study.sets for pair in found.pairs]
    if not pairs:
        reason = (
            "Every API of this data was asked on one day only. The change of accuracy needs two: the authors' HAPI has "
            "2020, 2021 and 2022 (masa import hapi PATH)."
        )
        return Finding("overview", title, (), (), skipped=reason)
    rows: list[Sequence[Any]] = []
    for number, (found, (old, new)) in enumerate(pairs):
        study.say(f"overview: {found.name}", number / len(pairs))
        data = read(
            found.path, label="label", id="id", predictions=[old + PREDICTION, new + PREDICTION]
        )
        then, now = _changed(data, old, new)
        names = found.name, old.split("@")[0], _years(old, new), _date(old), _date(new)
        rows.append((*names, 100 * then, 100 * now, 100 * (now - then), abs(now - then) > 0.01))
    head = (
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
    words = []
    for years in dict.fromkeys(row[2] for row in rows):
        mine = [row for row in rows if row[2] == years]
        much, worse = (sum(row[-1] and row[-2] < most for row in mine) for most in (np.inf, 0))
        words.append(
            f"From {years} accuracy changed by more than 1 point in {much} of {len(mine)} cases, for the worse in {worse} "
            "of them."
        )
    words.append("The paper: 12 of 36, from spring 2020 to spring 2021.")
    return Finding("overview", title, tuple(words), (Sheet("overview", head, tuple(rows)),))


def _changed(data: Dataset, old: str, new: str) -> tuple[float, float]:
    strata = Strata.build(data.label)
    then, now = (
        true_matrix(strata, data.predictions[name + PREDICTION]).accuracy for name in (old, new)
    )
    return then, now


def _date(name: str) -> str:
    return name.partition("@")[2]


def _years(old: str, new: str) -> str:
    """Name two dates by their years, where they are dates such as 20-03-29.

    >>> _years("google@20-03-29", "google@21-02-16"), _years("vader@2.5", "vader@3.2.1")
    ('2020 to 2021', '2.5 to 3.2.1')
    """
    dates = [_date(name) for name in (old, new)]
    dated = all(re.fullmatch(r"(20)?\d\d-\d\d-\d\d", date) for date in dates)
    return " to ".join(f"20{date[-8:-6]}" if dated else date for date in dates)


def case_study(study: Study) -> Finding:
    """Look at Amazon on YELP with 2,000 queries: what the rule does and how far off it is."""
    title = f"A case study: Amazon on YELP with {CASE_BUDGET:,} queries"
    case = CASES[0]
    if case not in study.cases:
        return Finding(
            "case-study", title, (), (), skipped="The data has no answers of Amazon's about YELP."
        )
    if len(Strata.build(study.load(case).data.label)) > CASE_BUDGET // 8:
        return Finding(
            "case-study", title, (), (), skipped="The data has too many labels for so few queries."
        )
    found = study.parts("case-study", lambda it: _case_study(study, it), [case])[case]
    names = found["strata"]
    strata = Sheet(
        "strata",
        (
            "stratum",
            "items",
            "uncertainty score",
            "queries, mean of the runs",
            "queries of the optimum",
        ),
        tuple(
            zip(
                names,
                found["sizes"],
                found["scores"],
                found["spread"][-1],
                found["optimum"],
                strict=True,
            )
        ),
    )
    spread = Sheet(
        "allocation",
        ("queries", "stratum", "queries in it, one run", "queries in it, mean", "optimum"),
        tuple(
            (
                queries,
                name,
                found["one"][at][s],
                found["spread"][at][s],
                found["optimum"][s] * queries / CASE_BUDGET,
            )
            for at, queries in enumerate(found["grid"])
            for s, name in enumerate(names)
        ),
    )
    matrices = Sheet(
        "matrices",
        ("matrix", "label", "prediction", "items (%)"),
        tuple(
            (kind, label, said, value)
            for kind, cells in found["matrices"].items()
            for label, said, value in cells
        ),
    )
    errors = Sheet(
        "errors", ("method", "queries", "mean squared error"), tuple(map(tuple, found["errors"]))
    )
    at = found["at"]
    words = [
        f"Strata: positive (+) and negative (-) texts, split at the median of {found['by']} into low (l) and high (h), as "
        "the paper splits by the quality score of the 2020 version.",
        f"Squared error at {CASE_BUDGET:,} queries over {study.runs:,} runs: masa {at['masa']:.2e}, uniform "
        f"{at['uniform']:.2e} ({_times(at['uniform'], at['masa'])}), post-stratified uniform {at['post-stratified']:.2e} "
        f"({_times(at['post-stratified'], at['masa'])}). The paper compares with uniform sampling only.",
        f"Least uncertain: {names[int(np.argmin(found['scores']))]}, most: {names[int(np.argmax(found['scores']))]}. The "
        "paper finds sure positive texts (+h) hardly uncertain, and negative texts more uncertain than positive ones. "
        "Queries spent over the optimum's: "
        + ", ".join(
            f"{name} {_times(mine, best)}"
            for name, mine, best in zip(names, found["spread"][-1], found["optimum"], strict=True)
        )
        + "; the paper finds them close.",
    ]
    if not found["dates"]:
        words.append(
            "There is one date only, so there is no shift to show. The error of a shift is that of the new matrix, since "
            "the old one is known, so the error curves are what they would be with two dates."
        )
    return Finding("case-study", title, tuple(words), (strata, spread, matrices, errors))


def _times(mine: float, other: float) -> str:
    return f"{mine / other:.3g} times" if other > 0 else "the other is 0"


def _case_study(study: Study, case: Loaded) -> Part:
    by = "the API's own confidence" if case.own is not None else case.difficulty
    data = case.by_itself if case.own is not None else case.data
    strata = Strata.build(data.label, difficulty=data.difficulty, levels=2)
    first = 40 * ceil(2 * len(strata) / 40)
    grid = np.arange(first, CASE_BUDGET + 1, 40)
    s2 = true_uncertainty(strata, case.answers, replacement=True)
    wish = strata.weight * np.sqrt(s2)
    _, spread = study.trace(strata, case.answers, grid)
    _, one = study.trace(strata, case.answers, grid, runs=1)
    curves = study.replay(
        data, case, ("uniform", "post-stratified", "masa", "optimal"), replacement=True, levels=2
    )
    true = true_matrix(strata, case.answers)
    found = Matrix(
        true.labels,
        true.predictions,
        one_run(strata, case.answers, CASE_BUDGET, seed=study.seed, replacement=True),
    )
    before = None if case.old is None else true_matrix(strata, case.data.predictions[case.old])
    names = in_order((*true.predictions, *(() if before is None else before.predictions)))
    cells = [
        (SIDES.get(label, label), SIDES.get(said, said)) for label in true.labels for said in names
    ]
    truth, guess = (matrix.on(names).values.ravel() for matrix in (true, found))
    matrices = {"true": truth, "estimated": guess, "estimated less true": guess - truth}
    if before is not None:
        old = before.on(names).values.ravel()
        matrices |= {"old": old, "true shift": truth - old, "estimated shift": guess - old}
    return {
        "by": by,
        "dates": case.old is not None,
        "strata": [
            SIGNS.get(strata.labels[label], f"{strata.labels[label]} ")
            + ("lh"[level] if data.difficulty is not None else "")
            for label, level in zip(strata.label, strata.level, strict=True)
        ],
        "sizes": strata.size.tolist(),
        "scores": s2.tolist(),
        "grid": grid.tolist(),
        "one": one.tolist(),
        "spread": spread.tolist(),
        "optimum": (CASE_BUDGET * wish / (wish.sum() or 1.0)).tolist(),
        "errors": [
            (method, queries, mse)
            for method, curve in curves.items()
            for queries, mse in _brief(curve)["path"]
            if 100 <= queries <= 2 * CASE_BUDGET
        ],
        "at": {
            method: curve.mean_squared_error[curve.queries.index(CASE_BUDGET)]
            for method, curve in curves.items()
        },
        "matrices": {
            kind: [
                (label, said, 100 * float(value))
                for (label, said), value in zip(cells, values, strict=True)
            ]
            for kind, values in matrices.items()
        },
    }


def table1(study: Study) -> Finding:
    """Count queries for an error of 1% with 95%, as the paper's Table 1 does."""
    parts, own, after, rule = methods(study), _own(study), _told(study), _rule(study)
    rows: list[Sequence[Any]] = []
    others: list[Sequence[Any]] = []
    for case in study.cases:
        curves, once = parts[case]["again"], parts[case]["once"]
        need = {method: curve["needed"] for method, curve in curves.items()}
        masa, uniform = need["masa"], need["uniform"]
        rows.append(
            (
                *(str(case), case.masa, masa, *curves["masa"]["range"], _off(masa, case.masa)),
                *(case.uniform, uniform, _off(uniform, case.uniform)),
                *(case.saved, _save(masa, uniform), _save(masa, need["post-stratified"])),
            )
        )
        others.append(
            (
                *(str(case), *(need[method] for method in WITH_REPLACEMENT)),
                *(own[case]["needed"], after[case]["needed"], after[case]["own"]),
                *(once[method]["needed"] for method in EACH_ONCE),
            )
        )
    head = (
        *("case", "MASA in the paper", "masa", "masa, from", "masa, to", "against the paper (%)"),
        *("U/S in the paper", "uniform", "uniform against the paper (%)"),
        *(
            "saved in the paper (%)",
            "saved against uniform (%)",
            "saved against post-stratified (%)",
        ),
    )
    more = (
        *(
            "case",
            *WITH_REPLACEMENT,
            "masa, levels by the API's own confidence",
            "masa, after the change that the paper tells",
            "both",
        ),
        *(f"{method}, each item once" for method in EACH_ONCE),
    )
    rules = Sheet(
        "rule",
        (
            *("case", "MASA in the paper", "empirical", "by Hoeffding's constant", "coverage (%)"),
            *(
                "by a fitted constant",
                "its coverage (%)",
                "the constant",
                "U/S in the paper",
                "uniform by Hoeffding's constant",
            ),
        ),
        tuple(
            (
                str(case),
                case.masa,
                parts[case]["again"]["masa"]["needed"],
                rule[case]["hoeffding"]["queries"],
                rule[case]["hoeffding"]["coverage"],
                rule[case]["fitted"]["queries"],
                rule[case]["fitted"]["coverage"],
                rule[case]["fitted"]["c"],
                case.uniform,
                round(HOEFFDING / ERROR**2),
            )
            for case in study.cases
        ),
    )
    nearest = Sheet(
        "nearest",
        ("case", "MASA in the paper", "our nearest figure", "which is", "off (%)"),
        tuple(
            _nearest(
                case,
                {
                    "masa": parts[case]["again"]["masa"]["needed"],
                    "masa, levels by the API's own confidence": own[case]["needed"],
                    "masa, after the change that the paper tells": after[case]["needed"],
                    "both of these": after[case]["own"],
                    "by Hoeffding's constant": rule[case]["hoeffding"]["queries"],
                },
            )
            for case in study.cases
        ),
    )
    sheets = (
        Sheet("table1", head, tuple(rows)),
        Sheet("methods", more, tuple(others)),
        nearest,
        rules,
    )
    words = _table1_words(
        study, rows, parts, [case for case, part in after.items() if part["needed"] is not None]
    )
    return Finding("table1", ON_CASES["table1"], tuple(words), sheets)


def _table1_words(
    study: Study, rows: Sequence[Sequence[Any]], parts: Mapping[Case, Part], changed: Sequence[Case]
) -> Iterator[str]:
    hard = sorted({part["difficulty"] for part in parts.values()})
    yield (
        f"Each figure is the number of queries from which on {CONFIDENT:.0%} of {study.runs:,} runs have an error of at "
        f"most {ERROR:.0%}; 3 levels of difficulty, by {', '.join(hard)}; with replacement, as in the paper, except where "
        "each item is asked once. 'From' and 'to' are what it would be if the share of runs were a standard error off."
        + (" They mean little with so few runs." if study.runs < FEW_RUNS else "")
    )
    off = [row[8] for row in rows if row[8] is not None]
    if off:
        yield f"Our counts for uniform sampling are {min(off):.0f}% to {max(off):+.0f}% off the paper's U/S column."
    yield (
        "The paper's U/S column is the same for all APIs on one data set (17.0K on DIGIT, 18.5K on AMNIST), and for "
        "uniform and stratified sampling. Counts of errors could not be: they depend on the API's answers, and on how even "
        "the labels are. The paper says that it bounds the error by sqrt(c/n). With the constant of Hoeffding's "
        f"inequality, c = ln(2/0.05)/2 = {HOEFFDING:.3f}, that is {HOEFFDING / ERROR**2:,.0f} queries for every case; its "
        "column has 15.2K to 20.8K, 18.4K on average, so c must have depended on the data set in a way that it does not "
        "tell."
    )
    yield (
        "The paper stops MASA by an upper bound on the loss: the sum of p^2/n times an upper bound on each stratum's "
        "uncertainty score. Our reading is s^2 + sqrt(c/n) for that bound. The loss is an expected squared error, so "
        "staying below 0.01^2 does not keep the error below 1% in 95% of runs: with Hoeffding's constant it covers as the "
        "last table shows. 'Fitted' is the smallest c with which it does cover 95%, as 'we choose c to ensure a 1% error "
        "under 95% confidence level' may be read."
    )
    if changed:
        listed = "; ".join(f"{case}: {case.says}" for case in changed)
        yield (
            "After the change that the paper tells, its text saying for some cases what changed from 2020 to 2021 "
            f"({listed}): we changed as many answers, chosen at random, and asked again."
        )
    needs = [
        [part[how]["post-stratified"]["needed"] for how in ("once", "again")]
        for part in parts.values()
    ]
    saves = [(row[11], _save(once, again)) for row, (once, again) in zip(rows, needs, strict=True)]
    more = sum(mine is not None and theirs is not None and mine > theirs for theirs, mine in saves)
    yield (
        f"Against uniform sampling masa saves {_span((row[10] for row in rows), '.0f', '%')}, against post-stratified "
        f"uniform sampling {_span((row[11] for row in rows), '.0f', '%')}: the same random items, weighted by the known "
        f"sizes of the strata, which whoever has labels knows. In {more} of {len(saves)} cases that sampling gains more by "
        "asking each item once than MASA does over it; where the queries are few beside the items it gains little."
    )
    yield from study.missing


def _nearest(case: Case, figures: Mapping[str, int | None]) -> tuple[Any, ...]:
    """Tell which of our figures is nearest to the paper's."""
    known = {name: count for name, count in figures.items() if count is not None}
    if not known:
        return (str(case), case.masa, None, None, None)
    name = min(known, key=lambda name: abs(log(known[name] / case.masa)))
    return (str(case), case.masa, known[name], name, _off(known[name], case.masa))


def _off(ours: int | None, theirs: int) -> float | None:
    return None if ours is None else 100 * (ours / theirs - 1)


def _save(ours: int | None, theirs: int | None) -> float | None:
    return None if ours is None or theirs is None else 100 * (1 - ours / theirs)


def methods(study: Study) -> dict[Case, Part]:
    """Replay all methods, as in the paper and asking each item once."""

    def make(case: Loaded) -> Part:
        also = [] if case.cheap is None else [case.cheap]
        again = study.replay(case.data, case, WITH_REPLACEMENT, replacement=True)
        once = study.replay(case.data, case, EACH_ONCE, also=also)
        found = {"again": again, "once": once}
        briefs = {
            kind: {name: _brief(curve) for name, curve in curves.items()}
            for kind, curves in found.items()
        }
        return {**briefs, "difficulty": case.difficulty}

    return study.parts("methods", make)


def _brief(curve: Curve) -> Part:
    """Give what is shown of a curve: its path in steps of a tenth."""
    path: list[tuple[int, float]] = []
    for point in curve.path:
        if not path or point.queries >= 1.1 * path[-1][0]:
            path.append((point.queries, point.root_mean_squared_error**2))
    return {"needed": curve.queries_for_target, "range": curve.queries_range, "path": path}


def _own(study: Study) -> dict[Case, Part]:
    """Split by the API's own confidence instead of a cheap model's."""
    return study.parts(
        "own confidence",
        lambda case: {"needed": None if case.own is None else study.needed(case, case.by_itself)},
    )


def _told(study: Study) -> dict[Case, Part]:
    """Make the changes that the paper tells of, where the data has only the first date, and ask again."""

    def make(case: Loaded) -> Part:
        if not case.case.told or case.old is not None:
            return {"needed": None, "own": None}
        changed = told(case.data.label, case.answers, case.case, np.random.default_rng(study.seed))
        data = replace(case.data, predictions={**case.data.predictions, case.new: changed})
        own = None if case.own is None else study.needed(case, replace(data, difficulty=case.own))
        return {"needed": study.needed(case, data), "own": own}

    return study.parts("told changes", make)


def _rule(study: Study) -> dict[Case, Part]:
    """Stop by a bound on the loss, as the paper describes it."""

    def make(case: Loaded) -> Part:
        strata = Strata.build(case.data.label, difficulty=case.data.difficulty, levels=LEVELS)
        last = max(4_096, 16 * len(strata))
        while True:
            grid = np.unique(
                np.geomspace(
                    2 * len(strata), last, int(log(last / (2 * len(strata))) / log(FINE))
                ).astype(np.int64)
            )
            traces, _ = study.trace(strata, case.answers, grid)
            stops = {c: stopped(traces, grid, c) for c in (*CONSTANTS, HOEFFDING)}
            fitted = next(
                (
                    c
                    for c in CONSTANTS
                    if (at := stops[c]) is not None and at["coverage"] >= 100 * CONFIDENT
                ),
                None,
            )
            if (fitted is not None and stops[HOEFFDING] is not None) or last >= 2 * FAR:
                break
            last *= 2
        none = {"queries": None, "coverage": None}
        return {
            "hoeffding": stops[HOEFFDING] or none,
            "fitted": {**none, "c": None}
            if fitted is None
            else {**(stops[fitted] or none), "c": fitted},
        }

    return study.parts("stopping rule", make)


def stopped(traces: Floats, grid: Ints, c: float) -> dict[str, float] | None:
    """Tell when runs stop, and how many are right then; None if some do not stop.

    They stop once the sum of p^2/n (s^2 + sqrt(c/n)), an upper bound on the loss, is small enough.
    """
    below = traces[:, :, 2] + sqrt(c) * traces[:, :, 3] <= ERROR**2
    if not below[:, -1].all():
        return None
    at = np.argmax(below, axis=1)
    right = traces[np.arange(len(at)), at, 0] <= ERROR
    return {"queries": round(float(grid[at].mean())), "coverage": 100 * float(right.mean())}


def tradeoffs(study: Study) -> Finding:
    """Give squared error against queries, a panel a case."""
    parts = methods(study)
    rows = tuple(
        (str(case), method, queries, mse)
        for case, part in parts.items()
        for method, curve in (
            *part["again"].items(),
            ("masa, each item once", part["once"]["masa"]),
        )
        for queries, mse in curve["path"]
        if mse > 1e-9
    )
    words = list(study.missing)
    uniform, fair = (
        _ratios(parts, method, CASE_BUDGET) for method in ("uniform", "post-stratified")
    )
    early, late = (_ratios(parts, "uniform", queries) for queries in (BUDGETS[0], BUDGETS[-1]))
    if uniform:
        words = [
            f"With {CASE_BUDGET:,} queries uniform sampling has {_span(uniform.values())} times the squared error of masa, "
            f"above 10 times in {sum(value > 10 for value in uniform.values())} of {len(uniform)} cases; the paper's text "
            f"says 'usually an order of magnitude'. Post-stratified uniform sampling has {_span(fair.values())} times.",
            f"The paper says that the gap to uniform sampling remains stable. From {BUDGETS[0]:,} to {BUDGETS[-1]:,} "
            "queries the ratio of the squared errors grows by "
            f"{_span(late[case] / early[case] for case in late if case in early)} times.",
            *words,
        ]
    head = ("case", "method", "queries", "mean squared error")
    return Finding(
        "tradeoffs", ON_CASES["tradeoffs"], tuple(words), (Sheet("tradeoffs", head, rows),)
    )


def _ratios(parts: Mapping[Case, Part], method: str, queries: int) -> dict[Case, float]:
    """Give the squared error of a method over that of masa, where masa is not exact."""
    curves = {
        case: (part["again"][method]["path"], part["again"]["masa"]["path"])
        for case, part in parts.items()
    }
    errors = {case: [_at(path, queries) for path in pair] for case, pair in curves.items()}
    return {case: mine / masa for case, (mine, masa) in errors.items() if masa > 1e-12}


def _span(values: Iterable[float | None], style: str = ".3g", unit: str = "") -> str:
    """Write from where to where numbers reach.

    >>> _span([3.0, None, 1.25]), _span([49.2, 97.1], ".0f", "%")
    ('1.25 to 3', '49% to 97%')
    """
    known = [value for value in values if value is not None]
    return f"{min(known):{style}}{unit} to {max(known):{style}}{unit}" if known else "unknown"


def _at(path: Sequence[tuple[int, float]], queries: int) -> float:
    """Read a curve between its points."""
    x, y = np.log([point[0] for point in path]), np.log([max(point[1], 1e-30) for point in path])
    return float(np.exp(np.interp(log(queries), x, y)))


def _common(paths: Sequence[Sequence[tuple[int, float]]]) -> list[int]:
    """Give numbers of queries that all curves reach, from where they tell something."""
    last = min(path[-1][0] for path in paths)
    return [
        int(queries)
        for queries in np.unique(np.geomspace(min(250, last), last, 14).astype(np.int64))
    ]


def levels(study: Study) -> Finding:
    """Tell the effect of the number of levels of difficulty."""

    def make(case: Loaded) -> Part:
        found = {}
        for count in STUDIED:
            curve = study.replay(case.data, case, ["masa"], replacement=True, levels=count)["masa"]
            found[str(count)] = _brief(curve)
        return found

    parts = study.parts("levels", make)
    rows = tuple(
        (str(case), int(count), queries, mse)
        for case, part in parts.items()
        for count, curve in part.items()
        for queries, mse in curve["path"]
        if mse > 1e-9
    )
    needs = tuple(
        (str(case), *(part[str(count)]["needed"] for count in STUDIED))
        for case, part in parts.items()
    )
    relative = tuple(
        (
            str(case),
            count,
            queries,
            _at(part[str(count)]["path"], queries) / _at(part["1"]["path"], queries),
        )
        for case, part in parts.items()
        for count in STUDIED
        for queries in _common([curve["path"] for curve in part.values()])
    )
    best = [STUDIED[int(np.argmin(row[1:]))] for row in needs if None not in row]
    worse = [row[0] for row in needs if None not in row and row[-1] > row[3]]
    words = [
        "The paper: 'larger number of partitions usually leads to smaller estimation error for large samples', and K = 3 "
        "is enough. Fewest queries for 1%: "
        f"{', '.join(f'K = {count} in {best.count(count)}' for count in STUDIED if count in best)} of {len(needs)} cases; K "
        f"= 10 needs more than K = 3 in {len(worse)}. What K gains over one level a label is what the difficulty tells "
        "about the API's mistakes, and each stratum costs two queries before it tells anything.",
        *study.missing,
    ]
    sheets = (
        Sheet("levels", ("case", "K", "queries", "mean squared error"), rows),
        Sheet("relative", ("case", "K", "queries", "squared error relative to K = 1"), relative),
        Sheet("needed", ("case", *(f"K = {count}" for count in STUDIED)), needs),
    )
    return Finding("levels", ON_CASES["levels"], tuple(words), sheets)


def convergence(study: Study) -> Finding:
    """Watch how the loss of the rule nears the optimum's."""

    def make(case: Loaded) -> Part:
        strata = Strata.build(case.data.label, difficulty=case.data.difficulty, levels=LEVELS)
        grid = np.unique(np.geomspace(4 * len(strata), FAR, 28).astype(np.int64))
        s2 = true_uncertainty(strata, case.answers, replacement=True)
        best = float(np.sum(strata.weight * np.sqrt(s2)) ** 2)
        found: Part = {"grid": grid.tolist(), "optimum": (best / grid).tolist()}
        for name, a in (
            ("a = 1", 1.0),
            ("a of the theorem", sampler.theory_a(len(strata.labels), LEVELS, FAR)),
        ):
            traces, _ = study.trace(strata, case.answers, grid, a=a)
            found[name] = traces[:, :, 1].mean(axis=0).tolist()
        return found

    parts = study.parts("convergence", make)
    rows: list[Sequence[Any]] = []
    slopes: list[Sequence[Any]] = []
    for case, part in parts.items():
        grid, best = np.array(part["grid"]), np.array(part["optimum"])
        fits: list[float | None] = []
        for name in ("a = 1", "a of the theorem"):
            gap = np.array(part[name]) - best
            rows += [
                (str(case), name, int(n), float(g), float(o))
                for n, g, o in zip(grid, gap, best, strict=True)
                if g > 0
            ]
            late = (grid >= FAR / 16) & (gap > 0)
            fits.append(
                float(np.polyfit(np.log(grid[late]), np.log(gap[late]), 1)[0])
                if late.sum() > 2
                else None
            )
            fits.append(100 * float(gap[-1] / best[-1]) if best[-1] > 0 else None)
        slopes.append((str(case), *fits))
    words = [
        "The loss of a run is the sum of p^2 s^2 / n over the strata for the queries that it spent there, s the true "
        f"scores; shown is its mean over {study.runs:,} runs less the optimum's, (sum of p s)^2 / N. The theorem says that "
        "it falls at least as fast as N^(-5/4), up to a logarithm, with an exploration a that it asks for.",
        f"Slopes from {FAR // 16:,} to {FAR:,} queries: {_span((row[1] for row in slopes), '.2f')} with a = 1, which the "
        f"paper uses and the theorem does not cover, and {_span((row[3] for row in slopes), '.2f')} with what the theorem "
        f"asks for at {FAR:,}. Why they fall on both sides of -5/4 can be derived. Where every stratum is uncertain, "
        "exploration moves the queries off the optimum by a share of N^(-1/4); the loss is flat at the optimum, so it is "
        "off by the square of that, and the gap falls like N^(-3/2), faster than the theorem says. A stratum that is all "
        "but certain (s near 0) is explored N^(4/5) times, which are missing elsewhere: the gap falls like N^(-6/5), "
        "slower. The theorem takes s above 0 and N large enough for that.",
        *study.missing,
    ]
    sheets = (
        Sheet(
            "convergence",
            ("case", "exploration", "queries", "loss less the optimum's", "the optimum's loss"),
            tuple(rows),
        ),
        Sheet(
            "slopes",
            (
                *("case", "slope, a = 1", f"above the optimum at {FAR:,}, a = 1 (%)"),
                *("slope, a of the theorem", f"above the optimum at {FAR:,}, a of the theorem (%)"),
            ),
            tuple(slopes),
        ),
    )
    return Finding("convergence", ON_CASES["convergence"], tuple(words), sheets)


def shifts(study: Study) -> Finding:
    """Put the truth, MASA's estimate and our best side by side, where there are two dates."""
    title = f"Real shifts and their estimates with up to {CASE_BUDGET:,} queries"
    pairs = [(found, pair) for found in study.sets for pair in found.pairs]
    if not pairs:
        reason = "Every API of this data was asked on one day only; import data with two dates (masa import hapi, llmdrift or table)."
        return Finding("shifts", title, (), (), skipped=reason)
    rows: list[Sequence[Any]] = []
    entries: list[Sequence[Any]] = []
    for number, (found, (old, new)) in enumerate(pairs):
        study.say(f"shifts: {found.name}, {old} to {new}", number / len(pairs))
        numbers = [old + CONFIDENCE] if old in found.confident else []
        data = read(
            found.path,
            label="label",
            id="id",
            predictions=[old + PREDICTION, new + PREDICTION],
            numbers=numbers,
        )
        sure = numbers[0] if numbers else None
        data = replace(data, difficulty=data.numbers[sure] if sure else None)
        case = Loaded(
            Case(new, found.name, 0, 0, 0), data, new + PREDICTION, old + PREDICTION, None, "", None
        )
        part = study.kept(
            {"what": "shifts", "case": found.name, "old": old},
            case,
            partial(_shift, study, sure=sure),
        )
        rows += [(found.name, old, new, *row) for row in part["rows"]]
        entries += [(found.name, old, new, *entry) for entry in part["entries"]]
    head = (
        *(
            "data set",
            "from",
            "to",
            "estimate",
            "queries",
            "change of accuracy (points)",
            "answers changed (%)",
        ),
        *("error of one run (%)", "root mean squared error (%)"),
    )
    words = (
        "One assessment a method on recorded answers, each item asked once, and the root of the mean squared error over "
        f"{min(study.runs, SHIFT_RUNS)} of them. 'Nothing changed' is what one may say for free: its error is the norm of "
        "the shift.",
        "`masa`, the paper's rule, knows the old matrix; `auto`, our best, also knows what was answered to each item before.",
    )
    sheets = (
        Sheet("shifts", head, tuple(rows)),
        Sheet(
            "entries",
            ("data set", "from", "to", "label", "prediction", "true (%)", "masa (%)", "auto (%)"),
            tuple(entries),
        ),
    )
    return Finding("shifts", title, words, sheets)


def _shift(study: Study, case: Loaded, sure: str | None) -> Part:
    data, old, new = case.data, case.old or "", case.new
    strata = Strata.build(data.label)
    truth = Shift(
        true_matrix(strata, data.predictions[old]), true_matrix(strata, data.predictions[new])
    )
    budget = max(1, min(CASE_BUDGET, len(data) // 2))
    text = {
        name: np.array(data.predictions[name].values, object)[data.predictions[name].codes]
        for name in (old, new)
    }
    share = float(np.mean(text[old] != text[new]))
    few = min(study.runs, SHIFT_RUNS)
    # A target that is met at once: only the budget is of interest.
    options = {
        "old": old,
        "old_confidence": sure,
        "budgets": [budget],
        "runs": few,
        "target_error": 0.9,
    }
    curves = study.replay(data, case, ("masa", "auto"), **options)
    best = assess(
        data,
        f"replay:{new}",
        baseline=old,
        budget=budget,
        seed=study.seed,
        old_confidence=sure,
        store=None,
        fresh=True,
    )
    if best.shift is None:
        raise DataError(
            f"{data.source}: no answer to estimate a shift from",
            hint="look at the answers in the file",
        )
    by_level = Strata.build(data.label, difficulty=data.difficulty, levels=LEVELS)
    columns = truth.new.predictions
    theirs = Matrix(
        truth.new.labels,
        data.predictions[new].values,
        one_run(by_level, data.predictions[new], budget, seed=study.seed, replacement=False),
    )
    found = {"masa": Shift(truth.old, theirs), "auto": best.shift}
    estimates = {
        name: one.new.on(columns).values - one.old.on(columns).values for name, one in found.items()
    }
    rows: list[Sequence[Any]] = [
        ("the truth", len(data), 100 * truth.accuracy.change, 100 * share, 0.0, 0.0),
        ("nothing changed", 0, 0.0, 0.0, 100 * truth.norm, 100 * truth.norm),
        *(
            (
                *(name, budget, 100 * one.accuracy.change, None),
                *(100 * one.error(truth), 100 * curves[name].root_mean_squared_error[0]),
            )
            for name, one in found.items()
        ),
    ]
    entries = [
        (
            label,
            said,
            *(
                100 * float(values[i, j])
                for values in (truth.values, estimates["masa"], estimates["auto"])
            ),
        )
        for i, label in enumerate(truth.new.labels)
        for j, said in enumerate(columns)
    ]
    return {"rows": rows, "entries": entries}


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def speed(study: Study) -> Finding:
    """Tell how much faster a run is than the paper's rule in plain Python."""
    rows = []
    for number, case in enumerate(study.cases):
        study.say(f"speed: {case}", number / len(study.cases))
        it = study.load(case)
        strata = Strata.build(it.data.label, difficulty=it.data.difficulty, levels=LEVELS)
        by_hand = partial(plain, strata, it.answers, CASE_BUDGET, seed=study.seed)
        slow = min(_timed(by_hand) for _ in range(3))
        grid = np.array([CASE_BUDGET])
        study.trace(strata, it.answers, grid, runs=1)  # Compile before the clock starts.
        compiled = partial(study.trace, strata, it.answers, grid, runs=SPEED_RUNS, workers=1)
        quick = min(_timed(compiled) for _ in range(3))
        quick /= SPEED_RUNS
        rows.append((str(case), len(strata), 1_000 * slow, 1_000 * quick, slow / quick))
    head = ("case", "strata", "plain Python, ms a run", "masa, ms a run", "times as fast")
    words = (
        f"One run of the paper's rule with {CASE_BUDGET:,} queries on one core: in plain Python as printed but for the "
        "corrected update, and as masa runs it. The paper: 'a few seconds' a run.",
    )
    return Finding("speed", ON_CASES["speed"], words, (Sheet("speed", head, tuple(rows)),))


ON_CASES = {
    "table1": "Table 1: queries for a Frobenius error of 1% in 95% of runs",
    "tradeoffs": "Error against queries",
    "levels": "The number of levels K",
    "convergence": "How fast the rule nears the optimum",
    "speed": "How fast a run is",
}
"""The experiments that need one of the paper's cases, and their titles."""

EXPERIMENTS: dict[str, Callable[[Study], Finding]] = {
    "datasets": datasets,
    "overview": overview,
    "case-study": case_study,
    "table1": table1,
    "tradeoffs": tradeoffs,
    "levels": levels,
    "convergence": convergence,
    "shifts": shifts,
    "speed": speed,
}
"""What can be reproduced, in the order of `all`."""


def find(study: Study, what: str) -> Finding:
    """Carry out one experiment, or say why it cannot be."""
    if what in ON_CASES and not study.cases:
        reason = "The data has none of the paper's 12 cases: an API of one of its vendors on one of its data sets."
        return Finding(what, ON_CASES[what], (), (), skipped=reason)
    return EXPERIMENTS[what](study)


def data_sets(folder: Path, out: Path) -> tuple[list[Stored], list[str]]:
    """Look at the data sets of a folder; a download is imported first, beside what is made of it. Give notes about it, too."""
    if not folder.is_dir():
        raise DataError(
            f"{folder} is not a folder",
            hint="give one that masa import made, or a download of FrugalML or HAPI",
        )
    layout = layout_of(folder)
    if layout is None:
        return stored(folder), []
    try:
        found = list(collections(layout, folder))
    except DataError as exc:
        hint = (
            f"masa import {layout} {folder} --partial leaves out what is not there"
            if exc.hint == PARTIAL
            else exc.hint
        )
        raise DataError(exc.message, hint=hint) from exc
    notes = [note for one in found for note in one.notes]
    sets = [save(one, out / "data") for one in found if one.recordings]
    if not sets:
        raise DataError(
            f"{folder} has no data set that can be studied: {'; '.join(notes)}",
            hint="give another download",
        )
    return sets, notes


def wanted(what: str) -> tuple[str, ...]:
    """Give the experiments that a word stands for."""
    if what == "all":
        return tuple(EXPERIMENTS)
    if what not in EXPERIMENTS:
        raise UsageError(
            f"there is nothing called {what!r} to reproduce",
            hint=f"there are {', '.join(EXPERIMENTS)} and all",
        )
    return (what,)
