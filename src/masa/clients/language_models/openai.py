"""OpenAI's chat completions and responses, and every endpoint that speaks like them."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from masa.clients import Context
from masa.clients.language_models.confidence import CONFIDENCE, tokens_of
from masa.clients.language_models.model import (
    Filtered,
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
    refuse_bad_headers,
    refuse_literal_secrets,
    with_own_keys,
)
from masa.clients.unreadable import UNREADABLE
from masa.clients.web import Refusal, Web
from masa.errors import CallError, ConfigError, Failed, Fatal, Refused

BASE_URL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"

NO_CREDIT = (
    "insufficient_quota",
    "credit_balance_exhausted",
    "billing_hard_limit_reached",
    "billing_not_active",
)
NO_ENTRY = {
    "invalid_api_key": "does the key work?",
    "model_not_found": "is there such a model, and may the key use it?",
    "DeploymentNotFound": "is there such a deployment?",
    "account_deactivated": "the account was closed",
}
FILTERED = ("content_filter", "content_policy_violation", "invalid_prompt")

ENDED = {"length": "cut off", "content_filter": "filtered", "max_output_tokens": "cut off"}


class EndpointOptions(ModelOptions):
    """The keys of `[api]` that endpoints have which speak like OpenAI's."""

    headers: dict[str, str] = Field(default_factory=dict)
    """more headers of the request; ${NAME} is a variable"""
    logprobs: bool = False
    """ask for log-probabilities, from which the confidence is computed"""
    seed: int | None = None
    """of the model's own draws, as far as it keeps to one"""


class OpenAIOptions(EndpointOptions):
    """The keys of `[api]` for `client = "openai"`."""

    api: Literal["chat", "responses"] = "chat"
    """chat completions, or responses"""
    base_url: str = BASE_URL
    """another endpoint; its key must then be declared"""
    key: str = f"${{{KEY}}}"
    """the key, as ${NAME}; empty where the endpoint needs none"""
    max_tokens_key: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """what the endpoint calls the most tokens of an answer"""


class ChatModel(LanguageModel):
    """A client of chat completions."""

    limit = "max_completion_tokens"

    def __init__(
        self, options: EndpointOptions, context: Context, *, url: str, headers: Mapping[str, str]
    ) -> None:
        """Send to a URL, in which secrets may stand as ${NAME}, as in the headers."""
        super().__init__(options, context)
        self._chat = options
        self._secrets = Secrets(context, url)
        self._url = self._secrets.fill_address(url)
        self._headers = {
            name: filled
            for name, value in {**headers, **options.headers}.items()
            if (filled := self._secrets.fill(value)) not in ("", "Bearer ")
        }
        self.hide = self._secrets.hide
        self._web = Web(timeout=options.timeout, secrets=self._secrets, meaning=_meaning)

    def sampling(self) -> dict[str, Any]:
        """Give what else makes answers comparable."""
        return {**super().sampling(), "seed": self._chat.seed}

    def how_read(self) -> dict[str, Any]:
        """Say how answers are read, and of which tokens the confidence is."""
        return {**super().how_read(), **(CONFIDENCE if self._chat.logprobs else {})}

    def own_request(self, prompt: str) -> dict[str, Any]:
        """Write the body of the request, without `extra`."""
        options = self._chat
        messages = [{"role": "user", "content": prompt}]
        if options.system is not None:
            messages.insert(0, {"role": "system", "content": options.system})
        request: dict[str, Any] = {
            "model": options.model,
            "messages": messages,
            self.limit: options.max_tokens,
        }
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.seed is not None:
            request["seed"] = options.seed
        if options.logprobs:
            request["logprobs"] = True
        if options.structured:
            schema = {"name": "answer", "strict": True, "schema": self.schema()}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        return request

    async def said(self, request: dict[str, Any]) -> Said:
        """Send a request and read what the model said."""
        response = await self._web.send("POST", self._url, headers=self._headers, body=request)
        _refuse_errors(response.content)
        try:
            return self._found(response.content)
        except UNREADABLE as exc:
            raise Failed("an answer without choices") from exc

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()

    def _found(self, content: Any) -> Said:
        """Read an answer of chat completions."""
        choice = content["choices"][0]
        message = choice["message"]
        ended = ENDED.get(str(choice.get("finish_reason")), "")
        text = message.get("content")
        if message.get("refusal"):
            ended, text = "refused", message["refusal"]
        usage = content.get("usage")
        return Said(
            text if isinstance(text, str) else "",
            ended,
            self._version(content),
            _tokens(usage, "prompt", "completion"),
            tokens_of((choice.get("logprobs") or {}).get("content"), "logprob"),
        )

    def _version(self, content: Mapping[str, Any]) -> str | None:
        """Give the model and the fingerprint that answered."""
        named = (content.get("model"), content.get("system_fingerprint"))
        version = " ".join(str(part) for part in named if part)
        return self._secrets.hide(version) or None


