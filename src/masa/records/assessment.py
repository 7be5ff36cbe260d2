"""The result of an assessment and of a baseline."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from masa.errors import DataError
from masa.records.items import ERROR, INVALID
from masa.records.matrix import Interval, Matrix, Shift, StratumReport
from masa.records.types import Floats

if TYPE_CHECKING:
    import pandas as pd


Stopped = Literal["canary", "target", "decided", "budget", "exhausted", "interrupted", "failures"]
"""Why a run ended."""


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """What is read off a shift besides accuracy, with intervals. All entries hold at once; so do all recalls, all precisions."""

    low: Floats
    """(L, P) the least that each entry of the shift may be"""
    high: Floats
    """(L, P)"""
    recall: Mapping[str, Interval]
    """by label, its change"""
    precision: Mapping[str, Interval]
    norm: Interval
    """the Frobenius norm of the shift"""
    differing: Interval | None
    """the share of all answers that are not as before; None where old and new answers are not about the same items"""
    cost: Interval | None
    """the change of what mistakes cost, where that was told"""

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa assess --json` prints of them; null for what nobody can tell."""
        return {
            "delta": {"low": self.low.tolist(), "high": self.high.tolist()},
            **{
                kind: {label: _ends(interval) for label, interval in getattr(self, kind).items()}
                for kind in ("recall", "precision")
            },
            **{kind: _ends(getattr(self, kind)) for kind in ("norm", "differing", "cost")},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Readings":
        """Read what `to_dict` gives."""

        def interval(ends: Mapping[str, Any]) -> Interval:
            return Interval(
                *(
                    float("nan") if ends[key] is None else ends[key]
                    for key in ("estimate", "low", "high")
                )
            )

        def intervals(kind: str) -> dict[str, Interval]:
            return {label: interval(ends) for label, ends in content[kind].items()}

        low, high = (np.array(content["delta"][side], np.float64) for side in ("low", "high"))
        differing, cost = (
            None if content[kind] is None else interval(content[kind])
            for kind in ("differing", "cost")
        )
        return cls(
            low,
            high,
            intervals("recall"),
            intervals("precision"),
            interval(content["norm"]),
            differing,
            cost,
        )


def _ends(interval: Interval | None) -> dict[str, float | None] | None:
    if interval is None:
        return None
    return {key: None if isnan(value) else value for key, value in asdict(interval).items()}


@dataclass(frozen=True, slots=True)
class Surprise:
    """An entry of the matrix that moved more than chance explains."""

    label: str
    prediction: str
    old: float
    new: float
    """shares of the label's items"""
    chance: float
    """how often an entry that did not move would look like this"""

    @property
    def words(self) -> str:
        """The change in a sentence."""
        return self.told("is now")

    def told(self, is_now: str) -> str:
        """Put the change into a sentence around these words."""
        points = 100.0 * abs(self.new - self.old)
        how = "more often" if self.new > self.old else "less often"
        if self.label == self.prediction:
            return f"{self.label!r} {is_now} recognised {points:.1f} points {how}"
        taken = {INVALID: "answered unreadably", ERROR: "not answered at all"}.get(
            self.prediction, f"taken for {self.prediction!r}"
        )
        return f"{self.label!r} {is_now} {taken} {points:.1f} points {how}"


@dataclass(frozen=True, slots=True)
class Versions:
    """What the provider calls its model, before and now; None where it does not say."""

    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class ChangedItem:
    """An item that was answered otherwise before."""

    item: str
    label: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class GroupReport:
    """How the share of right answers changed in one group of items."""

    group: str
    items: int
    answers: int
    old: float
    change: Interval | None
    """None while nothing of the group was answered"""

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa assess --json` prints of a group."""
        own = {"group": self.group, "items": self.items, "answers": self.answers, "old": self.old}
        return own | {
            key: None if self.change is None else getattr(self.change, key)
            for key in ("estimate", "low", "high")
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "GroupReport":
        """Read what `to_dict` gives."""
        ends = [content[key] for key in ("estimate", "low", "high")]
        own = {key: content[key] for key in ("group", "items", "answers", "old")}
        return cls(**own, change=None if ends[0] is None else Interval(*ends))


@dataclass(frozen=True, slots=True)
class Gap:
    """How the gap between two groups changed: the one with most right answers before, and the one with fewest."""

    best: str
    worst: str
    old: float
    change: Interval

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa assess --json` prints of it."""
        return {"best": self.best, "worst": self.worst, "old": self.old, **asdict(self.change)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Gap":
        """Read what `to_dict` gives."""
        change = Interval(content["estimate"], content["low"], content["high"])
        return cls(content["best"], content["worst"], content["old"], change)


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """One run, from budget to verdict."""

    run: int
    verdict: str
    """changed, unchanged or undecided: does it matter, against the tolerance"""
    moved: str
    """yes, no sign or noise: did anything change at all"""
    proof: str
    """what shows that it moved, in words"""
    stopped: str
    """canary, target, decided, budget, exhausted, interrupted or failures"""
    items: int
    queries: int
    """calls that count as spent"""
    answers: int
    errors: int
    """items that failed for good"""
    cost: float | None
    """money; None where only queries are counted"""
    confidence: float
    tolerance: "float | Mapping[str, float]"
    """of accuracy, or by what it is on"""
    shift: Shift | None
    """None while there is no answer"""
    accuracy_change: Interval | None
    error_bound: float | None
    """what the Frobenius error of the shift stays below"""
    readings: Readings | None
    direction: str | None
    """whether a change that matters is for the better or for the worse; None where none does, or nobody can tell"""
    surprising: tuple[Surprise, ...]
    compared: int
    """answers about items whose old answer is known"""
    differing: int
    """those of them that differ from it"""
    changed_items: tuple[ChangedItem, ...]
    api_version: Versions
    uniform_queries: int | None
    """what post-stratified uniform sampling would have needed for the same error"""
    method: str
    seed: int
    sides: tuple[str, str] = ("before", "now")
    """what is compared with what"""
    groups: tuple[GroupReport, ...] = ()
    gap: Gap | None = None
    """where there are groups with answers"""
    fail_on: str = "any"
    """any or worse: which changes end with exit code 1"""
    canary_ok: bool = False
    """whether a canary that saw nothing ends with exit code 0"""
    notes: tuple[str, ...] = ()

    @property
    def delta(self) -> "pd.DataFrame":
        """New minus old, labels by predictions."""
        if self.shift is None:
            raise DataError(
                "there is no answer to estimate a shift from",
                hint="run the same command again to go on",
            )
        return self.shift.delta

    def __repr__(self) -> str:
        return f"<Assessment {self.run}: {self.summary()}>"

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        if self.stopped == "interrupted":
            return 130
        if self.stopped == "canary" and self.canary_ok:
            return 0
        if self.verdict == "changed" and self.fail_on == "worse" and self.direction == "better":
            return 0
        return {"unchanged": 0, "changed": 1}.get(self.verdict, 3)

    def surprises(self, most: int = 5) -> list[Surprise]:
        """Give the entries that moved most beyond chance, the surest first."""
        return list(self.surprising[:most])

    def summary(self) -> str:
        """Tell the outcome in a few lines."""
        if self.shift is None or self.accuracy_change is None:
            return f"{self.verdict}: no answers ({self.stopped})"
        change, accuracy = self.accuracy_change, self.shift.accuracy
        head = (
            f"{self.verdict}: right answers {accuracy.old:.1%} -> {accuracy.new:.1%} "
            f"(change {change.low:+.1%} to {change.high:+.1%}), {self.queries:,} queries"
        )
        return "\n".join([head, *(surprise.words for surprise in self.surprises(3))])

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Assessment":
        """Read what `to_dict` gives."""
        same = (
            "run",
            "verdict",
            "moved",
            "stopped",
            "items",
            "queries",
            "answers",
            "errors",
            "cost",
            "confidence",
            "tolerance",
        )
        accuracy, frobenius = content["accuracy"], content["frobenius"]
        labels, predictions = tuple(content["labels"]), tuple(content["predictions"])
        strata = tuple(StratumReport(**stratum) for stratum in content["strata"])
        old, new = (
            Matrix(labels, predictions, np.array(content[key], np.float64))
            for key in ("old", "new")
        )
        return cls(
            **{key: content[key] for key in (*same, "uniform_queries", "method", "seed")},
            proof=content.get("proof", ""),
            shift=Shift(old, new, strata) if accuracy else None,
            accuracy_change=Interval(accuracy["change"], accuracy["low"], accuracy["high"])
            if accuracy
            else None,
            error_bound=frobenius["error_bound"] if frobenius else None,
            readings=Readings.from_dict(content["intervals"]) if content.get("intervals") else None,
            direction=content.get("direction"),
            surprising=tuple(
                Surprise(**{key: value for key, value in entry.items() if key != "words"})
                for entry in content["surprises"]
            ),
            compared=content["changed"]["compared"],
            differing=content["changed"]["differing"],
            changed_items=tuple(ChangedItem(**item) for item in content["changed_items"]),
            api_version=Versions(**content["api_version"]),
            sides=tuple(content["sides"]),
            fail_on=content.get("fail_on", "any"),
            canary_ok=content.get("canary_ok", False),
            groups=tuple(map(GroupReport.from_dict, content.get("groups", ()))),
            gap=None if content.get("gap") is None else Gap.from_dict(content["gap"]),
            notes=tuple(content["notes"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa assess --json` prints."""
        shift, change = self.shift, self.accuracy_change
        return {
            "run": self.run,
            "verdict": self.verdict,
            "moved": self.moved,
            "proof": self.proof,
            "stopped": self.stopped,
            "items": self.items,
            "queries": self.queries,
            "answers": self.answers,
            "errors": self.errors,
            "cost": self.cost,
            "method": self.method,
            "seed": self.seed,
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            "direction": self.direction,
            "fail_on": self.fail_on,
            "canary_ok": self.canary_ok,
            "accuracy": None
            if shift is None or change is None
            else {
                "old": shift.accuracy.old,
                "new": shift.accuracy.new,
                "change": change.estimate,
                "low": change.low,
                "high": change.high,
            },
            "frobenius": None
            if shift is None
            else {"change": shift.norm, "error_bound": self.error_bound},
            "intervals": None if self.readings is None else self.readings.to_dict(),
            "labels": [] if shift is None else list(shift.new.labels),
            "predictions": [] if shift is None else list(shift.new.predictions),
            "old": [] if shift is None else shift.old.values.tolist(),
            "new": [] if shift is None else shift.new.values.tolist(),
            "delta": [] if shift is None else shift.values.tolist(),
            "strata": [] if shift is None else [asdict(stratum) for stratum in shift.strata],
            "surprises": [
                {**asdict(surprise), "words": surprise.words} for surprise in self.surprising
            ],
            "changed": {"compared": self.compared, "differing": self.differing},
            "changed_items": [asdict(item) for item in self.changed_items],
            "api_version": asdict(self.api_version),
            "uniform_queries": self.uniform_queries,
            "sides": list(self.sides),
            "groups": [group.to_dict() for group in self.groups],
            "gap": None if self.gap is None else self.gap.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """What an API answers on some data, and what that cost."""

    run: int
    stopped: str
    items: int
    answers: int
    errors: int
    queries: int
    cost: float | None
    matrix: Matrix | None
    repeated: int
    contradicted: int
    contradiction: Interval | None
    """the share of items that are answered differently when asked again"""
    api_version: str | None
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every item has an answer, or failed for good."""
        return self.answers + self.errors == self.items

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        return {"interrupted": 130, "failures": 3}.get(self.stopped, 0 if self.answers else 3)

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa baseline --json` prints."""
        noise = self.contradiction
        return {
            "run": self.run,
            "stopped": self.stopped,
            "complete": self.complete,
            "items": self.items,
            "answers": self.answers,
            "errors": self.errors,
            "queries": self.queries,
            "cost": self.cost,
            "accuracy": None if self.matrix is None else self.matrix.accuracy,
            "labels": [] if self.matrix is None else list(self.matrix.labels),
            "predictions": [] if self.matrix is None else list(self.matrix.predictions),
            "matrix": [] if self.matrix is None else self.matrix.values.tolist(),
            "repeats": {
                "asked": self.repeated,
                "contradicted": self.contradicted,
                "low": None if noise is None else noise.low,
                "high": None if noise is None else noise.high,
            },
            "api_version": self.api_version,
            "notes": list(self.notes),
        }
