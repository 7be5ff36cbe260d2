"""The journal: the calls of one run, a call written before it is sent, an answer before it is used.

Writes are grouped: while one transaction is being written to the disk, those that arrive later
are gathered for the next.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql

from masa.errors import StoreError
from masa.records import Query, Reply
from masa.storage import history
from masa.storage.damage import check_calls
from masa.storage.schema import SETTLED, call
from masa.storage.store import Store, translated

NOT_BILLED = ("free", "known", "unsent")
"""Outcomes of calls that do not count as spent."""

TOUCH_EVERY = 5.0
"""Seconds after which a run is marked again as worked on, and the log of the database written
through."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One answer in the journal, or the failure of an item for good."""

    item: int
    """the item's key"""
    prediction: str
    confidence: float | None
    version: str | None
    unread: str | None = None
    """why it cannot be read as a label"""
    said: str | None = None
    """the answer in the API's words, where answers are kept"""
    sent: float = 0.0
    """when it was asked for, in seconds since 1970"""
    ended: float = 0.0
    """when the answer came"""


@dataclass(slots=True)
class Past:
    """Everything that the journal of a run says."""

    answers: dict[int, RecordedAnswer] = field(default_factory=dict)
    """by the item's key, in the order in which the calls were sent"""
    unanswered: list[int] = field(default_factory=list)
    """keys of items that were sent and have no answer, in the order in which they were sent"""
    failed: set[int] = field(default_factory=set)
    """keys of those of them about which a call ended without an answer"""
    repeats: dict[int, RecordedAnswer] = field(default_factory=dict)
    """second answers, asked for to see whether the API contradicts itself"""
    queries: int = 0
    """calls that count as spent"""
    money: int = 0
    """in billionths"""
    next_number: int = 1
    draws: dict[int, tuple[int, float, int]] = field(default_factory=dict)
    """by the item's key: its batch, its inclusion probability in it, and the size of the batch"""
    weights: dict[int, tuple[float, float]] = field(default_factory=dict)
    """by the item's key: the weight of its answer, and what it adds to the variance"""
    spent: dict[int, tuple[int, int]] = field(default_factory=dict)
    """by the item's key: the calls about it that count as spent, and their money in billionths"""


def past(store: Store, run: int) -> Past:
    """Read the journal of a run."""
    # A call without a known cost counts with the most that it may have cost.
    spent = sql.func.coalesce(call.c.cost, call.c.reserved).label("spent")
    query = sql.select(call, spent).where(call.c.run == run).order_by(call.c.number)
    found = Past()
    sent: dict[int, None] = {}
    with store.begin() as connection:
        check_calls(connection, store.path, run)
        for row in connection.execute(query):
            found.next_number = row.number + 1
            if row.outcome not in NOT_BILLED:
                found.queries += 1
                found.money += row.spent
                calls, money = found.spent.get(row.item, (0, 0))
                found.spent[row.item] = (calls + 1, money + row.spent)
            if not row.repeat and row.batch is not None:
                found.draws[row.item] = (row.batch, row.chance, row.batch_size)
            if row.stands is not None:
                found.weights[row.item] = (row.stands, row.adds)
            if row.outcome not in SETTLED:
                if not row.repeat:
                    sent[row.item] = None
                    if row.outcome is not None:
                        found.failed.add(row.item)
                continue
            unread = row.reason if row.outcome == "answer" else None
            answer = RecordedAnswer(
                row.item,
                row.prediction,
                row.confidence,
                row.version,
                unread,
                row.said,
                row.sent,
                row.ended or 0.0,
            )
            if row.repeat:
                found.repeats[row.item] = answer
            else:
                found.answers[row.item] = answer
    found.unanswered = [item for item in sent if item not in found.answers]
    return found


