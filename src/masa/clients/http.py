"""Any API over HTTP that returns JSON with a label: it is sent JSON, a form, or files."""

import io
import math
import mimetypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote, urlencode

import aiohttp
from pydantic import Field

from masa.clients import Context
from masa.clients.files import Files, in_base64, kind_of, only_column
from masa.clients.options import QUERIES_ONLY, OptionsModel, Price, checked, whole_price
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
    column_and_way,
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
"""The settings are wrong if this many answers have no label where it should be, and none has."""

MOST_PATH = 200
"""The most characters of a path that an outline shows."""


class HttpOptions(OptionsModel):
    """The keys of `[api]` for `client = "http"`."""

    url: str
    """where the request goes; {column} is an input column"""
    method: Literal["POST", "GET", "PUT"] = "POST"
    """of the request"""
    headers: dict[str, str] = Field(default_factory=dict)
    """of the request; ${NAME} is a variable"""
    body: dict[str, Any] | list[Any] | None = None
    """JSON, with `{column}` or `{input}`, the only one; `{column:base64}` is a file of that name"""
    form: dict[str, str] | None = None
    """fields of a form, as web pages send them"""
    multipart: dict[str, str] | None = None
    """fields of a form with files: `{column:file}` is a file that the column names"""
    raw: str | None = None
    """a file alone, `{column:file}`, or a text; content_type says what it is"""
    content_type: str | None = None
    """of raw; without it what a file is by its first bytes"""
    outside: bool = False
    """whether files outside the data's folder, and URLs, may be read"""
    most: int = Field(default=20 << 20, ge=1, le=1 << 30)
    """the most bytes of a file"""
    label: str
    """path to the label in the answer, or to an object of scores, of which the largest is taken"""
    confidence: str | None = None
    """path to how sure the API is"""
    version: str | None = None
    """path to the model's version, or `header:NAME`"""
    labels: dict[str, str] = Field(default_factory=dict)
    """what the API calls a label -> what the data calls it"""
    missing: str | None = None
    """the label where the path leads nowhere: some APIs leave it out if they recognise nothing"""
    price: Price = None
    """money per call, or `queries-only`: one of them is needed"""
    timeout: float = Field(default=30.0, gt=0, le=3600)
    """seconds after which a call has failed"""


