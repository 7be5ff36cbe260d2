"""Predictions that others published: readers of their layouts, and the layout that masa keeps them in.

A data set becomes one Parquet file with the columns `id` and `label` and, for each API, `API.prediction` and `API.confidence`, or
`API@DATE.prediction` and so on where it was asked on several days: recorded APIs, any of which may be the old or the new one.
"""

import csv
import io
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb

from masa.data.dataset import MAX_LABELS, as_text, read
from masa.data.files import Table, literal, quoted
from masa.errors import DataError, UsageError
from masa.records import RESERVED
from masa.runs.baseline import import_answers

PREDICTION, CONFIDENCE = ".prediction", ".confidence"
DOWNLOAD = "download it again"
PARTIAL = "download it again, or leave out what is not there with --partial"
ALIASES = {
    "audiomnist": "amnist",
    "cmd": "command",
    "fer+": "ferplus",
    "fer": "ferplus",
    "affectnet": "afnet",
}
"""Other names of the paper's data sets."""
NAMED = 10
"""Ids and labels that are named at the most."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What one API answered about every item of a data set, on one day."""

    api: str
    predictions: Sequence[str | None]
    """one an item; None where the answer could not be read"""
    confidences: Sequence[float | None] | None = None
    date: str = ""
    """empty where it is not known"""
    price: float | None = None
    """US dollars for 10,000 queries"""

    @property
    def name(self) -> str:
        """What its columns are called."""
        return f"{self.api}@{self.date}" if self.date else self.api


