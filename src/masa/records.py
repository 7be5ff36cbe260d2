"""The nouns that travel between modules: frozen, without behaviour that needs anything but themselves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from masa.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it, from 0 to 1."""

INVALID = "<invalid>"
ERROR = "<error>"
LONGEST_LABEL = 200
"""Nothing of more characters than this is a label."""

UNLABELLED = "<unlabelled>"
RESERVED = (INVALID, ERROR, UNLABELLED)
"""What cannot be anybody's label: no readable answer and no answer at all, which are columns of the matrix, and no label."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of text: its different values, and for each item which one it has."""

    name: str
    values: tuple[str, ...]
    codes: Codes
    """(N,)"""

    def on(self, values: tuple[str, ...]) -> "Column":
        """Give the same column with codes for these values, which must name at least its own."""
        place = {value: code for code, value in enumerate(values)}
        return Column(self.name, values, np.array([place[value] for value in self.values], np.int32)[self.codes])


@dataclass(frozen=True, slots=True)
class Query:
    """One item to ask the API about."""

    item: int
    stratum: int
    batch: int | None = None
    """the batch it was drawn with, where items are drawn in batches"""
    chance: float | None = None
    """the chance with which the item was to be in that batch, or 0 where it was drawn inside its stratum"""
    batch_size: int | None = None

    @property
    def draw(self) -> tuple[int, float, int] | None:
        """The batch, the chance and the size of the batch, where items are drawn in batches."""
        if self.batch is None or self.chance is None or self.batch_size is None:
            return None
        return self.batch, self.chance, self.batch_size


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API said about one item."""

    item: int
    prediction: str
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One item as a client sees it: its place in the data as it was read, and the texts of its input columns."""

    place: int
    inputs: Mapping[str, str]

    @property
    def text(self) -> str:
        """The text of the only input column, or of all of them, one a line."""
        return "\n".join(self.inputs.values())


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client brings back from one call."""

    label: str | None
    """None for an answer that cannot be read as a label"""
    confidence: float | None = None
    version: str | None = None
    """what the provider calls the model that answered"""
    cost: int | None = None
    """in billionths; None for the price that was reserved"""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the range it is likely to be in."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A confusion matrix: the share of each prediction for each label, over all of the data.

    >>> m = Matrix(("no", "yes"), ("no", "yes", "<invalid>"), np.array([[0.4, 0.1, 0.0], [0.1, 0.3, 0.1]]))
    >>> round(m.accuracy, 3)
    0.7
    >>> {label: round(value, 3) for label, value in m.recall.items()}
    {'no': 0.8, 'yes': 0.6}
    >>> {label: round(value, 3) for label, value in m.precision.items()}
    {'no': 0.8, 'yes': 0.75}
    """

    labels: tuple[str, ...]
    predictions: tuple[str, ...]
    values: Floats
    """(L, P), rows are labels; all entries together make 1 where something is known of every label"""

    def labelled(self) -> "Matrix":
        """Leave out the row of items without a label, of which nothing is known."""
        rows = [row for row, label in enumerate(self.labels) if label != UNLABELLED]
        return Matrix(tuple(self.labels[row] for row in rows), self.predictions, self.values[rows])

    @property
    def accuracy(self) -> float:
        """The share of items answered with their label."""
        return float(sum(self.correct.values()))

    @property
    def correct(self) -> dict[str, float]:
        """The share, of all of the data, that has this label and is answered with it."""
        column = {name: j for j, name in enumerate(self.predictions)}
        return {label: float(self.values[i, column[label]]) if label in column else 0.0 for i, label in enumerate(self.labels)}

    @property
    def recall(self) -> dict[str, float]:
        """Of the items with this label, the share answered with it; NaN for a label of weight zero."""
        totals = dict(zip(self.labels, self.values.sum(axis=1).tolist(), strict=True))
        return {label: _ratio(share, totals[label]) for label, share in self.correct.items()}

    @property
    def precision(self) -> dict[str, float]:
        """Of the items answered with this label, the share that has it; NaN for one never answered."""
        totals = dict(zip(self.predictions, self.values.sum(axis=0).tolist(), strict=True))
        return {label: _ratio(share, totals.get(label, 0.0)) for label, share in self.correct.items()}

    def on(self, predictions: tuple[str, ...]) -> "Matrix":
        """Lay the same matrix out on these columns, which must name at least those that are not zero."""
        column = {name: j for j, name in enumerate(predictions)}
        values = np.zeros((len(self.labels), len(predictions)))
        for j, name in enumerate(self.predictions):
            if name in column:
                values[:, column[name]] = self.values[:, j]
            elif self.values[:, j].any():
                raise ValueError(f"no column for the prediction {name!r}")
        return Matrix(self.labels, predictions, values)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else float("nan")


