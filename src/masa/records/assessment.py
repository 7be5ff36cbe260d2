"""The result of an assessment."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from masa.errors import DataError
from masa.records.answers import AnswerTable, changed_how
from masa.records.course import LabelQueries, Made, Step
from masa.records.groups import Gap, GroupReport
from masa.records.items import ERROR, INVALID
from masa.records.matrix import Interval, Matrix, Shift, StratumReport
from masa.records.readings import Readings
from masa.records.shown import Shown

if TYPE_CHECKING:
    import pandas as pd


Stopped = Literal["canary", "target", "decided", "budget", "exhausted", "interrupted", "failures"]
"""Why a run ended."""

SCHEMA = 2
"""The version of an assessment's JSON. Keys are only added within a version."""

LONGEST_TEXT = 300
"""The most characters of a changed item's text that are shown."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """An entry of the matrix that changed more than chance explains."""

    label: str
    prediction: str
    old: float
    new: float
    """shares of the label's items"""
    chance: float
    """how often an entry that did not change would look like this"""

    @property
    def words(self) -> str:
        """The change in a sentence."""
        return self.told("is now")

    def told(self, is_now: str) -> str:
        """Write the change as a sentence with this verb."""
        if self.label == self.prediction:
            what = "recognised"
        elif self.prediction == INVALID:
            what = "given an unreadable answer"
        elif self.prediction == ERROR:
            what = "given no answer at all"
        else:
            what = f"taken for {self.prediction!r}"
        how = "less often"
        if self.new > self.old:
            how = "more often"
        rates = f"{100.0 * self.old:.1f}% -> {100.0 * self.new:.1f}% of its items"
        return f"{self.label!r} {is_now} {what} {how}: {rates}"


@dataclass(frozen=True, slots=True)
class Versions:
    """What the provider calls its model, before and now; None where it does not say."""

    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class ChangedItem:
    """An item whose answer changed."""

    item: str
    label: str
    old: str
    new: str
    text: str = ""
    """what the API was shown, where that is wanted"""

    @property
    def how(self) -> str:
        """Whether that is better or worse."""
        return changed_how(self.label, self.old, self.new) or ""


