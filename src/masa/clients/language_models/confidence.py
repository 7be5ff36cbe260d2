"""How sure a model was of a label, from the probabilities of the tokens that it wrote."""

import math
import re
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from masa.clients.language_models.mentions import bounded
from masa.clients.unreadable import UNREADABLE

CONFIDENCE = {"confidence": "tokens of the label"}
"""Part of what makes answers comparable: another way to count would look like a change."""


class Token(NamedTuple):
    """A token that a model wrote."""

    text: str
    logprob: float


def tokens_of(given: Any, logprob: str) -> tuple[Token, ...]:
    """Read the tokens of an answer; `logprob` is what the provider calls the number.

    >>> tokens_of([{"token": "pos", "logprob": -0.1}], "logprob")
    (Token(text='pos', logprob=-0.1),)
    >>> tokens_of(None, "logprob")
    ()
    """
    try:
        return tuple(Token(str(one["token"]), float(one[logprob])) for one in given)
    except UNREADABLE:
        return ()


def confidence(
    tokens: Iterable[Token], label: str | None, label_of: Mapping[str, str]
) -> float | None:
    """Give the probability of the tokens that name the label; of all where none of them does.

    Words around a label ("The answer is positive.") say nothing about how sure of it a model was.

    >>> said = (Token("I say ", -2.0), Token("po", -0.5), Token("s.", 0.0))
    >>> confidence(said, "positive", {"pos": "positive"}) == math.exp(-0.5)
    True
    >>> confidence((), "positive", {}) is None
    True
    """
    tokens = tuple(tokens)
    if not tokens:
        return None
    parts = [token.text.casefold() for token in tokens]
    ends = list(accumulate(map(len, parts)))
    named = [
        match.span()
        for name, meant in label_of.items()
        if meant == label and name
        for match in re.finditer(bounded(name), "".join(parts))
    ]
    counted = [
        token.logprob
        for token, part, end in zip(tokens, parts, ends, strict=True)
        if any(first < end and end - len(part) < last for first, last in named)
    ]
    total = sum(counted or [token.logprob for token in tokens])
    return None if math.isnan(total) else math.exp(min(0.0, total))
