"""The tables of the keys of `[api]` in the docs, derived from the options of each client."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from masa.clients.catalogue import CATALOGUE
from masa.clients.options import OptionsModel

LONGEST = 60
"""Defaults of more characters than this are not shown."""


def options_of(client: str) -> type[OptionsModel]:
    """Give the class that holds the keys of a client: the last one of its module.

    >>> options_of("facepp").__name__
    'FaceppOptions'
    """
    module = import_module(CATALOGUE[client].module)
    own = [
        one
        for one in vars(module).values()
        if isinstance(one, type)
        and issubclass(one, OptionsModel)
        and one.__module__ == module.__name__
    ]
    return own[-1]


def table(client: str) -> str:
    """Write the keys of a client as Markdown.

    >>> print(table("ibm-speech").splitlines()[2])
    | `model` | IBM's name for the model, which names the language, too | `en-US_Multimedia` |
    """
    options = options_of(client)
    meanings = dict(_meanings(options))
    rows = ["| key | meaning | default |", "|---|---|---|"]
    # What is needed comes first, then what is the client's own, then what all have.
    own = [name for one in options.__mro__ for name in getattr(one, "__annotations__", {})]
    names = list(dict.fromkeys(name for name in own if name in options.model_fields))
    names.sort(key=lambda name: not options.model_fields[name].is_required())
    for name in names:
        meaning = meanings[name].replace("|", "\\|")
        rows.append(f"| `{name}` | {meaning} | {_default(options, name)} |")
    return "\n".join(rows)


def _meanings(options: type[OptionsModel]) -> Iterator[tuple[str, str]]:
    """Give each key and the text below its field in the source, which says what it means."""
    for one in reversed(options.__mro__):
        if not issubclass(one, OptionsModel):
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(body, ast.ClassDef)  # noqa: S101 - it is the source of a class
        for field, below in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                yield field.target.id, str(below.value.value)


def _default(options: type[OptionsModel], name: str) -> str:
    field = options.model_fields[name]
    default: Any = field.get_default(call_default_factory=True)
    if default is PydanticUndefined:
        return "required"
    if default is None or default in ({}, ""):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, str):
        return f"`{default}`" if len(default) <= LONGEST else "a plain one"
    return f"{default:,}" if isinstance(default, int) else f"{default:g}"


def with_tables(page: str) -> str:
    """Give a page with its tables of keys as they are now.

    A table stands between `<!-- keys: CLIENT -->` and `<!-- end -->`.
    """

    def derived(match: "re.Match[str]") -> str:
        return f"<!-- keys: {match[1]} -->\n{table(match[1])}\n<!-- end -->"

    return re.sub(r"<!-- keys: ([\w-]+) -->.*?<!-- end -->", derived, page, flags=re.DOTALL)


def update(page: Path) -> None:
    """Bring the tables of a page up to date."""
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