@dataclass(frozen=True, slots=True)
class Change:
    """One number before and after."""

    old: float
    new: float

    @property
    def change(self) -> float:
        """New minus old."""
        return self.new - self.old


@dataclass(frozen=True, slots=True)
class StratumReport:
    """What was asked of one stratum and what came of it."""

    label: str
    level: int
    items: int
    weight: float
    answers: int
    uncertainty: float | None
    """The estimated chance that two of its answers differ; unknown below two answers"""


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """How an API changed: the new confusion matrix against the old one."""

    old: Matrix
    new: Matrix
    strata: tuple[StratumReport, ...] = ()

    def __post_init__(self) -> None:
        if self.old.labels != self.new.labels:
            raise DataError(
                f"the old matrix has {len(self.old.labels)} labels and the new one {len(self.new.labels)}, not the same ones",
                hint="measure both on the same labelled data",
            )
        if self.old.predictions != self.new.predictions:
            both = in_order(self.old.predictions + self.new.predictions)
            object.__setattr__(self, "old", self.old.on(both))
            object.__setattr__(self, "new", self.new.on(both))

    @property
    def values(self) -> Floats:
        """(L, P) new minus old."""
        return self.new.values - self.old.values

    @property
    def delta(self) -> "pd.DataFrame":
        """New minus old as a table, labels by predictions."""
        import pandas as pd

        return pd.DataFrame(self.values, index=list(self.new.labels), columns=list(self.new.predictions))

    @property
    def norm(self) -> float:
        """The Frobenius norm of the shift: also the error of saying that nothing changed."""
        return float(np.linalg.norm(self.values))

    @property
    def accuracy(self) -> Change:
        """The share of right answers."""
        return Change(self.old.accuracy, self.new.accuracy)

    @property
    def recall(self) -> dict[str, Change]:
        """For each label, how much of it is recognised."""
        return _changes(self.old.recall, self.new.recall)

    @property
    def precision(self) -> dict[str, Change]:
        """For each label, how much of what is taken for it is it."""
        return _changes(self.old.precision, self.new.precision)

    def error(self, truth: "Shift") -> float:
        """Give the Frobenius norm of the difference to the true shift."""
        columns = in_order(self.new.predictions + truth.new.predictions)
        mine = self.new.on(columns).values - self.old.on(columns).values
        return float(np.linalg.norm(mine - (truth.new.on(columns).values - truth.old.on(columns).values)))


def _changes(old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, Change]:
    return {label: Change(old[label], new[label]) for label in old}


def in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    """Give the different names in the order people expect: whole numbers by size, else text, reserved ones last.

    >>> in_order(("10", "9", "<invalid>", "9"))
    ('9', '10', '<invalid>')
    >>> in_order(("b", "10", "a"))
    ('10', 'a', 'b')
    """
    plain = {name for name in names if name not in RESERVED}
    # str.isdecimal is true of other scripts' digits too; int() reads them all, but not without end.
    numbers = all(name.removeprefix("-").isdecimal() and len(name) < 1000 for name in plain)
    first = sorted(plain, key=lambda name: (int(name), name)) if numbers else sorted(plain)
    return (*first, *(name for name in RESERVED if name in names))


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The answers of one assessment, counted by stratum and prediction, with what each count weighs.

    A cell is one prediction within one stratum; a group is what the method averages over.
    """

    labels: tuple[str, ...]
    predictions: tuple[str, ...]
    group_share: Floats
    """(G,) the share of the estimate that each group stands for"""
    group_answers: Ints
    """(G,)"""
    cell_stratum: Codes
    """(C,)"""
    cell_group: Codes
    """(C,)"""
    cell_label: Codes
    """(C,)"""
    cell_prediction: Codes
    """(C,)"""
    cell_factor: Floats
    """(C,) the weight of one answer relative to its group's share"""
    counts: Codes
    """(C,)"""


@dataclass(frozen=True, slots=True)
class StoppingReport:
    """How assessments ended that stop by a rule."""

    runs: int
    coverage: float
    """how often, at the time of stopping, the interval held the true change, or the bound the true error"""
    queries_mean: float
    queries_p95: int
    false_alarms: float | None
    """how often a change was called that does not matter; None where it does"""
    misses: float | None
    """how often a change that matters was called none; None where none does"""
    early: float
    """how often it stopped by the rule, before the budget"""
    noticed: float
    """how often it was found that something moved"""
    width: float
    """the mean width of the interval for the change of accuracy"""


