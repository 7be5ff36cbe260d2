"""Each client against a real model: VADER over HTTP and behind a chat endpoint."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import masa
from asking import TEXTS, ask, context, item
from command_line import run
from masa import clients
from masa.clients import Client
from masa.clients.http import _largest
from masa.clients.web import MOST
from server import KEY, VERSION, Server


def test_the_clients_are_listed() -> None:
    assert set(json.loads(run("clients", "--json").stdout)["clients"]) >= {
        "replay",
        "http",
        "openai",
        "python",
    }


def http(server: Server, **options: Any) -> Client:
    given = {
        "url": f"{server.url}/classify",
        "headers": {"Authorization": "Bearer ${K}"},
        "body": {"text": "{text}"},
        "label": "result.label",
        "price": 0.001,
    }
    return clients.make(
        "http",
        {key: value for key, value in (given | options).items() if value is not None},
        context(EMPTY=""),
    )


def chat(server: Server, **options: Any) -> Client:
    given = {
        "model": "tiny",
        "base_url": f"{server.url}/v1",
        "input_price": 1.0,
        "output_price": 2.0,
    }
    return clients.make("openai", given | options, context())


def test_http_brings_label_confidence_version(server: Server) -> None:
    client = http(
        server, confidence="result.score", version="header:X-Model-Version", labels={"pos": "good"}
    )
    for text, reply in zip(TEXTS, ask(client, *TEXTS), strict=True):
        assert reply.label == {"pos": "good"}.get(server.label(text), server.label(text))
        assert reply.version == VERSION
        assert reply.confidence is not None
        assert 0 < reply.confidence <= 1
    assert client.price(item("x")) == 1_000_000


def test_http_sends_texts_as_they_are(server: Server) -> None:
    odd = [
        'He said "{text}" \\ {input} ${K}',
        "naïve 漢字 🙂",
        "a\nb\tc",
        "x" * 100_000,
        "",
        "%7Btext%7D&label=1#",
    ]
    ask(http(server), *odd)
    assert sorted(request.body["text"] for request in server.requests) == sorted(odd)
    server.requests.clear()
    ask(
        http(server, url=f"{server.url}/classify?text={{text}}", method="GET", body=None),
        *odd[:3],
        odd[5],
    )
    assert sorted(request.body["text"] for request in server.requests) == sorted([*odd[:3], odd[5]])


def test_http_takes_the_largest_of_an_object_of_scores(server: Server) -> None:
    assert _largest({"b": 0.5, "a": 0.5, "c": 0.1, "d": "high", "e": True}) == ("a", 0.5)
    assert _largest({}) == (None, None)
    assert ask(http(server, label="result.nothing", missing="none"), "x")[0].label == "none"


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("429", masa.Refused, "HTTP 429"),
        ("500", masa.Failed, "HTTP 500"),
        ("503", masa.Failed, "HTTP 503"),
        ("400", masa.Rejected, "HTTP 400"),
        ("404", masa.Fatal, "HTTP 404"),
        ("reset", masa.Failed, "connection lost"),
        ("timeout", masa.Failed, "no answer in 0.2 s"),
        ("truncated", masa.Failed, "not JSON"),
        ("html", masa.Failed, "not JSON"),
        ("image", masa.Failed, "not JSON"),
        ("huge", masa.Failed, f"more than {MOST >> 20} MB"),
        ("empty", masa.Failed, "without"),
    ],
)
def test_every_way_a_call_fails_has_its_error(
    fault: str, error: type[Exception], words: str
) -> None:
    patience = 0.2 if fault == "timeout" else 60
    with Server(faults=1.0, kinds=(fault,)) as server:
        for client in (http(server, timeout=patience), chat(server, timeout=patience)):
            with pytest.raises(error, match=words):
                ask(client, "x")


def test_a_connection_that_is_refused_is_not_billed() -> None:
    with Server() as server:
        gone = http(server)
    with pytest.raises(masa.Failed, match="no connection") as caught:
        ask(gone, "x")
    assert not caught.value.billed


def test_no_credit_is_not_a_rate_limit() -> None:
    from masa.clients.secrets import Secrets
    from masa.clients.web import Web

    web = Web(timeout=1, secrets=Secrets(context(), "http://api.example.com/"))
    with pytest.raises(masa.Fatal, match="no credit"):
        web._raise_for_status(429, {}, b'{"error": {"type": "insufficient_quota"}}')
    with pytest.raises(masa.Refused) as caught:
        web._raise_for_status(429, {"Retry-After": "7"}, b"slow down")
    assert caught.value.retry_after == 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "ftp://x"}, "not an address"),
        ({"url": "https://me:pass@host/x"}, "a user or a password"),
        ({"url": "https://host/x?api_key=abc"}, "is written out"),
        ({"headers": {"Authorization": "Bearer abc"}}, "is written out"),
        ({"headers": {"X-Api-Key": "abc"}}, "is written out"),
        ({"body": {"api_key": "abc", "text": "{text}"}}, "is written out"),
        ({"body": {"text": "{text}", "auth": {"api_key": ["abc"]}}}, "is written out"),
        ({"url": "http://[::1:80/x"}, "not an address"),
        ({"headers": {"A B": "x"}}, "cannot be sent"),
        ({"headers": {"A": "x\ny"}}, "cannot be sent"),
        ({"label": "a[-1]"}, "not a path into an answer"),
        ({"body": {"text": "{text}", "when": datetime(2026, 1, 1)}}, "cannot be sent as JSON"),
        ({"body": {"text": "{txet}"}}, "{txet}"),
        ({"body": {"text": "hello"}}, "the same request for every item"),
        ({"price": None}, "does not say what a call costs"),
        ({"price": -1}, "not an amount"),
        (
            {"headers": {"Authorization": "Bearer ${NOWHERE}"}},
            "NOWHERE is not declared as a secret of 127",
        ),
        ({"headers": {"Authorization": "Bearer ${EMPTY}"}}, "EMPTY is not set"),
        ({"timeout": 0}, "timeout"),
        ({"lable": "x"}, "unknown key 'lable'"),
    ],
)
def test_bad_settings_are_named(server: Server, options: dict[str, Any], words: str) -> None:
    with pytest.raises(masa.MasaError, match=words.replace("{", r"\{")) as caught:
        http(server, **options)
    assert caught.value.hint
    assert KEY not in str(caught.value)


def test_the_chat_client_reads_labels_and_pays_for_tokens(server: Server) -> None:
    for options in ({}, {"structured": True}, {"logprobs": True}):
        client = chat(server, **options)
        for text, reply in zip(TEXTS, ask(client, *TEXTS), strict=True):
            assert reply.label == server.label(text)
            assert reply.version == "tiny-0613 fp_1"
            assert reply.cost is not None
            assert 0 < reply.cost < client.price(item(text))
            assert (reply.confidence is None) == ("logprobs" not in options)


def test_the_chat_client_sends_what_the_openai_package_sends(server: Server) -> None:
    import openai

    ask(chat(server, structured=True, seed=3, system="Be brief."), TEXTS[0])
    mine = server.requests.pop()
    with openai.OpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0) as package:
        answer = package.chat.completions.create(**mine.body)
    theirs = server.requests.pop()
    assert theirs.body == mine.body
    assert theirs.headers["Authorization"] == mine.headers["Authorization"]
    assert theirs.headers["Content-Type"] == mine.headers["Content-Type"]
    assert json.loads(answer.choices[0].message.content or "")["label"] == server.label(TEXTS[0])
    assert answer.usage is not None


def test_the_openai_package_can_be_the_client(server: Server, project: Path) -> None:
    (project / "llm.py").write_text(
        f"""
