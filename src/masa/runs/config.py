"""masa.toml: one frozen, checked configuration."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from masa import clients
from masa.clients.options import Settings, explained, first, in_words
from masa.errors import ConfigError
from masa.settings import Limits
from masa.storage.store import DEFAULT

FILE = Path("masa.toml")

PER = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "min": 60.0,
    "m": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
}


def rate(given: object) -> float:
    """Read a rate: calls a second, or a number a unit of time.

    >>> rate(5), rate("500/s"), rate("600/min")
    (5.0, 500.0, 10.0)
    """
    number, _, unit = str(given).partition("/")
    try:
        value = float(number) / PER[unit.strip() or "s"]
    except (KeyError, ValueError) as exc:
        raise ValueError("write it as 5 (a second), '500/s' or '600/min'") from exc
    if not 1e-6 <= value <= 1e6:
        raise ValueError("a rate is more than nothing and at most a million a second")
    return value


def _listed(given: object) -> object:
    return [given] if isinstance(given, str) else given


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]

Rate = Annotated[float, BeforeValidator(rate)]


class Data(Settings):
    """`[data]`: where the labelled items are and which columns matter."""

    path: str
    label: str
    id: str | None = None
    input: Names = ()
    difficulty: str | None = None
    old: str | None = None
    """a column with the old answers, where there is no baseline in the store"""
    old_confidence: str | None = None
    also: Names = ()
    """columns with answers that are free: a cheap model's first, then other vendors'"""
    cost: str | None = None
    """a column with the price of each item, to any scale"""
    group: str | None = None
    """a column with the group of each item, for audits"""
    unlabelled: bool = False
    """whether rows without a label are kept, to tell whether anything changed"""
    text: str | None = None
    image: str | None = None
    sound: str | None = None
    """the input column that a cheap model may be trained on, where nothing tells easy items from hard ones"""


class Api(Settings, extra="allow"):
    """`[api]`: the client's name; the other keys are the client's own."""

    client: str

    @property
    def options(self) -> dict[str, Any]:
        """The client's own keys."""
        return dict(self.model_extra or {})


class BudgetKeys(Settings):
    """`[budget]`: what one run may spend."""

    queries: int | None = Field(default=None, gt=0)
    money: float | None = Field(default=None, gt=0)


class AssessKeys(Settings):
    """`[assess]`: how to choose items and what counts as a change."""

    method: str = "auto"
    levels: int = Field(default=3, ge=1, le=100)
    seed: int = Field(default=0, ge=-(2**63), lt=2**63)
    mix: dict[str, float] | None = None
    weights: str | dict[str, Any] | None = None
    """what is to be known: accuracy, or weights or costs by label and prediction"""
    tolerance: float | str | dict[str, float | str] = 0.01
    """a number is of accuracy; or on what, and how much"""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    target_error: float | None = Field(default=None, gt=0, lt=1)
    """stop once the shift is known that well"""
    decide: bool = False
    """stop once the verdict is certain"""
    canary: int = Field(default=0, ge=0)
    """queries after which to go on only if something changed"""
    canary_ok: bool = False
    fail_on: Literal["any", "worse"] = "any"
    strict: bool = False
    """intervals that hold at all times at once"""


class LimitKeys(Settings):
    """`[limits]`: how hard the API may be pressed."""

    concurrency: int = Field(default=64, ge=1, le=10_000)
    rate: Rate | None = None
    tries: int = Field(default=6, ge=1, le=100)
    patience: float = Field(default=300.0, gt=0)
    failures: float = Field(default=0.3, gt=0, le=1)


