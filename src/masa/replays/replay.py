"""Assess recorded answers many times: what would each method have cost, and how accurate is it?"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.cheap_model import CHEAP, CHEAP_CONFIDENCE, helped
from masa.data.dataset import Dataset, read
from masa.data.difficulty import beside, choose
from masa.data.features import Words
from masa.data.frames import opened
from masa.data.strata import Strata, mixed
from masa.errors import UsageError
from masa.inference.counts import true_matrix
from masa.inference.method import Method
from masa.records import Column, Curve, Floats, Progress, Replay, Shift
from masa.replays.curve import CurveSearch, cores
from masa.replays.simulate import ESTIMATORS, MOST_QUERIES, NewAnswers, simulation
from masa.replays.whole_runs import Noise, WholeRuns
from masa.sampling.stratified import theory_a
from masa.settings import Objective, RecordedColumns, ReplaySettings, Settings
from masa.settings.methods import LIVE, NEED_OLD, PAPER, REPLAYED, SLOW, STRICT
from masa.settings.setting import split

logger = logging.getLogger(__name__)

BUDGETS = (500, 1000, 2000)
"""The numbers of queries that are reported where none are named."""

NOTABLE_BIAS = 0.005
"""A bias of accuracy of at least this is told."""

FEW_RUNS = 5
"""Runs that must lie beyond a quantile for it to be told."""


def replay(
    data: "Dataset | str | Path",
    *,
    settings: ReplaySettings | None = None,
    estimator: str = "assess",
    workers: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Replay:
    """Run many seeded assessments per method on recorded answers, on all cores.

    The data is a data set, or a file. The options name its columns, `new` with what the API answers
    now and perhaps `old`, `label`, ... (see `masa.settings.RecordedColumns`), and override the
    settings (see `masa.settings.ReplaySettings`). The same seed gives the same numbers with any
    number of workers. Run r of `masa` and `optimal` draws the items of a stratum in the same order,
    and that of `uniform` and `post-stratified` the same items, so that they are compared on the
    same luck.

    Where the old answers are known the error is that of the estimate that `masa assess` makes; with
    the estimator "paper" it is that of the paper's estimate, which does not use them.

    >>> answers = {"old": ["no", "yes"] * 40, "new": ["no", "no"] * 40}
    >>> data = Dataset.of(["no", "yes"] * 40, predictions=answers)
    >>> found = replay(data, new="new", old="old", methods=["masa"], runs=10, budgets=[20])
    >>> found.curves[0].method, round(found.no_change_error, 3)
    ('masa', 0.707)
    """
    columns_given, settings_given = split(options, RecordedColumns, ReplaySettings)
    chosen = replace(settings or ReplaySettings(), **settings_given)
    if estimator not in ESTIMATORS:
        raise UsageError(f"there is no estimator {estimator!r}", hint=f"there are {ESTIMATORS}")
    columns = RecordedColumns(**columns_given)
    if isinstance(data, Dataset):
        recorded = RecordedCase.of(data, columns)
    else:
        chosen.check_columns(old=columns.old, group=columns.group)
        recorded = read_recorded(data, columns, progress=progress)
    return replayed(recorded, chosen, estimator=estimator, workers=workers, progress=progress)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedCase:
    """Recorded answers, and which columns hold what."""

    data: Dataset
    new: NewAnswers
    old: BaselineAnswers | None
    old_confidence: str | None
    also: tuple[str, ...]
    text: str | None
    difficulty: str
    """where the data's difficulty comes from, in words"""

    @classmethod
    def of(cls, data: Dataset, columns: RecordedColumns) -> "RecordedCase":
        """Take the columns that these name from a data set."""
        new = _predictions(data, columns.new)
        new_confidence = _numbers(data, columns.new_confidence)
        old = None
        if columns.old is not None:
            answers = _predictions(data, columns.old)
            confidence = _numbers(data, columns.old_confidence)
            old = BaselineAnswers(np.arange(len(data)), answers, confidence)
        for name in columns.also:
            _predictions(data, name)
        return cls(
            data,
            NewAnswers(new, new_confidence),
            old,
            columns.old_confidence,
            columns.also,
            columns.text,
            columns.difficulty or "",
        )

    def words(self) -> Words | None:
        """Read the words of the texts."""
        if self.text is None or self.old is None:
            return None
        return Words.of(self.data.texts(self.text))

    def settings(self, wanted: ReplaySettings) -> Settings:
        """Give the settings of one assessment, whatever its method."""
        return Settings(
            levels=wanted.levels,
            seed=wanted.seed,
            mix=wanted.mix,
            weights=wanted.weights,
            tolerance=wanted.tolerance,
            confidence=wanted.confidence,
            target_error=wanted.target_error,
            old_confidence=self.old_confidence,
            also=self.also,
        )