@dataclass(frozen=True, slots=True)
class Collection:
    """A published data set: labels, and what APIs answered."""

    name: str
    task: str
    ids: Sequence[str]
    labels: Sequence[str]
    recordings: tuple[Recording, ...]
    """those of one API in the order of their dates; none for a data set that is left out"""
    source: str
    notes: tuple[str, ...] = ()


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
            found.setdefault(name.split("@")[0], []).append(name)
        return {api: tuple(names) for api, names in found.items()}

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Two recordings of one API, one after the other."""
        return tuple(pair for names in self.apis.values() for pair in pairwise(names))

    @classmethod
    def open(cls, path: Path) -> "Stored":
        """Look at a file in this layout."""
        columns = Table.open(path).columns
        names = tuple(
            column.removesuffix(PREDICTION) for column in columns if column.endswith(PREDICTION)
        )
        for wanted in ("id", "label"):
            if wanted not in columns or not names:
                raise DataError(
                    f"{path} has no column {wanted!r}"
                    if names
                    else f"{path} has no columns of predictions",
                    hint="it should have id, label and NAME.prediction; masa import table PATH makes such files",
                )
        with duckdb.connect() as connection:
            pairs = connection.execute(
                "SELECT key, value FROM parquet_kv_metadata(?)", [str(path)]
            ).fetchall()
            told = _told(next((value for key, value in pairs if bytes(key) == b"masa"), b"{}"))
            # A confidence that is missing anywhere is of no use as a difficulty.
            sure = [name for name in names if name + CONFIDENCE in columns]
            counts = ", ".join(f"count({quoted(name + CONFIDENCE)})" for name in sure) or "0"
            total, *known = connection.execute(
                f"SELECT count(*), {counts} FROM read_parquet(?)", [str(path)]
            ).fetchall()[0]
        confident = frozenset(
            name for name, count in zip(sure, known, strict=False) if count == total
        )
        return cls(path, path.stem, told["task"], names, confident, told["prices"])


def _told(content: bytes) -> dict[str, Any]:
    """Read what a file says of itself; what makes no sense is not there."""
    with suppress(ValueError, RecursionError):
        found = json.loads(content)
        if isinstance(found, dict):
            task, prices = found.get("task"), found.get("prices")
            known = {
                api: _maybe_number(price)
                for api, price in (prices if isinstance(prices, dict) else {}).items()
            }
            numbers = {
                api: price for api, price in known.items() if price is not None and price >= 0
            }
            return {"task": task if isinstance(task, str) else "", "prices": numbers}
    return {"task": "", "prices": {}}


def collections(
    layout: str, path: Path, *, partial: bool = False, columns: "Columns | None" = None
) -> Iterator[Collection]:
    """Read all data sets that are published in a layout; partial ones are refused unless they are allowed."""
    readers: dict[str, Callable[[], Iterable[Collection]]] = {
        "frugalml": lambda: frugalml(path, partial=partial),
        "hapi": lambda: hapi(path, partial=partial),
        "llmdrift": lambda: llmdrift(path, partial=partial),
        "table": lambda: [table(path, columns or Columns())],
    }
    if layout not in readers:
        raise UsageError(
            f"there is no layout {layout!r}", hint=f"the layouts are {', '.join(readers)}"
        )
    if columns is not None and layout != "table" and columns != Columns():
        raise UsageError(
            f"the layout {layout} says which column is what",
            hint="leave out --label, --id, --answers and --name",
        )
    if partial and layout == "table":
        raise UsageError("a table has no parts that could be missing", hint="leave out --partial")
    if not path.exists():
        raise DataError(
            f"{path} does not exist", hint="give the folder or file that you downloaded"
        )
    seen: dict[str, str] = {}
    for found in readers[layout]():
        if found.recordings:
            if found.name.casefold() in seen:
                other = seen[found.name.casefold()]
                raise DataError(
                    f"{other} and {found.source} are both called {found.name!r}",
                    hint="import them into two folders",
                )
            seen[found.name.casefold()] = found.source
            _check(found)
        yield found


def _check(found: Collection) -> None:
    """Refuse what could not be told apart or read back, before anything of it is written."""
    seen: dict[str, str] = {}
    for recording in found.recordings:
        if not recording.api:
            raise DataError(
                f"{found.source}: an API without a name", hint="name it with letters or digits"
            )
        other = seen.setdefault(recording.name.casefold(), recording.name)
        if other != recording.name or sum(one.name == other for one in found.recordings) > 1:
            raise DataError(
                f"{found.source}: two recordings are called {recording.name!r}",
                hint="give each API and date a name of its own",
            )
    if not found.ids:
        raise DataError(f"{found.source} holds no items", hint=DOWNLOAD)
    for key, label in zip(found.ids, found.labels, strict=True):
        if not label or label in RESERVED:
            raise DataError(
                f"{found.source}, item {key!r}: {label!r} cannot be a label", hint="rename it"
            )
    if len(set(found.labels)) > MAX_LABELS:
        raise DataError(
            f"{found.source} has more than {MAX_LABELS:,} labels", hint="is it the right column?"
        )
    for text in {
        *found.ids,
        *found.labels,
        *(said for one in found.recordings for said in one.predictions if said is not None),
    }:
        if text != text.encode(errors="replace").decode():
            raise DataError(
                f"{found.source}: {text!r} is not a text that UTF-8 can write", hint=DOWNLOAD
            )


def layout_of(path: Path) -> str | None:
    """Tell which layout a folder has; None for one of Parquet files."""
    if any(
        (folder / "meta.csv").is_file() and _is_hapi(folder / "meta.csv")
        for folder in (path, path / "tasks")
    ):
        return "hapi"
    return "frugalml" if _frugalml_folders(path) else None


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

    columns: dict[str, Any] = {"id": collection.ids, "label": collection.labels}
    for recording in collection.recordings:
        columns[recording.name + PREDICTION] = pd.array(list(recording.predictions), dtype="string")
        if recording.confidences is not None:
            columns[recording.name + CONFIDENCE] = pd.array(
                list(recording.confidences), dtype="Float64"
            )
    told = {
        "task": collection.task,
        "prices": {
            recording.api: recording.price
            for recording in collection.recordings
            if recording.price is not None
        },
    }
    path = folder / f"{collection.name}.parquet"
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as connection:
            connection.register("frame", pd.DataFrame(columns))
            options = f"FORMAT parquet, KV_METADATA {{masa: {literal(json.dumps(told))}}}"
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
    """Make the earliest answers of each API the baseline named DATA/API, and give those names."""
    names = []
    for api, recordings in kept.apis.items():
        column, sure = recordings[0] + PREDICTION, recordings[0] + CONFIDENCE
        numbers = [sure] if recordings[0] in kept.confident else []
        data = read(kept.path, label="label", id="id", predictions=[column], numbers=numbers)
        names.append(f"{kept.name}/{api}")
        import_answers(
            data,
            data.predictions[column],
            confidence=data.numbers.get(sure),
            name=names[-1],
            store=store,
        )
    return names


def how_to_use(made: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Tell what can be done with what was imported, by commands that work."""
    lines = []
    for one in made:
        apis = [name.split("@")[0] for name in one["recorded"]]
        twice = next((api for api in apis if apis.count(api) > 1), None)
        if twice is None:
            continue
        mine = [name for name in one["recorded"] if name.split("@")[0] == twice]
        known = f"--name {shlex.quote(one['name'] + '/' + twice)} --store {shlex.quote(str(folder / 'masa.db'))}"
        old = known if one["baselines"] else f"--old {shlex.quote(mine[0] + PREDICTION)}"
        api = shlex.quote(f"replay:{mine[-1]}{PREDICTION}")
        lines.append(
            f"masa assess {shlex.quote(one['file'])} --label label --id id --api {api} {old}"
        )
        break
    lines.append(f"masa reproduce all --data {shlex.quote(str(folder))}")
    return "\n".join(["", "What to do with it:", *(f"  {line}" for line in lines)])


