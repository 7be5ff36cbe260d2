"""A function of the user's as a client: sync, async or in batches."""

import asyncio
import inspect
import logging
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import Field

from masa.clients import Context
from masa.clients.options import QUERIES_ONLY, Price, Settings, checked
from masa.data.dataset import as_text
from masa.errors import CallError, ConfigError, Failed, MasaError, Rejected
from masa.records import Item, Reply, billionths

log = logging.getLogger(__name__)

GATHER = 0.005
"""Seconds that a batch waits for more items."""


class Options(Settings):
    """The keys of `[api]` for `client = "python:module:function"`."""

    price: Price = None
    timeout: float = Field(default=60.0, gt=0, le=3600)
    batch: int = Field(default=1, ge=1, le=10_000)
    threads: int = Field(default=32, ge=1, le=1000)


class Python:
    """A client that calls a function with the text of an item, or with a dict where there are several input columns."""

    columns: Sequence[str] = ()

    def __init__(self, name: str, function: Callable[..., Any], options: Options) -> None:
        self._name = name
        self._options = options
        self._slots: asyncio.Semaphore | None = None
        self._call = caller(function)
        self._batch: list[tuple[Item, asyncio.Future[Reply]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._function = function
        self.priced = isinstance(options.price, int)

    def price(self, _: Item) -> int:
        """Give the price of a call; it is the same for every item."""
        return self._options.price if isinstance(self._options.price, int) else 0

    def describe(self) -> Mapping[str, Any]:
        """Name the function."""
        return {"api": f"python:{self._name}"}

    async def ask(self, item: Item) -> Reply:
        """Call the function, with other items where it takes batches."""
        try:
            # Made here, for the loop that runs. Waiting for a free thread is not the function's time.
            self._slots = self._slots or asyncio.Semaphore(
                self._options.threads * self._options.batch
            )
            async with self._slots, asyncio.timeout(self._options.timeout):
                return await (self._call(item) if self._options.batch == 1 else self._join(item))
        except TimeoutError as exc:
            raise Failed(f"no answer in {self._options.timeout:g} s") from exc

    async def close(self) -> None:
        """Be ready for another loop; functions that hang are not waited for."""
        self._slots = None

    async def _join(self, item: Item) -> Reply:
        mine: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._batch.append((item, mine))
        if len(self._batch) >= self._options.batch:
            self._start()
        elif len(self._batch) == 1:
            asyncio.get_running_loop().call_later(GATHER, self._start)
        return await mine

    def _start(self) -> None:
        batch, self._batch = self._batch, []
        if batch:
            task = asyncio.create_task(self._ask_together(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask_together(self, batch: list[tuple[Item, asyncio.Future[Reply]]]) -> None:
        try:
            answers = await _called(self._function, [_shown(item) for item, _ in batch])
            if (
                not isinstance(answers, Sequence)
                or isinstance(answers, str)
                or len(answers) != len(batch)
            ):
                raise Rejected("the function did not give a list with one answer an item")
            replies: list[Reply | CallError] = []
            for answer in answers:
                try:
                    replies.append(reply(answer))
                except CallError as exc:
                    replies.append(exc)
        except CallError as exc:
            replies = [exc] * len(batch)
        except Exception as exc:
            log.info("the batch failed", exc_info=exc)
            replies = [Rejected(f"the answer raised {type(exc).__name__}", said=str(exc))] * len(
                batch
            )
        for (_, waiting), answer in zip(batch, replies, strict=True):
            if not waiting.done():
                waiting.set_exception(answer) if isinstance(
                    answer, CallError
                ) else waiting.set_result(answer)


def caller(function: Callable[..., Any]) -> Callable[[Item], Awaitable[Reply]]:
    """Make a function of any kind one that is awaited and gives a reply."""

    async def call(item: Item) -> Reply:
        return reply(await _called(function, _shown(item)))

    return call


def _shown(item: Item) -> "str | dict[str, str] | Item":
    return item if not item.inputs else item.text if len(item.inputs) == 1 else dict(item.inputs)


async def _called(function: Callable[..., Any], given: object) -> Any:
    """Call a function; what it raises is a failed call, tried again only if it looks like the network's fault."""
    try:
        if inspect.iscoroutinefunction(function):
            return await function(given)
        answer = await _in_a_thread(function, given)
        return await answer if inspect.isawaitable(answer) else answer
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


async def _in_a_thread(function: Callable[..., Any], given: object) -> Any:
    """Call a function without waiting for it in the loop, and without having to wait for it when the program ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(answer: Any, exc: BaseException | None) -> None:
        if not done.done():
            done.set_result(answer) if exc is None else done.set_exception(exc)

    def work() -> None:
        answer: Any = None
        raised: BaseException | None = None
        try:
            answer = function(given)
        except StopIteration:  # No future can hold it.
            raised = Rejected("the function raised StopIteration")
        except Exception as exc:
            raised = exc
        except BaseException as exc:
            raised = Rejected(f"the function raised {type(exc).__name__}")
        with suppress(RuntimeError):  # The loop has ended: nobody waits any more.
            loop.call_soon_threadsafe(settle, answer, raised)

    threading.Thread(target=work, name="masa-api", daemon=True).start()
    return await done


def _where(exc: BaseException) -> str:
    """Say in which line of which file something was raised."""
    last = traceback.extract_tb(exc.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


def reply(answer: Any) -> Reply:
    """Read what a function gave: a label, a dict with `label` and more, or a Reply.

    >>> reply({"label": 3, "confidence": 0.5, "cost": 0.001})
    Reply(label='3', confidence=0.5, version=None, cost=1000000)
    """
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, Mapping):
        unknown = set(answer) - {"label", "confidence", "version", "cost"}
        if "label" not in answer or unknown:
            raise Rejected("the function gave a dict without 'label' or with keys of its own")
        try:
            cost = None if answer.get("cost") is None else billionths(answer["cost"])
            confidence = None if answer.get("confidence") is None else float(answer["confidence"])
        except (MasaError, TypeError, ValueError) as exc:
            raise Rejected(
                "the function gave a cost or a confidence that is not a number", said=str(exc)
            ) from exc
        return Reply(as_text(answer["label"]), confidence, as_text(answer.get("version")), cost)
    if isinstance(answer, list | tuple | set):
        raise Rejected("the function gave a list; give one label, or a dict")
    return Reply(as_text(answer))


def make(argument: str, options: Mapping[str, Any], context: Context) -> Python:
    """Import the function and make the client."""
    given = checked(Options, options, where="[api]")
    module, _, name = argument.partition(":")
    if not module or not name:
        raise ConfigError(
            f"the client python:{argument} names no function", hint="write python:module:function"
        )
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        function = import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"there is no module {exc.name!r}", hint=f"masa looks in {folder} and where Python does"
        ) from exc
    except AttributeError as exc:
        raise ConfigError(
            f"the module {module!r} has no {name!r}", hint="write python:module:function"
        ) from exc
    except (Exception, SystemExit) as exc:
        raise ConfigError(
            f"the module {module!r} cannot be imported: {type(exc).__name__}: {exc}",
            hint="try python -m " + module,
        ) from exc
    if not callable(function):
        raise ConfigError(f"{argument} is not a function", hint="write python:module:function")
    if given.price is None:
        raise ConfigError(
            "[api] does not say what a call costs",
            hint=f'set price = 0.0015 a call, or price = "{QUERIES_ONLY}"',
        )
    if not context.inputs:
        raise ConfigError(
            "the function has nothing to look at",
            hint="name the input column: --input COL, or [data] input",
        )
    return Python(argument, function, given)
