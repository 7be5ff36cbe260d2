"""HAPI's layout: an index, a file of labels per data set, a file of answers per API and date."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from masa.data.dataset import as_text
from masa.errors import DataError
from masa.research.published.collection import (
    DOWNLOAD,
    PARTIAL,
    Collection,
    Recording,
    api_name,
    data_set_name,
    left_out_note,
    other_items,
    refuse_repeated,
    unknown_label_notes,
)
from masa.research.published.downloaded_files import (
    csv_rows,
    is_file,
    is_inside,
    json_records,
    number_or_none,
    read_price,
    read_text,
)

INDEX_COLUMNS = ("task", "dataset", "api", "date", "path", "cost_per_10k")

IndexRow = tuple[int, dict[str, str]]
"""A row of the index with its line number."""
Record = dict[str, Any]
"""An answer: example_id, predicted_label and perhaps confidence."""


def is_hapi_index(file: Path) -> bool:
    """Tell by its header whether a `meta.csv` is HAPI's."""
    with suppress(DataError):
        header = next(csv.reader(read_text(file).splitlines()[:1]), [])
        return {"task", "dataset", "api", "date"} <= set(header)
    return False


def read_hapi(path: Path, *, partial: bool = False) -> Iterator[Collection]:
    """Read `tasks/meta.csv`, and JSON files of labels and of each API's answers on each date.

    Data sets with several labels per item are left out. Files and items that are missing are
    refused, or left out with a note if partial.
    """
    root = path
    if (path / "tasks" / "meta.csv").is_file():
        root = path / "tasks"
    index = root / "meta.csv"
    if not index.is_file() or not is_hapi_index(index):
        raise DataError(
            f"{path} holds no tasks/meta.csv of HAPI's",
            hint="give the folder that the download was unpacked to",
        )
    by_set: dict[tuple[str, str], list[IndexRow]] = {}
    for line, row in csv_rows(index, INDEX_COLUMNS):
        by_set.setdefault((row["task"], row["dataset"]), []).append((line, row))
    if not by_set:
        raise DataError(f"{index} lists no predictions", hint=DOWNLOAD)
    for (task, data), rows in by_set.items():
        yield _read_set(root, task, data, rows, partial=partial)


@dataclass(slots=True)
class _Answers:
    """The answers about one data set."""

    recordings: dict[tuple[int, str, str], dict[str, Record]] = field(default_factory=dict)
    """by line of the index, API and date: the answer to each item"""
    prices: dict[str, float | None] = field(default_factory=dict)
    """US dollars for 10,000 queries, by API"""
    notes: list[str] = field(default_factory=list)


def _read_set(
    root: Path, task: str, data: str, rows: list[IndexRow], *, partial: bool
) -> Collection:
    index, labels_file = root / "meta.csv", root / task / data / "labels.json"
    name = data_set_name(data)
    if not is_inside(labels_file, root):
        raise DataError(
            f"{index}, line {rows[0][0]}: {data!r} leads outside of the download", hint=DOWNLOAD
        )
    left_out = Collection(name, task, (), (), (), str(labels_file.parent))
    if not is_file(labels_file) and partial:
        return replace(left_out, notes=(f"left out: {labels_file} is missing",))
    records = json_records(labels_file, ("example_id", "true_label"))
    if any(isinstance(record["true_label"], list | dict) for record in records):
        note = f"left out: {name} has several labels per item, and a confusion matrix needs one"
        return replace(left_out, notes=(note,))
    refuse_repeated([str(record["example_id"]) for record in records], labels_file)
    # Ids may be numbers in one file and texts in another, so they are compared as texts.
    labels = {str(record["example_id"]): as_text(record["true_label"]) or "" for record in records}
    answers = _read_answers(root, name, labels_file, list(labels), rows, partial=partial)
    notes = answers.notes
    # In the order of the labels: answers may come in another.
    ids = [key for key in labels if all(key in found for found in answers.recordings.values())]
    if not answers.recordings or not ids:
        words = f"{labels_file.parent} holds no answers about labelled items"
        if answers.recordings:
            words = f"{labels_file.parent} holds no item that all recordings answer"
        if not partial:
            raise DataError(words, hint=DOWNLOAD)
        return replace(left_out, notes=(*notes, f"left out: {words}"))
    notes += left_out_note(name, len(ids), len(labels))
    recordings = tuple(_recordings(answers, ids))
    chosen = [labels[key] for key in ids]
    notes += unknown_label_notes(name, chosen, recordings)
    return Collection(name, task, ids, chosen, recordings, str(labels_file.parent), tuple(notes))


