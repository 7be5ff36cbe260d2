"""The answers of a run, one row each: everything that was paid for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Mapping[str, str] = {
    "key": "the item's key: a hash that stays the same in other versions of the data",
    "item": "the item's id, or its row; empty where the data is not at hand",
    "label": "its true class; empty where the data is not at hand",
    "old": "the baseline answer",
    "new": "the new answer",
    "changed": "better, worse, wrong both times; empty where the answer is the same or not known",
    "old_confidence": "the confidence of the baseline answer",
    "confidence": "the confidence of the new answer",
    "version": "what the provider calls its model",
    "unread": "why the new answer cannot be read as a label",
    "repeat": "whether the item was asked a second time, to see whether the API contradicts itself",
    "batch": "the batch in which it was drawn; 0 for canaries",
    "probability": "its inclusion probability in that batch",
    "weight": "the share of all items that the answer represents",
    "cost": "money for all calls about it",
    "calls": "calls about it that count as spent",
    "asked": "when, in ISO 8601 and UTC",
}
"""The columns, and what is in them."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTable:
    """The answers of a run, in the order in which the items were asked."""

    run: int
    columns: Mapping[str, Sequence[Any]]
    """by the names of `COLUMNS`, each (n,); None for what is not known"""
    inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """the input columns, where the data is at hand and they are wanted"""

    def __len__(self) -> int:
        return len(self.columns["key"])

    def __repr__(self) -> str:
        return f"<AnswerTable of run {self.run}: {len(self):,} answers>"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns; an input called like one of masa's has `input.` before it."""
        return (*COLUMNS, *(self._shown(name) for name in self.inputs))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Give the rows, as values in the order of the names."""
        return zip(*self._all(), strict=True)

    def records(self) -> Iterator[dict[str, Any]]:
        """Give the rows by name."""
        return (dict(zip(self.names, row, strict=True)) for row in self.rows())

    def to_frame(self) -> "pd.DataFrame":
        """Return the answers as a table."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self.names, self._all(), strict=True)))

    def _all(self) -> list[Sequence[Any]]:
        return [*(self.columns[name] for name in COLUMNS), *self.inputs.values()]

    def _shown(self, name: str) -> str:
        return f"input.{name}" if name in COLUMNS else name


def changed_how(label: str | None, old: str | None, new: str | None) -> str | None:
    """Say what a change of an answer means; None where there is none, or it cannot be told.

    >>> [changed_how("cat", *sides) for sides in (("cat", "dog"), ("dog", "cat"), ("dog", "cow"))]
    ['worse', 'better', 'wrong both times']
    """
    if old is None or new is None or old == new or label is None:
        return None
    if new == label:
        return "better"
    return "worse" if old == label else "wrong both times"