import openai
client = openai.AsyncOpenAI(api_key={KEY!r}, base_url="{server.url}/v1", max_retries=0)
async def classify(text):
    messages = [{{"role": "user", "content": text}}]
    answer = await client.chat.completions.create(model="tiny", messages=messages)
    return {{"label": answer.choices[0].message.content, "version": answer.model}}
"""
    )
    client = clients.make("python:llm:classify", {"price": "queries-only"}, context())
    replies = ask(client, *TEXTS[:3])
    assert [reply.label for reply in replies] == [server.label(text) for text in TEXTS[:3]]
    assert replies[0].version == "tiny-0613"


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("pos", "pos"),
        (' "Positive." ', "pos"),
        ("**NEG**", "neg"),
        ("The label is: neu", "neu"),
        ("neither pos nor neg", None),
        ("position", None),
        ("", None),
        ("not neg", "neu"),
        ("x" * 500, None),
    ],
)
def test_labels_are_heard_in_what_a_model_says(said: str, heard: str | None) -> None:
    client = clients.make(
        "openai",
        {"model": "m", "price": 0, "labels": {"positive": "pos", "not neg": "neu"}},
        context(),
    )
    from masa.clients.language_models.model import Said

    assert client._read(Said(said)).label == heard  # type: ignore[attr-defined]


def test_refusals_and_cut_answers_are_not_labels() -> None:
    from masa.clients.language_models.openai import OpenAI

    class Fake(Server):
        def _complete(self, text: str, body: Any) -> dict[str, Any]:
            answer = super()._complete(text, body)
            choice = answer["choices"][0]
            if "refuse" in text:
                choice["message"] |= {"content": None, "refusal": "I cannot"}
            if "long" in text:
                choice["finish_reason"] = "length"
            return answer

    with Fake() as server:
        client = chat(server)
        assert isinstance(client, OpenAI)
        assert [reply.label for reply in ask(client, "refuse", "long good", "good")] == [
            None,
            None,
            "pos",
        ]


class Echo:
    """A client that a third party might write."""

    columns = ("text",)
    priced = True

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def price(self, item: masa.Item) -> int:
        return len(item.text)

    def describe(self) -> Mapping[str, Any]:
        return {"api": f"echo:{self._answer}"}

    async def ask(self, item: masa.Item) -> masa.Reply:
        return masa.Reply(self._answer if item.text else None)

    async def close(self) -> None:
        pass


def test_third_parties_add_clients_by_entry_point(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = project / "echo_client-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-client\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[masa.clients]\necho = echo_client:make\n")
    (project / "echo_client.py").write_text(
        "from test_clients import Echo\n\n"
        "def make(argument, options, context):\n"
        "    return Echo(argument or context.labels[0])\n"
    )
    monkeypatch.syspath_prepend(str(project))
    assert clients.offered()["echo"] == "echo_client:make"
    assert ask(clients.make("echo:pos", {}, context()), "x")[0].label == "pos"
    assert isinstance(clients.make("echo", {}, context()), Client)


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "http://me:pass@127.0.0.1/v1"},
        {"extra": {"api_key": "abc"}},
        {"key": "sk-abc"},
        {"headers": {"X-Token": "abc"}},
        {"prompt": "Say yes"},
        {"input_price": None, "output_price": None},
    ],
)
def test_bad_settings_of_a_chat_client_are_named(server: Server, options: dict[str, Any]) -> None:
    with pytest.raises(masa.ConfigError) as caught:
        chat(server, **options)
    assert "abc" not in caught.value.message
    assert caught.value.hint


def test_more_tokens_are_reserved_where_more_may_be_used(server: Server) -> None:
    usual = chat(server).price(item("x"))
    assert chat(server, extra={"max_completion_tokens": 4000, "n": 3}).price(item("x")) > 10 * usual


def test_a_key_that_comes_back_as_a_label_is_hidden(server: Server) -> None:
    server.change = lambda _text, _label: f"Bearer {KEY}"
    assert ask(http(server), "x")[0].label == "Bearer ***"


def test_the_client_in_the_docs_can_be_installed_and_assessed(
    server: Server, project: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
    code = re.findall(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL)
    points = re.findall(
        r"```toml\n# pyproject.toml\n\[project.entry-points.\"masa.clients\"\]\n(.*?)```",
        page,
        re.DOTALL,
    )
    assert len(code) == len(points) == 1
    (project / code[0][0]).write_text(code[0][1])
    package = project / "acme_masa-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-masa\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[masa.clients]\n" + points[0].replace('"', ""))
    Path("masa.toml").write_text(
        'secrets = ["ACME_KEY"]\n'
        '[data]\npath = "reviews.csv"\nlabel = "label"\nid = "id"\ninput = "text"\nold = "label"\n'
        f'[api]\nclient = "acme"\nurl = "{server.url}/classify"\n[budget]\nqueries = 50\n'
    )
    words = [sys.executable, "-m", "masa", "assess", "--json", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(project), "ACME_KEY": KEY}
    done = subprocess.run(
        words, capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    found = json.loads(done.stdout)
    assert (found["answers"], found["api_version"]["new"], len(server.requests)) == (
        50,
        VERSION,
        50,
    )
    assert found["cost"] > 0.1
