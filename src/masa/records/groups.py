"""What changed in groups of items."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from masa.records.matrix import Interval
from masa.records.readings import ENDS


@dataclass(frozen=True, slots=True)
class GroupReport:
    """The change of accuracy in one group of items."""

    group: str
    items: int
    answers: int
    old: float
    change: Interval | None
    """None if nothing about the group was answered"""

    def to_dict(self) -> dict[str, Any]:
        """Return what `masa assess --json` prints of a group."""
        result: dict[str, Any] = {
            "group": self.group,
            "items": self.items,
            "answers": self.answers,
            "old": self.old,
            **dict.fromkeys(ENDS),
        }
        if self.change is not None:
            result |= asdict(self.change)
        return result

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "GroupReport":
        """Read what `to_dict` returns."""
        change = None
        if content["estimate"] is not None:
            change = Interval(*(content[key] for key in ENDS))
        own = {key: content[key] for key in ("group", "items", "answers", "old")}
        return cls(**own, change=change)


@dataclass(frozen=True, slots=True)
class Gap:
    """The change of the gap between the groups with most and with fewest right answers before."""

    best: str
    worst: str
    old: float
    change: Interval

    def to_dict(self) -> dict[str, Any]:
        """Return what `masa assess --json` prints of it."""
        return {"best": self.best, "worst": self.worst, "old": self.old, **asdict(self.change)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Gap":
        """Read what `to_dict` returns."""
        change = Interval(*(content[key] for key in ENDS))
        return cls(content["best"], content["worst"], content["old"], change)