def frugalml(path: Path, *, partial: bool = False) -> Iterator[Collection]:
    """Read FrugalML's layout: a folder `mlserviceperformance_X` a data set, with `meta.csv` and a file a model and column."""
    folders = _frugalml_folders(path)
    if not folders:
        raise DataError(
            f"{path} holds no data set in FrugalML's layout",
            hint="give a folder mlserviceperformance_X with meta.csv in it, or the folder that holds several",
        )
    for folder in folders:
        yield _frugalml_set(folder, partial=partial)


def _frugalml_folders(path: Path) -> list[Path]:
    if (path / "meta.csv").is_file():
        return [] if _is_hapi(path / "meta.csv") else [path]
    return sorted(
        found
        for folder in (path, path / "dataset")
        for found in folder.glob("mlserviceperformance_*")
        if found.is_dir()
    )


def _frugalml_set(folder: Path, *, partial: bool) -> Collection:
    meta = folder / "meta.csv"
    ids: list[str] = []
    labels: list[str] = []
    first, recordings, notes = "", [], []
    for line, row in _csv_rows(meta, ("Index", "MLaaS(API)")):
        index, api = row["Index"].strip(), _api(row["MLaaS(API)"])
        price = next((value for name, value in row.items() if name.startswith("Cost")), "").strip()
        part = {
            kind: folder / f"Model{index}_{kind}.txt"
            for kind in ("ImageName", "TrueLabel", "PredictedLabel", "Confidence")
        }
        missing = [file.name for file in part.values() if not _is_file(file)]
        if missing:
            words = f"{folder}: {', '.join(missing)} missing, of model {index} ({row['MLaaS(API)']}, {meta.name} line {line})"
            if not partial:
                raise DataError(words, hint=PARTIAL)
            notes.append(f"left out: {words}")
            continue
        mine = [name.rstrip(",") for name in _lines(part["ImageName"])]
        truth = [
            _whole(text, part["TrueLabel"], at)
            for at, text in enumerate(_lines(part["TrueLabel"]), 1)
        ]
        if not ids:
            ids, labels, first = mine, truth, f"Model{index}"
            _refuse_twice(ids, part["ImageName"])
            _same_rows(labels, ids, part["TrueLabel"], part["ImageName"], values=False)
        _same_rows(mine, ids, part["ImageName"], folder / f"{first}_ImageName.txt")
        _same_rows(truth, labels, part["TrueLabel"], folder / f"{first}_TrueLabel.txt")
        said = [
            _whole(text, part["PredictedLabel"], at)
            for at, text in enumerate(_lines(part["PredictedLabel"]), 1)
        ]
        sure = [
            _number(text, part["Confidence"], at)
            for at, text in enumerate(_lines(part["Confidence"]), 1)
        ]
        for kind, found in (("PredictedLabel", said), ("Confidence", sure)):
            _same_rows(found, ids, part[kind], folder / f"{first}_ImageName.txt", values=False)
            if not _text(part[kind]).endswith("\n"):
                notes.append(
                    f"{part[kind]} does not end with a whole line: its last value may be cut short"
                )
        recordings.append(Recording(api, said, sure, price=_price(price, meta, line)))
    name = _data_set(folder.name.removeprefix("mlserviceperformance_"))
    if not recordings:
        if not partial:
            raise DataError(f"{folder} holds no whole model", hint=DOWNLOAD)
        notes.append(f"left out: {folder} holds no whole model")
    return Collection(
        name,
        "",
        ids,
        labels,
        tuple(recordings),
        str(folder),
        (*notes, *_never_seen(name, labels, recordings)),
    )


