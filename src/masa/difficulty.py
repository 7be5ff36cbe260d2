"""Where the difficulty of items comes from."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """The column that tells easy items from hard ones, if there is one, and what it is in words."""

    column: str | None
    words: str


def choose(
    columns: Collection[str], *, difficulty: str | None = None, old: str | None = None, old_confidence: str | None = None
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
    if old_confidence is None and old is not None and old.endswith(".prediction"):
        beside = old.removesuffix("prediction") + "confidence"
        old_confidence = beside if beside in columns else None
    if old_confidence is not None:
        return Source(old_confidence, f"{old_confidence!r}, the confidence of the old answers")
    return Source(None, "")
