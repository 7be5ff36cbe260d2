"""How a run went: how its error fell, where its queries went, and how its result was made."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """What was known after some of the answers; each interval is read alone."""

    answers: int
    error_bound: float
    """an upper bound for the Frobenius error of the shift, at the confidence of the run"""
    estimate: float
    """the change of accuracy"""
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LabelQueries:
    """How many of the queries went to a label, and how many the best allocation would give it."""

    label: str
    items: int
    answers: int
    best: float
    """by what is known at the end: an estimate, too"""


@dataclass(frozen=True, slots=True)
class Made:
    """How a result was made, for whoever checks it or makes it again."""

    masa: str
    """the version that made it"""
    name: str
    """what the API and its data are called in the store"""
    began: str
    """when, in ISO 8601 and UTC"""
    ended: str
    data: str
    """the fingerprint of the data"""
    source: str
    """the name of its file, without the folder"""
    api: str
    baseline: str
    """what is compared with, in words"""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return what `masa assess --json` prints of it."""
        return {**asdict(self), "settings": dict(self.settings)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Made":
        """Read what `to_dict` returns."""
        return cls(**{name: content[name] for name in cls.__dataclass_fields__})
