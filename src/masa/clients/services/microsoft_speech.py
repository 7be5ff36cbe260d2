"""Microsoft Speech to text for short audio: sounds of up to a minute, 16 kHz, mono."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from pydantic import Field

from masa.clients import Context
from masa.clients.files import kind_of
from masa.clients.options import checked
from masa.clients.secrets import (
    Secrets,
    refuse_bad_address,
    refuse_literal_secrets,
    with_own_keys,
)
from masa.clients.services.service import described
from masa.clients.services.spoken import SpeechOptions, SpeechService
from masa.clients.sounds import sound_of
from masa.clients.unreadable import UNREADABLE
from masa.clients.web import Refusal, Web
from masa.errors import CallError, ConfigError, Failed, Fatal, Rejected
from masa.records import Item, Reply

KEY = "AZURE_SPEECH_KEY"
PATH = "/speech/recognition/conversation/cognitiveservices/v1"
USUAL_RATE = 16_000
"""Samples a second, where a file does not say how many it has."""

NOTHING = ("NoMatch", "InitialSilenceTimeout", "BabbleTimeout")


class MicrosoftSpeechOptions(SpeechOptions):
    """The keys of `[api]` for `client = "microsoft-speech"`."""

    region: str | None = Field(default=None, pattern="^[a-z0-9]+$")
    """such as westeurope"""
    endpoint: str | None = None
    """another address; the key must then be declared"""
    key: str = f"${{{KEY}}}"
    """the key, as ${NAME}"""
    language: str = "en-US"
    """that is spoken"""


class MicrosoftSpeech(SpeechService):
    """A client of the REST API for short audio, detailed format."""

    name = "microsoft-speech"
    most = 10_000_000
    what = "sound files of the kinds WAV and OGG"
    kinds = ("audio/wav", "audio/ogg")

    def __init__(self, options: MicrosoftSpeechOptions, context: Context) -> None:
        super().__init__(options, context)
        self._options = options
        address = options.endpoint or f"https://{options.region}.stt.speech.microsoft.com"
        refuse_bad_address(address, where="[api] endpoint")
        context = with_own_keys(context, address, (KEY,), hosts=(".stt.speech.microsoft.com",))
        secrets = Secrets(context, address)
        query = urlencode({"language": options.language, "format": "detailed"})
        self._url = f"{secrets.fill_address(address).rstrip('/')}{PATH}?{query}"
        self._headers = {"Ocp-Apim-Subscription-Key": secrets.fill(options.key)}
        self._web = Web(timeout=options.timeout, secrets=secrets, meaning=_meaning)

    def describe(self) -> Mapping[str, Any]:
        """Describe the service and how its answer is read."""
        options = self._options
        api = f"{self.name} {options.endpoint or options.region}"
        return described(api, self.how_read(options), {"language": options.language})

    async def ask(self, item: Item) -> Reply:
        """Ask what is said in one sound."""
        content = await self.read(item)
        cost = self.cost(item, content)
        kind = "audio/ogg; codecs=opus"
        if kind_of(content) == "audio/wav":
            sound = sound_of(content)
            rate = USUAL_RATE if sound is None else sound.samples_a_second
            kind = f"audio/wav; codecs=audio/pcm; samplerate={rate}"
        headers = {**self._headers, "Content-Type": kind}
        response = await self._web.send("POST", self._url, headers=headers, data=content)
        try:
            status = response.content["RecognitionStatus"]
            if status in NOTHING:
                return self.transcripts.read("", None, cost=cost)
            if status != "Success":
                raise Failed(f"the status {str(status)[:40]}")
            # They need not be sorted.
            surest = max(response.content["NBest"], key=lambda one: float(one["Confidence"]))
            heard, confidence = str(surest["Lexical"]), float(surest["Confidence"])
        except UNREADABLE as exc:
            raise Failed("an answer without what was recognised") from exc
        return self.transcripts.read(heard, confidence, cost=cost)

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()
        await super().close()


def _meaning(found: Refusal) -> CallError | None:
    """Translate the statuses that mean something else than elsewhere."""
    if found.status in (401, 403):
        hint = f"does {KEY} fit the region?"
        return Fatal(f"HTTP {found.status}", hint=hint, billed=False)
    if found.status == 400:
        return Rejected("HTTP 400", said=found.text)
    return None


def make(argument: str, options: Mapping[str, Any], context: Context) -> MicrosoftSpeech:
    """Make the client from its options."""
    if argument:
        options = {"region": argument, **options}
    given = checked(MicrosoftSpeechOptions, options, where="[api]")
    refuse_literal_secrets({"key": given.key}, where="[api]")
    if given.region is None and given.endpoint is None:
        raise ConfigError("[api] names no region", hint='set region, such as "westeurope"')
    return MicrosoftSpeech(given, context)
