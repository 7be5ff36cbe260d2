"""How fast masa asks, and what it costs in CPU.

    python benchmarks/live.py

Throughput at a limit of 500 queries per second against a server that answers in 50 ms, CPU per
query, both beside a bare aiohttp loop; the same without a limit and with 256 calls at once, also of a
server that answers at once; and the start with a million items.
"""

import argparse
import asyncio
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from masa import Client, Dataset

SERVER = """
import asyncio, sys
from aiohttp import web

async def answer(request):
    await request.read()
    await asyncio.sleep(float(sys.argv[1]))
    return web.json_response({"label": "yes"})

async def main():
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def bare(url: str, *, calls: int, at_once: int, rate: float) -> None:
    """Send the same requests with nothing around them: no journal, no budget, no sampler."""
    import aiohttp

    began = time.monotonic()
    slots = asyncio.Semaphore(at_once)

    async def one(session: aiohttp.ClientSession, number: int) -> None:
        wait = began + number / rate - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        async with slots, session.post(url, json={"text": f"text {number}"}) as response:
            await response.json()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(one(session, number) for number in range(calls)))


def client_of(url: str) -> "Client":
    from masa.clients import Context
    from masa.clients.http import make

    options = {"url": url, "body": {"text": "{text}"}, "label": "label", "price": 0.001}
    return make("", options, Context(("no", "yes"), ("text",), {}))


def items(count: int) -> "Dataset":
    import masa

    return masa.Dataset.of(
        ["yes", "no"] * (count // 2),
        inputs={"text": [f"text {i}" for i in range(count)]},
        predictions={"old": ["yes"] * count},
    )


def asking(url: str, *, calls: int, rate: float) -> dict[str, float]:
    """Time masa and the bare loop in this process, one after the other."""
    import masa

    data = items(2 * calls)
    limits = masa.Limits(concurrency=64, rate=rate)
    with tempfile.TemporaryDirectory() as folder:
        masa.assess(
            data,
            client_of(url),
            baseline="old",
            budget=200,
            store=Path(folder) / "warm.db",
            limits=limits,
        )
        used, began = cpu(), time.monotonic()
        found = masa.assess(
            data,
            client_of(url),
            baseline="old",
            budget=calls,
            store=Path(folder) / "masa.db",
            limits=limits,
        )
        took, used = time.monotonic() - began, cpu() - used
    assert found.answers == calls
    used_bare, began_bare = cpu(), time.monotonic()
    asyncio.run(bare(url, calls=calls, at_once=64, rate=rate))
    took_bare, used_bare = time.monotonic() - began_bare, cpu() - used_bare
    return {
        "rate": calls / took,
        "share_of_limit": calls / took / rate,
        "bare_rate": calls / took_bare,
        "cpu_ms": 1000 * used / calls,
        "bare_cpu_ms": 1000 * used_bare / calls,
        "ratio": used / used_bare,
    }


def at_full_width(url: str, *, calls: int, at_once: int = 256) -> dict[str, float]:
    """Time a baseline and an assessment without a limit, beside the bare loop."""
    import masa

    data = items(2 * calls)
    limits = masa.Limits(concurrency=at_once)
    found: dict[str, float] = {}

    def time_of(name: str, work: Callable[[], object]) -> None:
        used, began = cpu(), time.monotonic()
        work()
        found[f"{name}_rate"] = calls / (time.monotonic() - began)
        found[f"{name}_cpu_us"] = 1e6 * (cpu() - used) / calls

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "masa.db"
        masa.assess(data, client_of(url), baseline="old", budget=200, store=store, limits=limits)
        time_of(
            "baseline",
            lambda: masa.baseline(data, client_of(url), budget=calls, store=store, limits=limits),
        )
        time_of(
            "assess",
            lambda: masa.assess(
                data, client_of(url), baseline="old", budget=calls, store=store, limits=limits
            ),
        )
    time_of("bare", lambda: asyncio.run(bare(url, calls=calls, at_once=at_once, rate=1e9)))
    for name in ("baseline", "assess"):
        found[f"{name}_ratio"] = found[f"{name}_cpu_us"] / found["bare_cpu_us"]
    return found


def starting(url: str, *, items: int) -> dict[str, float]:
    """Time from the command to the first query for a data set of a million items."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "data.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "label", "old", "text"])
            for i in range(items):
                rows.writerow(
                    [
                        f"item-{i}",
                        "yes" if i % 3 else "no",
                        "yes",
                        f"this is the text of item {i}, as long as a short review usually is",
                    ]
                )
        (folder / "masa.toml").write_text(
            f'[data]\npath = "data.csv"\nlabel = "label"\nid = "id"\ninput = "text"\nold = "old"\n'
            f'[api]\nclient = "http"\nurl = "{url}"\nbody = {{ text = "{{text}}" }}\nlabel = "label"\nprice = 0.001\n'
        )
        environment = {
            key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
        }
        words = [sys.executable, "-m", "masa", "assess", "--budget", "1", "--json", "--quiet"]
        times = []
        for _ in range(2):  # The first run may compile.
            began = time.time()
            subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=False)
            import sqlite3

            with sqlite3.connect(folder / ".masa" / "masa.db") as store:
                sent = store.execute("SELECT sent FROM call ORDER BY run DESC LIMIT 1").fetchone()[
                    0
                ]
            times.append(sent - began)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"items": items, "first_query_s": times[-1], "peak_mb": peak}


@contextmanager
def serving(delay: float) -> Iterator[str]:
    """Run a server in a process of its own that answers after so many seconds."""
    words = [sys.executable, "-c", SERVER, str(delay)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/"
        finally:
            server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--items", type=int, default=1_000_000)
    given = parser.parse_args()
    with serving(0.05) as url:
        print(json.dumps({"asking": asking(url, calls=given.calls, rate=given.rate)}))
        print(json.dumps({"at full width, 50 ms": at_full_width(url, calls=2 * given.calls)}))
    with serving(0.0) as url:
        print(json.dumps({"at full width, 0 ms": at_full_width(url, calls=2 * given.calls)}))
        print(json.dumps({"starting": starting(url, items=given.items)}))


if __name__ == "__main__":
    main()
