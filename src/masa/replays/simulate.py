"""Methods on recorded answers, laid out for the kernels that run them many times."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from statistics import NormalDist
from typing import Protocol

import numpy as np
import numpy.typing as npt

from masa.data.dataset import Dataset
from masa.data.features import Features
from masa.data.strata import Strata, adaptive_strata, paired_strata
from masa.errors import UsageError
from masa.inference.counts import recorded_answers, right_entries, true_matrix, true_uncertainty
from masa.records import Bools, Codes, Column, Floats, Ints
from masa.sampling import stratified as sampler
from masa.sampling.kernels import drawing as kernel
from masa.sampling.kernels import predictive as _predictive
from masa.sampling.kernels import shrunken as _shrunken
from masa.sampling.layout import Layout
from masa.sampling.predictive import changed
from masa.sampling.shrunken import designed
from masa.settings import Objective

METHODS = (*sampler.METHODS, "adaptive", "paired", "predictive", "auto")
NEED_OLD = ("paired", "predictive")

MOST_QUERIES = 1_000_000
"""Where the search for the target ends when items may be asked again."""

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What some or all of the runs gave."""

    errors: npt.NDArray[np.float32]
    """(R, Q) the error of each run at each point of the grid"""
    sums: Floats
    """(K, E) the estimates at each budget, summed over the runs"""
    first: Ints
    """(R,) queries up to the first changed answer, 0 where there was none"""
    groups: Floats
    """(K, G) the squared errors of each group's change of accuracy at each budget, summed over the runs"""
    asked: int = 0
    seconds: float = 0.0

    @classmethod
    def blank(
        cls, runs: int, checkpoints: Ints, simulation: "Simulation", *, rows: int | None = None
    ) -> "Outcome":
        """Make room for what these runs give."""
        wanted = (
            rows
            if rows is not None
            else 1 + max((int(row) for row in checkpoints[:, 1]), default=-1)
        )
        return cls(
            errors=np.zeros((runs, len(checkpoints)), np.float32),
            sums=np.zeros((wanted, len(simulation.truth))),
            first=np.zeros(runs, np.int64),
            groups=np.zeros((wanted, simulation.groups)),
        )


class Simulation(Protocol):
    """A method on recorded answers."""

    @property
    def truth(self) -> Floats:
        """(E,) the entries of what it estimates."""

    @property
    def right(self) -> Bools:
        """(E,) which of them are right answers."""

    @property
    def most(self) -> int:
        """Queries there are to ask."""

    @property
    def groups(self) -> int:
        """Groups that it tells apart."""

    def enough(self, *, target: float, confidence: float) -> int:
        """Guess how many queries reach the target, on the safe side."""

    def run(self, keys: Keys, checkpoints: Ints) -> Outcome:
        """Run one assessment a key."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Recorded answers and all that is known beforehand."""

    data: Dataset
    strata: Strata
    new: Column
    old: Column | None
    features: Features | None
    cheap: Column | None
    new_confidence: Floats | None
    objective: Objective
    levels: int
    mix: Mapping[str, float] | None
    replacement: bool
    a: float
    seed: int

    @property
    def best(self) -> str:
        """What `auto` is."""
        return "adaptive" if self.features is None else "predictive"

    @property
    def why(self) -> str:
        """Why it is that."""
        return "the old answers are not known" if self.features is None else self.features.in_words

    @property
    def changed(self) -> Bools:
        """(N,) whether each item's answer changed."""
        if self.old is None:
            return np.zeros(len(self.data), np.bool_)
        names = np.array([*self.old.values, *self.new.values], object)
        return np.asarray(
            names[self.old.codes] != names[len(self.old.values) + self.new.codes], np.bool_
        )

    def simulation(self, method: str) -> Simulation:
        """Lay a method out on these answers."""
        turns = method == "auto" and self.data.group is None
        if method == "auto":
            method = self.best
        if method in NEED_OLD and self.features is None:
            raise UsageError(
                f"the method {method} needs the old answers",
                hint="name their column with --old COL",
            )
        if self.replacement and method not in sampler.METHODS:
            raise UsageError(
                f"the method {method} asks each item once", hint="leave out --with-replacement"
            )
        if self.data.group is not None and method != "predictive":
            raise UsageError(
                f"the method {method} does not know groups",
                hint="use predictive, which needs --old COL",
            )
        if method == "predictive":
            return Predicted.of(self, turns=turns)
        if method == "paired" and self.features is not None:
            features = (
                self.features
                if self.features.confidence is not None
                else replace(self.features, confidence=self.data.difficulty)
            )
            return Shrunk.of(
                self,
                paired_strata(self.data.label, features, levels=self.levels, mix=self.mix),
                self.old,
            )
        return (
            Shrunk.of(self, self.unpaired, None) if method == "adaptive" else Drawn.of(self, method)
        )

    @property
    def unpaired(self) -> Strata:
        """The strata of the method that knows no old answers."""
        return adaptive_strata(
            self.data.label,
            self.cheap,
            difficulty=self.data.difficulty,
            levels=self.levels,
            mix=self.mix,
        )


