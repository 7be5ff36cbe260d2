"""Google Vision: the emotion of the face in an image, from the likelihoods of four emotions."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from masa.clients import Context
from masa.clients.options import checked
from masa.clients.services.google_sdk import GoogleOptions, called, missing, of_status, sdk_client
from masa.clients.services.service import FileOptions, FileService, Names, described
from masa.clients.together import Together
from masa.errors import CallError, Failed
from masa.records import Item, Reply

HOST = "vision.googleapis.com"

LIKELIHOODS = {
    "happiness": "joy_likelihood",
    "sadness": "sorrow_likelihood",
    "anger": "anger_likelihood",
    "surprise": "surprise_likelihood",
}
"""In the order in which equal likelihoods are decided."""

POSSIBLE = 3
"""The least likelihood that counts: POSSIBLE. Below it the face shows none of the four."""

MOST_TOGETHER = 16

MOST_REQUEST = 7_000_000
"""The most bytes of images in one call: it may have 10 MB, and base64 adds a third."""

STATUS = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}
"""The status for each code of an error about one image."""


class GoogleVisionOptions(FileOptions, GoogleOptions):
    """The keys of `[api]` for `client = "google-vision"`."""

    together: int = Field(default=1, ge=1, le=MOST_TOGETHER)
    """images in a call, up to 16"""


class GoogleVision(FileService):
    """A client of images:annotate with face detection."""

    name = "google-vision"
    most = MOST_REQUEST

    def __init__(self, options: GoogleVisionOptions, context: Context) -> None:
        names = Names.build(self.name, options.labels, context.labels)
        super().__init__(options, names, context, passes_urls=True)
        try:
            from google.cloud import vision_v1
        except ImportError as exc:
            raise missing(exc, self.name) from exc
        self._options = options
        self._api = vision_v1
        self.batch = options.together
        self._sdk = sdk_client(vision_v1.ImageAnnotatorClient, options, context, host=HOST)
        self._together = Together(self._ask_together, self.batch)

    def describe(self) -> Mapping[str, Any]:
        """Describe the service and how its answer is read."""
        parser = {"labels": self.names.describe(), "nothing": self._options.nothing}
        return described(f"{self.name} v1 FACE_DETECTION", parser)

    async def ask(self, item: Item) -> Reply:
        """Ask about the largest face of one image."""
        return await self._together.ask(item)

    async def close(self) -> None:
        """Close the connections that are not in use."""
        self._sdk.transport.close()
        await super().close()

    async def _ask_together(self, items: list[Item]) -> Sequence[Reply | CallError]:
        images: list[Any] = []
        outcomes: list[Reply | CallError | None] = []
        size = 0
        for item in items:
            try:
                image = await self._image(item)
            except CallError as exc:
                outcomes.append(exc)
                continue
            size += len(image.content)
            if images and size > MOST_REQUEST:
                outcomes.append(Failed("too many large images for one call", billed=False))
                size -= len(image.content)
                continue
            images.append(image)
            outcomes.append(None)
        if not images:
            return [outcome for outcome in outcomes if outcome is not None]
        feature = self._api.Feature(type_=self._api.Feature.Type.FACE_DETECTION, max_results=1)
        requests = [
            self._api.AnnotateImageRequest(image=image, features=[feature]) for image in images
        ]
        found = await called(
            self._sdk.batch_annotate_images, requests=requests, timeout=self._options.timeout
        )
        answers = iter(found.responses)
        asked = zip(items, outcomes, strict=True)
        return [outcome or self._read(next(answers, None), item) for item, outcome in asked]

    async def _image(self, item: Item) -> Any:
        """Make what is sent: the bytes of a file, or a URL that Google fetches."""
        if url := self.files.url(item):
            return self._api.Image(source=self._api.ImageSource(image_uri=url))
        return self._api.Image(content=await self.files.read(item))

    def _read(self, answer: Any, item: Item) -> Reply | CallError:
        if answer is None:
            return Failed("a batch without this image")
        if answer.error.code:
            status = STATUS.get(answer.error.code, 400)
            return of_status(status, "", {}, answer.error.message)
        cost = self.price(item)
        if not answer.face_annotations:
            return Reply(self._options.nothing, cost=cost)
        face = answer.face_annotations[0]
        likely = {name: int(getattr(face, field)) for name, field in LIKELIHOODS.items()}
        said = max(likely, key=lambda name: likely[name])
        if likely[said] < POSSIBLE:
            said = "neutral"
        # A level from 1 to 5, not a probability. What Google is sure of is the face.
        levels = {name: level / 5 for name, level in likely.items()}
        return self.reply(said, levels.get(said), levels, cost=cost)


def make(argument: str, options: Mapping[str, Any], context: Context) -> GoogleVision:
    """Make the client from its options."""
    if argument:
        options = {"endpoint": argument, **options}
    return GoogleVision(checked(GoogleVisionOptions, options, where="[api]"), context)
