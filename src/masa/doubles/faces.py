"""Doubles of the services that tell emotions in faces: Google Vision, Microsoft Face, Face++."""

import base64
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from aiohttp import web

from masa.doubles.models import faces
from masa.doubles.sentiment import GOOGLE_FAULTS, google_error
from masa.doubles.server import KEY, SECRET, Double, Handler

OF_GOOGLE = {
    "happiness": "joyLikelihood",
    "sadness": "sorrowLikelihood",
    "anger": "angerLikelihood",
    "surprise": "surpriseLikelihood",
}
SMALL = {"happiness": 0.9, "sadness": 0.02, "anger": 0.02, "surprise": 0.02, "neutral": 0.04}
"""A small face in the background, which two of the services name first."""

LEVELS = ("UNKNOWN", "VERY_UNLIKELY", "UNLIKELY", "POSSIBLE", "LIKELY", "VERY_LIKELY")


def _level(chance: float) -> int:
    """Give the likelihood that Google would name."""
    return 1 + sum(chance >= limit for limit in (0.15, 0.3, 0.5, 0.75))


class GoogleVision(Double):
    """images:annotate with face detection."""

    service = "google-vision"

    def __init__(self, **options: Any) -> None:
        faces()
        super().__init__(**options)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the path of version 1."""
        return [("/v1/images:annotate", self._handle)]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Google's failures."""
        return google_error(*GOOGLE_FAULTS[fault])

    def truth(self, image: bytes, *, updated: bool) -> str:
        """Give the emotion that it answers."""
        found = faces().emotions(image, updated=updated)
        if found is None:
            return "nothing"
        levels = {name: _level(found[name]) for name in OF_GOOGLE}
        said = max(levels, key=lambda name: levels[name])
        return said if levels[said] >= 3 else "neutral"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        requests = (await request.json())["requests"]
        images = [base64.b64decode(one["image"].get("content", "")) for one in requests]
        most = [int(one["features"][0].get("maxResults", 1)) for one in requests]
        if request.headers.get("x-goog-api-key") != KEY:
            self.refused(images, "wrong key")
            return google_error(400, "INVALID_ARGUMENT", "API_KEY_INVALID")
        if len(images) > 16:
            self.refused(images, "invalid")
            return google_error(400, "INVALID_ARGUMENT", message="Too many images per request.")
        good = sum(faces().is_image(image) for image in images)
        return await self.answered(
            request,
            images,
            lambda: web.json_response({"responses": list(map(self._answer, images, most))}),
            good * Fraction("0.0015"),
        )

    def _answer(self, image: bytes, most: int) -> dict[str, Any]:
        if not faces().is_image(image):
            return {"error": {"code": 3, "message": "Bad image data."}}
        found = faces().emotions(image, updated=self.updated)
        if found is None:
            return {}
        faces_seen = [_google_face(SMALL, 9), _google_face(found, 40)]
        return {"faceAnnotations": faces_seen[:most]}


def _google_face(found: Mapping[str, float], size: int) -> dict[str, Any]:
    """Write a face as Google does; it leaves out a zero."""
    corners = [{}, {"x": size}, {"x": size, "y": size}, {"y": size}]
    levels = {field: LEVELS[_level(found[name])] for name, field in OF_GOOGLE.items()}
    return {**levels, "detectionConfidence": 0.97, "boundingPoly": {"vertices": corners}}


