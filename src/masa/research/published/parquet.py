"""The layout that masa keeps: one Parquet file per data set.

A file has the columns `id` and `label` and, for each API, `API.prediction` and `API.confidence`, or
`API@DATE.prediction` and so on where the API was asked on several days. Each is a recorded API, and
any of them may be the baseline or the new one. Prices and the task are in the file's metadata.
"""

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb

from masa.data.dataset import read
from masa.data.files import Table, literal, quoted
from masa.errors import DataError, UsageError
from masa.research.published.collection import CONFIDENCE, PREDICTION, Collection
from masa.research.published.downloaded_files import number_or_none
from masa.runs.baseline import import_answers

METADATA_KEY = "masa"
"""The key of masa's entry in a Parquet file's metadata."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A data set in the layout that masa keeps."""

    path: Path
    name: str
    task: str
    recorded: tuple[str, ...]
    """the names of the recorded answers, API or API@DATE"""
    confident: frozenset[str]
    """those of them that have a confidence for every answer"""
    prices: Mapping[str, float] = field(default_factory=dict)
    """US dollars for 10,000 queries, by API"""

    @property
    def apis(self) -> dict[str, tuple[str, ...]]:
        """The recorded answers of each API, the earliest first."""
        found: dict[str, list[str]] = {}
        for name in self.recorded:
            found.setdefault(_api(name), []).append(name)
        return {api: tuple(names) for api, names in found.items()}

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All pairs of consecutive recordings of one API."""
        return tuple(pair for names in self.apis.values() for pair in pairwise(names))

    @classmethod
    def open(cls, path: Path) -> "Stored":
        """Look at a file in this layout."""
        columns = Table.open(path).columns
        names = tuple(
            column.removesuffix(PREDICTION) for column in columns if column.endswith(PREDICTION)
        )
        _refuse_other_columns(path, columns, names)
        with duckdb.connect() as connection:
            entries = connection.execute(
                "SELECT key, value FROM parquet_kv_metadata(?)", [str(path)]
            ).fetchall()
            # A confidence that is missing anywhere is of no use as a difficulty.
            with_confidence = [name for name in names if name + CONFIDENCE in columns]
            counts = [f"count({quoted(name + CONFIDENCE)})" for name in with_confidence] or ["0"]
            total, *known = connection.execute(
                f"SELECT count(*), {', '.join(counts)} FROM read_parquet(?)", [str(path)]
            ).fetchall()[0]
        # Not strict: without any confidence there is still the count of "0".
        confident = frozenset(
            name for name, count in zip(with_confidence, known, strict=False) if count == total
        )
        ours = [value for key, value in entries if bytes(key) == METADATA_KEY.encode()]
        # Files that others made have no such entry.
        task, prices = _metadata((ours or [b"{}"])[0])
        return cls(path, path.stem, task, names, confident, prices)


def _api(name: str) -> str:
    """Return the API of recorded answers: what is before the date."""
    return name.partition("@")[0]


def _refuse_other_columns(path: Path, columns: Sequence[str], names: Sequence[str]) -> None:
    hint = "it should have id, label and NAME.prediction; masa import table PATH makes such files"
    if not names:
        raise DataError(f"{path} has no columns of predictions", hint=hint)
    for wanted in ("id", "label"):
        if wanted not in columns:
            raise DataError(f"{path} has no column {wanted!r}", hint=hint)


def _metadata(content: bytes) -> tuple[str, dict[str, float]]:
    """Read the task and the prices from a file's metadata; whatever makes no sense is ignored."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return "", {}
    if not isinstance(found, dict):
        return "", {}
    task, prices = found.get("task"), found.get("prices")
    if not isinstance(task, str):
        task = ""
    known = {}
    if isinstance(prices, dict):
        for api, value in prices.items():
            price = number_or_none(value)
            if price is not None and price >= 0:
                known[api] = price
    return task, known


