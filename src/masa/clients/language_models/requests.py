"""Requests of language models: what the user adds to them, and how long the answer may be."""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from masa.errors import ConfigError

COPIES = ("n", "candidateCount", "best_of")
"""What providers call the number of answers that they are asked for."""


OWN_FIELDS = {
    "model": "model",
    "modelId": "model",
    "messages": "prompt and system",
    "input": "prompt",
    "prompt": "prompt",
    "contents": "prompt",
    "instructions": "system",
    "system": "system",
    "systemInstruction": "system",
}
"""Fields that no extra replaces, and the options of `[api]` that say what is in them."""

TIERS = ("service_tier", "serviceTier", "performanceConfig", "speed")
"""Fields that change what a token costs."""


def check_extra(extra: Mapping[str, Any], *, priced_by_table: bool) -> None:
    """Raise where fields to add would change what is asked, or its price, unseen."""
    for name in extra:
        if name in OWN_FIELDS:
            raise ConfigError(
                f"[api] extra has {name!r}, which is not added but replaced",
                hint=f"set {OWN_FIELDS[name]} in [api]",
            )
        if name in TIERS and priced_by_table:
            raise ConfigError(
                f"[api] extra has {name!r}: its prices are not those of the table",
                hint="give input_price and output_price in [api] as well",
            )


def merged(request: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Add fields to a request: those of a table to the table of that name.

    >>> merged({"config": {"limit": 5}}, {"config": {"top": 1}})
    {'config': {'limit': 5, 'top': 1}}
    """
    result = dict(request)
    for name, value in extra.items():
        mine = result.get(name)
        result[name] = value
        if isinstance(mine, Mapping) and isinstance(value, Mapping):
            result[name] = merged(mine, value)
    return result


def most_received(request: Mapping[str, Any], limit: str) -> int:
    """Give the most tokens that an answer may have, or 0 where there is no limit.

    `limit` is what the provider calls the limit. Other limits and budgets of thinking count, too,
    wherever they stand: it is not known which of them a model keeps to.

    >>> most_received({"max_tokens": 64, "n": 2}, "max_tokens")
    128
    >>> most_received({"config": {"maxTokens": 64}, "more": {"max_new_tokens": 500.0}}, "maxTokens")
    500
    >>> most_received({"max_tokens": None}, "max_tokens")
    0
    """
    limits, thinking, copies = [0], [0], [1]
    limited = False
    for name, value in _numbers(request):
        plain = name.replace("_", "").lower()
        if plain.startswith("max") and plain.endswith("tokens"):
            limits.append(ceil(value))
            limited = limited or (name == limit and value > 0)
        elif plain in ("thinkingbudget", "budgettokens"):
            thinking.append(ceil(value))
        elif name in COPIES:
            copies.append(ceil(value))
    return (max(limits) + max(thinking)) * max(copies) if limited else 0


def _numbers(content: Any) -> Iterator[tuple[str, float]]:
    """Give all numbers in a request, and the names of their fields."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield name, value
            else:
                yield from _numbers(value)
    elif isinstance(content, list):
        for part in content:
            yield from _numbers(part)
