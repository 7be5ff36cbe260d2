"""What all language models share: the prompt, what may be said, the price of tokens, the answer."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from masa.clients import Context
from masa.clients.language_models.confidence import Token, confidence
from masa.clients.language_models.reading import Reading, read, read_at, read_json, simplified
from masa.clients.language_models.requests import check_extra, merged, most_received
from masa.clients.options import (
    QUERIES_ONLY,
    OptionsModel,
    Price,
    checked,
    refuse_misspelled,
    whole_price,
)
from masa.clients.prices import LOOKED_UP, TokenPrices, Tokens, model_prices
from masa.clients.templates import (
    Path,
    check_places,
    filled,
    places,
    refuse_what_is_no_json,
    values_of,
)
from masa.clients.web import Refusal
from masa.errors import ConfigError, Fatal, Rejected
from masa.records import Item, Reply

PROMPT = """\
Classify the text below. Answer with exactly one of these labels and nothing else: {labels}

Text:
{input}"""

READING = 6
"""The version of `read`: answers that were read in another way are not compared."""

OVERHEAD = 200
"""The most tokens that a chat format adds to a few messages, for the highest price of a call."""

DEFAULT = "default"
"""What a user writes for the model's own temperature."""

Temperature = Annotated[
    float | None, BeforeValidator(lambda given: None if given == DEFAULT else given)
]

M = TypeVar("M", bound="ModelOptions")


class ModelOptions(OptionsModel):
    """The keys of `[api]` that all language models have."""

    model: str
    """the provider's name for it"""
    system: str | None = None
    """instructions apart from the prompt"""
    prompt: str = PROMPT
    """what it is asked, with {input} or {column}, and {labels}"""
    labels: dict[str, str] = Field(default_factory=dict)
    """what the model may call a label -> what the data calls it"""
    label: str | None = None
    """the path to the label in an answer that is JSON, where the prompt asks for such answers"""
    structured: bool = False
    """ask for JSON with one of the labels, where the endpoint can enforce a schema"""
    temperature: Temperature = 0.0
    """how random answers are; `default` sends none, as some models refuse every one"""
    max_tokens: int = Field(default=64, ge=1, le=100_000)
    """of an answer; thinking counts, so models that think need more"""
    extra: dict[str, Any] = Field(default_factory=dict)
    """more fields of the request; those of a table are added to the table of that name"""
    input_price: float | None = Field(default=None, ge=0)
    """money per million tokens sent"""
    output_price: float | None = Field(default=None, ge=0)
    """money per million tokens received, with those of thinking"""
    cached_price: float | None = Field(default=None, ge=0)
    """money per million tokens found in the cache"""
    cache_write_price: float | None = Field(default=None, ge=0)
    """money per million tokens written to the cache"""
    price: Price = None
    """money per call where tokens are not billed, or `queries-only`"""
    timeout: float = Field(default=60.0, gt=0, le=3600)
    """seconds after which a call has failed"""


@dataclass(frozen=True, slots=True)
class Said:
    """What a model said, in the same form for all providers."""

    text: str
    ended: str = ""
    """why it is not a whole answer: refused, filtered or cut off; else empty"""
    version: str | None = None
    tokens: Tokens | None = None
    written: tuple[Token, ...] = ()
    """the tokens of the text with their log-probabilities, where the provider gives them"""


class Filtered(Rejected):
    """The provider's content filter stopped the prompt: that is an answer, and no failure."""


