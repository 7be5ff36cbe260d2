"""Where the difficulty of items comes from."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """The column that tells easy items from hard ones, if there is one, and what it is in words."""

    column: str | None
    words: str


def choose(
    columns: Collection[str],
    *,
    difficulty: str | None = None,
    old: str | None = None,
    old_confidence: str | None = None,
) -> Source:
    """Take the column named for it, else the confidence of the old answers, else none.

    Beside `NAME.prediction`, a column `NAME.confidence` is known to be its confidence.

    >>> choose(["label", "acme.prediction", "acme.confidence"], old="acme.prediction").words
    "'acme.confidence', the confidence of the old answers"
    >>> choose(["label", "old"], old="old").column is None
    True
    """
    if difficulty is not None:
        return Source(difficulty, repr(difficulty))
    sure = beside(columns, old, old_confidence)
    return (
        Source(None, "")
        if sure is None
        else Source(sure, f"{sure!r}, the confidence of the old answers")
    )


def beside(columns: Collection[str], answers: str | None, given: str | None = None) -> str | None:
    """Give the column with the confidence of these answers: the one given, or else the one known by its name."""
    if given is not None or answers is None or not answers.endswith(".prediction"):
        return given
    name = answers.removesuffix("prediction") + "confidence"
    return name if name in columns else None
