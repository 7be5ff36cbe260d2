"""A cheap model of the labels, trained on the labelled data itself: its answers and confidences tell easy items from hard ones.

Each item is judged by a model that was not trained on it.
"""

import hashlib
import logging
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from masa.data.dataset import Dataset
from masa.errors import DataError, MissingPackageError, UsageError
from masa.records import Column, Floats, Ints, Progress, in_order

log = logging.getLogger(__name__)

KINDS = ("text", "image", "sound")

FOLDS = 5

MOST_TRAINED = 20_000
"""Items that a model is trained on: more make it slower and hardly better."""

CHUNK = 5_000
"""Items whose features are held at once."""

SIDE, BANDS, FRAME = 12, 32, 1024

CHEAP = "the cheap model"

VERSION = "1"
"""Changes with the model: what was kept by another version is made anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Cheap:
    """What the cheap model says of every item, and how sure it is."""

    answers: Column
    confidence: Floats
    """(N,)"""
    right: float
    """the share of items whose label it gives"""


def helped(
    data: Dataset,
    column: str,
    *,
    kind: str = "text",
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Give the data with the cheap model's answers, under the name `CHEAP`, and its confidence as the difficulty."""
    found = cheap_model(data, column, kind=kind, folder=folder, progress=progress)
    return replace(
        data, difficulty=found.confidence, predictions={**data.predictions, CHEAP: found.answers}
    )


def cheap_model(
    data: Dataset,
    column: str,
    *,
    kind: str = "text",
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Cheap:
    """Train on the labels from a column of texts, or of names of image or sound files, or take what the folder keeps of it."""
    if kind not in KINDS:
        raise UsageError(
            f"there is no cheap model for {kind!r}", hint=f"there are {', '.join(KINDS)}"
        )
    if len(data.label.values) < 2 or len(data) < 2 * FOLDS:
        raise DataError(
            f"a cheap model cannot be trained on {len(data):,} items of {len(data.label.values)} labels",
            hint=f"it takes two labels and {2 * FOLDS} items",
        )
    parts = (
        VERSION,
        kind,
        column,
        data.fingerprint(),
        _state_of_files(data, column) if kind != "text" else "",
    )
    name = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]
    kept = None if folder is None else folder / f"cheap-{name}.npz"
    if kept is not None and kept.is_file():
        try:
            with kept.open("rb") as file, np.load(file) as content:
                return _cheap(data, content["codes"], content["confidence"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            log.info("%s cannot be read and is made anew", kept)
    codes, confidence = _out_of_fold(data, column, kind, progress)
    if kept is not None:
        half = kept.with_suffix(f".{os.getpid()}.npz")
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(half, codes=codes, confidence=confidence)
            half.replace(kept)
        except OSError as exc:
            log.warning("the cheap model cannot be kept: %s", exc)
    return _cheap(data, codes, confidence)


def _state_of_files(data: Dataset, column: str) -> str:
    """Give a text that differs when a file that a column names is another one, or was changed."""
    digest = hashlib.sha256()
    folder = Path(data.source).resolve().parent
    for name in data.texts(column):
        try:
            found = (folder / name).stat()
            state = f"{found.st_size},{found.st_mtime_ns}"
        except (OSError, ValueError):
            state = ""
        digest.update(f"{folder / name}\x1f{state}\x1e".encode(errors="replace"))
    return digest.hexdigest()


def _cheap(data: Dataset, codes: Ints, confidence: Floats) -> Cheap:
    right = float(np.mean(codes == data.label.codes))
    values, kept = np.unique(codes, return_inverse=True)
    names = tuple(data.label.values[code] for code in values)
    assert names == in_order(names)  # noqa: S101
    return Cheap(Column(CHEAP, names, kept.astype(np.int32)), confidence, right)


def _out_of_fold(
    data: Dataset, column: str, kind: str, progress: Progress | None
) -> tuple[Ints, Floats]:
    """Give the answer, as a place among the labels, and the confidence for every item (N,)."""
    features = _features(data, column, kind)
    luck = np.random.default_rng(0).permutation(len(data))
    fold = luck % FOLDS
    codes, confidence = np.zeros(len(data), np.int64), np.zeros(len(data))
    done = 0
    for number in range(FOLDS):
        others = np.flatnonzero(fold != number)
        trained = np.sort(others[np.argsort(luck[others])[:MOST_TRAINED]])
        mine = np.flatnonzero(fold == number)
        if (
            len(np.unique(data.label.codes[trained])) == 1
        ):  # Of the rare label all are in this fold.
            codes[mine], confidence[mine] = data.label.codes[trained[0]], 1.0
            continue
        model = _model(kind)
        model.fit(features(trained), data.label.codes[trained])
        for first in range(0, len(mine), CHUNK):
            part = mine[first : first + CHUNK]
            shares = model.predict_proba(features(part))
            codes[part] = model.classes_[shares.argmax(axis=1)]
            confidence[part] = shares.max(axis=1)
            done += len(part)
            if progress is not None:
                progress("training a cheap model", done / len(data))
    return codes, confidence


def _model(kind: str) -> Any:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as exc:
        raise MissingPackageError(
            "a cheap model needs scikit-learn",
            hint="pip install 'masa-shift[difficulty]', or name a column with --difficulty",
        ) from exc
    if kind == "text":
        words = TfidfVectorizer(sublinear_tf=True, max_features=50_000, dtype=np.float32)
        return make_pipeline(words, LogisticRegression(C=10.0, tol=1e-3))
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))


