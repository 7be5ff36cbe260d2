"""Face++ Detect: the emotion of the largest face, as percentages."""

import io
from collections.abc import Mapping
from typing import Any

import aiohttp

from masa.clients import Context
from masa.clients.options import checked
from masa.clients.secrets import (
    Secrets,
    refuse_bad_address,
    refuse_literal_secrets,
    with_own_keys,
)
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

BASE_URL = "https://api-us.faceplusplus.com"
KEYS = ("FACEPP_API_KEY", "FACEPP_API_SECRET")
HOSTS = ("api-us.faceplusplus.com", "api-cn.faceplusplus.com")


class FaceppOptions(FileOptions):
    """The keys of `[api]` for `client = "facepp"`."""

    base_url: str = BASE_URL
    """https://api-cn.faceplusplus.com for China"""
    key: str = f"${{{KEYS[0]}}}"
    """the API key, as ${NAME}"""
    secret: str = f"${{{KEYS[1]}}}"
    """the API secret, as ${NAME}"""


class Facepp(FileService):
    """A client of Detect, version 3, with the attribute emotion."""

    name = "facepp"
    most = 2 << 20

    def __init__(self, options: FaceppOptions, context: Context) -> None:
        names = Names.build(self.name, options.labels, context.labels)
        super().__init__(options, names, context, passes_urls=True)
        self._options = options
        context = with_own_keys(context, options.base_url, KEYS, hosts=HOSTS)
        secrets = Secrets(context, options.base_url)
        self._url = f"{secrets.fill_address(options.base_url).rstrip('/')}/facepp/v3/detect"
        self._fields = {
            "api_key": secrets.fill(options.key),
            "api_secret": secrets.fill(options.secret),
            "return_attributes": "emotion",
        }
        self._web = Web(timeout=options.timeout, secrets=secrets, meaning=_meaning)

    def describe(self) -> Mapping[str, Any]:
        """Describe the service and how its answer is read."""
        parser = {"labels": self.names.describe(), "nothing": self._options.nothing}
        return described(f"{self.name} {self._options.base_url.rstrip('/')}", parser)

    async def ask(self, item: Item) -> Reply:
        """Ask about the largest face of one image."""
        form = aiohttp.FormData(self._fields, default_to_multipart=True)
        if url := self.files.url(item):
            form.add_field("image_url", url)
        else:
            form.add_field("image_file", io.BytesIO(await self.files.read(item)), filename="image")
        response = await self._web.send("POST", self._url, headers={}, data=form)
        cost = self.price(item)
        try:
            faces = response.content["faces"]
            if not faces:
                return Reply(self._options.nothing, cost=cost)
            shares = max(faces, key=_size)["attributes"]["emotion"]
            scores = {str(name): float(share) / 100 for name, share in shares.items()}
            said = best(scores)
        except UNREADABLE as exc:
            raise Failed("an answer without emotions") from exc
        return self.reply(said, scores[said], scores, cost=cost)

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()
        await super().close()


def _size(face: Mapping[str, Any]) -> float:
    """Give the area of the box around a face; none for one that was not looked at."""
    box = face.get("face_rectangle") or {}
    return float(box.get("width", 0)) * float(box.get("height", 0)) if "attributes" in face else -1


def _meaning(found: Refusal) -> CallError | None:
    """Translate the messages of Face++, which says 403 where it is asked too fast."""
    said = found.content.get("error_message") if isinstance(found.content, dict) else None
    if not isinstance(said, str):
        return None
    code = said.partition(":")[0][:60]
    named = f"HTTP {found.status} {code}"
    if code == "CONCURRENCY_LIMIT_EXCEEDED":
        return Refused(named)
    if code in ("AUTHENTICATION_ERROR", "AUTHORIZATION_ERROR", "INSUFFICIENT_BALANCE"):
        hint = f"do {' and '.join(KEYS)} fit, and is the account allowed to do this?"
        return Fatal(named, hint=hint, billed=False)
    if code in ("IMAGE_DOWNLOAD_TIMEOUT", "INTERNAL_ERROR"):
        return Failed(named)
    if found.status in (400, 412, 413):
        return Rejected(named, said=found.text)
    return None


def make(argument: str, options: Mapping[str, Any], context: Context) -> Facepp:
    """Make the client from its options."""
    if argument:
        options = {"base_url": argument, **options}
    given = checked(FaceppOptions, options, where="[api]")
    refuse_literal_secrets({"key": given.key, "secret": given.secret}, where="[api]")
    refuse_bad_address(given.base_url, where="[api] base_url")
    return Facepp(given, context)
