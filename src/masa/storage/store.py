"""Where runs, their calls and baselines are kept: the schema, its migrations, and locks on runs.

Nothing here holds a text of the user's or a secret: items are known by a hash, settings name the variables that hold keys.
"""

import errno
import json
import os
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from masa.errors import BusyError, StoreError

HEAD = "0003"
"""The newest migration; tests hold it to the files."""

DEFAULT = Path(".masa") / "masa.db"

metadata = sql.MetaData()

data = sql.Table(
    "data",
    metadata,
    sql.Column("fingerprint", sql.String, primary_key=True),
    sql.Column("size", sql.Integer, nullable=False),
    sql.Column(
        "hashes", sql.LargeBinary, nullable=False
    ),  # the items' keys, rising, 8 bytes each, deflated
)

run = sql.Table(
    "run",
    metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.String, nullable=False),
    sql.Column("kind", sql.String, nullable=False),  # assess, baseline, import, compare
    sql.Column("created", sql.String, nullable=False),
    sql.Column("touched", sql.String, nullable=False),
    sql.Column("finished", sql.String),
    sql.Column("stopped", sql.String),  # why it ended or paused
    sql.Column(
        "identity", sql.String, nullable=False
    ),  # the same command on the same data has the same one
    sql.Column("data", sql.ForeignKey("data.fingerprint"), nullable=False),
    sql.Column("baseline", sql.ForeignKey("run.id")),
    sql.Column("settings", sql.JSON, nullable=False),
    sql.Column("comparable", sql.JSON, nullable=False),  # what two runs must share to be compared
    sql.Column("result", sql.JSON),
    sql.Index("run_by_name", "name", "kind"),
    sqlite_autoincrement=True,
)

call = sql.Table(
    "call",
    metadata,
    sql.Column("run", sql.ForeignKey("run.id"), primary_key=True),
    sql.Column("number", sql.Integer, primary_key=True),
    sql.Column("item", sql.BigInteger, nullable=False),
    sql.Column(
        "repeat", sql.Boolean, nullable=False
    ),  # asked again to see whether the API contradicts itself
    sql.Column("sent", sql.Float, nullable=False),
    sql.Column("reserved", sql.BigInteger, nullable=False),  # the most it may cost, in billionths
    sql.Column("ended", sql.Float),
    sql.Column(
        "outcome", sql.String
    ),  # answer, error (for good), failed (tried again); not billed: unsent (for good), free (again), known (imported)
    sql.Column("prediction", sql.String),
    sql.Column("confidence", sql.Float),
    sql.Column("version", sql.String),
    sql.Column("cost", sql.BigInteger),
    sql.Column("reason", sql.String),
    sql.Column(
        "batch", sql.Integer
    ),  # the batch that the item was drawn with, where items are drawn in batches
    sql.Column("chance", sql.Float),  # with what chance
    sql.Column("batch_size", sql.Integer),
    sql.Column(
        "stands", sql.Float
    ),  # the share of all items that the answer stands for, once the run has ended
    sql.Column(
        "adds", sql.Float
    ),  # what a residual of 1 adds to the variance of a sum over all items
)

