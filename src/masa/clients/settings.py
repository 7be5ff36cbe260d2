"""What the clients' settings share: checked models, secrets that stay in the environment, templates, paths into answers."""

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from masa.budget import billionths
from masa.errors import ConfigError
from masa.records import Item

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
PLACE = re.compile(r"(?<!\$)\{([^{}]*)\}")
SECRET = re.compile(r"auth|key|token|secret|passw|cookie|credential", re.IGNORECASE)

M = TypeVar("M", bound=BaseModel)

QUERIES_ONLY = "queries-only"


def _price(given: object) -> object:
    return given if given is None or given == QUERIES_ONLY else billionths(given)  # type: ignore[arg-type]


Price = Annotated[int | Literal["queries-only"] | None, BeforeValidator(_price)]
"""Money a call, in billionths; `queries-only` where the user does not want to count money"""


class Settings(BaseModel):
    """A frozen model that knows no other keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def checked(model: type[M], options: Mapping[str, Any], *, where: str) -> M:
    """Validate settings; what is wrong is named with the key and how to mend it, without showing values."""
    try:
        return model.model_validate(dict(options))
    except ValidationError as exc:
        raise explained(exc, model, where=where) from exc


def explained(exc: ValidationError, model: type[BaseModel], *, where: str) -> ConfigError:
    """Put the first thing that is wrong into words."""
    error = first(exc)
    path = [str(part) for part in error["loc"] if not str(part).startswith(("function-", "literal["))]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        known = list(_inner(model, path[:-1]).model_fields)
        close = get_close_matches(path[-1], known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(known)}"
        return ConfigError(f"{where} has an unknown key {key!r}", hint=hint)
    if error["type"] == "missing":
        return ConfigError(f"{where} needs {key!r}", hint="see docs/config.md for what it means")
    return ConfigError(f"{where}, {key!r}: {in_words(error)}", hint="see docs/config.md for what may stand there")


def in_words(error: ErrorDetails) -> str:
    """Say what is wrong as masa would."""
    said = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ").split(", unable to")[0]
    return said.replace("Input should be", "it should be").replace("a valid integer", "a whole number").replace("a valid ", "a ")


def first(exc: ValidationError) -> ErrorDetails:
    """Give the error to tell first: a key that is misspelt explains another that is missing."""
    errors = exc.errors(include_url=False, include_input=False)
    return next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])


def _inner(model: type[BaseModel], path: list[str]) -> type[BaseModel]:
    for part in path:
        field = model.model_fields.get(part)
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())] if field is not None else []
        model = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), model)
    return model


class Secrets:
    """Fill ${NAME} from the environment, and keep what was filled in out of anything that is shown."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._used: set[str] = set()

    def fill(self, text: str) -> str:
        """Put the variables' values in."""
        return VARIABLE.sub(self._value, text)

    def hide(self, text: str) -> str:
        """Take every value out again."""
        for value in sorted(self._used, key=len, reverse=True):
            for form in {value, quote(value), quote_plus(value), quote(value, safe=""), *_in_json(value)}:
                text = text.replace(form, "***")
        return text

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        value = self._environment.get(name, "").strip()
        if not value:
            raise ConfigError(f"the environment variable {name} is not set", hint=f"export {name}=... before running masa")
        if not value.isprintable():
            raise ConfigError(f"the environment variable {name} holds control characters", hint="set it to the key alone")
        self._used.add(value)
        return value


def _in_json(value: str) -> tuple[str, str]:
    return json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]


def refuse_literal_secrets(content: Any, *, where: str, name: str = "") -> None:
    """Raise if something that looks like a secret is written out, however deep."""
    if isinstance(content, Mapping):
        for inner, part in content.items():
            refuse_literal_secrets(part, where=where, name=str(inner))
    elif isinstance(content, list):
        for part in content:
            refuse_literal_secrets(part, where=where, name=name)
    elif isinstance(content, str) and content and SECRET.search(name) and not _only_places(content):
        raise ConfigError(
            f"{where}: {name!r} is written out", hint="put it into an environment variable and write ${NAME} in its place"
        )


