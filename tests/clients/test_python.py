"""Functions as clients."""

import sys
from pathlib import Path
from typing import Any

import pytest

import masa
from asking import TEXTS, ask, context
from command_line import run
from masa import clients
from masa.doubles.made_up import reviews
from server import Server


def test_functions_are_known_by_what_they_do() -> None:
    from functools import partial

    from masa.clients import identity

    def one(text: str) -> str:
        return "pos" if text else "neg"

    def made(answer: str) -> Any:
        return lambda _text: answer

    assert identity(one) == identity(one)
    assert identity(made("pos")) != identity(made("neg"))
    assert identity(partial(one, "x")) != identity(partial(one, "y"))
    assert identity(one).startswith("test_python.")
    assert "sk-1" not in identity(partial(one, "sk-1")), "it is stored"


def test_a_module_that_ends_the_program_is_not_a_verdict(project: Path) -> None:
    (project / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    words = (
        "assess",
        "reviews.csv",
        "--label",
        "label",
        "--old",
        "label",
        "--input",
        "text",
        "--budget",
        "5",
        "--price",
        "0",
    )
    done = run(*words, "--api", "python:leaves:f")
    assert done.returncode == 2
    assert "cannot be imported" in done.stderr


def test_a_function_that_hangs_does_not_keep_the_program(project: Path) -> None:
    (project / "slow.py").write_text("import time\ndef f(text):\n    time.sleep(300)\n")
    (project / "masa.toml").write_text(
        '[data]\npath = "reviews.csv"\nlabel = "label"\nold = "label"\ninput = "text"\n'
        '[api]\nclient = "python:slow:f"\nprice = 0\ntimeout = 0.2\n[limits]\ntries = 1\n[budget]\nqueries = 30\n'
    )
    done = run("assess", timeout=120)
    assert done.returncode == 3
    assert "no answer in 0.2 s" in done.stderr


def write_module(folder: Path, name: str) -> None:
    (folder / f"{name}.py").write_text(
        """
import asyncio, time
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
vader = SentimentIntensityAnalyzer()
batches = []

def plain(text):
    score = vader.polarity_scores(text)["compound"]
    return "pos" if score > 0.05 else "neg" if score < -0.05 else "neu"

async def waiting(text):
    await asyncio.sleep(0.001)
    return {"label": plain(text), "confidence": 0.5, "version": "v1", "cost": 0.002}

def many(texts):
    batches.append(len(texts))
    return [plain(text) for text in texts]

def few(texts):
    return ["pos"]

def broken(text):
    return 1 / 0

def network(text):
    raise ConnectionResetError("reset by peer")

def hangs(text):
    time.sleep(2)

def numbers(text):
    return 3.0

def leaves(text):
    raise SystemExit(0)

def odd(text):
    return {"label": "pos", "cost": -1}

async def cancels(text):
    raise asyncio.CancelledError

constant = 7
"""
    )


def test_functions_are_clients_sync_async_and_in_batches(server: Server, project: Path) -> None:
    write_module(project, "mine")
    expected = [server.label(text) for text in TEXTS]
    for name, options in (("plain", {}), ("waiting", {}), ("many", {"batch": 5})):
        client = clients.make(f"python:mine:{name}", {"price": 0.01, **options}, context())
        assert [reply.label for reply in ask(client, *TEXTS)] == expected
    assert sys.modules["mine"].batches == [5, 5, 2]
    reply = ask(clients.make("python:mine:waiting", {"price": 0.01}, context()), "x")[0]
    assert (reply.confidence, reply.version, reply.cost) == (0.5, "v1", 2_000_000)
    assert ask(clients.make("python:mine:numbers", {"price": 0.01}, context()), "x")[0].label == "3"


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("broken", masa.Rejected, "ZeroDivisionError"),
        ("network", masa.Failed, "ConnectionResetError"),
        ("hangs", masa.Failed, "no answer in 0.1 s"),
        ("leaves", masa.Rejected, "SystemExit"),
        ("odd", masa.Rejected, "not a number"),
        ("cancels", masa.Rejected, "cancelled itself"),
    ],
)
def test_what_a_function_raises_is_a_failed_call(
    project: Path, name: str, error: type[Exception], words: str
) -> None:
    write_module(project, "mine2")
    with pytest.raises(error, match=words):
        ask(
            clients.make(
                f"python:mine2:{name}",
                {"price": 0, "timeout": 0.1 if name == "hangs" else 60},
                context(),
            ),
            "x",
        )


def test_a_batch_that_gives_too_few_answers_fails(project: Path) -> None:
    write_module(project, "mine3")
    with pytest.raises(masa.Failed, match="one answer per item"):
        ask(clients.make("python:mine3:few", {"price": 0, "batch": 3}, context()), "x", "y", "z")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("python:nowhere:f", "no module 'nowhere'"),
        ("python:mine4:nothing", "has no 'nothing'"),
        ("python:mine4:constant", "not a function"),
        ("python:mine4", "names no function"),
        ("python:syntax:f", "cannot be imported"),
        ("htpp", "no client 'htpp'"),
    ],
)
def test_a_client_that_cannot_be_made_says_why(project: Path, name: str, words: str) -> None:
    write_module(project, "mine4")
    (project / "syntax.py").write_text("def f(:\n")
    with pytest.raises(masa.ConfigError, match=words) as caught:
        clients.make(name, {"price": 0}, context())
    assert caught.value.hint


def test_a_function_is_enough_in_a_library_call(server: Server) -> None:
    texts = reviews(60)
    data = masa.Dataset.of(
        [label for _, label in texts],
        inputs={"text": [text for text, _ in texts]},
        predictions={"old": ["pos"] * 60},
    )
    found = masa.assess(data, server.label, baseline="old", budget=60, store=None)
    assert found.shift is not None
    assert found.shift.accuracy.new == pytest.approx(
        sum(server.label(text) == label for text, label in texts) / 60
    )
