"""Predictions that others published: readers of their layouts, and the layout that masa keeps them in.

A data set becomes one Parquet file with the columns `id` and `label` and, for each API, `API.prediction` and `API.confidence`, or
`API@DATE.prediction` and so on where it was asked on several days: recorded APIs, any of which may be the old or the new one.
"""

import csv
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb

from masa.baseline import take_over
from masa.dataset import as_text, read
from masa.errors import DataError, UsageError
from masa.records import RESERVED
from masa.table import Table

PREDICTION, CONFIDENCE = ".prediction", ".confidence"
AGAIN = "download it again, or leave out what is not there with --partial"
ALIASES = {"audiomnist": "amnist", "cmd": "command", "fer+": "ferplus", "fer": "ferplus", "affectnet": "afnet"}
"""Other names of the paper's data sets."""
TRIES = 10
"""Ids that are named when some are missing."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What one API answered about every item of a data set, on one day."""

    api: str
    predictions: Sequence[str | None]
    """one an item; None where the answer could not be read"""
    confidences: Sequence[float | None] | None = None
    date: str = ""
    """in an order that sorts; empty where it is not known"""
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
    """none for a data set that is left out"""
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
        """The recorded answers of each API, by date."""
        found: dict[str, list[str]] = {}
        for name in self.recorded:
            found.setdefault(name.split("@")[0], []).append(name)
        return {api: tuple(sorted(names)) for api, names in found.items()}

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Two recordings of one API, one after the other."""
        return tuple(pair for names in self.apis.values() for pair in pairwise(names))

    @classmethod
    def open(cls, path: Path) -> "Stored":
        """Look at a file in this layout."""
        columns = Table.open(path).columns
        names = tuple(column.removesuffix(PREDICTION) for column in columns if column.endswith(PREDICTION))
        for wanted in ("id", "label"):
            if wanted not in columns or not names:
                raise DataError(
                    f"{path} has no column {wanted!r}" if names else f"{path} has no columns of predictions",
                    hint="it should have id, label and NAME.prediction; masa import table PATH makes such files",
                )
        with duckdb.connect() as connection:
            pairs = connection.execute("SELECT key, value FROM parquet_kv_metadata(?)", [str(path)]).fetchall()
            told = json.loads(next((value for key, value in pairs if bytes(key) == b"masa"), b"{}"))
            # A confidence that is missing anywhere is of no use as a difficulty.
            sure = [name for name in names if name + CONFIDENCE in columns]
            counts = ", ".join(f'count("{_doubled(name + CONFIDENCE)}")' for name in sure) or "0"
            total, *known = connection.execute(f"SELECT count(*), {counts} FROM read_parquet(?)", [str(path)]).fetchall()[0]
        confident = frozenset(name for name, count in zip(sure, known, strict=False) if count == total)
        return cls(path, path.stem, told.get("task", ""), names, confident, told.get("prices", {}))


def collections(layout: str, path: Path, *, partial: bool = False, columns: "Columns | None" = None) -> Iterator[Collection]:
    """Read all data sets that are published in a layout; partial ones are refused unless they are allowed."""
    readers: dict[str, Callable[[], Iterable[Collection]]] = {
        "frugalml": lambda: frugalml(path, partial=partial),
        "hapi": lambda: hapi(path, partial=partial),
        "llmdrift": lambda: llmdrift(path, partial=partial),
        "table": lambda: [table(path, columns or Columns())],
    }
    if layout not in readers:
        raise UsageError(f"there is no layout {layout!r}", hint=f"the layouts are {', '.join(readers)}")
    if not path.exists():
        raise DataError(f"{path} does not exist", hint="give the folder or file that you downloaded")
    yield from readers[layout]()


def layout_of(path: Path) -> str | None:
    """Tell which layout a folder has; None for one of Parquet files."""
    if any((folder / "meta.csv").is_file() and _is_hapi(folder / "meta.csv") for folder in (path, path / "tasks")):
        return "hapi"
    return "frugalml" if _frugalml_folders(path) else None


def stored(folder: Path) -> list[Stored]:
    """Look at all data sets in a folder of the layout that masa keeps."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise DataError(
            f"{folder} holds no data sets", hint="give a folder of Parquet files, as masa import makes them, or a download"
        )
    return [Stored.open(file) for file in files]


