"""A large language model used as a classifier, behind any endpoint that speaks OpenAI's chat completions."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from masa.clients import Context
from masa.clients.options import QUERIES_ONLY, Price, Settings, checked
from masa.clients.secrets import (
    Secrets,
    refuse_bad_address,
    refuse_bad_headers,
    refuse_literal_secrets,
)
from masa.clients.templates import check_places, filled, places, refuse_what_is_no_json, values_of
from masa.clients.web import Web
from masa.errors import ConfigError, Failed, MasaError, Refused
from masa.records import Item, Reply, billionths

PROMPT = """\
Classify the text below. Answer with exactly one of these labels and nothing else: {labels}

Text:
{input}"""

OVERHEAD = 200
"""Tokens that a chat format adds at the most to a few messages, for the worst price of a call."""


class Options(Settings):
    """The keys of `[api]` for `client = "openai"`."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    key: str = "${OPENAI_API_KEY}"
    headers: dict[str, str] = Field(default_factory=dict)
    system: str | None = None
    prompt: str = PROMPT
    labels: dict[str, str] = Field(default_factory=dict)
    """what the model may call a label -> what the data calls it"""
    structured: bool = False
    """ask for JSON with one of the labels, where the endpoint can be held to a schema"""
    logprobs: bool = False
    """ask for log-probabilities, of which the confidence is made"""
    temperature: float | None = 0.0
    seed: int | None = None
    max_tokens: int = Field(default=64, ge=1, le=100_000)
    max_tokens_key: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    extra: dict[str, Any] = Field(default_factory=dict)
    """more fields of the request, sent as they are"""
    input_price: float | None = Field(default=None, ge=0)
    output_price: float | None = Field(default=None, ge=0)
    """money a million tokens"""
    price: Price = None
    """money a call, where tokens are not billed"""
    timeout: float = Field(default=60.0, gt=0, le=3600)


class OpenAI:
    """A client of a chat endpoint: a prompt in, a label out."""

    def __init__(self, options: Options, context: Context) -> None:
        self._options = options
        self._secrets = Secrets(context.environment)
        self._labels = context.labels
        self.columns: Sequence[str] = [
            name for name in places(options.prompt) if name not in ("input", "labels")
        ]
        key = self._secrets.fill(options.key) if options.key else ""
        self._url = f"{self._secrets.fill(options.base_url).rstrip('/')}/chat/completions"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._headers |= {
            name: self._secrets.fill(value) for name, value in options.headers.items()
        }
        self._web = Web(timeout=options.timeout, secrets=self._secrets)
        self._known = {_plain(label): label for label in context.labels} | {
            _plain(k): v for k, v in options.labels.items()
        }
        self.priced = options.price != QUERIES_ONLY

    def describe(self) -> Mapping[str, Any]:
        """Tell the model, what it is asked and how it is understood."""
        options = self._options
        sampling = {
            "temperature": options.temperature,
            "seed": options.seed,
            "max_tokens": options.max_tokens,
            **options.extra,
        }
        return {
            "api": f"{options.base_url.rstrip('/')} {options.model}",
            "prompt": {"system": options.system, "prompt": options.prompt, **sampling},
            "parser": {"structured": options.structured, "labels": options.labels},
            "labels": list(self._labels),
        }

    async def ask(self, item: Item) -> Reply:
        """Send one prompt."""
        content = (
            await self._web.send("POST", self._url, headers=self._headers, body=self._request(item))
        ).content
        if (
            isinstance(content, dict)
            and "choices" not in content
            and isinstance(content.get("error"), dict)
        ):
            # Some gateways send errors with status 200.
            if str(content["error"].get("code")) == "429":
                raise Refused("error 429 in an answer")
            raise Failed("an error in place of an answer")
        try:
            choice = content["choices"][0]
            message = choice["message"]
            version = " ".join(
                str(part)
                for part in (content.get("model"), content.get("system_fingerprint"))
                if part
            )
            whole = not message.get("refusal") and choice.get("finish_reason") not in (
                "length",
                "content_filter",
            )
            label = self._read(message.get("content")) if whole else None
        except (LookupError, TypeError, AttributeError) as exc:
            raise Failed("an answer without choices") from exc
        return Reply(
            label,
            _confidence(choice),
            self._secrets.hide(version) or None,
            self._cost(content.get("usage")),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()

    def _request(self, item: Item) -> dict[str, Any]:
        options = self._options
        prompt = filled(options.prompt, {"labels": ", ".join(self._labels), **values_of(item)})
        system = [] if options.system is None else [{"role": "system", "content": options.system}]
        request: dict[str, Any] = {
            "model": options.model,
            "messages": [*system, {"role": "user", "content": prompt}],
            options.max_tokens_key: options.max_tokens,
        }
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.seed is not None:
            request["seed"] = options.seed
        if options.logprobs:
            request["logprobs"] = True
        if options.structured:
            properties = {"label": {"type": "string", "enum": list(self._labels)}}
            schema = {
                "type": "object",
                "properties": properties,
                "required": ["label"],
                "additionalProperties": False,
            }
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            }
        return request | options.extra

    def _read(self, text: object) -> str | None:
        """Find the label in what the model said: alone, or as the only one that is mentioned."""
        if not isinstance(text, str):
            return None
        if self._options.structured:
            try:
                text = json.loads(text)["label"]
            except (ValueError, LookupError, TypeError, RecursionError):
                return None
            if not isinstance(text, str):
                return None
        said = _plain(text)
        if said in self._known:
            return self._known[said]
        if self._options.structured:
            return None
        # The longest first, each taken out as it is found: "not spam" must not be heard as "spam" too.
        found = set()
        for name in sorted(self._known, key=len, reverse=True):
            pattern = rf"(?<!\w){re.escape(name)}(?!\w)" if name else "(?!)"
            if re.search(pattern, said):
                found.add(self._known[name])
                said = re.sub(pattern, " ", said)
        return found.pop() if len(found) == 1 else None

    def price(self, item: Item) -> int:
        """Bound the price of a call: no token is shorter than a byte."""
        if self._options.price is not None:
            return self._options.price if isinstance(self._options.price, int) else 0
        request = self._request(item)
        sent = len(json.dumps(request, ensure_ascii=False).encode()) + OVERHEAD
        # As it will be sent: `extra` may allow more tokens, or ask for several answers.
        most = max(_whole(request.get(key)) for key in ("max_completion_tokens", "max_tokens"))
        return self._priced(sent, most * max(1, _whole(request.get("n"))))

    def _cost(self, usage: object) -> int | None:
        if self._options.input_price is None or not isinstance(usage, dict):
            return None
        try:
            return self._priced(int(usage["prompt_tokens"]), int(usage["completion_tokens"]))
        except (LookupError, TypeError, ValueError, OverflowError, MasaError):
            return None

    def _priced(self, sent: int, received: int) -> int:
        per_token = ((self._options.input_price or 0.0), (self._options.output_price or 0.0))
        return billionths(
            f"{(max(sent, 0) * per_token[0] + max(received, 0) * per_token[1]) / 1e6:.15f}"
        )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _plain(text: str) -> str:
    """Take away what does not matter in an answer.

    >>> _plain('  "Positive." ')
    'positive'
    """
    return re.sub(r"\s+", " ", text).strip(" \"'`*.:,!").casefold()


