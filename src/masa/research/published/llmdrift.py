"""LLMDrift's layout: one table of free-text answers, with several models and data sets in it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from masa.data.files import Table
from masa.errors import DataError
from masa.research.published.collection import (
    DOWNLOAD,
    PARTIAL,
    Collection,
    Recording,
    data_set_name,
    left_out_note,
    other_items,
)


def read_llmdrift(path: Path, *, partial: bool = False) -> Iterator[Collection]:
    """Read a table of free-text answers, one row per model and item, and turn them into labels.

    Versions of one model come in the order of the table, not of their dates: 0613 of one year is
    before 0125 of the next. Rows and models that lack something are refused, or left out with a
    note if partial.
    """
    table = _read_table(path, partial=partial)
    common_notes = []
    if table.repeated:
        common_notes.append(
            f"{table.repeated:,} answers to questions that were asked before are left out"
        )
    if table.incomplete:
        common_notes.append(
            f"{table.incomplete:,} rows without a model, an id or a label are left out"
        )
    if not table.answers:
        raise DataError(f"{path} has no row with a model, an id and a label", hint=DOWNLOAD)
    for name, models in table.answers.items():
        labels = table.labels[name]
        yield _collection(path, name, labels, models, common_notes, partial=partial)


@dataclass(slots=True)
class _Table:
    """The rows of the table, by data set."""

    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """the label of each item, by data set"""
    answers: dict[str, dict[str, dict[str, str | None]]] = field(default_factory=dict)
    """the text that each model answered to each item, by data set"""
    repeated: int = 0
    """rows about a model and item that an earlier row is about"""
    incomplete: int = 0
    """rows without a model, an id or a label"""


def _read_table(path: Path, *, partial: bool) -> _Table:
    source = Table.open(path)
    label_column = "label"
    if "ref_answer" in source.columns:
        label_column = "ref_answer"
    wanted = ["model", "id", label_column, "answer"]
    if "dataset" in source.columns:
        wanted.append("dataset")
    table = _Table()
    with source.load(texts=wanted, numbers=()) as rows:
        columns = ", ".join(rows.text[name] for name in wanted)
        query = f"SELECT place, {columns} FROM rows ORDER BY place"
        for place, model, key, label, answer, *data_set in rows.ask(query):
            if model is None or key is None or label is None:
                if not partial:
                    raise DataError(
                        f"{rows.where(place)}: no model, id or {label_column}", hint=PARTIAL
                    )
                table.incomplete += 1
                continue
            name = path.name.split(".")[0]
            if data_set and data_set[0]:
                name = data_set[0]
            plain_label = label.strip().casefold()
            known_label = table.labels.setdefault(name, {}).setdefault(key, plain_label)
            if known_label != plain_label:
                raise DataError(
                    f"{rows.where(place)}: item {key!r} has another {label_column} than before",
                    hint=DOWNLOAD,
                )
            answers = table.answers.setdefault(name, {}).setdefault(model, {})
            # Of several answers to one question the first counts.
            if key in answers:
                table.repeated += 1
            answers.setdefault(key, answer)
    return table


def _collection(
    path: Path,
    name: str,
    labels: dict[str, str],
    models: dict[str, dict[str, str | None]],
    common_notes: Sequence[str],
    *,
    partial: bool,
) -> Collection:
    keys = list(labels)
    label_names = sorted(set(labels.values()))
    notes = list(common_notes)
    for model, answers in list(models.items()):
        notes += other_items(keys, answers, f"{path}, {model}", "the others", partial=partial)
        # An item that one model lacks is left out for all, so a model with few answers goes.
        if 2 * len(answers) <= len(keys) and len(models) > 1:
            notes.append(f"left out: {model}, which has answers about fewer than half of the items")
            del models[model]
    ids = [key for key in keys if all(key in answers for answers in models.values())]
    notes += left_out_note(name, len(ids), len(keys))
    notes += _falling_dates(list(models))
    recordings = []
    for model, answers in models.items():
        api, date = _api_and_date(model)
        predictions = [said_label(answers[key], label_names) for key in ids]
        recordings.append(Recording(api, predictions, date=date))
    for recording in recordings:
        unread = list(recording.predictions).count(None)
        if unread:
            notes.append(f"{recording.name}: {unread:,} of {len(ids):,} answers name no label")
    return Collection(
        data_set_name(name),
        "",
        ids,
        [labels[key] for key in ids],
        tuple(recordings),
        str(path),
        tuple(notes),
    )


def _falling_dates(models: Sequence[str]) -> Iterator[str]:
    """Point out versions whose dates fall in the order of the table."""
    # Sorting by the API keeps the order of the table within each API.
    versions = sorted(map(_api_and_date, models), key=lambda version: version[0])
    for (api, date), (next_api, next_date) in pairwise(versions):
        if api == next_api and date > next_date:
            yield (
                f"{api}: {date} comes before {next_date} in the table, and is taken to be the "
                "earlier one"
            )


def said_label(answer: str | None, labels: Sequence[str]) -> str | None:
    """Find the label that a free text gives, or None.

    It is the last label in square brackets, else the last one in round ones, else the whole text.

    >>> said_label("Is it [No]? So: [Yes] (no doubt: (no))", ["no", "yes"])
    'yes'
    >>> said_label("perhaps", ["no", "yes"])
    """
    if answer is None:
        return None
    known = {name.casefold(): name for name in labels}
    for brackets in (r"\[([^\[\]]*)\]", r"\(([^()]*)\)"):
        marks = [mark.strip().casefold() for mark in re.findall(brackets, answer)]
        found = [known[mark] for mark in marks if mark in known]
        if found:
            return found[-1]
    return known.get(answer.strip().strip(".!\"'").casefold())


def _api_and_date(model: str) -> tuple[str, str]:
    """Split a model's name into its API and its date.

    >>> _api_and_date("openaichat/gpt-4-0314"), _api_and_date("claude")
    (('gpt-4', '0314'), ('claude', ''))
    """
    name = model.rsplit("/", 1)[-1]
    found = re.fullmatch(r"(.+?)[-@_]((?:\d{2,4}-?)?\d{2}-?\d{2})", name)
    if found is None:
        return name, ""
    return found[1], found[2]