def hapi(path: Path, *, partial: bool = False) -> Iterator[Collection]:
    """Read HAPI's layout: `tasks/meta.csv`, and JSON files of labels and of what each API answered on each date."""
    root = path / "tasks" if (path / "tasks" / "meta.csv").is_file() else path
    meta = root / "meta.csv"
    if not meta.is_file() or not _is_hapi(meta):
        raise DataError(
            f"{path} holds no tasks/meta.csv of HAPI's",
            hint="give the folder that the download was unpacked to",
        )
    rows: dict[tuple[str, str], list[tuple[int, dict[str, str]]]] = {}
    for line, row in _csv_rows(meta, ("task", "dataset", "api", "date", "path", "cost_per_10k")):
        rows.setdefault((row["task"], row["dataset"]), []).append((line, row))
    if not rows:
        raise DataError(f"{meta} lists no predictions", hint=DOWNLOAD)
    for (task, data), found in rows.items():
        yield _hapi_set(root, task, data, found, partial=partial)


def _hapi_set(
    root: Path, task: str, data: str, rows: list[tuple[int, dict[str, str]]], *, partial: bool
) -> Collection:
    where, name, meta = root / task / data / "labels.json", _data_set(data), root / "meta.csv"
    if not _inside(where, root):
        raise DataError(
            f"{meta}, line {rows[0][0]}: {data!r} leads outside of the download", hint=DOWNLOAD
        )
    left_out = Collection(name, task, (), (), (), str(where.parent))
    if not _is_file(where) and partial:
        return replace(left_out, notes=(f"left out: {where} is missing",))
    records = _records(where, ("example_id", "true_label"))
    if any(isinstance(record["true_label"], list | dict) for record in records):
        return replace(
            left_out,
            notes=(
                f"left out: {name} has several labels an item, and a confusion matrix is of one",
            ),
        )
    _refuse_twice([str(record["example_id"]) for record in records], where)
    labels = {str(record["example_id"]): as_text(record["true_label"]) or "" for record in records}
    said: dict[tuple[int, str, str], dict[str, dict[str, Any]]] = {}
    notes: list[str] = []
    prices = {}
    for line, row in _by_date(name, rows, meta, notes):
        file = next((found for found in _places(root, row) if _is_file(found)), None)
        if file is None:
            words = f"{row['path']} is missing, which {meta} line {line} names"
            if not partial:
                raise DataError(words, hint=PARTIAL)
            notes.append(f"left out: {words}")
            continue
        try:
            found = _records(file, ("example_id", "predicted_label"))
            _refuse_twice([str(record["example_id"]) for record in found], file)
        except DataError as exc:
            if not partial:
                raise
            notes.append(f"left out: {exc.message}")
            continue
        api = _api(row["api"]).removesuffix(f"_{task}").removesuffix(f"-{task}")
        prices[api] = _price(row["cost_per_10k"].strip(), meta, line)
        answers = {str(record["example_id"]): record for record in found}
        unlike = _unlike(list(labels), answers, str(file), str(where), partial=partial)
        notes += [unlike] if unlike else []
        if 2 * sum(key in answers for key in labels) > len(labels):
            said[line, api, row["date"].strip()] = answers
        else:
            notes.append(f"left out: {file}, which has answers about fewer than half of the items")
    ids = [key for key in labels if all(key in answers for answers in said.values())]
    if not said or not ids:
        words = f"{where.parent} holds no {'item that all recordings answer' if said else 'answers about labelled items'}"
        if not partial:
            raise DataError(words, hint=DOWNLOAD)
        return replace(left_out, notes=(*notes, f"left out: {words}"))
    notes += _left_out(name, len(ids), len(labels))
    recordings = tuple(
        Recording(
            api,
            [as_text(answers[key]["predicted_label"]) for key in ids],
            [_maybe_number(answers[key].get("confidence")) for key in ids],
            date=date,
            price=prices[api],
        )
        for (_, api, date), answers in said.items()
    )
    chosen = [labels[key] for key in ids]
    notes += _never_seen(name, chosen, recordings)
    return Collection(name, task, ids, chosen, recordings, str(where.parent), tuple(notes))


