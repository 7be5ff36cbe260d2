"""A large language model as a classifier, behind any endpoint that speaks OpenAI's chat API."""

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from masa.clients import Context
from masa.clients.options import QUERIES_ONLY, OptionsModel, Price, checked, whole_price
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
"""The most tokens that a chat format adds to a few messages, for the highest price of a call."""

CUT_SHORT = ("length", "content_filter")
"""Reasons to finish that mean that the answer is not complete."""


BASE_URL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"


class OpenAIOptions(OptionsModel):
    """The keys of `[api]` for `client = "openai"`."""

    model: str
    base_url: str = BASE_URL
    key: str = f"${{{KEY}}}"
    headers: dict[str, str] = Field(default_factory=dict)
    system: str | None = None
    prompt: str = PROMPT
    labels: dict[str, str] = Field(default_factory=dict)
    """what the model may call a label -> what the data calls it"""
    structured: bool = False
    """ask for JSON with one of the labels, where the endpoint can enforce a schema"""
    logprobs: bool = False
    """ask for log-probabilities, from which the confidence is computed"""
    temperature: float | None = 0.0
    seed: int | None = None
    max_tokens: int = Field(default=64, ge=1, le=100_000)
    max_tokens_key: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    extra: dict[str, Any] = Field(default_factory=dict)
    """more fields of the request, sent as they are"""
    input_price: float | None = Field(default=None, ge=0)
    output_price: float | None = Field(default=None, ge=0)
    """money per million tokens"""
    price: Price = None
    """money per call, where tokens are not billed"""
    timeout: float = Field(default=60.0, gt=0, le=3600)


class OpenAI:
    """A client of a chat endpoint: a prompt in, a label out."""

    def __init__(self, options: OpenAIOptions, context: Context) -> None:
        self._options = options
        self._secrets = Secrets(_with_own_key(context, options), options.base_url)
        self._labels = context.labels
        self.columns: Sequence[str] = [
            name for name in places(options.prompt) if name not in ("input", "labels")
        ]
        self._headers: dict[str, str] = {}
        if key := self._secrets.fill(options.key):
            self._headers["Authorization"] = f"Bearer {key}"
        self._url = f"{self._secrets.fill_address(options.base_url).rstrip('/')}/chat/completions"
        for name, value in options.headers.items():
            self._headers[name] = self._secrets.fill(value)
        self._web = Web(timeout=options.timeout, secrets=self._secrets)
        self._label_of = {_simplified(label): label for label in context.labels}
        for name, label in options.labels.items():
            self._label_of[_simplified(name)] = label
        self.priced = options.price != QUERIES_ONLY

    def describe(self) -> Mapping[str, Any]:
        """Describe the model, what it is asked and how its answer is read."""
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
        request = self._request(item)
        response = await self._web.send("POST", self._url, headers=self._headers, body=request)
        content = response.content
        _refuse_errors(content)
        try:
            choice = content["choices"][0]
            message = choice["message"]
            named = (content.get("model"), content.get("system_fingerprint"))
            version = " ".join(str(part) for part in named if part)
            label = None
            if not message.get("refusal") and choice.get("finish_reason") not in CUT_SHORT:
                label = self._read(message.get("content"))
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
        """Write the body of the request about an item."""
        options = self._options
        prompt = filled(options.prompt, {"labels": ", ".join(self._labels), **values_of(item)})
        messages = [{"role": "user", "content": prompt}]
        if options.system is not None:
            messages.insert(0, {"role": "system", "content": options.system})
        request: dict[str, Any] = {
            "model": options.model,
            "messages": messages,
            options.max_tokens_key: options.max_tokens,
        }
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.seed is not None:
            request["seed"] = options.seed
        if options.logprobs:
            request["logprobs"] = True
        if options.structured:
            request["response_format"] = self._response_format()
        return request | options.extra

    def _response_format(self) -> dict[str, Any]:
        """Write the schema of an object with one of the labels."""
        schema = {
            "type": "object",
            "properties": {"label": {"type": "string", "enum": list(self._labels)}},
            "required": ["label"],
            "additionalProperties": False,
        }
        return {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        }

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
            return self._label_of.get(_simplified(text))
        said = _simplified(text)
        if said in self._label_of:
            return self._label_of[said]
        # The longest name first, and each is removed when found: "not spam" also contains "spam".
        mentioned = set()
        for name in sorted(self._label_of, key=len, reverse=True):
            if not name:
                continue
            pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
            if re.search(pattern, said):
                mentioned.add(self._label_of[name])
                said = re.sub(pattern, " ", said)
        if len(mentioned) == 1:
            return mentioned.pop()
        return None

    def price(self, item: Item) -> int:
        """Return the most that a call may cost. No token is shorter than a byte."""
        if self._options.price is not None:
            return whole_price(self._options.price)
        request = self._request(item)
        sent = len(json.dumps(request, ensure_ascii=False).encode()) + OVERHEAD
        # From the request as it will be sent: `extra` may allow more tokens or several answers.
        tokens = max(_integer(request.get(key)) for key in ("max_completion_tokens", "max_tokens"))
        return self._priced(sent, tokens * max(1, _integer(request.get("n"))))

    def _cost(self, usage: object) -> int | None:
        """Return what a call cost, by the tokens that the endpoint counted."""
        if self._options.input_price is None or not isinstance(usage, dict):
            return None
        try:
            return self._priced(int(usage["prompt_tokens"]), int(usage["completion_tokens"]))
        except (LookupError, TypeError, ValueError, OverflowError, MasaError):
            return None

    def _priced(self, sent: int, received: int) -> int:
        """Return the price of so many tokens, in billionths."""
        input_price = self._options.input_price or 0.0
        output_price = self._options.output_price or 0.0
        money = (max(sent, 0) * input_price + max(received, 0) * output_price) / 1e6
        return billionths(f"{money:.15f}")