class MicrosoftFace(Double):
    """Face detect 1.0 as it was, or as it is: withdrawn."""

    service = "microsoft-face"
    own_faults = ("throttled", "broken")

    def __init__(self, *, withdrawn: bool = False, **options: Any) -> None:
        faces()
        self.withdrawn = withdrawn
        super().__init__(**options)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the path of version 1.0."""
        return [("/face/v1.0/detect", self._handle)]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Microsoft's failures."""
        if fault == "throttled":
            return self._error(429, "429", "Rate limit is exceeded.")
        return self._error(500, "InternalServerError", "Internal server error.")

    def truth(self, image: bytes, *, updated: bool) -> str:
        """Give the emotion that it answers."""
        return likeliest(faces().emotions(image, updated=updated))

    @staticmethod
    def _error(status: int, code: str, message: str) -> web.Response:
        return web.json_response({"error": {"code": code, "message": message}}, status=status)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        image = await request.read()
        if request.headers.get("Ocp-Apim-Subscription-Key") != KEY:
            self.refused([image], "wrong key")
            return self._error(401, "401", "Access denied due to invalid subscription key.")
        if self.withdrawn:
            self.refused([image], "withdrawn")
            words = "have been deprecated and are no longer supported."
            return self._error(
                403, "UnsupportedFeature", f"Return Attributes (emotion, gender, ...) {words}"
            )
        if not faces().is_image(image):
            self.refused([image], "invalid")
            return self._error(400, "InvalidImage", "Decoding error, image format unsupported.")
        return await self.answered(request, [image], lambda: self._answer(image))

    def _answer(self, image: bytes) -> web.Response:
        found = faces().emotions(image, updated=self.updated)
        if found is None:
            return web.json_response([])
        emotion = {**found, "contempt": 0.0}
        box = {"top": 5, "left": 5, "width": 38, "height": 40}
        face = {"faceRectangle": box, "faceAttributes": {"emotion": emotion}}
        return web.json_response([{**face, "recognitionModel": "recognition_01"}])


class Facepp(Double):
    """Detect, version 3: keys in the form, percentages, 403 for too many calls at once."""

    service = "facepp"
    own_faults = ("throttled", "broken")

    def __init__(self, **options: Any) -> None:
        faces()
        super().__init__(**options)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the path of version 3."""
        return [("/facepp/v3/detect", self._handle)]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of the failures of Face++."""
        if fault == "throttled":
            return self._error(403, "CONCURRENCY_LIMIT_EXCEEDED")
        return self._error(500, "INTERNAL_ERROR")

    def truth(self, image: bytes, *, updated: bool) -> str:
        """Give the emotion that it answers."""
        return likeliest(faces().emotions(image, updated=updated))

    @staticmethod
    def _error(status: int, message: str) -> web.Response:
        content = {"time_used": 3, "error_message": message, "request_id": "1"}
        return web.json_response(content, status=status)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        given = form.get("image_file")
        image = given.file.read() if isinstance(given, web.FileField) else b""
        if (form.get("api_key"), form.get("api_secret")) != (KEY, SECRET):
            self.refused([image], "wrong key")
            return self._error(401, "AUTHENTICATION_ERROR")
        if len(image) > 2 << 20:
            self.refused([image], "invalid")
            return web.Response(status=413, text="Request Entity Too Large")
        if not faces().is_image(image):
            self.refused([image], "invalid")
            return self._error(400, "IMAGE_ERROR_UNSUPPORTED_FORMAT: image_file")
        return await self.answered(request, [image], lambda: self._answer(image))

    def _answer(self, image: bytes) -> web.Response:
        found = faces().emotions(image, updated=self.updated)
        seen = []
        if found is not None:
            seen = [_facepp_face(SMALL, 9), _facepp_face(found, 40)]
        content = {"request_id": "1", "image_id": "1", "time_used": 9, "faces": seen}
        return web.json_response(content)


def _facepp_face(found: Mapping[str, float], size: int) -> dict[str, Any]:
    """Write a face as Face++ does."""
    emotion = {name: round(100 * chance, 3) for name, chance in found.items()}
    box = {"top": 0, "left": 0, "width": size, "height": size}
    return {"face_token": "t", "face_rectangle": box, "attributes": {"emotion": emotion}}


def likeliest(found: Mapping[str, float] | None) -> str:
    """Name the likeliest emotion."""
    if found is None:
        return "nothing"
    rounded = {name: round(100 * chance, 3) for name, chance in found.items()}
    return min(rounded, key=lambda name: (-rounded[name], name))
