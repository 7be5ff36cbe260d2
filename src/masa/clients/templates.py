"""Templates for requests, and paths into answers."""

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from masa.errors import ConfigError
from masa.records import Item

PLACE = re.compile(r"(?<!\$)\{([^{}]*)\}")


def refuse_what_is_no_json(content: Any, *, where: str) -> None:
    """Raise if something cannot be sent as JSON: TOML knows dates and times."""
    try:
        json.dumps(content, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ConfigError(
            f"{where} cannot be sent as JSON: {exc}",
            hint="write dates and times as texts, in quotes",
        ) from exc


def places(content: object) -> list[str]:
    """Give the names in braces anywhere in a template.

    >>> places({"text": "{review}", "tags": ["{a}", "b"]})
    ['review', 'a']
    """
    if isinstance(content, str):
        return PLACE.findall(content)
    inner = (
        content.values()
        if isinstance(content, Mapping)
        else content
        if isinstance(content, list)
        else ()
    )
    return [name for part in inner for name in places(part)]


def filled(content: Any, values: Mapping[str, str]) -> Any:
    """Fill a template, in one pass: what is filled in is never read as a template.

    >>> filled({"text": "<{review}>"}, {"review": "{x}"})
    {'text': '<{x}>'}
    """
    if isinstance(content, str):
        return PLACE.sub(lambda match: values.get(match[1], match[0]), content)
    if isinstance(content, Mapping):
        return {name: filled(part, values) for name, part in content.items()}
    return [filled(part, values) for part in content] if isinstance(content, list) else content


def values_of(item: Item) -> dict[str, str]:
    """Give what the names in braces stand for: each input column, and `input` for the only one."""
    return {"input": item.text, **item.inputs}


def check_places(
    content: object, known: tuple[str, ...], *, where: str, extra: tuple[str, ...] = ()
) -> None:
    """Raise for a name in braces that is neither an input column nor `input`."""
    for name in places(content):
        if name not in (*known, "input", *extra):
            close = get_close_matches(name, (*known, "input", *extra), 1)
            hint = (
                f"did you mean {{{close[0]}}}?"
                if close
                else f"name it in [data] input, which has {', '.join(known) or 'none'}"
            )
            raise ConfigError(f"{where} names {{{name}}}, which is not an input column", hint=hint)


class Path:
    """The way to a value in an answer.

    >>> Path("result.items[0].label").of({"result": {"items": [{"label": "yes"}]}})
    'yes'
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if not re.fullmatch(r"([^.\[\]]+|\[\d+\])(\.[^.\[\]]+|\[\d+\])*", text):
            raise ConfigError(
                f"[api]: {text!r} is no way into an answer",
                hint="write it as result.items[0].label",
            )
        self._steps = [
            int(part[1:-1]) if part[0] == "[" else part
            for part in re.findall(r"\[\d+\]|[^.\[\]]+", text)
        ]

    def of(self, content: Any) -> Any:
        """Follow the way; raise LookupError where it ends."""
        for step in self._steps:
            if isinstance(step, str) and isinstance(content, list) and step.isdecimal():
                content = content[int(step)]
            elif isinstance(content, list if isinstance(step, int) else dict):
                content = content[step]
            else:
                raise LookupError(step)
        return content
