"""What a baseline records, or where its answers are taken from."""

from dataclasses import dataclass
from pathlib import Path

from masa.settings.kinds import text, whole
from masa.settings.run import FILE
from masa.settings.setting import Section, setting


@dataclass(frozen=True, eq=False, repr=False)
class BaselineSettings(Section):
    """The options of `masa baseline` besides those of every run."""

    repeat: int = setting(
        0, whole("N", 0), "Ask N items twice: how often does the API contradict itself?"
    )
    refresh: int = setting(
        0, whole("N", 0), "Add answers about N more items to the baseline that there is."
    )
    take: str | None = setting(
        None, text("COL"), "Take the answers from this column; ask nothing.", option="--import"
    )
    source: Path | None = setting(
        None,
        FILE,
        "File that the imported column is in, with the same --id column.",
        option="--from",
    )
    import_confidence: str | None = setting(
        None, text("COL"), "Column with the confidence of those answers."
    )
