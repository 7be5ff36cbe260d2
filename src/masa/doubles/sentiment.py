"""Doubles of the services that tell sentiment: Amazon Comprehend, Google Language, Baidu."""

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from aiohttp import web

from masa.doubles.models import Snow, Vader, named
from masa.doubles.server import KEY, SECRET, Double, Handler


def google_error(status: int, name: str, reason: str = "", message: str = "no") -> web.Response:
    """Write an error as all of Google's services do."""
    details = []
    if reason:
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        details = [{"@type": kind, "reason": reason, "domain": "googleapis.com"}]
    error = {"code": status, "message": message, "status": name, "details": details}
    return web.json_response({"error": error}, status=status)


GOOGLE_FAULTS = {
    "throttled": (429, "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED"),
    "broken": (500, "INTERNAL", ""),
    "overloaded": (503, "UNAVAILABLE", ""),
}


class AmazonComprehend(Double):
    """DetectSentiment and BatchDetectSentiment."""

    service = "amazon-comprehend"

    def __init__(self, **options: Any) -> None:
        self.vader = Vader()
        self.refuses = 0.0
        """the share of texts of a batch that fail alone"""
        super().__init__(**options)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the only path: the operation is in a header."""
        return [("/", self._handle)]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Amazon's failures."""
        if fault == "throttled":
            return self._error("ThrottlingException", "Rate exceeded")
        if fault == "overloaded":
            return web.Response(status=503, text="Service Unavailable")
        return self._error("InternalServerException", "try again", status=500)

    def truth(self, text: str, *, updated: bool) -> str:
        """Give the label that it answers."""
        return self.vader.sentiment(text, updated=updated)

    @staticmethod
    def _error(kind: str, message: str, *, status: int = 400) -> web.Response:
        content = json.dumps({"__type": kind, "Message": message})
        return web.Response(text=content, status=status, content_type="application/x-amz-json-1.1")

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        batch = request.headers["X-Amz-Target"].endswith(".BatchDetectSentiment")
        texts = body["TextList"] if batch else [body["Text"]]
        if f"Credential={KEY}/" not in request.headers.get("Authorization", ""):
            self.refused(texts, "wrong key")
            return self._error("UnrecognizedClientException", "The security token is invalid.")
        if len(texts) > 25:
            self.refused(texts, "invalid")
            return self._error("BatchSizeLimitExceededException", "too many documents")
        if body["LanguageCode"] not in ("en", "es", "fr", "de", "it", "pt"):
            self.refused(texts, "invalid")
            return self._error("UnsupportedLanguageException", "language")
        if not batch and len(texts[0].encode()) > 5000:
            self.refused(texts, "invalid")
            return self._error("TextSizeLimitExceededException", "Input text size exceeds limit.")
        failed = [batch and self._chance.random() < self.refuses for _ in texts]
        billed = sum(
            max(3, -(-len(text) // 100)) for text, bad in zip(texts, failed, strict=True) if not bad
        )
        return await self.answered(
            request,
            texts,
            lambda: self._answer(texts, failed, batch=batch),
            Fraction(billed, 10_000),
        )

    def _answer(self, texts: list[str], failed: list[bool], *, batch: bool) -> web.Response:
        if not batch:
            return web.json_response(self._sentiment(texts[0]))
        results, errors = [], []
        for index, (text, bad) in enumerate(zip(texts, failed, strict=True)):
            if bad:
                code = {"ErrorCode": "InternalServerException", "ErrorMessage": "try again"}
                errors.append({"Index": index, **code})
            elif len(text.encode()) > 5000:
                code = {"ErrorCode": "TextSizeLimitExceededException", "ErrorMessage": "size"}
                errors.append({"Index": index, **code})
            else:
                results.append({"Index": index, **self._sentiment(text)})
        return web.json_response({"ResultList": results, "ErrorList": errors})

    def _sentiment(self, text: str) -> dict[str, Any]:
        score = self.vader.score(text, updated=self.updated)
        said = named(score)
        scores = {"Positive": max(score, 0.0), "Negative": max(-score, 0.0), "Mixed": 0.0}
        scores["Neutral"] = 1.0 - abs(score)
        if said == "neutral":
            scores["Neutral"] = 1.0
        else:
            # The named one is the largest, as it is for the service.
            scores[said.capitalize()] = max(scores.values()) + 0.01
        return {"Sentiment": said.upper(), "SentimentScore": scores}


class GoogleLanguage(Double):
    """analyzeSentiment, version 2."""

    service = "google-language"

    def __init__(self, **options: Any) -> None:
        self.vader = Vader()
        super().__init__(**options)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the path of version 2."""
        return [("/v2/documents:analyzeSentiment", self._handle)]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Google's failures."""
        return google_error(*GOOGLE_FAULTS[fault])

    def truth(self, text: str, *, updated: bool) -> str:
        """Give the label that it answers, where 0 alone is neutral."""
        score = self._score(text, updated=updated)
        return "neutral" if not score else "positive" if score > 0 else "negative"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        document = (await request.json())["document"]
        text = document.get("content", "")
        if request.headers.get("x-goog-api-key") != KEY:
            self.refused([text], "wrong key")
            return google_error(400, "INVALID_ARGUMENT", "API_KEY_INVALID")
        if document.get("type") not in (1, "PLAIN_TEXT") or len(text.encode()) > 1_000_000:
            self.refused([text], "invalid")
            return google_error(400, "INVALID_ARGUMENT")
        units = max(1, -(-len(text) // 1000))
        return await self.answered(
            request, [text], lambda: self._answer(text), Fraction(units, 1000)
        )

    def _answer(self, text: str) -> web.Response:
        score = self._score(text, updated=self.updated)
        # As in Google's JSON, a number that is 0 is absent.
        sentiment = {"magnitude": abs(score), **({"score": score} if score else {})}
        content = {"documentSentiment": sentiment, "languageCode": "en", "languageSupported": True}
        return web.json_response(content)

    def _score(self, text: str, *, updated: bool) -> float:
        return round(self.vader.score(text, updated=updated), 2)


class BaiduNlp(Double):
    """The token, and sentiment_classify: GBK, unless it is asked for UTF-8."""

    service = "baidu-nlp"
    own_faults = ("throttled", "broken")

    def __init__(self, **options: Any) -> None:
        self.snow = Snow()
        self.token = "24.double-token"  # noqa: S105
        super().__init__(**options)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the paths of the token and of the service."""
        return [
            ("/oauth/2.0/token", self._give_token),
            ("/rpc/2.0/nlp/v1/sentiment_classify", self._handle),
        ]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Baidu's failures, with status 200."""
        code = {"throttled": (18, "Open api qps request limit reached")}
        number, said = code.get(fault, (282000, "internal error"))
        return web.json_response({"error_code": number, "error_msg": said})

    def truth(self, text: str, *, updated: bool) -> str:
        """Give the label that it answers."""
        positive = self.snow.positive(text, updated=updated)
        return ("negative", "neutral", "positive")[_class(positive)]

    async def _give_token(self, request: web.Request) -> web.StreamResponse:
        given = {**request.query, **(await request.post())}
        if given.get("client_id") != KEY or given.get("client_secret") != SECRET:
            error = {"error": "invalid_client", "error_description": "unknown client id"}
            return web.json_response(error, status=401)
        scope = "public brain_all_scope brain_nlp_sentiment_classify"
        content = {"access_token": self.token, "expires_in": 2592000, "scope": scope}
        return web.json_response(content)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        encoding = "utf-8" if request.query.get("charset") == "UTF-8" else "gbk"
        text = json.loads((await request.read()).decode(encoding, errors="replace"))["text"]
        if request.query.get("access_token") != self.token:
            self.refused([text], "wrong key")
            return web.json_response({"error_code": 110, "error_msg": "Access token invalid"})
        if not text or len(text) > 2048:
            self.refused([text], "invalid")
            return web.json_response({"error_code": 282131, "error_msg": "input text too long"})
        return await self.answered(
            request, [text], lambda: self._answer(text, encoding), Fraction(25, 10_000)
        )

    def _answer(self, text: str, encoding: str) -> web.Response:
        positive = self.snow.positive(text, updated=self.updated)
        item = {
            "sentiment": _class(positive),
            "confidence": abs(2 * positive - 1),
            "positive_prob": positive,
            "negative_prob": 1 - positive,
        }
        content = {"log_id": 1, "text": text, "items": [item]}
        return web.Response(
            body=json.dumps(content, ensure_ascii=False).encode(encoding),
            content_type="application/json",
            charset=encoding,
        )


def _class(positive: float) -> int:
    if 0.45 <= positive <= 0.55:
        return 1
    return 2 if positive > 0.5 else 0
