"""Doubles of language models: OpenAI and Azure, Anthropic, Gemini, Bedrock. VADER answers."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from aiohttp import web

from masa.doubles.models import Vader
from masa.doubles.sentiment import GOOGLE_FAULTS, google_error
from masa.doubles.server import KEY, Double, Handler

SHORT = {"positive": "pos", "negative": "neg", "neutral": "neu"}

LOGPROB = -0.25
"""The log-probability of every token that is written."""

MANY = 40
"""So many tokens of a prompt are found in the cache from the second call on."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a model says, and how it ends: stop, length, filter or refusal."""

    text: str
    ended: str = "stop"


@dataclass(frozen=True, slots=True)
class Counted:
    """The tokens of a call."""

    sent: int
    cached: int
    written: int
    received: int
    thought: int


class LanguageModel(Double):
    """What all of them share: the prompt ends with the text, and tokens are counted."""

    prices = (Fraction(1), Fraction("0.1"), Fraction("1.25"), Fraction(5))
    """money per million tokens: sent, found in the cache, written to it, received"""

    def __init__(self, **options: Any) -> None:
        self.vader = Vader()
        self.says: Callable[[str, str], Spoken] = lambda _text, label: Spoken(label)
        """what it says about a text that it takes for this label"""
        self.enforces_schemas = True
        self.refuses_temperature = False
        self.thinks = 0
        """tokens of thinking in every answer"""
        super().__init__(**options)

    def truth(self, text: str, *, updated: bool) -> str:
        """Give the label that it answers."""
        return SHORT[self.vader.sentiment(text, updated=updated)]

    def spoken(self, prompt: str, *, schema: bool) -> Spoken:
        """Say something about the text at the end of a prompt."""
        text = _text_in(prompt)
        said = self.says(text, self.truth(text, updated=self.updated))
        if schema and self.enforces_schemas and said.ended == "stop":
            return Spoken(json.dumps({"label": said.text}))
        return said

    def counted(self, prompt: str, said: str) -> Counted:
        """Count tokens: one for each word or sign."""
        sent = len(_tokens_in(prompt))
        many = min(MANY, sent)
        first = not self.calls
        return Counted(
            sent,
            0 if first else many,
            many if first else 0,
            max(1, len(_tokens_in(said))) + self.thinks,
            self.thinks,
        )

    def billed(self, counted: Counted, *, writing: bool) -> Fraction:
        """Give the money for so many tokens; some providers bill writing to the cache."""
        sent, cached, written, received = self.prices
        fresh = counted.sent - counted.cached - counted.written
        return (
            fresh * sent
            + counted.cached * cached
            + counted.written * (written if writing else sent)
            + counted.received * received
        ) / 1_000_000