class Http:
    """A client made from a URL, a body with places for the inputs, and paths into the answer."""

    def __init__(self, options: HttpOptions, context: Context) -> None:
        self._options = options
        self._secrets = Secrets(context, options.url)
        named = dict.fromkeys(
            column_and_way(name)[0] for name in [*_sent(options), *places(options.url)]
        )
        self.columns: Sequence[str] = [name for name in named if name != "input"]
        self.priced = isinstance(options.price, int)
        self._url = self._secrets.fill_address(options.url)
        self._url_has_places = bool(places(options.url))
        self._headers = {name: self._secrets.fill(value) for name, value in options.headers.items()}
        self._body = _with_secrets(options.body, self._secrets)
        self._form = _with_secrets(options.form, self._secrets)
        self._multipart = _with_secrets(options.multipart, self._secrets)
        self._raw = _with_secrets(options.raw, self._secrets)
        self._label = Path(options.label)
        self._confidence: Path | None = None
        if options.confidence:
            self._confidence = Path(options.confidence)
        self._web = Web(timeout=options.timeout, secrets=self._secrets)
        self._files = self._of_columns(context)
        self._with_label = 0
        self._without_label = 0

    def price(self, _: Item) -> int:
        """Return the price of a call, which is the same for every item."""
        return whole_price(self._options.price)

    def describe(self) -> Mapping[str, Any]:
        """Describe the URL, the body and the paths, as they are written in the settings."""
        options = self._options
        parser = {"label": options.label, "labels": options.labels, "missing": options.missing}
        prompt = options.body
        if prompt is None:
            sent = {"form": options.form, "multipart": options.multipart, "raw": options.raw}
            prompt = {name: value for name, value in sent.items() if value is not None} or None
        # Headers that may hold a secret are left out: the description is stored.
        headers = {
            name: value for name, value in options.headers.items() if not SECRET.search(name)
        }
        api = f"{options.method} {options.url}"
        if headers:
            api += f" {headers}"
        return {"api": api, "prompt": prompt, "parser": parser}

    def check(self, items: Iterable[Item]) -> None:
        """Raise for the first file that cannot be sent."""
        if not self._files:
            return
        for item in items:
            for files in self._files.values():
                files.check([item])

    async def ask(self, item: Item) -> Reply:
        """Send one request."""
        values = values_of(item)
        url = self._url
        if self._url_has_places:
            url = filled(url, {name: quote(text, safe="") for name, text in values.items()})
        sent = await self._request(item, values)
        response = await self._web.send(self._options.method, url, **sent)
        found = self._found(response)
        confidence = self._confidence_in(response)
        if isinstance(found, dict):
            found, confidence = _largest(found)
        label = None
        if not isinstance(found, list):
            label = as_text(found)
        if label is not None:
            # A server may send the key back, and labels are stored.
            label = self._options.labels.get(label, self._secrets.hide(label))
        version = self._version_in(response)
        if version is not None:
            version = self._secrets.hide(version)
        return Reply(label, confidence, version)

    async def close(self) -> None:
        """Close the connections."""
        await self._web.close()

    def _of_columns(self, context: Context) -> dict[str, Files]:
        """Make what reads the files of each column, by the name of the place."""
        options, found = self._options, {}
        for name in _sent(options):
            column, way = column_and_way(name)
            if way:
                if column == "input":
                    column = only_column(context.inputs, client="http", what="files")
                found[name] = Files(
                    column,
                    folder=context.folder,
                    outside=options.outside,
                    most=options.most,
                    # What is fetched is sent none of the API's headers, and so no secret.
                    web=self._web,
                )
        return found

    async def _request(self, item: Item, values: dict[str, str]) -> dict[str, Any]:
        """Write what is sent about an item: JSON, a form, or files."""
        options, headers = self._options, self._headers
        contents = {name: await files.read(item) for name, files in self._files.items()}
        if options.raw is not None:
            data = contents.get(_only_place(options.raw) or "")
            if data is None:
                data = filled(self._raw, values).encode()
            kind = options.content_type or kind_of(data)
            return {"headers": {"Content-Type": kind, **headers}, "data": data}
        if options.form is not None:
            kind = "application/x-www-form-urlencoded"
            text = urlencode(filled(self._form, values))
            return {"headers": {"Content-Type": kind, **headers}, "data": text.encode()}
        if options.multipart is not None:
            form = aiohttp.FormData(default_to_multipart=True)
            for name, template in self._multipart.items():
                content = contents.get(_only_place(template) or "")
                if content is None:
                    form.add_field(name, filled(template, values))
                else:
                    kind = kind_of(content)
                    # Some services tell what a file is by its ending.
                    file = f"{name}{mimetypes.guess_extension(kind) or ''}"
                    form.add_field(name, io.BytesIO(content), filename=file, content_type=kind)
            return {"headers": headers, "data": form}
        encoded = {name: in_base64(content) for name, content in contents.items()}
        return {"headers": headers, "body": filled(self._body, {**values, **encoded})}

    def _found(self, response: Response) -> Any:
        """Return what is in the answer where the label should be."""
        try:
            found = self._label.of(response.content)
        except LookupError as exc:
            if self._options.missing is not None:
                return self._options.missing
            # One such answer may be an accident; if none has ever had a label, the path is wrong.
            self._without_label += 1
            if self._without_label >= TELLING and not self._with_label:
                raise Fatal(
                    f"no answer has {self._label.text!r}",
                    hint=f"it has {self._secrets.hide(outline(response.content))}; "
                    "correct label in [api]",
                ) from exc
            raise Failed(f"an answer without {self._label.text!r}") from exc
        self._with_label += 1
        return found

    def _confidence_in(self, response: Response) -> float | None:
        if self._confidence is None:
            return None
        try:
            return _finite(self._confidence.of(response.content))
        except LookupError:
            return None

    def _version_in(self, response: Response) -> str | None:
        path = self._options.version
        if path is None:
            return None
        if path.startswith("header:"):
            return response.headers.get(path.removeprefix("header:").strip())
        try:
            return as_text(Path(path).of(response.content))
        except LookupError:
            return None


def _sent(options: HttpOptions) -> list[str]:
    """Give the places in what is sent."""
    parts = (options.body, options.form, options.multipart, options.raw)
    return [name for part in parts for name in places(part)]


def _only_place(template: str) -> str | None:
    """Give the place that a template consists of, if it is nothing else."""
    found = places(template)
    return found[0] if len(found) == 1 and template == f"{{{found[0]}}}" else None