def _by_date(
    name: str, rows: list[tuple[int, dict[str, str]]], meta: Path, notes: list[str]
) -> list[tuple[int, dict[str, str]]]:
    """Bring the recordings of a data set into the order of their dates, as far as these are known to be dates."""
    dates = {row["date"].strip() for _, row in rows}
    if all(re.fullmatch(r"(\d\d)?\d\d-\d\d-\d\d", date) for date in dates):
        return sorted(rows, key=lambda found: found[1]["date"].strip())
    if len(dates) > 1:
        notes.append(
            f"{name}: the dates {', '.join(sorted(dates))} are not like 20-03-29, so they come in the order of {meta}"
        )
    return rows


def _places(root: Path, row: Mapping[str, str]) -> Iterator[Path]:
    """Give where in the download a file of predictions may be: as the index says, or as the layout does."""
    usual = root / row["task"] / row["dataset"] / row["api"] / f"{row['date']}.json"
    yield from (
        place
        for place in (root / row["path"], root.parent / row["path"], usual)
        if _inside(place, root)
    )


def _inside(path: Path, root: Path) -> bool:
    with suppress(OSError, ValueError):
        return path.resolve().is_relative_to(root.resolve())
    return False


def _unlike(
    wanted: Sequence[str], found: Mapping[str, object], source: str, other: str, *, partial: bool
) -> str | None:
    """Refuse answers about other items than the labelled ones, or tell about them."""
    known = set(wanted)
    missing, unknown = (
        [key for key in wanted if key not in found],
        [key for key in found if key not in known],
    )
    if not missing and not unknown:
        return None
    what = (
        f"no answer about {len(missing):,} items of {other}"
        if missing
        else f"{len(unknown):,} items that {other} has not"
    )
    words = f"{source}: {what}: {', '.join(repr(key) for key in (missing or unknown)[:NAMED])}"
    if not partial:
        raise DataError(words, hint=PARTIAL)
    return words


def _left_out(name: str, kept: int, items: int) -> list[str]:
    return (
        [f"{name}: {items - kept:,} of {items:,} items are left out: not every recording has them"]
        if kept < items
        else []
    )


