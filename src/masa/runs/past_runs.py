"""The runs in a store: list them, and accept one as the new baseline."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from masa.errors import UsageError
from masa.inference.at_best import narrowest
from masa.runs.stored_baseline import answered_keys, earlier_baseline, item_keys
from masa.settings.run import DEFAULT_STORE
from masa.storage import history as kept_runs
from masa.storage import journal
from masa.storage.history import Run
from masa.storage.store import Store, opened, opened_to_read


def history(
    store: "str | Path" = DEFAULT_STORE, *, name: str | None = None, most: int = 50
) -> list[Run]:
    """Give the newest runs of a store, the newest last; all of them, or those of one name."""
    with opened_to_read(store) as kept:
        return kept_runs.runs(kept, most=most, name=name)


def listed(
    store: Store, *, name: str | None, kind: str | None, since: str | None, most: int
) -> tuple[list[Run], set[int]]:
    """Give the newest runs of a name, of a kind, since a day; and which runs are baselines now."""
    if since is not None:
        try:
            since = date.fromisoformat(since).isoformat()
        except ValueError as exc:
            raise UsageError(f"--since is {since!r}", hint="give a day such as 2026-11-20") from exc
    found = kept_runs.runs(store, most=most, name=name, kind=kind, since=since)
    current = [kept_runs.current(store, one) for one in kept_runs.names(store)]
    return found, {run.id for run in current if run is not None}


@dataclass(frozen=True, slots=True)
class Accepted:
    """A run that became the baseline, and what later runs can do with it."""

    run: Run
    items: int
    """the items of the data"""
    answers: int
    """those of them that the baseline has an answer about"""
    updates: bool
    """whether the other answers of the baseline before it are kept"""
    at_best: float | None
    """how far accuracy may have changed if all these items are asked and no answer changed, where
    not all items have an answer"""
    lost: int
    """how many more items the baseline before it had an answer about"""

    @property
    def words(self) -> str:
        """What follows for later runs."""
        if self.updates:
            return (
                "it found no change that matters, so that its answers replace those of the "
                f"baseline and all others are kept: {self.answers:,} of {self.items:,} items"
            )
        if self.answers >= self.items:
            return f"all {self.items:,} items have an answer"
        told = f"{self.answers:,} of {self.items:,} items, and only these are asked from now on"
        if self.at_best is not None:
            told += (
                "; with all of them asked and nothing changed, accuracy will be known to "
                f"{100 * self.at_best:.2g} points"
            )
        if self.lost > 0:
            told += (
                f"; masa baseline --refresh {self.lost} asks as many more as the baseline "
                "before it had"
            )
        return told


def accepted(store: Store, number: int) -> Accepted:
    """Make a finished run the baseline of its name, and say what later runs can do with it."""
    found = kept_runs.find(store, number)
    before = kept_runs.current(store, found.name)
    had = 0 if before is None else len(answered_keys(store, before.id))
    run = kept_runs.accept(store, number)
    has, items = len(answered_keys(store, number)), len(item_keys(store, run))
    weights = journal.past(store, number).weights
    updates = run.kind == "assess" and earlier_baseline(store, run) is not None
    at_best = None
    if weights and has < items and not updates:
        adds = [variance for _, variance in weights.values()]
        at_best = narrowest(sum(adds), sum(one**2 for one in adds))
    return Accepted(run, items, has, updates, at_best, max(0, had - has))


def accept(run: int, *, store: "str | Path" = DEFAULT_STORE) -> Run:
    """Make a finished run the new baseline of its name; nothing is asked or paid again.

    Where it found no change that matters, its answers replace those of the baseline before it, and
    the answers about other items are kept.
    """
    with opened(store, make=False) as kept:
        return kept_runs.accept(kept, run)
