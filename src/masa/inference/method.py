"""The one place that chooses a method.

How items are drawn, and how their answers are estimated from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.data.features import Features, Words, names_a_file
from masa.data.strata import Strata, adaptive_strata, mixed, paired_strata
from masa.errors import UsageError
from masa.inference.estimate import (
    Estimate,
    estimate_from_batches,
    estimate_from_sequence,
    estimate_from_strata,
)
from masa.inference.spread import share
from masa.records import Bools, Column, Floats, Ints
from masa.sampling.draws import Draws
from masa.sampling.layout import ItemCells, Layout
from masa.sampling.predictive import Predictive
from masa.sampling.sequential import Sequential
from masa.sampling.shrunken import Shrunken
from masa.sampling.source import Source
from masa.sampling.stratified import Sampler
from masa.sampling.switch import Switch
from masa.settings import Objective, Settings
from masa.settings.methods import ADAPTIVE

BY_SHRUNKEN_STRATA = ("paired", "adaptive")
"""Methods that draw from strata whose variances are shrunk towards each other."""

BASELINE_CONFIDENCE = "the confidence of the baseline's answers"
"""The difficulty, in words, where it is that. Stored runs are recognised by it: never reworded."""


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """How items are drawn and how their answers are estimated from, on some data.

    Live assessments, replays and plans all get it from `Method.of`, so that what a replay measures
    is what an assessment does.
    """

    name: str
    """predictive, paired, ...: never auto, which has been decided"""
    data: Dataset
    old: BaselineAnswers | None
    """None only in replays without baseline answers"""
    strata: Strata
    difficulty: str
    """what the levels of the strata are made from, in words"""
    objective: Objective
    seed: int
    features: Features | None = None
    """what predicts that an answer changed"""
    cells: ItemCells | None = None
    """the items by label and baseline answer, where there are baseline answers"""
    layout: Layout | None = None
    """the items as predictive sampling sees them"""
    rest: Strata | None = None
    """the strata to draw from after a switch"""
    strict: bool = False
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        data: Dataset,
        old: BaselineAnswers | None,
        settings: Settings,
        *,
        name: str | None = None,
        words: Words | None = None,
        new_answers: Sequence[str] = (),
        asked_lately: Bools | None = None,
    ) -> "Method":
        """Choose by what is known before anything is asked.

        Every item has a baseline answer, or none has. Replays pass in the name of the method, the
        words of the items and the answers that will come. A live run takes the name from the
        settings and the words from the data, and cannot know the new answers. Asked_lately (N,)
        says which items the last run asked: the others come a little sooner.
        """
        wanted = name or settings.method
        others = tuple(_free_answers(data, column) for column in settings.also)
        features = None
        if old is not None:
            if words is None and wanted in ("auto", "predictive"):
                words = _words(data)
            flickered = np.zeros(len(data), np.bool_)
            flickered[[place for place, twice in old.asked_twice.items() if twice]] = True
            features = Features(old.answers, old.confidence, others, words, flickered)
        chosen, notes = _decided(wanted, features)
        _check(chosen, data, old, settings)
        strata, difficulty = build_strata(data, old, settings)
        method = cls(
            name=chosen,
            data=data,
            old=old,
            strata=strata,
            difficulty=difficulty,
            objective=settings.weights,
            seed=settings.seed or 0,
            features=features,
            strict=settings.strict,
            notes=notes,
        )
        if chosen == "predictive":
            return method._with_layout(
                settings, others, new_answers, asked_lately, may_switch=wanted == "auto"
            )
        if chosen in BY_SHRUNKEN_STRATA:
            method = replace(method, strata=method._shrunken_strata(settings, others))
        return method._with_cells()

    def _with_layout(
        self,
        settings: Settings,
        others: tuple[Column, ...],
        new_answers: Sequence[str],
        asked_lately: Bools | None,
        *,
        may_switch: bool,
    ) -> "Method":
        """Lay the items out for predictive sampling, with strata to switch to where that may be."""
        old, features = self.old, self.features
        assert old is not None and features is not None  # noqa: S101, PT018 - checked before
        may_switch = may_switch and not settings.strict and old.weight is None
        rest = None
        if may_switch and self.data.group is None:
            rest = _unpaired(self.data, old, settings, others)
        # After a rewrite strata measure the whole matrix better, and accuracy worse: they are
        # switched to only where the error of the matrix is what counts.
        switches = rest is not None and settings.target_error is not None
        layout = Layout.of(
            self.data.label,
            features,
            weight=self.strata.item_weight,
            objective=self.objective,
            cost=self.data.cost,
            group=self.data.group,
            new=new_answers,
            rest=rest,
            switches=switches,
            asked_lately=asked_lately,
            canaries=(settings.canary + 1) // 2,
            extra_variance=_extra_variance(old, self.strata),
        )
        return replace(self, layout=layout, rest=rest)

    def _with_cells(self) -> "Method":
        """Sort the items by label and baseline answer, where there are baseline answers."""
        old = self.old
        if old is None:
            return self
        cells = ItemCells.of(
            self.data.label,
            old.answers,
            weight=self.strata.item_weight,
            extra_variance=_extra_variance(old, self.strata),
        )
        return replace(self, cells=cells)

    def _shrunken_strata(self, settings: Settings, others: tuple[Column, ...]) -> Strata:
        if self.name == "adaptive":
            strata = _unpaired(self.data, self.old, settings, others)
        else:
            features = self.features
            assert features is not None  # noqa: S101 - paired needs baseline answers
            if features.confidence is None:
                features = replace(features, confidence=self.data.difficulty)
            strata = paired_strata(
                self.data.label, features, levels=settings.levels, mix=settings.mix
            )
        if self.old is None or self.old.weight is None:
            return strata
        return strata.weighing(self.strata.item_weight)

    def source(self, *, seed: int | None = None) -> Source:
        """Make what chooses the items."""
        key = self.seed if seed is None else seed
        if self.name == "predictive":
            return self._predictive(key)
        if self.name in BY_SHRUNKEN_STRATA:
            old = self.baseline_column if self.name == "paired" else None
            return Shrunken(
                self.strata,
                old=old,
                objective=self.objective,
                cost=self.data.cost,
                seed=key,
            )
        return Sampler(self.strata, method=self.name, seed=key)

    def _predictive(self, seed: int) -> Source:
        layout, features, rest = self.layout, self.features, self.rest
        assert layout is not None and features is not None  # noqa: S101, PT018
        if self.strict:
            return Sequential(layout, features, seed=seed)
        first = Predictive(layout, features, seed=seed)
        if rest is None:
            return first

        def after_switch() -> Shrunken:
            return Shrunken(rest, objective=self.objective, cost=self.data.cost, seed=seed)

        return Switch(first, after_switch, allowed=layout.rest.may_switch)

    @property
    def baseline_column(self) -> Column:
        """The baseline answers of all items."""
        assert self.old is not None  # noqa: S101 - only replays do without
        return self.old.answers

    @property
    def baseline_variance(self) -> Floats:
        """(N,) what each item adds to the variance of a sum over all, as it represents others."""
        weight = self.strata.item_weight
        extra = None if self.old is None else _extra_variance(self.old, self.strata)
        return np.zeros(len(weight)) if extra is None else weight * extra

    @property
    def words(self) -> Words | None:
        """The words of the items, where they help to choose."""
        return None if self.features is None else self.features.words

    @property
    def may_switch(self) -> bool:
        """Whether there are strata to go over to; a run that has done so can be resumed."""
        return self.rest is not None

    def exhausted(self, places: Ints) -> bool:
        """Say whether these are all of the items that count."""
        left = self.strata.item_weight > 0.0
        left[places] = False
        return not left.any()

    def estimate(
        self, places: Ints, answers: Column, draws: Draws | None, *, finite: bool
    ) -> Estimate:
        """Estimate the shift from the answers about these items (n,).

        Finite: the items that were asked are known for good, because the API repeats itself.
        """
        found = self._estimate(places, answers, draws, finite=finite)
        old = self.old
        if old is None or old.repeats_itself:
            return found
        repeated, contradicted = old.noise_counts
        return replace(found, noise=share(contradicted, repeated))

    def _estimate(
        self, places: Ints, answers: Column, draws: Draws | None, *, finite: bool
    ) -> Estimate:
        old = self.old
        assert old is not None  # noqa: S101 - only replays do without
        if self.layout is None or draws is None:
            assert self.cells is not None  # noqa: S101 - there are baseline answers
            return estimate_from_strata(
                self.cells,
                self.strata,
                old,
                places,
                answers,
                finite=finite,
                adaptive=self.name in ADAPTIVE,
            )
        if self.strict:
            return estimate_from_sequence(self.layout, self.strata, old, places, answers, draws)
        found = estimate_from_batches(
            self.layout,
            self.strata,
            old,
            places,
            answers,
            draws,
            group=self.data.group,
            rest=self.rest,
            finite=finite,
        )
        return found.labelled()


def _decided(wanted: str, features: Features | None) -> tuple[str, tuple[str, ...]]:
    """Give the method that auto is, and why."""
    if wanted != "auto":
        return wanted, ()
    if features is None:
        return "adaptive", ("method adaptive: there are no baseline answers",)
    return "predictive", (f"method predictive: {features.in_words}",)


def _check(name: str, data: Dataset, old: BaselineAnswers | None, settings: Settings) -> None:
    """Raise for a method that cannot do what is asked of it on this data."""
    if old is None:
        if name in ("predictive", "paired"):
            raise UsageError(
                f"the method {name} needs the old answers", hint="name their column with --old COL"
            )
    else:
        _check_baseline(name, old, settings)
    if settings.strict:
        _check_strict(name, data, old, settings)
    if name == "predictive":
        return
    if settings.canary:
        raise UsageError(
            f"the method {name} has no canaries", hint="leave out --method, or the canary"
        )
    if not data.labelled.all():
        raise UsageError(
            f"the method {name} asks only about items with a label", hint="leave out --unlabelled"
        )
    if data.group is not None:
        raise UsageError(
            f"the method {name} does not know groups",
            hint="leave out --method, or use predictive, which needs the old answers",
        )


def _check_baseline(name: str, old: BaselineAnswers, settings: Settings) -> None:
    """Raise for what cannot be estimated from this baseline."""
    missing = set(old.uncovered) & {*(settings.mix or ()), *settings.weights.weights}
    if missing:
        raise UsageError(
            f"the mix or the weights name {', '.join(map(repr, sorted(missing)))}, "
            "about which the baseline has no answers",
            hint="make a baseline of more items (masa baseline), or leave that out",
        )
    if name == "paired" and old.weight is not None:
        raise UsageError(
            "the method paired must know how often each old answer is given; "
            "the baseline has only part of the items",
            hint="leave out --method, or make a baseline of all items (masa baseline)",
        )
    if name != "predictive" and not old.drawn_evenly:
        raise UsageError(
            f"the method {name} takes all items of a label to count alike; "
            f"run {old.run}, the baseline, chose its items by their answers",
            hint="leave out --method, or make a baseline with masa baseline",
        )


def _check_strict(
    name: str, data: Dataset, old: BaselineAnswers | None, settings: Settings
) -> None:
    """Raise where no interval is known that holds at all times at once."""
    partial = old is not None and old.weight is not None
    if name != "predictive" or partial:
        hint = "leave out --method"
        if partial:
            hint = "make a baseline of all items (masa baseline)"
        raise UsageError(
            "strict intervals need the old answer of every item, and the method auto", hint=hint
        )
    if old is not None and not old.repeats_itself:
        raise UsageError(
            "strict intervals are for an API that repeats itself; "
            f"{old.contradicted:,} of {old.repeated:,} items asked twice were answered "
            "differently, or too few were asked",
            hint="leave out --strict",
        )
    if settings.canary or data.group is not None or not data.labelled.all():
        raise UsageError(
            "strict runs know no canary, no groups and no items without a label",
            hint="leave those out",
        )


def _free_answers(data: Dataset, name: str) -> Column:
    if name not in data.predictions:
        raise UsageError(
            f"the data has no column {name!r} of predictions",
            hint="read it with predictions=[...]",
        )
    return data.predictions[name]


def _unpaired(
    data: Dataset,
    old: BaselineAnswers | None,
    settings: Settings,
    others: tuple[Column, ...],
) -> Strata:
    """Build the strata of a method that does not use the baseline answers."""
    difficulty = data.difficulty
    if difficulty is None and old is not None:
        difficulty = old.confidence
    cheap = others[0] if others else None
    return adaptive_strata(
        data.label, cheap, difficulty=difficulty, levels=settings.levels, mix=settings.mix
    )


def _words(data: Dataset) -> Words | None:
    """Give the words of what the API is shown; names of images and sounds say nothing about it."""
    if data.inputs is None:
        return None
    first = (data.item(place).text for place in range(min(100, len(data))))
    if all(map(names_a_file, first)):
        return None
    return Words.of_data(data)


def build_strata(
    data: Dataset, old: BaselineAnswers | None, settings: Settings, *, all_items: bool = False
) -> tuple[Strata, str]:
    """Split the items by label and difficulty, and say what the difficulty is."""
    difficulty, words = data.difficulty, settings.difficulty or "given"
    weight = None
    if old is not None:
        weight = old.weight
    if difficulty is None:
        words = ""
        if old is not None and old.confidence is not None:
            difficulty, words = old.confidence, BASELINE_CONFIDENCE
    strata = mixed(
        data,
        difficulty,
        levels=settings.levels,
        mix=settings.mix,
        weight=weight,
        all_items=all_items,
    )
    return strata, words


def _extra_variance(old: BaselineAnswers, strata: Strata) -> Floats | None:
    """Give the extra variance of each item (N,) for the weights that items have in these strata."""
    if old.weight is None or old.extra_variance is None:
        return None
    ratio = np.divide(
        strata.item_weight, old.weight, out=np.zeros(len(old.weight)), where=old.weight > 0.0
    )
    return np.asarray(old.extra_variance * ratio)