def stored(folder: Path) -> list[Stored]:
    """Look at all data sets in a folder of the layout that masa keeps."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise DataError(
            f"{folder} holds no data sets",
            hint="give a folder of Parquet files, as masa import makes them, or a download",
        )
    return [Stored.open(file) for file in files]


def save(collection: Collection, folder: Path) -> Stored:
    """Write a data set in the layout that masa keeps."""
    import pandas as pd

    columns: dict[str, Any] = {
        "id": collection.ids,
        "label": collection.labels,
        **collection.inputs,
    }
    prices = {}
    for recording in collection.recordings:
        columns[recording.name + PREDICTION] = pd.array(list(recording.predictions), dtype="string")
        if recording.confidences is not None:
            columns[recording.name + CONFIDENCE] = pd.array(
                list(recording.confidences), dtype="Float64"
            )
        if recording.price is not None:
            prices[recording.api] = recording.price
    metadata = json.dumps({"task": collection.task, "prices": prices})
    path = folder / f"{collection.name}.parquet"
    # Written beside and then moved into place: an interruption leaves no half-written file.
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as connection:
            connection.register("frame", pd.DataFrame(columns))
            options = f"FORMAT parquet, KV_METADATA {{{METADATA_KEY}: {literal(metadata)}}}"
            connection.execute(
                f"COPY (SELECT * FROM frame) TO {literal(str(unfinished))} ({options})"
            )
        unfinished.replace(path)
    except (OSError, duckdb.Error) as exc:
        raise UsageError(
            f"{path} cannot be written: {exc}", hint="give another folder with --out"
        ) from exc
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return Stored.open(path)


def baselines(kept: Stored, store: Path) -> list[str]:
    """Make the earliest answers of each API the baseline named DATA/API, and return these names."""
    names = []
    for api, recordings in kept.apis.items():
        first = recordings[0]
        answers, confidence = first + PREDICTION, first + CONFIDENCE
        numbers = []
        if first in kept.confident:
            numbers.append(confidence)
        data = read(kept.path, label="label", id="id", predictions=[answers], numbers=numbers)
        name = f"{kept.name}/{api}"
        import_answers(
            data,
            data.predictions[answers],
            confidence=data.numbers.get(confidence),
            name=name,
            store=store,
        )
        names.append(name)
    return names


def how_to_use(made: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Write commands that work on what was imported into a folder.

    Each entry of made is what `masa import --json` prints about a data set.
    """
    lines = ["", "What to do with it:"]
    lines += [f"  {command}" for command in _init_commands(made)]
    lines += [f"  {command}" for command in _assess_command(made, folder)]
    lines.append(f"  masa reproduce all --data {shlex.quote(str(folder))}")
    return "\n".join(lines)


def _init_commands(made: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Write how to ask the APIs again, where the data has what they are shown."""
    for data in made:
        if data["inputs"]:
            words = ["masa", "init", data["file"], "--label", "label", "--id", "id"]
            words += [word for name in data["inputs"] for word in ("--input", name)]
            words += ["--old", data["recorded"][-1] + PREDICTION, "--api", "openai"]
            yield shlex.join(words)


def _assess_command(made: Sequence[Mapping[str, Any]], folder: Path) -> list[str]:
    """Write the command that assesses the first API that was asked on several dates, if any was."""
    for data in made:
        apis = [_api(name) for name in data["recorded"]]
        repeated = [api for api in apis if apis.count(api) > 1]
        if not repeated:
            continue
        recordings = [name for name in data["recorded"] if _api(name) == repeated[0]]
        baseline = f"--old {shlex.quote(recordings[0] + PREDICTION)}"
        if data["baselines"]:
            name = shlex.quote(f"{data['name']}/{repeated[0]}")
            baseline = f"--name {name} --store {shlex.quote(str(folder / 'masa.db'))}"
        new = shlex.quote(f"replay:{recordings[-1]}{PREDICTION}")
        file = shlex.quote(data["file"])
        return [f"masa assess {file} --label label --id id --api {new} {baseline}"]
    return []
