"""Images and sounds by path and by URL: what may be sent, and what is refused before it costs."""

import os
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from test_services import ask

import masa
from asking import context
from doubled import QUICK, case
from live_runs import data as reviews_data
from masa import clients
from masa.clients import Context
from masa.clients.files import Files
from masa.doubles.server import Double


class Uploads(Double):
    """An API that takes files in every way, and a place in the web where files are."""

    service = "uploads"

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        super().__init__()

    def routes(self) -> Any:
        return [("/up", self._up), ("/file.png", self._file), ("/gone.png", self._gone)]

    async def _up(self, request: web.Request) -> web.StreamResponse:
        seen: dict[str, Any] = {"kind": request.content_type}
        if request.content_type == "application/json":
            seen["body"] = await request.json()
        elif request.content_type.startswith(("multipart/", "application/x-www-form")):
            form = await request.post()
            seen["names"] = [
                value.filename for value in form.values() if isinstance(value, web.FileField)
            ]
            seen["form"] = {
                name: value.file.read() if isinstance(value, web.FileField) else value
                for name, value in form.items()
            }
        else:
            seen["raw"] = await request.read()
        self.seen.append(seen)
        return web.json_response({"label": "pos"})

    async def _file(self, _: web.Request) -> web.StreamResponse:
        return web.Response(body=b"\x89PNG\r\n\x1a\nfrom the web", content_type="image/png")

    async def _gone(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=404)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "data"
    inside.mkdir()
    (inside / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nabc")
    (inside / "b.wav").write_bytes(b"RIFF....WAVE")
    (tmp_path / "secret.txt").write_text("secret")
    return inside


def http(double: Uploads, folder: Path, **options: Any) -> clients.Client:
    given = {"url": f"{double.url}/up", "label": "label", "price": 0, **options}
    return clients.make("http", given, Context(("neg", "pos"), ("input",), {}, folder=folder))


def test_http_sends_files_in_json_forms_and_raw(folder: Path) -> None:
    image = (folder / "a.png").read_bytes()
    with Uploads() as double:
        assert isinstance(double, Uploads)
        ask(http(double, folder, body={"image": {"content": "{input:base64}"}, "x": 1}), "a.png")
        ask(http(double, folder, multipart={"file": "{input:file}", "kind": "face"}), "a.png")
        ask(http(double, folder, raw="{input:file}"), "a.png")
        ask(http(double, folder, raw="{input:file}", content_type="audio/x"), "b.wav")
        ask(http(double, folder, form={"text": "{input}", "lang": "en"}), "a & b=ü")
        seen = double.seen
    assert seen[0]["body"] == {"image": {"content": "iVBORw0KGgphYmM="}, "x": 1}
    assert seen[1]["kind"] == "multipart/form-data"
    assert seen[1]["form"] == {"file": image, "kind": "face"}
    assert seen[1]["names"] == ["file.png"]
    assert seen[2] == {"kind": "image/png", "raw": image}
    assert seen[3]["kind"] == "audio/x"
    assert seen[4]["form"] == {"text": "a & b=ü", "lang": "en"}


def test_declared_secrets_are_filled_in_wherever_they_are_written(folder: Path) -> None:
    ways: list[dict[str, Any]] = [
        {"raw": "<q key='${K}'>{input}</q>"},
        {"form": {"key": "${K}", "text": "{input}"}},
        {"multipart": {"key": "${K}", "text": "{input}"}},
        {"body": {"key": "${K}", "text": "{input}"}},
    ]
    with Uploads() as double:
        assert isinstance(double, Uploads)
        for way in ways:
            given = {"url": f"{double.url}/up", "label": "label", "price": 0, **way}
            context = Context(("neg", "pos"), ("input",), {"K": "s3cret-key"}, folder=folder)
            ask(clients.make("http", given, context), "a")
        seen = double.seen
    assert seen[0]["raw"] == b"<q key='s3cret-key'>a</q>"
    assert [seen[1]["form"]["key"], seen[2]["form"]["key"]] == ["s3cret-key"] * 2
    assert seen[3]["body"]["key"] == "s3cret-key"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"body": {"a": "{input}"}, "form": {"a": "{input}"}}, "body and form"),
        ({"body": {"a": "{input:file}"}}, "in body"),
        ({"multipart": {"a": "{input:base64}"}}, "in multipart"),
        ({"multipart": {"a": "x {input:file}"}}, "text around a file"),
        ({"form": {"a": "{input:file}"}}, "cannot be|can be"),
        ({"raw": "{photo:file}"}, "not an input column"),
        ({"body": {"a": "{input}"}, "content_type": "x/y"}, "content_type without raw"),
        ({"form": {"api_key": "abc"}}, "looks like a secret"),
        (
            {"multipart": {"a": "{input}"}, "headers": {"content-type": "multipart/form-data"}},
            "Content-Type for multipart",
        ),
    ],
)
def test_requests_that_cannot_be_meant_are_refused(options: dict[str, Any], words: str) -> None:
    given = {"url": "https://x.example/up", "label": "label", "price": 0, **options}
    with pytest.raises(masa.ConfigError, match=words) as caught:
        clients.make("http", given, Context(("neg", "pos"), ("input",), {}))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.png", "no file that can be read"),
        ("../secret.txt", "outside the folder"),
        ("link.png", "outside the folder"),
        ("folder", "not a file"),
        ("pipe", "not a file"),
        ("empty.png", "has 0 bytes"),
        ("huge.png", "2,097,153 bytes"),
        ("", "not a file"),
        ("nul\0.png", "no file that can be read"),
        ("x" * 5000, "no file that can be read"),
        ("https://example.com/a.png", "URL, which masa would fetch"),
    ],
)
def test_a_file_that_cannot_be_sent_is_named_before_anything_is_spent(
    folder: Path, name: str, words: str
) -> None:
    (folder / "link.png").symlink_to(folder.parent / "secret.txt")
    (folder / "folder").mkdir()
    (folder / "empty.png").touch()
    os.mkfifo(folder / "pipe")
    with (folder / "huge.png").open("wb") as file:
        file.truncate((2 << 20) + 1)
    given = masa.Dataset.of(["pos", "neg"], inputs={"input": ["a.png", name]})
    with Uploads() as double:
        assert isinstance(double, Uploads)
        client = http(double, folder, raw="{input:file}", most=2 << 20)
        with pytest.raises(masa.DataError, match=words) as caught:
            masa.baseline(given, client, budget=2, store=None, limits=QUICK)
        assert "row 2" in caught.value.message
        assert caught.value.hint
        assert not double.seen