def _features(data: Dataset, column: str, kind: str) -> Callable[[Ints], Any]:
    """Give what makes the features of the items at some places: texts, or rows of numbers."""

    def texts(places: Ints) -> Iterator[str]:
        for place in places.tolist():
            yield data.item(place).inputs[column]

    if data.inputs is None or column not in data.inputs.columns:
        raise DataError(
            f"the data has no column {column!r} of texts", hint="read it with inputs=[...]"
        )
    if kind == "text":
        return lambda places: [
            f"{text} anything" for text in texts(places)
        ]  # So that there is a word to learn, whatever texts say.
    folder = Path(data.source).parent
    measure = image_features if kind == "image" else sound_features
    return lambda places: np.array([measure(folder / name) for name in texts(places)])


def image_features(file: Path) -> Floats:
    """Describe an image by a thumbnail and by how frequent its tones are."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as exc:
        raise MissingPackageError(
            "images need Pillow", hint="pip install 'masa-shift[difficulty]'"
        ) from exc
    try:
        with Image.open(file) as image:
            pixels = np.asarray(image.convert("RGB").resize((SIDE, SIDE)), np.float64) / 255.0
    except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError) as exc:
        raise DataError(
            f"the image {file} cannot be read: {exc}",
            hint="give the names of image files, beside the data",
        ) from exc
    tones = [
        np.histogram(pixels[:, :, channel], bins=8, range=(0.0, 1.0))[0] / SIDE**2
        for channel in range(3)
    ]
    return np.concatenate((pixels.ravel(), *tones))


def sound_features(file: Path) -> Floats:
    """Describe a sound by how loud each band of it is, on average and at its loudest, in the first half minute."""
    import wave

    try:
        with wave.open(str(file)) as sound:
            rate, width, channels = sound.getframerate(), sound.getsampwidth(), sound.getnchannels()
            raw = sound.readframes(min(sound.getnframes(), 30 * rate))
    except (OSError, EOFError, ValueError, wave.Error) as exc:
        raise DataError(
            f"the sound {file} cannot be read: {exc}",
            hint="give the names of WAV files, beside the data",
        ) from exc
    if width not in (1, 2, 4):
        raise DataError(
            f"the sound {file} has {8 * width} bits a sample",
            hint="give WAV files of 8, 16 or 32 bits",
        )
    samples = np.frombuffer(
        raw[: len(raw) // (width * channels) * width * channels],
        {1: "u1", 2: "<i2", 4: "<i4"}[width],
    )
    mono = samples.reshape(-1, channels).mean(axis=1) / 2.0 ** (8 * width - 1) - (
        1.0 if width == 1 else 0.0
    )
    padded = np.pad(mono, (0, max(0, FRAME - len(mono))))
    frames = padded[: len(padded) // FRAME * FRAME].reshape(-1, FRAME) * np.hanning(FRAME)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    edges = np.unique(np.geomspace(1, power.shape[1], BANDS + 1).astype(int))
    loud = np.log10(np.add.reduceat(power, edges[:-1], axis=1) + 1e-9)
    return np.concatenate(
        (loud.mean(axis=0), loud.max(axis=0), loud.std(axis=0), [np.log10(len(mono) / rate + 1e-3)])
    )


def save(data: Dataset, found: Cheap, file: Path) -> None:
    """Write the answers and confidences as CSV, by id, or else by row from 1."""
    import csv

    names = np.arange(1, len(data) + 1) if data.ids is None else data.ids
    try:
        with file.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow(
                ("row" if data.ids is None else "id", "cheap.prediction", "cheap.confidence")
            )
            answers = np.array(found.answers.values, object)[found.answers.codes]
            writer.writerows(
                zip(names.tolist(), answers.tolist(), found.confidence.tolist(), strict=True)
            )
    except OSError as exc:
        raise UsageError(
            f"{file} cannot be written: {exc}", hint="choose another place with --out"
        ) from exc