def llmdrift(path: Path, *, partial: bool = False) -> Iterator[Collection]:
    """Read LLMDrift's layout: one table of free-text answers, several models and data sets in it, turned into labels.

    The models of one name come in the order of the table: 0613 of one year is before 0125 of the next.
    """
    source = Table.open(path)
    truth = "ref_answer" if "ref_answer" in source.columns else "label"
    wanted = ["model", "id", truth, "answer", *(["dataset"] if "dataset" in source.columns else [])]
    by_set: dict[str, dict[str, dict[str, str | None]]] = {}
    label: dict[str, dict[str, str]] = {}
    again = empty = 0
    with source.load(texts=wanted, numbers=()) as rows:
        names = ", ".join(rows.text[name] for name in wanted)
        for place, model, key, right, said, *of in rows.ask(
            f"SELECT place, {names} FROM rows ORDER BY place"
        ):
            if model is None or key is None or right is None:
                if not partial:
                    raise DataError(f"{rows.where(place)}: no model, id or {truth}", hint=PARTIAL)
                empty += 1
                continue
            data = of[0] if of and of[0] else path.name.split(".")[0]
            plain = right.strip().casefold()
            if label.setdefault(data, {}).setdefault(key, plain) != plain:
                raise DataError(
                    f"{rows.where(place)}: item {key!r} has another {truth} than before",
                    hint=DOWNLOAD,
                )
            answers = by_set.setdefault(data, {}).setdefault(model, {})
            again += key in answers
            answers.setdefault(key, said)
    common = (
        [f"{again:,} answers to questions that were asked before are left out"] if again else []
    )
    common += [f"{empty:,} rows without a model, an id or a label are left out"] if empty else []
    if not by_set:
        raise DataError(f"{path} has no row with a model, an id and a label", hint=DOWNLOAD)
    for data, models in by_set.items():
        keys, known, notes = list(label[data]), sorted(set(label[data].values())), list(common)
        for model, answers in list(models.items()):
            words = _unlike(keys, answers, f"{path}, {model}", "the others", partial=partial)
            notes += [words] if words else []
            if 2 * len(answers) <= len(keys) and len(models) > 1:
                notes.append(
                    f"left out: {model}, which has answers about fewer than half of the items"
                )
                del models[model]
        ids = [key for key in keys if all(key in answers for answers in models.values())]
        notes += _left_out(data, len(ids), len(keys))
        notes += _backwards(list(models))
        recordings = []
        for model, answers in models.items():
            api, date = _version(model)
            recordings.append(
                Recording(api, [said_label(answers[key], known) for key in ids], date=date)
            )
        unread = {one.name: sum(said is None for said in one.predictions) for one in recordings}
        notes += [
            f"{name}: {count:,} of {len(ids):,} answers name no label"
            for name, count in unread.items()
            if count
        ]
        chosen = [label[data][key] for key in ids]
        yield Collection(
            _data_set(data), "", ids, chosen, tuple(recordings), str(path), tuple(notes)
        )


def _backwards(models: Sequence[str]) -> Iterator[str]:
    """Point out models whose dates fall in the order of the table."""
    # A sort keeps the order of equals: that of the table.
    for (api, date), (other, later) in pairwise(
        sorted(map(_version, models), key=lambda found: found[0])
    ):
        if api == other and date > later:
            yield f"{api}: {date} comes before {later} in the table, and is taken to be the earlier one"


