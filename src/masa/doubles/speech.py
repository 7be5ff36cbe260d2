"""Doubles of the services that write down what is spoken: Google, Microsoft, IBM."""

import base64
import json
import time
from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from aiohttp import web

from masa.doubles.models import RATE, recogniser, sound
from masa.doubles.sentiment import GOOGLE_FAULTS, google_error
from masa.doubles.server import KEY, Double, Handler


def _heard(content: bytes, *, updated: bool) -> str:
    found = recogniser().heard(content, updated=updated)
    return "nothing" if found is None else found[0]


def _length(content: bytes) -> Fraction:
    """Give the length of a sound in seconds."""
    samples = sound(content)
    return Fraction(0 if samples is None else len(samples), RATE)


def _seconds(content: bytes) -> Fraction:
    """Give the whole seconds for which a sound is billed."""
    return Fraction(ceil(_length(content)))


class GoogleSpeech(Double):
    """recognizers/_:recognize, version 2."""

    service = "google-speech"

    def __init__(self, **options: Any) -> None:
        recogniser()
        self.says_billed = True
        """whether the answer names the seconds that are billed"""
        super().__init__(**options)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the path of version 2."""
        return [
            (
                "/v2/projects/{project}/locations/{place}/recognizers/{recognizer}:recognize",
                self._handle,
            )
        ]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Google's failures."""
        return google_error(*GOOGLE_FAULTS[fault])

    def truth(self, content: bytes, *, updated: bool) -> str:
        """Give the word that it answers."""
        return _heard(content, updated=updated)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        content = base64.b64decode((await request.json()).get("content", ""))
        if request.headers.get("x-goog-api-key") != KEY:
            self.refused([content], "wrong key")
            return google_error(400, "INVALID_ARGUMENT", "API_KEY_INVALID")
        if sound(content) is None:
            self.refused([content], "invalid")
            return google_error(400, "INVALID_ARGUMENT", message="Audio data cannot be decoded.")
        billed = _seconds(content) * Fraction("0.016") / 60
        return await self.answered(request, [content], lambda: self._answer(content), billed)

    def _answer(self, content: bytes) -> web.Response:
        found = recogniser().heard(content, updated=self.updated)
        answer: dict[str, Any] = {"metadata": {"requestId": "1"}}
        if self.says_billed:
            answer["metadata"]["totalBilledDuration"] = f"{_seconds(content)}s"
        if found is not None:
            best = {"transcript": found[0], "confidence": found[1]}
            answer["results"] = [{"alternatives": [best], "languageCode": "en-us"}]
        return web.json_response(answer)


class MicrosoftSpeech(Double):
    """The REST API for short audio, in its detailed format."""

    service = "microsoft-speech"

    def __init__(self, **options: Any) -> None:
        recogniser()
        super().__init__(**options)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the path for conversations."""
        return [("/speech/recognition/conversation/cognitiveservices/v1", self._handle)]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Microsoft's failures."""
        if fault == "throttled":
            return web.Response(status=429)
        if fault == "broken":
            return web.json_response({"RecognitionStatus": "Error", "Offset": 0, "Duration": 0})
        return web.Response(status=503)

    def truth(self, content: bytes, *, updated: bool) -> str:
        """Give the word that it answers."""
        return _heard(content, updated=updated)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        content = await request.read()
        if request.headers.get("Ocp-Apim-Subscription-Key") != KEY:
            self.refused([content], "wrong key")
            return web.Response(status=401)
        said_right = f"samplerate={RATE}" in request.headers.get("Content-Type", "")
        if sound(content) is None or not said_right or request.query.get("format") != "detailed":
            self.refused([content], "invalid")
            return web.Response(status=400)
        billed = _seconds(content) / 3600
        return await self.answered(request, [content], lambda: self._answer(content), billed)

    def _answer(self, content: bytes) -> web.Response:
        found = recogniser().heard(content, updated=self.updated)
        if found is None:
            answer = {"RecognitionStatus": "InitialSilenceTimeout", "Offset": "0", "Duration": "0"}
            return web.json_response(answer)
        word, sure = found
        best = {
            "Confidence": sure,
            "Lexical": word,
            "ITN": word,
            "MaskedITN": word,
            "Display": f"{word.capitalize()}.",
        }
        # Not sorted, as in Microsoft's own example.
        worse = {**best, "Confidence": sure / 2 - 0.01, "Lexical": f"{word} {word}"}
        found_both = {"RecognitionStatus": "Success", "Offset": 100, "Duration": 9}
        return web.json_response({**found_both, "NBest": [worse, best]})


class IbmSpeech(Double):
    """/v1/recognize, and the service that gives tokens for keys."""

    service = "ibm-speech"

    def __init__(self, **options: Any) -> None:
        recogniser()
        self.token = _token()
        super().__init__(**options)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the paths of the service and of the tokens."""
        return [("/v1/recognize", self._handle), ("/identity/token", self._give_token)]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of IBM's failures."""
        status = {"throttled": 429, "broken": 500, "overloaded": 503}[fault]
        content = {"error": "no", "code": status, "code_description": "no"}
        return web.json_response(content, status=status)

    def truth(self, content: bytes, *, updated: bool) -> str:
        """Give the word that it answers."""
        return _heard(content, updated=updated)

    async def _give_token(self, request: web.Request) -> web.StreamResponse:
        if (await request.post()).get("apikey") != KEY:
            said = "Provided API key could not be found."
            error = {"errorCode": "BXNIM0415E", "errorMessage": said}
            return web.json_response(error, status=400)
        now = int(time.time())
        content = {"access_token": self.token, "token_type": "Bearer", "expires_in": 3600}
        return web.json_response({**content, "expiration": now + 3600, "refresh_token": "r"})

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        content = await request.read()
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            self.refused([content], "wrong key")
            return web.json_response({"error": "Unauthorized", "code": 401}, status=401)
        if sound(content) is None:
            self.refused([content], "invalid")
            said = "unable to transcode data stream application/octet-stream -> audio/l16"
            return web.json_response({"error": said, "code": 400}, status=400)
        billed = _length(content) * Fraction("0.02") / 60
        return await self.answered(request, [content], lambda: self._answer(content), billed)

    def _answer(self, content: bytes) -> web.Response:
        found = recogniser().heard(content, updated=self.updated)
        results = []
        if found is not None:
            best = {"transcript": f"{found[0]} ", "confidence": found[1]}
            results = [{"final": True, "alternatives": [best]}]
        return web.json_response({"result_index": 0, "results": results})


def _token() -> str:
    """Make a token that IBM's package can decode: it looks for the times in it."""

    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    now = int(time.time())
    return ".".join(
        (part({"alg": "none"}), part({"iat": now, "exp": now + 3600}), part({"signed": "no"}))
    )