def _only_places(text: str) -> bool:
    """Say whether a text has a variable of the environment in it, or is nothing but places for inputs."""
    return bool(VARIABLE.search(text)) or not PLACE.sub("", text).strip()


def refuse_what_is_no_json(content: Any, *, where: str) -> None:
    """Raise if something cannot be sent as JSON: TOML knows dates and times."""
    try:
        json.dumps(content, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ConfigError(f"{where} cannot be sent as JSON: {exc}", hint="write dates and times as texts, in quotes") from exc


def refuse_bad_headers(headers: Mapping[str, str]) -> None:
    """Raise if a header cannot be sent."""
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not value.isprintable():
            raise ConfigError(f"[api] headers: {name!r} cannot be sent", hint="a header is a word and a text of one line")


def refuse_bad_address(url: str, *, where: str) -> None:
    """Raise if a URL is none, or holds a secret."""
    try:
        address = urlsplit(VARIABLE.sub("x", url))
    except ValueError as exc:
        raise ConfigError(f"{where} is not an address: {exc}", hint="write it as https://host/path") from exc
    if address.scheme not in ("http", "https") or not address.netloc:
        raise ConfigError(f"{where} is not an address", hint="write it as https://host/path")
    if address.username or address.password:
        raise ConfigError(f"{where} holds a user or a password", hint="send it as a header, from an environment variable")
    refuse_literal_secrets(dict(parse_qsl(urlsplit(url).query)), where=where)


def places(content: object) -> list[str]:
    """Give the names in braces anywhere in a template.

    >>> places({"text": "{review}", "tags": ["{a}", "b"]})
    ['review', 'a']
    """
    if isinstance(content, str):
        return PLACE.findall(content)
    inner = content.values() if isinstance(content, Mapping) else content if isinstance(content, list) else ()
    return [name for part in inner for name in places(part)]


def filled(content: Any, values: Mapping[str, str]) -> Any:
    """Fill a template, in one pass: what is filled in is never read as a template.

    >>> filled({"text": "<{review}>"}, {"review": "{x}"})
    {'text': '<{x}>'}
    """
    if isinstance(content, str):
        return PLACE.sub(lambda match: values.get(match[1], match[0]), content)
    if isinstance(content, Mapping):
        return {name: filled(part, values) for name, part in content.items()}
    return [filled(part, values) for part in content] if isinstance(content, list) else content


def values_of(item: Item) -> dict[str, str]:
    """Give what the names in braces stand for: each input column, and `input` for the only one."""
    return {"input": item.text, **item.inputs}


def check_places(content: object, known: tuple[str, ...], *, where: str, extra: tuple[str, ...] = ()) -> None:
    """Raise for a name in braces that is neither an input column nor `input`."""
    for name in places(content):
        if name not in (*known, "input", *extra):
            close = get_close_matches(name, (*known, "input", *extra), 1)
            hint = (
                f"did you mean {{{close[0]}}}?" if close else f"name it in [data] input, which has {', '.join(known) or 'none'}"
            )
            raise ConfigError(f"{where} names {{{name}}}, which is not an input column", hint=hint)


class Path:
    """The way to a value in an answer.

    >>> Path("result.items[0].label").of({"result": {"items": [{"label": "yes"}]}})
    'yes'
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if not re.fullmatch(r"([^.\[\]]+|\[\d+\])(\.[^.\[\]]+|\[\d+\])*", text):
            raise ConfigError(f"[api]: {text!r} is no way into an answer", hint="write it as result.items[0].label")
        self._steps = [int(part[1:-1]) if part[0] == "[" else part for part in re.findall(r"\[\d+\]|[^.\[\]]+", text)]

    def of(self, content: Any) -> Any:
        """Follow the way; raise LookupError where it ends."""
        for step in self._steps:
            if isinstance(step, str) and isinstance(content, list) and step.isdecimal():
                content = content[int(step)]
            elif isinstance(content, list if isinstance(step, int) else dict):
                content = content[step]
            else:
                raise LookupError(step)
        return content
