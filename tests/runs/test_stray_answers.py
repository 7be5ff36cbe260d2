"""An API that sends answers nobody asked for is not taken to have changed."""

import json
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import masa
from live_runs import calls
from masa.clients import Context
from masa.clients.http import Http, make
from masa.records import Column
from masa.settings import Limits

ITEMS = 300
LABELS = ("no", "yes")


def label(number: int) -> str:
    return LABELS[number * 7 % 5 % 2]


class Handler(socketserver.StreamRequestHandler):
    """HTTP/1.1 by hand, on a connection that stays open."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        server = self.server
        assert isinstance(server, StrayServer)
        while line := self.rfile.readline():
            length = 0
            while (header := self.rfile.readline()) not in (b"\r\n", b""):
                name, _, value = header.decode().partition(":")
                if name.lower() == "content-length":
                    length = int(value)
            if not line.startswith(b"POST"):
                return
            number = int(json.loads(self.rfile.read(length))["text"])
            with server.lock:
                server.requests += 1
                count = server.requests
            body = json.dumps({"label": label(number), "number": number}).encode()
            answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            answer += b"Content-Length: %d\r\n\r\n" % len(body) + body
            self.wfile.write(answer)
            if server.way == "408" and count % 3 == 0:
                time.sleep(0.002)
                self.wfile.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
            elif server.way and count % 5 == 0:
                time.sleep({"at once": 0.0, "soon": 0.001, "later": 0.01}.get(server.way, 0.0))
                self.wfile.write(answer)


class StrayServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, way: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.way, self.requests, self.lock = way, 0, threading.Lock()

    def handle_error(self, *_: object) -> None:
        """Say nothing: connections are closed on it on purpose."""


@contextmanager
def serving(way: str) -> Iterator[StrayServer]:
    with StrayServer(way) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def api(server: StrayServer) -> Http:
    options = {
        "url": f"http://127.0.0.1:{server.server_address[1]}/",
        "body": {"text": "{text}"},
        "label": "label",
        "version": "number",
        "price": "queries-only",
        "timeout": 10,
    }
    return make("", options, Context(LABELS, ("text",), {}))


@pytest.mark.parametrize("way", ["", "at once", "soon", "later", "408"])
def test_an_answer_that_is_sent_twice_is_not_taken_for_the_next_one(
    way: str, tmp_path: Path
) -> None:
    """The old answers are what the server says, so nothing has changed."""
    codes = np.array([LABELS.index(label(number)) for number in range(ITEMS)], np.int32)
    data = masa.Dataset.of(
        [LABELS[code] for code in codes], inputs={"text": [str(n) for n in range(ITEMS)]}
    )
    with serving(way) as server:
        found = masa.assess(
            data,
            api(server),
            baseline=Column("old", LABELS, codes),
            budget=ITEMS,
            store=tmp_path / "s.db",
            limits=Limits(concurrency=4, first_wait=0.01),
        )
        assert (found.differing, found.verdict, found.errors) == (0, "unchanged", 0)
        assert len(calls(tmp_path / "s.db")) == server.requests == found.queries
