"""The evidence of an assessment, in one file: what anybody needs to compute its result again."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from masa.data.baseline_answers import BaselineAnswers, from_column
from masa.errors import DataError, UsageError
from masa.records import Column
from masa.runs.case import Case
from masa.runs.config import FILE, Config
from masa.runs.course import without_secrets
from masa.runs.finished import columns_of
from masa.runs.options import options
from masa.runs.stored_baseline import lay_over
from masa.runs.task import labelled_data
from masa.settings import Settings
from masa.storage import history, journal
from masa.storage.history import Run
from masa.storage.store import Store, opened_to_read

SCHEMA = 1

README = """\
This is the evidence of one assessment by masa: did the model behind an API change?

  result.json    what was concluded
  run.json       how: settings, seed, the baseline, versions
  items.jsonl    the items it could ask: keys (hashes), labels, baseline answers, confidences
  calls.jsonl    the answers, with the inclusion probabilities with which items were drawn

masa verify FILE computes the verdict, the intervals and the choice of the items again, and says
what it could not check. It holds no texts. That the API gave these answers it cannot show.
"""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is in a bundle."""

    run: dict[str, Any]
    result: dict[str, Any]
    items: list[dict[str, Any]]
    calls: list[dict[str, Any]]


def save(store_path: Path, number: int, output: Path, *, config: Path | None, words: bool) -> None:
    """Write the bundle of an assessment; the data that the configuration names must be at hand."""
    with opened_to_read(store_path) as store:
        evidence = gathered(store, history.find(store, number), config, words=words)
    try:
        write(evidence, output)
    except OSError as exc:
        raise UsageError(
            f"{output} cannot be written: {exc.strerror or exc}", hint="give another place"
        ) from exc


def gathered(store: Store, run: Run, config: Path | None, *, words: bool) -> Evidence:
    """Gather the evidence of an assessment."""
    result = run.result or {}
    made = result.get("made")
    if run.kind != "assess" or not made:
        raise UsageError(
            f"run {run.id} has no evidence to bundle",
            hint="only finished assessments by this version or a later one have",
        )
    case = _case(store, run, Settings.from_dict(made["settings"]), config)
    if case.whole.fingerprint() != run.data:
        raise DataError(
            "the data, or the columns that are read, are not those of the assessment",
            hint="bundle it where that data is; columns that were named by options such as --group "
            "must be in masa.toml",
        )
    about = {
        "schema": SCHEMA,
        **{name: getattr(run, name) for name in ("id", "name", "created", "finished", "data")},
        "api": without_secrets(str(run.comparable.get("api", ""))),
        "settings": made["settings"],
        "budget": made["settings"]["budget"],
        "masa": made["masa"],
        "baseline": _of_baseline(case.old),
        "words": case.method.features is not None and case.method.features.words is not None,
    }
    kept = {key: value for key, value in result.items() if key != "estimate"}
    kept["notes"] = []
    return Evidence(about, kept, list(_items(case, words=words)), list(_calls(store, run)))


def _case(store: Store, run: Run, settings: Settings, config: Path | None) -> Case:
    """Make what the assessment began with again."""
    if config is None and not FILE.is_file():
        raise UsageError(
            "a bundle needs the data", hint="run this where masa.toml is, or name it with --config"
        )
    read = labelled_data(Config.load(config), columns_of(run))
    if run.baseline is None:
        found = (
            read,
            from_column(read, read.predictions[run.settings["old"]], settings.old_confidence),
        )
    else:
        found = lay_over(store, read, history.find(store, run.baseline))
    chosen = options(settings, store=store.path, name=run.name, resume=run.id)
    return Case.of(store, *found, chosen)


def _of_baseline(old: BaselineAnswers) -> dict[str, Any]:
    """Write what a baseline says besides its answers."""
    return {
        "name": old.answers.name,
        "run": old.run,
        "version": old.version,
        "asked_twice": sorted(old.asked_twice.items()),
        "confidence_twice": [
            [place, *pair] for place, pair in sorted(old.confidence_twice.items())
        ],
        "asked_twice_before": list(old.asked_twice_before),
        "confidence_repeats": old.confidence_repeats,
        "uncovered_share": old.uncovered_share,
        "uncovered": list(old.uncovered),
        "drawn_evenly": old.drawn_evenly,
    }


