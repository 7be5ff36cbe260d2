"""The real services, for whoever has keys: one or two calls each, together less than a cent.

    pytest -m live tests/clients/test_live.py

What is not configured is skipped. Speech and faces need a file, named by MASA_LIVE_SOUND (a WAV
file of 16 kHz in which somebody says "yes") and MASA_LIVE_IMAGE (a face that is happy).
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import masa
from masa import clients
from masa.clients import Context

pytestmark = pytest.mark.live

LABELS = ("negative", "neutral", "positive")
TEXT = "What a wonderful film: I loved every minute of it."

TEXTS: Mapping[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "amazon-comprehend": (("AWS_ACCESS_KEY_ID",), {"region": "us-east-1"}),
    "google-language": (("GOOGLE_APPLICATION_CREDENTIALS",), {}),
    "baidu-nlp": (("BAIDU_API_KEY", "BAIDU_SECRET_KEY"), {}),
    "openai": (("OPENAI_API_KEY",), {"model": "gpt-4o-mini"}),
    "anthropic": (("ANTHROPIC_API_KEY",), {"model": "claude-haiku-4-5"}),
    "gemini": (
        ("GEMINI_API_KEY",),
        {"model": "gemini-2.5-flash", "thinking_budget": 0, "price": "queries-only"},
    ),
    "bedrock": (
        ("AWS_ACCESS_KEY_ID", "MASA_LIVE_BEDROCK_MODEL"),
        {"region": "us-east-1", "price": "queries-only"},
    ),
    "azure-openai": (
        ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "MASA_LIVE_AZURE_DEPLOYMENT"),
        {"price": "queries-only"},
    ),
}

FILES: Mapping[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "google-vision": (("GOOGLE_APPLICATION_CREDENTIALS", "MASA_LIVE_IMAGE"), {}),
    "facepp": (
        ("FACEPP_API_KEY", "FACEPP_API_SECRET", "MASA_LIVE_IMAGE"),
        {"price": "queries-only"},
    ),
    "microsoft-face": (
        ("AZURE_FACE_KEY", "AZURE_FACE_ENDPOINT", "MASA_LIVE_IMAGE"),
        {"price": "queries-only"},
    ),
    "google-speech": (
        ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "MASA_LIVE_SOUND"),
        {},
    ),
    "microsoft-speech": (("AZURE_SPEECH_KEY", "AZURE_SPEECH_REGION", "MASA_LIVE_SOUND"), {}),
    "ibm-speech": (("SPEECH_TO_TEXT_APIKEY", "SPEECH_TO_TEXT_URL", "MASA_LIVE_SOUND"), {}),
}

OPTIONS = {
    "AZURE_OPENAI_ENDPOINT": "endpoint",
    "AZURE_FACE_ENDPOINT": "endpoint",
    "AZURE_SPEECH_REGION": "region",
    "GOOGLE_CLOUD_PROJECT": "project",
    "MASA_LIVE_BEDROCK_MODEL": "model",
    "MASA_LIVE_AZURE_DEPLOYMENT": "model",
}


def client(
    service: str, needs: tuple[str, ...], options: dict[str, Any], context: Context
) -> clients.Client:
    missing = [name for name in needs if not os.environ.get(name)]
    if missing:
        pytest.skip(f"{service}: {', '.join(missing)} not set")
    named = {OPTIONS[name]: os.environ[name] for name in needs if name in OPTIONS}
    return clients.make(service, {**options, **named}, context)


def asked(made: clients.Client, item: masa.Item) -> masa.Reply:
    async def once() -> masa.Reply:
        try:
            return await made.ask(item)
        finally:
            await made.close()

    return asyncio.run(once())


@pytest.mark.parametrize("service", TEXTS)
def test_a_text_is_read_as_it_should_be(service: str) -> None:
    needs, options = TEXTS[service]
    declared = {name: os.environ.get(name, "") for name in needs}
    made = client(service, needs, options, Context(LABELS, ("text",), declared))
    item = masa.Item(0, {"text": TEXT})
    reply = asked(made, item)
    assert reply.label == "positive"
    if made.priced:
        assert reply.cost is not None
        assert reply.cost <= made.price(item) < 2_000_000


@pytest.mark.parametrize("service", FILES)
def test_a_file_is_read_as_it_should_be(service: str) -> None:
    needs, options = FILES[service]
    variable, labels, expected = "MASA_LIVE_SOUND", ("no", "yes"), "yes"
    if "MASA_LIVE_IMAGE" in needs:
        variable, labels, expected = "MASA_LIVE_IMAGE", ("happiness", "sadness"), "happiness"
    declared = {name: os.environ.get(name, "") for name in needs}
    path = Path(os.environ.get(variable, ""))
    context = Context(labels, ("file",), declared, folder=path.parent)
    made = client(service, needs, options, context)
    item = masa.Item(0, {"file": path.name})
    if service == "microsoft-face":
        with pytest.raises(masa.Fatal, match="UnsupportedFeature"):
            asked(made, item)
        return
    assert asked(made, item).label == expected