def _variance(strata: Strata, answers: Column) -> float:
    """Give the variance of one answer of a proportional sample from strata."""
    s2 = true_uncertainty(strata, answers, replacement=True)
    return float(np.sum(strata.weight**2 * s2 / strata.size) * strata.size.sum())


def _enough(variance: float, strata: Strata, *, target: float, confidence: float) -> int:
    """Guess how many queries reach the target from the variance of one.

    The largest quantile of a squared error relative to its mean is that of a single normal variable.
    """
    quantile = max(1.0, NormalDist().inv_cdf((1 + confidence) / 2) ** 2)
    return ceil(min(1.3 * quantile * variance / target**2 + 4 * len(strata), MOST_QUERIES))


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The paper's methods."""

    method: str
    plan: sampler.Plan
    strata: Strata
    answers: Column
    recorded: kernel.Recorded
    changed: Bools
    truth: Floats
    right: Bools
    most: int

    @classmethod
    def of(cls, case: Case, method: str) -> "Drawn":
        """Lay the method out."""
        strata, answers = case.strata, case.new
        known = true_uncertainty(strata, answers, replacement=case.replacement)
        plan = sampler.plan(
            strata, method, replacement=case.replacement, a=case.a, uncertainty=known
        )
        recorded = recorded_answers(
            strata,
            answers,
            group=plan.group,
            factor=plan.factor,
            weights=case.objective.table(strata.labels, answers.values),
            linear=case.objective.linear,
        )
        most = MOST_QUERIES if case.replacement else len(strata.items)
        right = right_entries(strata, answers)
        return cls(
            method,
            plan,
            strata,
            answers,
            recorded,
            case.changed[strata.items],
            recorded.truth,
            right,
            most,
        )

    @property
    def groups(self) -> int:
        """It tells none apart."""
        return 0

    def enough(self, *, target: float, confidence: float) -> int:
        """Guess from the closed forms of the variance."""
        if self.method == "uniform":
            variance = float(np.sum(self.strata.weight * self.plan.factor) - np.sum(self.truth**2))
        elif self.method == "stratified":
            shares = self.strata.label_weight
            variance = len(shares) * float(np.sum(shares**2) - np.sum(self.truth**2))
        else:
            variance = _variance(self.strata, self.answers)
        return _enough(variance, self.strata, target=target, confidence=confidence)

    def run(self, keys: Keys, checkpoints: Ints) -> Outcome:
        """Run the kernel."""
        plan, recorded = self.plan, self.recorded
        state = kernel.new_state(plan.design, len(self.strata.items), len(recorded.cell_entry))
        outcome = Outcome.blank(len(keys), checkpoints, self)
        asked = kernel.simulate(
            plan.design, recorded, plan.rule, state, keys, checkpoints, outcome.errors, outcome.sums
        )
        if self.changed.any():
            state = kernel.new_state(plan.design, len(self.strata.items), len(recorded.cell_entry))
            kernel.first_changes(
                plan.design, recorded, plan.rule, state, keys, self.changed, outcome.first
            )
        return replace(outcome, asked=int(asked))


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk:
    """Strata with shrunken variances."""

    strata: Strata
    answers: Column
    design: _shrunken.Design
    new: Codes
    old: Codes
    changed: Bools
    matrix: Floats
    truth: Floats
    right: Bools
    most: int

    @classmethod
    def of(cls, case: Case, strata: Strata, old: Column | None) -> "Shrunk":
        """Lay these strata out."""
        names = tuple(dict.fromkeys((*case.new.values, *(() if old is None else old.values))))
        truth = true_matrix(strata, case.new).on(names).values
        place = {name: code for code, name in enumerate(names)}

        def coded(column: Column) -> Codes:
            return np.array([place[name] for name in column.values], np.int32)[
                column.codes[strata.items]
            ]

        right = np.array([[label == name for name in names] for label in strata.labels], np.bool_)
        return cls(
            strata=strata,
            answers=case.new,
            design=designed(strata, names, old=old, objective=case.objective, cost=case.data.cost),
            new=coded(case.new),
            old=np.full(len(strata.items), -1, np.int32) if old is None else coded(old),
            changed=case.changed[strata.items],
            matrix=truth,
            truth=truth.ravel(),
            right=right.ravel(),
            most=len(strata.items),
        )

    @property
    def groups(self) -> int:
        """It tells none apart."""
        return 0

    def enough(self, *, target: float, confidence: float) -> int:
        """Guess from the strata."""
        return _enough(
            _variance(self.strata, self.answers), self.strata, target=target, confidence=confidence
        )

    def run(self, keys: Keys, checkpoints: Ints) -> Outcome:
        """Run the kernel."""
        outcome = Outcome.blank(len(keys), checkpoints, self)
        asked = _shrunken.simulate(
            self.design,
            _shrunken.new_state(self.design),
            self.new,
            self.old,
            self.changed,
            self.matrix,
            keys,
            checkpoints,
            outcome.errors,
            outcome.sums,
            outcome.first,
        )
        return replace(outcome, asked=int(asked))


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predictive sampling."""

    layout: Layout
    strata: Strata
    answers: Column
    changed: Floats
    target: Codes
    shift: Floats
    truth: Floats
    right: Bools
    most: int
    audit: _predictive.Audit

    @property
    def groups(self) -> int:
        """Groups that it tells apart."""
        return len(self.audit.truth)

    @classmethod
    def of(cls, case: Case, *, turns: bool) -> "Predicted":
        """Lay the items out; if it turns, it goes on without the old answers where those tell little."""
        features, label, strata = case.features, case.data.label, case.strata
        assert features is not None  # noqa: S101
        weight = strata.item_weight
        layout = Layout.of(
            label,
            features,
            weight=weight,
            objective=case.objective,
            cost=case.data.cost,
            group=case.data.group,
            new=case.new.values,
            rest=case.unpaired if turns else None,
            seed=case.seed,
        )
        target = layout.targets(np.arange(len(weight)), case.new)
        shift = np.zeros((len(layout.labels), len(layout.names)))
        moved = target >= 0
        np.add.at(shift, (label.codes[moved], target[moved]), weight[moved])
        np.add.at(shift, (label.codes[moved], layout.old[moved]), -weight[moved])
        now = np.full(len(weight), np.nan) if case.new_confidence is None else case.new_confidence
        right = np.array(
            [[label == name for name in layout.names] for label in layout.labels], np.bool_
        )
        return cls(
            layout=layout,
            strata=paired_strata(label, features),
            answers=case.new,
            changed=changed(target, features.confidence, now),
            target=target,
            shift=shift,
            truth=shift.ravel(),
            right=right.ravel(),
            most=len(weight),
            audit=_audit(case, weight),
        )

    def enough(self, *, target: float, confidence: float) -> int:
        """Guess from strata by label and old answer."""
        return _enough(
            _variance(self.strata, self.answers), self.strata, target=target, confidence=confidence
        )

    def run(self, keys: Keys, checkpoints: Ints) -> Outcome:
        """Run the kernel."""
        outcome = Outcome.blank(len(keys), checkpoints, self)
        layout = self.layout
        if not len(checkpoints):
            checkpoints = np.array([(1, -1)], np.int64)
            outcome = Outcome.blank(len(keys), checkpoints, self)
        asked = _predictive.simulate(
            layout.items,
            layout.cells,
            layout.goal,
            layout.prior,
            layout.canaries,
            layout.rest,
            self.changed,
            self.target,
            self.shift,
            keys,
            checkpoints,
            outcome.errors,
            outcome.sums,
            outcome.first,
            self.audit,
            outcome.groups,
        )
        return replace(outcome, asked=int(asked))


def _audit(case: Case, weight: Floats) -> _predictive.Audit:
    """Tell which answers became right or wrong, by group."""
    group, label = case.data.group, case.data.label
    if group is None or case.old is None:
        return _predictive.Audit(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0))
    truth = np.array(label.values, object)[label.codes]
    then, now = (
        np.array(side.values, object)[side.codes] == truth for side in (case.old, case.new)
    )
    gain = now.astype(np.float32) - then.astype(np.float32)
    total = np.bincount(group.codes, weight, len(group.values))
    change = np.bincount(group.codes, weight * gain, len(group.values)) / np.where(
        total > 0.0, total, 1.0
    )
    return _predictive.Audit(group.codes, gain, change)
