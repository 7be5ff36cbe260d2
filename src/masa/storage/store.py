"""A store: open it, bring its schema up to date, and lock the runs in it."""

import errno
import json
import os
import re
import shutil
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from masa.errors import BusyError, MasaError, StoreError
from masa.settings.run import DEFAULT_STORE
from masa.storage.damage import damaged
from masa.storage.place import Place, log_of, real_path
from masa.storage.schema import HEAD, LOG_LOST, WORKING, baseline, call, data, metadata, run

__all__ = [
    "HEAD",
    "Store",
    "baseline",
    "call",
    "data",
    "metadata",
    "opened",
    "opened_to_read",
    "run",
    "translated",
]

ELSEWHERE = "check that it and its folder can be written, or give another place with --store"


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """An open store."""

    path: Path
    engine: sql.Engine
    place: Place

    @contextmanager
    def begin(self) -> Iterator[sql.Connection]:
        """Open a connection inside a transaction, with errors translated."""
        with translated(self.path):
            if not self.place.is_there:
                self._rescue()
            with self.engine.begin() as connection:
                yield connection

    def _rescue(self) -> None:
        """Save what a connection that is open still sees of the file, and raise."""
        pool = self.engine.pool
        if isinstance(pool, sql.QueuePool) and pool.checkedin():
            connection = self.engine.raw_connection()
            try:
                self.place.rescue(connection.driver_connection)
            finally:
                connection.close()
        self.place.require()

    def write_through(self) -> None:
        """Bring what is in the log into the database itself, as far as nobody reads."""
        connection = self.engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def is_claimed(self, number: int) -> bool:
        """Say whether a process holds a run; one whose lock may not be looked at is held."""
        try:
            file = os.open(self._lock_of(number), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            return not _lock(file)
        finally:
            os.close(file)

    def _lock_of(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.run{number}.lock")

    @contextmanager
    def claim(self, number: int) -> Iterator[None]:
        """Lock a run for this process; the lock ends with the process, however it ends."""
        path = self._lock_of(number)
        while True:
            with translated(self.path):
                file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            if not _lock(file):
                holder = os.read(file, 100).decode(errors="replace").strip()
                os.close(file)
                raise _busy(number, holder)
            with suppress(OSError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    break
            # The last holder removed the file after we opened it and before we locked it.
            os.close(file)
        try:
            os.truncate(path, 0)
            os.write(file, f"process {os.getpid()}".encode())
            yield
        finally:
            with suppress(OSError):
                path.unlink()
            os.close(file)


@contextmanager
def opened(path: Path | str | None = DEFAULT_STORE, *, make: bool = True) -> Iterator[Store]:
    """Open a store, created or brought up to date where needed.

    With None it is a temporary store that is deleted when it is closed.
    """
    if path is None:
        with (
            tempfile.TemporaryDirectory(prefix="masa-") as folder,
            _opened(Path(folder) / "masa.db", durable=False) as store,
        ):
            yield store
        return
    if "\0" in str(path):
        raise StoreError(
            "the name of the store contains a NUL", hint="give another place with --store"
        )
    if not make and not Path(path).is_file():
        raise StoreError(
            f"there is no store {path}",
            hint="are you in the right folder? --store names another place",
        )
    with _opened(Path(path), durable=True) as store:
        yield store


@contextmanager
def opened_to_read(path: Path | str) -> Iterator[Store]:
    """Open a store of which nothing is to be changed, also on a disk that cannot be written."""
    file = Path(os.path.realpath(path))
    can_be_written = os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
    if can_be_written or not file.is_file():
        with opened(path, make=False) as store:
            yield store
        return
    with tempfile.TemporaryDirectory(prefix="masa-") as folder:
        copy = Path(folder) / "masa.db"
        with translated(file):
            _copy(file, copy)
            engine = _engine(copy, durable=False)
            try:
                _migrate(file, engine)
                yield Store(file, engine, Place.of(copy))
            finally:
                engine.dispose()


def _copy(file: Path, copy: Path) -> None:
    """Copy a store, also one that another process is writing."""
    try:
        with (
            closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except sqlite3.Error:
        # SQLite cannot read a store with a log on a disk that nobody can write. Nobody writes it.
        shutil.copyfile(file, copy)
        if log_of(file).exists():
            shutil.copyfile(log_of(file), log_of(copy))


@contextmanager
def _opened(file: Path, *, durable: bool) -> Iterator[Store]:
    with translated(file):
        file = real_path(file)
        if not file.parent.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.parent.name == ".masa":
                (file.parent / ".gitignore").write_text("*\n", encoding="utf-8")
        had_log = log_of(file).exists()
        engine = _engine(file, durable=durable)
        try:
            _migrate(file, engine)
            store = Store(file, engine, Place.of(file))
            _settle(store, whole=had_log)
            try:
                yield store
            finally:
                # Who closes a store last brings its log into it.
                with suppress(MasaError, OSError, sql.exc.SQLAlchemyError):
                    if store.place.is_there:
                        _settle(store, whole=True)
        finally:
            engine.dispose()


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the errors of the database and the disk into a StoreError."""
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
            f"the store {path} cannot be used: {exc.strerror or exc}",
            hint=ELSEWHERE,
        ) from exc


def _explained(path: Path, said: str) -> StoreError:
    if "full" in said or "disk I/O" in said:
        return StoreError(
            f"the store {path} cannot be written: {said}",
            hint="free some space and run the same command again; "
            "what was paid for and written is kept",
        )
    if "not a database" in said or "malformed" in said:
        return StoreError(
            f"{path} is not a store of masa's, or it is damaged: {said}",
            hint="move it away, or give another place with --store",
        )
    if "locked" in said:
        return StoreError(
            f"the store {path} is busy", hint="another process is using it; try again later"
        )
    return StoreError(
        f"the store {path}: {said}",
        hint=ELSEWHERE,
    )


def _busy(number: int, holder: str) -> BusyError:
    message = f"another process is working on run {number}"
    if holder:
        message += f" ({holder})"
    return BusyError(message, hint="wait until it ends, or stop it first")


def _engine(path: Path, *, durable: bool) -> sql.Engine:
    """Make an engine; a durable one waits until each transaction is on the disk."""
    address = sql.URL.create("sqlite", database=str(path.absolute()))
    engine = sql.create_engine(address, connect_args={"timeout": 30, "check_same_thread": False})

    @sql.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # Transactions begin in `begin` below, not where the driver would begin them.
        connection.isolation_level = None
        _patiently(lambda: connection.execute("PRAGMA journal_mode=WAL"))
        connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")
        connection.execute("PRAGMA foreign_keys=ON")

    @sql.event.listens_for(engine, "begin")
    def begin(connection: sql.Connection) -> None:
        # A transaction that begins by reading might not be allowed to write later.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _patiently(work: Callable[[], object], *, seconds: float = 10.0) -> None:
    """Retry something that SQLite refuses while another process opens the same new file.

    SQLite refuses it at once, without waiting for its own timeout.
    """
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


def _migrate(path: Path, engine: sql.Engine) -> None:
    """Bring the schema up to date; alembic is imported only if there is something to do."""
    with engine.begin() as connection:
        version = None
        if sql.inspect(connection).has_table("alembic_version"):
            found = connection.exec_driver_sql("SELECT version_num FROM alembic_version")
            version = found.scalar()
        if version == HEAD:
            return
        if version is not None and not re.fullmatch("[0-9]{4}", str(version)):
            raise damaged(path, "the version of its tables")
        if version is not None and version > HEAD:
            raise StoreError(
                f"the store {path} was made by a newer masa "
                f"(schema {version}; this one knows {HEAD})",
                hint="upgrade masa: pip install --upgrade masa-shift",
            )
        if version is None and sql.inspect(connection).get_table_names():
            raise StoreError(
                f"{path} is a database, but not one of masa's",
                hint="give another place with --store",
            )
        from alembic import command
        from alembic.config import Config

        migrations = str(Path(__file__).parent / "migrations")
        config = Config()
        config.set_main_option("script_location", migrations.replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _settle(store: Store, *, whole: bool) -> None:
    """Note of the runs that a killed process left whether their store had its log."""
    left = sql.select(run.c.id).where(run.c.stopped == WORKING)
    with store.begin() as connection:
        # Not every disk can have a log; then everything is in the database itself.
        has_logs = connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        stopped = LOG_LOST if has_logs and not whole else "interrupted"
        for number in connection.execute(left).scalars().all():
            if not store.is_claimed(number):
                row = sql.update(run).where(run.c.id == number)
                connection.execute(row.values(stopped=stopped))


def _lock(file: int) -> bool:
    """Lock an open file; say whether it could be locked."""
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
