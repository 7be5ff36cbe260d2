"""Anthropic's messages."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from masa.clients import Context
from masa.clients.language_models.model import (
    LanguageModel,
    ModelOptions,
    Said,
    model_options,
    refuses_temperature,
)
from masa.clients.prices import Tokens
from masa.clients.secrets import (
    Secrets,
    refuse_bad_address,
    refuse_literal_secrets,
    with_own_keys,
)
from masa.clients.unreadable import UNREADABLE
from masa.clients.web import Refusal, Web
from masa.errors import CallError, ConfigError, Failed, Fatal, Refused

BASE_URL = "https://api.anthropic.com"
KEY = "ANTHROPIC_API_KEY"

ENDED = {
    "max_tokens": "cut off",
    "model_context_window_exceeded": "cut off",
    "refusal": "refused",
}

NO_ENTRY = {
    "authentication_error": "does the key work?",
    "billing_error": "is there credit left?",
    "not_found_error": "is there such a model?",
}


class AnthropicOptions(ModelOptions):
    """The keys of `[api]` for `client = "anthropic"`."""

    base_url: str = BASE_URL
    """another address; the key must then be declared"""
    key: str = f"${{{KEY}}}"
    """the key, as ${NAME}"""
    version: str = "2023-06-01"
    """of the API: from 2026-10-21 on it refuses a temperature, which must then be left out"""


class Anthropic(LanguageModel):
    """A client of messages."""

    name = "anthropic"
    write_factor = Fraction("1.25")

    def __init__(self, options: AnthropicOptions, context: Context) -> None:
        super().__init__(options, context)
        self._own = options
        context = with_own_keys(context, options.base_url, (KEY,), hosts=("api.anthropic.com",))
        secrets = Secrets(context, options.base_url)
        self.hide = secrets.hide
        self._url = f"{secrets.fill_address(options.base_url).rstrip('/')}/v1/messages"
        self._headers = {
            "anthropic-version": options.version,
            "x-api-key": secrets.fill(options.key),
        }
        self._web = Web(timeout=options.timeout, secrets=secrets, meaning=_meaning)

    @property
    def address(self) -> str:
        """Where the model is, without secrets."""
        return f"{self._own.base_url.rstrip('/')} {self._own.version}"

    def own_request(self, prompt: str) -> dict[str, Any]:
        """Write the body of the request, without `extra`."""
        options = self._own
        request: dict[str, Any] = {
            "model": options.model,
            "max_tokens": options.max_tokens,
            "messages": [{"role": "user", "content": prompt}],
        }
        if options.system is not None:
            request["system"] = options.system
        if options.temperature is not None and options.version < "2026-10-21":
            request["temperature"] = options.temperature
        if options.structured:
            request["output_config"] = {"format": {"type": "json_schema", "schema": self.schema()}}
        return request

    async def said(self, request: dict[str, Any]) -> Said:
        """Send a request and read what the model said."""
        response = await self._web.send("POST", self._url, headers=self._headers, body=request)
        content = response.content
        try:
            parts = [part["text"] for part in content["content"] if part["type"] == "text"]
            version = self.hide(str(content["model"])) or None
            ended = ENDED.get(str(content.get("stop_reason")), "")
            return Said("".join(parts), ended, version, _tokens(content.get("usage")))
        except UNREADABLE as exc:
            raise Failed("an answer without content") from exc

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()


def _tokens(usage: object) -> Tokens | None:
    """Read how many tokens were counted: what was cached is not among the input tokens here."""
    if not isinstance(usage, dict):
        return None
    try:
        cached = int(usage.get("cache_read_input_tokens") or 0)
        written = int(usage.get("cache_creation_input_tokens") or 0)
        sent = int(usage["input_tokens"]) + cached + written
        return Tokens(sent, int(usage["output_tokens"]), cached, written)
    except UNREADABLE:
        return None


def _meaning(found: Refusal) -> CallError | None:
    """Translate Anthropic's types of errors."""
    error = found.content.get("error") if isinstance(found.content, dict) else None
    if not isinstance(error, dict):
        return None
    kind, message = str(error.get("type", "")), str(error.get("message", ""))
    details = error.get("details")
    code = str(details.get("error_code", "")) if isinstance(details, dict) else ""
    named = f"HTTP {found.status} {kind}"
    if code == "enforced_spend_limit_reached" or "credit balance is too low" in message:
        return Fatal(f"{named}, no credit left", hint="raise the limit, or top up", billed=False)
    if kind in NO_ENTRY:
        hint = f"{NO_ENTRY[kind]} The server said: {found.text}"
        return Fatal(named, hint=hint, billed=False)
    if kind == "rate_limit_error":
        return Refused(named, retry_after=found.retry_after)
    if kind == "overloaded_error":
        return Failed(named, overloaded=True, billed=False, retry_after=found.retry_after)
    return refuses_temperature(found)


def _refuse_long_cache(content: Any) -> None:
    """Raise where the cache is to be kept for an hour: that has a price of its own."""
    if isinstance(content, Mapping):
        if content.get("ttl") not in (None, "5m"):
            raise ConfigError(
                f"[api] extra: masa does not know the price of a cache with ttl {content['ttl']!r}",
                hint='leave ttl out, or set price = "queries-only"',
            )
        for part in content.values():
            _refuse_long_cache(part)
    elif isinstance(content, list):
        for part in content:
            _refuse_long_cache(part)


def make(argument: str, options: Mapping[str, Any], context: Context) -> Anthropic:
    """Make the client from its options."""
    given = model_options(AnthropicOptions, argument, options, context)
    refuse_literal_secrets({"key": given.key, "extra": given.extra}, where="[api]")
    refuse_bad_address(given.base_url, where="[api] base_url")
    if given.price is None:
        _refuse_long_cache(given.extra)
    return Anthropic(given, context)