def read_recorded(
    source: Any, columns: RecordedColumns, *, progress: Progress | None = None
) -> RecordedCase:
    """Read recorded answers from a file.

    The difficulty is a column, else the confidence of the old answers, else there is one level.
    """
    with opened(source) as table:
        found = choose(
            table.columns,
            difficulty=columns.difficulty,
            old=columns.old,
            old_confidence=columns.old_confidence,
        )
        old_confidence = beside(table.columns, columns.old, columns.old_confidence)
        new_confidence = None
        if old_confidence is not None:
            new_confidence = beside(table.columns, columns.new, columns.new_confidence)
        predictions = [
            name for name in (columns.old, columns.new, *columns.also) if name is not None
        ]
        numbers = [name for name in (old_confidence, new_confidence) if name is not None]
        data = read(
            table,
            label=columns.label,
            id=columns.id,
            predictions=predictions,
            difficulty=found.column,
            cost=columns.cost,
            group=columns.group,
            numbers=numbers,
            inputs=() if columns.text is None else (columns.text,),
        )
    if found.column is not None and _belongs_to(found.column, columns.new):
        note = (
            f"{found.column!r} comes with the answers of {columns.new!r}: "
            "a real assessment would know it only after paying for them"
        )
        data = replace(data, notes=(*data.notes, note))
    also, words = columns.also, found.words
    if columns.text is not None and not also and found.column is None:
        data = helped(data, columns.text, progress=progress)
        also, words = (CHEAP,), CHEAP_CONFIDENCE
    return RecordedCase.of(
        data,
        replace(
            columns,
            old_confidence=old_confidence,
            new_confidence=new_confidence,
            also=also,
            difficulty=words,
        ),
    )


def _belongs_to(confidence: str, prediction: str) -> bool:
    """Say whether a column of confidences is known by its name to belong to one of predictions."""
    return confidence.removesuffix("confidence") == prediction.removesuffix("prediction")


