"""The file of a store: it has one name, stays where it is, and its log lies beside it."""

import logging
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from masa.errors import StoreError
from masa.storage.schema import WORKING

log = logging.getLogger(__name__)

LOG = "-wal"
"""What SQLite appends to the name of a database for the log of what is not in it yet."""


@dataclass(frozen=True, slots=True)
class Place:
    """The file that an open store was opened from."""

    path: Path
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "Place":
        """Note which file has this name."""
        found = path.stat()
        return cls(path, found.st_dev, found.st_ino)

    @property
    def is_there(self) -> bool:
        """Whether that file still has its name."""
        try:
            found = self.path.stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == (self.device, self.inode)

    def check(self, connection: sqlite3.Connection | None) -> None:
        """Raise if the file was deleted or replaced; save what the connection still sees of it.

        A file that was deleted can be read and written until it is closed, and is lost then.
        """
        if self.is_there:
            return
        hint = "what was paid for is lost if there is no copy"
        if connection is not None:
            try:
                saved = self._save(connection)
            except (OSError, sqlite3.Error) as exc:
                log.warning("what the store held cannot be saved: %s", exc)
            else:
                hint = f"all that it held was saved as {saved}; --store names another place"
                if saved == self.path:
                    hint = "it was put back with all that it held; run the same command again"
        raise StoreError(
            f"the store {self.path} was deleted or replaced while masa was using it", hint=hint
        )

    def _save(self, connection: sqlite3.Connection) -> Path:
        """Copy what the connection sees to the old place, or beside it where something is there."""
        target = self.path
        if target.exists() or log_of(target).exists():
            # A log of the old file would be taken for that of the new one.
            target = target.with_name(f"{target.name}.saved-{os.getpid()}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(target)) as copy:
            connection.backup(copy)
            # The copy is whole without a log.
            copy.execute("UPDATE run SET stopped = 'interrupted' WHERE stopped = ?", [WORKING])
            copy.commit()
        return target


def log_of(path: Path) -> Path:
    """Give the name of the log of a database."""
    return path.with_name(path.name + LOG)


def real_path(path: Path) -> Path:
    """Follow symbolic links, so that all names of a store lead to the same locks and the same log.

    Hard links cannot be followed: each name would have a log of its own, which damages the store.
    """
    found = Path(os.path.realpath(path))
    if found.is_file() and found.stat().st_nlink > 1:
        raise StoreError(
            f"the store {path} has another name (a hard link): used by both, it would be damaged",
            hint=f"make it a file of its own: cp {path} new.db, mv new.db {path}",
        )
    return found
