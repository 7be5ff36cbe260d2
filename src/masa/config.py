"""masa.toml: one frozen, checked configuration, and the data and client it describes."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from masa import clients, difficulty, history
from masa.assess import assess
from masa.budget import amount
from masa.cheap import KINDS
from masa.clients import Client, Context
from masa.clients.replay import Options as ReplayOptions
from masa.clients.replay import ReplayClient
from masa.clients.settings import Settings, checked, explained, first, in_words
from masa.dataset import Dataset, read
from masa.engine import Limits
from masa.errors import ConfigError, MasaError
from masa.objective import Objective, Tolerance
from masa.old import columned, compared, narrowed
from masa.plan import Plan, stratified
from masa.plan import Settings as AssessSettings
from masa.records import Assessment, Column
from masa.store import DEFAULT, opened
from masa.table import Table

FILE = Path("masa.toml")

PER = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "m": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}


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
            raise ConfigError(f"there is no API called {name!r}", hint=f"{some} such as replay:COL or python:module:function")
        return Api(client=name, **({} if kind == "replay" else {"price": "queries-only"}))

    def limit(self) -> Limits:
        """Give the engine's limits."""
        keys = self.limits
        return Limits(keys.concurrency, keys.rate, keys.tries, keys.patience, keys.failures)


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What a configuration describes, read and made: data, client, old answers, settings."""

    config: Config
    data: Dataset
    client: Client
    old: Column | None
    settings: AssessSettings


def worst_price(client: Client, data: Dataset, *, repeat: int = 0) -> int:
    """Give the most that asking about every item once can cost, and about the dearest ones again, in billionths."""
    prices = [client.price(data.item(place)) for place in range(len(data))] if client.priced else [0]
    return sum(prices) + repeat * max(prices)


def task(config: Config, *, also: Sequence[Api] = ()) -> Task:
    """Read the data, with what other APIs need too, and make the client; nothing is asked."""
    if config.api is None:
        hint = "name a client with --api replay:COL or python:module:function, or describe one in [api] of masa.toml"
        raise ConfigError("no API was given", hint=hint)
    columns = config.data
    table = Table.open(columns.path)
    names = [api.client.partition(":") for api in (config.api, *also)]
    answers = [argument for kind, _, argument in names if kind == "replay"] + ([columns.old] if columns.old else [])
    hard = difficulty.choose(table.columns, difficulty=columns.difficulty, old=columns.old, old_confidence=columns.old_confidence)
    sure = difficulty.beside(table.columns, columns.old, columns.old_confidence)
    data = read(
        table,
        label=columns.label,
        id=columns.id,
        predictions=[*answers, *columns.also],
        difficulty=hard.column,
        cost=columns.cost,
        group=columns.group,
        numbers=() if sure is None else (sure,),
        inputs=columns.input,
        unlabelled=columns.unlabelled,
    )
    client = made(config.api, data, columns.input)
    keys = config.assess
    settings = AssessSettings(
        keys.method,
        keys.levels,
        keys.seed,
        keys.mix,
        Tolerance.read(keys.tolerance),
        keys.confidence,
        hard.words,
        old_confidence=sure,
        also=columns.also,
        objective=Objective.read(keys.weights),
        cheap=cheap_column(columns),
        target_error=keys.target_error,
        decide=keys.decide,
        canary=keys.canary,
        fail_on=keys.fail_on,
        canary_ok=keys.canary_ok,
        strict=keys.strict,
    )
    return Task(config, data, client, data.predictions[columns.old] if columns.old else None, settings)


def cheap_column(columns: Data) -> tuple[str, str] | None:
    """Give what a cheap model may be trained on."""
    found = [(kind, name) for kind in KINDS if (name := getattr(columns, kind)) is not None]
    if len(found) > 1:
        raise ConfigError("a cheap model is trained on one column", hint="give --text, --image or --sound")
    for kind, name in found:
        if name not in columns.input:
            raise ConfigError(f"the {kind} column {name!r} is not an input", hint="name it in [data] input, or with --input, too")
    return found[0] if found else None


def made(api: Api, data: Dataset, inputs: tuple[str, ...]) -> Client:
    """Make the client, with secrets from the environment."""
    kind, _, argument = api.client.partition(":")
    if kind == "replay":
        return ReplayClient(data.predictions[argument], checked(ReplayOptions, api.options, where="[api]"), rows=data.rows)
    client = clients.make(api.client, api.options, Context(data.labels, inputs, os.environ))
    for name in client.columns:
        if name not in inputs:
            raise ConfigError(f"the client needs the column {name!r}", hint="name it in [data] input, or with --input")
    return client


@dataclass(frozen=True, slots=True)
class Validated:
    """What was found when nothing was asked."""

    items: int
    labels: int
    strata: int
    method: str
    client: str
    worst_cost: float | None
    queries: int | None
    money: float | None
    baseline: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa validate --json` prints."""
        return {"valid": True, **asdict(self), "notes": list(self.notes)}

    @property
    def text(self) -> str:
        """Tell it in a few lines."""
        every = (
            "only queries are counted" if self.worst_cost is None else f"asking every item costs at the most {self.worst_cost:g}"
        )
        limits = [f"{self.queries:,} queries"] if self.queries else []
        limits += [f"{self.money:g} in money"] if self.money else []
        return "\n".join(
            [
                f"data      {self.items:,} items, {self.labels:,} labels, {self.strata:,} strata",
                f"method    {self.method}",
                f"api       {self.client}; {every}",
                f"budget    {' and '.join(limits) or 'none: masa will ask before it spends'}",
                f"baseline  {self.baseline}",
                "Nothing was asked, nothing was spent.",
            ]
        )


