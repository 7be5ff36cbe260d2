"""Templates for requests, and paths into answers."""

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from masa.errors import ConfigError
from masa.records import Item

PLACE = re.compile(r"(?<!\$)\{([^{}\"\n]*)\}")
"""A name in braces, where a template is filled; not ${NAME}, which is a secret, and not JSON."""


def refuse_what_is_no_json(content: Any, *, where: str) -> None:
    """Raise if something cannot be sent as JSON, such as the dates and times of TOML."""
    try:
        json.dumps(content, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ConfigError(
            f"{where} cannot be sent as JSON: {exc}",
            hint="write dates and times as texts, in quotes",
        ) from exc


def places(content: object) -> list[str]:
    """Return the names in braces anywhere in a template.

    >>> places({"text": "{review}", "tags": ["{a}", "b"]})
    ['review', 'a']
    """
    if isinstance(content, str):
        return PLACE.findall(content)
    if isinstance(content, Mapping):
        content = list(content.values())
    if not isinstance(content, list):
        return []
    return [name for part in content for name in places(part)]


def column_and_way(place: str) -> tuple[str, str]:
    """Split the name of a place into the column and the way in which its file is sent, if any.

    >>> column_and_way("photo:base64"), column_and_way("a:b")
    (('photo', 'base64'), ('a:b', ''))
    """
    column, _, way = place.rpartition(":")
    return (column, way) if column and way in ("base64", "file") else (place, "")


def filled(content: Any, values: Mapping[str, str]) -> Any:
    """Fill a template in one pass, so that what is filled in is never read as a template.

    >>> filled({"text": "<{review}>"}, {"review": "{x}"})
    {'text': '<{x}>'}
    """
    if isinstance(content, str):
        return PLACE.sub(lambda match: values.get(match[1], match[0]), content)
    if isinstance(content, Mapping):
        return {name: filled(part, values) for name, part in content.items()}
    if isinstance(content, list):
        return [filled(part, values) for part in content]
    return content


def values_of(item: Item) -> dict[str, str]:
    """Return the value of each name in braces: each input column, and `input` for the only one."""
    return {"input": item.text, **item.inputs}


def check_places(
    content: object, known: tuple[str, ...], *, where: str, extra: tuple[str, ...] = ()
) -> None:
    """Raise for a name in braces that is neither an input column nor `input`."""
    allowed = (*known, "input", *extra)
    for place in places(content):
        name = column_and_way(place)[0]
        if name not in allowed:
            hint = f"name it in [data] input, which has {', '.join(known) or 'none'}"
            if close := get_close_matches(name, allowed, 1):
                hint = f"did you mean {{{close[0]}}}?"
            raise ConfigError(f"{where} names {{{name}}}, which is not an input column", hint=hint)


class Path:
    """The path to a value in an answer.

    >>> Path("result.items[0].label").of({"result": {"items": [{"label": "yes"}]}})
    'yes'
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if not re.fullmatch(r"([^.\[\]]+|\[\d+\])(\.[^.\[\]]+|\[\d+\])*", text):
            raise ConfigError(
                f"[api]: {text!r} is not a path into an answer",
                hint="write it as result.items[0].label",
            )
        self._steps: list[str | int] = []
        for part in re.findall(r"\[\d+\]|[^.\[\]]+", text):
            if part.startswith("["):
                self._steps.append(int(part[1:-1]))
            else:
                self._steps.append(part)

    def of(self, content: Any) -> Any:
        """Follow the path; raise LookupError where it leads nowhere."""
        for step in self._steps:
            if isinstance(content, dict) and isinstance(step, str):
                content = content[step]
            elif isinstance(content, list) and (isinstance(step, int) or step.isdecimal()):
                content = content[int(step)]
            else:
                raise LookupError(step)
        return content
