"""Assess changes that are made up, to see what an assessment of a real one would cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt

import numpy as np

from masa.data.baseline_answers import BaselineAnswers, labelled_only
from masa.data.dataset import Dataset
from masa.data.features import Words, ranks
from masa.data.strata import mixed
from masa.errors import UsageError
from masa.inference.counts import true_matrix
from masa.inference.method import Method
from masa.inference.spread import UNKNOWN_SCATTER
from masa.records import (
    ERROR,
    UNLABELLED,
    Codes,
    Column,
    Curve,
    Floats,
    Point,
    Progress,
    Replay,
    Shift,
    StoppingReport,
    in_order,
)
from masa.replays.curve import cores
from masa.replays.expected import RUNS as EXPECTED_RUNS
from masa.replays.expected import expected_curve
from masa.replays.learned_change import LearnedChange, draw_items, probabilities
from masa.replays.replay import RecordedCase, described, replayed, size_of
from masa.replays.simulate import NewAnswers
from masa.replays.whole_runs import Noise, WholeRuns
from masa.settings import RecordedColumns, ReplaySettings, Settings

LEAST_ERROR = 1e-6
"""No smaller error is aimed at."""

LOW_CONFIDENCE, WRONG, DISAGREES = 1.5, 0.5, 1.5
"""Log odds of a change: more for answers of low confidence, wrong ones, and those that others
do not give."""

EVENLY, DOUBTFUL = 0.0, 3.0
"""How much more or less than usually a change may hit doubtful answers rather: these log odds times
so much."""

BECOMES_RIGHT = 0.5
"""How often a wrong answer that changes becomes right."""

PRIOR_CHANGES = 2.0
"""Weight of the usual mistakes, in changes, beside what changed answers were seen to become."""

LARGEST_RATIO = 3.0
"""An error further than this from that of a made-up change has another cause."""

SCALED = ("auto", "predictive")
"""Methods whose errors an earlier assessment tells."""

FEW_RUNS, FEWER_RUNS = 16, 4
"""Whole assessments that are played where a share is wanted, and where a mean is."""

SWITCHED_RUNS = 40
"""Assessments that are replayed where they switch to strata."""

LEAST_ITEMS = 30
"""Nothing can be planned from fewer items that represent others."""

OLD, NEW, OLD_CONFIDENCE = "old", "new", "old.confidence"
"""The columns that the simulations read."""


@dataclass(frozen=True, slots=True, eq=False)
class MadeUpChange:
    """The data with baseline answers, to which new answers can be made up."""

    data: Dataset
    answers: Column
    """the baseline answers"""
    settings: Settings
    old: BaselineAnswers
    runs: int
    methods: tuple[str, ...]
    progress: Progress | None = None
    learned: LearnedChange | None = None
    """an earlier change that this one resembles, where one was seen"""
    lean: float = 1.0
    """how much more than usually the change hits doubtful answers rather"""

    @property
    def noise(self) -> Noise | None:
        """How the API contradicts itself, where it does."""
        if self.old.repeats_itself:
            return None
        repeated = max(1, self.old.repeated)
        # Two answers differ if either of them is noise, so each is noise half as often.
        return Noise(0.5 * self.old.contradicted / repeated, repeat=repeated)

    def changed(self, share: float, variant: int = 0) -> Dataset:
        """Make up new answers of which this share is not as before."""
        new = self._new_answers(share, variant)
        return replace(self.data, predictions={**self.data.predictions, NEW: new})

    def laid_out(self, error: float, words: Words | None = None) -> Method:
        """Give the first method as it would draw for an error, whatever changes."""
        settings = replace(self.settings, target_error=error, canary=0, strict=False)
        old = BaselineAnswers(np.arange(len(self.data)), self.answers, self.old.confidence)
        return Method.of(
            self.data,
            old,
            settings,
            name=self.methods[0],
            words=words,
            new_answers=self._names(),
        )

    def words(self) -> Words | None:
        """Read the words of the texts."""
        inputs = self.data.inputs
        if inputs is None or len(inputs.columns) != 1:
            return None
        return Words.of(self.data.texts(inputs.columns[0]))

    def curve(
        self,
        method: Method,
        share: float,
        *,
        budgets: Sequence[int],
        error: float,
        runs: int = EXPECTED_RUNS,
    ) -> Curve:
        """Give the error of a method that was laid out, when this share of the answers changed."""
        most = len(self.data)
        budgets = tuple(sorted({min(budget, most) for budget in budgets}))
        if method.layout is not None:
            found = expected_curve(
                method,
                NewAnswers(self._new_answers(share, 0)),
                budgets=budgets,
                error=error,
                confidence=self.settings.confidence,
                runs=runs,
                seed=self.settings.seed or 0,
            )
            if found is not None:
                return replace(found, method=self.methods[0])
        # Where runs switch to strata only many of them tell.
        replayed = min(self.runs, SWITCHED_RUNS)
        played = self.replay(
            share, methods=self.methods[:1], budgets=budgets, error=error, runs=replayed
        )
        return played.curves[0]

    def replay(
        self,
        share: float,
        *,
        methods: Sequence[str],
        budgets: Sequence[int],
        error: float,
        runs: int | None = None,
        variant: int = 0,
    ) -> Replay:
        """Play many assessments of a change of this share of the answers."""
        settings = self._replay_settings(methods, budgets, error, runs or self.runs)
        return replayed(self._recorded(share, variant), settings)

    def no_change_error(self, share: float) -> float:
        """Give the error of saying that nothing changed."""
        new = self._new_answers(share, 0)
        strata = mixed(self.data, None, levels=1, mix=self.settings.mix)
        shift = Shift(true_matrix(strata, self.answers), true_matrix(strata, new))
        return size_of(shift, self.settings.weights)

    def error_ratio(self, share: float, method: Method) -> float:
        """Give the error of an earlier assessment, relative to that of a made-up one.

        It knew more about where its change fell than was learned from it, or less. This is known
        only for methods that draw as it did.
        """
        like = self.learned
        if like is None or like.error2 is None or like.answers >= len(self.data):
            return 1.0
        if self.methods[0] not in SCALED:
            return 1.0
        played = self.curve(method, share, budgets=(like.answers,), error=0.5)
        simulated = played.mean_squared_error[0]
        if simulated <= 0.0:
            return 1.0
        ratio = sqrt(like.error2 / simulated)
        return min(max(ratio, 1.0 / LARGEST_RATIO), LARGEST_RATIO)

    def scaled(
        self,
        method: Method,
        share: float,
        *,
        budgets: Sequence[int],
        error: float,
        ratio: float,
        runs: int = EXPECTED_RUNS,
    ) -> Curve:
        """Give the first method's error, times a ratio, with what is left when all are asked."""
        remaining = self.remaining_error2(share)
        aim = aimed(error, ratio)
        aim = sqrt(max(aim**2 - UNKNOWN_SCATTER * remaining, LEAST_ERROR**2))
        found = self.curve(method, share, budgets=budgets, error=aim, runs=runs)
        return _with_more_error(_multiplied(found, ratio), remaining)

    def other_methods(
        self, first: Curve, share: float, *, budgets: Sequence[int], error: float
    ) -> Replay:
        """Play many assessments with the other methods; the first one's curve is known."""
        remaining = self.remaining_error2(share)
        aim = sqrt(max(error**2 - UNKNOWN_SCATTER * remaining, LEAST_ERROR**2))
        others = self.methods[1:]
        recorded = self._recorded(share, 0)
        settings = self._replay_settings(others or self.methods, budgets, aim, self.runs)
        if not others:
            return replace(described(recorded, settings, (first,)), target_error=error)
        found = replayed(recorded, settings)
        curves = (first, *(_with_more_error(curve, remaining) for curve in found.curves))
        return replace(found, curves=curves, target_error=error)

    def _recorded(self, share: float, variant: int) -> RecordedCase:
        inputs = self.data.inputs
        text = None
        if inputs is not None and len(inputs.columns) == 1:
            text = inputs.columns[0]
        return RecordedCase.of(
            self.changed(share, variant),
            RecordedColumns(
                new=NEW,
                old=OLD,
                old_confidence=None if self.old.confidence is None else OLD_CONFIDENCE,
                also=self.settings.also,
                text=text,
                difficulty="given",
            ),
        )

    def _replay_settings(
        self, methods: Sequence[str], budgets: Sequence[int], error: float, runs: int
    ) -> ReplaySettings:
        return ReplaySettings(
            levels=self.settings.levels,
            methods=tuple(methods),
            budgets=tuple(budgets),
            runs=runs,
            target_error=error,
            confidence=self.settings.confidence,
            mix=self.settings.mix,
            weights=self.settings.weights,
            seed=self.settings.seed or 0,
        )

    def remaining_error2(self, share: float) -> float:
        """Give the squared error that is left when all items were asked.

        It comes from items that represent others.
        """
        if self.old.weight is None or self.old.extra_variance is None:
            return 0.0
        new = self._new_answers(share, 0)
        differs = self.answers.on(new.values).codes != new.codes
        return 2.0 * float((self.old.weight * self.old.extra_variance)[differs].sum())

    def ended(
        self, share: float, *, budget: int | None, target_error: float | None = None
    ) -> StoppingReport:
        """Play a few whole assessments, of an API with as much noise as this one has."""
        data = self.changed(share)
        settings = replace(
            self.settings,
            method=self.methods[0],
            canary=0,
            canary_ok=False,
            strict=False,
            decide=False,
            target_error=target_error,
        )
        old = replace(self.old, answers=self.answers, asked_twice={})
        runs = WholeRuns(
            data, old, data.predictions[NEW], settings, budget=budget, noise=self.noise
        )
        return runs.play(FEW_RUNS if target_error is None else FEWER_RUNS, workers=cores())

    def tell(self, what: str, done: float) -> None:
        """Tell whoever watches."""
        if self.progress is not None:
            self.progress(what, done)

    def _new_answers(self, share: float, variant: int) -> Column:
        """Make up the new answer of every item."""
        rng = np.random.default_rng((self.settings.seed or 0, round(1e6 * share), variant))
        old, label = self.answers, self.data.label
        names = self._names()
        codes: Codes = old.codes.astype(np.int32).copy()
        count = max(1, round(share * len(codes)))
        hit = np.flatnonzero(draw_items(probabilities(self.log_odds(), count), rng))
        if len(names) < 2:
            return Column(NEW, names, codes)
        tables = self._what_answers_become(names)
        # Items of one label and one old answer change alike: each such kind is drawn at once.
        kind = label.codes[hit].astype(np.int64) * len(names) + codes[hit]
        hit, kind = hit[np.argsort(kind, kind="stable")], np.sort(kind)
        kinds, begin = np.unique(kind, return_index=True)
        for one, items in zip(kinds.tolist(), np.split(hit, begin[1:]), strict=True):
            row, was = divmod(one, len(names))
            chance = tables.of(row, was)
            codes[items] = rng.choice(len(names), len(items), p=chance)
        return Column(NEW, names, codes)

    def _names(self) -> tuple[str, ...]:
        """Give the answers that a changed item may get."""
        named = [*self.answers.values]
        named += [name for name in self.data.label.values if name != UNLABELLED]
        if self.learned is not None:
            named += [name for to in self.learned.became.values() for name in to]
        return tuple(dict.fromkeys(named))

    def _what_answers_become(self, names: tuple[str, ...]) -> "_Becomes":
        old, label = self.answers, self.data.label
        place = {name: code for code, name in enumerate(names)}
        right = np.array([place.get(name, -1) for name in label.values], np.int32)
        usual = np.bincount(old.codes, minlength=len(names)) / len(old.codes)
        mistakes = np.zeros((len(label.values), len(names))) + 0.1 * usual + 1e-9
        np.add.at(mistakes, (label.codes, old.codes), 1.0)
        mistakes[np.flatnonzero(right >= 0), right[right >= 0]] = 1e-9
        return _Becomes(names, label.values, place, right, mistakes, self.learned)

    def log_odds(self) -> Floats:
        """Give the log odds (N,) that each item changes.

        Those of an earlier change, or what usually predicts one.
        """
        if self.learned is not None:
            return self.learned.log_odds
        old, label = self.answers, self.data.label
        place = {name: code for code, name in enumerate(old.values)}
        right = np.array([place.get(name, -1) for name in label.values])[label.codes]
        likely = WRONG * (right != old.codes)
        if self.old.confidence is not None:
            likely = likely - LOW_CONFIDENCE * ranks(self.old.confidence)
        for name in self.settings.also:
            column = self.data.predictions[name]
            other = column.on(in_order((*column.values, *old.values)))
            likely = likely + DISAGREES * (other.codes != old.on(other.values).codes)
        return np.asarray(self.lean * likely, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Becomes:
    """How probable it is that an answer that changes becomes which other one."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    place: dict[str, int]
    right: Codes
    """(L,) the right answer of each label, or -1"""
    mistakes: Floats
    """(L, P) how often each wrong answer is given"""
    learned: LearnedChange | None

    def of(self, row: int, was: int) -> Floats:
        """Give the probabilities (P,) for one label and one old answer."""
        chance = np.where(np.arange(len(self.names)) == was, 0.0, self.mistakes[row])
        chance /= chance.sum()
        if self.right[row] not in (-1, was):
            becomes_right = BECOMES_RIGHT
            if self.learned is not None:
                becomes_right = self.learned.becomes_right
            chance *= 1.0 - becomes_right
            chance[self.right[row]] += becomes_right
        seen: dict[str, int] = {}
        if self.learned is not None:
            seen = dict(self.learned.became.get((self.labels[row], self.names[was]), {}))
        chance *= PRIOR_CHANGES
        chance[[self.place[name] for name in seen]] += list(seen.values())
        chance[was] = 0.0
        return np.asarray(chance / chance.sum())


def _each_once(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))


def queries_for(curve: Curve, error: float) -> int | None:
    """Give the number of queries at which the error of a curve falls below this.

    Between the points of the curve it is interpolated. A quantile over few runs goes up and down,
    so the falling curve nearest to it is taken.
    """
    from scipy.optimize import isotonic_regression

    errors = np.array([point.error_quantile for point in curve.path])
    if not len(errors):
        return None
    falling = isotonic_regression(np.log(np.maximum(errors, 1e-12)), increasing=False).x
    below = np.flatnonzero(falling <= log(error) + 1e-12)
    if not len(below):
        return None
    last = int(below[0])
    if not last:
        return curve.path[0].queries
    part = (falling[last - 1] - log(error)) / (falling[last - 1] - falling[last])
    before, after = curve.path[last - 1].queries, curve.path[last].queries
    return round(exp(log(before) + part * log(after / before)))


def aimed(error: float, ratio: float) -> float:
    """Give the error to aim at in a simulation where the real one is `ratio` times as large."""
    return min(max(error / ratio, LEAST_ERROR), 0.9)


def _multiplied(curve: Curve, factor: float) -> Curve:
    """Multiply the errors of a curve."""
    path = [
        Point(point.queries, factor * point.root_mean_squared_error, factor * point.error_quantile)
        for point in curve.path
    ]
    return replace(
        curve,
        mean_squared_error=tuple(factor**2 * value for value in curve.mean_squared_error),
        error_quantile=tuple(factor * value for value in curve.error_quantile),
        path=tuple(path),
    )


def _with_more_error(curve: Curve, more: float) -> Curve:
    """Add to the squared errors of a curve."""
    if not more:
        return curve

    def quantile(root: float, mean2: float) -> float:
        # The addition scatters as the rest does: by the same ratio of quantile to mean.
        ratio = root**2 / mean2 if mean2 > 0.0 else UNKNOWN_SCATTER
        return sqrt(root**2 + more * ratio)

    path = []
    for point in curve.path:
        mean2 = point.root_mean_squared_error**2
        path.append(Point(point.queries, sqrt(mean2 + more), quantile(point.error_quantile, mean2)))
    both = zip(curve.error_quantile, curve.mean_squared_error, strict=True)
    return replace(
        curve,
        mean_squared_error=tuple(value + more for value in curve.mean_squared_error),
        error_quantile=tuple(quantile(*pair) for pair in both),
        path=tuple(path),
        queries_for_target=None,
    )


def made_up_change(
    data: Dataset,
    old: BaselineAnswers,
    settings: Settings,
    *,
    runs: int,
    methods: Sequence[str] | None = None,
    like: LearnedChange | None = None,
    progress: Progress | None = None,
) -> MadeUpChange:
    """Lay out the data with a baseline answer for every item, as the simulations want it."""
    if not data.labelled.all():
        data, old = labelled_only(data, old)
    if old.weight is not None and len(data) < LEAST_ITEMS:
        raise UsageError(
            f"the baseline has no more than {len(data):,} items",
            hint="make a larger one (masa baseline) to plan from",
        )
    answers = old.answers
    if ERROR in answers.values:
        answers = _filled(data, old)
    numbers = dict(data.numbers)
    difficulty = data.difficulty
    if old.confidence is not None:
        numbers[OLD_CONFIDENCE] = old.confidence
        if difficulty is None:
            difficulty = old.confidence
    column = Column(OLD, answers.values, answers.codes)
    data = replace(
        data,
        predictions={**data.predictions, OLD: column},
        numbers=numbers,
        difficulty=difficulty,
    )
    return MadeUpChange(
        data,
        column,
        settings,
        replace(old, answers=column),
        runs,
        _methods(data, old, methods),
        progress,
        like,
    )


def _methods(data: Dataset, old: BaselineAnswers, methods: Sequence[str] | None) -> tuple[str, ...]:
    """Give the methods to compare."""
    if data.group is not None:
        if methods and tuple(methods) != ("predictive",):
            raise UsageError("only the method predictive knows groups", hint="leave out --method")
        return ("predictive",)
    if methods:
        return tuple(methods)
    return ("auto", "masa", "post-stratified") if old.drawn_evenly else ("auto",)


def _filled(data: Dataset, old: BaselineAnswers) -> Column:
    """Give items whose baseline call failed the answer of another item with the same label."""
    rng = np.random.default_rng(0)
    names = tuple(name for name in old.answers.values if name != ERROR)
    answers = old.answers.on((*names, ERROR))
    codes = np.where(answers.codes < len(names), answers.codes, -1).astype(np.int32)
    all_known = codes[codes >= 0]
    if not len(all_known):
        raise UsageError(
            "all calls of the baseline failed: there is nothing to plan from",
            hint="make another (masa baseline)",
        )
    for label in np.unique(data.label.codes[codes < 0]):
        mine = data.label.codes == label
        known = codes[mine & (codes >= 0)]
        missing = mine & (codes < 0)
        if not len(known):
            known = all_known
        codes[missing] = rng.choice(known, int(missing.sum()))
    return Column(OLD, names, codes)
