"""Intervals for what can be read off a shift."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any

import numpy as np

from masa.records.matrix import Interval
from masa.records.types import Floats

ENDS = ("estimate", "low", "high")
"""The JSON keys of an interval."""


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Intervals for what can be read off a shift besides accuracy.

    The intervals of all entries hold simultaneously; so do those of all recalls, and those of all
    precisions.
    """

    low: Floats
    """(L, P) the lower end of the interval for each entry of the shift"""
    high: Floats
    """(L, P) the upper end"""
    recall: Mapping[str, Interval]
    """by label, its change"""
    precision: Mapping[str, Interval]
    norm: Interval
    """the Frobenius norm of the shift"""
    differing: Interval | None
    """the share of all answers that differ from the baseline

    None where baseline and new answers are not about the same items.
    """
    cost: Interval | None
    """the change of the cost of mistakes, if the user gave costs"""

    def to_dict(self) -> dict[str, Any]:
        """Return what `masa assess --json` prints of them; null for what is not known."""
        return {
            "delta": {"low": self.low.tolist(), "high": self.high.tolist()},
            "recall": {label: _to_json(interval) for label, interval in self.recall.items()},
            "precision": {label: _to_json(interval) for label, interval in self.precision.items()},
            "norm": _to_json(self.norm),
            "differing": _to_json(self.differing),
            "cost": _to_json(self.cost),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Readings":
        """Read what `to_dict` returns."""
        differing = cost = None
        if content["differing"] is not None:
            differing = _from_json(content["differing"])
        if content["cost"] is not None:
            cost = _from_json(content["cost"])
        return cls(
            low=np.array(content["delta"]["low"], np.float64),
            high=np.array(content["delta"]["high"], np.float64),
            recall={label: _from_json(ends) for label, ends in content["recall"].items()},
            precision={label: _from_json(ends) for label, ends in content["precision"].items()},
            norm=_from_json(content["norm"]),
            differing=differing,
            cost=cost,
        )


def _to_json(interval: Interval | None) -> dict[str, float | None] | None:
    """Write an interval; JSON has no NaN, so that becomes null."""
    if interval is None:
        return None
    ends: dict[str, float | None] = {}
    for key, value in asdict(interval).items():
        ends[key] = value
        if isnan(value):
            ends[key] = None
    return ends


def _from_json(ends: Mapping[str, float | None]) -> Interval:
    """Read an interval; null becomes NaN."""
    values = []
    for key in ENDS:
        value = ends[key]
        if value is None:
            value = float("nan")
        values.append(value)
    return Interval(*values)
