"""Google Speech-to-Text, version 2, for sounds of up to a minute."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from masa.clients import Context
from masa.clients.options import checked
from masa.clients.services.google_sdk import GoogleOptions, Sdk, missing
from masa.clients.services.service import described
from masa.clients.services.spoken import SpeechOptions, SpeechService
from masa.records import Item, Reply


class GoogleSpeechOptions(SpeechOptions, GoogleOptions):
    """The keys of `[api]` for `client = "google-speech"`."""

    project: str = Field(pattern="^[A-Za-z0-9:._-]+$")
    """the id of your project"""
    location: str = Field(default="global", pattern="^[a-z0-9-]+$")
    """where Google listens, such as eu"""
    model: str = "latest_short"
    """Google's name for the model"""
    language: str = "en-US"
    """that is spoken"""


class GoogleSpeech(SpeechService):
    """A client of recognizers/_:recognize."""

    name = "google-speech"
    most = 10_000_000

    def __init__(self, options: GoogleSpeechOptions, context: Context) -> None:
        super().__init__(options, context)
        try:
            from google.cloud import speech_v2
        except ImportError as exc:
            raise missing(exc, self.name) from exc
        self._options = options
        host = "speech.googleapis.com"
        if options.location != "global":
            host = f"{options.location}-{host}"
        self._sdk = Sdk(
            speech_v2.SpeechClient, options, context, host=host, timeout=options.timeout
        )
        self._recognizer = f"projects/{options.project}/locations/{options.location}/recognizers/_"
        self._config = speech_v2.RecognitionConfig(
            auto_decoding_config=speech_v2.AutoDetectDecodingConfig(),
            language_codes=[options.language],
            model=options.model,
        )

    def describe(self) -> Mapping[str, Any]:
        """Describe the service and how its answer is read."""
        options = self._options
        api = f"{self.name} v2 {options.location} {options.model}"
        return described(api, self.how_read(options), {"language": options.language})

    async def ask(self, item: Item) -> Reply:
        """Ask what is said in one sound."""
        content = await self.read(item)
        request = {"recognizer": self._recognizer, "config": self._config, "content": content}
        found = await self._sdk.ask("recognize", request=request)
        best = [result.alternatives[0] for result in found.results if result.alternatives]
        transcript = "".join(alternative.transcript for alternative in best)
        # 0 means that it is not set.
        surest = [alternative.confidence for alternative in best if alternative.confidence]
        confidence = min(surest) if surest and len(surest) == len(best) else None
        cost = self.cost(item, content)
        if "total_billed_duration" in found.metadata and self.priced:
            cost = self.tariff.cost(found.metadata.total_billed_duration.total_seconds())
        return self.transcripts.read(transcript, confidence, cost=cost)

    async def close(self) -> None:
        """Close the connections that are not in use."""
        self._sdk.close()
        await super().close()


def make(argument: str, options: Mapping[str, Any], context: Context) -> GoogleSpeech:
    """Make the client from its options."""
    if argument:
        options = {"project": argument, **options}
    return GoogleSpeech(checked(GoogleSpeechOptions, options, where="[api]"), context)
