"""Real models behind real HTTP, on this machine.

VADER as a sentiment API, and the same behind OpenAI's chat completions.

`faults` is the share of calls that fail, in all the ways that calls fail. `bad` says which texts are
never answered, and in which way.
"""

import asyncio
import hashlib
import json
import random
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

KEY = "sk-test-5f2b8c1d9e"
VERSION = "vader-3.3.2"
KINDS = (
    "429",
    "429-after",
    "500",
    "503",
    "reset",
    "timeout",
    "truncated",
    "html",
    "image",
    "huge",
    "empty",
)

WAYS = (
    "302",
    "307",
    "400",
    "401",
    "402",
    "403",
    "429",
    "429-after",
    "429-large",
    "451",
    "500",
    "503",
    "reset",
    "timeout",
    "endless",
    "huge",
)
"""Ways in which one item may never be answered while all others are."""


@dataclass
class Request:
    """One call as the server saw it."""

    text: str
    fault: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class Server:
    """Serve until closed, in a thread of its own."""

    def __init__(
        self,
        *,
        faults: float = 0.0,
        kinds: tuple[str, ...] = KINDS,
        delay: float = 0.0,
        seed: int = 0,
    ) -> None:
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

        self.requests: list[Request] = []
        self.faults, self.kinds, self.delay = faults, kinds, delay
        self.change: Callable[[str, str], str] = lambda _text, label: label
        self.bad: Callable[[str], str] = lambda _text: ""
        self.more_tokens: Callable[[int], int] = lambda _requests: 0
        """by the number of requests so far, tokens that are counted on top"""
        self.most_at_once = self._now = 0
        self._chance = random.Random(seed)
        self._vader = SentimentIntensityAnalyzer()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(30)

    @property
    def answered(self) -> list[str]:
        """The texts that were answered, in order."""
        return [request.text for request in self.requests if not request.fault]

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(10)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def label(self, text: str) -> str:
        score = self._vader.polarity_scores(text)["compound"]
        return self.change(text, "pos" if score > 0.05 else "neg" if score < -0.05 else "neu")

    async def _serve(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=10 << 20)
        app.router.add_post("/classify", self._handler(self._classify))
        app.router.add_get("/classify", self._handler(self._classify))
        app.router.add_post("/v1/chat/completions", self._handler(self._complete))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._started.set()
        await self._closing.wait()
        await runner.cleanup()

    def _handler(
        self, answer: Callable[[str, Any], dict[str, Any]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            try:
                return await self._handle(request, answer)
            finally:
                self._now -= 1

        return handle

    async def _handle(
        self, request: web.Request, answer: Callable[[str, Any], dict[str, Any]]
    ) -> web.StreamResponse:
        body: Any = await request.json() if request.method == "POST" else dict(request.query)
        text = (
            body["text"]
            if "text" in body
            else body["messages"][-1]["content"].rsplit("Text:\n", 1)[-1]
        )
        fault = self._chance.choice(self.kinds) if self._chance.random() < self.faults else ""
        fault = self.bad(text) or fault
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            fault = "401"
        self.requests.append(Request(text, fault, body, dict(request.headers)))
        if self.delay:
            await asyncio.sleep(self.delay)
        if fault:
            return await self._fail(request, fault)
        return web.json_response(answer(text, body), headers={"X-Model-Version": VERSION})

    async def _fail(self, request: web.Request, fault: str) -> web.StreamResponse:
        if fault in ("302", "307"):
            return web.Response(status=int(fault), headers={"Location": "https://firewall.invalid"})
        if fault == "401":
            return web.json_response(
                {"error": {"message": f"wrong key {request.headers.get('Authorization')}"}},
                status=401,
            )
        if fault == "429":
            return web.Response(status=429)
        if fault == "429-large":
            return web.json_response({"error": {"message": "Request too large"}}, status=429)
        if fault == "429-after":
            return web.Response(status=429, headers={"Retry-After": "0.05"})
        if fault in ("500", "503", "400", "402", "403", "404", "413", "451"):
            return web.json_response({"error": "no"}, status=int(fault))
        if fault == "reset":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if fault == "timeout":
            await asyncio.sleep(300)
        if fault == "endless":
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            for _ in range(3000):
                await response.write(b" ")
                await asyncio.sleep(0.1)
            return response
        if fault == "truncated":
            return web.Response(text='{"result": {"label": "po', content_type="application/json")
        if fault == "html":
            return web.Response(
                text="<html><body>Bad gateway</body></html>", content_type="text/html"
            )
        if fault == "image":
            return web.Response(body=bytes(range(256)), content_type="image/png")
        if fault == "huge":
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            for _ in range(50):
                await response.write(b" " * (1 << 20))
            await asyncio.sleep(300)
            return response
        return web.json_response({})

    def _classify(self, text: str, _: Any) -> dict[str, Any]:
        scores = self._vader.polarity_scores(text)
        return {
            "result": {
                "label": self.label(text),
                "score": max(scores["pos"], scores["neu"], scores["neg"]),
            }
        }

    def _complete(self, text: str, body: Any) -> dict[str, Any]:
        said = self.label(text)
        if "response_format" in body:
            said = json.dumps({"label": said})
        choice: dict[str, Any] = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": said, "refusal": None},
            "logprobs": None,
        }
        if body.get("logprobs"):
            choice["logprobs"] = {
                "content": [{"token": said, "logprob": -0.25, "bytes": None, "top_logprobs": []}],
                "refusal": None,
            }
        tokens = len(json.dumps(body)) // 4 + self.more_tokens(len(self.requests))
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"] + "-0613",
            "system_fingerprint": "fp_1",
            "choices": [choice],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 3, "total_tokens": tokens + 3},
        }


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """Look into a store, or change it behind masa's back."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def journal(path: Path, statement: str) -> list[tuple[Any, ...]]:
    """Read a store and leave its log where it is: whoever closes a store brings its log into it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        for ending in ("", "-wal"):
            if path.with_name(path.name + ending).exists():
                shutil.copy(path.with_name(path.name + ending), folder)
        with database(copy) as connection:
            return connection.execute(statement).fetchall()


def strange(text: str, label: str) -> str:
    """Answer a few texts otherwise, and a few with labels that nobody has seen.

    An update of the API.
    """
    number = hashlib.md5(text.encode()).digest()[0]
    return f"new-{number}" if number < 6 else "neg" if number < 40 else label
