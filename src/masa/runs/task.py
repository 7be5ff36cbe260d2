"""From a configuration to what to run: the data, the client, the settings."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masa import clients
from masa.clients import Client, Context
from masa.clients.options import checked
from masa.clients.replay import Options as ReplayOptions
from masa.clients.replay import ReplayClient
from masa.data import difficulty
from masa.data.cheap_model import KINDS
from masa.data.dataset import Dataset, read
from masa.data.files import Table
from masa.errors import ConfigError
from masa.records import Assessment, Column
from masa.runs.assess import assess
from masa.runs.config import Api, Config, Data
from masa.settings import Objective, Tolerance
from masa.settings import Settings as AssessSettings


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
    prices = (
        [client.price(data.item(place)) for place in range(len(data))] if client.priced else [0]
    )
    return sum(prices) + repeat * max(prices)


def task(config: Config, *, also: Sequence[Api] = ()) -> Task:
    """Read the data, with what other APIs need too, and make the client; nothing is asked."""
    if config.api is None:
        hint = "name a client with --api replay:COL or python:module:function, or describe one in [api] of masa.toml"
        raise ConfigError("no API was given", hint=hint)
    columns = config.data
    table = Table.open(columns.path)
    names = [api.client.partition(":") for api in (config.api, *also)]
    answers = [argument for kind, _, argument in names if kind == "replay"] + (
        [columns.old] if columns.old else []
    )
    hard = difficulty.choose(
        table.columns,
        difficulty=columns.difficulty,
        old=columns.old,
        old_confidence=columns.old_confidence,
    )
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
    return Task(
        config, data, client, data.predictions[columns.old] if columns.old else None, settings
    )


def cheap_column(columns: Data) -> tuple[str, str] | None:
    """Give what a cheap model may be trained on."""
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


def made(api: Api, data: Dataset, inputs: tuple[str, ...]) -> Client:
    """Make the client, with secrets from the environment."""
    kind, _, argument = api.client.partition(":")
    if kind == "replay":
        return ReplayClient(
            data.predictions[argument],
            checked(ReplayOptions, api.options, where="[api]"),
            rows=data.rows,
        )
    client = clients.make(api.client, api.options, Context(data.labels, inputs, os.environ))
    for name in client.columns:
        if name not in inputs:
            raise ConfigError(
                f"the client needs the column {name!r}",
                hint="name it in [data] input, or with --input",
            )
    return client


def recorded(
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
