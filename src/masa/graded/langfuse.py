"""Langfuse: its scores, and the traces or observations that they are about.

From the export button of its tables, a scheduled export to blob storage, a downloaded trace or the
API: JSON, JSON lines, CSV or Parquet, in one folder. Scores of an evaluator are the judge's grades,
annotations are what people said. What the judge was asked is not among them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from masa.errors import DataError, UsageError
from masa.graded.exports import Record, files_in, in_one_way, records
from masa.graded.grades import Grade, Grades, Judge, Wanted, as_shown, grade_of, named

JUDGE, CODE, PEOPLE = "EVAL", "API", "ANNOTATION"
"""Where a score comes from."""

BOOLEAN = {"true": ("1", "true", "yes"), "false": ("0", "false", "no")}

BOTH = (
    "export the scores and the traces (or observations) that they are about, with their input and "
    "output, into one folder, and give that folder"
)


@dataclass(slots=True)
class _Export:
    """What the files hold."""

    scores: list[Record] = field(default_factory=list)
    shown: dict[str, Record] = field(default_factory=dict)
    """traces and observations with an input or an output, by id"""
    roots: dict[str, Record] = field(default_factory=dict)
    """the outermost observation of each trace"""


def read_langfuse(path: Path, wanted: Wanted) -> Grades:
    """Read the outputs that an evaluator graded."""
    export = _export(files_in(path))
    if not export.scores:
        raise DataError(f"{path} holds no scores with a source", hint=BOTH)
    source, name = _chosen(export.scores, wanted, path)
    notes: list[str] = []
    where = f"{path}, score {name!r}"
    grades = _latest(_of(export.scores, name, (source,)), where, wanted)
    people = _of(export.scores, wanted.human or name, (PEOPLE,))
    said = _latest(people, where, wanted)
    if wanted.human is not None and not said:
        raise DataError(
            f"{path}: nobody gave the score {wanted.human!r}",
            hint=f"people gave {_names(_of(export.scores, None, (PEOPLE,)))}",
        )
    found = tuple(_grades(export, grades, said))
    if not found:
        raise DataError(f"{path}: what was graded is not among the files", hint=BOTH)
    notes += _notes(grades, found, export, wanted, name)
    return Grades(named(name), str(path), Judge(), found, tuple(notes))


def _export(files: Iterable[Path]) -> _Export:
    found = _Export()
    for file in files:
        for record in records(file):
            _take(record, found)
    return found


def _take(record: Record, found: _Export) -> None:
    """Tell what a record is, and keep it."""
    inside = record.get("scores")
    if isinstance(inside, list):
        for score in inside:
            if isinstance(score, Mapping):
                # The scores of a trace need not repeat its id.
                _take({"trace_id": record.get("id"), **in_one_way(score)}, found)
    if _is_score(record):
        found.scores.append(record)
    elif record.get("id") and (record.get("input") or record.get("output")):
        found.shown[str(record["id"])] = record
        trace = record.get("trace_id")
        if trace and not record.get("parent_observation_id"):
            found.roots.setdefault(str(trace), record)


def _is_score(record: Record) -> bool:
    about = record.get("trace_id") or record.get("observation_id")
    has_value = "value" in record or "string_value" in record
    return bool(about and record.get("name") and record.get("source") and has_value)


def _chosen(scores: Sequence[Record], wanted: Wanted, path: Path) -> tuple[str, str]:
    """Choose the judge's score: that of an evaluator, else that of the user's own code."""
    for source in (JUDGE, CODE):
        names = list(dict.fromkeys(str(one["name"]) for one in _of(scores, None, (source,))))
        if wanted.score is not None:
            names = [name for name in names if name == wanted.score]
        if len(names) > 1:
            raise UsageError(
                f"{path} has several scores of evaluators: {', '.join(names)}",
                hint=f"name one: --score {names[0]}",
            )
        if names:
            return source, names[0]
    if wanted.score is not None:
        raise DataError(
            f"{path}: no evaluator gave the score {wanted.score!r}",
            hint=f"there are {_names(_of(scores, None, (JUDGE, CODE)))}",
        )
    raise DataError(
        f"{path} has no scores of an evaluator", hint="their source is EVAL, or API for code"
    )


def _of(scores: Iterable[Record], name: str | None, sources: Sequence[str]) -> list[Record]:
    """Give the scores of a name from some sources."""
    return [
        one
        for one in scores
        if str(one["source"]).upper() in sources and name in (None, str(one["name"]))
    ]


def _names(scores: Iterable[Record]) -> str:
    return ", ".join(dict.fromkeys(str(one["name"]) for one in scores)) or "none"


@dataclass(slots=True)
class _Given:
    """What was said of one output: the latest grade, and how often it was said otherwise."""

    grade: str
    time: str
    others: int = 0


def _latest(scores: Iterable[Record], where: str, wanted: Wanted) -> dict[str, _Given]:
    """Give the latest grade of each output."""
    found: dict[str, _Given] = {}
    for one in scores:
        about = str(one.get("observation_id") or one.get("trace_id"))
        grade = _value(one, f"{where}, {about}", wanted)
        if grade is None:
            continue
        time = str(one.get("timestamp") or one.get("created_at") or "")
        before = found.get(about)
        if before is None:
            found[about] = _Given(grade, time)
            continue
        before.others += before.grade != grade
        if time >= before.time:
            before.grade, before.time = grade, time
    return found


def _value(score: Record, where: str, wanted: Wanted) -> str | None:
    """Give the grade of a score; None where it has none."""
    kind = str(score.get("data_type") or "").upper()
    text, value = score.get("string_value"), score.get("value")
    text = None if text is None else str(text).strip() or None
    if kind == "BOOLEAN":
        said = str(text if value in (None, "") else value).strip().lower()
        return next((grade for grade, words in BOOLEAN.items() if _number(said) in words), None)
    if kind in ("CATEGORICAL", "TEXT") or (not kind and text):
        # Some exports have the word in the place of the number.
        return text or (value.strip() if isinstance(value, str) else "") or None
    if value is None or value == "":
        return None
    return grade_of(value, pass_at=wanted.pass_at, where=where)


def _number(text: str) -> str:
    """Write a whole number without its fraction: 1.00 is 1."""
    with suppress(ValueError, OverflowError):
        return f"{float(text):g}"
    return text


def _grades(
    export: _Export, grades: Mapping[str, _Given], said: Mapping[str, _Given]
) -> Iterator[Grade]:
    for about, given in grades.items():
        record = export.shown.get(about) or export.roots.get(about)
        if record is None:
            continue
        shown = {"input": as_shown(record.get("input")), "output": as_shown(record.get("output"))}
        # Langfuse keeps the expected output of a dataset's item in the metadata.
        metadata = record.get("metadata")
        if isinstance(metadata, Mapping) and metadata.get("expected_output"):
            shown["expected"] = as_shown(metadata["expected_output"])
        human = said.get(about)
        yield Grade(about, shown, given.grade, None if human is None else human.grade)


def _notes(
    grades: Mapping[str, _Given],
    found: Sequence[Grade],
    export: _Export,
    wanted: Wanted,
    name: str,
) -> Iterator[str]:
    if len(found) < len(grades):
        yield (
            f"{len(grades) - len(found):,} of {len(grades):,} grades are left out: what they are "
            "about is not among the files"
        )
    again = sum(one.others > 0 for one in grades.values())
    if again:
        yield f"{again:,} outputs were graded again, and otherwise: the latest grade counts"
    people = Counter(str(one["name"]) for one in _of(export.scores, None, (PEOPLE,)))
    if people and not people[name] and wanted.human is None:
        other, times = people.most_common(1)[0]
        yield f"people gave the score {other!r} {times:,} times: --human {other} makes it the label"
