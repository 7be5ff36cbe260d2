"""Where keys and inputs go, and who else may not have them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from test_sounds import wav

import masa
from doubled import variables
from masa import clients
from masa.clients import Context
from masa.doubles.server import KEY, Double
from masa.doubles.speech import _token

SOUNDS = ("google-speech", "ibm-speech")


class Elsewhere(Double):
    """A server that sends callers to another address, echoes their key, or answers for ever."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.target, self.echo, self.slow = "", False, False
        super().__init__()

    def routes(self) -> Any:
        return [("/{path:.*}", self._any)]

    async def _any(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/identity/token":
            return web.json_response(
                {"access_token": _token(), "expires_in": 3600, "expiration": 1e10}
            )
        self.seen.append(request.path)
        if self.slow:
            answer = web.StreamResponse()
            await answer.prepare(request)
            for _ in range(40):
                await answer.write(b" ")
                await asyncio.sleep(0.2)
            return answer
        if self.echo:
            said = f"bad header x-goog-api-key: {KEY}"
            return web.json_response({"error": {"code": 400, "message": said}}, status=400)
        raise web.HTTPTemporaryRedirect(self.target)


def ask(service: str, url: str, folder: Path, **more: Any) -> Exception:
    """Ask once, and give the error."""
    (folder / "a.wav").write_bytes(wav(32_000))
    options: dict[str, Any] = {"endpoint": url, "key": "${K}", **more}
    if service == "google-speech":
        options["project"] = "p"
    if service == "ibm-speech":
        options = dict(more)
    labels = ("go", "stop") if service in SOUNDS else ("positive", "negative")
    with variables(
        {
            "SPEECH_TO_TEXT_APIKEY": KEY,
            "SPEECH_TO_TEXT_URL": url,
            "SPEECH_TO_TEXT_AUTH_URL": url,
            "SPEECH_TO_TEXT_ENABLE_RETRIES": "true",
            "SPEECH_TO_TEXT_MAX_RETRIES": "3",
        }
    ):
        client = clients.make(
            service, options, Context(labels, ("input",), {"K": KEY}, folder=folder)
        )

    async def once() -> None:
        try:
            text = "a.wav" if service in SOUNDS else "It was good."
            await client.ask(masa.Item(0, {"input": text}))
        finally:
            await client.close()

    with pytest.raises(masa.errors.CallError) as caught:
        asyncio.run(once())
    return caught.value


@pytest.mark.parametrize("service", ["google-language", *SOUNDS])
def test_packages_follow_no_redirect_and_try_once(service: str, tmp_path: Path) -> None:
    with Elsewhere() as other, Elsewhere() as here:
        assert isinstance(here, Elsewhere)
        assert isinstance(other, Elsewhere)
        for target in (other.url.replace("127.0.0.1", "localhost"), here.url):
            here.target = f"{target}/again"
            error = ask(service, here.url, tmp_path)
            assert isinstance(error, masa.Fatal)
            assert "redirects" in str(error)
        assert len(here.seen) == 2
        assert not other.seen


def test_keys_that_a_server_echoes_are_hidden(tmp_path: Path) -> None:
    with Elsewhere() as here:
        assert isinstance(here, Elsewhere)
        here.echo = True
        error = ask("google-language", here.url, tmp_path)
        assert isinstance(error, masa.Rejected)
        assert "x-goog-api-key: ***" in error.said


@pytest.mark.parametrize("service", ["google-language", "ibm-speech"])
def test_an_answer_that_never_ends_is_given_up_in_time(service: str, tmp_path: Path) -> None:
    with Elsewhere() as here:
        assert isinstance(here, Elsewhere)
        here.slow = True
        error = ask(service, here.url, tmp_path, timeout=1)
        assert isinstance(error, masa.Failed)
        assert error.billed


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://evil.example/a.googleapis.com",
        "https://evil.example?.googleapis.com",
        "https://evil.example#.googleapis.com",
        "https://googleapis.com.evil.example",
        "http://language.googleapis.com",
    ],
)
def test_googles_credentials_go_to_google_alone(endpoint: str, tmp_path: Path) -> None:
    from google.auth.credentials import AnonymousCredentials

    account = {"type": "authorized_user", "client_id": "c", "client_secret": "s"}
    (tmp_path / "adc.json").write_text(json.dumps({**account, "refresh_token": "r"}))
    with variables({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "adc.json")}):
        context = Context(("positive", "negative"), ("input",), {}, folder=tmp_path)
        client = clients.make("google-language", {"endpoint": endpoint}, context)
        transport = client._sdk._client.transport  # type: ignore[attr-defined]
        assert isinstance(transport._credentials, AnonymousCredentials)
        own = clients.make("google-language", {}, context)
        transport = own._sdk._client.transport  # type: ignore[attr-defined]
        assert not isinstance(transport._credentials, AnonymousCredentials)
        options = {"project": "p", "location": "evil.example/x"}
        with pytest.raises(masa.ConfigError, match="location"):
            clients.make("google-speech", options, context)


def test_a_file_of_ibms_package_does_not_send_sounds_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ("AUTH_TYPE=noAuth", "URL=http://localhost:1", "APIKEY=x")
    text = "\n".join(f"SPEECH_TO_TEXT_{line}" for line in lines)
    (tmp_path / "ibm-credentials.env").write_text(text)
    monkeypatch.chdir(tmp_path)
    with (
        variables({"SPEECH_TO_TEXT_APIKEY": KEY, "SPEECH_TO_TEXT_URL": "https://ibm.example"}),
        pytest.raises(masa.ConfigError, match="another address in ibm-credentials"),
    ):
        clients.make("ibm-speech", {}, Context(("go", "stop"), ("input",), {}, folder=tmp_path))


@pytest.mark.parametrize(
    ("given", "region", "wrong"),
    [
        ({}, None, "no region is set"),
        ({}, "us east", "'us east' is no region"),
        ({"AWS_PROFILE": "nobody"}, "us-east-1", "nobody"),
        ({"AWS_ACCESS_KEY_ID": "AKIAX"}, "us-east-1", "missing: AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_what_amazons_package_lacks_is_an_error_of_the_settings(
    given: dict[str, str], region: str | None, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    options = {} if region is None else {"region": region}
    with variables(given), pytest.raises(masa.ConfigError, match=wrong) as caught:
        clients.make("amazon-comprehend", options, Context(("pos", "neg"), ("input",), {}))
    assert caught.value.hint