def _items(case: Case, *, words: bool) -> Iterator[dict[str, Any]]:
    """Write what was known of each item before it was asked, in the order of the data."""
    data, old = case.data, case.old
    columns: dict[str, Sequence[Any]] = {
        "key": [] if data.keys is None else data.keys.tolist(),
        "label": _texts(data.label),
        "old": _texts(old.answers),
    }
    numbers = {
        "old_confidence": old.confidence,
        "weight": old.weight,
        "extra_variance": old.extra_variance,
        "difficulty": data.difficulty,
        "cost": data.cost,
    }
    columns |= {name: values.tolist() for name, values in numbers.items() if values is not None}
    if data.group is not None:
        columns["group"] = _texts(data.group)
    for name in case.settings.also:
        columns[f"also.{name}"] = _texts(data.predictions[name])
    if case.asked_lately is not None:
        columns["asked_lately"] = case.asked_lately.tolist()
    features = case.method.features
    if words and features is not None and features.words is not None:
        start, codes = features.words.start.tolist(), features.words.codes.tolist()
        columns["words"] = [codes[start[i] : start[i + 1]] for i in range(len(data))]
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def _texts(column: Column) -> list[str]:
    values: list[str] = np.array(column.values, object)[column.codes].tolist()
    return values


def _calls(store: Store, run: Run) -> Iterator[dict[str, Any]]:
    """Write each answer and how its item was drawn, in the order of sending."""
    past = journal.past(store, run.id)
    for key, answer in past.answers.items():
        batch, probability, size = past.draws.get(key, (None, None, None))
        yield {
            "key": key,
            "answer": answer.prediction,
            "confidence": answer.confidence,
            "version": answer.version,
            "batch": batch,
            "probability": probability,
            "batch_size": size,
            "sent": answer.sent,
            "ended": answer.ended,
            "calls": past.spent.get(key, (0, 0))[0],
        }
    for key in past.unanswered:
        batch, probability, size = past.draws.get(key, (None, None, None))
        yield {
            "key": key,
            "answer": None,
            "batch": batch,
            "probability": probability,
            "batch_size": size,
            "calls": past.spent.get(key, (0, 0))[0],
        }


def write(evidence: Evidence, output: Path) -> None:
    """Write a bundle; the same evidence gives the same file."""
    parts = {
        "README.txt": README,
        "run.json": _json(evidence.run),
        "result.json": _json(evidence.result),
        "items.jsonl": "".join(_line(row) for row in evidence.items),
        "calls.jsonl": "".join(_line(row) for row in evidence.calls),
    }
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text)


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)


def _line(content: Any) -> str:
    return json.dumps(content, allow_nan=False, ensure_ascii=False) + "\n"


LARGEST_PART = 2**31
"""The most bytes of a part of a bundle that are read."""


def read(path: Path) -> Evidence:
    """Read a bundle."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = {name: _part(archive, name) for name in ("run.json", "result.json")}
            lines = {name: _part(archive, name) for name in ("items.jsonl", "calls.jsonl")}
        found = Evidence(
            json.loads(parts["run.json"]),
            json.loads(parts["result.json"]),
            _rows(lines["items.jsonl"]),
            _rows(lines["calls.jsonl"]),
        )
    except FileNotFoundError as exc:
        raise DataError(f"there is no {path}", hint="masa report RUN --output FILE.zip") from exc
    except (OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile) as exc:
        raise DataError(
            f"{path} is not a bundle that can be read: {exc}",
            hint="it must be the whole file that masa report --format bundle wrote",
        ) from exc
    if not isinstance(found.run, dict) or found.run.get("schema") != SCHEMA:
        raise DataError(
            f"{path} is a bundle of another version of masa", hint="use that version to verify it"
        )
    return found


def _rows(text: str) -> list[dict[str, Any]]:
    # Not splitlines(): labels may hold other signs that end a line.
    rows = [json.loads(line) for line in text.split("\n") if line]
    if not all(isinstance(row, dict) and isinstance(row.get("key"), int) for row in rows):
        raise ValueError("a row has no key")
    return rows


def _part(archive: zipfile.ZipFile, name: str) -> str:
    if archive.getinfo(name).file_size > LARGEST_PART:
        raise ValueError(f"{name} is larger than masa reads")
    return archive.read(name).decode("utf-8")
