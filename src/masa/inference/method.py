"""How to assess: which items are asked, chosen by what is known beforehand, and how their answers are weighed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.data.features import Features, Words
from masa.data.strata import Strata, adaptive_strata, mixed, paired_strata
from masa.errors import UsageError
from masa.inference.estimate import (
    Estimate,
    estimate_from_batches,
    estimate_from_sequence,
    estimated,
)
from masa.records import Column, Floats, Ints
from masa.sampling.draws import Draws
from masa.sampling.layout import Layout
from masa.sampling.predictive import Predictive
from masa.sampling.sequential import Sequential
from masa.sampling.shrunken import Shrunken
from masa.sampling.stratified import Sampler
from masa.sampling.switch import Switch
from masa.settings import Settings

Source = Sampler | Shrunken | Predictive | Switch


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How items are chosen, and how what they are answered is weighed."""

    method: str
    data: Dataset
    strata: Strata
    make: "Callable[[int], Source]"
    """gives what chooses the items, for a seed"""
    source: "Source"
    difficulty: str
    """what the strata's levels are, in words"""
    layout: Layout | None = None
    """where items are drawn in batches"""
    group: Column | None = None
    rest: Strata | None = None
    """strata to go on with once the old answers tell little"""
    notes: tuple[str, ...] = ()
    strict: bool = False

    @classmethod
    def of(
        cls, data: Dataset, old: BaselineAnswers, settings: Settings, *, words: Words | None = None
    ) -> "Plan":
        """Choose by what is known beforehand, the words of the items perhaps from another plan.

        The old answer of every item of the data is known, see `narrowed`.
        """
        method, notes = settings.method, []
        others = tuple(_also(data, name) for name in settings.also)
        features = Features(old.answers, old.confidence, others, words or _words(data, method))
        if method == "auto":
            method = "predictive"
            notes.append(f"method {method}: {features.in_words}")
        if lost := set(old.uncovered) & {*(settings.mix or ()), *settings.objective.weights}:
            raise UsageError(
                f"the mix or the weights name {', '.join(map(repr, sorted(lost)))}, of which the baseline has nothing",
                hint="make a baseline of more items (masa baseline), or leave that out",
            )
        if method == "paired" and old.weight is not None:
            raise UsageError(
                "the method paired must know how often each old answer is given; the baseline has only part of the items",
                hint="leave out --method, or make a baseline of all items (masa baseline)",
            )
        if method != "predictive" and not old.drawn_evenly:
            raise UsageError(
                f"the method {method} takes items to count alike; run {old.run}, the baseline, chose its items by their answers",
                hint="leave out --method, or make a baseline with masa baseline",
            )
        if method != "predictive" and settings.canary:
            raise UsageError(
                f"the method {method} has no canaries", hint="leave out --method, or the canary"
            )
        if method != "predictive" and not data.labelled.all():
            raise UsageError(
                f"the method {method} asks only about items with a label",
                hint="leave out --unlabelled",
            )
        if settings.strict:
            _check_strict(method, data, old, settings)
        strata, difficulty = stratified(data, old, settings)
        common: dict[str, Any] = {
            "objective": settings.objective,
            "cost": data.cost,
            "seed": settings.seed,
        }
        if method == "predictive":
            turns = (
                settings.method == "auto"
                and data.group is None
                and not settings.strict
                and old.weight is None
            )
            rest = _unpaired(data, old, settings, others) if turns else None
            layout = Layout.of(
                data.label,
                features,
                weight=strata.item_weight,
                group=data.group,
                rest=rest,
                canaries=(settings.canary + 1) // 2,
                extra_variance=_extra_variance(old, strata),
                **common,
            )

            def batches(seed: int) -> Source:
                first = (Sequential if settings.strict else Predictive)(layout, features, seed=seed)
                return (
                    first
                    if rest is None
                    else Switch(first, lambda: Shrunken(rest, **{**common, "seed": seed}))
                )

            return cls(
                method,
                data,
                strata,
                batches,
                batches(settings.seed),
                difficulty,
                layout,
                data.group,
                rest,
                tuple(notes),
                settings.strict,
            )
        if data.group is not None:
            raise UsageError(f"the method {method} does not know groups", hint="leave out --method")
        each = None if old.weight is None else strata.item_weight
        if method == "paired":
            known = (
                features
                if features.confidence is not None
                else replace(features, confidence=data.difficulty)
            )
            strata = paired_strata(data.label, known, levels=settings.levels, mix=settings.mix)
            common["old"] = old.answers
        if method == "adaptive":
            strata = _unpaired(data, old, settings, others)
        if method in ("paired", "adaptive"):
            strata = strata if each is None else strata.weighing(each)
            return cls._by_strata(method, data, strata, difficulty, notes, **common)

        def sampler(seed: int) -> Source:
            return Sampler(strata, method=method, seed=seed)

        return cls(method, data, strata, sampler, sampler(settings.seed), difficulty)

    @classmethod
    def _by_strata(
        cls,
        method: str,
        data: Dataset,
        strata: Strata,
        difficulty: str,
        notes: list[str],
        *,
        seed: int,
        **options: Any,
    ) -> "Plan":
        def shrunken(seed: int) -> Source:
            return Shrunken(strata, seed=seed, **options)

        return cls(method, data, strata, shrunken, shrunken(seed), difficulty, notes=tuple(notes))

    @property
    def words(self) -> Words | None:
        """The words of the items, where they tell what to ask."""
        if self.layout is None or not self.layout.prior.vocabulary:
            return None
        return Words(self.layout.items.word_start, self.layout.items.words)

    def exhausted(self, places: Ints) -> bool:
        """Say whether nothing that counts is left to ask but these items."""
        left = self.strata.item_weight > 0.0
        left[places] = False
        return not left.any()

    def estimated(
        self,
        old: BaselineAnswers,
        places: Ints,
        answers: Column,
        draws: "Draws | None",
        *,
        finite: bool,
    ) -> Estimate:
        """Estimate the shift from these answers."""
        if self.layout is None or draws is None:
            return estimated(self.strata, old, places, answers, finite=finite)
        if self.strict:
            return estimate_from_sequence(self.layout, self.strata, old, places, answers, draws)
        found = estimate_from_batches(
            self.layout,
            self.strata,
            old,
            places,
            answers,
            draws,
            group=self.group,
            rest=self.rest,
            finite=finite,
        )
        return found.labelled()


