"""What to measure: all entries of the shift alike, by weights, or one weighted sum of them."""

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
"""Names every label or every prediction that is not named itself."""

LARGEST = 1e6
"""A weight is at most this, so that sums of squares stay exact enough."""

HINT = (
    'give "accuracy", or a JSON file: {"label": {"prediction": 5}} weighs entries '
    '(1 where none is named, "*" names all others); '
    '{"cost": {"label": {"prediction": 5}}} is what mistakes cost (0 where none is named)'
)


@dataclass(frozen=True, slots=True)
class Objective:
    """Weights of the entries of the shift, by label and prediction."""

    linear: bool = False
    """whether the weighted sum is to be measured; if not, the norm of the weighted shift"""
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    accuracy: bool = False
    """whether the sum is that of the right answers"""

    @classmethod
    def read(cls, given: "str | Mapping[str, Any] | Objective | None") -> "Objective":
        """Read what `--weights` names.

        >>> costs = Objective.read({"cost": {"ill": {"well": 100}}})
        >>> costs.table(("ill", "well"), ("ill", "well")).tolist()
        [[0.0, 100.0], [0.0, 0.0]]
        """
        if isinstance(given, Objective):
            return given
        if given is None:
            return cls()
        if given == "accuracy":
            return cls(linear=True, accuracy=True)
        content = _loaded(given) if isinstance(given, str) else given
        linear = isinstance(content, Mapping) and set(content) == {"cost"}
        rows = content["cost"] if linear else content
        if not _is_table(rows):
            raise UsageError("the weights are not given by label and prediction", hint=HINT)
        weights = {}
        for label, row in rows.items():
            for prediction, weight in row.items():
                _check_weight(label, prediction, weight, below_zero=linear)
            weights[str(label)] = {str(name): float(weight) for name, weight in row.items()}
        return cls(linear, weights)

    @property
    def plain(self) -> bool:
        """Whether all entries count alike."""
        return not self.linear and not self.weights

    @property
    def names(self) -> tuple[str, ...]:
        """The predictions that the weights name."""
        named = [name for row in self.weights.values() for name in row if name != ANY]
        return tuple(dict.fromkeys(named))

    def table(self, labels: Sequence[str], predictions: Sequence[str]) -> "npt.NDArray[np.float64]":
        """Give the weight of each entry (L, P)."""
        import numpy as np  # Here, because settings are read before anything heavy is loaded.

        if self.accuracy:
            return np.array([[float(label == name) for name in predictions] for label in labels])
        unknown = [name for name in self.weights if name != ANY and name not in labels]
        if unknown:
            raise UsageError(
                f"the weights name the label {unknown[0]!r}, which no item has", hint=HINT
            )
        rows = [[self._weight(label, name) for name in predictions] for label in labels]
        table = np.array(rows, np.float64).reshape(len(labels), len(predictions))
        if not table.any():
            raise UsageError("the weights are 0 everywhere", hint=HINT)
        return table

    def _weight(self, label: str, prediction: str) -> float:
        """Give the weight of one entry: the most specific one that is named."""
        for row in (self.weights.get(label, {}), self.weights.get(ANY, {})):
            for name in (prediction, ANY):
                if name in row:
                    return row[name]
        return 0.0 if self.linear else 1.0

    def to_json(self) -> Any:
        """Give what `read` reads; None for the plain one."""
        if self.accuracy:
            return "accuracy"
        if self.plain:
            return None
        rows = {label: dict(row) for label, row in self.weights.items()}
        return {"cost": rows} if self.linear else rows

    def identity(self) -> Any:
        """Give what tells two objectives apart, as JSON; None for the plain one."""
        if self.accuracy:
            return "accuracy"
        if self.plain:
            return None
        return {"linear": self.linear, "weights": dict(self.weights)}


def _loaded(given: str) -> Any:
    """Read JSON, written out or in a file."""
    import json

    try:
        if not given.lstrip().startswith("{"):
            given = Path(given).read_text(encoding="utf-8")
        return json.loads(given)
    except (OSError, ValueError, RecursionError) as exc:
        raise UsageError(f"the weights cannot be read: {exc}", hint=HINT) from exc


def _is_table(rows: Any) -> bool:
    if not isinstance(rows, Mapping) or not rows:
        return False
    return all(isinstance(row, Mapping) for row in rows.values())


def _check_weight(label: str, prediction: str, weight: Any, *, below_zero: bool) -> None:
    number = isinstance(weight, int | float) and not isinstance(weight, bool) and isfinite(weight)
    if not number or abs(weight) > LARGEST or (weight < 0 and not below_zero):
        raise UsageError(
            f"the weight of {label!r} taken for {prediction!r} is {weight!r}",
            hint="give numbers from 0 to a million; a cost may be below 0",
        )