class OpenAI(LanguageModel):
    """Chat completions and responses."""

    service = "openai"

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the paths of both, and that of Azure."""
        return [
            ("/v1/chat/completions", self._chat),
            ("/v1/responses", self._respond),
            ("/openai/deployments/{deployment}/chat/completions", self._chat),
        ]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of OpenAI's failures."""
        if fault == "throttled":
            response = self._error(429, "rate_limit_exceeded", "requests")
            response.headers["Retry-After"] = "0.02"
            return response
        if fault == "broken":
            return self._error(500, "", "server_error")
        return self._error(503, "", "service_unavailable")

    @staticmethod
    def _error(status: int, code: str, kind: str, message: str = "no") -> web.Response:
        error = {"message": message, "type": kind, "param": None, "code": code or None}
        return web.json_response({"error": error}, status=status)

    def _key(self, request: web.Request) -> bool:
        given = request.headers.get("api-key"), request.headers.get("Authorization")
        return KEY in (given[0], (given[1] or "").removeprefix("Bearer "))

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = body["messages"][-1]["content"]
        text = _text_in(prompt)
        if not self._key(request):
            self.refused([text], "wrong key")
            return self._error(401, "invalid_api_key", "invalid_request_error")
        if self.refuses_temperature and "temperature" in body:
            self.refused([text], "invalid")
            said_no = "Unsupported value: 'temperature' does not support 0.0 with this model."
            return self._error(400, "unsupported_value", "invalid_request_error", said_no)
        said = self.spoken(prompt, schema="response_format" in body)
        if said.ended == "prompt filter":
            self.refused([text], "filtered")
            return self._error(400, "content_filter", "invalid_request_error")
        counted = self.counted(prompt, said.text)
        message: dict[str, Any] = {"role": "assistant", "content": said.text, "refusal": None}
        ended = {"length": "length", "filter": "content_filter"}.get(said.ended, "stop")
        if said.ended == "refusal":
            message |= {"content": None, "refusal": said.text}
        choice = {"index": 0, "finish_reason": ended, "message": message, "logprobs": None}
        if body.get("logprobs"):
            more: dict[str, Any] = {"logprob": LOGPROB, "bytes": None, "top_logprobs": []}
            tokens = [{"token": part, **more} for part in _written(said.text)]
            choice["logprobs"] = {"content": tokens, "refusal": None}
        model = body.get("model") or request.match_info["deployment"]
        content = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": f"{model}-2026-01-01",
            "system_fingerprint": "fp_2" if self.updated else "fp_1",
            "choices": [choice],
            "usage": {
                "prompt_tokens": counted.sent,
                "completion_tokens": counted.received,
                "total_tokens": counted.sent + counted.received,
                "prompt_tokens_details": {"cached_tokens": counted.cached},
                "completion_tokens_details": {"reasoning_tokens": counted.thought},
            },
        }
        billed = self.billed(counted, writing=False)
        return await self.answered(request, [text], lambda: web.json_response(content), billed)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        text = _text_in(body["input"])
        if not self._key(request):
            self.refused([text], "wrong key")
            return self._error(401, "invalid_api_key", "invalid_request_error")
        said = self.spoken(body["input"], schema="format" in body.get("text", {}))
        counted = self.counted(body["input"], said.text)
        part: dict[str, Any] = {"type": "output_text", "text": said.text, "annotations": []}
        if said.ended == "refusal":
            part = {"type": "refusal", "refusal": said.text}
        message = {"type": "message", "id": "m", "status": "completed", "role": "assistant"}
        reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(said.ended)
        content = {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "model": f"{body['model']}-2026-01-01",
            "output": [
                {"type": "reasoning", "id": "r", "summary": []},
                {**message, "content": [part]},
            ],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": counted.sent,
                "input_tokens_details": {"cached_tokens": counted.cached},
                "output_tokens": counted.received,
                "output_tokens_details": {"reasoning_tokens": counted.thought},
                "total_tokens": counted.sent + counted.received,
            },
        }
        billed = self.billed(counted, writing=False)
        return await self.answered(request, [text], lambda: web.json_response(content), billed)


class AzureOpenAI(OpenAI):
    """The same at an address of one's own."""

    service = "azure-openai"


class Anthropic(LanguageModel):
    """Messages."""

    service = "anthropic"

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the path of messages."""
        return [("/v1/messages", self._handle)]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Anthropic's failures."""
        if fault == "throttled":
            response = self._error(429, "rate_limit_error")
            response.headers["Retry-After"] = "0.02"
            return response
        return self._error(*{"broken": (500, "api_error")}.get(fault, (529, "overloaded_error")))

    @staticmethod
    def _error(status: int, kind: str, message: str = "no") -> web.Response:
        error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "1"}
        return web.json_response(error, status=status)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = body["messages"][-1]["content"]
        if not isinstance(prompt, str):
            prompt = "".join(part["text"] for part in prompt)
        text = _text_in(prompt)
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if KEY not in (request.headers.get("x-api-key"), bearer):
            self.refused([text], "wrong key")
            return self._error(401, "authentication_error")
        newest = request.headers.get("anthropic-version", "") >= "2026-10-21"
        refuses = newest or self.refuses_temperature
        if refuses and {"temperature", "top_p", "top_k"} & set(body):
            self.refused([text], "invalid")
            said_no = "temperature: not supported by this model"
            return self._error(400, "invalid_request_error", said_no)
        said = self.spoken(prompt, schema="format" in body.get("output_config", {}))
        counted = self.counted(prompt, said.text)
        ended = {"length": "max_tokens", "refusal": "refusal", "filter": "refusal"}
        content = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": f"{body['model']}-20260101",
            "content": [{"type": "text", "text": said.text}],
            "stop_reason": ended.get(said.ended, "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": counted.sent - counted.cached - counted.written,
                "cache_read_input_tokens": counted.cached,
                "cache_creation_input_tokens": counted.written,
                "output_tokens": counted.received,
            },
        }
        billed = self.billed(counted, writing=True)
        return await self.answered(request, [text], lambda: web.json_response(content), billed)


