"""Google Vision: the emotion of the face in an image, from the likelihoods of four emotions."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from masa.clients import Context
from masa.clients.options import checked
from masa.clients.services.google_sdk import GoogleOptions, Sdk, missing
from masa.clients.services.service import FileOptions, FileService, Names, described
from masa.clients.together import NO_ROOM, NoRoom, Together
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

MOST_FACES = 10
"""How many faces of an image Google is asked for: it does not say that the largest is the first."""

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
        self._sdk = Sdk(
            vision_v1.ImageAnnotatorClient, options, context, host=HOST, timeout=options.timeout
        )
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
        self._sdk.close()
        await super().close()

    async def _ask_together(self, items: list[Item]) -> Sequence[Reply | CallError | NoRoom]:
        images: list[Any] = []
        outcomes: list[Reply | CallError | NoRoom | None] = []
        size = 0
        for item in items:
            if size > MOST_REQUEST:
                outcomes.append(NO_ROOM)
                continue
            try:
                image = await self._image(item)
            except CallError as exc:
                outcomes.append(exc)
                continue
            size += len(image.content)
            if images and size > MOST_REQUEST:
                outcomes.append(NO_ROOM)
                continue
            images.append(image)
            outcomes.append(None)
        if not images:
            return [outcome for outcome in outcomes if outcome is not None]
        answers = iter(await self._faces_of(images))
        asked = zip(items, outcomes, strict=True)
        return [outcome or self._read(next(answers, None), item) for item, outcome in asked]

    async def _faces_of(self, images: Sequence[Any]) -> Sequence[Any]:
        """Send one call about some images."""
        kind = self._api.Feature.Type.FACE_DETECTION
        feature = self._api.Feature(type_=kind, max_results=MOST_FACES)
        found = await self._sdk.ask(
            "batch_annotate_images",
            requests=[
                self._api.AnnotateImageRequest(image=image, features=[feature]) for image in images
            ],
        )
        return list(found.responses)

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
            return self._sdk.refused(status, answer.error.message)
        cost = self.price(item)
        if not answer.face_annotations:
            return Reply(self._options.nothing, cost=cost)
        face = max(answer.face_annotations, key=_size)
        likely = {name: int(getattr(face, field)) for name, field in LIKELIHOODS.items()}
        if not any(likely.values()):
            return Failed("an answer without emotions")
        said = max(likely, key=lambda name: likely[name])
        if likely[said] < POSSIBLE:
            said = "neutral"
        # A level from 1 to 5, not a probability. What Google is sure of is the face.
        levels = {name: level / 5 for name, level in likely.items()}
        return self.reply(said, levels.get(said), levels, cost=cost)


def _size(face: Any) -> int:
    """Give the area of the box around a face."""
    corners = face.bounding_poly.vertices
    if not corners:
        return 0
    wide, high = [corner.x for corner in corners], [corner.y for corner in corners]
    return int((max(wide) - min(wide)) * (max(high) - min(high)))


def make(argument: str, options: Mapping[str, Any], context: Context) -> GoogleVision:
    """Make the client from its options."""
    if argument:
        options = {"endpoint": argument, **options}
    return GoogleVision(checked(GoogleVisionOptions, options, where="[api]"), context)
