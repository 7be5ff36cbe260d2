"""Where the labelled items are, and which columns matter."""

from dataclasses import dataclass

from masa.settings.kinds import columns, flag, text
from masa.settings.setting import Section, setting

COLUMN = text("COL")
SEVERAL = columns()


@dataclass(frozen=True, eq=False, repr=False)
class SharedColumns(Section):
    """The columns that live assessments and replays share."""

    path: str = setting(
        "",
        text("DATA"),
        "A CSV, JSON-lines or Parquet file, a glob of them in quotes, or a folder.",
        option="DATA",
    )
    label: str = setting("", COLUMN, "Column with the true labels.")
    id: str | None = setting(
        None, COLUMN, "Column with ids: each occurs once, and items come in their order."
    )
    difficulty: str | None = setting(
        None,
        COLUMN,
        "Column with a number that tells easy items from hard ones.",
        default_words="the confidence of the old answers",
    )
    old: str | None = setting(
        None, COLUMN, "Column with what the API answered before, in place of a baseline."
    )
    old_confidence: str | None = setting(
        None, COLUMN, "Column with the confidence of the old answers."
    )
    also: tuple[str, ...] = setting(
        (),
        SEVERAL,
        "Column with free answers: a cheap model's first, then other vendors'; may be repeated.",
    )
    cost: str | None = setting(None, COLUMN, "Column with the price of each item, to any scale.")
    group: str | None = setting(
        None, COLUMN, "Column with groups, each to be measured as well as the others."
    )
    text: str | None = setting(
        None, COLUMN, "Column with texts: their words may tell what changed and what is hard."
    )


@dataclass(frozen=True, eq=False, repr=False)
class Columns(SharedColumns):
    """Where the labelled items are, and which columns matter: `[data]`."""

    input: tuple[str, ...] = setting(
        (), SEVERAL, "Column that the API is shown; may be repeated or separated by commas."
    )
    image: str | None = setting(
        None, COLUMN, "Input column with names of image files, for a cheap model."
    )
    sound: str | None = setting(
        None, COLUMN, "Input column with names of WAV files, for a cheap model."
    )
    unlabelled: bool = setting(
        False, flag(), "Keep rows without a label: they help to tell whether anything changed."
    )


@dataclass(frozen=True, eq=False, repr=False)
class RecordedColumns(SharedColumns):
    """Which columns of recorded answers matter in a replay."""

    new: str = setting("", COLUMN, "Column with the predictions of the API that is asked.")
    new_confidence: str | None = setting(
        None, COLUMN, "Column with the confidence of the new answers."
    )
