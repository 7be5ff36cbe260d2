"""Any API that takes JSON over HTTP and gives a label back."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field

from masa.clients import Context
from masa.clients.options import QUERIES_ONLY, Price, Settings, checked
from masa.clients.secrets import (
    SECRET,
    Secrets,
    refuse_bad_address,
    refuse_bad_headers,
    refuse_literal_secrets,
)
from masa.clients.templates import (
    Path,
    check_places,
    filled,
    places,
    refuse_what_is_no_json,
    values_of,
)
from masa.clients.web import Response, Web
from masa.data.dataset import as_text
from masa.errors import ConfigError, Failed, Fatal
from masa.records import Item, Reply

TELLING = 5
"""If so many answers have no label where the settings say it is, and none has one, the settings are wrong."""


class Options(Settings):
    """The keys of `[api]` for `client = "http"`."""

    url: str
    method: Literal["POST", "GET", "PUT"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] | list[Any] | None = None
    label: str
    """path to the label in the answer, or to an object of scores, of which the largest is taken"""
    confidence: str | None = None
    version: str | None = None
    """path to the model's version, or `header:NAME`"""
    labels: dict[str, str] = Field(default_factory=dict)
    """what the API calls a label -> what the data calls it"""
    missing: str | None = None
    """the label where the path leads nowhere: for APIs that leave it out when they recognise nothing"""
    price: Price = None
    timeout: float = Field(default=30.0, gt=0, le=3600)


class Http:
    """A client made of a URL, a body with places for the item's inputs, and paths into the answer."""

    def __init__(self, options: Options, context: Context) -> None:
        self.columns: Sequence[str] = [
            name
            for name in dict.fromkeys(places(options.body) + places(options.url))
            if name != "input"
        ]
        self._options = options
        self._secrets = Secrets(context.environment)
        self._url, self._placed = self._secrets.fill(options.url), bool(places(options.url))
        self._headers = {name: self._secrets.fill(value) for name, value in options.headers.items()}
        self._body = _with_secrets(options.body, self._secrets)
        self._label = Path(options.label)
        self._confidence = Path(options.confidence) if options.confidence else None
        self._web = Web(timeout=options.timeout, secrets=self._secrets)
        self.priced = isinstance(options.price, int)
        self._with = self._without = 0

    def price(self, _: Item) -> int:
        """Give the price of a call; it is the same for every item."""
        return self._options.price if isinstance(self._options.price, int) else 0

    def describe(self) -> Mapping[str, Any]:
        """Tell the URL, the body and the paths, as they are written in the settings."""
        options = self._options
        parser = {"label": options.label, "labels": options.labels, "missing": options.missing}
        headers = {
            name: value for name, value in options.headers.items() if not SECRET.search(name)
        }
        api = f"{options.method} {options.url}" + (f" {headers}" if headers else "")
        return {"api": api, "prompt": options.body, "parser": parser}

    async def ask(self, item: Item) -> Reply:
        """Send one request."""
        values = values_of(item)
        url = (
            filled(self._url, {name: quote(text, safe="") for name, text in values.items()})
            if self._placed
            else self._url
        )
        body = None if self._body is None else filled(self._body, values)
        response = await self._web.send(self._options.method, url, headers=self._headers, body=body)
        try:
            found = self._label.of(response.content)
        except LookupError as exc:
            if self._options.missing is None:
                self._without += 1
                if self._without >= TELLING and not self._with:
                    raise Fatal(
                        f"no answer has {self._label.text!r}",
                        hint=f"it has {outline(response.content)}; correct label in [api]",
                    ) from exc
                raise Failed(f"an answer without {self._label.text!r}") from exc
            found = self._options.missing
        else:
            self._with += 1
        confidence = self._number(response)
        if isinstance(found, dict):
            found, confidence = _largest(found)
        label = None if isinstance(found, list) else as_text(found)
        if label is not None:
            label = self._options.labels.get(label, self._secrets.hide(label))
        version = self._version(response)
        return Reply(label, confidence, None if version is None else self._secrets.hide(version))

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()

    def _number(self, response: Response) -> float | None:
        try:
            return _finite(self._confidence.of(response.content)) if self._confidence else None
        except LookupError:
            return None

    def _version(self, response: Response) -> str | None:
        path = self._options.version
        if path is None:
            return None
        if path.startswith("header:"):
            return response.headers.get(path.removeprefix("header:").strip())
        try:
            return as_text(Path(path).of(response.content))
        except LookupError:
            return None


def outline(content: Any, way: str = "", most: int = 8) -> str:
    """Give the ways that lead to something in an answer; what stands there may be the user's.

    >>> outline({"result": {"label": "x", "scores": [1, 2]}, "model": "m"})
    'result.label, result.scores[0], model'
    """
    if isinstance(content, dict) and content:
        ways = [
            outline(part, f"{way}.{name}" if way else str(name), most)
            for name, part in list(content.items())[:most]
        ]
    elif isinstance(content, list) and content:
        ways = [outline(content[0], f"{way}[0]", most)]
    else:
        return way[:200] or "nothing"
    return ", ".join(", ".join(ways).split(", ")[:most])


def _finite(value: object) -> float | None:
    """Give a number, unless it is none or has no size.

    >>> _finite(0.5), _finite("0.5"), _finite(float("nan")), _finite(True)
    (0.5, None, None, None)
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _largest(scores: Mapping[str, Any]) -> tuple[str | None, float | None]:
    """Give the name of the largest score; ties go to the name that sorts first, so that they always fall the same way."""
    numbers = {
        name: number for name, score in scores.items() if (number := _finite(score)) is not None
    }
    if not numbers:
        return None, None
    name = min(numbers, key=lambda name: (-numbers[name], name))
    return name, numbers[name]


def _with_secrets(content: Any, secrets: Secrets) -> Any:
    if isinstance(content, str):
        return secrets.fill(content)
    if isinstance(content, dict):
        return {name: _with_secrets(part, secrets) for name, part in content.items()}
    return (
        [_with_secrets(part, secrets) for part in content] if isinstance(content, list) else content
    )


def make(argument: str, options: Mapping[str, Any], context: Context) -> Http:
    """Make the client from its options."""
    given = checked(Options, {"url": argument, **options} if argument else options, where="[api]")
    refuse_bad_address(given.url, where="[api] url")
    refuse_literal_secrets(given.headers, where="[api] headers")
    refuse_literal_secrets(given.body, where="[api] body")
    refuse_bad_headers(given.headers)
    refuse_what_is_no_json(given.body, where="[api] body")
    check_places(given.body, context.inputs, where="[api] body")
    check_places(given.url, context.inputs, where="[api] url")
    if not places(given.body) and not places(given.url):
        raise ConfigError(
            "[api] sends the same request for every item",
            hint='put an input column into the body: {text = "{text}"}',
        )
    if given.price is None:
        raise ConfigError(
            "[api] does not say what a call costs",
            hint=f'set price = 0.0015 a call, or price = "{QUERIES_ONLY}"',
        )
    return Http(given, context)
