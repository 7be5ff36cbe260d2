"""The data sets to study: a folder that masa import made, or a download."""

from pathlib import Path

from masa.errors import DataError
from masa.research.published import PARTIAL, Stored, collections, layout_of, save, stored


def data_sets(folder: Path, out: Path) -> tuple[list[Stored], list[str]]:
    """Find the data sets of a folder, and notes about them.

    A download is imported first, into `out/data`.
    """
    if not folder.is_dir():
        raise DataError(
            f"{folder} is not a folder",
            hint="give one that masa import made, or a download of FrugalML or HAPI",
        )
    layout = layout_of(folder)
    if layout is None:
        return stored(folder), []
    try:
        found = list(collections(layout, folder))
    except DataError as exc:
        hint = exc.hint
        if hint == PARTIAL:
            # Only masa import has the option --partial.
            hint = f"masa import {layout} {folder} --partial leaves out what is not there"
        raise DataError(exc.message, hint=hint) from exc
    notes = [note for collection in found for note in collection.notes]
    sets = [save(collection, out / "data") for collection in found if collection.recordings]
    if not sets:
        raise DataError(
            f"{folder} has no data set that can be studied: {'; '.join(notes)}",
            hint="give another download",
        )
    return sets, notes
