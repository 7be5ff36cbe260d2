"""Assess a change that is made up, to see what an assessment would cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.data.features import ranks
from masa.errors import UsageError
from masa.inference.spread import UNKNOWN
from masa.inference.stopping import Stopping
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
    StoppingReport,
    in_order,
)
from masa.replays.learned_change import LearnedChange, chances, picked
from masa.replays.replay import LEAST_ERROR, cores, replay
from masa.replays.whole_runs import Noise, play_whole_runs
from masa.settings import Settings

DOUBT, WRONG, DISAGREES = 1.5, 0.5, 1.5
"""Changes are made up that rather hit doubtful answers, wrong ones, and what others answer otherwise: logarithms of odds."""

MENDED = 0.5
"""How often a wrong answer that changes becomes right."""

BELIEF = 2.0
"""Changes' worth of belief that an answer becomes what wrong ones are, where it was seen what it became earlier."""

FARTHEST = 3.0
"""How many times as large an error may be as a made-up change's; remaining that something else is the matter."""

SCALED = ("auto", "predictive")
"""Methods of which an earlier assessment tells how large their errors are."""

FEW = 16
"""Whole assessments that are played where a mean is wanted."""

LEAST_ITEMS = 30
"""Items that stand for others: from fewer nothing can be planned."""

OLD, NEW, SURE_OF_OLD = "old", "new", "old.confidence"


