"""From a configuration to what to run: the data, the client, the settings."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from masa import clients
from masa.clients import Client, Context
from masa.clients.options import checked
from masa.clients.replay import ReplayClient, ReplayOptions
from masa.data.cheap_model import KINDS
from masa.data.dataset import Dataset, read
from masa.data.difficulty import beside, choose
from masa.data.files import Table, folder_of
from masa.errors import ConfigError
from masa.records import Assessment, Column
from masa.runs.assess import assess
from masa.runs.config import Api, Config
from masa.settings import Columns, Settings


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What a configuration describes, read and made."""

    config: Config
    data: Dataset
    client: Client
    context: Context
    """what the client was made with"""
    old: Column | None
    settings: Settings


def task(config: Config, *, also: Sequence[Api] = (), imports: bool = True) -> Task:
    """Read the data, with what other APIs need too, and make the client; nothing is asked.

    `imports` allows code that the configuration names to be imported.
    """
    if config.api is None:
        raise ConfigError(
            "no API was given",
            hint="name a client with --api replay:COL or python:module:function, "
            "or describe one in [api] of masa.toml",
        )
    columns = config.data
    named = [api.client.partition(":") for api in (config.api, *also)]
    answers = [argument for kind, _, argument in named if kind == "replay"]
    data, settings = _read(config, answers)
    context = context_of(config, data, imports=imports)
    client = made_client(config.api, data, context)
    old = data.predictions[columns.old] if columns.old else None
    return Task(config, data, client, context, old, settings)


def _read(config: Config, answers: Sequence[str]) -> tuple[Dataset, Settings]:
    """Read the data with columns of answers; give the settings, with what its columns are."""
    columns = config.data
    table = Table.open(columns.path)
    difficulty = choose(
        table.columns,
        difficulty=columns.difficulty,
        old=columns.old,
        old_confidence=columns.old_confidence,
    )
    old_confidence = beside(table.columns, columns.old, columns.old_confidence)
    old = [columns.old] if columns.old else []
    data = read(
        table,
        label=columns.label,
        id=columns.id,
        predictions=[*answers, *old, *columns.also],
        difficulty=difficulty.column,
        cost=columns.cost,
        group=columns.group,
        numbers=() if old_confidence is None else (old_confidence,),
        inputs=columns.input,
        unlabelled=columns.unlabelled,
    )
    settings = replace(
        config.assess,
        difficulty=difficulty.words,
        old_confidence=old_confidence,
        also=columns.also,
        cheap=cheap_column(columns),
    )
    return data, settings


def labelled_data(config: Config, run: Mapping[str, Any] | None = None) -> Dataset:
    """Read the data of a configuration as an assessment does; its API is not needed.

    Recorded answers that the API plays are read, too: they are part of the data's fingerprint. Of
    the settings of a run the columns are taken that options may have named.
    """
    given = run or {}
    columns = config.data
    if given.get("old"):
        sure = given.get("old_confidence") or columns.old_confidence
        columns = replace(columns, old=given["old"], old_confidence=sure)
    if given.get("also"):
        columns = replace(columns, also=tuple(given["also"]))
    client = given.get("api") or ("" if config.api is None else config.api.client)
    kind, _, column = client.partition(":")
    return _read(replace(config, data=columns), [column] if kind == "replay" else [])[0]


def cheap_column(columns: Columns) -> tuple[str, str] | None:
    """Give what a cheap model may be trained on: text, image or sound, and its column."""
    found = [(kind, name) for kind in KINDS if (name := getattr(columns, kind)) is not None]
    if len(found) > 1:
        raise ConfigError(
            "a cheap model is trained on one column", hint="give --text, --image or --sound"
        )
    for kind, name in found:
        if name not in columns.input:
            raise ConfigError(
                f"the {kind} column {name!r} is not an input",
                hint="name it in [data] input, or with --input, too",
            )
    return found[0] if found else None


def context_of(config: Config, data: Dataset, *, imports: bool = True) -> Context:
    """Give what clients may know: of the environment, only what the configuration declares."""
    declared = {name: os.environ.get(name, "") for name in config.secrets}
    folder = folder_of(data.source)
    return Context(data.labels, config.data.input, declared, folder=folder, imports=imports)


def made_client(api: Api, data: Dataset, context: Context) -> Client:
    """Make a client."""
    kind, _, argument = api.client.partition(":")
    if kind == "replay":
        options = checked(ReplayOptions, api.options, where="[api]")
        return ReplayClient(data.predictions[argument], options, rows=data.rows)
    client = clients.make(api.client, api.options, context)
    for name in client.columns:
        if name not in context.inputs:
            raise ConfigError(
                f"the client needs the column {name!r}",
                hint="name it in [data] input, or with --input",
            )
    return client


def recorded_data(
    config: Config, predictions: tuple[str, ...], *, difficulty: str | None = None
) -> Dataset:
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


def assess_config(config: "Config | Path | str", **options: Any) -> Assessment:
    """Assess as a configuration, or its file, says.

    The options are those of `masa.assess`; they override what the configuration says.
    """
    found = config if isinstance(config, Config) else Config.load(Path(config))
    ready = task(found)
    said = {
        "baseline": ready.old,
        "budget": found.budget.queries,
        "money": found.budget.money,
        "settings": ready.settings,
        "limits": found.limits,
        "name": found.name,
        "store": found.store,
        "keep": found.keep,
    }
    return assess(ready.data, ready.client, **{**said, **options})
