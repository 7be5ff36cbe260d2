"""Where the difficulty of items comes from."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DifficultySource:
    """The column that separates easy items from hard ones, if there is one."""

    column: str | None
    words: str
    """what the column is, for people; empty without a column

    It is part of the settings by which a stored run is recognised, so it is never reworded.
    """


def choose(
    columns: Collection[str],
    *,
    difficulty: str | None = None,
    old: str | None = None,
    old_confidence: str | None = None,
) -> DifficultySource:
    """Choose the column named as the difficulty, else the baseline's confidence, else none.

    A column `NAME.confidence` is taken for the confidence of a column `NAME.prediction`.

    >>> choose(["label", "acme.prediction", "acme.confidence"], old="acme.prediction").words
    "'acme.confidence', the confidence of the old answers"
    >>> choose(["label", "old"], old="old").column is None
    True
    """
    if difficulty is not None:
        return DifficultySource(difficulty, repr(difficulty))
    confidence = beside(columns, old, old_confidence)
    if confidence is None:
        return DifficultySource(None, "")
    return DifficultySource(confidence, f"{confidence!r}, the confidence of the old answers")


def beside(columns: Collection[str], answers: str | None, given: str | None = None) -> str | None:
    """Return the column with the confidence of these answers.

    It is the one given, or else the one that `choose` knows by its name, or None.
    """
    if given is not None or answers is None or not answers.endswith(".prediction"):
        return given
    name = answers.removesuffix("prediction") + "confidence"
    if name in columns:
        return name
    return None