@dataclass(frozen=True, slots=True, eq=False)
class MadeUpChange:
    """The data with old answers, to which new ones can be made up."""

    data: Dataset
    old: Column
    settings: Settings
    known: BaselineAnswers
    runs: int
    methods: tuple[str, ...]
    progress: Progress | None = None
    learned: LearnedChange | None = None
    """what is known of an earlier change, which this one is like"""

    @property
    def noise(self) -> Noise | None:
        """How the API contradicts itself, where it does."""
        if self.known.repeats_itself:
            return None
        return Noise(
            0.5 * self.known.contradicted / max(1, self.known.repeated),
            repeat=max(1, self.known.repeated),
        )

    def changed(self, share: float, once_more: int = 0) -> Dataset:
        """Make up new answers of which this share is not as before, one way or another."""
        return replace(
            self.data, predictions={**self.data.predictions, NEW: self._new(share, once_more)}
        )

    def replay(
        self,
        share: float,
        *,
        methods: Sequence[str],
        budgets: Sequence[int],
        error: float,
        runs: int | None = None,
        once_more: int = 0,
    ) -> Replay:
        """Play many assessments of that."""
        inputs = self.data.inputs
        return replay(
            self.changed(share, once_more),
            new=NEW,
            old=OLD,
            old_confidence=None if self.known.confidence is None else SURE_OF_OLD,
            also=self.settings.also,
            text=inputs.columns[0] if inputs is not None and len(inputs.columns) == 1 else None,
            difficulty="given",
            levels=self.settings.levels,
            methods=methods,
            budgets=budgets,
            runs=runs or self.runs,
            target_error=error,
            confidence=self.settings.confidence,
            mix=self.settings.mix,
            seed=abs(self.settings.seed),
        )

    def truer(self, share: float) -> float:
        """Give how many times as large as a made-up assessment's the error was that an earlier one was left with.

        It knew more of where its change, of this share of the answers, fell than was learned from it, or less. Only of methods
        that draw as it did anything is known.
        """
        like = self.learned
        methods = [name for name in self.methods if name in SCALED][:1]
        if like is None or like.error2 is None or like.answers >= len(self.data) or not methods:
            return 1.0
        played = self.replay(share, methods=methods, budgets=(like.answers,), error=0.5)
        guessed = played.curves[0].mean_squared_error[0]
        ratio = sqrt(like.error2 / guessed) if guessed > 0.0 else 1.0
        return min(max(ratio, 1.0 / FARTHEST), FARTHEST)

    def replays(
        self, share: float, *, budgets: Sequence[int], error: float, truer: float
    ) -> Replay:
        """Play many assessments with each method, the errors of those that are scaled being that many times as large."""
        parts, remaining = [], self.remaining_error2(share)
        for scaled in (True, False):
            methods = [name for name in self.methods if (name in SCALED) is scaled]
            aim = _aimed(error, truer) if scaled else error
            if methods:
                aim = sqrt(max(aim**2 - UNKNOWN * remaining, LEAST_ERROR**2))
                parts.append(
                    (scaled, self.replay(share, methods=methods, budgets=budgets, error=aim))
                )
        curves = {
            curve.method: _and(_times(curve, truer) if scaled else curve, remaining)
            for scaled, played in parts
            for curve in played.curves
        }
        notes = tuple(dict.fromkeys(note for _, played in parts for note in played.notes))
        ordered = tuple(curves[name] for name in self.methods)
        return replace(parts[0][1], curves=ordered, target_error=error, notes=notes)

    def remaining_error2(self, share: float) -> float:
        """Give the squared error of the shift that is left when all is asked, because these items stand for others."""
        if self.known.weight is None or self.known.extra_variance is None:
            return 0.0
        new = self._new(share, 0)
        apart = self.old.on(new.values).codes != new.codes
        return 2.0 * float((self.known.weight * self.known.extra_variance)[apart].sum())

    def ended(self, share: float, stopping: Stopping, *, budget: int | None) -> StoppingReport:
        """Play a few whole assessments, of an API that contradicts itself as much as this one does."""
        data = self.changed(share)
        return play_whole_runs(
            data,
            new=data.predictions[NEW],
            old=replace(self.known, answers=self.old, asked_twice={}),
            settings=replace(self.settings, method=self.methods[0], canary=0, strict=False),
            stopping=stopping,
            budget=budget,
            noise=self.noise,
            runs=FEW,
            workers=cores(),
        )

    def tell(self, what: str, done: float) -> None:
        """Tell whoever watches."""
        if self.progress is not None:
            self.progress(what, done)

    def _new(self, share: float, once_more: int) -> Column:
        luck = np.random.default_rng((abs(self.settings.seed), round(1e6 * share), once_more))
        old, label = self.old, self.data.label
        became = {} if self.learned is None else self.learned.became
        named = (
            *old.values,
            *(name for name in label.values if name != UNLABELLED),
            *(name for to in became.values() for name in to),
        )
        names = tuple(dict.fromkeys(named))
        place = {name: code for code, name in enumerate(names)}
        right = np.array([place.get(name, -1) for name in label.values], np.int32)
        usual = np.bincount(old.codes, minlength=len(names)) / len(old.codes)
        mistakes = np.zeros((len(label.values), len(names))) + 0.1 * usual + 1e-9
        np.add.at(mistakes, (label.codes, old.codes), 1.0)
        mistakes[np.flatnonzero(right >= 0), right[right >= 0]] = 1e-9
        codes: Codes = old.codes.astype(np.int32).copy()
        hit = np.flatnonzero(
            picked(chances(self._likely(), max(1, round(share * len(codes)))), luck)
        )
        kind = label.codes[hit].astype(np.int64) * len(names) + codes[hit]
        hit, kind = hit[np.argsort(kind, kind="stable")], np.sort(kind)
        kinds, begin = np.unique(kind, return_index=True)
        for both, items in (
            zip(kinds.tolist(), np.split(hit, begin[1:]), strict=True) if len(names) > 1 else ()
        ):
            mine, was = divmod(both, len(names))
            chance = np.where(np.arange(len(names)) == was, 0.0, mistakes[mine])
            chance /= chance.sum()
            if right[mine] not in (-1, was):
                mended = MENDED if self.learned is None else self.learned.mended
                chance *= 1.0 - mended
                chance[right[mine]] += mended
            seen = became.get((label.values[mine], names[was]), {})
            chance *= BELIEF
            chance[[place[name] for name in seen]] += list(seen.values())
            chance[was] = 0.0
            codes[items] = luck.choice(len(names), len(items), p=chance / chance.sum())
        return Column(NEW, names, codes)

    def _likely(self) -> Floats:
        """Give the log odds that each item (N,) changes: as earlier, or rather the doubtful, the wrong and the contradicted."""
        if self.learned is not None:
            return self.learned.likely
        old, label = self.old, self.data.label
        place = {name: code for code, name in enumerate(old.values)}
        right = np.array([place.get(name, -1) for name in label.values])[label.codes]
        likely = WRONG * (right != old.codes)
        if self.known.confidence is not None:
            likely = likely - DOUBT * ranks(self.known.confidence)
        for name in self.settings.also:
            other = self.data.predictions[name].on(
                in_order((*self.data.predictions[name].values, *old.values))
            )
            likely = likely + DISAGREES * (other.codes != old.on(other.values).codes)
        return np.asarray(likely, np.float64)


def queries_for(curve: Curve, error: float) -> int | None:
    """Give after how many queries the error of a curve is below this, between its points in proportion.

    A quantile over few runs goes up and down: the falling curve nearest to it is taken.
    """
    from scipy.optimize import isotonic_regression

    errors = np.array([point.error_quantile for point in curve.path])
    if not len(errors):
        return None
    falls = isotonic_regression(np.log(np.maximum(errors, 1e-12)), increasing=False).x
    below = np.flatnonzero(falls <= log(error) + 1e-12)
    if not len(below):
        return None
    last = int(below[0])
    if not last:
        return curve.path[0].queries
    part = (falls[last - 1] - log(error)) / (falls[last - 1] - falls[last])
    before, after = curve.path[last - 1].queries, curve.path[last].queries
    return round(exp(log(before) + part * log(after / before)))