def save(collection: Collection, folder: Path) -> Stored:
    """Write a data set in the layout that masa keeps."""
    import pandas as pd

    columns: dict[str, Any] = {"id": collection.ids, "label": collection.labels}
    for recording in collection.recordings:
        columns[recording.name + PREDICTION] = pd.array(list(recording.predictions), dtype="string")
        if recording.confidences is not None:
            columns[recording.name + CONFIDENCE] = pd.array(list(recording.confidences), dtype="Float64")
    told = {
        "task": collection.task,
        "prices": {recording.api: recording.price for recording in collection.recordings if recording.price is not None},
    }
    path = folder / f"{collection.name}.parquet"
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as connection:
            connection.register("frame", pd.DataFrame(columns))
            metadata = json.dumps(told).replace("'", "''")
            where = str(unfinished).replace("'", "''")
            connection.execute(f"COPY (SELECT * FROM frame) TO '{where}' (FORMAT parquet, KV_METADATA {{masa: '{metadata}'}})")
        unfinished.replace(path)
    except (OSError, duckdb.IOException) as exc:
        raise UsageError(f"{path} cannot be written: {exc}", hint="give another folder with --out") from exc
    finally:
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
        take_over(data, data.predictions[column], confidence=data.numbers.get(sure), name=names[-1], store=store)
    return names