def weigh(store: Store, run: int, weights: Mapping[int, tuple[float, float]]) -> None:
    """Store the weights of the answers about these items, and what each adds to the variance."""
    answers = sql.select(call.c.number, call.c.item).where(
        (call.c.run == run) & ~call.c.repeat & call.c.outcome.in_(("answer", "error", "unsent"))
    )
    one_call = sql.update(call).where(
        (call.c.run == run) & (call.c.number == sql.bindparam("call_number"))
    )
    update = one_call.values(stands=sql.bindparam("weight"), adds=sql.bindparam("variance"))
    with store.begin() as connection:
        rows = []
        for number, item in connection.execute(answers):
            if item in weights:
                weight, variance = weights[item]
                rows.append({"call_number": number, "weight": weight, "variance": variance})
        if rows:
            connection.execute(update, rows)


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """An answer that was known before the run; nothing was paid for it."""

    item: int
    """the item's key"""
    reply: Reply
    repeat: bool = False
    weight: float | None = None
    """the share of all items that it represents"""
    adds: float | None = None
    """what it adds to the variance"""


def write_known(store: Store, run: int, answers: Iterable[KnownAnswer]) -> None:
    """Write down answers that were known before the run."""
    now = time.time()
    rows = [
        {
            "run": run,
            "number": number,
            "item": known.item,
            "repeat": known.repeat,
            "sent": now,
            "ended": now,
            "reserved": 0,
            "cost": 0,
            "outcome": "known",
            "prediction": known.reply.label,
            "confidence": known.reply.confidence,
            "version": known.reply.version,
            "stands": known.weight,
            "adds": known.adds,
        }
        for number, known in enumerate(answers, 1)
    ]
    with store.begin() as connection:
        connection.execute(sql.insert(call), rows)


def reopen_errors(store: Store, run: int) -> None:
    """Allow items that failed for good to be asked again.

    The run stopped because the API was down, not because of them.
    """
    with store.begin() as connection:
        for outcome, again in (("error", "failed"), ("unsent", "free")):
            errors = (call.c.run == run) & (call.c.outcome == outcome)
            connection.execute(
                sql.update(call).where(errors).values(outcome=again, prediction=None)
            )


Row = tuple[str, dict[str, Any]]
"""A statement, and what is filled into it."""


