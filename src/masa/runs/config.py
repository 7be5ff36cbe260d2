"""masa.toml: one frozen, checked configuration."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from masa import clients
from masa.errors import ConfigError, MasaError
from masa.settings import BudgetSettings, Columns, Limits, Settings
from masa.settings.run import DEFAULT_STORE, RunSettings
from masa.settings.setting import Named, read, settings_of
from masa.settings.tables import SECTIONS

FILE = Path("masa.toml")

OTHER_KEYS = ("name", "store", "keep", "secrets", "api", "apis")

Content = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Api:
    """`[api]`: the client's name; the other keys are the client's own."""

    client: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """All of masa.toml."""

    data: Columns
    name: str = "default"
    store: Path = DEFAULT_STORE
    keep: str = "labels"
    """what is stored of answers: labels, or what the API said as well"""
    secrets: tuple[str, ...] = ()
    """the environment variables that may be sent, each to one host"""
    api: Api | None = None
    apis: Mapping[str, Api] = field(default_factory=dict)
    """more APIs by name, for masa compare"""
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    assess: Settings = field(default_factory=Settings)
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def load(cls, path: Path | None = None, flags: Mapping[str, Any] | None = None) -> "Config":
        """Read a file, or masa.toml if it is there; flags (`data.label`, ...) override it."""
        file = path
        if file is None and FILE.is_file():
            file = FILE
        content: Content = {}
        if file is not None:
            content = _toml(file)
            _anchor(content, file.parent)
        given = {key: value for key, value in (flags or {}).items() if value not in (None, ())}
        return _Reader(file, content, given).config()

    def with_api(self, api: Api) -> "Config":
        """Give the same configuration for another API."""
        return replace(self, api=api)

    def named(self, name: str) -> Api:
        """Give an API by its name.

        One of `[apis.NAME]`, the one in `[api]` for `api`, or a client of that name.
        """
        if name in self.apis:
            return self.apis[name]
        if name == "api" and self.api is not None:
            return self.api
        kind = name.partition(":")[0]
        if kind not in clients.offered():
            known = [*self.apis]
            if self.api is not None:
                known.append("api")
            some = f"there are {', '.join(known)}, or a client" if known else "name a client"
            raise ConfigError(
                f"there is no API called {name!r}",
                hint=f"{some} such as replay:COL or python:module:function",
            )
        return Api(name, {} if kind == "replay" else {"price": "queries-only"})


OLD_COMES_FIRST = (
    "masa.toml names the column {!r} as old: runs compare with that until you take the line out"
)


def store_of(file: Path | None, store: Path | None) -> Path:
    """Give the store that a configuration names, without needing all of it."""
    if store is not None:
        return store
    if file is None and not FILE.is_file():
        return DEFAULT_STORE
    found = file or FILE
    content = _toml(found)
    _anchor(content, found.parent)
    return Path(content["store"])


def data_of(file: Path) -> list[Path]:
    """Give the file of the data that a configuration names, where it names one."""
    if not file.is_file():
        return []
    content = _toml(file)
    _anchor(content, file.parent)
    data = content.get("data")
    path = data.get("path") if isinstance(data, Mapping) else None
    return [Path(path)] if isinstance(path, str) else []


def old_column_of(file: Path | None) -> str | None:
    """Give the column that a configuration names as the baseline, if it does."""
    if file is None and not FILE.is_file():
        return None
    data = _toml(file or FILE).get("data")
    old = data.get("old") if isinstance(data, Mapping) else None
    return old if isinstance(old, str) else None


class _Reader:
    """Reads a configuration from a file and from flags; an error names the one it comes from."""

    def __init__(self, file: Path | None, content: Content, flags: Mapping[str, Any]) -> None:
        self._file = file
        self._content = content
        self._flags = flags
        self._where = str(file) if file is not None else "the command line"

    def config(self) -> Config:
        """Read everything."""
        self._refuse_unknown("", self._content, (*SECTIONS, *OTHER_KEYS))
        has_data = "data" in self._content or any(key.startswith("data.") for key in self._flags)
        if not has_data:
            raise self._missing(
                "no data was given",
                "name a file and its labels, DATA --label COL, "
                "or write masa.toml with masa init DATA",
            )
        sections = {name: self._section(name, section) for name, section in SECTIONS.items()}
        if not sections["data"].path:
            raise self._missing("no data was given", "name a file, or set path in [data]")
        if not sections["data"].label:
            raise self._missing("no column of labels was given", "name it with --label COL")
        general = {one.name: one for one in settings_of(RunSettings)}
        apis = self._table("apis")
        return Config(
            name=self._value(general["name"], "name", self._content),
            store=Path(self._value(general["store"], "store", self._content)),
            keep=self._value(general["keep"], "keep", self._content),
            secrets=self._secrets(),
            api=self._main_api(),
            apis={name: self._api(f"apis.{name}", content) for name, content in apis.items()},
            **sections,
        )

    def _secrets(self) -> tuple[str, ...]:
        given = self._content.get("secrets", [])
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise ConfigError(
                f"{self._where}: secrets is not a list of names",
                hint='write secrets = ["API_KEY"] above the first table',
            )
        return tuple(given)

    def _section(self, name: str, section: type) -> Any:
        content = self._table(name)
        settings = list(settings_of(section))
        self._refuse_unknown(name, content, tuple(one.name for one in settings))
        values = {one.name: self._value(one, f"{name}.{one.name}", content) for one in settings}
        try:
            return section(**values)
        except MasaError as exc:
            # Settings that do not fit each other.
            raise ConfigError(exc.message, hint=exc.hint) from exc

    def _value(self, setting: Named, key: str, content: Mapping[str, Any]) -> Any:
        if key in self._flags:
            return read(setting, self._flags[key], called=setting.option)
        if setting.name not in content:
            return setting.default
        given = content[setting.name]
        try:
            return setting.setting.kind.read(given)
        except ValueError as exc:
            raise ConfigError(
                f"{self._where}, {key!r} is {given!r}", hint=f"{exc}; see docs/config.md"
            ) from exc
        except MasaError as exc:
            raise ConfigError(f"{self._where}, {key!r}: {exc.message}", hint=exc.hint) from exc

    def _main_api(self) -> Api | None:
        content = dict(self._table("api"))
        for key, value in self._flags.items():
            if key.startswith("api."):
                content[key.removeprefix("api.")] = value
        if not content and "api" not in self._content:
            return None
        return self._api("api", content)

    def _api(self, where: str, content: Any) -> Api:
        if not isinstance(content, Mapping):
            raise ConfigError(f"{self._where}: [{where}] is not a table", hint="see docs/config.md")
        client = content.get("client")
        if client is None:
            raise self._missing("no API was given", f"name a client with --api, or in [{where}]")
        if not isinstance(client, str):
            raise ConfigError(
                f"{self._where}, '{where}.client' is {client!r}", hint="give the name of a client"
            )
        return Api(client, {key: value for key, value in content.items() if key != "client"})

    def _table(self, name: str) -> Mapping[str, Any]:
        content = self._content.get(name, {})
        if not isinstance(content, Mapping):
            raise ConfigError(
                f"{self._where}: [{name}] is not a table",
                hint=f"write [{name}] on a line of its own",
            )
        return content

    def _refuse_unknown(
        self, section: str, content: Mapping[str, Any], known: tuple[str, ...]
    ) -> None:
        for key in content:
            if key in known:
                continue
            close = get_close_matches(key, known, 1)
            hint = f"the keys are {', '.join(known)}"
            if close:
                hint = f"did you mean {close[0]!r}?"
            full = f"{section}.{key}" if section else key
            raise ConfigError(f"{self._where} has an unknown key {full!r}", hint=hint)

    def _missing(self, message: str, hint: str) -> ConfigError:
        if self._file is not None:
            message = f"{self._file}: {message}"
        return ConfigError(message, hint=hint)


def _toml(file: Path) -> Content:
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


def _anchor(content: Content, folder: Path) -> None:
    """Make paths in a file relative to the file."""
    data = content.get("data")
    if isinstance(data, dict) and isinstance(data.get("path"), str):
        data["path"] = str(folder / data["path"])
    store = content.get("store")
    if store is None or isinstance(store, str):
        content["store"] = str(folder / (store or DEFAULT_STORE))