class Gemini(LanguageModel):
    """generateContent."""

    service = "gemini"

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the path of generateContent."""
        paths = [f"/{version}/models/{{model}}:generateContent" for version in ("v1beta", "v1")]
        return [(path, self._handle) for path in paths]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Google's failures."""
        return google_error(*GOOGLE_FAULTS[fault])

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = body["contents"][-1]["parts"][0]["text"]
        text = _text_in(prompt)
        if request.headers.get("x-goog-api-key") != KEY:
            self.refused([text], "wrong key")
            return google_error(400, "INVALID_ARGUMENT", "API_KEY_INVALID")
        how = body.get("generationConfig", {})
        said = self.spoken(prompt, schema="responseSchema" in how)
        counted = self.counted(prompt, said.text)
        usage = {
            "promptTokenCount": counted.sent,
            "cachedContentTokenCount": counted.cached,
            "candidatesTokenCount": counted.received - counted.thought,
            "thoughtsTokenCount": counted.thought,
            "totalTokenCount": counted.sent + counted.received,
        }
        content: dict[str, Any] = {
            "modelVersion": f"{request.match_info['model']}-001",
            "usageMetadata": usage,
        }
        if said.ended == "prompt filter":
            content["promptFeedback"] = {"blockReason": "SAFETY"}
        else:
            ended = {"length": "MAX_TOKENS", "filter": "SAFETY", "refusal": "PROHIBITED_CONTENT"}
            candidate: dict[str, Any] = {
                "content": {"role": "model", "parts": [{"text": said.text}]},
                "finishReason": ended.get(said.ended, "STOP"),
                "index": 0,
            }
            if how.get("responseLogprobs"):
                tokens = [
                    {"token": part, "tokenId": 1, "logProbability": LOGPROB}
                    for part in _written(said.text)
                ]
                candidate["logprobsResult"] = {"chosenCandidates": tokens}
            content["candidates"] = [candidate]
        billed = self.billed(counted, writing=False)
        return await self.answered(request, [text], lambda: web.json_response(content), billed)


class Bedrock(LanguageModel):
    """Converse."""

    service = "bedrock"

    def routes(self) -> Sequence[tuple[str, Handler]]:
        """Give the path of Converse."""
        return [("/model/{model}/converse", self._handle)]

    def fail(self, fault: str) -> web.StreamResponse:
        """Write one of Amazon's failures."""
        return self._error(
            *{
                "throttled": (429, "ThrottlingException"),
                "broken": (500, "InternalServerException"),
            }.get(fault, (503, "ServiceUnavailableException"))
        )

    @staticmethod
    def _error(status: int, kind: str) -> web.Response:
        return web.json_response(
            {"message": "no"}, status=status, headers={"x-amzn-errortype": kind}
        )

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = body["messages"][-1]["content"][0]["text"]
        text = _text_in(prompt)
        if f"Credential={KEY}/" not in request.headers.get("Authorization", ""):
            self.refused([text], "wrong key")
            return self._error(403, "UnrecognizedClientException")
        said = self.spoken(prompt, schema="outputConfig" in body)
        counted = self.counted(prompt, said.text)
        ended = {"length": "max_tokens", "filter": "content_filtered"}
        ended["prompt filter"] = "guardrail_intervened"
        content = {
            "output": {"message": {"role": "assistant", "content": [{"text": said.text}]}},
            "stopReason": ended.get(said.ended, "end_turn"),
            "usage": {
                "inputTokens": counted.sent - counted.cached - counted.written,
                "cacheReadInputTokens": counted.cached,
                "cacheWriteInputTokens": counted.written,
                "outputTokens": counted.received,
                "totalTokens": counted.sent + counted.received,
            },
            "metrics": {"latencyMs": 9},
        }
        billed = self.billed(counted, writing=True)
        return await self.answered(request, [text], lambda: web.json_response(content), billed)


def _text_in(prompt: str) -> str:
    return prompt.rsplit("Text:\n", 1)[-1]


def _written(text: str) -> list[str]:
    """Split what a model said into tokens, with the spaces before them."""
    return re.findall(r"\s*(?:\w+|[^\w\s])", text)


def _tokens_in(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)