baseline = sql.Table(
    "baseline",
    metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.String, nullable=False),
    sql.Column("run", sql.ForeignKey("run.id"), nullable=False),
    sql.Column("created", sql.String, nullable=False),
    sqlite_autoincrement=True,
)


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """An open store."""

    path: Path
    engine: sql.Engine

    @contextmanager
    def begin(self) -> Iterator[sql.Connection]:
        """Give a connection inside a transaction; what goes wrong with the file is said in our words."""
        with translated(self.path), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def claim(self, number: int) -> Iterator[None]:
        """Hold a run for this process alone; the hold ends with the process, however it ends."""
        path = self.path.with_name(f"{self.path.name}.run{number}.lock")
        while True:
            with translated(self.path):
                file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            if not _lock(file):
                holder = os.read(file, 100).decode(errors="replace").strip()
                os.close(file)
                raise BusyError(
                    f"run {number} is being worked on by another process"
                    + (f" ({holder})" if holder else ""),
                    hint="wait until it ends, or stop it first",
                )
            with suppress(OSError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    break
            os.close(file)  # Its holder removed it between our opening and locking it.
        try:
            os.truncate(path, 0)
            os.write(file, f"process {os.getpid()}".encode())
            yield
        finally:
            with suppress(OSError):
                path.unlink()
            os.close(file)


@contextmanager
def opened(path: Path | str | None = DEFAULT, *, make: bool = True) -> Iterator[Store]:
    """Open a store, made or brought up to date where needed; None keeps one only as long as it is open."""
    if path is not None and "\0" in str(path):
        raise StoreError(
            "the name of the store holds a NUL", hint="give another place with --store"
        )
    if path is not None and not make and not Path(path).is_file():
        raise StoreError(
            f"there is no store {path}",
            hint="are you in the right folder? --store names another place",
        )
    with tempfile.TemporaryDirectory(prefix="masa-") as folder:
        file = Path(folder) / "masa.db" if path is None else Path(path)
        with translated(file):
            if not file.parent.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                if file.parent.name == ".masa":
                    (file.parent / ".gitignore").write_text("*\n", encoding="utf-8")
            store = Store(file, _engine(file, durable=path is not None))
            try:
                _migrate(store)
                yield store
            finally:
                store.engine.dispose()


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what a database or disk complains of into our words."""
    hint = "check that its folder can be written, or give another place with --store"
    try:
        yield
    except (sql.exc.OperationalError, sql.exc.DatabaseError) as exc:
        raise _explained(path, str(exc.orig)) from exc
    except sqlite3.Error as exc:
        raise _explained(path, str(exc)) from exc
    except (json.JSONDecodeError, zlib.error) as exc:
        raise _explained(path, f"malformed: {exc}") from exc
    except OSError as exc:
        if exc.errno == errno.ENOSPC:
            raise _explained(path, "the disk is full") from exc
        raise StoreError(
            f"the store {path} cannot be written: {exc.strerror or exc}", hint=hint
        ) from exc


def _explained(path: Path, said: str) -> StoreError:
    if "full" in said or "disk I/O" in said:
        return StoreError(
            f"the store {path} cannot be written: {said}",
            hint="free some space and run the same command again; what was paid for and written down is kept",
        )
    if "not a database" in said or "malformed" in said:
        return StoreError(
            f"{path} is not a store of masa's, or it is damaged: {said}",
            hint="move it away, or use --store",
        )
    if "locked" in said:
        return StoreError(
            f"the store {path} is busy", hint="another process holds it for long; try again"
        )
    return StoreError(
        f"the store {path}: {said}", hint="check that its folder can be written, or use --store"
    )


def _engine(path: Path, *, durable: bool) -> sql.Engine:
    address = sql.URL.create("sqlite", database=str(path.absolute()))
    engine = sql.create_engine(address, connect_args={"timeout": 30, "check_same_thread": False})

    @sql.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = (
            None  # Transactions are begun below, not where the driver thinks fit.
        )
        _patiently(lambda: connection.execute("PRAGMA journal_mode=WAL"))
        connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")
        connection.execute("PRAGMA foreign_keys=ON")

    @sql.event.listens_for(engine, "begin")
    def begin(connection: sql.Connection) -> None:
        # A transaction that begins by reading could not be sure of being allowed to write.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _patiently(work: Callable[[], object], *, seconds: float = 10.0) -> None:
    """Do something that SQLite refuses at once, without waiting, while another process opens the same new file."""
    until = time.monotonic() + seconds
    while True:
        try:
            work()
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def _migrate(store: Store) -> None:
    """Bring the schema up to date; alembic is loaded only when there is something to do."""
    with store.engine.begin() as connection:
        known = sql.inspect(connection).has_table("alembic_version")
        version = (
            connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
            if known
            else None
        )
        if version == HEAD:
            return
        if version is not None and version > HEAD:
            raise StoreError(
                f"the store {store.path} was made by a newer masa (schema {version}, this one knows {HEAD})",
                hint="upgrade masa: pip install --upgrade masa-shift",
            )
        if version is None and sql.inspect(connection).get_table_names():
            raise StoreError(
                f"{store.path} is a database, but not one of masa's",
                hint="give another place with --store",
            )
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option(
            "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
        )
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _lock(file: int) -> bool:
    """Lock an open file unless somebody else has."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
