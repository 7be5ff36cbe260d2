"""Runs and baselines in a store: begin, find, finish, accept."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sql

from masa.errors import UsageError
from masa.records import Ints
from masa.storage.store import Store, baseline, data, run

FRESH_DAYS = 7
"""An unfinished run that was last touched longer ago is not gone on with by itself: the API may have changed meanwhile."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it stands in the store."""

    id: int
    name: str
    kind: str
    created: str
    touched: str
    finished: str | None
    stopped: str | None
    identity: str
    data: str
    baseline: int | None
    settings: dict[str, Any]
    comparable: dict[str, Any]
    result: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Draft:
    """What a run is, before it has a number."""

    name: str
    kind: str
    settings: Mapping[str, Any]
    comparable: Mapping[str, Any]
    keys: Ints
    data: str
    baseline: int | None = None

    @property
    def identity(self) -> str:
        """A text that is the same for the same command on the same data."""
        parts = [self.name, self.kind, self.settings, self.comparable, self.data, self.baseline]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Begun:
    """The run to work on, and how it was come by."""

    run: Run
    resumed: bool = False
    too_old: Run | None = None
    """an unfinished run of the same command that was left alone"""


def begin(store: Store, draft: Draft, *, fresh: bool = True) -> Begun:
    """Write a new run down, or find the unfinished one of the same command unless a fresh one is wanted.

    Both in one transaction: of two processes that start together the second finds the first one's run.
    """
    now = _now()
    row: dict[str, Any] = {
        "name": draft.name,
        "kind": draft.kind,
        "created": now,
        "touched": now,
        "data": draft.data,
    }
    row |= {"identity": draft.identity, "baseline": draft.baseline}
    row |= {"settings": dict(draft.settings), "comparable": dict(draft.comparable)}
    same = sql.select(run).where(run.c.identity == draft.identity).order_by(run.c.id.desc())
    with store.begin() as connection:
        # The newest alone: one that was set aside with --fresh stays aside.
        newest = None if fresh else connection.execute(same).first()
        unfinished = None if newest is None or newest.finished is not None else Run(*newest)
        if unfinished is not None and _lately(unfinished):
            return Begun(unfinished, resumed=True)
        if (
            connection.execute(
                sql.select(data.c.size).where(data.c.fingerprint == draft.data)
            ).first()
            is None
        ):
            hashes = zlib.compress(np.sort(draft.keys).astype("<i8").tobytes(), 1)
            connection.execute(
                sql.insert(data).values(fingerprint=draft.data, size=len(draft.keys), hashes=hashes)
            )
        number = connection.execute(sql.insert(run).values(**row).returning(run.c.id)).scalar_one()
    return Begun(find(store, int(number)), too_old=unfinished)


def find(store: Store, number: int) -> Run:
    """Give a run by its number."""
    if not 0 <= number < 2**63:
        raise UsageError(f"there is no run {number}", hint="masa history lists the runs")
    with store.begin() as connection:
        row = connection.execute(sql.select(run).where(run.c.id == number)).first()
        if row is None:
            known = [str(other) for other in connection.execute(sql.select(run.c.id)).scalars()]
            hint = (
                f"it has {', '.join(known[-8:])}; masa history lists them"
                if known
                else "it has none yet"
            )
            raise UsageError(f"there is no run {number} in {store.path}", hint=hint)
    return Run(*row)


def _lately(found: Run) -> bool:
    """Say whether a run was touched so lately that its answers and new ones are of the same time."""
    return (datetime.now(UTC) - datetime.fromisoformat(found.touched)).days < FRESH_DAYS


def pause(store: Store, number: int, why: str) -> None:
    """Write down that a run was left unfinished."""
    with store.begin() as connection:
        connection.execute(
            sql.update(run)
            .where(run.c.id == number)
            .values(stopped=why, touched=_now(), finished=None)
        )


def finish(store: Store, number: int, why: str, result: Mapping[str, Any]) -> None:
    """Write down how a run ended."""
    row = {"stopped": why, "touched": _now(), "finished": _now(), "result": dict(result)}
    with store.begin() as connection:
        connection.execute(sql.update(run).where(run.c.id == number).values(**row))


def accept(store: Store, number: int) -> Run:
    """Make a finished run's answers the baseline of its name."""
    found = find(store, number)
    if found.finished is None:
        raise UsageError(
            f"run {number} is not finished",
            hint="run its command again to finish it, then accept it",
        )
    if found.kind == "compare":
        raise UsageError(
            f"run {number} compared two APIs",
            hint="accept an assessment, or make a baseline with masa baseline",
        )
    with store.begin() as connection:
        connection.execute(sql.insert(baseline).values(name=found.name, run=number, created=_now()))
    return found


def current(store: Store, name: str) -> Run | None:
    """Give the run that is the baseline of a name now."""
    newest = (
        sql.select(baseline.c.run)
        .where(baseline.c.name == name)
        .order_by(baseline.c.id.desc())
        .limit(1)
    )
    with store.begin() as connection:
        number = connection.execute(newest).scalar()
    return None if number is None else find(store, int(number))


def runs(store: Store, *, most: int = 50) -> list[Run]:
    """Give the newest runs, the newest last."""
    with store.begin() as connection:
        rows = connection.execute(sql.select(run).order_by(run.c.id.desc()).limit(most)).all()
    return [Run(*row) for row in reversed(rows)]


def names(store: Store) -> list[str]:
    """Give the names that have a baseline."""
    with store.begin() as connection:
        return list(connection.execute(sql.select(baseline.c.name).distinct()).scalars())


def keys(store: Store, found: Run) -> Ints:
    """Give the keys of all items that a run's data had, rising."""
    with store.begin() as connection:
        packed = connection.execute(
            sql.select(data.c.hashes).where(data.c.fingerprint == found.data)
        ).scalar_one()
    return np.frombuffer(zlib.decompress(packed), "<i8").astype(np.int64)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words what makes two runs incomparable."""
    named = {
        "api": "the API",
        "prompt": "the prompt or body",
        "parser": "how answers are read",
        "labels": "the labels",
        "input": "the input columns",
    }
    found = []
    for part in sorted({*old} & {*new}):
        if old.get(part) != new.get(part):
            before, after = (_short(side.get(part)) for side in (old, new))
            found.append(f"{named.get(part, part)}: {before} then, {after} now")
    return found


def _short(value: object, most: int = 80) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + "..."


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
