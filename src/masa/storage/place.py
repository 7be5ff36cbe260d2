"""The file of a store: it has one name, stays where it is, and its log lies beside it."""

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masa.errors import StoreError
from masa.storage.schema import WORKING

LOG, INDEX = "-wal", "-shm"
"""What SQLite appends to the name of a database for the log of what is not in it yet, and for the
index of that log."""


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
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # A network that is away for a moment has deleted nothing.
        return (found.st_dev, found.st_ino) == (self.device, self.inode)

    def require(self) -> None:
        """Raise if the file was deleted or replaced."""
        if not self.is_there:
            raise _gone(self.path, "what was paid for is lost if there is no copy")

    def rescue(self, connection: Any) -> None:
        """Save what a connection still sees of a file that was deleted or replaced, and raise.

        Such a file can be read and written until it is closed, and is lost then.
        """
        if self.is_there:
            return
        try:
            saved = self._save(connection)
        except (OSError, sqlite3.Error) as exc:
            raise _gone(self.path, f"what it held cannot be saved: {exc}") from exc
        hint = "it was put back with all that it held; run the same command again"
        if saved != self.path:
            hint = f"all that it held was saved as {saved}; --store {saved} uses it"
        raise _gone(self.path, hint)

    def _save(self, connection: Any) -> Path:
        """Copy what the connection sees to the old place, or beside it where something is there."""
        target = self.path
        if target.exists():
            target = target.with_name(f"{target.name}.saved-{os.getpid()}")
        else:
            # A log that was left is the old file's. SQLite would take it for the new one's.
            for ending in (LOG, INDEX):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(target)) as copy:
            connection.backup(copy)
            # The copy is whole without a log.
            copy.execute("UPDATE run SET stopped = 'interrupted' WHERE stopped = ?", [WORKING])
            copy.commit()
        return target


def _gone(path: Path, hint: str) -> StoreError:
    return StoreError(
        f"the store {path} was deleted or replaced while masa was using it", hint=hint
    )


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
