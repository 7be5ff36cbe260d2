"""What of a client's reply can be stored and shown."""

from contextlib import suppress
from math import isfinite

from masa.data.dataset import as_text
from masa.records import INVALID, LONGEST_LABEL, RESERVED, Reply

LARGEST_COST = 2**62
"""A cost of this many billionths or more cannot be stored."""


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
    return Reply(as_prediction(reply.label), _confidence(reply), _version(reply), cost)


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
