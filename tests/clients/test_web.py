"""What goes over the wire, and what a strange server or a stopped process makes of it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import masa
from asking import context, item
from live_runs import client
from masa.clients.http import make
from masa.clients.secrets import Secrets
from masa.clients.web import Web
from server import KEY, Server

URL = "http://api.example.com/v1"


def test_a_key_in_a_url_is_percent_encoded() -> None:
    secrets = Secrets(context(KEY="a+b/c&d=e %"), URL)
    url = secrets.fill_address(URL + "?key=${KEY}&text={text}")
    assert url == URL + "?key=a%2Bb%2Fc%26d%3De%20%25&text={text}"
    assert secrets.hide(url) == URL + "?key=***&text={text}"


def test_nan_is_no_label_and_no_confidence(server: Server) -> None:
    server.change = lambda _text, _label: float("nan")  # type: ignore[assignment,return-value]

    async def ask() -> masa.Reply:
        asked = client(server)
        try:
            return await asked.ask(item("good"))
        finally:
            await asked.close()

    assert asyncio.run(ask()).label is None


@pytest.mark.parametrize("name", ["ALL_PROXY", "HTTP_PROXY"])
def test_a_socks_proxy_is_refused_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "socks5://user:hidden@127.0.0.1:1080")

    async def send() -> None:
        web = Web(timeout=5, secrets=Secrets(context(), URL))
        try:
            await web.send("POST", "http://api.example.com/", headers={}, body={})
        finally:
            await web.close()

    with pytest.raises(masa.Fatal, match="socks5") as caught:
        asyncio.run(send())
    assert "hidden" not in f"{caught.value} {caught.value.hint}"


def test_a_key_that_an_answer_uses_as_a_name_is_not_shown(server: Server) -> None:
    options = {
        "url": f"{server.url}/classify",
        "headers": {"Authorization": "Bearer ${K}"},
        "body": {"text": "{text}"},
        "label": "nothing.here",
        "price": "queries-only",
    }
    asked = make("", options, context())
    server.change = lambda _text, _label: {KEY: 1}  # type: ignore[assignment,return-value]

    async def ask() -> None:
        try:
            for _ in range(5):
                try:
                    await asked.ask(item("good"))
                except masa.Failed:
                    continue
        finally:
            await asked.close()

    with pytest.raises(masa.Fatal) as caught:
        asyncio.run(ask())
    assert "result.label.***" in caught.value.hint


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://other.example/{key}/v2?sig=abc#top", "https://other.example/***/v2"),
        ("https://u:{key}@other.example/", "other.example/"),
        ("/login?next={key}", "/login"),
        ("https://[half", "no address"),
    ],
)
@pytest.mark.parametrize("spelled", ["a+b/c&d=e", "a%2bb%2fc%26d%3de", "%61%2Bb%2Fc%26d%3De"])
def test_where_a_server_redirects_to_is_shown_without_secrets(
    location: str, shown: str, spelled: str
) -> None:
    secrets = Secrets(context(KEY="a+b/c&d=e"), URL)
    secrets.fill("${KEY}")
    web = Web(timeout=5, secrets=secrets)
    with pytest.raises(masa.Fatal) as caught:
        web._raise_for_status(302, {"Location": location.format(key=spelled)}, b"")
    assert "a+b" not in caught.value.hint
    assert caught.value.hint.endswith(shown)


ASLEEP = """
import asyncio, sys
sys.path.insert(0, sys.argv[2])
from asking import context
from masa.clients.secrets import Secrets
from masa.clients.web import Web
from server import KEY

async def main():
    web = Web(timeout=2.0, secrets=Secrets(context(), sys.argv[1]))
    headers = {"Authorization": f"Bearer {KEY}"}
    found = await web.send("POST", sys.argv[1], headers=headers, body={"text": "good"})
    print(found.content["result"]["label"])
    await web.close()

asyncio.run(main())
"""


def test_an_answer_that_came_while_the_process_was_stopped_is_read(server: Server) -> None:
    server.delay = 1.0
    tests = str(Path(__file__).parents[1])
    words = [sys.executable, "-c", ASLEEP, f"{server.url}/classify", tests]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not server.requests:
        time.sleep(0.01)
    os.kill(running.pid, signal.SIGSTOP)
    time.sleep(4.0)
    os.kill(running.pid, signal.SIGCONT)
    out, err = running.communicate(timeout=30)
    assert out.strip() == "pos", err