def said_label(answer: str | None, labels: Sequence[str]) -> str | None:
    """Tell which label a free text gives: the last one in brackets, square ones first, or the whole text; else None.

    >>> said_label("Is it [No]? So: [Yes] (no doubt: (no))", ["no", "yes"]), said_label("perhaps", ["no", "yes"])
    ('yes', None)
    """
    if answer is None:
        return None
    known = {name.casefold(): name for name in labels}
    for brackets in (r"\[([^\[\]]*)\]", r"\(([^()]*)\)"):
        marks = (mark.strip().casefold() for mark in re.findall(brackets, answer))
        if found := [known[mark] for mark in marks if mark in known]:
            return found[-1]
    return known.get(answer.strip().strip(".!\"'").casefold())


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of any table are what."""

    label: str = "label"
    id: str | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    """the column of each API, named API or API@DATE; none for those that are named NAME.prediction"""
    name: str | None = None


def table(path: Path, columns: Columns) -> Collection:
    """Take a table as it is."""
    source = Table.open(path)
    answers = dict(columns.answers) or {
        name.removesuffix(PREDICTION): name for name in source.columns if name.endswith(PREDICTION)
    }
    if not answers:
        raise UsageError(
            f"no column of {path} is named NAME.prediction",
            hint="name those that hold answers: --answers API@DATE=COLUMN",
        )
    sure = {name: column.removesuffix(PREDICTION) + CONFIDENCE for name, column in answers.items()}
    sure = {
        name: column
        for name, column in sure.items()
        if column in source.columns and column != answers[name]
    }
    data = read(
        source,
        label=columns.label,
        id=columns.id,
        predictions=answers.values(),
        numbers=sure.values(),
    )
    recordings = []
    for name, column in answers.items():
        api, _, date = name.partition("@")
        found = data.predictions[column]
        said = [
            None if found.values[code] in RESERVED else found.values[code] for code in found.codes
        ]
        numbers = data.numbers[sure[name]].tolist() if name in sure else None
        recordings.append(Recording(api, said, numbers, date=date))
    labels = [data.label.values[code] for code in data.label.codes]
    ids = [data.name(place) for place in range(len(data))]
    name = columns.name or path.name.split(".")[0]
    notes = (*data.notes, *_versions(recordings))
    return Collection(_data_set(name), "", ids, labels, tuple(recordings), str(path), notes)


def _versions(recordings: Sequence[Recording]) -> Iterator[str]:
    """Suggest that recordings whose names end in numbers are one API on several days."""
    stems: dict[str, list[str]] = {}
    for one in recordings:
        if not one.date and (found := re.fullmatch(r"(.+?)[-_ ]v?(\d[\w.]*)", one.api)):
            stems.setdefault(found[1], []).append(
                f"--answers {found[1]}@{found[2]}={one.api}{PREDICTION}"
            )
    for stem, options in stems.items():
        if len(options) > 1:
            yield f"if these are one API, {stem}, on several dates, say so: {' '.join(options)}"


def _is_hapi(meta: Path) -> bool:
    with suppress(DataError):
        return {"task", "dataset", "api", "date"} <= set(
            next(csv.reader(_text(meta).splitlines()[:1]), [])
        )
    return False


def _is_file(path: Path) -> bool:
    with suppress(OSError, ValueError):
        return path.is_file()
    return False


def _text(file: Path) -> str:
    """Read a file of the download."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise DataError(f"{file}: not UTF-8 at byte {exc.start:,}", hint=DOWNLOAD) from exc
    except (OSError, ValueError) as exc:
        words = (
            "does not exist"
            if isinstance(exc, FileNotFoundError)
            else f"cannot be read: {getattr(exc, 'strerror', None) or exc}"
        )
        raise DataError(f"{file} {words}", hint=DOWNLOAD) from exc
    if text.startswith("version https://git-lfs"):
        raise DataError(
            f"{file} is a pointer of Git LFS, not the file", hint="run git lfs pull in the download"
        )
    return text


