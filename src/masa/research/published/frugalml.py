"""FrugalML's layout: a folder per data set, with an index and text files per model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from masa.errors import DataError
from masa.research.published.collection import (
    DOWNLOAD,
    PARTIAL,
    Collection,
    Recording,
    api_name,
    data_set_name,
    refuse_repeated,
    unknown_label_notes,
)
from masa.research.published.downloaded_files import (
    csv_rows,
    finite_number,
    is_file,
    label_number,
    read_lines,
    read_price,
    read_text,
)
from masa.research.published.hapi import is_hapi_index

FOLDER_PREFIX = "mlserviceperformance_"
KINDS = ("ImageName", "TrueLabel", "PredictedLabel", "Confidence")
"""The files of a model, Model{index}_{kind}.txt, each with a line per item."""


def read_frugalml(path: Path, *, partial: bool = False) -> Iterator[Collection]:
    """Read a folder `mlserviceperformance_X`, or all in a folder: `meta.csv` and model files.

    Models of which a file is missing are refused, or left out with a note if partial.
    """
    folders = data_set_folders(path)
    if not folders:
        raise DataError(
            f"{path} holds no data set in FrugalML's layout",
            hint=(
                f"give a folder {FOLDER_PREFIX}X with meta.csv in it, or the folder that holds "
                "several"
            ),
        )
    for folder in folders:
        yield _read_folder(folder, partial=partial)


def data_set_folders(path: Path) -> list[Path]:
    """Find the folders of data sets: the folder itself, or those in it."""
    index = path / "meta.csv"
    if index.is_file():
        # HAPI has a file of this name, too.
        if is_hapi_index(index):
            return []
        return [path]
    found = (*path.glob(f"{FOLDER_PREFIX}*"), *(path / "dataset").glob(f"{FOLDER_PREFIX}*"))
    return sorted(folder for folder in found if folder.is_dir())


@dataclass(slots=True)
class _DataSet:
    """What was read of a data set so far. Ids and labels are those of the first whole model."""

    folder: Path
    ids: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    first_model: str = ""
    recordings: list[Recording] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _read_folder(folder: Path, *, partial: bool) -> Collection:
    index_file = folder / "meta.csv"
    data = _DataSet(folder)
    for line, row in csv_rows(index_file, ("Index", "MLaaS(API)")):
        index = row["Index"].strip()
        files = {kind: folder / f"Model{index}_{kind}.txt" for kind in KINDS}
        missing = [file.name for file in files.values() if not is_file(file)]
        if missing:
            words = (
                f"{folder}: {', '.join(missing)} missing, of model {index} "
                f"({row['MLaaS(API)']}, {index_file.name} line {line})"
            )
            if not partial:
                raise DataError(words, hint=PARTIAL)
            data.notes.append(f"left out: {words}")
            continue
        recording = _read_model(data, f"Model{index}", files, api_name(row["MLaaS(API)"]))
        # The heading goes on with what is counted: "Cost per 10k utterance", for example.
        prices = [value for name, value in row.items() if name.startswith("Cost")] or [""]
        cost = read_price(prices[0].strip(), index_file, line)
        data.recordings.append(replace(recording, price=cost))
    name = data_set_name(folder.name.removeprefix(FOLDER_PREFIX))
    if not data.recordings:
        if not partial:
            raise DataError(f"{folder} holds no whole model", hint=DOWNLOAD)
        data.notes.append(f"left out: {folder} holds no whole model")
    data.notes += unknown_label_notes(name, data.labels, data.recordings)
    return Collection(
        name,
        "",
        data.ids,
        data.labels,
        tuple(data.recordings),
        str(folder),
        tuple(data.notes),
    )


def _read_model(data: _DataSet, model: str, files: dict[str, Path], api: str) -> Recording:
    """Read the files of a model and check that they are about the items of the first one."""
    names, truth = files["ImageName"], files["TrueLabel"]
    # Names end in a comma in these files.
    ids = [name.rstrip(",") for name in read_lines(names)]
    labels = _labels(truth)
    if not data.ids:
        data.ids, data.labels, data.first_model = ids, labels, model
        refuse_repeated(ids, names)
        _refuse_other_length(labels, ids, truth, names)
    first_names = data.folder / f"{data.first_model}_ImageName.txt"
    first_truth = data.folder / f"{data.first_model}_TrueLabel.txt"
    _refuse_other_rows(ids, data.ids, names, first_names)
    _refuse_other_rows(labels, data.labels, truth, first_truth)
    answers = _labels(files["PredictedLabel"])
    confidences = [
        finite_number(text, files["Confidence"], line)
        for line, text in enumerate(read_lines(files["Confidence"]), 1)
    ]
    values: tuple[tuple[str, Sequence[object]], ...] = (
        ("PredictedLabel", answers),
        ("Confidence", confidences),
    )
    for kind, found in values:
        _refuse_other_length(found, data.ids, files[kind], first_names)
        # Files of names lack the last line break even in a whole download; these do not.
        if not read_text(files[kind]).endswith("\n"):
            data.notes.append(
                f"{files[kind]} does not end with a whole line: its last value may be cut short"
            )
    return Recording(api, answers, confidences)


def _labels(file: Path) -> list[str]:
    return [label_number(text, file, line) for line, text in enumerate(read_lines(file), 1)]


def _refuse_other_length(
    found: Sequence[object], wanted: Sequence[object], file: Path, other: Path
) -> None:
    """Refuse a file that has more or fewer lines than another."""
    if len(found) != len(wanted):
        raise DataError(
            f"{file} has {len(found):,} lines where {other.name} has {len(wanted):,}", hint=DOWNLOAD
        )


def _refuse_other_rows(
    found: Sequence[str], wanted: Sequence[str], file: Path, other: Path
) -> None:
    """Refuse a file whose lines are not those of another."""
    _refuse_other_length(found, wanted, file, other)
    for line, (mine, theirs) in enumerate(zip(found, wanted, strict=True), 1):
        if mine != theirs:
            raise DataError(
                f"{file}, line {line:,}: {mine!r} where {other.name} has {theirs!r}", hint=DOWNLOAD
            )
