"""masa as a program of its own: run it, start it, configure it."""

import contextlib
import io
import subprocess
import sys
import time
from pathlib import Path

from masa.cli.main import main
from server import Server

MASA = [sys.executable, "-m", "masa"]

VERDICTS = 0, 1, 3
"""What a run ends with that has a verdict. Every run draws other items, so any can come."""


def run(
    *words: object,
    timeout: float = 120,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MASA, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        env=env,
        cwd=cwd,
    )


def configure(
    folder: Path,
    server: Server,
    *,
    more: str = "",
    budget: str = "queries = 300",
    timeout: float = 20,
) -> None:
    (folder / "masa.toml").write_text(
        f"""
secrets = ["SENTIMENT_KEY", "OTHER_KEY"]

[data]
path = "reviews.csv"
label = "label"
id = "id"
input = "text"

[api]
client = "http"
url = "{server.url}/classify"
headers = {{ Authorization = "Bearer ${{SENTIMENT_KEY}}" }}
body = {{ text = "{{text}}" }}
label = "result.label"
confidence = "result.score"
version = "header:X-Model-Version"
price = 0.001
timeout = {timeout}
{more}
[budget]
{budget}

[limits]
concurrency = 4
"""
    )


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MASA, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def wait_for(server: Server, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(server.requests) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


SMALL = "--runs", "20", "--budgets", "10,20"


def replay(data: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return run("replay", data, "--label", "label", "--new", "new", *SMALL, *more)


def recorded(folder: Path) -> Path:
    """200 items with old and new answers."""
    rows = [
        f"{i},{'yes' if i % 2 else 'no'},{'yes' if i % 3 else 'no'},{'yes' if i % 5 else 'no'},{i % 17}"
        for i in range(200)
    ]
    (folder / "d.csv").write_text("id,label,old,new,hard\n" + "\n".join(rows) + "\n")
    return folder / "d.csv"


def inside(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The same command in this process: what is compiled is loaded once."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return subprocess.CompletedProcess(list(map(str, words)), code, out.getvalue(), err.getvalue())