def _aimed(error: float, truer: float) -> float:
    """Give the error to aim at where the true one is that many times as large."""
    return min(max(error / truer, LEAST_ERROR), 0.9)


def _times(curve: Curve, factor: float) -> Curve:
    """Give a curve whose errors are that many times as large."""
    return replace(
        curve,
        mean_squared_error=tuple(factor**2 * value for value in curve.mean_squared_error),
        error_quantile=tuple(factor * value for value in curve.error_quantile),
        path=tuple(
            Point(
                point.queries, factor * point.root_mean_squared_error, factor * point.error_quantile
            )
            for point in curve.path
        ),
    )


def _and(curve: Curve, more: float) -> Curve:
    """Give a curve whose squared errors are larger by so much."""
    if not more:
        return curve

    def quantile(root: float, mean2: float) -> float:
        return sqrt(root**2 + more * (root**2 / mean2 if mean2 > 0.0 else UNKNOWN))

    points = [(point, point.root_mean_squared_error**2) for point in curve.path]
    both = zip(curve.error_quantile, curve.mean_squared_error, strict=True)
    return replace(
        curve,
        mean_squared_error=tuple(value + more for value in curve.mean_squared_error),
        error_quantile=tuple(quantile(*pair) for pair in both),
        path=tuple(
            Point(one.queries, sqrt(mean2 + more), quantile(one.error_quantile, mean2))
            for one, mean2 in points
        ),
        queries_for_target=None,
    )


def made(
    data: Dataset,
    old: BaselineAnswers,
    settings: Settings,
    *,
    runs: int,
    methods: Sequence[str] | None = None,
    like: LearnedChange | None = None,
    progress: Progress | None = None,
) -> MadeUpChange:
    """Lay out the data with an old answer for every item, as the simulations want it."""
    if not data.labelled.all():
        data, old = _labelled(data, old)
    if old.weight is not None and len(data) < LEAST_ITEMS:
        raise UsageError(
            f"the baseline has no more than {len(data):,} items",
            hint="make a wider one (masa baseline) to plan from",
        )
    answers = old.answers
    if ERROR in answers.values:
        answers = _filled(data, old)
    numbers: dict[str, Floats] = {} if old.confidence is None else {SURE_OF_OLD: old.confidence}
    hardness = data.difficulty if data.difficulty is not None else old.confidence
    known = tuple(
        methods or (("auto", "masa", "post-stratified") if old.drawn_evenly else ("auto",))
    )
    if data.group is not None:
        if methods and tuple(methods) != ("predictive",):
            raise UsageError("only the method predictive knows groups", hint="leave out --method")
        known = ("predictive",)
    column = Column(OLD, answers.values, answers.codes)
    data = replace(
        data,
        predictions={**data.predictions, OLD: column},
        numbers={**data.numbers, **numbers},
        difficulty=hardness,
    )
    return MadeUpChange(
        data, column, settings, replace(old, answers=column), runs, known, progress, like
    )


def _labelled(data: Dataset, old: BaselineAnswers) -> tuple[Dataset, BaselineAnswers]:
    """Leave out the items without a label, which have no part in any of this."""
    keep = np.flatnonzero(data.labelled)
    place = np.full(len(data), -1)
    place[keep] = np.arange(len(keep))
    return data.take(keep), replace(
        old,
        places=np.arange(len(keep)),
        answers=Column(old.answers.name, old.answers.values, old.answers.codes[keep]),
        confidence=None if old.confidence is None else old.confidence[keep],
        weight=None if old.weight is None else old.weight[keep],
        extra_variance=None if old.extra_variance is None else old.extra_variance[keep],
        asked_twice={
            int(place[item]): again for item, again in old.asked_twice.items() if place[item] >= 0
        },
    )


def _filled(data: Dataset, old: BaselineAnswers) -> Column:
    """Give every item an old answer, those where it failed that of another item with the same label."""
    luck = np.random.default_rng(0)
    names = tuple(name for name in old.answers.values if name != ERROR)
    answers = old.answers.on((*names, ERROR))
    codes = np.where(answers.codes < len(names), answers.codes, -1).astype(np.int32)
    all_told = codes[codes >= 0]
    if not len(all_told):
        raise UsageError(
            "all calls of the baseline failed: there is nothing to plan from",
            hint="make another (masa baseline)",
        )
    for label in np.unique(data.label.codes[codes < 0]):
        mine = data.label.codes == label
        told = codes[mine & (codes >= 0)]
        lacking = mine & (codes < 0)
        codes[lacking] = luck.choice(told if len(told) else all_told, int(lacking.sum()))
    return Column(OLD, names, codes)
