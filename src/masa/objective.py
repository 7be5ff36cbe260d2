"""What is to be known of a shift: all entries of the matrix alike, some more than others, or one number made of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from masa.errors import UsageError
from masa.records import Floats, Shift

ANY = "*"
"""Stands for every label or every prediction that is not named."""

HINT = (
    'give "accuracy", or a JSON file: {"label": {"prediction": 5}} weighs entries (1 where none is named, "*" names all others); '
    '{"cost": {"label": {"prediction": 5}}} is what mistakes cost (0 where none is named)'
)


@dataclass(frozen=True, slots=True)
class Objective:
    """Weights by label and prediction. Linear: their sum over the shift is to be known, else the norm of the weighted shift."""

    linear: bool = False
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    accuracy: bool = False

    @classmethod
    def read(cls, given: "str | Mapping[str, Any] | None") -> "Objective":
        """Read what `--weights` names.

        >>> Objective.read({"cost": {"cancer": {"healthy": 100}}}).table(("cancer", "healthy"), ("cancer", "healthy")).tolist()
        [[0.0, 100.0], [0.0, 0.0]]
        """
        if given is None:
            return cls()
        if given == "accuracy":
            return cls(linear=True, accuracy=True)
        content: Any = given
        if isinstance(given, str):
            try:
                content = json.loads(given if given.lstrip().startswith("{") else Path(given).read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError) as exc:
                raise UsageError(f"the weights cannot be read: {exc}", hint=HINT) from exc
        linear = isinstance(content, Mapping) and set(content) == {"cost"}
        rows = content["cost"] if linear else content
        if not isinstance(rows, Mapping) or not all(isinstance(row, Mapping) for row in rows.values()) or not rows:
            raise UsageError("the weights are not given by label and prediction", hint=HINT)
        for label, row in rows.items():
            for prediction, weight in row.items():
                number = isinstance(weight, int | float) and not isinstance(weight, bool) and isfinite(weight)
                if not number or abs(weight) > 1e6 or (weight < 0 and not linear):
                    raise UsageError(
                        f"the weight of {label!r} taken for {prediction!r} is {weight!r}",
                        hint="give numbers from 0 to a million; a cost may be below 0",
                    )
        return cls(linear, {str(label): {str(name): float(w) for name, w in row.items()} for label, row in rows.items()})

    @property
    def plain(self) -> bool:
        """Whether all entries are alike."""
        return not self.linear and not self.weights

    @property
    def names(self) -> tuple[str, ...]:
        """The predictions that the weights name."""
        return tuple(dict.fromkeys(name for row in self.weights.values() for name in row if name != ANY))

    def table(self, labels: Sequence[str], predictions: Sequence[str]) -> Floats:
        """Give the weight of each entry (L, P)."""
        if self.accuracy:
            return np.array([[float(label == name) for name in predictions] for label in labels])
        strange = [name for name in self.weights if name != ANY and name not in labels]
        if strange:
            raise UsageError(f"the weights name the label {strange[0]!r}, which no item has", hint=HINT)
        usual = 0.0 if self.linear else 1.0
        rows = []
        for label in labels:
            mine, others = self.weights.get(label, {}), self.weights.get(ANY, {})
            rows.append([mine.get(p, mine.get(ANY, others.get(p, others.get(ANY, usual)))) for p in predictions])
        table = np.array(rows, np.float64).reshape(len(labels), len(predictions))
        if not table.any():
            raise UsageError("the weights are 0 everywhere", hint=HINT)
        return table

    def size(self, shift: Shift) -> float:
        """Give how large a shift is: its norm, or its sum, with the weights."""
        weighted = self.table(shift.new.labels, shift.new.predictions) * shift.values
        return abs(float(weighted.sum())) if self.linear else float(np.linalg.norm(weighted))

    def identity(self) -> Any:
        """Give what tells two objectives apart."""
        return "accuracy" if self.accuracy else {"linear": self.linear, "weights": dict(self.weights)} if not self.plain else None


KINDS = ("accuracy", "recall", "precision", "entry", "cost")
"""What a tolerance may be on."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How large a change may be that does not matter, of one thing or of several."""

    limits: Mapping[str, float] = field(default_factory=lambda: {"accuracy": 0.01})

    @classmethod
    def read(cls, given: "float | str | Mapping[str, Any] | Tolerance | None") -> "Tolerance":
        """Read what `--tolerance` says.

        >>> Tolerance.read("recall=5%, entry=0.002").limits
        {'recall': 0.05, 'entry': 0.002}
        >>> Tolerance.read(0.02).limits
        {'accuracy': 0.02}
        """
        if given is None:
            return cls()
        if isinstance(given, Tolerance):
            return given
        if isinstance(given, str):
            parts = [part.strip().partition("=") for part in given.split(",") if part.strip()]
            named = [(kind.strip() if sign else "accuracy", value if sign else kind) for kind, sign, value in parts]
            given = dict(named)
            if len(given) < len(named):
                twice = next(kind for kind, _ in named if sum(kind == other for other, _ in named) > 1)
                raise UsageError(f"there is more than one tolerance on {twice}", hint="give each once, as accuracy=1%,recall=5%")
        if not isinstance(given, Mapping):
            given = {"accuracy": given}
        strange = [kind for kind in given if kind not in KINDS]
        if strange or not given:
            what = f"there is no tolerance on {strange[0]!r}" if strange else "the tolerance is empty"
            raise UsageError(what, hint=f"give 0.01, or one of {', '.join(KINDS)} as recall=0.05")
        return cls({str(kind): _limit(str(kind), value) for kind, value in given.items()})

    @property
    def words(self) -> str:
        """What may change by how much."""
        several = {"recall": "recall of any label", "precision": "precision of any label", "entry": "any entry"}
        return ", ".join(
            f"{limit:g} of the cost of mistakes" if kind == "cost" else f"{100 * limit:g} points of {several.get(kind, kind)}"
            for kind, limit in self.limits.items()
        )

    def to_json(self) -> "float | dict[str, float]":
        """Give a number where it is the accuracy's alone."""
        return self.limits["accuracy"] if set(self.limits) == {"accuracy"} else dict(self.limits)


def _limit(kind: str, value: Any) -> float:
    hint = "give a share such as 0.01 or 1%, one point" if kind != "cost" else "give a number of 0 or more"
    try:
        text = value.strip() if isinstance(value, str) else value
        limit = float(text[:-1]) / 100.0 if isinstance(text, str) and text.endswith("%") else float(text)
    except (TypeError, ValueError) as exc:
        raise UsageError(f"the tolerance on {kind} is {value!r}", hint=hint) from exc
    if not 0.0 <= limit < (1.0 if kind != "cost" else float("inf")):
        raise UsageError(f"the tolerance on {kind} is {value}", hint=hint)
    return limit
