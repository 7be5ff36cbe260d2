"""How large a change may be that does not matter."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from masa.errors import UsageError
from masa.settings.kinds import number

KINDS = ("accuracy", "recall", "precision", "entry", "answers", "cost")
"""What a tolerance may be on."""

IN_WORDS = {
    "recall": "recall of any label",
    "precision": "precision of any label",
    "entry": "any entry",
    "answers": "the share of answers that differ",
}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How large a change may be that does not matter, of one quantity or of several."""

    limits: Mapping[str, float] = field(default_factory=lambda: {"accuracy": 0.01})

    def __post_init__(self) -> None:
        known = f"give 0.01, or one of {', '.join(KINDS)} as recall=0.05"
        if not self.limits:
            raise UsageError("the tolerance is empty", hint=known)
        for kind in self.limits:
            if kind not in KINDS:
                raise UsageError(f"there is no tolerance on {kind!r}", hint=known)
        read = {str(kind): _limit(str(kind), value) for kind, value in self.limits.items()}
        object.__setattr__(self, "limits", read)

    @classmethod
    def read(cls, given: "float | str | Mapping[str, Any] | Tolerance | None") -> "Tolerance":
        """Read what `--tolerance` says.

        >>> Tolerance.read("recall=5%, entry=0.002").limits
        {'recall': 0.05, 'entry': 0.002}
        >>> Tolerance.read(0.02).limits
        {'accuracy': 0.02}
        """
        if isinstance(given, Tolerance):
            return given
        if given is None:
            return cls()
        if isinstance(given, str):
            given = _pairs(given)
        if not isinstance(given, Mapping):
            given = {"accuracy": given}
        return cls(given)

    @property
    def words(self) -> str:
        """What may change by how much."""
        parts = []
        for kind, limit in self.limits.items():
            if kind == "cost":
                parts.append(f"{limit:g} of the cost of mistakes")
            else:
                points = "1 point" if limit == 0.01 else f"{100 * limit:g} points"
                parts.append(f"{points} of {IN_WORDS.get(kind, kind)}")
        return ", ".join(parts)

    def to_json(self) -> "float | dict[str, float]":
        """Give a number where there is a tolerance on accuracy alone."""
        if set(self.limits) == {"accuracy"}:
            return self.limits["accuracy"]
        return dict(self.limits)


def _pairs(given: str) -> dict[str, str]:
    """Split a text such as "accuracy=1%,recall=5%"; a number alone is of accuracy."""
    found: dict[str, str] = {}
    for part in given.split(","):
        if not part.strip():
            continue
        kind, equals, value = part.strip().partition("=")
        if not equals:
            kind, value = "accuracy", kind
        if kind.strip() in found:
            raise UsageError(
                f"there is more than one tolerance on {kind.strip()}",
                hint="give each once, as accuracy=1%,recall=5%",
            )
        found[kind.strip()] = value
    return found


def _limit(kind: str, value: Any) -> float:
    """Read one limit: a share below 1, or any number of 0 or more for the cost of mistakes."""
    hint, highest = "give a share such as 0.01 or 1%, one point", 1.0
    if kind == "cost":
        hint, highest = "give a number of 0 or more", float("inf")
    limit = -1.0
    with suppress(ValueError):
        limit = number("T", hint, 0.0, highest).read(value)
    if not 0.0 <= limit < highest:
        raise UsageError(f"the tolerance on {kind} is {value!r}", hint=hint)
    return limit
