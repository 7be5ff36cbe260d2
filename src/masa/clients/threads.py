"""Call something that waits, such as a vendor's package, without holding up the other calls."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from masa.clients.deadline import deadline
from masa.errors import Failed, Rejected

T = TypeVar("T")


async def in_a_thread(function: Callable[..., T], *given: Any, timeout: float | None = None) -> T:
    """Call a function in a thread of its own, which does not keep the program from ending.

    After `timeout` seconds it is not waited for any more: packages have limits for the parts of an
    answer, and none for the whole.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(answer: Any, exc: BaseException | None) -> None:
        if done.done():
            return
        if exc is not None:
            done.set_exception(exc)
        else:
            done.set_result(answer)

    def work() -> None:
        answer: Any = None
        raised: BaseException | None = None
        try:
            answer = function(*given)
        except StopIteration:  # A future cannot hold it.
            raised = Rejected("the function raised StopIteration")
        except Exception as exc:
            raised = exc
        except BaseException as exc:
            raised = Rejected(f"the function raised {type(exc).__name__}")
        with suppress(RuntimeError):  # The loop has ended: nobody waits any more.
            loop.call_soon_threadsafe(settle, answer, raised)

    threading.Thread(target=work, name="masa-api", daemon=True).start()
    if timeout is None:
        return await done
    try:
        async with deadline(timeout):
            return await done
    except TimeoutError as exc:
        raise Failed(f"no answer in {timeout:g} s") from exc
