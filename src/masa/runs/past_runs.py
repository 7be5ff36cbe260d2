"""The runs in a store: list them, and accept one as the new baseline."""

from pathlib import Path

from masa.settings.run import DEFAULT_STORE
from masa.storage import history as kept_runs
from masa.storage.history import Run
from masa.storage.store import opened


def history(
    store: "str | Path" = DEFAULT_STORE, *, name: str | None = None, most: int = 50
) -> list[Run]:
    """Give the newest runs of a store, the newest last; all of them, or those of one name."""
    with opened(store, make=False) as kept:
        found = kept_runs.runs(kept, most=most)
    return [run for run in found if name in (None, run.name)]


def accept(run: int, *, store: "str | Path" = DEFAULT_STORE) -> Run:
    """Make a finished run the new baseline of its name; nothing is asked or paid again."""
    with opened(store, make=False) as kept:
        return kept_runs.accept(kept, run)