class OpenAI(ChatModel):
    """A client of OpenAI, or of an endpoint that speaks like it."""

    name = "openai"

    def __init__(self, options: OpenAIOptions, context: Context) -> None:
        self._own = options
        self.limit = options.max_tokens_key
        path = "chat/completions"
        if options.api == "responses":
            self.limit = "max_output_tokens"
            path = "responses"
        context = with_own_keys(context, options.base_url, (KEY,), hosts=("api.openai.com",))
        headers = {"Authorization": f"Bearer {options.key}"} if options.key else {}
        url = f"{options.base_url.rstrip('/')}/{path}"
        super().__init__(options, context, url=url, headers=headers)

    @property
    def address(self) -> str:
        """Where the model is, without secrets."""
        address = self._own.base_url.rstrip("/")
        return f"{address}/responses" if self._own.api == "responses" else address

    def own_request(self, prompt: str) -> dict[str, Any]:
        """Write the body of the request, without `extra`."""
        if self._own.api == "chat":
            return super().own_request(prompt)
        options = self._own
        request: dict[str, Any] = {
            "model": options.model,
            "input": prompt,
            "max_output_tokens": options.max_tokens,
            "store": False,
        }
        if options.system is not None:
            request["instructions"] = options.system
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.logprobs:
            request["include"] = ["message.output_text.logprobs"]
        if options.structured:
            schema = {"type": "json_schema", "name": "answer", "strict": True}
            request["text"] = {"format": {**schema, "schema": self.schema()}}
        return request

    def _found(self, content: Any) -> Said:
        """Read an answer of either kind."""
        if self._own.api == "chat":
            return super()._found(content)
        ended = ""
        if content["status"] == "incomplete":
            reason = (content.get("incomplete_details") or {}).get("reason")
            ended = ENDED.get(str(reason), "cut off")
        elif content["status"] != "completed":
            raise Failed(f"an answer with the status {str(content['status'])[:20]}")
        text = ""
        logprobs: list[Any] = []
        for part in _parts(content):
            if part.get("type") == "refusal":
                ended, text = "refused", str(part.get("refusal", ""))
            elif part.get("type") == "output_text":
                text += str(part["text"])
                logprobs += part.get("logprobs") or []
        return Said(
            text,
            ended,
            self._version(content),
            _tokens(content.get("usage"), "input", "output"),
            tokens_of(logprobs, "logprob"),
        )


def _parts(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the parts of the message in an answer of responses."""
    return [
        part
        for output in content["output"]
        if output.get("type") == "message"
        for part in output["content"]
    ]


def _refuse_errors(content: Any) -> None:
    """Raise for an error that a gateway sent with status 200, as some do."""
    if not isinstance(content, dict) or "choices" in content or "output" in content:
        return
    error = content.get("error")
    if isinstance(error, dict):
        if str(error.get("code")) == "429":
            raise Refused("error 429 in an answer")
        raise Failed("an error in place of an answer")


def _meaning(found: Refusal) -> CallError | None:
    """Translate OpenAI's codes, which Azure uses, too."""
    error = found.content.get("error") if isinstance(found.content, dict) else None
    if not isinstance(error, dict):
        return None
    code, kind = str(error.get("code") or ""), str(error.get("type") or "")
    if code in FILTERED:
        return Filtered(f"HTTP {found.status} {code}", said=found.text)
    if code in NO_CREDIT or kind in NO_CREDIT:
        return Fatal(
            f"HTTP {found.status}, no credit left",
            hint="top up the account",
            billed=False,
        )
    if code in NO_ENTRY:
        hint = f"{NO_ENTRY[code]} The server said: {found.text}"
        return Fatal(f"HTTP {found.status} {code}", hint=hint, billed=False)
    return refuses_temperature(found)


def _tokens(usage: object, sent: str, received: str) -> Tokens | None:
    """Read how many tokens an endpoint counted; thinking is part of what was received."""
    if not isinstance(usage, dict):
        return None
    try:
        details = usage.get(f"{sent}_tokens_details") or {}
        return Tokens(
            int(usage[f"{sent}_tokens"]),
            int(usage[f"{received}_tokens"]),
            cached=int(details.get("cached_tokens") or 0),
        )
    except UNREADABLE:
        return None


def make(argument: str, options: Mapping[str, Any], context: Context) -> OpenAI:
    """Make the client from its options."""
    given = model_options(OpenAIOptions, argument, options, context)
    refuse_literal_secrets(
        {"key": given.key, "headers": given.headers, "extra": given.extra}, where="[api]"
    )
    refuse_bad_address(given.base_url, where="[api] base_url")
    if given.api == "responses" and given.seed is not None:
        raise ConfigError(
            "[api] has a seed, which the responses API does not take",
            hint='leave seed out, or set api = "chat"',
        )
    refuse_bad_headers(given.headers)
    return OpenAI(given, context)