class LanguageModel(ABC):
    """A client of a language model: a prompt in, a label out."""

    name = ""
    batch = 1
    limit = "max_tokens"
    """what the provider calls the most tokens of an answer"""
    write_factor = Fraction(1)
    """the price of a token that is written to the cache, over that of one that is sent"""

    def __init__(self, options: ModelOptions, context: Context) -> None:
        self._options = options
        self.labels = context.labels
        self.columns: Sequence[str] = [
            name for name in places(options.prompt) if name not in ("input", "labels")
        ]
        self.priced = options.price != QUERIES_ONLY
        self._prices = _token_prices(options, self.write_factor)
        by_table = self._prices is not None and options.input_price is None
        check_extra(options.extra, priced_by_table=by_table)
        self._densest = 0.0
        """the most tokens for a byte of a request that any answer told of"""
        self._path = None if options.label is None else Path(options.label)
        self.hide: Callable[[str], str] = str
        """removes secrets from what is shown: a server may send a key back"""
        refuse_misspelled(options.labels, context.labels)
        self._label_of = {simplified(label): label for label in context.labels}
        for name, label in options.labels.items():
            self._label_of[simplified(name)] = label

    @property
    @abstractmethod
    def address(self) -> str:
        """Where the model is, without secrets."""

    @abstractmethod
    def own_request(self, prompt: str) -> dict[str, Any]:
        """Write the request as the options say, without the fields of `extra`."""

    @abstractmethod
    async def said(self, request: dict[str, Any]) -> Said:
        """Send a request and read what the model said."""

    @abstractmethod
    async def close(self) -> None:
        """Close connections."""

    def sampling(self) -> dict[str, Any]:
        """Give what else makes answers comparable."""
        options = self._options
        return {"temperature": options.temperature, "max_tokens": options.max_tokens}

    def describe(self) -> Mapping[str, Any]:
        """Describe the model, what it is asked and how its answer is read."""
        options = self._options
        return {
            "api": f"{self.address} {options.model}",
            "prompt": {
                "system": options.system,
                "prompt": options.prompt,
                **self.sampling(),
                **options.extra,
            },
            "parser": {
                "structured": options.structured,
                "labels": options.labels,
                **self.how_read(),
            },
            "labels": list(self.labels),
        }

    async def ask(self, item: Item) -> Reply:
        """Send one prompt."""
        request = self.request(self._prompt(item))
        try:
            said = await self.said(request)
        except Filtered as exc:
            cost = self._cost_of_sending(request)
            return Reply(None, cost=cost, unread="filtered", said=exc.said or None)
        reading = self._read(said)
        cost = None
        if said.tokens is not None and self._prices is not None:
            cost = self._prices.cost(said.tokens)
            size = _size(request)
            self._densest = max(self._densest, min(said.tokens.sent, size) / size)
        return Reply(
            reading.label,
            confidence(said.written, reading.label, self._label_of),
            said.version,
            cost,
            unread=reading.unread,
            said=self.hide(said.text),
        )

    def request(self, prompt: str) -> dict[str, Any]:
        """Write the request."""
        request = merged(self.own_request(prompt), self._options.extra)
        if self._prices is not None and not most_received(request, self.limit):
            raise ConfigError(
                "[api] extra takes away the limit of the tokens of an answer",
                hint="leave that field out, and set max_tokens",
            )
        return request

    def price(self, item: Item) -> int:
        """Return the most that a call may cost. No token is shorter than a byte."""
        if self._prices is None:
            return whole_price(self._options.price)
        request = self.request(self._prompt(item))
        dearest = TokenPrices(self._prices.dearest_input, self._prices.output)
        return dearest.cost(Tokens(_size(request), most_received(request, self.limit)))

    def _cost_of_sending(self, request: dict[str, Any]) -> int | None:
        """Return the most that a prompt costs that nothing was written to.

        The provider then says nothing of tokens: there are as many for a byte as in others.
        """
        if self._prices is None:
            return None
        sent = ceil((self._densest or 1.0) * _size(request))
        return self._prices.cost(Tokens(sent, 0))

    def schema(self) -> dict[str, Any]:
        """Write the schema of an object with one of the labels."""
        return {
            "type": "object",
            "properties": {"label": {"type": "string", "enum": list(self.labels)}},
            "required": ["label"],
            "additionalProperties": False,
        }

    def _prompt(self, item: Item) -> str:
        values = {"labels": ", ".join(self.labels), **values_of(item)}
        return str(filled(self._options.prompt, values))

    def how_read(self) -> dict[str, Any]:
        """Say how answers are read: another way would look like another model."""
        if self._options.label is not None:
            return {"label": self._options.label}
        return {} if self._options.structured else {"reading": READING}

    def _read(self, said: Said) -> Reading:
        if said.ended:
            return Reading(None, said.ended)
        if self._path is not None:
            return read_at(said.text, self._path, self._label_of)
        if self._options.structured:
            return read_json(said.text, self._label_of)
        return read(said.text, self._label_of)

    def cut_short(self, unread: str) -> str:
        """Say in words where answers were cut off, for a summary of a run."""
        if unread == "cut off":
            return f" at max_tokens = {self._options.max_tokens}"
        return ""

    def advice(self, unread: str) -> str:
        """Say what to change where most answers cannot be read for one reason."""
        if unread == "cut off":
            return "raise max_tokens in [api]: answers are cut off"
        if unread == "not the JSON" and self._path is not None:
            return (
                "label in [api] is a path into JSON, and the answers are none: does the prompt ask "
                "for JSON with it?"
            )
        if unread == "not the JSON":
            return (
                "the endpoint ignores structured = true: its answers are not the JSON that was "
                "asked for; leave structured out"
            )
        return ""