def replayed(
    recorded: RecordedCase,
    settings: ReplaySettings,
    *,
    estimator: str = "assess",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Replay recorded answers."""
    data, old, new = recorded.data, recorded.old, recorded.new
    names = _methods(recorded, settings)
    strata = mixed(data, data.difficulty, levels=settings.levels, mix=settings.mix)
    _log(data, strata)
    budgets = _budgets(settings.budgets, items=len(data), replacement=settings.replacement)
    exploration = settings.a
    if isinstance(exploration, str):
        exploration = theory_a(len(strata.labels), settings.levels, budgets[-1])
    words = recorded.words() if set(SLOW) & set(names) else None
    curves: list[Curve] = []
    method_notes: list[str] = []
    for number, name in enumerate(names):
        method = Method.of(
            data,
            old,
            recorded.settings(settings),
            name=name,
            words=words,
            new_answers=new.answers.values,
        )
        method_notes += method.notes
        search = CurveSearch(
            method=name,
            simulation=simulation(
                method,
                new,
                estimator=estimator,
                replacement=settings.replacement,
                a=exploration,
            ),
            budgets=budgets,
            runs=settings.runs,
            target=settings.target_error,
            confidence=settings.confidence,
            seed=settings.seed,
            workers=workers or cores(),
        )

        def report(done: float, name: str = name, number: int = number) -> None:
            if progress is not None:
                progress(name, (number + done) / len(names))

        curve = search.curve(report)
        if settings.stop is not None and name in LIVE:
            curve = _with_whole_runs(curve, method, recorded, settings, workers, progress)
        curves.append(curve)
    result = described(recorded, settings, tuple(curves), tuple(method_notes))
    notes = (*result.notes, *_cautions(result, settings.budgets))
    if settings.methods is None and recorded.old is not None and not set(names) & set(SLOW):
        left_out = "auto, the default of masa assess, takes longer: --method auto measures it"
        notes = (*notes, left_out)
    return replace(result, notes=notes)


def _methods(recorded: RecordedCase, settings: ReplaySettings) -> tuple[str, ...]:
    """Give the methods to replay, those that are named or the usual ones."""
    group = recorded.data.group
    if settings.methods is not None:
        old = None if recorded.old is None else recorded.old.answers.name
        settings.check_columns(old=old, group=None if group is None else group.name)
        return settings.methods
    if settings.strict:
        return ("auto",)
    if group is not None:
        return ("predictive",)
    if settings.replacement:
        return PAPER
    usual = [name for name in REPLAYED if name not in SLOW]
    if recorded.old is None:
        usual = [name for name in usual if name not in NEED_OLD]
    return tuple(usual)


def _with_whole_runs(
    curve: Curve,
    method: Method,
    recorded: RecordedCase,
    settings: ReplaySettings,
    workers: int | None,
    progress: Progress | None,
) -> Curve:
    """Add how whole assessments by this method end, where it can play them."""
    old = recorded.old
    if old is None:
        raise UsageError(
            "without old answers there is no change to stop at",
            hint="name their column with --old COL",
        )
    if settings.strict and curve.method not in STRICT:
        return curve
    if curve.method == "uniform" and settings.mix is not None:
        return curve  # It cannot estimate for another mix.
    noise = None
    if settings.noise is not None:
        noise = Noise(settings.noise, settings.noise_where, settings.repeat)
        noise.check(old)
    budget = max(settings.budgets) if settings.budgets else None
    if settings.stop == "budget":
        budget = curve.queries[-1]
    assess = replace(
        recorded.settings(settings),
        method=curve.method,
        strict=settings.strict,
        target_error=settings.target_error if settings.stop == "target" else None,
        decide=settings.stop == "decide",
    )
    played = WholeRuns(
        recorded.data, old, recorded.new.answers, assess, budget=budget, noise=noise
    ).play(
        settings.runs,
        workers=workers or cores(),
        words=method.words,
        progress=progress,
    )
    return replace(curve, stopping=played)


def described(
    recorded: RecordedCase,
    settings: ReplaySettings,
    curves: tuple[Curve, ...],
    method_notes: tuple[str, ...] = (),
) -> Replay:
    """Say what was replayed, and what came out."""
    data, new = recorded.data, recorded.new.answers
    strata = mixed(data, data.difficulty, levels=settings.levels, mix=settings.mix)
    shift = no_change_error = None
    predictions = {*new.values}
    if recorded.old is not None:
        old = recorded.old.answers
        predictions |= {*old.values}
        shift = Shift(true_matrix(strata, old), true_matrix(strata, new))
        no_change_error = size_of(shift, settings.weights)
    return Replay(
        items=len(data),
        labels=len(strata.labels),
        predictions=len(predictions),
        strata=len(strata),
        difficulty=recorded.difficulty,
        runs=settings.runs,
        seed=settings.seed,
        replacement=settings.replacement,
        target_error=settings.target_error,
        confidence=settings.confidence,
        shift=shift,
        no_change_error=no_change_error,
        groups=() if data.group is None else data.group.values,
        curves=curves,
        method_notes=method_notes,
        notes=(*data.notes, *method_notes),
    )


def size_of(shift: Shift, objective: Objective) -> float:
    """Give the size of a shift: its weighted norm, or its weighted sum where that is measured."""
    weighted = objective.table(shift.new.labels, shift.new.predictions) * shift.values
    if objective.linear:
        return abs(float(weighted.sum()))
    return float(np.linalg.norm(weighted))


def _log(data: Dataset, strata: Strata) -> None:
    if logger.isEnabledFor(logging.INFO):
        items = f"{len(data):,}"
        logger.info("%s: %s items, fingerprint %s", data.source, items, data.fingerprint())
        sizes = strata.size
        logger.info("%d strata of %d to %d items", len(strata), sizes.min(), sizes.max())
    if logger.isEnabledFor(logging.DEBUG):
        for label, level, size in zip(strata.label, strata.level, strata.size, strict=True):
            name = strata.labels[label]
            logger.debug("stratum: label %r, level %d, %d items", name, level, size)


def _cautions(result: Replay, budgets: tuple[int, ...] | None) -> Iterator[str]:
    """Say what a reader of the result could be misled by."""
    reported = result.curves[0].queries
    if budgets is not None and max(budgets) > reported[-1]:
        yield (
            f"asking each item once takes {result.items:,} queries at most, "
            "so larger budgets were cut to that"
        )
    if result.no_change_error is not None and result.target_error >= result.no_change_error:
        yield (
            f"the target error of {100 * result.target_error:.3g}% is not below "
            f"{100 * result.no_change_error:.3g}%, the error of saying that nothing changed: "
            "reaching it proves nothing"
        )
    named = [curve.method for curve in result.curves]
    if "masa" in named and reported[0] < 2 * result.strata:
        yield (
            f"masa asks each of the {result.strata} strata twice first, "
            f"so it tells little below {2 * result.strata:,} queries"
        )
    if result.runs * min(result.confidence, 1.0 - result.confidence) < FEW_RUNS:
        yield (
            f"{result.runs:,} runs are too few to tell what a confidence of "
            f"{100 * result.confidence:.6g}% needs: fewer than {FEW_RUNS} lie beyond it"
        )
    for curve in result.curves:
        if curve.queries_for_target is None:
            last = curve.path[-1].queries
            yield f"{curve.method} does not reach the target within {last:,} queries"
        yield from _bias_caution(curve, result)


def _bias_caution(curve: Curve, result: Replay) -> Iterator[str]:
    """Say that a method's accuracy is biased, where the number of runs is enough to tell."""
    bias = curve.accuracy_bias[-1]
    # An error of accuracy is at most that of the matrix times the root of the number of labels.
    noise = 3.0 * curve.root_mean_squared_error[-1] * (result.labels / result.runs) ** 0.5
    if abs(bias) < max(NOTABLE_BIAS, noise):
        return
    direction, cause = "low", "labels without answers count as zero"
    if bias > 0:
        direction = "high"
        if curve.method == "masa":
            cause = "it asks less where its first answers agree"
    yield (
        f"the accuracy that {curve.method} finds with {curve.queries[-1]:,} queries is "
        f"{100 * abs(bias):.2g} points too {direction} on average: {cause}"
    )


def _budgets(budgets: tuple[int, ...] | None, *, items: int, replacement: bool) -> tuple[int, ...]:
    """Give the numbers of queries to report, none beyond the items where each is asked once."""
    wanted = BUDGETS if budgets is None else budgets
    if max(wanted) > MOST_QUERIES:
        listed = ", ".join(str(budget) for budget in wanted)
        raise UsageError(
            f"budgets are {listed}",
            hint=f"give whole numbers from 1 to {MOST_QUERIES:,}: --budgets 500,1000,2000",
        )
    if replacement or max(wanted) <= items:
        return tuple(sorted(set(wanted)))
    if budgets is None:
        return tuple(budget for budget in BUDGETS if budget <= items) or (items,)
    return tuple(sorted({min(budget, items) for budget in wanted}))


def _predictions(data: Dataset, name: str) -> Column:
    if name in data.predictions:
        return data.predictions[name]
    close = get_close_matches(name, data.predictions, 1)
    hint = f"it has {', '.join(map(repr, data.predictions)) or 'none'}"
    if close:
        hint = f"did you mean {close[0]!r}?"
    raise UsageError(f"the data has no predictions {name!r}", hint=hint)


def _numbers(data: Dataset, name: str | None) -> Floats | None:
    if name is None:
        return None
    if name not in data.numbers:
        raise UsageError(
            f"the data has no column {name!r} of numbers", hint="read it with numbers=[...]"
        )
    return data.numbers[name]
