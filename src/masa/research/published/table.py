"""Any table with labels and answers, whose columns the user names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from masa.data.dataset import read
from masa.data.files import Table
from masa.errors import UsageError
from masa.records import RESERVED, Column
from masa.research.published.collection import (
    CONFIDENCE,
    PREDICTION,
    Collection,
    Recording,
    data_set_name,
)


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table hold what."""

    label: str = "label"
    id: str | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    """the column of each recording, by API or API@DATE; if empty, all that end in .prediction"""
    name: str | None = None
    """the name of the data set; by default that of the file"""
    inputs: tuple[str, ...] = ()
    """columns that an API is shown, kept as they are"""


def read_table(path: Path, columns: Columns) -> Collection:
    """Read a table; a column NAME.confidence goes with a column NAME.prediction."""
    source = Table.open(path)
    answers = dict(columns.answers)
    if not answers:
        answers = {
            name.removesuffix(PREDICTION): name
            for name in source.columns
            if name.endswith(PREDICTION)
        }
    if not answers:
        raise UsageError(
            f"no column of {path} is named NAME.prediction",
            hint="name those that hold answers: --answers API@DATE=COLUMN",
        )
    confidences = {}
    for name, column in answers.items():
        beside = column.removesuffix(PREDICTION) + CONFIDENCE
        # A column of answers may itself be named so, and is not its own confidence.
        if beside in source.columns and beside != column:
            confidences[name] = beside
    data = read(
        source,
        label=columns.label,
        id=columns.id,
        predictions=answers.values(),
        numbers=confidences.values(),
        inputs=columns.inputs,
    )
    recordings = []
    for name, column in answers.items():
        api, _, date = name.partition("@")
        numbers = None
        if name in confidences:
            numbers = data.numbers[confidences[name]].tolist()
        predictions = _readable_answers(data.predictions[column])
        recordings.append(Recording(api, predictions, numbers, date=date))
    return Collection(
        data_set_name(columns.name or path.name.split(".")[0]),
        "",
        [data.name(place) for place in range(len(data))],
        [data.label.values[code] for code in data.label.codes],
        tuple(recordings),
        str(path),
        (*data.notes, *_version_notes(recordings)),
        {
            name: [data.item(place).inputs[name] for place in range(len(data))]
            for name in columns.inputs
        },
    )


def _readable_answers(column: Column) -> list[str | None]:
    """List the answers of a column; None for those that were invalid or failed."""
    readable: list[str | None] = list(column.values)
    for code, value in enumerate(column.values):
        if value in RESERVED:
            readable[code] = None
    return [readable[code] for code in column.codes]


def _version_notes(recordings: Sequence[Recording]) -> Iterator[str]:
    """Suggest that recordings whose names end in numbers are one API on several dates."""
    options: dict[str, list[str]] = {}
    for recording in recordings:
        version = re.fullmatch(r"(.+?)[-_ ]v?(\d[\w.]*)", recording.api)
        if version is None or recording.date:
            continue
        api, date = version.groups()
        options.setdefault(api, []).append(f"--answers {api}@{date}={recording.api}{PREDICTION}")
    for api, found in options.items():
        if len(found) > 1:
            yield f"if these are one API, {api}, on several dates, say so: {' '.join(found)}"
