"""Microsoft Face: emotions, which Microsoft withdrew on 30 June 2023.

It works against the documented format, for archives and for endpoints of one's own that still
speak it. Microsoft itself answers 403 UnsupportedFeature.
"""

from collections.abc import Mapping
from typing import Any

from masa.clients import Context
from masa.clients.options import checked
from masa.clients.secrets import Secrets, refuse_bad_address, refuse_literal_secrets
from masa.clients.services.service import (
    FileOptions,
    FileService,
    Names,
    best,
    described,
)
from masa.clients.unreadable import UNREADABLE
from masa.clients.web import Refusal, Web
from masa.errors import CallError, Failed, Fatal, Refused, Rejected
from masa.records import Item, Reply

WITHDRAWN = "Microsoft withdrew the recognition of emotions on 30 June 2023"
KEY = "AZURE_FACE_KEY"


class MicrosoftFaceOptions(FileOptions):
    """The keys of `[api]` for `client = "microsoft-face"`."""

    endpoint: str
    """such as https://NAME.cognitiveservices.azure.com"""
    key: str = f"${{{KEY}}}"
    """the key, as ${NAME}"""


class MicrosoftFace(FileService):
    """A client of Face detect 1.0 with the attribute emotion."""

    name = "microsoft-face"
    most = 6 << 20

    def __init__(self, options: MicrosoftFaceOptions, context: Context) -> None:
        names = Names.build(self.name, options.labels, context.labels)
        super().__init__(options, names, context, passes_urls=True)
        self._options = options
        secrets = Secrets(context, options.endpoint)
        self._url = (
            f"{secrets.fill_address(options.endpoint).rstrip('/')}/face/v1.0/detect"
            "?returnFaceId=false&returnRecognitionModel=true&returnFaceAttributes=emotion"
        )
        self._headers = {"Ocp-Apim-Subscription-Key": secrets.fill(options.key)}
        self._web = Web(timeout=options.timeout, secrets=secrets, meaning=_meaning)

    def describe(self) -> Mapping[str, Any]:
        """Describe the service and how its answer is read."""
        parser = {"labels": self.names.describe(), "nothing": self._options.nothing}
        return described(f"{self.name} {self._options.endpoint.rstrip('/')}", parser)

    async def ask(self, item: Item) -> Reply:
        """Ask about the first face of one image, which is the largest."""
        if url := self.files.url(item):
            response = await self._web.send(
                "POST", self._url, headers=self._headers, body={"url": url}
            )
        else:
            headers = {**self._headers, "Content-Type": "application/octet-stream"}
            content = await self.files.read(item)
            response = await self._web.send("POST", self._url, headers=headers, data=content)
        cost = self.price(item)
        if response.content == []:
            return Reply(self._options.nothing, cost=cost)
        try:
            face = response.content[0]
            scores = {
                str(name): float(score) for name, score in face["faceAttributes"]["emotion"].items()
            }
            said = best(scores)
        except UNREADABLE as exc:
            raise Failed("an answer without emotions") from exc
        version = face.get("recognitionModel")
        return self.reply(
            said, scores[said], scores, version=None if version is None else str(version), cost=cost
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()
        await super().close()


def _meaning(found: Refusal) -> CallError | None:
    """Translate Microsoft's codes."""
    error = found.content.get("error") if isinstance(found.content, dict) else None
    code = str(error.get("code", "")) if isinstance(error, dict) else ""
    if code == "UnsupportedFeature":
        return Fatal(f"HTTP {found.status} {code}", hint=WITHDRAWN, billed=False)
    if found.status == 401:
        return Fatal("HTTP 401", hint=f"does {KEY} fit the endpoint?", billed=False)
    if found.status == 429 or code == "429":
        return Refused("HTTP 429", retry_after=found.retry_after)
    if found.status == 400 and code:
        return Rejected(f"HTTP 400 {code[:40]}", said=found.text)
    return None


def make(argument: str, options: Mapping[str, Any], context: Context) -> MicrosoftFace:
    """Make the client from its options."""
    if argument:
        options = {"endpoint": argument, **options}
    given = checked(MicrosoftFaceOptions, options, where="[api]")
    refuse_literal_secrets({"key": given.key}, where="[api]")
    refuse_bad_address(given.endpoint, where="[api] endpoint")
    return MicrosoftFace(given, context)