def _with_own_key(context: Context, options: OpenAIOptions) -> Context:
    """Let OpenAI's key go to OpenAI without a declaration, and nowhere else."""
    if options.base_url != BASE_URL or KEY in context.environment:
        return context
    key = os.environ.get(KEY, "")
    return replace(context, environment={**context.environment, KEY: key})


def _refuse_errors(content: Any) -> None:
    """Raise for an error that a gateway sent with status 200, as some do."""
    if not isinstance(content, dict) or "choices" in content:
        return
    error = content.get("error")
    if isinstance(error, dict):
        if str(error.get("code")) == "429":
            raise Refused("error 429 in an answer")
        raise Failed("an error in place of an answer")


def _integer(value: object) -> int:
    if isinstance(value, int):
        return value
    return 0


def _simplified(text: str) -> str:
    """Remove what does not matter in an answer: case, spaces, quotes and punctuation around it.

    >>> _simplified('  "Positive." ')
    'positive'
    """
    return re.sub(r"\s+", " ", text).strip(" \"'`*.:,!").casefold()


def _confidence(choice: Mapping[str, Any]) -> float | None:
    """Return the probability of the whole answer, if the endpoint gives those of its tokens."""
    try:
        tokens = [float(token["logprob"]) for token in choice["logprobs"]["content"]]
    except (LookupError, TypeError, ValueError, OverflowError):
        return None
    if not tokens:
        return None
    return math.exp(min(0.0, sum(tokens)))


def make(argument: str, options: Mapping[str, Any], context: Context) -> OpenAI:
    """Make the client from its options."""
    if argument:
        options = {"model": argument, **options}
    given = checked(OpenAIOptions, options, where="[api]")
    refuse_literal_secrets(
        {"key": given.key, "headers": given.headers, "extra": given.extra}, where="[api]"
    )
    refuse_bad_address(given.base_url, where="[api] base_url")
    refuse_bad_headers(given.headers)
    refuse_what_is_no_json(given.extra, where="[api] extra")
    _refuse_similar_labels(context.labels)
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
        raise ConfigError(
            "[api] does not say what tokens cost",
            hint="set input_price and output_price (money per million tokens), "
            f'or price = "{QUERIES_ONLY}"',
        )
    return OpenAI(given, context)


def _refuse_similar_labels(labels: Sequence[str]) -> None:
    simplified = [_simplified(label) for label in labels]
    twins = [label for label in labels if simplified.count(_simplified(label)) > 1]
    if twins:
        raise ConfigError(
            f"the labels {', '.join(map(repr, twins[:2]))} cannot be told apart "
            "in what a model says",
            hint="rename one of them",
        )