def _check_ways(given: HttpOptions) -> None:
    """Raise where it is not clear what is sent."""
    ways = {name: getattr(given, name) for name in ("body", "form", "multipart", "raw")}
    named = [name for name, value in ways.items() if value is not None]
    if len(named) > 1:
        raise ConfigError(
            f"[api] has {' and '.join(named)}", hint="a request has one of them: leave out the rest"
        )
    if given.multipart is not None and "content-type" in {name.lower() for name in given.headers}:
        raise ConfigError(
            "[api] headers has a Content-Type for multipart",
            hint="leave it out: it must name the boundary, which masa chooses",
        )
    if given.content_type is not None and given.raw is None:
        raise ConfigError("[api] has content_type without raw", hint="set it in headers")
    for name in _sent(given):
        way = column_and_way(name)[1]
        if way and (way == "base64") != (given.body is not None):
            raise ConfigError(
                f"[api] has {{{name}}} in {named[0]}",
                hint="a file is {column:base64} in body, and {column:file} in multipart or raw",
            )
    for part in [*(given.multipart or {}).values(), given.raw or ""]:
        if any(column_and_way(name)[1] for name in places(part)) and _only_place(part) is None:
            raise ConfigError(
                "[api] has text around a file", hint="write {column:file} alone in its field"
            )
    if any(column_and_way(name)[1] for name in [*places(given.form), *places(given.url)]):
        raise ConfigError("[api] has a file where none can be", hint="send it in multipart")


def outline(content: Any, path: str = "", most: int = 8) -> str:
    """List the paths in an answer, without the values, which may be the user's.

    >>> outline({"result": {"label": "x", "scores": [1, 2]}, "model": "m"})
    'result.label, result.scores[0], model'
    """
    paths = []
    if isinstance(content, dict) and content:
        prefix = ""
        if path:
            prefix = f"{path}."
        for name, part in list(content.items())[:most]:
            paths.append(outline(part, f"{prefix}{name}", most))
    elif isinstance(content, list) and content:
        paths.append(outline(content[0], f"{path}[0]", most))
    else:
        return path[:MOST_PATH] or "nothing"
    return ", ".join(", ".join(paths).split(", ")[:most])


def _finite(value: object) -> float | None:
    """Return a value as a float, if it is a finite number.

    >>> _finite(0.5), _finite("0.5"), _finite(float("nan")), _finite(True)
    (0.5, None, None, None)
    """
    # In Python True is an integer too.
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if math.isfinite(number):
        return number
    return None


def _largest(scores: Mapping[str, Any]) -> tuple[str | None, float | None]:
    """Return the name of the largest score, and the score.

    Of equal scores the one whose name sorts first is taken, so that ties always fall the same way.
    """
    numbers = {}
    for name, score in scores.items():
        number = _finite(score)
        if number is not None:
            numbers[name] = number
    if not numbers:
        return None, None
    best = min(numbers, key=lambda name: (-numbers[name], name))
    return best, numbers[best]


def _with_secrets(content: Any, secrets: Secrets) -> Any:
    """Fill in the secrets anywhere in a body."""
    if isinstance(content, str):
        return secrets.fill(content)
    if isinstance(content, dict):
        return {name: _with_secrets(part, secrets) for name, part in content.items()}
    if isinstance(content, list):
        return [_with_secrets(part, secrets) for part in content]
    return content


def make(argument: str, options: Mapping[str, Any], context: Context) -> Http:
    """Make the client from its options."""
    if argument:
        options = {"url": argument, **options}
    given = checked(HttpOptions, options, where="[api]")
    refuse_bad_address(given.url, where="[api] url")
    refuse_literal_secrets(given.headers, where="[api] headers")
    for part in ("body", "form", "multipart"):
        refuse_literal_secrets(getattr(given, part), where=f"[api] {part}")
        check_places(getattr(given, part), context.inputs, where=f"[api] {part}")
    refuse_bad_headers(given.headers)
    refuse_what_is_no_json(given.body, where="[api] body")
    refuse_literal_secrets({"raw": given.raw}, where="[api]")
    check_places(given.raw, context.inputs, where="[api] raw")
    check_places(given.url, context.inputs, where="[api] url")
    _check_ways(given)
    if not _sent(given) and not places(given.url):
        raise ConfigError(
            "[api] sends the same request for every item",
            hint='put an input column into the body: {text = "{text}"}',
        )
    if given.price is None:
        raise ConfigError(
            "[api] does not say what a call costs",
            hint=f'set price to the money per call, such as 0.0015, or to "{QUERIES_ONLY}"',
        )
    return Http(given, context)