@dataclass(frozen=True, slots=True)
class Curve:
    """How the error of one method falls with the number of queries, over many replays."""

    method: str
    queries: tuple[int, ...]
    """the budgets that were asked for"""
    mean_squared_error: tuple[float, ...]
    error_quantile: tuple[float, ...]
    bias_share: tuple[float | None, ...]
    """squared bias over squared error, without what the number of runs alone would show; unknown for one run"""
    accuracy_bias: tuple[float, ...]
    """the mean estimate of accuracy less the true one"""
    queries_for_target: int | None
    queries_range: tuple[int | None, int | None]
    """what queries_for_target would be if the share of runs within the target were a standard error larger or smaller"""
    draws_per_second: float
    path: tuple["Point", ...]
    """the curve on a finer grid, for charts"""
    first_change: tuple[int | None, int | None] | None = None
    """queries up to the first changed answer, the median and the 95% quantile; None where nothing changed or is known to"""
    noticed: tuple[float, ...] = ()
    """by budget, how often an answer that changed is among those asked"""
    group_errors: tuple[tuple[float, ...], ...] = ()
    """by group and budget, the root of the mean squared error of the change of its share of right answers"""
    stopping: StoppingReport | None = None
    """how whole assessments end, where that was asked for"""

    @property
    def root_mean_squared_error(self) -> tuple[float, ...]:
        """One a budget."""
        return tuple(value**0.5 for value in self.mean_squared_error)


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a curve."""

    queries: int
    root_mean_squared_error: float
    error_quantile: float


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of results."""

    name: str
    head: tuple[str, ...]
    rows: tuple[Sequence[Any], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What an experiment found."""

    what: str
    title: str
    words: tuple[str, ...]
    """paragraphs, for people to read"""
    sheets: tuple[Sheet, ...]
    skipped: str = ""
    """why it could not be carried out"""

    def to_dict(self) -> dict[str, Any]:
        """Give what JSON shows."""
        if self.skipped:
            return {"title": self.title, "skipped": self.skipped}
        sheets = {sheet.name: [dict(zip(sheet.head, row, strict=True)) for row in sheet.rows] for sheet in self.sheets}
        return {"title": self.title, "words": list(self.words), "tables": sheets}


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Many assessments on recorded predictions."""

    items: int
    labels: int
    predictions: int
    strata: int
    difficulty: str
    """what the levels were made from, in words"""
    runs: int
    seed: int
    replacement: bool
    target_error: float
    confidence: float
    shift: Shift | None
    """the true shift; unknown without old predictions"""
    no_change_error: float | None
    """the error of saying that nothing changed"""
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]
    groups: tuple[str, ...] = ()

    def saving(self, method: str, against: str) -> float | None:
        """Give the share of queries for the target that a method saves against another; None where unknown."""
        needed = {curve.method: curve.queries_for_target for curve in self.curves}
        mine, other = needed.get(method), needed.get(against)
        return None if mine is None or not other else 1.0 - mine / other

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa replay --json` prints."""
        return {
            "data": {
                "items": self.items,
                "labels": self.labels,
                "predictions": self.predictions,
                "strata": self.strata,
            },
            "runs": self.runs,
            "seed": self.seed,
            "replacement": self.replacement,
            "target_error": self.target_error,
            "confidence": self.confidence,
            "no_change_error": self.no_change_error,
            "accuracy": None if self.shift is None else {**asdict(self.shift.accuracy), "change": self.shift.accuracy.change},
            "methods": {
                curve.method: {
                    "queries": list(curve.queries),
                    "mean_squared_error": list(curve.mean_squared_error),
                    "error_quantile": list(curve.error_quantile),
                    "bias_share": list(curve.bias_share),
                    "accuracy_bias": list(curve.accuracy_bias),
                    "queries_for_target": curve.queries_for_target,
                    "queries_range": list(curve.queries_range),
                    "first_change": None
                    if curve.first_change is None
                    else {"median": curve.first_change[0], "p95": curve.first_change[1]},
                    "noticed": list(curve.noticed),
                    "group_errors": dict(zip(self.groups, map(list, curve.group_errors), strict=False)),
                    "stopping": None if curve.stopping is None else asdict(curve.stopping),
                    "draws_per_second": curve.draws_per_second,
                }
                for curve in self.curves
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Cost:
    """What it takes to know a shift so well."""

    error: float
    """the Frobenius error of the shift that the confidence is for"""
    queries: Mapping[str, int | None]
    """by method; None where even all items do not do"""
    until_sure: int | None
    """queries after which an assessment with this error as its target stops by itself, on average"""
    beyond: bool
    """whether the error is not below that of saying that nothing changed: reaching it proves nothing"""


@dataclass(frozen=True, slots=True)
class Buys:
    """What a number of queries tells."""

    queries: int
    error: float
    """what the Frobenius error of the shift stays below"""
    accuracy: float
    """how far the interval for the change of accuracy reaches to either side"""
    noticed: tuple[float, ...]
    """the chance to notice that anything changed, by the share of answers that did"""


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What a precision costs and what a budget buys, before anything is spent."""

    items: int
    changed: float
    """the share of answers that is taken to have changed"""
    why: str
    """where that comes from"""
    confidence: float
    method: str
    price: float | None
    """money a query, on average; None where only queries are counted"""
    costs: tuple[Cost, ...]
    sizes: tuple[float, ...]
    """shares of answers that may have changed, for the chance to notice"""
    buys: tuple[Buys, ...]
    blind: tuple[str, ...]
    """what the budgets cannot see, in words"""
    replay: Replay
    notes: tuple[str, ...] = ()

    def money(self, queries: int | None) -> float | None:
        """Give what queries cost."""
        return None if self.price is None or queries is None else self.price * queries

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa plan --json` prints."""
        return {
            "items": self.items,
            "changed": self.changed,
            "why": self.why,
            "confidence": self.confidence,
            "method": self.method,
            "price": self.price,
            "precision": [
                {
                    "error": cost.error,
                    "methods": {name: {"queries": n, "cost": self.money(n)} for name, n in cost.queries.items()},
                    "until_sure": {"queries": cost.until_sure, "cost": self.money(cost.until_sure)},
                    "proves_nothing": cost.beyond,
                }
                for cost in self.costs
            ],
            "budgets": [
                {
                    "queries": bought.queries,
                    "cost": self.money(bought.queries),
                    "error": bought.error,
                    "accuracy": bought.accuracy,
                    "noticed": [
                        {"changed": size, "chance": chance} for size, chance in zip(self.sizes, bought.noticed, strict=True)
                    ],
                }
                for bought in self.buys
            ],
            "cannot_see": list(self.blind),
            "notes": list(self.notes),
        }


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
            return Interval(*(float("nan") if ends[key] is None else ends[key] for key in ("estimate", "low", "high")))

        def intervals(kind: str) -> dict[str, Interval]:
            return {label: interval(ends) for label, ends in content[kind].items()}

        low, high = (np.array(content["delta"][side], np.float64) for side in ("low", "high"))
        differing, cost = (None if content[kind] is None else interval(content[kind]) for kind in ("differing", "cost"))
        return cls(low, high, intervals("recall"), intervals("precision"), interval(content["norm"]), differing, cost)


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
        return own | {key: None if self.change is None else getattr(self.change, key) for key in ("estimate", "low", "high")}

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
            raise DataError("there is no answer to estimate a shift from", hint="run the same command again to go on")
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
        same = ("run", "verdict", "moved", "stopped", "items", "queries", "answers", "errors", "cost", "confidence", "tolerance")
        accuracy, frobenius = content["accuracy"], content["frobenius"]
        labels, predictions = tuple(content["labels"]), tuple(content["predictions"])
        strata = tuple(StratumReport(**stratum) for stratum in content["strata"])
        old, new = (Matrix(labels, predictions, np.array(content[key], np.float64)) for key in ("old", "new"))
        return cls(
            **{key: content[key] for key in (*same, "uniform_queries", "method", "seed")},
            proof=content.get("proof", ""),
            shift=Shift(old, new, strata) if accuracy else None,
            accuracy_change=Interval(accuracy["change"], accuracy["low"], accuracy["high"]) if accuracy else None,
            error_bound=frobenius["error_bound"] if frobenius else None,
            readings=Readings.from_dict(content["intervals"]) if content.get("intervals") else None,
            direction=content.get("direction"),
            surprising=tuple(
                Surprise(**{key: value for key, value in entry.items() if key != "words"}) for entry in content["surprises"]
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
            "frobenius": None if shift is None else {"change": shift.norm, "error_bound": self.error_bound},
            "intervals": None if self.readings is None else self.readings.to_dict(),
            "labels": [] if shift is None else list(shift.new.labels),
            "predictions": [] if shift is None else list(shift.new.predictions),
            "old": [] if shift is None else shift.old.values.tolist(),
            "new": [] if shift is None else shift.new.values.tolist(),
            "delta": [] if shift is None else shift.values.tolist(),
            "strata": [] if shift is None else [asdict(stratum) for stratum in shift.strata],
            "surprises": [{**asdict(surprise), "words": surprise.words} for surprise in self.surprising],
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
