"""What is to be known of a shift: all entries of the matrix alike, some more than others, or one number made of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masa.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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
                content = json.loads(
                    given
                    if given.lstrip().startswith("{")
                    else Path(given).read_text(encoding="utf-8")
                )
            except (OSError, ValueError, RecursionError) as exc:
                raise UsageError(f"the weights cannot be read: {exc}", hint=HINT) from exc
        linear = isinstance(content, Mapping) and set(content) == {"cost"}
        rows = content["cost"] if linear else content
        if (
            not isinstance(rows, Mapping)
            or not all(isinstance(row, Mapping) for row in rows.values())
            or not rows
        ):
            raise UsageError("the weights are not given by label and prediction", hint=HINT)
        for label, row in rows.items():
            for prediction, weight in row.items():
                number = (
                    isinstance(weight, int | float)
                    and not isinstance(weight, bool)
                    and isfinite(weight)
                )
                if not number or abs(weight) > 1e6 or (weight < 0 and not linear):
                    raise UsageError(
                        f"the weight of {label!r} taken for {prediction!r} is {weight!r}",
                        hint="give numbers from 0 to a million; a cost may be below 0",
                    )
        return cls(
            linear,
            {
                str(label): {str(name): float(w) for name, w in row.items()}
                for label, row in rows.items()
            },
        )

    @property
    def plain(self) -> bool:
        """Whether all entries are alike."""
        return not self.linear and not self.weights

    @property
    def names(self) -> tuple[str, ...]:
        """The predictions that the weights name."""
        return tuple(
            dict.fromkeys(name for row in self.weights.values() for name in row if name != ANY)
        )

    def table(self, labels: Sequence[str], predictions: Sequence[str]) -> "npt.NDArray[np.float64]":
        """Give the weight of each entry (L, P)."""
        import numpy as np  # Settings are read before anything heavy is loaded.

        if self.accuracy:
            return np.array([[float(label == name) for name in predictions] for label in labels])
        strange = [name for name in self.weights if name != ANY and name not in labels]
        if strange:
            raise UsageError(
                f"the weights name the label {strange[0]!r}, which no item has", hint=HINT
            )
        usual = 0.0 if self.linear else 1.0
        rows = []
        for label in labels:
            mine, others = self.weights.get(label, {}), self.weights.get(ANY, {})
            rows.append(
                [
                    mine.get(p, mine.get(ANY, others.get(p, others.get(ANY, usual))))
                    for p in predictions
                ]
            )
        table = np.array(rows, np.float64).reshape(len(labels), len(predictions))
        if not table.any():
            raise UsageError("the weights are 0 everywhere", hint=HINT)
        return table

    def identity(self) -> Any:
        """Give what tells two objectives apart."""
        return (
            "accuracy"
            if self.accuracy
            else {"linear": self.linear, "weights": dict(self.weights)}
            if not self.plain
            else None
        )
