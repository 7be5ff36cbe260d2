"""One definition of a setting: a dataclass field that carries its kind and its help text.

Everything else is derived: reading and checking (here), the keys of masa.toml (`runs/config.py`),
the options of the commands (`cli/options.py`) and the tables in the docs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from masa.errors import UsageError
from masa.settings.kinds import Kind

NO_OPTION = "-"
"""Marks a setting that only masa.toml and Python have."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of a setting besides its name and its default."""

    kind: Kind
    help: str
    """one sentence, for the help of a command and for the docs"""
    option: str = ""
    """the option on the command line, where it is not called like the field, or NO_OPTION"""
    default: str = ""
    """the default in words, where it is not the field's own"""


class Section:
    """What the classes of settings share: their values are read when they are made.

    Written once here instead of being generated for each, which every start would pay for.
    """

    def __post_init__(self) -> None:
        check(self)

    def __repr__(self) -> str:
        """Show what is not the default."""
        given = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)  # type: ignore[arg-type]
            if getattr(self, one.name) != _default(one)
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine = fields(self)  # type: ignore[arg-type]
        return all(getattr(self, one.name) == getattr(other, one.name) for one in mine)

    __hash__ = None  # type: ignore[assignment]


def setting(
    default: Any, kind: Kind, help: str, *, option: str = "", default_words: str = ""
) -> Any:
    """Make a field of a settings class."""
    metadata = {"setting": Setting(kind, help, option, default_words)}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Named:
    """A setting with the name of its field and its default."""

    name: str
    setting: Setting
    default: Any

    @property
    def option(self) -> str:
        """The option on the command line."""
        return self.setting.option or f"--{self.name.replace('_', '-')}"

    @property
    def default_words(self) -> str:
        """The default, as help texts and docs show it."""
        if self.setting.default:
            return self.setting.default
        if self.default in (None, (), "", False, 0, MISSING):
            return ""
        return str(self.default)


def settings_of(section: type) -> Iterator[Named]:
    """Give the settings of a class, in their order."""
    for one in fields(section):
        if "setting" in one.metadata:
            yield Named(one.name, one.metadata["setting"], _default(one))


def _default(one: "Field[Any]") -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return one.default


def check(instance: Any) -> None:
    """Read the values that a settings object was made with; raise for one that cannot be.

    Called from `__post_init__`, so that a value is checked in the same way wherever it comes from.
    """
    for named in settings_of(type(instance)):
        given = getattr(instance, named.name)
        if given is None and not named.setting.kind.reads_none:
            continue
        if given == named.default:
            continue
        object.__setattr__(instance, named.name, read(named, given, called=named.name))


def read(named: Named, given: Any, *, called: str) -> Any:
    """Read a value of a setting; an error names it as the user called it."""
    try:
        return named.setting.kind.read(given)
    except ValueError as exc:
        shown = given if isinstance(given, float) else repr(given)
        raise UsageError(f"{called} is {shown}", hint=str(exc)) from exc


def known_names(section: type) -> list[str]:
    """Give the names of all fields of a settings class that may be given."""
    return [one.name for one in fields(section) if one.init]


def split(given: Mapping[str, Any], *sections: type) -> list[dict[str, Any]]:
    """Sort keywords by the settings class that has them; raise for one that none has."""
    known = [known_names(section) for section in sections]
    found: list[dict[str, Any]] = [{} for _ in sections]
    for name, value in given.items():
        place = next((place for place, names in enumerate(known) if name in names), None)
        if place is None:
            every = [one for names in known for one in names]
            from difflib import get_close_matches

            close = get_close_matches(name, every, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(every)}"
            raise UsageError(f"there is no setting {name!r}", hint=hint)
        found[place][name] = value
    return found