def _csv_rows(file: Path, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Give the rows of a small index, each with its line."""
    reader = csv.DictReader(io.StringIO(_text(file), newline=""))
    try:
        missing = [name for name in wanted if name not in (reader.fieldnames or ())]
        if missing:
            raise DataError(f"{file}, line 1: no column {missing[0]!r}", hint=DOWNLOAD)
        for row in reader:
            if None in row or None in row.values():
                fields = len(reader.fieldnames or ())
                raise DataError(
                    f"{file}, line {reader.line_num}: not the {fields} fields of the header",
                    hint=DOWNLOAD,
                )
            yield reader.line_num, row
    except csv.Error as exc:
        raise DataError(f"{file}, line {reader.line_num}: not CSV: {exc}", hint=DOWNLOAD) from exc


def _lines(file: Path) -> list[str]:
    text = _text(file)
    return text.removesuffix("\n").split("\n") if text else []


def _records(file: Path, wanted: Sequence[str]) -> list[dict[str, Any]]:
    try:
        found = json.loads(_text(file))
    except json.JSONDecodeError as exc:
        raise DataError(
            f"{file}, line {exc.lineno:,}, column {exc.colno:,}: not JSON: {exc.msg}", hint=DOWNLOAD
        ) from exc
    except (ValueError, RecursionError) as exc:
        raise DataError(f"{file}: not JSON that can be read: {exc}", hint=DOWNLOAD) from exc
    if not isinstance(found, list) or not found:
        raise DataError(f"{file}: not a list of records", hint=DOWNLOAD)
    for at, record in enumerate(found, 1):
        missing = [key for key in wanted if not isinstance(record, dict) or key not in record]
        if missing:
            raise DataError(f"{file}, record {at:,}: no {missing[0]!r}", hint=DOWNLOAD)
    return found


def _refuse_twice(ids: Sequence[str], file: Path) -> None:
    seen: dict[str, int] = {}
    for at, key in enumerate(ids, 1):
        if not key:
            raise DataError(f"{file}, row {at:,}: no id", hint=DOWNLOAD)
        if seen.setdefault(key, at) != at:
            raise DataError(
                f"{file}, row {at:,}: {key!r} again, first in row {seen[key]:,}", hint=DOWNLOAD
            )


def _same_rows(
    found: Sequence[object],
    wanted: Sequence[object],
    file: Path,
    other: Path,
    *,
    values: bool = True,
) -> None:
    """Refuse a file that is shorter or longer than another, or whose rows are not the same."""
    if len(found) != len(wanted):
        raise DataError(
            f"{file} has {len(found):,} lines where {other.name} has {len(wanted):,}", hint=DOWNLOAD
        )
    if values and found != wanted:
        at = next(
            at for at, pair in enumerate(zip(found, wanted, strict=True)) if pair[0] != pair[1]
        )
        raise DataError(
            f"{file}, line {at + 1:,}: {found[at]!r} where {other.name} has {wanted[at]!r}",
            hint=DOWNLOAD,
        )


def _never_seen(name: str, labels: Sequence[str], recordings: Iterable[Recording]) -> Iterator[str]:
    """Name answers that are no item's label."""
    known = set(labels)
    for recording in recordings:
        odd = sorted({said for said in recording.predictions if said is not None} - known)
        if odd:
            count = sum(said in odd for said in recording.predictions)
            listed = ", ".join(map(repr, odd[:NAMED])) + (", ..." if len(odd) > NAMED else "")
            yield f"{name}: {recording.name} answered {listed}, which no item is labelled, {count:,} times"


def _whole(text: str, file: Path, line: int) -> str:
    """Read a label, which is a whole number that may be written as 3.000000e+00."""
    try:
        number = float(text)
        if number == int(number):
            return str(int(number))
    except (ValueError, OverflowError):
        pass
    raise DataError(
        f"{file}, line {line:,}: {text[:40]!r} is not the number of a label", hint=DOWNLOAD
    )


def _number(text: str, file: Path, line: int) -> float:
    number = _maybe_number(text)
    if number is None:
        raise DataError(f"{file}, line {line:,}: {text[:40]!r} is not a number", hint=DOWNLOAD)
    return number


def _price(text: str, meta: Path, line: int) -> float | None:
    number = _number(text, meta, line) if text else None
    if number is not None and number < 0:
        raise DataError(f"{meta}, line {line:,}: {text!r} is not a price", hint=DOWNLOAD)
    return number


def _maybe_number(value: object) -> float | None:
    """Read a finite number; None where there is none."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _version(model: str) -> tuple[str, str]:
    """Split a model's name into its API and its date.

    >>> _version("openaichat/gpt-4-0314"), _version("claude")
    (('gpt-4', '0314'), ('claude', ''))
    """
    name = model.rsplit("/", 1)[-1]
    found = re.fullmatch(r"(.+?)[-@_]((?:\d{2,4}-?)?\d{2}-?\d{2})", name)
    return (found[1], found[2]) if found else (name, "")


def _api(name: str) -> str:
    """Name an API by plain letters: GitHub(DeepSpeech) is github-deepspeech.

    >>> _api("GitHub(DeepSpeech)"), _api("Face++"), _api("MS Speech")
    ('github-deepspeech', 'facepp', 'ms-speech')
    """
    return re.sub(r"[^\w.]+", "-", name.strip().lower().replace("++", "pp")).strip("-")


def _data_set(name: str) -> str:
    plain = re.sub(r"[^\w.+]+", "-", name.strip().lower()).strip("-.") or "data"
    return ALIASES.get(plain, plain)
