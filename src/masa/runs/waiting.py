"""Run asynchronous work from ordinary code."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from masa.report.progress import in_notebook, notebook_bar

P = ParamSpec("P")

R = TypeVar("R")


def waiting(work: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """Make the function of the same name, without `_async`, that waits for the result."""

    @wraps(work)
    def wait(*args: P.args, **options: P.kwargs) -> R:
        if options.get("progress") is not None or not in_notebook():
            return finished(work(*args, **options))
        with notebook_bar() as progress:
            options["progress"] = progress
            return finished(work(*args, **options))

    wait.__name__ = wait.__qualname__ = work.__name__.removesuffix("_async")
    return wait


def finished(work: Coroutine[Any, Any, R]) -> R:
    """Run something asynchronous to its end, also inside a running loop, as in a notebook."""
    running = None
    with suppress(RuntimeError):
        running = asyncio.get_running_loop()
    if running is None:
        return asyncio.run(work)
    result: list[R] = []
    errors: list[BaseException] = []

    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def run() -> None:
        try:
            result.append(loop.run_until_complete(task))
        except BaseException as exc:
            errors.append(exc)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    thread = threading.Thread(target=run, name="masa")
    thread.start()
    try:
        thread.join()
    except BaseException:
        # Somebody interrupted the waiting: the thread must not continue to spend.
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if errors:
        raise errors[0]
    return result[0]