def _size(request: dict[str, Any]) -> int:
    """Give the most tokens that a request may have: no token is shorter than a byte."""
    return len(json.dumps(request, ensure_ascii=False).encode()) + OVERHEAD


def _token_prices(options: ModelOptions, write_factor: Fraction) -> TokenPrices | None:
    """Give the prices of tokens: the user's, or those of the table; None where calls are priced.

    The table's prices of the cache hold as long as the user has no other price of input.
    """
    if options.price is not None:
        return None
    prices = known = model_prices(options.model)
    if options.input_price is not None:
        sent, received = _exact(options.input_price), _exact(options.output_price or 0.0)
        if known is not None and sent == known.input:
            prices = replace(known, output=received)
        else:
            prices = TokenPrices(sent, received, written=write_factor * sent)
    if prices is not None and options.cached_price is not None:
        prices = replace(prices, cached=_exact(options.cached_price))
    if prices is not None and options.cache_write_price is not None:
        prices = replace(prices, written=_exact(options.cache_write_price))
    return prices


def _exact(price: float) -> Fraction:
    return Fraction(str(price))


def model_options(kind: type[M], argument: str, options: Mapping[str, Any], context: Context) -> M:
    """Check the options of a language model."""
    if argument:
        options = {"model": argument, **options}
    given = checked(kind, options, where="[api]")
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
    if given.structured and given.label is not None:
        raise ConfigError(
            "[api] has structured and label",
            hint="structured asks for JSON of its own form: leave out one of them",
        )
    _check_system(given)
    _check_price(given)
    return given


def refuses_temperature(found: Refusal) -> Fatal | None:
    """Tell from a 400 that the model takes no temperature: every call would get it."""
    if found.status != 400 or "temperature" not in found.text:
        return None
    return Fatal(
        "HTTP 400, the model refuses the temperature",
        hint=f'set temperature = "{DEFAULT}" in [api]. The server said: {found.text}',
        unless_answered=True,
        billed=False,
    )


def _check_system(given: ModelOptions) -> None:
    for place in ("{labels}", "{input}"):
        if place in (given.system or ""):
            raise ConfigError(
                f"[api] system has {place}, which is filled in in prompt only",
                hint=f"put {place} into prompt",
            )


def _check_price(given: ModelOptions) -> None:
    by_token = [given.input_price, given.output_price]
    if given.price is not None and any(price is not None for price in by_token):
        raise ConfigError(
            "[api] has a price per call and a price of tokens",
            hint=f'leave out price = "{given.price}", or input_price and output_price'
            if given.price == QUERIES_ONLY
            else "leave out price, or input_price and output_price",
        )
    if given.price is not None and given.cached_price is not None:
        raise ConfigError(
            "[api] has a price per call and a price of cached tokens",
            hint="leave out price, or cached_price",
        )
    if by_token.count(None) == 1:
        raise ConfigError(
            "[api] has one of input_price and output_price", hint="give both, or neither"
        )
    if given.price is None and None in by_token and model_prices(given.model) is None:
        raise ConfigError(
            "[api] does not say what tokens cost",
            hint=f"{given.model!r} is not in masa's table of {LOOKED_UP}: set input_price and "
            f'output_price (money per million tokens), or price = "{QUERIES_ONLY}"',
        )


def _refuse_similar_labels(labels: Sequence[str]) -> None:
    names = [simplified(label) for label in labels]
    twins = [label for label in labels if names.count(simplified(label)) > 1]
    if twins:
        raise ConfigError(
            f"the labels {', '.join(map(repr, twins[:2]))} cannot be told apart "
            "in what a model says",
            hint="rename one of them",
        )
