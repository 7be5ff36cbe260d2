"""What all doubles share: a server in a thread, faults, and a count of what it would bill."""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from aiohttp import web

KEY = "double-key-5f2b8c1d9e"
SECRET = "double-secret-77aa01"  # noqa: S105 - it opens nothing but the doubles

ANYWHERE = ("reset", "truncated", "html")
"""Ways in which any service may fail: on the way, or at a gateway in front of it."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the server saw it."""

    inputs: tuple[Any, ...]
    """the texts, images or sounds in it"""
    fault: str = ""
    billed: Fraction = Fraction(0)
    """money"""


@web.middleware
async def _until_gone(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer nobody where the client was killed while it sent: that is no fault of the server."""
    try:
        return await handler(request)
    except ConnectionResetError:
        return web.Response()


class Double:
    """A server that speaks like a service, until it is closed."""

    service = ""
    own_faults: Sequence[str] = ("throttled", "broken", "overloaded")
    """ways of failing that `fail` can write as the service does"""

    def __init__(self, *, updated: bool = False, faults: float = 0.0, seed: int = 0) -> None:
        """Answer by the newer model if `updated`; `faults` is the share of calls that fail."""
        self.updated = updated
        self.faults = faults
        self.kinds: tuple[str, ...] = (*self.own_faults, *ANYWHERE)
        self.calls: list[Call] = []
        self.delay = 0.0
        self._chance = random.Random(seed)  # noqa: S311
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        self._started.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(10)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the paths and what answers them."""
        raise NotImplementedError

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of the service's own failures."""
        raise NotImplementedError

    @property
    def asked(self) -> int:
        """How many inputs arrived in all calls."""
        return sum(len(call.inputs) for call in self.calls)

    @property
    def money(self) -> Fraction:
        """What the service would bill by its rule."""
        return sum((call.billed for call in self.calls), Fraction(0))

    async def answered(
        self,
        request: web.Request,
        inputs: Sequence[Any],
        answer: Callable[[], web.StreamResponse],
        billed: Fraction = Fraction(0),
    ) -> web.StreamResponse:
        """Answer a call or, in the share of calls that fail, fail in one of the ways."""
        fault = ""
        if self._chance.random() < self.faults:
            fault = self._chance.choice(self.kinds)
        self.calls.append(Call(tuple(inputs), fault, Fraction(0) if fault else billed))
        if self.delay:
            await asyncio.sleep(self.delay)
        if not fault:
            return answer()
        if fault == "reset":
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if fault == "truncated":
            return web.Response(text='{"half": "an ans', content_type="application/json")
        if fault == "html":
            page = "<html><body>Bad gateway</body></html>"
            return web.Response(text=page, content_type="text/html", status=502)
        return self.fail(fault)

    def refused(self, inputs: Sequence[Any], fault: str) -> None:
        """Note a call that was refused for what it is: a wrong key, invalid input."""
        self.calls.append(Call(tuple(inputs), fault))

    async def _serve(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 << 20, middlewares=[_until_gone])
        for path, handler in self.routes():
            app.router.add_route("*", path, handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._started.set()
        await self._closing.wait()
        await runner.cleanup()
