"""Google's Gemini: generateContent."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from masa.clients import Context
from masa.clients.language_models.confidence import CONFIDENCE, Token, tokens_of
from masa.clients.language_models.model import LanguageModel, ModelOptions, Said, model_options
from masa.clients.prices import Tokens
from masa.clients.secrets import (
    Secrets,
    refuse_bad_address,
    refuse_literal_secrets,
    with_own_keys,
)
from masa.clients.services.google_sdk import of_status
from masa.clients.unreadable import UNREADABLE
from masa.clients.web import Refusal, Web
from masa.errors import CallError, Failed

BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
KEY = "GEMINI_API_KEY"

FILTERED = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE")


class GeminiOptions(ModelOptions):
    """The keys of `[api]` for `client = "gemini"`."""

    base_url: str = BASE_URL
    """another address; the key must then be declared"""
    key: str = f"${{{KEY}}}"
    """the key, as ${NAME}"""
    seed: int | None = None
    """of the model's own draws, as far as it keeps to one"""
    logprobs: bool = False
    """ask for log-probabilities, from which the confidence is computed"""
    thinking_budget: int | None = None
    """tokens of thinking at most; 0 for none, where the model allows it"""
    thinking_level: str | None = None
    """such as low, for models that take a level in place of a budget"""


class Gemini(LanguageModel):
    """A client of generateContent."""

    name = "gemini"
    limit = "maxOutputTokens"

    def __init__(self, options: GeminiOptions, context: Context) -> None:
        super().__init__(options, context)
        self._own = options
        hosts = ("generativelanguage.googleapis.com",)
        context = with_own_keys(context, options.base_url, (KEY,), hosts=hosts)
        secrets = Secrets(context, options.base_url)
        self.hide = secrets.hide
        base = secrets.fill_address(options.base_url).rstrip("/")
        self._url = f"{base}/models/{quote(options.model, safe='')}:generateContent"
        self._headers = {"x-goog-api-key": secrets.fill(options.key)}
        self._web = Web(timeout=options.timeout, secrets=secrets, meaning=_meaning)

    @property
    def address(self) -> str:
        """Where the model is, without secrets."""
        return self._own.base_url.rstrip("/")

    def sampling(self) -> dict[str, Any]:
        """Give what else makes answers comparable."""
        return {**super().sampling(), "seed": self._own.seed, "thinking": self._thinking()}

    def how_read(self) -> dict[str, Any]:
        """Say how answers are read, and of which tokens the confidence is."""
        return {**super().how_read(), **(CONFIDENCE if self._own.logprobs else {})}

    def _thinking(self) -> dict[str, Any]:
        given = {
            "thinkingBudget": self._own.thinking_budget,
            "thinkingLevel": self._own.thinking_level,
        }
        return {name: value for name, value in given.items() if value is not None}

    def own_request(self, prompt: str) -> dict[str, Any]:
        """Write the body of the request, without `extra`."""
        options = self._own
        how: dict[str, Any] = {"maxOutputTokens": options.max_tokens, "candidateCount": 1}
        if options.temperature is not None:
            how["temperature"] = options.temperature
        if options.seed is not None:
            how["seed"] = options.seed
        if options.logprobs:
            how["responseLogprobs"] = True
        if thinking := self._thinking():
            how["thinkingConfig"] = thinking
        if options.structured:
            label = {"type": "STRING", "enum": list(self.labels)}
            how["responseMimeType"] = "application/json"
            how["responseSchema"] = {
                "type": "OBJECT",
                "properties": {"label": label},
                "required": ["label"],
            }
        request: dict[str, Any] = {
            "contents": [{"role": "user", "parts": [{"text": prompt}]}],
            "generationConfig": how,
        }
        if options.system is not None:
            request["systemInstruction"] = {"parts": [{"text": options.system}]}
        return request

    async def said(self, request: dict[str, Any]) -> Said:
        """Send a request and read what the model said."""
        response = await self._web.send("POST", self._url, headers=self._headers, body=request)
        content = response.content
        try:
            version = self.hide(str(content.get("modelVersion") or "")) or None
            tokens = _tokens(content.get("usageMetadata"))
            if (content.get("promptFeedback") or {}).get("blockReason"):
                return Said("", "filtered", version, tokens)
            candidate = content["candidates"][0]
            parts = (candidate.get("content") or {}).get("parts") or []
            text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
            return Said(text, _ended(candidate), version, tokens, _written(candidate))
        except UNREADABLE as exc:
            raise Failed("an answer without candidates") from exc

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()


def _ended(candidate: Mapping[str, Any]) -> str:
    """Say why an answer is not whole."""
    reason = candidate.get("finishReason")
    if reason in FILTERED:
        return "filtered"
    return "cut off" if reason == "MAX_TOKENS" else ""


def _written(candidate: Mapping[str, Any]) -> tuple[Token, ...]:
    """Give the tokens of an answer, if their log-probabilities were asked for."""
    found = candidate.get("logprobsResult") or {}
    return tokens_of(found.get("chosenCandidates"), "logProbability")


def _tokens(usage: object) -> Tokens | None:
    """Read how many tokens were counted: those of thinking are counted apart, and billed."""
    if not isinstance(usage, dict):
        return None
    try:
        return Tokens(
            int(usage["promptTokenCount"]) + int(usage.get("toolUsePromptTokenCount") or 0),
            int(usage.get("candidatesTokenCount") or 0) + int(usage.get("thoughtsTokenCount") or 0),
            cached=int(usage.get("cachedContentTokenCount") or 0),
        )
    except UNREADABLE:
        return None


def _meaning(found: Refusal) -> CallError | None:
    """Translate Google's form of errors."""
    error = found.content.get("error") if isinstance(found.content, dict) else None
    if not isinstance(error, dict):
        return None
    reason, metadata = "", {}
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        if not isinstance(detail, dict):
            continue
        reason = reason or str(detail.get("reason") or "")
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else []:
            metadata["quota_id"] = str(violation.get("quotaId") or "")
    reason = reason or str(error.get("status") or "")
    return of_status(found.status, reason, metadata, found.text, found.retry_after)


def make(argument: str, options: Mapping[str, Any], context: Context) -> Gemini:
    """Make the client from its options."""
    given = model_options(GeminiOptions, argument, options, context)
    refuse_literal_secrets({"key": given.key, "extra": given.extra}, where="[api]")
    refuse_bad_address(given.base_url, where="[api] base_url")
    return Gemini(given, context)
