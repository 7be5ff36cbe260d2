"""How large a change may be that does not matter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from masa.errors import UsageError

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
            named = [
                (kind.strip() if sign else "accuracy", value if sign else kind)
                for kind, sign, value in parts
            ]
            given = dict(named)
            if len(given) < len(named):
                twice = next(
                    kind for kind, _ in named if sum(kind == other for other, _ in named) > 1
                )
                raise UsageError(
                    f"there is more than one tolerance on {twice}",
                    hint="give each once, as accuracy=1%,recall=5%",
                )
        if not isinstance(given, Mapping):
            given = {"accuracy": given}
        strange = [kind for kind in given if kind not in KINDS]
        if strange or not given:
            what = (
                f"there is no tolerance on {strange[0]!r}" if strange else "the tolerance is empty"
            )
            raise UsageError(what, hint=f"give 0.01, or one of {', '.join(KINDS)} as recall=0.05")
        return cls({str(kind): _limit(str(kind), value) for kind, value in given.items()})

    @property
    def words(self) -> str:
        """What may change by how much."""
        several = {
            "recall": "recall of any label",
            "precision": "precision of any label",
            "entry": "any entry",
        }
        return ", ".join(
            f"{limit:g} of the cost of mistakes"
            if kind == "cost"
            else f"{100 * limit:g} points of {several.get(kind, kind)}"
            for kind, limit in self.limits.items()
        )

    def to_json(self) -> "float | dict[str, float]":
        """Give a number where it is the accuracy's alone."""
        return self.limits["accuracy"] if set(self.limits) == {"accuracy"} else dict(self.limits)


def _limit(kind: str, value: Any) -> float:
    hint = (
        "give a share such as 0.01 or 1%, one point"
        if kind != "cost"
        else "give a number of 0 or more"
    )
    try:
        text = value.strip() if isinstance(value, str) else value
        limit = (
            float(text[:-1]) / 100.0
            if isinstance(text, str) and text.endswith("%")
            else float(text)
        )
    except (TypeError, ValueError) as exc:
        raise UsageError(f"the tolerance on {kind} is {value!r}", hint=hint) from exc
    if not 0.0 <= limit < (1.0 if kind != "cost" else float("inf")):
        raise UsageError(f"the tolerance on {kind} is {value}", hint=hint)
    return limit
