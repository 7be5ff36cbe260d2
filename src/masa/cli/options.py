"""The options of the commands, derived from the settings."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from masa.settings import (
    BudgetSettings,
    Columns,
    Limits,
    RecordedColumns,
    ReplaySettings,
    RunSettings,
    Settings,
)
from masa.settings.kinds import Kind, flag, run_or_file, text
from masa.settings.run import FILE
from masa.settings.setting import NO_OPTION, Named, Setting, read, settings_of

GROUPS = ("Data", "Grades", "API", "Budget", "How sure", "Run", "Output")
"""The headings of the help of a command, in their order."""

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command."""

    named: Named
    group: str
    key: str = ""
    """the key of masa.toml that it overrides, such as data.label; empty for none"""
    short: str = ""
    required: bool = False
    argument: bool = False
    """whether it is given by its position"""

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return self.named.name

    def parameter(self) -> inspect.Parameter:
        """Give what typer reads it from."""
        kind, words = self.named.setting.kind, self._help()
        if self.argument:
            info: Any = typer.Argument(metavar=kind.metavar, help=words)
        else:
            names = [self.named.option]
            if self.short:
                names.append(self.short)
            info = typer.Option(
                *names,
                metavar=kind.metavar or None,
                help=words,
                rich_help_panel=self.group,
                show_default=False,
            )
        default: Any = inspect.Parameter.empty if self.required else None
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[self._type(), info],
        )

    def _help(self) -> str:
        words = self.named.default_words
        if not words or self.required:
            return self.named.setting.help
        return f"{self.named.setting.help} [default: {words}]"

    def _type(self) -> Any:
        kind = self.named.setting.kind
        if kind.flag:
            return bool if self.required else bool | None
        if kind.several:
            return list[str] if self.required else list[str] | None
        return str if self.required else str | None


def of_section(
    group: str, section: type, names: str = "", *, key: str = "", required: str = ""
) -> tuple[Option, ...]:
    """Give the options for settings of a class: for those that are named, or for all of them."""
    known = {named.name: named for named in settings_of(section)}
    wanted = names.split()
    if not wanted:
        wanted = [name for name, named in known.items() if named.option != NO_OPTION]
    return tuple(
        Option(
            known[name],
            group,
            f"{key}.{name}" if key else "",
            required=name in required.split(),
            argument=known[name].option == "DATA",
        )
        for name in wanted
    )


def own(
    group: str,
    name: str,
    kind: Kind,
    help: str,
    *,
    option: str = "",
    default: str = "",
    key: str = "",
    short: str = "",
    required: bool = False,
    argument: bool = False,
) -> Option:
    """Give an option that only the command line has."""
    named = Named(name, Setting(kind, help, option, default), None)
    return Option(named, group, key, short, required, argument)


DATA = of_section("Data", Columns, key="data")
RECORDED = of_section("Data", RecordedColumns, required="path label new")
API = (
    own(
        "API",
        "api",
        text("CLIENT"),
        "replay:COL, python:module:function, http or openai (with masa.toml), ...",
        key="api.client",
    ),
    own("API", "price", text("P"), "Money per call, or 'queries-only'.", key="api.price"),
    *of_section("API", Limits, key="limits"),
)
BUDGET = (
    *of_section("Budget", BudgetSettings, key="budget"),
    own("Budget", "yes", flag(), "Do not ask before paid calls.", short="-y"),
)
HOW_SURE = of_section("How sure", Settings, key="assess")
BASELINE = own(
    "Run",
    "baseline",
    run_or_file(),
    "Compare with this run, or with a file that masa baseline export wrote.",
    default="the newest baseline of the name",
)
RUN = (
    own("Run", "config", FILE, "Configuration.", default="masa.toml, if there"),
    Option(next(one for one in settings_of(RunSettings) if one.name == "store"), "Run", "store"),
    Option(next(one for one in settings_of(RunSettings) if one.name == "name"), "Run", "name"),
)
RESUME = of_section("Run", RunSettings, "resume fresh")
FORCE = of_section("Run", RunSettings, "force")
REPLAY = of_section("How sure", ReplaySettings)
JSON = own("Output", "json", flag(), "Print one JSON object.")
QUIET = own("Output", "quiet", flag(), "No progress and no notes.", short="-q")
VERBOSE = own("Output", "verbose", flag(), "Say more; twice for all.", short="-v")
PLOT = own("Output", "plot", FILE, "Write a chart: .html, .svg or .png.")
OUTPUT = (JSON, QUIET, VERBOSE)