class Journal:
    """Write the calls of a run. Only one process at a time may do so (see `Store.claim`)."""

    def __init__(self, store: Store, run: int, *, next_number: int = 1) -> None:
        self.run = run
        self.gather = 0.0
        """Seconds to wait for other writes; worth it only while many calls are under way."""
        self._store = store
        self._number = next_number
        self._waiting: list[Row] = []
        self._unwritten: list[Row] = []
        self._written: list[asyncio.Future[None]] = []
        """what those wait for whose rows are waiting"""
        self._writer: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="masa-journal")
        self._next_touch = 0.0
        """when the run is next marked as worked on, on the monotonic clock"""
        self._connection = store.engine.raw_connection()
        self._connection.cursor().execute("PRAGMA wal_autocheckpoint=1000")

    async def sent(
        self, item: int, *, reserved: int, repeat: bool = False, query: Query | None = None
    ) -> int:
        """Record that a call is about to be sent; return its number once that is on the disk."""
        number = self._number
        self._number += 1
        row: dict[str, Any] = {
            "run": self.run,
            "number": number,
            "item": item,
            "repeat": repeat,
            "sent": time.time(),
            "reserved": reserved,
            "batch": None,
            "chance": None,
            "batch_size": None,
        }
        if query is not None:
            row["batch"] = query.batch
            row["chance"] = query.probability
            row["batch_size"] = query.batch_size
        await self._write(_SENT, row)
        return number

    async def answered(
        self, number: int, reply: Reply, *, prediction: str, cost: int, outcome: str = "answer"
    ) -> None:
        """Record an answer; it may be used once this is done."""
        await self._end(
            number,
            outcome=outcome,
            prediction=prediction,
            confidence=reply.confidence,
            version=reply.version,
            cost=cost,
            reason=reply.unread,
            scores=None if reply.scores is None else json.dumps(dict(reply.scores)),
            said=reply.said,
        )

    async def failed(self, number: int, reason: str, *, billed: bool) -> None:
        """Record a call that gave no answer.

        If it may have been billed, it still counts with the most that it may cost.
        """
        await self._end(number, outcome="failed" if billed else "free", reason=reason)

    async def gave_up(self, number: int, reason: str, *, prediction: str, billed: bool) -> None:
        """Record that the item of this call failed for good."""
        outcome = "error" if billed else "unsent"
        await self._end(number, outcome=outcome, reason=reason, prediction=prediction)

    async def close(self) -> None:
        """Wait for what is being written, and close the connection."""
        if self._writer is not None:
            with suppress(StoreError):
                await self._writer
        try:
            if self._unwritten:
                # These answers were paid for; perhaps there is room now that nothing else is
                # written.
                with suppress(StoreError):
                    self._commit(self._unwritten)
            with translated(self._store.path):
                self._store.place.rescue(self._connection.driver_connection)
        finally:
            self._thread.shutdown()
            self._connection.close()

    async def _end(self, number: int, **row: Any) -> None:
        """Record how a call ended; columns that are not given are emptied."""
        empty = dict.fromkeys(
            ("prediction", "confidence", "version", "cost", "reason", "scores", "said")
        )
        await self._write(
            _ENDED, {**empty, **row, "ended": time.time(), "run": self.run, "number": number}
        )

    async def _write(self, statement: str, row: dict[str, Any]) -> None:
        """Add a row to the next transaction and wait until it is on the disk."""
        # Each waits for a future of its own: one that is cancelled must not cancel the others.
        written = asyncio.get_running_loop().create_future()
        self._written.append(written)
        self._waiting.append((statement, row))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())
        await written

    async def _write_all(self) -> None:
        """Write transactions until nothing is waiting."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            if self.gather:
                await asyncio.sleep(self.gather)
            rows, self._waiting = self._waiting, []
            waiters, self._written = self._written, []
            problem: Exception | None = None
            try:
                await loop.run_in_executor(self._thread, self._commit, rows)
            except Exception as exc:
                self._unwritten += [row for row in rows if row[0] is _ENDED]
                problem = exc
            for written in waiters:
                if written.done():
                    continue  # Who waited for it was cancelled.
                if problem is None:
                    written.set_result(None)
                else:
                    written.set_exception(problem)

    def _commit(self, rows: list[Row]) -> None:
        """Write rows in one transaction. No call is sent and ended in the same one."""
        with translated(self._store.path):
            cursor = self._connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                for statement in (_SENT, _ENDED):
                    cursor.executemany(statement, [row for kind, row in rows if kind is statement])
                touches = time.monotonic() > self._next_touch
                if touches:
                    cursor.execute(_TOUCHED, {"touched": history.now(), "run": self.run})
                cursor.execute("COMMIT")
            except BaseException:
                with suppress(Exception):
                    cursor.execute("ROLLBACK")
                raise
            if touches:
                # A copy of the database without its log is then only this much behind.
                cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._next_touch = time.monotonic() + TOUCH_EVERY
            # Written first: what is saved of a store that was deleted has these rows, too.
            self._store.place.require()


_SENT = (
    "INSERT INTO call (run, number, item, repeat, sent, reserved, batch, chance, batch_size) "
    "VALUES (:run, :number, :item, :repeat, :sent, :reserved, :batch, :chance, :batch_size)"
)
_TOUCHED = "UPDATE run SET touched = :touched WHERE id = :run"
_ENDED = (
    "UPDATE call SET ended = :ended, outcome = :outcome, prediction = :prediction, "
    "confidence = :confidence, version = :version, cost = :cost, reason = :reason, "
    "scores = :scores, said = :said "
    "WHERE run = :run AND number = :number"
)