@dataclass(frozen=True, slots=True, eq=False)
class Assessment(Shown):
    """One run, from budget to verdict."""

    run: int
    verdict: str
    """changed, unchanged or undecided: does the change matter, given the tolerance"""
    moved: str
    """yes, no sign or noise: did any answer change"""
    proof: str
    """what shows that an answer changed, in words"""
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
    """on accuracy, or by what it is on"""
    shift: Shift | None
    """None if there is no answer"""
    accuracy_change: Interval | None
    error_bound: float | None
    """an upper bound for the Frobenius error of the shift, at the confidence"""
    readings: Readings | None
    direction: str | None
    """better or worse, for a change that matters; None where none does, or it is not known"""
    surprising: tuple[Surprise, ...]
    compared: int
    """answers about items whose baseline answer is known"""
    differing: int
    """those of them that differ from the baseline answer"""
    changed_items: tuple[ChangedItem, ...]
    api_version: Versions
    uniform_queries: int | None
    """the queries that post-stratified uniform sampling would have needed for the same error"""
    method: str
    seed: int
    sides: tuple[str, str] = ("before", "now")
    """what is compared with what"""
    groups: tuple[GroupReport, ...] = ()
    gap: Gap | None = None
    """if there are groups with answers"""
    fail_on: str = "any"
    """any, worse or moved: which changes end with exit code 1"""
    canary_ok: bool = False
    """whether a canary that found no change ends with exit code 0"""
    more_queries: int | None = None
    """about how many more queries would decide it, where it is undecided"""
    over_budget: float = 0.0
    """money above the budget, where calls cost more than was reserved for them"""
    unread: Mapping[str, int] = field(default_factory=dict)
    """answers that cannot be read as a label, by the reason"""
    steps: tuple[Step, ...] = ()
    """how the error fell with the answers"""
    label_queries: tuple[LabelQueries, ...] = ()
    """where the queries went"""
    made: Made | None = None
    """None in results of an earlier masa"""
    table: AnswerTable | None = None
    """all answers, where they are at hand; not in the JSON"""
    notes: tuple[str, ...] = ()

    @property
    def delta(self) -> "pd.DataFrame":
        """New minus old, labels by predictions."""
        if self.shift is None:
            raise DataError(
                "there is no answer to estimate a shift from",
                hint="run the same command again to resume the run",
            )
        return self.shift.delta

    def to_frame(self) -> "pd.DataFrame":
        """Return all answers that were paid for, one row each."""
        if self.table is None:
            raise DataError(
                f"the answers of run {self.run} are not at hand",
                hint="masa answers RUN has those of a stored run",
            )
        return self.table.to_frame()

    def __repr__(self) -> str:
        return f"<Assessment {self.run}: {self.summary()}>"

    @property
    def exit_code(self) -> int:
        """What the command exits with."""
        if self.stopped == "interrupted":
            return 130
        if self.fail_on == "moved" and self.moved == "yes":
            return 1
        if self.stopped == "canary" and self.canary_ok:
            return 0
        if self.verdict == "changed" and self.fail_on == "worse" and self.direction == "better":
            return 0
        return {"unchanged": 0, "changed": 1}.get(self.verdict, 3)

    @property
    def all_changed_items(self) -> tuple[ChangedItem, ...]:
        """All items whose answers changed, where the answers are at hand and items have names."""
        if self.table is None or not any(self.table.columns["item"]):
            return self.changed_items
        shown = next(iter(self.table.inputs.values()), None)
        names = ("item", "label", "old", "new", "repeat")
        columns = [self.table.columns[name] for name in names]
        found = []
        for place, (item, label, old, new, repeat) in enumerate(zip(*columns, strict=True)):
            known = item is not None and old is not None and not repeat
            if known and old != new and ERROR not in (old, new):
                text = "" if shown is None else _shortened(shown[place])
                found.append(ChangedItem(item, label, old, new, text))
        return tuple(found)

    def surprises(self, most: int = 5) -> list[Surprise]:
        """Return the entries that changed most beyond chance, the most certain first."""
        return list(self.surprising[:most])

    def summary(self) -> str:
        """Tell the outcome in a few lines."""
        over = f", {self.over_budget:.6g} over the budget" if self.over_budget else ""
        if self.shift is None or self.accuracy_change is None:
            return f"{self.verdict}: no answers ({self.stopped}){over}"
        change, accuracy = self.accuracy_change, self.shift.accuracy
        head = (
            f"{self.verdict}: right answers {accuracy.old:.1%} -> {accuracy.new:.1%} "
            f"(change {change.low:+.1%} to {change.high:+.1%}), {self.queries:,} queries{over}"
        )
        return "\n".join([head, *(surprise.words for surprise in self.surprises(3))])

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Assessment":
        """Read what `to_dict` returns."""
        found = {key: content[key] for key in _UNCHANGED}
        found |= {"shift": None, "accuracy_change": None, "error_bound": None, "readings": None}
        if accuracy := content["accuracy"]:
            found["shift"] = _shift_from(content)
            found["accuracy_change"] = Interval(
                accuracy["change"], accuracy["low"], accuracy["high"]
            )
        if frobenius := content["frobenius"]:
            found["error_bound"] = frobenius["error_bound"]
        if intervals := content.get("intervals"):
            found["readings"] = Readings.from_dict(intervals)
        if gap := content.get("gap"):
            found["gap"] = Gap.from_dict(gap)
        surprises = []
        for entry in content["surprises"]:
            own = {key: value for key, value in entry.items() if key != "words"}
            surprises.append(Surprise(**own))
        return cls(
            **found,
            proof=content.get("proof", ""),
            direction=content.get("direction"),
            surprising=tuple(surprises),
            compared=content["changed"]["compared"],
            differing=content["changed"]["differing"],
            changed_items=tuple(ChangedItem(**item) for item in content["changed_items"]),
            api_version=Versions(**content["api_version"]),
            sides=tuple(content["sides"]),
            fail_on=content.get("fail_on", "any"),
            canary_ok=content.get("canary_ok", False),
            more_queries=content.get("more_queries"),
            over_budget=content.get("over_budget", 0.0),
            groups=tuple(map(GroupReport.from_dict, content.get("groups", ()))),
            unread=dict(content.get("unread", {})),
            steps=tuple(Step(**step) for step in content.get("steps", ())),
            label_queries=tuple(LabelQueries(**one) for one in content.get("label_queries", ())),
            made=Made.from_dict(made) if (made := content.get("made")) else None,
            notes=tuple(content["notes"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `masa assess --json` prints."""
        gap = None
        if self.gap is not None:
            gap = self.gap.to_dict()
        return {
            "schema": SCHEMA,
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
            "over_budget": self.over_budget,
            "method": self.method,
            "seed": self.seed,
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            "direction": self.direction,
            "more_queries": self.more_queries,
            "fail_on": self.fail_on,
            "canary_ok": self.canary_ok,
            **self._shift_to_dict(),
            "surprises": [
                {**asdict(surprise), "words": surprise.words} for surprise in self.surprising
            ],
            "changed": {"compared": self.compared, "differing": self.differing},
            "changed_items": [_item_to_dict(item) for item in self.changed_items],
            "api_version": asdict(self.api_version),
            "uniform_queries": self.uniform_queries,
            "sides": list(self.sides),
            "groups": [group.to_dict() for group in self.groups],
            "gap": gap,
            "unread": dict(self.unread),
            "steps": [asdict(step) for step in self.steps],
            "label_queries": [asdict(one) for one in self.label_queries],
            "made": None if self.made is None else self.made.to_dict(),
            "notes": list(self.notes),
        }

    def _shift_to_dict(self) -> dict[str, Any]:
        """Return the part of `to_dict` that is empty as long as there is no answer."""
        shift, change = self.shift, self.accuracy_change
        result: dict[str, Any] = {
            "accuracy": None,
            "frobenius": None,
            "intervals": None,
            "labels": [],
            "predictions": [],
            "old": [],
            "new": [],
            "delta": [],
            "strata": [],
        }
        if self.readings is not None:
            result["intervals"] = self.readings.to_dict()
        if shift is None:
            return result
        if change is not None:
            result["accuracy"] = {
                "old": shift.accuracy.old,
                "new": shift.accuracy.new,
                "change": change.estimate,
                "low": change.low,
                "high": change.high,
            }
        return result | {
            "frobenius": {"change": shift.norm, "error_bound": self.error_bound},
            "labels": list(shift.new.labels),
            "predictions": list(shift.new.predictions),
            "old": shift.old.values.tolist(),
            "new": shift.new.values.tolist(),
            "delta": shift.values.tolist(),
            "strata": [asdict(stratum) for stratum in shift.strata],
        }


def _shortened(text: str) -> str:
    """Write a text in one line, and not all of a long one."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "\u2026"


def _item_to_dict(item: ChangedItem) -> dict[str, str]:
    """Write a changed item; its text only where it is wanted."""
    written = asdict(item)
    if not item.text:
        del written["text"]
    return written


_UNCHANGED = (
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
    "uniform_queries",
    "method",
    "seed",
)
"""The keys of an assessment's JSON that hold a field as it is."""


def _shift_from(content: Mapping[str, Any]) -> Shift:
    """Read the shift of an assessment's JSON."""
    labels = tuple(content["labels"])
    predictions = tuple(content["predictions"])
    old = Matrix(labels, predictions, np.array(content["old"], np.float64))
    new = Matrix(labels, predictions, np.array(content["new"], np.float64))
    return Shift(old, new, tuple(StratumReport(**stratum) for stratum in content["strata"]))
