"""The published layouts: which there are, which one a folder has, and reading it."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from masa.errors import DataError, UsageError
from masa.research.published.collection import Collection, check
from masa.research.published.frugalml import data_set_folders, read_frugalml
from masa.research.published.hapi import is_hapi_index, read_hapi
from masa.research.published.llmdrift import read_llmdrift
from masa.research.published.table import Columns, read_table


def collections(
    layout: str, path: Path, *, partial: bool = False, columns: Columns | None = None
) -> Iterator[Collection]:
    """Read and check all data sets of a layout; incomplete ones are refused unless partial."""
    readers: dict[str, Callable[[], Iterable[Collection]]] = {
        "frugalml": lambda: read_frugalml(path, partial=partial),
        "hapi": lambda: read_hapi(path, partial=partial),
        "llmdrift": lambda: read_llmdrift(path, partial=partial),
        "table": lambda: [read_table(path, columns or Columns())],
    }
    if layout not in readers:
        raise UsageError(
            f"there is no layout {layout!r}", hint=f"the layouts are {', '.join(readers)}"
        )
    if columns is not None and layout != "table" and columns != Columns():
        raise UsageError(
            f"the layout {layout} says which column is what",
            hint="leave out --label, --id, --answers, --input and --name",
        )
    if partial and layout == "table":
        raise UsageError("a table has no parts that could be missing", hint="leave out --partial")
    if not path.exists():
        raise DataError(
            f"{path} does not exist", hint="give the folder or file that you downloaded"
        )
    # Without regard to case: the names become those of files.
    source_of: dict[str, str] = {}
    for found in readers[layout]():
        if found.recordings:
            other = source_of.get(found.name.casefold())
            if other is not None:
                raise DataError(
                    f"{other} and {found.source} are both called {found.name!r}",
                    hint="import them into two folders",
                )
            source_of[found.name.casefold()] = found.source
            check(found)
        yield found


def layout_of(path: Path) -> str | None:
    """Tell which layout a downloaded folder has; None for one of Parquet files."""
    for index in (path / "meta.csv", path / "tasks" / "meta.csv"):
        if index.is_file() and is_hapi_index(index):
            return "hapi"
    if data_set_folders(path):
        return "frugalml"
    return None
