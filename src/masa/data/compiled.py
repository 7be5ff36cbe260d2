"""Functions that are compiled with numba, once on a machine."""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile a function with numba and keep it on disk where a directory can be written.

    >>> jit(lambda x: x + 1)(1)
    2
    """
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        # Neither the package nor the user's cache directory is writable.
        return cast(F, numba.njit(nogil=True)(function))
    _name_by_sources(compiled, Path(function.__code__.co_filename).parent)
    return cast(F, compiled)


def kept_file(compiled: object) -> Path | None:
    """Give the file that tells what is kept of a compiled function, where anything is."""
    kept = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    return None if kept is None else Path(kept._index_path)


def _name_by_sources(compiled: object, folder: Path) -> None:
    """Name what is kept of a function by all files of its folder.

    Numba compares it with the function's own file, not with those of the functions that it calls: a
    kernel that calls an edited one would stay as it was. And it reads what an earlier version kept
    before it compares anything, which fails where a record was renamed since then.
    """
    kept = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if kept is None:
        return
    digest = _digest(folder)
    kept._index_name = kept._index_name.removesuffix(".nbi") + f".{digest}.nbi"
    kept._index_path = str(Path(kept._cache_path, kept._index_name))
    kept._data_name_pattern = kept._data_name_pattern.replace(".{number", f".{digest}.{{number")


@functools.cache
def _digest(folder: Path) -> str:
    """Give a hash of the name, the date and the size of every file of a folder of kernels."""
    found = ((path.name, path.stat()) for path in sorted(folder.glob("*.py")))
    stamps = [(name, stat.st_mtime_ns, stat.st_size) for name, stat in found]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()[:12]
