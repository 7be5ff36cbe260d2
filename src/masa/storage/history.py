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

from masa.errors import StoreError, UsageError
from masa.records import Ints
from masa.storage.damage import check, damaged, is_whole
from masa.storage.place import log_of
from masa.storage.schema import LOG_LOST, WORKING, baseline, call, data, run
from masa.storage.store import Store

FRESH_DAYS = 7
"""An unfinished run that was last touched earlier is not resumed unless the user asks for it.

The API may have changed meanwhile.
"""

MOST_NAMED = 8
"""The most runs that a message lists."""

MAX_NUMBER = 2**63
"""SQLite's integers are below this."""

DRAWN_SEED = "drawn_seed"
"""The key of the seed in the settings of a run, where the command did not name one."""

HASH = "sha256"
"""The key of a hash that stands for a part of a description."""

COMPARED = {
    "api": "the API",
    "prompt": "the prompt or body",
    "parser": "how answers are read",
    "labels": "the labels",
    "input": "the input columns",
}
"""What must be the same in two runs, in words."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: a row of the table."""

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

    def to_dict(self, *, is_baseline: bool) -> dict[str, Any]:
        """Return what `masa history --json` prints of it."""
        result = self.result or {}
        accuracy = result.get("accuracy")
        return {
            "id": self.id,
            "kind": self.kind,
            "name": self.name,
            "created": self.created,
            "finished": self.finished,
            "stopped": self.stopped,
            "baseline": is_baseline,
            "verdict": result.get("verdict"),
            "direction": result.get("direction"),
            "moved": result.get("moved"),
            "accuracy": accuracy["new"] if isinstance(accuracy, dict) else accuracy,
            "queries": result.get("queries"),
            "answers": result.get("answers"),
            "cost": result.get("cost"),
            "seed": self.seed,
        }

    @property
    def seed(self) -> int:
        """The seed of its choice of items: what the command named, or what was drawn for it."""
        return int(self.settings.get(DRAWN_SEED) or self.settings.get("seed") or 0)


@dataclass(frozen=True, slots=True)
class Draft:
    """A run before it is stored and has a number."""

    name: str
    kind: str
    settings: Mapping[str, Any]
    comparable: Mapping[str, Any]
    keys: Ints
    data: str
    baseline: int | None = None
    drawn_seed: int | None = None
    """the seed of the run, where the command did not name one"""

    @property
    def identity(self) -> str:
        """A text that is the same for the same command on the same data."""
        parts = [self.name, self.kind, self.settings, self.comparable, self.data, self.baseline]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Begun:
    """The run to work on."""

    run: Run
    resumed: bool = False
    too_old: Run | None = None
    """an unfinished run of the same command that is too old to be resumed"""


def begin(store: Store, draft: Draft, *, fresh: bool = True) -> Begun:
    """Store a new run, or find the unfinished run of the same command unless `fresh`.

    Both happen in one transaction: of two processes that start at the same time, the second finds
    the run of the first.
    """
    unfinished = None
    with store.begin() as connection:
        if not fresh:
            check(connection, store.path, run, run.c.identity == draft.identity)
            unfinished = _unfinished(connection, draft)
        if unfinished is not None and is_recent(unfinished):
            return Begun(unfinished, resumed=True)
        same_data = sql.select(data.c.size).where(data.c.fingerprint == draft.data)
        if connection.execute(same_data).first() is None:
            hashes = zlib.compress(np.sort(draft.keys).astype("<i8").tobytes(), 1)
            connection.execute(
                sql.insert(data).values(fingerprint=draft.data, size=len(draft.keys), hashes=hashes)
            )
        created = now()
        settings = dict(draft.settings)
        if draft.drawn_seed is not None:
            settings[DRAWN_SEED] = draft.drawn_seed
        row = {
            "name": draft.name,
            "kind": draft.kind,
            "created": created,
            "touched": created,
            "data": draft.data,
            "identity": draft.identity,
            "baseline": draft.baseline,
            "settings": settings,
            "comparable": dict(draft.comparable),
        }
        number = connection.execute(sql.insert(run).values(**row).returning(run.c.id)).scalar_one()
    return Begun(find(store, int(number)), too_old=unfinished)


def _unfinished(connection: sql.Connection, draft: Draft) -> Run | None:
    """Find the newest run of the same command, if it is not finished."""
    # Only the newest: a run that was set aside with --fresh stays aside.
    same = sql.select(run).where(run.c.identity == draft.identity).order_by(run.c.id.desc())
    newest = connection.execute(same).first()
    if newest is None or newest.finished is not None:
        return None
    return Run(*newest)