def _check_strict(method: str, data: Dataset, old: BaselineAnswers, settings: Settings) -> None:
    """Raise where nothing is known that holds at all times at once."""
    if method != "predictive" or old.weight is not None:
        raise UsageError(
            "strict intervals take the old answer of every item, and the method auto",
            hint="leave out --method"
            if old.weight is None
            else "make a baseline of all items (masa baseline)",
        )
    if not old.repeats_itself:
        raise UsageError(
            f"strict intervals are for an API that repeats itself; {old.contradicted:,} of {old.repeated:,} items asked twice "
            "were answered differently, or too few were asked",
            hint="leave out --strict",
        )
    if settings.canary or data.group is not None or not data.labelled.all():
        raise UsageError(
            "strict runs know no canary, no groups and no items without a label",
            hint="leave those out",
        )


def _also(data: Dataset, name: str) -> Column:
    if name not in data.predictions:
        raise UsageError(
            f"the data has no column {name!r} of predictions", hint="read it with predictions=[...]"
        )
    return data.predictions[name]


def _unpaired(
    data: Dataset, old: BaselineAnswers, settings: Settings, others: tuple[Column, ...]
) -> Strata:
    """Split the items as one does who does not know the old answers."""
    hardness = data.difficulty if data.difficulty is not None else old.confidence
    cheap = others[0] if others else None
    return adaptive_strata(
        data.label, cheap, difficulty=hardness, levels=settings.levels, mix=settings.mix
    )


def _words(data: Dataset, method: str) -> Words | None:
    """Give the words of what the API is shown, where the method can use them."""
    if data.inputs is None or method not in ("auto", "predictive"):
        return None
    return Words.of(data.item(place).text for place in range(len(data)))


def stratified(
    data: Dataset, old: BaselineAnswers | None, settings: Settings, *, all_items: bool = False
) -> tuple[Strata, str]:
    """Split the items by label and by what tells easy from hard, and say what that is."""
    difficulty, words = data.difficulty, settings.difficulty or "given"
    weight = None if old is None else old.weight
    if difficulty is None:
        difficulty = None if old is None else old.confidence
        words = "" if difficulty is None else "the confidence of the baseline's answers"
    return mixed(
        data,
        difficulty,
        levels=settings.levels,
        mix=settings.mix,
        weight=weight,
        all_items=all_items,
    ), words


def _extra_variance(old: BaselineAnswers, strata: Strata) -> Floats | None:
    """Give what items add to the variance because they stand for others (N,), by what they weigh in these strata."""
    if old.weight is None or old.extra_variance is None:
        return None
    times = np.divide(
        strata.item_weight, old.weight, out=np.zeros(len(old.weight)), where=old.weight > 0.0
    )
    return np.asarray(old.extra_variance * times)
