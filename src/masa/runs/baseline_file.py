"""A baseline as a text file that is reviewed in git: a line an item, sorted, without texts."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from masa.data.dataset import Dataset
from masa.errors import DataError, UsageError
from masa.inference.spread import share
from masa.records import Baseline, Reply
from masa.runs.course import without_secrets
from masa.runs.journalled import keys
from masa.runs.stored_baseline import lay_over
from masa.storage import history, journal
from masa.storage.history import Draft, Ending, Run
from masa.storage.journal import KnownAnswer, RecordedAnswer
from masa.storage.store import Store

HEAD = "# masa baseline 1"
"""The first line; the number is the version of the layout."""

COLUMNS = ("key", "label", "answer", "confidence", "again", "confidence_again", "weight", "adds")


@dataclass(frozen=True, slots=True)
class BaselineFile:
    """What is in such a file."""

    about: dict[str, Any]
    rows: list[dict[str, Any]]
    fingerprint: str
    """of its content: the same file is imported once"""


def written(store: Store, run: Run, data: Dataset) -> str:
    """Write a baseline of the store, laid over the data, as a text."""
    common, old = lay_over(store, data, run)
    about = {
        "name": run.name,
        "made": run.created,
        "api": without_secrets(str(run.comparable.get("api", ""))),
        "comparable": {part: history.hashed(value) for part, value in run.comparable.items()},
        "version": old.version,
        "data": common.fingerprint(),
        "drawn_evenly": old.drawn_evenly,
        "asked_twice_before": list(old.noise_counts),
    }
    lines = [HEAD, f"# {json.dumps(about, sort_keys=True, ensure_ascii=False)}", "\t".join(COLUMNS)]
    lines += sorted(_lines(store, run, common, old))
    return "\n".join(lines) + "\n"


def _lines(store: Store, run: Run, data: Dataset, old: Any) -> Iterator[str]:
    """Write a line for each item; one without an answer has none."""
    key, label = keys(data).tolist(), data.label.codes.tolist()
    place = {item: row for row, item in enumerate(old.places.tolist())}
    repeats = _repeats(store, run)
    for item in range(len(data)):
        cells: list[Any] = [_hex(key[item]), data.label.values[label[item]]]
        row = place.get(item)
        if row is not None:
            cells += [
                old.answers.values[old.answers.codes[row]],
                None if old.confidence is None else float(old.confidence[row]),
            ]
            again = repeats.get(key[item])
            cells += [None, None] if again is None else [again.prediction, again.confidence]
            if old.weight is not None and old.extra_variance is not None:
                weight = float(old.weight[row])
                cells += [weight, float(old.extra_variance[row]) * weight]
        yield "\t".join(map(_cell, cells)).rstrip("\t")


def _repeats(store: Store, run: Run) -> dict[int, RecordedAnswer]:
    """Give the second answers of a baseline, also those of the runs that it adds to."""
    found = dict(journal.past(store, run.id).repeats)
    while run.baseline is not None:
        run = history.find(store, run.baseline)
        found = {**journal.past(store, run.id).repeats, **found}
    return found


def _hex(key: int) -> str:
    return f"{key % 2**64:016x}"


def _cell(value: Any) -> str:
    r"""Write a cell: nothing for None, a number so that it is read back as it was.

    >>> _cell("a\tb"), _cell(0.5), _cell(None)
    ('a\\tb', '0.5', '')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False)[1:-1].replace('\\"', '"')


