"""Graded outputs as labelled items: what was graded, the grade, and what a person said."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from masa.errors import DataError, UsageError

GRADE, CONFIDENCE, HUMAN = "judge.prediction", "judge.confidence", "human"
"""The columns of the judge's grade, of how sure it is, and of what a person said."""

ASKED = "judge_prompt"
"""The column of what the judge was asked, word by word."""

OWN = ("id", "label", GRADE, CONFIDENCE, HUMAN, ASKED)
"""Columns that a variable of the user's may not be called."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which grades are taken, and what their labels are."""

    score: str | None = None
    """the name of the judge's score, where there are several"""
    human: str | None = None
    """the name of the score that people gave; without it that of the judge's"""
    pass_at: float | None = None
    """grades that are numbers: those of at least this pass"""
    label_by: str | None = None
    """human or judge: whose grades are the labels"""


@dataclass(frozen=True, slots=True)
class Judge:
    """The model that graded, as far as the export tells."""

    client: str = "openai"
    """the client of masa that asks it"""
    model: str = ""
    """empty where it is not known"""
    base_url: str = ""
    system: str | None = None
    label: str | None = None
    """the path to the grade in its answer, if that is JSON"""
    names: Mapping[str, str] = field(default_factory=dict)
    """what it calls a grade -> the grade"""
    api: str = ""
    """responses, where a client of OpenAI's is to use that"""
    key: str = ""
    """the variable of the environment that holds its key, where it is not the usual one"""
    temperature: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """other fields of its request"""
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """One output and how it was graded."""

    id: str
    shown: Mapping[str, str]
    """what the judge saw, by column"""
    grade: str
    human: str | None = None
    """the grade that a person gave"""
    confidence: float | None = None
    asked: str | None = None
    """what the judge was asked, word by word, where the export has it"""


@dataclass(frozen=True, slots=True)
class Grades:
    """All that an export has of one judge's grades."""

    name: str
    source: str
    judge: Judge
    grades: tuple[Grade, ...]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of what the judge saw, as in the first rows that have them."""
        return tuple(dict.fromkeys(name for one in self.grades for name in one.shown))

    @property
    def as_asked(self) -> bool:
        """Whether every row has what the judge was asked: then its old grades are a baseline."""
        return bool(self.grades) and all(one.asked is not None for one in self.grades)

    @property
    def by_people(self) -> int:
        """How many of the outputs a person graded, too."""
        return sum(one.human is not None for one in self.grades)

    def labelled_by(self, wanted: str | None) -> str:
        """Say whose grades are the labels: people's, if they graded all, unless told otherwise.

        Items without a label have no part in the verdict.
        """
        if wanted == "human" and not self.by_people:
            raise DataError(
                f"{self.source}: no output was graded by a person",
                hint="grade some in the tool and export again, or give --label-by judge",
            )
        return wanted or ("human" if self.by_people == len(self.grades) else "judge")

    def rows(self, label_by: str) -> Iterator[dict[str, Any]]:
        """Give the rows of the data file."""
        people = self.by_people > 0
        for one in self.grades:
            row: dict[str, Any] = {"id": one.id}
            row["label"] = one.human if label_by == "human" else one.grade
            row |= {name: one.shown.get(name, "") for name in self.columns}
            if self.as_asked:
                row[ASKED] = one.asked
            row |= {GRADE: one.grade, CONFIDENCE: one.confidence}
            if people:
                row[HUMAN] = one.human
            yield row


def save(found: Grades, path: Path, *, label_by: str) -> None:
    """Write a data file: JSON lines."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in found.rows(label_by))
    # Written beside and then moved into place: an interruption leaves no half-written file.
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("w", encoding="utf-8", errors="replace") as file:
            file.writelines(lines)
        unfinished.replace(path)
    except OSError as exc:
        raise UsageError(
            f"{path} cannot be written: {exc.strerror}", hint="give another folder with --out"
        ) from exc
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def grade_of(number: object, *, pass_at: float | None, where: str) -> str:
    """Give the grade that a number is.

    >>> grade_of(4.0, pass_at=None, where=""), grade_of(0.7, pass_at=0.5, where="")
    ('4', 'pass')
    """
    try:
        value = float(number)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = float("nan")
    if not isfinite(value):
        raise DataError(f"{where}: {str(number)[:40]!r} is no grade", hint="export it again")
    if pass_at is not None:
        return "pass" if value >= pass_at else "fail"
    if not value.is_integer():
        raise DataError(
            f"{where}: the grade {value:g} is not a whole number",
            hint="say which grades pass: --pass-at 0.5",
        )
    return str(int(value))


def named(text: object) -> str:
    """Make the name of a file from what something is called."""
    kept = "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in str(text).lower())
    return "-".join(filter(None, kept.split("-"))).strip(".")[:60] or "judge"


def as_shown(content: object) -> str:
    """Write what the judge saw as text; what is no text as JSON.

    >>> as_shown({"a": 1}), as_shown(None)
    ('{"a": 1}', '')
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, default=str)


def columns_of(variables: Mapping[str, object], taken: tuple[str, ...]) -> dict[str, str]:
    """Give the user's variables names of columns that are not taken, in upper or lower case.

    What would end a {place} in a prompt is left out of a name.
    """
    known = {name.casefold() for name in (*OWN, *taken)}
    columns = {}
    for name, value in variables.items():
        plain = "".join(sign for sign in str(name) if sign.isprintable() and sign not in '{}"\\:')
        column = plain.strip() or "variable"
        while column.casefold() in known:
            column = f"vars.{column}"
        known.add(column.casefold())
        columns[column] = as_shown(value)
    return columns
