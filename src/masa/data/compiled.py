"""Functions that are compiled with numba, once on a machine."""

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
    # Numba compares what it kept with the function's own file, not with those of the functions that
    # it calls: without this a kernel that calls an edited one would stay as it was.
    kept = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if kept is not None:
        kept._source_stamp = _sources(Path(function.__code__.co_filename).parent)
    return cast(F, compiled)


_known: dict[Path, tuple[tuple[str, int, int], ...]] = {}


def _sources(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Give the name, the date and the size of every file of a folder of kernels."""
    if folder not in _known:
        found = ((path.name, path.stat()) for path in sorted(folder.glob("*.py")))
        _known[folder] = tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in found)
    return _known[folder]
