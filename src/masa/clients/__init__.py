"""Clients: each sends an item to an API and brings back a label.

A client is made from its name in masa.toml or on the command line: `replay:COLUMN`,
`python:module:function`, `http`, a named service or language model of the `catalogue`, or one
that an installed package offers under the entry point group `masa.clients`. A client asks once and
says what happened; retries, budgets and the journal are not its business.
"""

import functools
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from masa.clients.catalogue import CATALOGUE, Entry
from masa.errors import ConfigError, DataError
from masa.records import Item, Reply

if TYPE_CHECKING:
    from masa.data.dataset import Dataset

GROUP = "masa.clients"


@runtime_checkable
class Client(Protocol):
    """What masa needs from an API.

    Where there is no answer, `ask` raises `masa.errors.Refused`, `Failed`, `Rejected` or `Fatal`;
    it does not try again.
    """

    @property
    def columns(self) -> Sequence[str]:
        """The input columns it needs; an item may have more."""

    @property
    def priced(self) -> bool:
        """Whether calls have a price; if not, only queries are counted."""

    def price(self, item: Item) -> int:
        """Return the most that a call about an item may cost, in billionths."""

    def describe(self) -> Mapping[str, Any]:
        """Describe what makes its answers comparable: the API, the prompt, the parser; no secrets.

        The description is stored with a run.
        """

    async def ask(self, item: Item) -> Reply:
        """Ask about one item, once."""

    async def close(self) -> None:
        """Close connections."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a client may know about the task when it is made."""

    labels: tuple[str, ...]
    """the labels of the data"""
    inputs: tuple[str, ...]
    """the input columns, in the user's order"""
    environment: Mapping[str, str]
    """the variables that may be sent, by name"""
    hosts: dict[str, str] = field(default_factory=dict)
    """the host that each variable is sent to, for all clients of a command"""
    folder: Path | None = None
    """the folder of the data, from which files may be sent"""
    imports: bool = True
    """whether code that the configuration names may be imported"""


def batch_size(client: Client) -> int:
    """Give the number of items that the client sends in one call at most: its `batch`, if any."""
    return max(1, int(getattr(client, "batch", 1)))


def check_items(client: Client, data: "Dataset") -> None:
    """Let a client look at all items before anything is spent: its `check(items)`, if any.

    It raises a DataError for what can never be sent, such as a file that is not there.
    """
    check = getattr(client, "check", None)
    if check is None:
        return
    place = 0

    def looked_at() -> Iterator[Item]:
        nonlocal place
        for place in range(len(data)):
            yield data.item(place)

    try:
        check(looked_at())
    except DataError as exc:
        raise DataError(f"{data.name(place)}, {exc.message}", hint=exc.hint) from exc


Factory = Callable[[str, Mapping[str, Any], Context], Client]
"""Makes a client from what follows the colon of its name, its options and the context."""


def offered() -> dict[str, str]:
    """Return the names of all clients that can be made, and who offers them."""
    plugins = {point.name: point.value for point in entry_points(group=GROUP)}
    return dict.fromkeys(CATALOGUE, "masa") | plugins


def listed() -> list[Entry]:
    """Give what is known of every client that can be made, those of other packages last."""
    plugins = [
        Entry(point.name, point.value, "a client of another package", offered_by=point.value)
        for point in entry_points(group=GROUP)
    ]
    return [*CATALOGUE.values(), *plugins]


def make(name: str, options: Mapping[str, Any], context: Context) -> Client:
    """Make a client from its name and options."""
    kind, _, argument = name.partition(":")
    factory: Factory
    if kind in CATALOGUE and kind != "replay":
        factory = import_module(CATALOGUE[kind].module).make
        return factory(argument, options, context)
    for point in entry_points(group=GROUP):
        if point.name == kind:
            factory = point.load()
            return factory(argument, options, context)
    raise unknown(kind)


def unknown(kind: str) -> ConfigError:
    """Say that no client has this name, and which one may be meant."""
    known = list(offered())
    hint = f"there are {', '.join(known)}"
    if close := get_close_matches(kind, known, 1):
        hint = f"did you mean {close[0]!r}?"
    return ConfigError(f"there is no client {kind!r}", hint=hint)


def identity(function: Any) -> str:
    """Return a name for a function that is the same in every process.

    Another function of the same name has another identity: its source and the plain values that
    it was given are hashed. They are only hashed because the identity is stored and one of them
    may be a key.

    >>> identity(len)
    'builtins.len'
    """
    if isinstance(function, functools.partial):
        values = [*function.args, *sorted(function.keywords.items())]
        return f"{identity(function.func)}.{_hash('', values)}"
    named = function
    if not hasattr(function, "__qualname__"):
        named = type(function)
    name = f"{named.__module__}.{named.__qualname__}"
    values = []
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # The cell is still empty.
            values.append(cell.cell_contents)
    with suppress(OSError, TypeError):
        name += f".{_hash(inspect.getsource(named), values)}"
    return name


def _hash(text: str, values: list[Any]) -> str:
    """Hash a text and the plain values among these.

    Other values are left out: their addresses would differ from process to process.
    """
    plain = [value for value in values if isinstance(value, str | int | float | bool | tuple)]
    return hashlib.sha256(f"{text}{plain!r}".encode()).hexdigest()[:8]


class Function:
    """A client made from a plain function, which takes the item and returns a label or a reply."""

    columns: Sequence[str] = ()
    priced = False

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        batch: int = 1,
        close: Callable[[], Any] | None = None,
    ) -> None:
        """Take a function of an item or, with batch above 1, of a list of so many at most.

        close is called, and awaited if it can be, once nothing more is asked.
        """
        from masa.clients.python import batch_caller, caller

        self._call: Callable[[Item], Awaitable[Reply]] = (
            caller(function) if batch == 1 else batch_caller(function, batch)
        )
        self._name = name or identity(function)
        self._close = close

    def price(self, _: Item) -> int:
        """Return 0: the price is not known."""
        return 0

    def describe(self) -> Mapping[str, Any]:
        """Name the function."""
        return {"api": f"function:{self._name}"}

    async def ask(self, item: Item) -> Reply:
        """Call the function."""
        return await self._call(item)

    async def close(self) -> None:
        """Call what was given to be called at the end."""
        if self._close is not None:
            done = self._close()
            if inspect.isawaitable(done):
                await done