def _confidence(choice: Mapping[str, Any]) -> float | None:
    """Give the probability of the whole answer, where the endpoint tells its tokens'."""
    try:
        tokens = [float(token["logprob"]) for token in choice["logprobs"]["content"]]
    except (LookupError, TypeError, ValueError, OverflowError):
        return None
    return math.exp(min(0.0, sum(tokens))) if tokens else None


def make(argument: str, options: Mapping[str, Any], context: Context) -> OpenAI:
    """Make the client from its options."""
    given = checked(Options, {"model": argument, **options} if argument else options, where="[api]")
    refuse_literal_secrets(
        {"key": given.key, "headers": given.headers, "extra": given.extra}, where="[api]"
    )
    refuse_bad_address(given.base_url, where="[api] base_url")
    refuse_bad_headers(given.headers)
    refuse_what_is_no_json(given.extra, where="[api] extra")
    twins = [
        label
        for label in context.labels
        if sum(_plain(label) == _plain(other) for other in context.labels) > 1
    ]
    if twins:
        raise ConfigError(
            f"the labels {', '.join(map(repr, twins[:2]))} cannot be told apart in what a model says",
            hint="rename one of them",
        )
    check_places(given.prompt, context.inputs, where="[api] prompt", extra=("labels",))
    if not [name for name in places(given.prompt) if name != "labels"]:
        raise ConfigError(
            "[api] prompt is the same for every item",
            hint="write {input} where the item's text belongs",
        )
    if not context.inputs:
        raise ConfigError(
            "the model has nothing to read",
            hint="name the input column: --input COL, or [data] input",
        )
    by_token = given.input_price is not None and given.output_price is not None
    if given.price is None and not by_token:
        hint = f'set input_price and output_price (money a million tokens), or price = "{QUERIES_ONLY}"'
        raise ConfigError("[api] does not say what tokens cost", hint=hint)
    return OpenAI(given, context)
