"""IBM Watson Speech to Text, through IBM's package.

The package finds the key and the address of the instance in the variables that IBM's console
gives: SPEECH_TO_TEXT_APIKEY and SPEECH_TO_TEXT_URL.
"""

import os
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from masa.clients import Context
from masa.clients.options import checked
from masa.clients.services.service import described
from masa.clients.services.spoken import LONGEST, SpeechOptions, SpeechService
from masa.clients.threads import in_a_thread
from masa.clients.unreadable import UNREADABLE
from masa.clients.web import redirected
from masa.errors import (
    CallError,
    ConfigError,
    Failed,
    Fatal,
    MissingPackageError,
    Refused,
    Rejected,
)
from masa.records import Item, Reply

VARIABLES = ("SPEECH_TO_TEXT_APIKEY", "SPEECH_TO_TEXT_URL")
LEAST_BYTES = 100


class IbmSpeechOptions(SpeechOptions):
    """The keys of `[api]` for `client = "ibm-speech"`."""

    model: str = "en-US_Multimedia"
    """IBM's name for the model, which names the language, too"""
    longest: float = Field(default=LONGEST, gt=0, le=36_000)
    """seconds that a sound may last; longer ones are refused before anything is spent"""


class IbmSpeech(SpeechService):
    """A client of /v1/recognize."""

    name = "ibm-speech"
    most = 100_000_000

    def __init__(self, options: IbmSpeechOptions, context: Context) -> None:
        super().__init__(options, context)
        try:
            from ibm_watson import SpeechToTextV1
        except ImportError as exc:
            raise MissingPackageError(
                "ibm-speech needs ibm-watson", hint="pip install 'masa-shift[ibm]'"
            ) from exc
        if not all(os.environ.get(name) for name in VARIABLES):
            raise ConfigError(
                f"{' and '.join(VARIABLES)} are not both set",
                hint="IBM's console shows both under Manage of the service",
            )
        self._options = options
        self._where = os.environ[VARIABLES[1]].rstrip("/")
        try:
            self._sdk = SpeechToTextV1()
        except ValueError as exc:
            raise ConfigError(
                "IBM's package refuses the credentials", hint=f"set {' and '.join(VARIABLES)}"
            ) from exc
        if str(self._sdk.service_url).rstrip("/") != self._where:
            # A file in the working directory may be a stranger's, and would get the sounds.
            raise ConfigError(
                "IBM's package found another address in ibm-credentials.env",
                hint="remove that file, or write the same SPEECH_TO_TEXT_URL into it",
            )
        self._sdk.disable_retries()
        self._sdk.http_client.max_redirects = 0
        self._sdk.set_http_config({"timeout": options.timeout})

    def describe(self) -> Mapping[str, Any]:
        """Describe the service and how its answer is read."""
        options = self._options
        api = f"{self.name} {self._where.partition('/instances/')[0]} {options.model}"
        return described(api, self.how_read(options))

    async def ask(self, item: Item) -> Reply:
        """Ask what is said in one sound."""
        content = await self.read(item)
        if len(content) < LEAST_BYTES:
            raise Rejected(f"a sound of less than {LEAST_BYTES} bytes", billed=False)
        try:
            answer = await in_a_thread(self._recognize, content, timeout=self._options.timeout)
            found = answer.get_result()
        except CallError:
            raise
        except Exception as exc:
            raise meaning(exc) from exc
        try:
            best = [one["alternatives"][0] for one in found.get("results") or [] if one["final"]]
            transcript = " ".join(alternative["transcript"].strip() for alternative in best)
            surest = [float(one["confidence"]) for one in best if "confidence" in one]
        except UNREADABLE as exc:
            raise Failed("an answer without results") from exc
        confidence = min(surest) if surest else None
        return self.transcripts.read(transcript, confidence, cost=self.cost(item, content))

    def _recognize(self, content: bytes) -> Any:
        return self._sdk.recognize(audio=content, model=self._options.model)


def meaning(exc: Exception) -> CallError:
    """Translate an error of IBM's package."""
    from ibm_cloud_sdk_core import ApiException
    from requests import exceptions as http

    if isinstance(exc, ApiException):
        return _of_status(int(exc.status_code or 0), str(exc.message or ""))
    if isinstance(exc, http.TooManyRedirects):
        return redirected()
    if isinstance(exc, http.ConnectTimeout):
        return Failed("no connection", billed=False)
    if isinstance(exc, http.Timeout):
        return Failed("no answer in time")
    if isinstance(exc, http.ConnectionError):
        unsent = "NewConnectionError" in str(exc) or "NameResolutionError" in str(exc)
        return Failed("no connection" if unsent else "connection lost", billed=not unsent)
    return Failed(f"an answer that cannot be read ({type(exc).__name__})")


def _of_status(status: int, message: str) -> CallError:
    named = f"HTTP {status}"
    # The service that gives tokens answers 400 where there is no such key.
    if status in (401, 403) or "API key" in message or "BXNIM" in message:
        hint = "does SPEECH_TO_TEXT_APIKEY fit SPEECH_TO_TEXT_URL?"
        return Fatal(named, hint=hint, billed=False)
    if status == 429:
        return Refused(named)
    if status == 404:
        return Fatal(named, hint="is there such a model, at this address?", billed=False)
    if status < 400:
        # The package could not read what came.
        return Failed("an answer that cannot be read")
    if status >= 500 or status == 408:
        return Failed(named, overloaded=status == 503)
    return Rejected(named, said=" ".join(message.split())[:200])


def make(argument: str, options: Mapping[str, Any], context: Context) -> IbmSpeech:
    """Make the client from its options."""
    if argument:
        options = {"model": argument, **options}
    return IbmSpeech(checked(IbmSpeechOptions, options, where="[api]"), context)
