"""Clients: each takes an item to an API and brings back a label.

A client is made from its name in masa.toml or on the command line: `replay:COLUMN`, `python:module:function`, `http`,
`openai`, or one that an installed package offers under the entry point group `masa.clients`.
"""

import functools
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol, runtime_checkable

from masa.errors import ConfigError
from masa.records import Item, Reply

GROUP = "masa.clients"
BUILT_IN = {
    "http": "masa.clients.http",
    "openai": "masa.clients.openai",
    "python": "masa.clients.python",
}
KINDS = ("replay", *BUILT_IN)


@runtime_checkable
class Client(Protocol):
    """What masa needs of an API.

    `ask` raises `masa.errors.Refused`, `Failed`, `Rejected` or `Fatal` where there is no answer; it does not retry.
    """

    @property
    def columns(self) -> Sequence[str]:
        """The input columns it needs; more may be given."""

    @property
    def priced(self) -> bool:
        """Whether calls have a price; if not, only queries are counted."""

    def price(self, item: Item) -> int:
        """Give the most that a call about an item may cost, in billionths."""

    def describe(self) -> Mapping[str, Any]:
        """Tell what makes its answers comparable: the API, the prompt, the parser; no secrets."""

    async def ask(self, item: Item) -> Reply:
        """Ask about one item, once."""

    async def close(self) -> None:
        """Let go of connections."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a client may know about the task when it is made."""

    labels: tuple[str, ...]
    """the labels of the data"""
    inputs: tuple[str, ...]
    """the input columns, in the user's order"""
    environment: Mapping[str, str]
    """where secrets come from"""


Factory = Callable[[str, Mapping[str, Any], Context], Client]
"""(what follows the colon of its name, its options, context)"""


def offered() -> dict[str, str]:
    """Give the names of all clients that can be made and who offers them."""
    return dict.fromkeys(KINDS, "masa") | {
        point.name: point.value for point in entry_points(group=GROUP)
    }


def make(name: str, options: Mapping[str, Any], context: Context) -> Client:
    """Make a client from its name and options."""
    kind, _, argument = name.partition(":")
    if kind in BUILT_IN:
        factory: Factory = import_module(BUILT_IN[kind]).make
    else:
        points = [point for point in entry_points(group=GROUP) if point.name == kind]
        if not points:
            close = get_close_matches(kind, list(offered()), 1)
            known = ", ".join(offered())
            raise ConfigError(
                f"there is no client {kind!r}",
                hint=f"did you mean {close[0]!r}?" if close else f"there are {known}",
            )
        factory = points[0].load()
    return factory(argument, options, context)


def identity(function: Any) -> str:
    """Give a name that is the same in every process, and another one for another function of the same name.

    It is stored, so what a function was given, which may be a key, is only in a hash.

    >>> identity(len)
    'builtins.len'
    """
    if isinstance(function, functools.partial):
        return f"{identity(function.func)}.{_hash('', [*function.args, *sorted(function.keywords.items())])}"
    named = function if hasattr(function, "__qualname__") else type(function)
    name = f"{named.__module__}.{named.__qualname__}"
    cells = []
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # A cell that is still empty.
            cells.append(cell.cell_contents)
    with suppress(OSError, TypeError):
        name += f".{_hash(inspect.getsource(named), cells)}"
    return name


def _hash(text: str, values: list[Any]) -> str:
    """Hash a text and the plain values among these; the addresses of others would differ from process to process."""
    plain = [value for value in values if isinstance(value, str | int | float | bool | tuple)]
    return hashlib.sha256(f"{text}{plain!r}".encode()).hexdigest()[:8]


class Function:
    """A client made of a plain function: it is given the item and gives a label or a reply."""

    columns: Sequence[str] = ()
    priced = False

    def __init__(self, function: Callable[[Item], Any], *, name: str = "") -> None:
        from masa.clients.python import caller

        self._call: Callable[[Item], Awaitable[Reply]] = caller(function)
        self._name = name or identity(function)

    def price(self, _: Item) -> int:
        """Give none: it is not known."""
        return 0

    def describe(self) -> Mapping[str, Any]:
        """Name the function."""
        return {"api": f"function:{self._name}"}

    async def ask(self, item: Item) -> Reply:
        """Call the function."""
        return await self._call(item)

    async def close(self) -> None:
        """Do nothing: nothing is held."""