def how_to_use(made: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Tell what can be done with what was imported, by a command that works."""
    one = next((found for found in made if any("@" in name for name in found["recorded"])), made[0])
    first = min(one["recorded"], key=lambda name: (name.split("@")[0] != one["recorded"][0].split("@")[0], name))
    last = max(name for name in one["recorded"] if name.split("@")[0] == first.split("@")[0])
    lines = [f"masa assess {shlex.quote(one['file'])} --label label --id id --api {shlex.quote(f'replay:{last}{PREDICTION}')}"]
    if one["baselines"]:
        lines[0] += f" --name {shlex.quote(one['baselines'][0])} --store {shlex.quote(str(folder / 'masa.db'))}"
    else:
        lines[0] += f" --old {shlex.quote(first + PREDICTION)}"
    lines.append(f"masa reproduce all --data {shlex.quote(str(folder))}")
    return "\n".join(["", "Assess a recorded API, or carry out the paper's study:", *(f"  {line}" for line in lines)])


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
        found for folder in (path, path / "dataset") for found in folder.glob("mlserviceperformance_*") if found.is_dir()
    )


def _frugalml_set(folder: Path, *, partial: bool) -> Collection:
    meta = folder / "meta.csv"
    ids: list[str] = []
    labels: list[str] = []
    first, recordings, notes = "", [], []
    for line, row in _csv_rows(meta, ("Index", "MLaaS(API)")):
        index, api = row["Index"].strip(), _api(row["MLaaS(API)"])
        price = next((value for name, value in row.items() if name.startswith("Cost")), "")
        part = {kind: folder / f"Model{index}_{kind}.txt" for kind in ("ImageName", "TrueLabel", "PredictedLabel", "Confidence")}
        missing = [file.name for kind, file in part.items() if not file.is_file()]
        if missing:
            words = f"{folder}: {', '.join(missing)} missing, of model {index} ({row['MLaaS(API)']}, {meta.name} line {line})"
            if not partial:
                raise DataError(words, hint=AGAIN)
            notes.append(f"left out: {words}")
            continue
        mine = [name.rstrip(",") for name in _lines(part["ImageName"])]
        truth = [_whole(text, part["TrueLabel"], at) for at, text in enumerate(_lines(part["TrueLabel"]), 1)]
        if not ids:
            ids, labels, first = mine, truth, f"Model{index}"
            _refuse_twice(ids, part["ImageName"])
            _same_rows(labels, ids, part["TrueLabel"], part["ImageName"], values=False)
        _same_rows(mine, ids, part["ImageName"], folder / f"{first}_ImageName.txt")
        _same_rows(truth, labels, part["TrueLabel"], folder / f"{first}_TrueLabel.txt")
        said = [_whole(text, part["PredictedLabel"], at) for at, text in enumerate(_lines(part["PredictedLabel"]), 1)]
        sure = [_number(text, part["Confidence"], at) for at, text in enumerate(_lines(part["Confidence"]), 1)]
        for kind, found in (("PredictedLabel", said), ("Confidence", sure)):
            _same_rows(found, ids, part[kind], folder / f"{first}_ImageName.txt", values=False)
        recordings.append(Recording(api, said, sure, price=_number(price, meta, line) if price else None))
    if not recordings:
        raise DataError(f"{folder} holds no whole model", hint=AGAIN)
    name = _data_set(folder.name.removeprefix("mlserviceperformance_"))
    return Collection(name, "", ids, labels, tuple(recordings), str(folder), (*notes, *_never_seen(name, labels, recordings)))


def hapi(path: Path, *, partial: bool = False) -> Iterator[Collection]:
    """Read HAPI's layout: `tasks/meta.csv`, and JSON files of labels and of what each API answered on each date."""
    root = path / "tasks" if (path / "tasks" / "meta.csv").is_file() else path
    meta = root / "meta.csv"
    if not meta.is_file() or not _is_hapi(meta):
        raise DataError(f"{path} holds no tasks/meta.csv of HAPI's", hint="give the folder that the download was unpacked to")
    rows: dict[tuple[str, str], list[tuple[int, dict[str, str]]]] = {}
    for line, row in _csv_rows(meta, ("task", "dataset", "api", "date", "path", "cost_per_10k")):
        rows.setdefault((row["task"], row["dataset"]), []).append((line, row))
    for (task, data), found in rows.items():
        yield _hapi_set(root, task, data, found, partial=partial)


def _hapi_set(root: Path, task: str, data: str, rows: list[tuple[int, dict[str, str]]], *, partial: bool) -> Collection:
    where, name = root / task / data / "labels.json", _data_set(data)
    left_out = Collection(name, task, (), (), (), str(where.parent))
    if not where.is_file() and partial:
        return replace(left_out, notes=(f"left out: {where} is missing",))
    records = _records(where, ("example_id", "true_label"))
    if any(isinstance(record["true_label"], list | dict) for record in records):
        return replace(left_out, notes=(f"left out: {name} has several labels an item, and a confusion matrix is of one",))
    labels = {}
    for at, record in enumerate(records, 1):
        text = as_text(record["true_label"])
        if text is None or text in RESERVED:
            raise DataError(f"{where}, record {at:,}: {record['true_label']!r} cannot be a label", hint=AGAIN)
        labels[str(record["example_id"])] = text
    _refuse_twice([str(record["example_id"]) for record in records], where)
    answers: list[tuple[dict[str, str], dict[str, dict[str, Any]]]] = []
    notes = []
    for line, row in rows:
        file = next((found for found in _places(root, row) if found.is_file()), None)
        if file is None:
            words = f"{row['path']} is missing, which {root / 'meta.csv'} line {line} names"
            if not partial:
                raise DataError(words, hint=AGAIN)
            notes.append(f"left out: {words}")
            continue
        said = _records(file, ("example_id", "predicted_label"))
        _refuse_twice([str(record["example_id"]) for record in said], file)
        by_id = {str(record["example_id"]): record for record in said}
        _refuse_unlike(labels, by_id, file, where, partial=partial)
        answers.append((row, by_id))
    ids = [key for key in labels if all(key in by_id for _, by_id in answers)]
    if not answers or not ids:
        raise DataError(f"{root / task / data} holds no answers about labelled items", hint=AGAIN)
    if len(ids) < len(labels):
        notes.append(
            f"{name}: {len(labels) - len(ids):,} of {len(labels):,} items are left out, which some API was not asked about"
        )
    recordings = tuple(
        Recording(
            _api(row["api"]).removesuffix(f"_{task}").removesuffix(f"-{task}"),
            [as_text(by_id[key]["predicted_label"]) for key in ids],
            [_maybe_number(by_id[key].get("confidence")) for key in ids],
            date=row["date"].strip(),
            price=_maybe_number(row["cost_per_10k"]),
        )
        for row, by_id in answers
    )
    chosen = [labels[key] for key in ids]
    return Collection(
        name, task, ids, chosen, recordings, str(root / task / data), (*notes, *_never_seen(name, chosen, recordings))
    )


def _places(root: Path, row: Mapping[str, str]) -> Iterator[Path]:
    """Give where a file of predictions may be: as the index says, or as the layout does."""
    given = Path(row["path"])
    if not given.is_absolute() and ".." not in given.parts:
        yield from (root / given, root.parent / given)
    yield root / row["task"] / row["dataset"] / row["api"] / f"{row['date']}.json"


def _refuse_unlike(labels: Mapping[str, str], by_id: Mapping[str, object], file: Path, where: Path, *, partial: bool) -> None:
    """Refuse answers about other items than the labelled ones."""
    missing, unknown = [key for key in labels if key not in by_id], [key for key in by_id if key not in labels]
    if not partial and (missing or unknown):
        what = f"no answer about {len(missing):,} items of {where}" if missing else f"{len(unknown):,} items that {where} has not"
        first = ", ".join(repr(key) for key in (missing or unknown)[:TRIES])
        raise DataError(f"{file}: {what}: {first}", hint=AGAIN)


def llmdrift(path: Path, *, partial: bool = False) -> Iterator[Collection]:
    """Read LLMDrift's layout: one table of free-text answers, several models and data sets in it, turned into labels."""
    source = Table.open(path)
    truth = "ref_answer" if "ref_answer" in source.columns else "label"
    wanted = ["model", "id", truth, "answer", *(["dataset"] if "dataset" in source.columns else [])]
    by_set: dict[str, dict[str, dict[str, str | None]]] = {}
    label: dict[str, dict[str, str]] = {}
    again = 0
    with source.load(texts=wanted, numbers=()) as rows:
        names = ", ".join(rows.text[name] for name in wanted)
        for place, model, key, right, said, *of in rows.ask(f"SELECT place, {names} FROM rows ORDER BY place"):
            if model is None or key is None or right is None:
                if partial:
                    continue
                raise DataError(f"{rows.where(place)}: no model, id or {truth}", hint=AGAIN)
            data = _data_set(of[0] if of and of[0] else path.name.split(".")[0])
            plain = right.strip().casefold()
            if label.setdefault(data, {}).setdefault(key, plain) != plain:
                raise DataError(f"{rows.where(place)}: item {key!r} has another {truth} than before", hint=AGAIN)
            answers = by_set.setdefault(data, {}).setdefault(model, {})
            again += key in answers
            answers.setdefault(key, said)
    for data, models in by_set.items():
        known = sorted(set(label[data].values()))
        for model, answers in models.items():
            missing = [key for key in label[data] if key not in answers]
            if missing and not partial:
                raise DataError(f"{path}: {model} has no answer about {len(missing):,} items, {missing[0]!r} first", hint=AGAIN)
        ids = [key for key in label[data] if all(key in answers for answers in models.values())]
        recordings = []
        for model, answers in models.items():
            api, date = _version(model)
            recordings.append(Recording(api, [said_label(answers[key], known) for key in ids], date=date))
        unread = {one.name: sum(said is None for said in one.predictions) for one in recordings}
        notes = [f"{name}: {count:,} of {len(ids):,} answers name no label" for name, count in unread.items() if count]
        notes += [f"{again:,} answers to questions that were asked before are left out"] if again else []
        yield Collection(data, "", ids, [label[data][key] for key in ids], tuple(recordings), str(path), tuple(notes))


def said_label(answer: str | None, labels: Sequence[str]) -> str | None:
    """Tell which label a free text gives: the last one in brackets, or the whole text; None where there is none.

    >>> said_label("Is it [No]? It divides by nothing, so: [Yes]", ["no", "yes"]), said_label("perhaps", ["no", "yes"])
    ('yes', None)
    """
    if answer is None:
        return None
    marked = [mark.strip().casefold() for pair in re.findall(r"\[([^\[\]]*)\]|\(([^()]*)\)", answer) for mark in pair]
    known = {name.casefold(): name for name in labels}
    found = [known[mark] for mark in marked if mark in known]
    return found[-1] if found else known.get(answer.strip().strip(".!\"'").casefold())


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
            f"no column of {path} is named NAME.prediction", hint="name those that hold answers: --answers API@DATE=COLUMN"
        )
    sure = {name: column.removesuffix(PREDICTION) + CONFIDENCE for name, column in answers.items()}
    sure = {name: column for name, column in sure.items() if column in source.columns and column != answers[name]}
    data = read(source, label=columns.label, id=columns.id, predictions=answers.values(), numbers=sure.values())
    recordings = []
    for name, column in answers.items():
        api, _, date = name.partition("@")
        found = data.predictions[column]
        said = [None if found.values[code] in RESERVED else found.values[code] for code in found.codes]
        numbers = data.numbers[sure[name]].tolist() if name in sure else None
        recordings.append(Recording(api, said, numbers, date=date))
    labels = [data.label.values[code] for code in data.label.codes]
    ids = [data.name(place) for place in range(len(data))]
    name = columns.name or path.name.split(".")[0]
    return Collection(_data_set(name), "", ids, labels, tuple(recordings), str(path), data.notes)