def test_what_lies_outside_is_sent_only_if_allowed(folder: Path) -> None:
    with Uploads() as double:
        assert isinstance(double, Uploads)
        client = http(double, folder, raw="{input:file}", outside=True)
        ask(client, "../secret.txt")
        assert double.seen[-1]["raw"] == b"secret"
        ask(client, f"{double.url}/file.png")
        assert double.seen[-1]["raw"].endswith(b"from the web")
        with pytest.raises(masa.Rejected, match="its URL: HTTP 404"):
            ask(client, f"{double.url}/gone.png")


def test_a_file_that_vanishes_during_a_run_costs_nothing(folder: Path, tmp_path: Path) -> None:
    for number in range(30):
        (folder / f"{number}.png").write_bytes(b"x")
    names = [f"{number}.png" for number in range(30)]
    given = masa.Dataset.of(["pos", "neg"] * 15, inputs={"input": names})

    with Uploads() as double:
        assert isinstance(double, Uploads)
        client = http(double, folder, raw="{input:file}", price=0.5)
        check = client.check  # type: ignore[attr-defined]

        def and_then_remove(items: Any) -> None:
            check(items)
            (folder / "7.png").unlink()

        client.check = and_then_remove  # type: ignore[attr-defined]
        done = masa.baseline(given, client, budget=60, store=tmp_path / "s.db", limits=QUICK)
        assert (done.answers, done.errors, done.queries, done.cost) == (29, 1, 29, 14.5)
        assert len(double.seen) == 29


def test_services_that_fetch_urls_are_given_them() -> None:
    with case("facepp", count=60) as found:
        files = Files("input", folder=found.folder, outside=False, most=10)
        address = masa.Item(0, {"input": "https://example.com/a.png"})
        files.check([address])
        assert files.url(address) == "https://example.com/a.png"


def test_texts_need_no_files() -> None:
    assert reviews_data(10).item(0).text
    assert clients.make(
        "http",
        {"url": "https://x.example", "body": {"t": "{text}"}, "label": "l", "price": 0},
        context(),
    )