def with_identity(store: Store, draft: Draft) -> Run | None:
    """Find the newest finished run of the same command on the same data."""
    same = (run.c.identity == draft.identity) & run.c.finished.is_not(None)
    with store.begin() as connection:
        check(connection, store.path, run, run.c.identity == draft.identity)
        row = connection.execute(sql.select(run).where(same).order_by(run.c.id.desc())).first()
    return None if row is None else Run(*row)


def find(store: Store, number: int) -> Run:
    """Find a run by its number."""
    if not 0 <= number < MAX_NUMBER:
        raise UsageError(f"there is no run {number}", hint="masa history lists the runs")
    with store.begin() as connection:
        check(connection, store.path, run, run.c.id == number)
        row = connection.execute(sql.select(run).where(run.c.id == number)).first()
        if row is None:
            known = [str(other) for other in connection.execute(sql.select(run.c.id)).scalars()]
            hint = "it has none yet"
            if known:
                hint = f"it has {', '.join(known[-MOST_NAMED:])}; masa history lists them"
            raise UsageError(f"there is no run {number} in {store.path}", hint=hint)
    return Run(*row)


def is_recent(found: Run) -> bool:
    """Say whether a run was touched so recently that its answers and new ones belong together."""
    return (datetime.now(UTC) - datetime.fromisoformat(found.touched)).days < FRESH_DAYS


def claim(store: Store, number: int, *, even_without_log: bool = False) -> None:
    """Record that this process works on a run, which it has locked.

    The record reaches the database itself, so that it tells a copy without its log from a whole
    one.
    """
    found = find(store, number)
    if found.stopped == LOG_LOST and not even_without_log:
        then = f"--resume {number} resumes it, with what is there"
        if found.kind == "compare":
            then = "--fresh begins anew"
        raise StoreError(
            f"answers of run {number} may be missing: masa was killed while it worked on it, and "
            f"what was not yet in {store.path.name} is in {log_of(store.path).name}, which is gone",
            hint=f"put it back beside {store.path} if you have it; {then}",
        )
    pause(store, number, WORKING)
    store.write_through()


def release(store: Store, number: int) -> None:
    """Record that this process no longer works on a run, if that is all that is known of it."""
    if not store.place.is_there:
        return  # It was saved, with this in it.
    with store.begin() as connection:
        row = sql.update(run).where(run.c.id == number, run.c.stopped == WORKING)
        connection.execute(row.values(stopped="interrupted"))


