"""Every double by the name of its service, with inputs to ask it about and how it is reached."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from masa.doubles import made_up
from masa.doubles.server import KEY, SECRET, Double
from masa.errors import UsageError

AWS = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True, slots=True)
class Doubled:
    """A double: where it is, what it is asked about, and how masa reaches it."""

    module: str
    kind: str
    reads: str
    options: Callable[[str], Mapping[str, Any]]
    """from its URL, the keys of `[api]` besides client"""
    environment: Callable[[str], Mapping[str, str]]
    """from its URL, the variables of the environment"""
    secrets: tuple[str, ...] = ()
    """the variables that masa.toml must declare"""


def _google(**more: Any) -> dict[str, Any]:
    return {
        "options": lambda url: {"endpoint": url, "key": "${GOOGLE_API_KEY}", **more},
        "environment": lambda _: {"GOOGLE_API_KEY": KEY},
        "secrets": ("GOOGLE_API_KEY",),
    }


def _keys(address: str, *names: str, path: str = "", **more: Any) -> dict[str, Any]:
    values = (KEY, SECRET)
    return {
        "options": lambda url: {address: f"{url}{path}", **more},
        "environment": lambda _: dict(zip(names, values, strict=False)),
        "secrets": names,
    }


_MODEL: dict[str, Any] = {
    "model": "tiny",
    "input_price": 1.0,
    "output_price": 5.0,
    "cached_price": 0.1,
}

DOUBLES: Mapping[str, Doubled] = {
    "amazon-comprehend": Doubled(
        "sentiment",
        "AmazonComprehend",
        "text",
        lambda _: {"region": "us-east-1"},
        lambda url: {**AWS, "AWS_ENDPOINT_URL_COMPREHEND": url},
    ),
    "google-language": Doubled("sentiment", "GoogleLanguage", "text", **_google()),
    "baidu-nlp": Doubled(
        "sentiment",
        "BaiduNlp",
        "chinese text",
        **_keys("base_url", "BAIDU_API_KEY", "BAIDU_SECRET_KEY"),
    ),
    "google-vision": Doubled("faces", "GoogleVision", "image", **_google(together=4)),
    "microsoft-face": Doubled(
        "faces",
        "MicrosoftFace",
        "image",
        **_keys("endpoint", "AZURE_FACE_KEY", price="queries-only"),
    ),
    "facepp": Doubled(
        "faces",
        "Facepp",
        "image",
        **_keys("base_url", "FACEPP_API_KEY", "FACEPP_API_SECRET", price="queries-only"),
    ),
    "google-speech": Doubled("speech", "GoogleSpeech", "sound", **_google(project="p")),
    "microsoft-speech": Doubled(
        "speech", "MicrosoftSpeech", "sound", **_keys("endpoint", "AZURE_SPEECH_KEY")
    ),
    "ibm-speech": Doubled(
        "speech",
        "IbmSpeech",
        "sound",
        lambda _: {},
        lambda url: {
            "SPEECH_TO_TEXT_APIKEY": KEY,
            "SPEECH_TO_TEXT_URL": url,
            "SPEECH_TO_TEXT_AUTH_URL": url,
        },
    ),
    "openai": Doubled(
        "language_models",
        "OpenAI",
        "text",
        **_keys("base_url", "OPENAI_API_KEY", path="/v1", **_MODEL),
    ),
    "anthropic": Doubled(
        "language_models",
        "Anthropic",
        "text",
        **_keys("base_url", "ANTHROPIC_API_KEY", cache_write_price=1.25, **_MODEL),
    ),
    "gemini": Doubled(
        "language_models",
        "Gemini",
        "text",
        **_keys("base_url", "GEMINI_API_KEY", path="/v1beta", **_MODEL),
    ),
    "azure-openai": Doubled(
        "language_models",
        "AzureOpenAI",
        "text",
        **_keys("endpoint", "AZURE_OPENAI_API_KEY", **_MODEL),
    ),
    "bedrock": Doubled(
        "language_models",
        "Bedrock",
        "text",
        lambda _: {"region": "us-east-1", "cache_write_price": 1.25, **_MODEL},
        lambda url: {**AWS, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url},
    ),
}


def make(service: str, **options: Any) -> Double:
    """Start the double of a service."""
    if service not in DOUBLES:
        raise UsageError(
            f"there is no double of {service!r}", hint=f"there are {', '.join(DOUBLES)}"
        )
    entry = DOUBLES[service]
    double: Double = getattr(import_module(f"masa.doubles.{entry.module}"), entry.kind)(**options)
    return double


def inputs(service: str, count: int, folder: Path) -> list[tuple[str, str]]:
    """Make labelled inputs for a service: texts, or names of files that are put into a folder."""
    reads = DOUBLES[service].reads
    if reads == "image":
        return made_up.face_files(count, folder)
    if reads == "sound":
        return made_up.sound_files(count, folder)
    if reads == "chinese text":
        return made_up.chinese_reviews(count)
    return made_up.reviews(count)