def validated(task: Task) -> Validated:
    """Check what a run would begin with."""
    config, notes = task.config, list(task.data.notes)
    old = None if task.old is None else columned(task.data, task.old, task.settings.old_confidence)
    found = f"the column {config.data.old!r}" if config.data.old else "none yet: masa baseline makes one"
    data = task.data
    if task.old is None and config.store.is_file():
        with opened(config.store) as kept:
            run = history.current(kept, config.name)
            if run is not None:
                found = f"run {run.id} of {run.created[:10]}"
                try:
                    data, old = narrowed(*compared(kept, data, task.client, None, name=config.name))
                except MasaError as exc:
                    notes.append(f"{exc.message} (a new masa baseline mends that)")
                else:
                    found += f", {len(old.places):,} answers"
                    notes += old.notes
    method = task.settings.method
    if old is None:
        strata, _ = stratified(data, None, task.settings)
    else:
        plan = Plan.of(data, old, task.settings)
        method, strata = plan.method, plan.strata
        notes += plan.notes
    budget = config.budget
    if budget.queries is not None and budget.queries < 2 * len(strata) and method != "predictive":
        notes.append(
            f"the budget of {budget.queries:,} queries cannot ask two items of each of the {len(strata):,} strata; "
            f"raise it to {2 * len(strata):,} or more, or lower the levels"
        )
    return Validated(
        items=len(data),
        labels=len(data.labels),
        strata=len(strata),
        method=method,
        client=str(task.client.describe().get("api", "")),
        worst_cost=amount(worst_price(task.client, data)) if task.client.priced else None,
        queries=budget.queries,
        money=budget.money,
        baseline=found,
        notes=tuple(notes),
    )


def recorded(config: Config, predictions: tuple[str, ...], *, difficulty: str | None = None) -> Dataset:
    """Read the data with columns of recorded answers."""
    columns = config.data
    return read(
        columns.path,
        label=columns.label,
        id=columns.id,
        predictions=predictions,
        difficulty=difficulty,
        inputs=columns.input,
        unlabelled=columns.unlabelled,
    )


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


def assess_config(config: "Config | Path | str", **options: Any) -> Assessment:
    """Assess as a configuration, or its file, says; options such as `progress` or `resume` are those of `assess`."""
    found = config if isinstance(config, Config) else Config.load(Path(config))
    ready = task(found)
    return assess(
        ready.data,
        ready.client,
        **{
            "baseline": ready.old,
            "budget": found.budget.queries,
            "money": found.budget.money,
            "settings": ready.settings,
            "limits": found.limit(),
            "name": found.name,
            "store": found.store,
            **options,
        },
    )


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise ConfigError(f"there is no {file}", hint="masa init DATA writes one") from exc
    except (OSError, UnicodeError) as exc:
        raise ConfigError(f"{file} cannot be read: {exc}", hint="it must be a text file in UTF-8") from exc
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{file} is not TOML: {exc}", hint="texts stand in quotes, tables in [brackets]") from exc


def _anchor(content: dict[str, Any], folder: Path) -> None:
    """Make paths in a file relative to the file."""
    data = content.get("data")
    if isinstance(data, dict) and isinstance(data.get("path"), str):
        data["path"] = str(folder / data["path"])
    content["store"] = str(folder / content["store"]) if isinstance(content.get("store"), str) else str(folder / DEFAULT)


def _set(content: dict[str, Any], path: list[str], value: object) -> None:
    for part in path[:-1]:
        inner = content.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        content = inner
    content[path[-1]] = value


OPTIONS = {"data.path": "DATA", "api.client": "--api", "budget.queries": "--budget"}
"""Options that are not called like the last part of the key they override."""


def _explained(exc: ValidationError, model: type[Config], file: Path | None, given: Mapping[str, Any]) -> ConfigError:
    error = first(exc)
    path = tuple(str(part) for part in error["loc"])
    key = ".".join(path[:2])
    if given.get(key) not in (None, ()):
        option = OPTIONS.get(key, f"--{path[-1].replace('_', '-')}")
        return ConfigError(f"{option}: {in_words(error)}", hint="see masa COMMAND --help, or docs/cli.md")
    flags = {
        ("data",): ("no data was given", "name a file and its labels, DATA --label COL, or write masa.toml with masa init DATA"),
        ("data", "path"): ("no data was given", "name a file, or set path in [data]"),
        ("data", "label"): ("no column of labels was given", "name it with --label COL"),
        ("api", "client"): ("no API was given", "name a client with --api, or set client in [api]"),
    }
    if error["type"] == "missing" and path in flags:
        message, hint = flags[path]
        return ConfigError(message if file is None else f"{file}: {message}", hint=hint)
    return explained(exc, model, where=str(file) if file is not None else "the command line")