def pause(store: Store, number: int, why: str) -> None:
    """Record that a run was left unfinished."""
    row = {"stopped": why, "touched": now(), "finished": None}
    with store.begin() as connection:
        connection.execute(sql.update(run).where(run.c.id == number).values(**row))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended."""

    run: int
    why: str
    result: Mapping[str, Any]


def finish(store: Store, *endings: Ending, baseline_of: str | None = None) -> None:
    """Record how runs ended: all of them, or none if the process dies meanwhile.

    With a name, the last of them becomes the baseline of it. A run that is finished and not
    accepted would be paid for again by the same command.
    """
    ended = now()
    with store.begin() as connection:
        for ending in endings:
            row = {
                "stopped": ending.why,
                "touched": ended,
                "finished": ended,
                "result": dict(ending.result),
            }
            connection.execute(sql.update(run).where(run.c.id == ending.run).values(**row))
        if baseline_of is not None:
            _accept(connection, baseline_of, endings[-1].run)


def _accept(connection: sql.Connection, name: str, number: int) -> None:
    connection.execute(sql.insert(baseline).values(name=name, run=number, created=now()))


def accept(store: Store, number: int) -> Run:
    """Make the answers of a finished run the baseline of its name."""
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
        _accept(connection, found.name, number)
    return found


def current(store: Store, name: str) -> Run | None:
    """Return the run that is the baseline of a name now."""
    newest = (
        sql.select(baseline.c.run)
        .where(baseline.c.name == name)
        .order_by(baseline.c.id.desc())
        .limit(1)
    )
    with store.begin() as connection:
        check(connection, store.path, baseline, baseline.c.name == name)
        number = connection.execute(newest).scalar()
    if number is None:
        return None
    return find(store, int(number))


def with_seed(store: Store, name: str, seed: int) -> int | None:
    """Find the assessment of a name for which this seed was drawn."""
    with store.begin() as connection:
        for number, settings in connection.execute(
            sql.select(run.c.id, run.c.settings).where(
                run.c.name == name, run.c.kind == "assess", is_whole(run)
            )
        ):
            if settings.get(DRAWN_SEED) == seed:
                return int(number)
    return None


def asked_lately(store: Store, name: str, *, before: int | None = None) -> Ints:
    """Return the keys of the items that the last finished assessment of a name asked.

    The last before a run, where one is given.
    """
    earlier = run.c.id < (MAX_NUMBER - 1 if before is None else before)
    last = (
        sql.select(sql.func.max(run.c.id))
        .where(run.c.name == name, run.c.kind == "assess", run.c.finished.is_not(None), earlier)
        .scalar_subquery()
    )
    with store.begin() as connection:
        found = connection.execute(sql.select(call.c.item).where(call.c.run == last)).scalars()
        return np.unique(np.array(list(found), np.int64))


def runs(
    store: Store,
    *,
    most: int = 50,
    name: str | None = None,
    kind: str | None = None,
    since: str | None = None,
) -> list[Run]:
    """Return the newest runs, the newest last, without those that `damaged_runs` names.

    Of a name, of a kind, and begun at a time or later (in ISO 8601), where these are given.
    """
    newest = sql.select(run).where(is_whole(run)).order_by(run.c.id.desc()).limit(most)
    if name is not None:
        newest = newest.where(run.c.name == name)
    if kind is not None:
        newest = newest.where(run.c.kind == kind)
    if since is not None:
        newest = newest.where(run.c.created >= since)
    with store.begin() as connection:
        rows = connection.execute(newest).all()
    return [Run(*row) for row in reversed(rows)]


def damaged_runs(store: Store) -> list[int]:
    """Return the numbers of runs that cannot be what masa wrote."""
    with store.begin() as connection:
        return list(connection.execute(sql.select(run.c.id).where(~is_whole(run))).scalars())


def names(store: Store) -> list[str]:
    """Return the names that have a baseline."""
    with store.begin() as connection:
        whole = sql.select(baseline.c.name).where(is_whole(baseline)).distinct()
        return list(connection.execute(whole).scalars())


def keys(store: Store, found: Run) -> Ints:
    """Return the keys of all items of a run's data, ascending."""
    packed_keys = sql.select(data.c.hashes).where(data.c.fingerprint == found.data)
    with store.begin() as connection:
        check(connection, store.path, data, data.c.fingerprint == found.data)
        packed = connection.execute(packed_keys).scalar()
    if packed is None:
        raise damaged(store.path, f"the data of run {found.id}")
    try:
        return np.frombuffer(zlib.decompress(packed), "<i8").astype(np.int64)
    except (zlib.error, ValueError) as exc:
        raise damaged(store.path, f"the keys of the items of run {found.id}") from exc


def hashed(value: Any) -> dict[str, str]:
    """Give what stands for a part of a description where it is not to be read."""
    text = json.dumps(value, sort_keys=True)
    return {HASH: hashlib.sha256(text.encode()).hexdigest()}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words what makes two runs incomparable."""
    found = []
    for part in sorted({*old} & {*new}):
        called = COMPARED.get(part, part)
        if isinstance(old[part], Mapping) and set(old[part]) == {HASH}:
            if dict(old[part]) != hashed(new[part]):
                found.append(f"{called}: not the same as in the baseline file")
        elif isinstance(old[part], Mapping) and isinstance(new[part], Mapping):
            found += [f"{called}, {what}" for what in _in_parts(old[part], new[part])]
        elif old[part] != new[part]:
            before, after = _shown(old[part], new[part])
            found.append(f"{called}: {before} then, {after} now")
    return found


def _in_parts(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say which parts of a description differ."""
    found = []
    for key in [*old, *(key for key in new if key not in old)]:
        if old.get(key) != new.get(key):
            before, after = _shown(old.get(key), new.get(key))
            found.append(f"{key!r}: {before} then, {after} now")
    return found


def _shown(old: object, new: object, most: int = 80) -> tuple[str, str]:
    """Write two values, where they are long from a little before they differ.

    >>> _shown("x" * 200 + "old", "x" * 200 + "new", 30)
    ('...xxxxxxxxxxold', '...xxxxxxxxxxnew')
    """
    texts = [
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in (old, new)
    ]
    begin = 0
    if max(map(len, texts)) > most:
        pairs = enumerate(zip(*texts, strict=False))
        alike = next((at for at, (a, b) in pairs if a != b), min(map(len, texts)))
        begin = max(0, alike - most // 3)
    parts = []
    for text in texts:
        part = text[begin : begin + most]
        before, after = "..." * bool(begin), "..." * (len(text) > begin + most)
        parts.append(f"{before}{part}{after}")
    return parts[0], parts[1]


def now() -> str:
    """Give the time as it is stored."""
    return datetime.now(UTC).isoformat(timespec="seconds")
