"""A function of the user's as a client: sync, async or in batches."""

import asyncio
import importlib
import inspect
import logging
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import Field

from masa.clients import Context
from masa.clients.options import QUERIES_ONLY, OptionsModel, Price, checked, whole_price
from masa.clients.threads import in_a_thread
from masa.clients.together import Together
from masa.data.dataset import as_text
from masa.errors import CallError, ConfigError, Failed, MasaError, Rejected
from masa.records import Item, Reply, billionths

log = logging.getLogger(__name__)

REPLY_KEYS = {"label", "confidence", "version", "cost"}
"""The keys of a dict that a function may return."""

HOW_TO_NAME = "write python:module:function"


class PythonOptions(OptionsModel):
    """The keys of `[api]` for `client = "python:module:function"`."""

    price: Price = None
    """money per item, or `queries-only`: one of them is needed"""
    timeout: float = Field(default=60.0, gt=0, le=3600)
    """seconds after which a call has failed"""
    batch: int = Field(default=1, ge=1, le=10_000)
    """items in a call of the function"""
    threads: int = Field(default=32, ge=1, le=1000)
    """calls at once of a function that is not `async`"""


class Python:
    """A client that calls a function with the text of an item.

    With several input columns the function is given a dict.
    """

    columns: Sequence[str] = ()

    def __init__(self, name: str, function: Callable[..., Any], options: PythonOptions) -> None:
        self._name = name
        self._function = function
        self._options = options
        self._call = caller(function)
        self._slots: asyncio.Semaphore | None = None
        self._together = Together(self._ask_together, options.batch)
        self.batch = options.batch
        self.priced = isinstance(options.price, int)

    def price(self, _: Item) -> int:
        """Return the price of a call, which is the same for every item."""
        return whole_price(self._options.price)

    def describe(self) -> Mapping[str, Any]:
        """Name the function."""
        return {"api": f"python:{self._name}"}

    async def ask(self, item: Item) -> Reply:
        """Call the function, together with other items if it takes batches."""
        options = self._options
        if self._slots is None:  # Made here, for the loop that is running.
            self._slots = asyncio.Semaphore(options.threads * options.batch)
        try:
            # The time spent waiting for a free thread is not the function's.
            async with self._slots, asyncio.timeout(options.timeout):
                if options.batch == 1:
                    return await self._call(item)
                return await self._together.ask(item)
        except TimeoutError as exc:
            raise Failed(f"no answer in {options.timeout:g} s") from exc

    async def close(self) -> None:
        """Get ready for another loop, without waiting for functions that hang."""
        self._slots = None

    async def _ask_together(self, items: list[Item]) -> list[Reply | CallError]:
        """Call the function with a batch; return one reply or error per item."""
        return await _together(self._function, items)


async def _together(function: Callable[..., Any], items: list[Item]) -> list[Reply | CallError]:
    """Call a function with a batch; return one reply or error per item."""
    answers = await _called(function, [_shown(item) for item in items])
    is_list = isinstance(answers, Sequence) and not isinstance(answers, str)
    if not is_list or len(answers) != len(items):
        raise Rejected("the function did not return a list with one answer per item")
    return [_reply_or_error(answer) for answer in answers]


def batch_caller(function: Callable[..., Any], batch: int) -> Callable[[Item], Awaitable[Reply]]:
    """Turn a function of a list of items into one that is awaited and returns a reply."""

    async def ask(items: list[Item]) -> list[Reply | CallError]:
        return await _together(function, items)

    gathered = Together(ask, batch)
    return gathered.ask


def caller(function: Callable[..., Any]) -> Callable[[Item], Awaitable[Reply]]:
    """Turn a function of any kind into one that is awaited and returns a reply."""

    async def call(item: Item) -> Reply:
        return reply(await _called(function, _shown(item)))

    return call


def _shown(item: Item) -> "str | dict[str, str] | Item":
    """Return what a function is given: the text, a dict of texts, or the item if it has none."""
    if not item.inputs:
        return item
    if len(item.inputs) == 1:
        return item.text
    return dict(item.inputs)


async def _called(function: Callable[..., Any], given: object) -> Any:
    """Call a function; what it raises becomes a CallError.

    It is tried again only if it looks like the network's fault.
    """
    try:
        if inspect.iscoroutinefunction(function):
            return await function(given)
        answer = await in_a_thread(function, given)
        if inspect.isawaitable(answer):
            return await answer
        return answer
    except (CallError, MasaError):
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise Rejected("the function cancelled itself") from None
    except (OSError, TimeoutError) as exc:
        raise Failed(f"the function raised {type(exc).__name__}") from exc
    except (Exception, SystemExit) as exc:
        log.info("the function raised", exc_info=exc)
        raise Rejected(
            f"the function raised {type(exc).__name__}", said=f"{exc} ({_where(exc)})"
        ) from exc