def read(path: Path) -> BaselineFile:
    """Read such a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as exc:
        raise DataError(f"there is no {path}", hint="masa baseline export FILE writes one") from exc
    except (OSError, UnicodeError) as exc:
        raise DataError(f"{path} cannot be read: {exc}", hint="it must be text in UTF-8") from exc
    # Not splitlines(): labels may hold other signs that end a line.
    lines = text.removesuffix("\n").split("\n")
    if not lines or lines[0] != HEAD:
        raise DataError(
            f"{path} is not a baseline that this masa can read",
            hint=f"its first line must be {HEAD!r}; masa baseline export FILE writes it",
        )
    rows, number = [], 3
    try:
        about = json.loads(lines[1].removeprefix("# "))
        for number, line in enumerate(lines[3:], 4):  # noqa: B007 - for the message
            rows.append(_row(line))
        known = [row["key"] for row in rows]
        if len(set(known)) < len(known):
            raise ValueError("an item is listed twice")
        for name in ("name", "made", "comparable"):
            about[name]
    except (ValueError, KeyError, TypeError, IndexError) as exc:
        raise DataError(
            f"{path}, line {number} cannot be read: {exc}",
            hint="take the file as masa baseline export wrote it",
        ) from exc
    return BaselineFile(about, rows, hashlib.sha256(text.encode()).hexdigest())


def _row(line: str) -> dict[str, Any]:
    cells = line.split("\t")
    if not 2 <= len(cells) <= len(COLUMNS):
        raise ValueError(f"it has {len(cells)} cells")
    texts = dict(zip(COLUMNS, cells + [""] * (len(COLUMNS) - len(cells)), strict=True))
    key = int(texts["key"], 16)
    row: dict[str, Any] = {"key": key - 2**64 if key >= 2**63 else key}
    for name in ("label", "answer", "again"):
        row[name] = json.loads('"' + texts[name].replace('"', '\\"') + '"') if texts[name] else None
    for name in ("confidence", "confidence_again", "weight", "adds"):
        row[name] = float(texts[name]) if texts[name] else None
    return row


def imported(store: Store, path: Path, *, name: str | None = None, accept: bool = False) -> Run:
    """Take such a file into the store, once, and make it the baseline of its name if wanted."""
    found = read(path)
    answered = [row for row in found.rows if row["answer"] is not None]
    if not answered:
        raise UsageError(f"{path} has no answers", hint="export a baseline that has some")
    draft = Draft(
        name=name or str(found.about["name"]),
        kind="import",
        settings={
            "file": found.fingerprint,
            "drawn_evenly": found.about.get("drawn_evenly", True),
            "asked_twice_before": found.about.get("asked_twice_before", [0, 0]),
        },
        comparable=found.about["comparable"],
        keys=np.sort(np.array([row["key"] for row in found.rows], np.int64)),
        data=f"{found.about.get('data', '')}:{found.fingerprint}",
    )
    run = history.with_identity(store, draft)
    if run is None:
        run = history.begin(store, draft).run
        journal.write_known(store, run.id, _known(answered, found.about.get("version")))
        result = _result(run.id, found, answered)
        history.finish(store, Ending(run.id, result.stopped, result.to_dict()))
        run = history.find(store, run.id)
    if accept:
        history.accept(store, run.id)
    return run


def _result(run: int, found: BaselineFile, answered: list[dict[str, Any]]) -> Baseline:
    """Say what such a run recorded; its matrix needs the data."""
    twice = [row for row in answered if row["again"] is not None]
    contradicted = sum(row["again"] != row["answer"] for row in twice)
    return Baseline(
        run=run,
        stopped="exhausted",
        items=len(found.rows),
        answers=len(answered),
        errors=0,
        queries=0,
        cost=0.0,
        matrix=None,
        repeated=len(twice),
        contradicted=contradicted,
        contradiction=share(contradicted, len(twice)) if twice else None,
        api_version=found.about.get("version"),
        notes=(f"imported from a baseline of {str(found.about['made'])[:10]}",),
    )


def _known(rows: list[dict[str, Any]], version: str | None) -> Iterator[KnownAnswer]:
    """Give the answers as the journal takes them, second answers at the end."""
    for row in rows:
        reply = Reply(row["answer"], row["confidence"], version)
        yield KnownAnswer(row["key"], reply, weight=row["weight"], adds=row["adds"])
    for row in rows:
        if row["again"] is not None:
            reply = Reply(row["again"], row["confidence_again"], version)
            yield KnownAnswer(row["key"], reply, repeat=True)