def _read_answers(
    root: Path,
    name: str,
    labels_file: Path,
    ids: Sequence[str],
    rows: list[IndexRow],
    *,
    partial: bool,
) -> _Answers:
    """Read every file of answers that the index names for a data set."""
    index = root / "meta.csv"
    answers = _Answers()
    for line, row in _by_date(name, rows, index, answers.notes):
        try:
            file, found = _read_recording(root, index, line, row)
        except DataError as exc:
            if not partial:
                raise
            answers.notes.append(f"left out: {exc.message}")
            continue
        # HAPI names an API together with its task: google_sa.
        task = row["task"]
        api = api_name(row["api"]).removesuffix(f"_{task}").removesuffix(f"-{task}")
        answers.prices[api] = read_price(row["cost_per_10k"].strip(), index, line)
        answers.notes += other_items(ids, found, str(file), str(labels_file), partial=partial)
        # An item that one recording lacks is left out for all, so one with few answers goes.
        if 2 * sum(key in found for key in ids) > len(ids):
            answers.recordings[line, api, row["date"].strip()] = found
        else:
            answers.notes.append(
                f"left out: {file}, which has answers about fewer than half of the items"
            )
    return answers


def _read_recording(
    root: Path, index: Path, line: int, row: Mapping[str, str]
) -> tuple[Path, dict[str, Record]]:
    """Read the file that a row of the index names: answers by item."""
    file = next((found for found in _places(root, row) if is_file(found)), None)
    if file is None:
        raise DataError(f"{row['path']} is missing, which {index} line {line} names", hint=PARTIAL)
    records = json_records(file, ("example_id", "predicted_label"))
    refuse_repeated([str(record["example_id"]) for record in records], file)
    return file, {str(record["example_id"]): record for record in records}


def _recordings(answers: _Answers, ids: Sequence[str]) -> Iterator[Recording]:
    for (_, api, date), found in answers.recordings.items():
        yield Recording(
            api,
            [as_text(found[key]["predicted_label"]) for key in ids],
            [number_or_none(found[key].get("confidence")) for key in ids],
            date=date,
            price=answers.prices[api],
        )


def _by_date(name: str, rows: list[IndexRow], index: Path, notes: list[str]) -> list[IndexRow]:
    """Sort the rows of a data set by date, or note that their dates cannot be sorted."""
    dates = {row["date"].strip() for _, row in rows}
    if all(re.fullmatch(r"(\d\d)?\d\d-\d\d-\d\d", date) for date in dates):
        return sorted(rows, key=lambda found: found[1]["date"].strip())
    if len(dates) > 1:
        notes.append(
            f"{name}: the dates {', '.join(sorted(dates))} are not like 20-03-29, so they are "
            f"taken in the order of {index}"
        )
    return rows


def _places(root: Path, row: Mapping[str, str]) -> Iterator[Path]:
    """Yield where a file of answers may be: as the index says, or as the layout does."""
    usual = root / row["task"] / row["dataset"] / row["api"] / f"{row['date']}.json"
    for place in (root / row["path"], root.parent / row["path"], usual):
        # An index must not make masa read files elsewhere on the machine.
        if is_inside(place, root):
            yield place
