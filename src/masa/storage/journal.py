"""The calls of one run, written down before they matter: a call before it is sent, its answer before it is used.

Writers wait together: while one transaction is on its way to the disk, those who come later gather for the next.
"""

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql

from masa.errors import StoreError
from masa.records import Query, Reply
from masa.storage.store import Store, call, translated


@dataclass(frozen=True, slots=True)
class Recorded:
    """One answer, or an item's failure for good, as it stands in the journal."""

    item: int
    """the item's key"""
    prediction: str
    confidence: float | None
    version: str | None


@dataclass(slots=True)
class Past:
    """All that the journal of a run says, folded."""

    answers: dict[int, Recorded] = field(default_factory=dict)
    """by the item's key, in the order the calls were sent"""
    unanswered: list[int] = field(default_factory=list)
    """keys of items that were sent and have no answer, in the order they were sent"""
    repeats: dict[int, Recorded] = field(default_factory=dict)
    """second answers, asked for to see whether the API contradicts itself"""
    queries: int = 0
    """calls that count as spent"""
    money: int = 0
    next_number: int = 1
    draws: dict[int, tuple[int, float, int]] = field(default_factory=dict)
    """by the item's key, the batch that it was drawn with, with what chance, and the size of the batch"""
    weights: dict[int, tuple[float, float]] = field(default_factory=dict)
    """by the item's key, the share of all items that its answer stands for, and what it adds to the variance"""


def past(store: Store, run: int) -> Past:
    """Read the journal of a run."""
    columns = (
        call.c.number,
        call.c.item,
        call.c.repeat,
        call.c.outcome,
        call.c.prediction,
        call.c.confidence,
        call.c.version,
    )
    drawn = (call.c.batch, call.c.chance, call.c.batch_size, call.c.stands, call.c.adds)
    spent = sql.func.coalesce(call.c.cost, call.c.reserved)
    query = sql.select(*columns, spent, *drawn).where(call.c.run == run).order_by(call.c.number)
    found = Past()
    sent: dict[int, None] = {}
    with store.begin() as connection:
        for (
            number,
            item,
            repeat,
            outcome,
            prediction,
            confidence,
            version,
            cost,
            *draw,
        ) in connection.execute(query):
            found.next_number = number + 1
            if outcome not in ("free", "known", "unsent"):
                found.queries += 1
                found.money += cost
            if not repeat and draw[0] is not None:
                found.draws[item] = (draw[0], draw[1], draw[2])
            if draw[3] is not None:
                found.weights[item] = (draw[3], draw[4])
            if outcome in ("answer", "error", "known", "unsent"):
                into = found.repeats if repeat else found.answers
                into[item] = Recorded(item, prediction, confidence, version)
            elif not repeat:
                sent[item] = None
    found.unanswered = [item for item in sent if item not in found.answers]
    return found


def weigh(store: Store, run: int, weights: Mapping[int, tuple[float, float]]) -> None:
    """Write down what the answers about these items stand for, and what each adds to the variance."""
    answers = sql.select(call.c.number, call.c.item).where(
        (call.c.run == run) & ~call.c.repeat & call.c.outcome.in_(("answer", "error", "unsent"))
    )
    with store.begin() as connection:
        rows = [
            {"mine": number, "share": weights[item][0], "variance": weights[item][1]}
            for number, item in connection.execute(answers)
            if item in weights
        ]
        if rows:
            one = sql.update(call).where(
                (call.c.run == run) & (call.c.number == sql.bindparam("mine"))
            )
            connection.execute(
                one.values(stands=sql.bindparam("share"), adds=sql.bindparam("variance")), rows
            )


def reopen_errors(store: Store, run: int) -> None:
    """Let items that failed for good be asked again: the run stopped because the API was down, not because of them."""
    with store.begin() as connection:
        for outcome, again in (("error", "failed"), ("unsent", "free")):
            errors = (call.c.run == run) & (call.c.outcome == outcome)
            connection.execute(
                sql.update(call).where(errors).values(outcome=again, prediction=None)
            )


