"""What of a client's reply can be stored and shown."""

from collections.abc import Mapping
from contextlib import suppress
from math import isfinite

from masa.data.dataset import as_text
from masa.records import INVALID, LONGEST_LABEL, RESERVED, UNREAD, Reply

LARGEST_COST = 2**62
"""A cost of this many billionths or more cannot be stored."""


LONGEST_SAID = 2_000
"""The most characters of an answer's own words that are kept."""

MOST_SCORES = 50
"""The most scores of an answer that are kept, the largest ones."""


def as_prediction(label: object) -> str:
    """Give the prediction that an answer is; what cannot be a label is not readable."""
    text = as_text(label)
    if text is None or len(text) > LONGEST_LABEL or text in RESERVED:
        return INVALID
    try:
        text.encode()
    except UnicodeEncodeError:  # Half of a character is not text.
        return INVALID
    return text


def cleaned(reply: Reply, price: int) -> Reply:
    """Keep of a reply what can be stored; a cost that is none is the price that was reserved."""
    cost = price
    if isinstance(reply.cost, int) and 0 <= reply.cost < LARGEST_COST:
        cost = reply.cost
    prediction = as_prediction(reply.label)
    return Reply(
        prediction,
        _confidence(reply),
        _version(reply),
        cost,
        _scores(reply),
        _unread(reply, prediction),
        _said(reply),
    )


def _unread(reply: Reply, prediction: str) -> str | None:
    """Give the reason why an answer is no label, where it is none."""
    if prediction != INVALID:
        return None
    return reply.unread if reply.unread in UNREAD else "no label"


def _said(reply: Reply) -> str | None:
    """Give what the API said as text that can be stored."""
    if reply.said is None:
        return None
    return str(reply.said)[:LONGEST_SAID].encode(errors="replace").decode()


def _scores(reply: Reply) -> dict[str, float] | None:
    """Give the scores that are numbers, the largest first."""
    if not isinstance(reply.scores, Mapping):
        return None
    numbers: dict[str, float] = {}
    for name, score in reply.scores.items():
        with suppress(TypeError, ValueError, OverflowError):
            label, number = as_prediction(name), float(score)
            if label != INVALID and isfinite(number):
                numbers[label] = number
    largest = sorted(numbers, key=lambda name: (-numbers[name], name))[:MOST_SCORES]
    return {name: numbers[name] for name in largest} or None


def _version(reply: Reply) -> str | None:
    """Give the version as one printable line."""
    if reply.version is None:
        return None
    short = str(reply.version)[:LONGEST_LABEL]
    return "".join(sign if sign.isprintable() else " " for sign in short).strip() or None


def _confidence(reply: Reply) -> float | None:
    if reply.confidence is None:
        return None
    with suppress(TypeError, ValueError, OverflowError):
        confidence = float(reply.confidence)
        if isfinite(confidence):
            return confidence
    return None
