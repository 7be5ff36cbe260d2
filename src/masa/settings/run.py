"""Where a run is kept, and how it is begun."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masa.settings.kinds import Kind, flag, one_of, text, whole
from masa.settings.setting import Section, setting

DEFAULT_STORE = Path(".masa") / "masa.db"


def _path(given: Any) -> Path:
    if not isinstance(given, str | Path):
        raise ValueError("give the name of a file")
    return Path(given)


FILE = Kind("FILE", _path)


@dataclass(frozen=True, eq=False, repr=False)
class RunSettings(Section):
    """Where a run is kept, and how it is begun."""

    name: str = setting(
        "default", text("NAME"), "What this API and data are called, where a store holds several."
    )
    store: Path | None = setting(DEFAULT_STORE, FILE, "Where runs are kept.")
    resume: int | None = setting(None, whole("RUN", 0), "Resume this run.")
    fresh: bool = setting(False, flag(), "Begin a new run even if one was not finished.")
    keep: str = setting(
        "labels",
        one_of("WHAT", "labels", "answers"),
        "What is stored of answers: labels alone, or answers: what the API said as well.",
    )
    force: bool = setting(False, flag(), "Use a baseline that is not comparable.")
