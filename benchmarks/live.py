"""How fast masa asks, and what it costs in CPU.

    python benchmarks/live.py

Throughput at a limit of 500 queries per second against a server that answers in 50 ms, CPU per
query, both beside a bare aiohttp loop; and the start with a million items.
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
from pathlib import Path

SERVER = """
import asyncio, sys
from aiohttp import web

async def answer(request):
    await request.read()
    await asyncio.sleep(0.05)
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


def asking(url: str, *, calls: int, rate: float) -> dict[str, float]:
    """Time masa and the bare loop in this process, one after the other."""
    import masa
    from masa.clients import Context
    from masa.clients.http import make

    def client() -> masa.Client:
        options = {"url": url, "body": {"text": "{text}"}, "label": "label", "price": 0.001}
        return make("", options, Context(("no", "yes"), ("text",), {}))

    data = masa.Dataset.of(
        ["yes", "no"] * calls,
        inputs={"text": [f"text {i}" for i in range(2 * calls)]},
        predictions={"old": ["yes"] * 2 * calls},
    )
    limits = masa.Limits(concurrency=64, rate=rate)
    with tempfile.TemporaryDirectory() as folder:
        masa.assess(
            data,
            client(),
            baseline="old",
            budget=200,
            store=Path(folder) / "warm.db",
            limits=limits,
        )
        used, began = cpu(), time.monotonic()
        found = masa.assess(
            data,
            client(),
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--items", type=int, default=1_000_000)
    given = parser.parse_args()
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
        print(json.dumps({"asking": asking(url, calls=given.calls, rate=given.rate)}))
        print(json.dumps({"starting": starting(url, items=given.items)}))
    finally:
        server.kill()


if __name__ == "__main__":
    main()
