"""Methods on recorded answers, laid out for the kernels that run them many times."""

from dataclasses import dataclass, replace
from math import ceil
from statistics import NormalDist
from typing import Protocol

import numpy as np
import numpy.typing as npt

from masa.data.strata import Strata, paired_strata
from masa.inference.counts import recorded_answers, right_entries, true_matrix, true_uncertainty
from masa.inference.method import BY_SHRUNKEN_STRATA, Method
from masa.records import Bools, Codes, Column, Floats, Ints
from masa.replays.recorded_pairs import PairsView, coded
from masa.sampling import stratified
from masa.sampling.kernels import drawing
from masa.sampling.kernels import paired as pairs_kernel
from masa.sampling.kernels import predictive as predictive_kernel
from masa.sampling.kernels import shrunken as shrunken_kernel
from masa.sampling.predictive import changed as how_much_changed
from masa.sampling.predictive import new_margins
from masa.sampling.shrunken import designed

MOST_QUERIES = 1_000_000
"""Where the search for the target ends when items may be asked again."""

CANARY_SETS = 64
"""Runs of a replay have so many different sets of canaries."""

ESTIMATORS = ("assess", "paper")
"""The estimate that `masa assess` makes, or the paper's, which does not use the old answers."""

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
    """(K, G) the squared errors of each group's change of accuracy, summed over the runs"""
    asked: int = 0
    seconds: float = 0.0

    @classmethod
    def blank(
        cls, runs: int, checkpoints: Ints, simulation: "Simulation", *, rows: int | None = None
    ) -> "Outcome":
        """Make room for what these runs give."""
        if rows is None:
            rows = 1 + max((int(row) for row in checkpoints[:, 1]), default=-1)
        return cls(
            errors=np.zeros((runs, len(checkpoints)), np.float32),
            sums=np.zeros((rows, len(simulation.truth))),
            first=np.zeros(runs, np.int64),
            groups=np.zeros((rows, simulation.groups)),
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
        """How many queries there are to ask."""

    @property
    def groups(self) -> int:
        """How many groups it tells apart."""

    def enough(self, *, target: float, confidence: float) -> int:
        """Guess how many queries reach the target, on the safe side."""

    def run(self, keys: Keys, checkpoints: Ints) -> Outcome:
        """Run one assessment per key."""


@dataclass(frozen=True, slots=True, eq=False)
class NewAnswers:
    """What the API that is asked answers on every item."""

    answers: Column
    confidence: Floats | None = None
    """(N,)"""


def simulation(
    method: Method,
    new: NewAnswers,
    *,
    estimator: str = "assess",
    replacement: bool = False,
    a: float = 1.0,
) -> Simulation:
    """Lay a method out on recorded answers; `a` is the exploration of the paper's rule.

    The kernels do not choose a method: that was decided by `Method.of`, as for a live assessment.
    """
    if method.layout is not None:
        return Predicted.of(method, new)
    # `optimal` is optimal for the paper's estimate alone, and asking an item twice is the paper's.
    from_pairs = (
        estimator == "assess"
        and method.old is not None
        and not replacement
        and method.name != "optimal"
    )
    if method.name in BY_SHRUNKEN_STRATA:
        return Shrunk.of(method, new.answers, from_pairs=from_pairs)
    return Drawn.of(method, new.answers, from_pairs=from_pairs, replacement=replacement, a=a)


def _changed(method: Method, new: Column) -> Bools:
    """Say whether the answer about each item changed (N,)."""
    if method.old is None:
        return np.zeros(len(method.data), np.bool_)
    old = method.old.answers
    names = np.array([*old.values, *new.values], object)
    return np.asarray(names[old.codes] != names[len(old.values) + new.codes], np.bool_)


def _variance(strata: Strata, answers: Column) -> float:
    """Give the variance of one answer of a proportional sample from strata."""
    s2 = true_uncertainty(strata, answers, replacement=True)
    return float(np.sum(strata.weight**2 * s2 / strata.size) * strata.size.sum())


def _enough(variance: float, strata: Strata, *, target: float, confidence: float) -> int:
    """Guess how many queries reach the target from the variance of one.

    Relative to its mean, no squared error has a larger quantile than that of one normal variable.
    """
    quantile = max(1.0, NormalDist().inv_cdf((1 + confidence) / 2) ** 2)
    wanted = 1.3 * quantile * variance / target**2 + 4 * len(strata)
    return ceil(min(wanted, MOST_QUERIES))


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The paper's methods."""

    name: str
    scheme: stratified.Scheme
    strata: Strata
    answers: Column
    recorded: drawing.Recorded
    pairs: PairsView | None
    """None for the paper's own estimate"""
    changed: Bools
    truth: Floats
    right: Bools
    most: int
    groups: int = 0

    @classmethod
    def of(
        cls, method: Method, new: Column, *, from_pairs: bool, replacement: bool, a: float
    ) -> "Drawn":
        """Lay the method out."""
        strata, objective = method.strata, method.objective
        known = true_uncertainty(strata, new, replacement=replacement)
        scheme = stratified.scheme(
            strata, method.name, replacement=replacement, a=a, uncertainty=known
        )
        recorded = recorded_answers(
            strata,
            new,
            group=scheme.group,
            factor=scheme.factor,
            weights=objective.table(strata.labels, new.values),
            linear=objective.linear,
        )
        pairs, truth, right = None, recorded.truth, right_entries(strata, new)
        if from_pairs:
            pairs = PairsView.of(strata, method.baseline_column, new, objective)
            truth, right = pairs.record.truth, pairs.right
        return cls(
            name=method.name,
            scheme=scheme,
            strata=strata,
            answers=new,
            recorded=recorded,
            pairs=pairs,
            changed=_changed(method, new)[strata.items],
            truth=truth,
            right=right,
            most=MOST_QUERIES if replacement else len(strata.items),
        )

    def enough(self, *, target: float, confidence: float) -> int:
        """Guess from the closed forms of the variance."""
        truth = self.recorded.truth
        if self.name == "uniform":
            variance = float(np.sum(self.strata.weight * self.scheme.factor) - np.sum(truth**2))
        elif self.name == "stratified":
            shares = self.strata.label_weight
            variance = len(shares) * float(np.sum(shares**2) - np.sum(truth**2))
        else:
            variance = _variance(self.strata, self.answers)
        return _enough(variance, self.strata, target=target, confidence=confidence)

    def run(self, keys: Keys, checkpoints: Ints) -> Outcome:
        """Run the kernel."""
        outcome = Outcome.blank(len(keys), checkpoints, self)
        scheme, recorded = self.scheme, self.recorded
        if self.pairs is None:
            asked = drawing.simulate(
                scheme.design,
                recorded,
                scheme.rule,
                self._state(),
                keys,
                checkpoints,
                outcome.errors,
                outcome.sums,
            )
        else:
            record = self.pairs.record
            asked = pairs_kernel.simulate_drawn(
                scheme.design,
                recorded,
                scheme.rule,
                self._state(),
                record,
                pairs_kernel.no_pairs(record),
                keys,
                checkpoints,
                outcome.errors,
                outcome.sums,
            )
        if self.changed.any():
            drawing.first_changes(
                scheme.design,
                recorded,
                scheme.rule,
                self._state(),
                keys,
                self.changed,
                outcome.first,
            )
        return replace(outcome, asked=int(asked))

    def _state(self) -> drawing.State:
        cells = len(self.recorded.cell_entry)
        return drawing.new_state(self.scheme.design, len(self.strata.items), cells)


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk:
    """Strata with shrunken variances."""

    strata: Strata
    answers: Column
    design: shrunken_kernel.ShrunkenDesign
    new: Codes
    """(N,) by position"""
    old: Codes
    """(N,) by position, -1 where the method does not use it"""
    pairs: PairsView | None
    """None for an estimate from the strata alone"""
    changed: Bools
    matrix: Floats
    truth: Floats
    right: Bools
    most: int
    groups: int = 0

    @classmethod
    def of(cls, method: Method, new: Column, *, from_pairs: bool) -> "Shrunk":
        """Lay the strata out."""
        strata = method.strata
        old = method.baseline_column if method.name == "paired" else None
        names = new.values
        old_codes = np.full(len(strata.items), -1, np.int32)
        if old is not None:
            names = tuple(dict.fromkeys((*new.values, *old.values)))
            old_codes = coded(old, names)[strata.items]
        matrix = true_matrix(strata, new).on(names).values
        is_right = [[label == name for name in names] for label in strata.labels]
        pairs, truth, right = None, matrix.ravel(), np.array(is_right, np.bool_).ravel()
        if from_pairs:
            pairs = PairsView.of(strata, method.baseline_column, new, method.objective)
            truth, right = pairs.record.truth, pairs.right
        return cls(
            strata=strata,
            answers=new,
            design=designed(
                strata, names, old=old, objective=method.objective, cost=method.data.cost
            ),
            new=coded(new, names)[strata.items],
            old=old_codes,
            pairs=pairs,
            changed=_changed(method, new)[strata.items],
            matrix=matrix,
            truth=truth,
            right=right,
            most=len(strata.items),
        )

    def enough(self, *, target: float, confidence: float) -> int:
        """Guess from the strata."""
        variance = _variance(self.strata, self.answers)
        return _enough(variance, self.strata, target=target, confidence=confidence)

    def run(self, keys: Keys, checkpoints: Ints) -> Outcome:
        """Run the kernel."""
        outcome = Outcome.blank(len(keys), checkpoints, self)
        state = shrunken_kernel.new_state(self.design)
        if self.pairs is not None:
            record = self.pairs.record
            asked = pairs_kernel.simulate_shrunken(
                self.design,
                state,
                self.new,
                self.old,
                record,
                pairs_kernel.no_pairs(record),
                self.changed,
                keys,
                checkpoints,
                outcome.errors,
                outcome.sums,
                outcome.first,
            )
        else:
            asked = shrunken_kernel.simulate(
                self.design,
                state,
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


def recorded_for(method: Method, new: NewAnswers) -> predictive_kernel.Recorded:
    """Lay recorded answers out for predictive sampling."""
    layout, features = method.layout, method.features
    assert layout is not None and features is not None  # noqa: S101, PT018
    target = layout.targets(np.arange(len(layout.old)), new.answers)
    confidence = new.confidence
    if confidence is None:
        confidence = np.full(len(target), np.nan)
    return predictive_kernel.Recorded(
        how_much_changed(target, features.confidence, confidence),
        target,
        new_margins(target, confidence),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predictive sampling, with its switch to strata where the method may switch."""

    method: Method
    strata: Strata
    """by label and old answer, for a guess"""
    answers: Column
    recorded: predictive_kernel.Recorded
    shift: Floats
    truth: Floats
    right: Bools
    most: int
    canaries: Codes
    """(V, C) those of different runs"""
    audit: predictive_kernel.Audit

    @property
    def groups(self) -> int:
        """How many groups it tells apart."""
        return len(self.audit.truth)

    @classmethod
    def of(cls, method: Method, new: NewAnswers) -> "Predicted":
        """Lay the items out."""
        layout, features, label = method.layout, method.features, method.data.label
        assert layout is not None and features is not None  # noqa: S101, PT018
        weight = method.strata.item_weight
        recorded = recorded_for(method, new)
        target = recorded.target
        shift = np.zeros((len(layout.labels), len(layout.names)))
        moved = target >= 0
        np.add.at(shift, (label.codes[moved], target[moved]), weight[moved])
        np.add.at(shift, (label.codes[moved], layout.old[moved]), -weight[moved])
        is_right = [[label == name for name in layout.names] for label in layout.labels]
        return cls(
            method=method,
            strata=paired_strata(label, features),
            answers=new.answers,
            recorded=recorded,
            shift=shift,
            truth=shift.ravel(),
            right=np.array(is_right, np.bool_).ravel(),
            most=len(weight),
            canaries=np.array([layout.canaries(seed) for seed in range(CANARY_SETS)]),
            audit=_audit(method, new.answers, weight),
        )

    def enough(self, *, target: float, confidence: float) -> int:
        """Guess from strata by label and old answer."""
        variance = _variance(self.strata, self.answers)
        return _enough(variance, self.strata, target=target, confidence=confidence)

    def run(self, keys: Keys, checkpoints: Ints) -> Outcome:
        """Run the kernel."""
        if not len(checkpoints):
            # The kernel needs a place to stop.
            checkpoints = np.array([(1, -1)], np.int64)
        outcome = Outcome.blank(len(keys), checkpoints, self)
        layout = self.method.layout
        assert layout is not None  # noqa: S101
        asked = predictive_kernel.simulate(
            layout.items,
            layout.cells,
            layout.goal,
            layout.prior,
            self.canaries,
            layout.rest,
            self.recorded,
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


def _audit(method: Method, new: Column, weight: Floats) -> predictive_kernel.Audit:
    """Tell which answers became right or wrong, by group."""
    group, label = method.data.group, method.data.label
    if group is None:
        return predictive_kernel.Audit(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0))
    truth = np.array(label.values, object)[label.codes]
    then, now = (
        np.array(side.values, object)[side.codes] == truth for side in (method.baseline_column, new)
    )
    gain = now.astype(np.float32) - then.astype(np.float32)
    total = np.bincount(group.codes, weight, len(group.values))
    gained = np.bincount(group.codes, weight * gain, len(group.values))
    change = gained / np.where(total > 0.0, total, 1.0)
    return predictive_kernel.Audit(group.codes, gain, change)