class Config(Settings):
    """All of masa.toml."""

    name: str = "default"
    store: Path = DEFAULT
    data: Data
    api: Api | None = None
    apis: dict[str, Api] = Field(default_factory=dict)
    """more APIs by name, for masa compare"""
    budget: BudgetKeys = BudgetKeys()
    assess: AssessKeys = AssessKeys()
    limits: LimitKeys = LimitKeys()

    @classmethod
    def load(cls, path: Path | None = None, flags: Mapping[str, Any] | None = None) -> "Config":
        """Read a file, or masa.toml if it is there, and let flags (`data.label`, ...) override it."""
        file = path if path is not None else FILE if FILE.is_file() else None
        content = {} if file is None else _toml(file)
        if file is not None:
            _anchor(content, file.parent)
        for key, value in (flags or {}).items():
            if value is not None and value != ():
                _set(content, key.split("."), value)
        try:
            return cls.model_validate(content)
        except ValidationError as exc:
            raise _explained(exc, cls, file, flags or {}) from exc

    def named(self, name: str) -> Api:
        """Give the API called so in `[apis.NAME]`, or the one in `[api]` for `api`, or the client of that name."""
        if name in self.apis:
            return self.apis[name]
        if name == "api" and self.api is not None:
            return self.api
        kind = name.partition(":")[0]
        if kind not in clients.offered():
            known = [*self.apis, *(["api"] if self.api else [])]
            some = f"there are {', '.join(known)}, or a client" if known else "name a client"
            raise ConfigError(
                f"there is no API called {name!r}",
                hint=f"{some} such as replay:COL or python:module:function",
            )
        return Api(client=name, **({} if kind == "replay" else {"price": "queries-only"}))

    def limit(self) -> Limits:
        """Give the engine's limits."""
        keys = self.limits
        return Limits(keys.concurrency, keys.rate, keys.tries, keys.patience, keys.failures)


def where(file: Path | None, store: Path | None) -> Path:
    """Give the store that a configuration names, without needing all of it."""
    if store is not None:
        return store
    found = file if file is not None else FILE if FILE.is_file() else None
    if found is None:
        return DEFAULT
    content = _toml(found)
    _anchor(content, found.parent)
    return Path(content["store"])


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise ConfigError(f"there is no {file}", hint="masa init DATA writes one") from exc
    except (OSError, UnicodeError) as exc:
        raise ConfigError(
            f"{file} cannot be read: {exc}", hint="it must be a text file in UTF-8"
        ) from exc
    except (ValueError, RecursionError) as exc:
        raise ConfigError(
            f"{file} is not TOML: {exc}", hint="texts stand in quotes, tables in [brackets]"
        ) from exc


def _anchor(content: dict[str, Any], folder: Path) -> None:
    """Make paths in a file relative to the file."""
    data = content.get("data")
    if isinstance(data, dict) and isinstance(data.get("path"), str):
        data["path"] = str(folder / data["path"])
    content["store"] = (
        str(folder / content["store"])
        if isinstance(content.get("store"), str)
        else str(folder / DEFAULT)
    )


def _set(content: dict[str, Any], path: list[str], value: object) -> None:
    for part in path[:-1]:
        inner = content.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        content = inner
    content[path[-1]] = value


OPTIONS = {"data.path": "DATA", "api.client": "--api", "budget.queries": "--budget"}
"""Options that are not called like the last part of the key they override."""


def _explained(
    exc: ValidationError, model: type[Config], file: Path | None, given: Mapping[str, Any]
) -> ConfigError:
    error = first(exc)
    path = tuple(str(part) for part in error["loc"])
    key = ".".join(path[:2])
    if given.get(key) not in (None, ()):
        option = OPTIONS.get(key, f"--{path[-1].replace('_', '-')}")
        return ConfigError(
            f"{option}: {in_words(error)}", hint="see masa COMMAND --help, or docs/cli.md"
        )
    flags = {
        ("data",): (
            "no data was given",
            "name a file and its labels, DATA --label COL, or write masa.toml with masa init DATA",
        ),
        ("data", "path"): ("no data was given", "name a file, or set path in [data]"),
        ("data", "label"): ("no column of labels was given", "name it with --label COL"),
        ("api", "client"): ("no API was given", "name a client with --api, or set client in [api]"),
    }
    if error["type"] == "missing" and path in flags:
        message, hint = flags[path]
        return ConfigError(message if file is None else f"{file}: {message}", hint=hint)
    return explained(exc, model, where=str(file) if file is not None else "the command line")