class Journal:
    """Write the calls of a run. One process at a time may (see `Store.claim`)."""

    def __init__(self, store: Store, run: int, *, next_number: int = 1) -> None:
        self.run = run
        self.gather = 0.0
        """Seconds to wait for others before writing; worth it only while many calls are under way."""
        self._store = store
        self._number = next_number
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        self._unwritten: list[tuple[str, dict[str, Any]]] = []
        self._written: asyncio.Future[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="masa-journal")
        self._connection = store.engine.raw_connection()
        self._connection.cursor().execute("PRAGMA wal_autocheckpoint=1000")

    async def sent(
        self, item: int, *, reserved: int, repeat: bool = False, query: Query | None = None
    ) -> int:
        """Write down that a call is about to be sent; give its number once that is on the disk."""
        number, self._number = self._number, self._number + 1
        row: dict[str, Any] = {
            "number": number,
            "item": item,
            "repeat": repeat,
            "sent": time.time(),
            "reserved": reserved,
        }
        drawn: tuple[int | None, float | None, int | None] = (None, None, None)
        if query is not None:
            drawn = (query.batch, query.probability, query.batch_size)
        row |= zip(("batch", "chance", "batch_size"), drawn, strict=True)
        await self._write(_SENT, {"run": self.run, **row})
        return number

    async def answered(
        self, number: int, reply: Reply, *, prediction: str, cost: int, outcome: str = "answer"
    ) -> None:
        """Write down an answer; it may be used once this is done."""
        row = {
            "prediction": prediction,
            "confidence": reply.confidence,
            "version": reply.version,
            "cost": cost,
        }
        await self._end(number, outcome=outcome, **row)

    async def failed(self, number: int, reason: str, *, billed: bool) -> None:
        """Write down a call that gave no answer; one that may have been billed stays counted at its worst price."""
        await self._end(number, outcome="failed" if billed else "free", reason=reason)

    async def gave_up(self, number: int, reason: str, *, prediction: str, billed: bool) -> None:
        """Write down that the item of this call failed for good."""
        await self._end(
            number, outcome="error" if billed else "unsent", reason=reason, prediction=prediction
        )

    async def close(self) -> None:
        """Wait for what is being written, and let go of the store."""
        if self._writer is not None:
            with suppress(StoreError):
                await self._writer
        if self._unwritten:
            # Answers that were paid for: perhaps there is room for them now that nothing else is written.
            with suppress(StoreError):
                self._commit(self._unwritten)
        self._thread.shutdown()
        self._connection.close()

    async def _end(self, number: int, **row: Any) -> None:
        empty = dict.fromkeys(("prediction", "confidence", "version", "cost", "reason"))
        await self._write(
            _ENDED, {**empty, **row, "ended": time.time(), "run": self.run, "number": number}
        )

    async def _write(self, statement: str, row: dict[str, Any]) -> None:
        if self._written is None:
            self._written = asyncio.get_running_loop().create_future()
            # A writer that failed with nobody waiting any more must not complain.
            self._written.add_done_callback(lambda done: done.cancelled() or done.exception())
        mine = self._written
        self._waiting.append((statement, row))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())
        # Shielded: a caller that is cancelled must not take the others' transaction with it.
        await asyncio.shield(mine)

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and self._written is not None:
            if self.gather:
                await asyncio.sleep(self.gather)
            rows, written = self._waiting, self._written
            self._waiting, self._written = [], None
            try:
                await loop.run_in_executor(self._thread, self._commit, rows)
            except Exception as exc:
                self._unwritten += [row for row in rows if row[0] is _ENDED]
                written.set_exception(exc)
            else:
                written.set_result(None)

    def _commit(self, rows: list[tuple[str, dict[str, Any]]]) -> None:
        with translated(self._store.path):
            cursor = self._connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                for statement, row in rows:
                    cursor.execute(statement, row)
                cursor.execute("COMMIT")
            except BaseException:
                with suppress(Exception):
                    cursor.execute("ROLLBACK")
                raise


_SENT = (
    "INSERT INTO call (run, number, item, repeat, sent, reserved, batch, chance, batch_size) "
    "VALUES (:run, :number, :item, :repeat, :sent, :reserved, :batch, :chance, :batch_size)"
)
_ENDED = (
    "UPDATE call SET ended = :ended, outcome = :outcome, prediction = :prediction, confidence = :confidence, "
    "version = :version, cost = :cost, reason = :reason WHERE run = :run AND number = :number"
)