def _is_hapi(meta: Path) -> bool:
    with meta.open(encoding="utf-8", errors="replace") as file:
        return {"task", "dataset", "api", "date"} <= {name.strip() for name in file.readline().split(",")}


def _csv_rows(file: Path, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Give the rows of a small index, each with its line."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.DictReader(opened)
            missing = [name for name in wanted if name not in (reader.fieldnames or ())]
            if missing:
                raise DataError(f"{file}, line 1: no column {missing[0]!r}", hint=AGAIN)
            for row in reader:
                if None in row or None in row.values():
                    raise DataError(
                        f"{file}, line {reader.line_num}: not the {len(reader.fieldnames or ())} fields of the header", hint=AGAIN
                    )
                yield reader.line_num, row
    except (UnicodeDecodeError, csv.Error) as exc:
        raise DataError(f"{file}: not a CSV file in UTF-8: {exc}", hint=AGAIN) from exc


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise DataError(f"{file}: not UTF-8 at byte {exc.start:,}", hint=AGAIN) from exc
    if text.startswith("version https://git-lfs"):
        raise DataError(f"{file} is a pointer of Git LFS, not the file", hint="run git lfs pull in the download")
    return text.removesuffix("\n").split("\n") if text else []


def _records(file: Path, wanted: Sequence[str]) -> list[dict[str, Any]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise DataError(f"{file} does not exist", hint=AGAIN) from exc
    except json.JSONDecodeError as exc:
        raise DataError(f"{file}, line {exc.lineno:,}, column {exc.colno:,}: not JSON: {exc.msg}", hint=AGAIN) from exc
    except (UnicodeDecodeError, RecursionError) as exc:
        raise DataError(f"{file}: not JSON in UTF-8: {exc}", hint=AGAIN) from exc
    if not isinstance(found, list) or not found:
        raise DataError(f"{file}: not a list of records", hint=AGAIN)
    for at, record in enumerate(found, 1):
        missing = [key for key in wanted if not isinstance(record, dict) or key not in record]
        if missing:
            raise DataError(f"{file}, record {at:,}: no {missing[0]!r}", hint=AGAIN)
    return found


def _refuse_twice(ids: Sequence[str], file: Path) -> None:
    seen: dict[str, int] = {}
    for at, key in enumerate(ids, 1):
        if not key:
            raise DataError(f"{file}, row {at:,}: no id", hint=AGAIN)
        if seen.setdefault(key, at) != at:
            raise DataError(f"{file}, row {at:,}: {key!r} again, first in row {seen[key]:,}", hint=AGAIN)


def _same_rows(found: Sequence[object], wanted: Sequence[object], file: Path, other: Path, *, values: bool = True) -> None:
    """Refuse a file that is shorter or longer than another, or whose rows are not the same."""
    if len(found) != len(wanted):
        raise DataError(f"{file} has {len(found):,} lines where {other.name} has {len(wanted):,}", hint=AGAIN)
    if values and found != wanted:
        at = next(at for at, pair in enumerate(zip(found, wanted, strict=True)) if pair[0] != pair[1])
        raise DataError(f"{file}, line {at + 1:,}: {found[at]!r} where {other.name} has {wanted[at]!r}", hint=AGAIN)


def _never_seen(name: str, labels: Sequence[str], recordings: Iterable[Recording]) -> Iterator[str]:
    """Name answers that are no item's label."""
    known = set(labels)
    for recording in recordings:
        odd = sorted({said for said in recording.predictions if said is not None} - known)
        if odd:
            count = sum(said in odd for said in recording.predictions)
            listed = ", ".join(map(repr, odd[:TRIES])) + (", ..." if len(odd) > TRIES else "")
            yield f"{name}: {recording.name} answered {listed}, which no item is labelled, {count:,} times"


def _whole(text: str, file: Path, line: int) -> str:
    """Read a label, which is a whole number that may be written as 3.000000e+00."""
    try:
        number = float(text)
        if number == int(number):
            return str(int(number))
    except (ValueError, OverflowError):
        pass
    raise DataError(f"{file}, line {line:,}: {text[:40]!r} is not the number of a label", hint=AGAIN)


def _number(text: str, file: Path, line: int) -> float:
    number = _maybe_number(text)
    if number is None:
        raise DataError(f"{file}, line {line:,}: {text[:40]!r} is not a number", hint=AGAIN)
    return number


def _maybe_number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if number == number else None  # noqa: PLR0124 - not a number is not itself


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
    return re.sub(r"[^a-z0-9_.]+", "-", name.strip().lower().replace("++", "pp")).strip("-")


def _data_set(name: str) -> str:
    plain = re.sub(r"[^a-z0-9_.+]+", "-", name.strip().lower()).strip("-.") or "data"
    return ALIASES.get(plain, plain)


def _doubled(name: str) -> str:
    return name.replace('"', '""')
