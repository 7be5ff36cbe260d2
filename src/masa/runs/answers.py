"""Everything that was paid for in a run, as a table: from its journal, and the data if at hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from masa.data.baseline_answers import BaselineAnswers, from_column
from masa.data.dataset import Dataset
from masa.records import ERROR, AnswerTable, amount, changed_how
from masa.records.answers import COLUMNS
from masa.runs.journalled import keys, places
from masa.runs.stored_baseline import earlier_baseline
from masa.storage import history, journal
from masa.storage.history import Run
from masa.storage.journal import Past, RecordedAnswer
from masa.storage.store import Store


@dataclass(frozen=True, slots=True)
class OldAnswers:
    """Baseline answers and their confidences, by the keys of the items."""

    answer: Mapping[int, str]
    confidence: Mapping[int, float]

    @classmethod
    def of(cls, data: Dataset, old: BaselineAnswers) -> "OldAnswers":
        """Take them from a baseline that lies over the data."""
        key = keys(data)[old.places].tolist()
        said = np.array(old.answers.values, object)[old.answers.codes].tolist()
        sure = [] if old.confidence is None else old.confidence.tolist()
        return cls(
            dict(zip(key, said, strict=True)),
            {one: value for one, value in zip(key, sure, strict=False) if not np.isnan(value)},
        )

    @classmethod
    def of_column(cls, data: Dataset, name: str, confidence: str | None) -> "OldAnswers":
        """Take them from a column of the data, and their confidence from another."""
        return cls.of(data, from_column(data, data.predictions[name], confidence))

    @classmethod
    def of_past(cls, past: Past) -> "OldAnswers":
        """Take them from the journal of one run."""
        said = {key: one.prediction for key, one in past.answers.items()}
        sure = {
            key: one.confidence for key, one in past.answers.items() if one.confidence is not None
        }
        return cls(said, sure)

    @classmethod
    def stored(cls, store: Store, run: Run) -> "OldAnswers":
        """Take them from the runs of the store that a run was compared with."""
        answer: dict[int, str] = {}
        confidence: dict[int, float] = {}
        before = None if run.baseline is None else history.find(store, run.baseline)
        while before is not None:
            for key, recorded in journal.past(store, before.id).answers.items():
                # A later answer replaces an earlier one; a call that failed tells nothing.
                if key not in answer or answer[key] == ERROR:
                    answer[key] = recorded.prediction
                    if recorded.confidence is not None:
                        confidence[key] = recorded.confidence
            before = earlier_baseline(store, before)
        return cls(answer, confidence)


def table(
    run: int,
    past: Past,
    old: OldAnswers,
    data: Dataset | None,
    *,
    priced: bool,
    inputs: bool = False,
) -> AnswerTable:
    """Make the table of a journal; with the texts of the data, if they are wanted."""
    place = {} if data is None else places(data, past.answers)
    rows = [
        (recorded, repeat)
        for repeat, answers in ((False, past.answers), (True, past.repeats))
        for recorded in answers.values()
    ]
    filled: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for recorded, repeat in rows:
        for name, value in _row(recorded, repeat, past, old, data, place, priced).items():
            filled[name].append(value)
    shown: dict[str, Sequence[str]] = {}
    if inputs and data is not None and data.inputs is not None:
        items = [
            None if one.item not in place else data.item(place[one.item]).inputs for one, _ in rows
        ]
        shown = {
            name: ["" if texts is None else texts[name] for texts in items]
            for name in data.inputs.columns
        }
    return AnswerTable(run, filled, shown)


def _row(
    recorded: RecordedAnswer,
    repeat: bool,
    past: Past,
    old: OldAnswers,
    data: Dataset | None,
    place: Mapping[int, int],
    priced: bool,
) -> dict[str, Any]:
    key = recorded.item
    batch = probability = item = label = None
    if key in past.draws and not repeat:
        batch, probability, _ = past.draws[key]
    if data is not None and key in place:
        item = data.name(place[key])
        label = data.label.values[data.label.codes[place[key]]]
    before = old.answer.get(key)
    calls, money = past.spent.get(key, (0, 0))
    if repeat:
        # All calls about an item stand in the row of its first answer.
        calls, money = 0, 0
    return {
        "key": key,
        "item": item,
        "label": label,
        "old": before,
        "new": recorded.prediction,
        "changed": changed_how(label, before, recorded.prediction),
        "old_confidence": old.confidence.get(key),
        "confidence": recorded.confidence,
        "version": recorded.version,
        "unread": recorded.unread,
        "repeat": repeat,
        "batch": batch,
        "probability": probability,
        "weight": None if repeat else past.weights.get(key, (None, None))[0],
        "cost": amount(money) if priced else None,
        "calls": calls,
        "asked": datetime.fromtimestamp(recorded.sent, UTC).isoformat(timespec="seconds"),
    }


def missing(data: Dataset, past: Past) -> int:
    """Count the answers about items that the data does not have."""
    return len(past.answers) - len(places(data, past.answers))
