"""Data as it is given to the library: a data set, or a DataFrame or a file with named columns."""

from typing import Any

from masa.data.dataset import Dataset, read
from masa.errors import UsageError
from masa.records import Column

COLUMNS = ("label", "id", "inputs", "group", "cost", "unlabelled")
"""The keywords that say what the columns are."""


def dataset(data: Any, given: dict[str, Any], *answers: object) -> Dataset:
    """Take a data set; read anything else, with the columns that the keywords name.

    They are taken out of what is given. Answers are what may name columns of answers: the
    baseline, a client such as `replay:COL`.
    """
    named = {name: given.pop(name) for name in COLUMNS if name in given}
    if isinstance(data, Dataset):
        if named:
            raise UsageError(
                f"{next(iter(named))}= is given with a Dataset, which has its columns already",
                hint="give it to masa.read",
            )
        return data
    if "label" not in named:
        raise UsageError(
            "no column of labels was named", hint='give label="the column with the true labels"'
        )
    if isinstance(named.get("inputs"), str):
        named["inputs"] = [named["inputs"]]
    columns = [name for one in answers if (name := _named(one)) is not None]
    confidence = given.get("old_confidence")
    return read(
        data,
        **named,
        difficulty=given.pop("difficulty", None) or confidence,
        predictions=[*columns, *given.get("also", ())],
        numbers=[confidence] if confidence else (),
    )


def _named(answers: object) -> str | None:
    """Give the column that answers are in, where they are named by it."""
    if not isinstance(answers, str) or isinstance(answers, Column):
        return None
    return answers.removeprefix("replay:")