def _where(exc: BaseException) -> str:
    """Name the file and line where something was raised."""
    last = traceback.extract_tb(exc.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


def reply(answer: Any) -> Reply:
    """Read what a function returned: a label, a dict with `label` and more, or a Reply.

    >>> found = reply({"label": 3, "confidence": 0.5, "cost": 0.001})
    >>> found.label, found.confidence, found.cost
    ('3', 0.5, 1000000)
    """
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, list | tuple | set):
        raise Rejected("the function returned a list; return one label, or a dict")
    if not isinstance(answer, Mapping):
        return Reply(as_text(answer))
    if "label" not in answer or set(answer) - REPLY_KEYS:
        raise Rejected("the function returned a dict without 'label' or with unknown keys")
    cost = answer.get("cost")
    confidence = answer.get("confidence")
    try:
        if cost is not None:
            cost = billionths(cost)
        if confidence is not None:
            confidence = float(confidence)
    except (MasaError, TypeError, ValueError) as exc:
        raise Rejected(
            "the function returned a cost or a confidence that is not a number", said=str(exc)
        ) from exc
    return Reply(as_text(answer["label"]), confidence, as_text(answer.get("version")), cost)


def _reply_or_error(answer: Any) -> Reply | CallError:
    """Read one answer of a batch."""
    try:
        return reply(answer)
    except CallError as exc:
        return exc
    except Exception as exc:
        log.info("an answer of a batch cannot be read", exc_info=exc)
        return Rejected(f"the answer raised {type(exc).__name__}", said=str(exc))


def make(argument: str, options: Mapping[str, Any], context: Context) -> Python:
    """Import the function, unless nothing may be imported, and make the client."""
    given = checked(PythonOptions, options, where="[api]")
    module, name = _named(argument)
    function: Callable[..., Any] = _not_imported
    if context.imports:
        function = _imported(module, name)
    if given.price is None:
        raise ConfigError(
            "[api] does not say what a call costs",
            hint=f'set price to the money per call, such as 0.0015, or to "{QUERIES_ONLY}"',
        )
    if not context.inputs:
        raise ConfigError(
            "the function has nothing to read",
            hint="name the input column: --input COL, or [data] input",
        )
    return Python(argument, function, given)


def _named(argument: str) -> tuple[str, str]:
    """Give the module and the function that `module:function` names."""
    module, _, name = argument.partition(":")
    if not module or not name:
        raise ConfigError(f"the client python:{argument} names no function", hint=HOW_TO_NAME)
    _refuse_standard(module, argument)
    return module, name


def _refuse_standard(module: str, argument: str) -> None:
    """Refuse functions of Python's own library: os.system would run the data as commands."""
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise ConfigError(
            f"the client python:{argument} is a part of Python, not an API",
            hint="write a function of your own that calls the API",
        )


def _not_imported(_: object) -> None:
    raise ConfigError("the function was not imported", hint="allow the context to import")


def _imported(module: str, name: str) -> Callable[..., Any]:
    """Import a function, from the current folder where Python finds its module nowhere else."""
    try:
        with _looking_here():
            found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"there is no module {exc.name!r}",
            hint=f"masa looks where Python looks, then in {Path.cwd()}",
        ) from exc
    except AttributeError as exc:
        where = getattr(sys.modules.get(module), "__file__", None) or "no file"
        raise ConfigError(
            f"the module {module!r} ({where}) has no {name!r}", hint=HOW_TO_NAME
        ) from exc
    except (Exception, SystemExit) as exc:
        raise ConfigError(
            f"the module {module!r} cannot be imported: {type(exc).__name__}: {exc}",
            hint=f"try python -m {module}",
        ) from exc
    if not callable(found):
        raise ConfigError(f"{module}:{name} is not a function", hint=HOW_TO_NAME)
    if inspect.isroutine(found) or inspect.isclass(found):
        _refuse_standard(getattr(found, "__module__", None) or "", f"{module}:{name}")
    function: Callable[..., Any] = found
    return function


@contextmanager
def _looking_here() -> Iterator[None]:
    """Let Python look for modules in the current folder, last, and only for this import.

    A file there must never be run in place of a package that masa or anything else imports later.
    """
    folder = str(Path.cwd())
    sys.path.append(folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with suppress(ValueError):  # The module took it out itself.
            # The last one: the same folder may stand in the path by the user's wish.
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(folder)]