def without(options: Iterable[Option], names: str) -> tuple[Option, ...]:
    """Leave out options by name."""
    return tuple(option for option in options if option.name not in names.split())


def only(options: Iterable[Option], names: str) -> tuple[Option, ...]:
    """Keep options by name."""
    return tuple(option for option in options if option.name in names.split())


def required(options: Iterable[Option], names: str) -> tuple[Option, ...]:
    """Make options required by name."""
    return tuple(
        replace(option, required=True) if option.name in names.split() else option
        for option in options
    )


class Given:
    """The options of a command as they were given."""

    def __init__(self, options: Iterable[Option], values: Mapping[str, Any]) -> None:
        self._options = {option.name: option for option in options}
        self._values = {name: value for name, value in values.items() if _was_given(value)}
        self._refused = {name for name, value in values.items() if value is False}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def read(self, name: str, default: Any = None) -> Any:
        """Give the value of an option, checked."""
        if name not in self._values:
            return default
        option = self._options[name]
        called = option.named.option
        if option.argument:
            called = option.named.setting.kind.metavar
        return read(option.named, self._raw(name), called=called)

    def wanted(self, name: str) -> bool:
        """Say whether a flag that is on by default was not switched off."""
        return name not in self._refused

    def section(self, section: type[S]) -> S:
        """Make a settings object from the options of its class."""
        known = {named.name for named in settings_of(section)}
        return section(**{name: self.read(name) for name in self._values if name in known})

    @property
    def flags(self) -> dict[str, Any]:
        """The options by the keys of masa.toml that they override."""
        return {
            option.key: self._raw(name)
            for name, option in self._options.items()
            if option.key and name in self._values
        }

    def _raw(self, name: str) -> Any:
        value = self._values[name]
        if isinstance(value, list):
            # On the command line several names may be separated by commas.
            parts = [part.strip() for text in value for part in text.split(",")]
            return tuple(part for part in parts if part)
        return value

    @property
    def as_json(self) -> bool:
        """Whether to print JSON."""
        return "json" in self._values

    @property
    def quiet(self) -> bool:
        """Whether to print results alone."""
        return "quiet" in self._values

    @property
    def verbose(self) -> int:
        """How much to log."""
        return int(self._values.get("verbose", 0))


def _was_given(value: Any) -> bool:
    # Numbers are given as texts: only --verbose, which is counted, is 0 where it was not given.
    return value not in (None, False, 0) and value != []


class GroupedCommand(TyperCommand):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each group under its heading."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                heading = "Arguments"
                record = (str(parameter.metavar), record[1])
            else:
                heading = getattr(parameter, "rich_help_panel", None) or "Output"
            rows.setdefault(heading, []).append(record)
        for heading in ("Arguments", *GROUPS):
            if heading in rows:
                with formatter.section(heading):
                    formatter.write_dl(rows[heading])


Body = Callable[[Given], int | None]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name, its options, and what it does with them."""

    name: str
    options: tuple[Option, ...]
    body: Body

    def add_to(self, app: typer.Typer, *, with_options: bool = True) -> None:
        """Let typer parse it; without its options it is only listed, which is faster."""

        def run(**values: Any) -> int | None:
            return self.body(Given(self.options, values))

        parameters = []
        if with_options:
            parameters = [_parameter(option) for option in self.options]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__doc__ = self.body.__doc__
        app.command(self.name, cls=GroupedCommand)(run)


def command(
    *options: "Option | tuple[Option, ...]", name: str | None = None
) -> Callable[[Body], Command]:
    """Make a command of a function that is given its options."""
    listed: list[Option] = []
    for one in options:
        listed += [one] if isinstance(one, Option) else one

    def made(body: Body) -> Command:
        return Command(name or body.__name__, tuple(listed), body)

    return made


def _parameter(option: Option) -> inspect.Parameter:
    if option is not VERBOSE:
        return option.parameter()
    # How often it is given counts.
    info = typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help=option.named.setting.help,
        rich_help_panel=option.group,
    )
    return inspect.Parameter(
        "verbose", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=Annotated[int, info]
    )
