"""A cheap model of the labels, trained on the labelled data itself.

Its answers and confidences separate easy items from hard ones. Each item is judged by a model
that was not trained on it.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from masa.data.dataset import Dataset
from masa.data.files import folder_of
from masa.errors import DataError, MissingPackageError, UsageError
from masa.records import Column, Floats, Ints, Progress, in_order

log = logging.getLogger(__name__)

KINDS = ("text", "image", "sound")

FOLDS = 5
"""The number of models: each judges one fold of the items and is trained on the others."""

MOST_TRAINED = 20_000
"""The most items that a model is trained on: more make it slower and hardly better."""

CHUNK = 5_000
"""The most items whose features are held in memory at once."""

SIDE, BANDS, FRAME = 12, 32, 1024
"""Pixels per side of a thumbnail; frequency bands of a sound; samples per frame of a sound."""

CHEAP = "the cheap model"
"""The name of the column with its answers. Stored runs are recognised by it: never reworded."""

CHEAP_CONFIDENCE = "the confidence of a cheap model"
"""The difficulty, in words, where it is the model's confidence. Never reworded either."""

VERSION = "1"
"""Changes with the model: what another version has cached is computed again."""


@dataclass(frozen=True, slots=True, eq=False)
class Cheap:
    """The answers of the cheap model about all items, with their confidence."""

    answers: Column
    confidence: Floats
    """(N,)"""
    right: float
    """the share of items for which it answers the label"""


def helped(
    data: Dataset,
    column: str,
    *,
    kind: str = "text",
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Add the cheap model's answers to the data as `CHEAP`, and its confidence as difficulty."""
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
    """Train on a column of texts, or of names of image or sound files, to predict the labels.

    With a folder the result is cached there, and taken from there the next time.
    """
    if kind not in KINDS:
        raise UsageError(
            f"there is no cheap model for {kind!r}", hint=f"there are {', '.join(KINDS)}"
        )
    if len(data.label.values) < 2 or len(data) < 2 * FOLDS:
        raise DataError(
            f"a cheap model cannot be trained on {len(data):,} items "
            f"of {len(data.label.values)} labels",
            hint=f"it needs at least 2 labels and {2 * FOLDS} items",
        )
    if folder is None:
        return _cheap(data, *_out_of_fold(data, column, kind, progress))
    cached = folder / f"cheap-{_cache_key(data, column, kind)}.npz"
    if cached.is_file():
        try:
            with cached.open("rb") as file, np.load(file) as content:
                return _cheap(data, *_checked(data, content["codes"], content["confidence"]))
        except Exception as exc:  # A damaged file fails in as many ways as a zip file can.
            log.info("%s cannot be read; the cheap model is trained again: %s", cached, exc)
    codes, confidence = _out_of_fold(data, column, kind, progress)
    unfinished = cached.with_suffix(f".{os.getpid()}.npz")
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(unfinished, codes=codes, confidence=confidence)
        unfinished.replace(cached)
    except OSError as exc:
        log.warning("the cheap model cannot be cached: %s", exc)
    return _cheap(data, codes, confidence)


def _checked(data: Dataset, codes: Ints, confidence: Floats) -> tuple[Ints, Floats]:
    """Raise if answers and confidences are not what could have been cached for the data."""
    answers = codes.astype(np.int64, casting="safe")
    if not answers.shape == confidence.shape == (len(data),):
        raise ValueError("not one answer for each item")
    if answers.min() < 0 or answers.max() >= len(data.label.values):
        raise ValueError("answers that are no labels")
    if not np.isfinite(confidence).all():
        raise ValueError("confidences that are no numbers")
    return answers, confidence


def _cache_key(data: Dataset, column: str, kind: str) -> str:
    """Return a text that differs when another model would be trained."""
    state = ""
    if kind != "text":
        state = _state_of_files(data, column)
    parts = (VERSION, kind, column, data.fingerprint(), state)
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def _state_of_files(data: Dataset, column: str) -> str:
    """Return a text that differs when a file that the column names was changed or replaced."""
    digest = hashlib.sha256()
    folder = folder_of(data.source)
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
    values, answers = np.unique(codes, return_inverse=True)
    names = tuple(data.label.values[code] for code in values)
    assert names == in_order(names)  # noqa: S101
    return Cheap(Column(CHEAP, names, answers.astype(np.int32)), confidence, right)


def _out_of_fold(
    data: Dataset, column: str, kind: str, progress: Progress | None
) -> tuple[Ints, Floats]:
    """Return the answer, as a code of the label column, and the confidence for each item (N,)."""
    features = _features(data, column, kind)
    labels = data.label.codes
    shuffled = np.random.default_rng(0).permutation(len(data))
    fold = shuffled % FOLDS
    codes = np.zeros(len(data), np.int64)
    confidence = np.zeros(len(data))
    done = 0
    for number in range(FOLDS):
        judged = np.flatnonzero(fold == number)
        others = np.flatnonzero(fold != number)
        trained = np.sort(others[np.argsort(shuffled[others])[:MOST_TRAINED]])
        if len(np.unique(labels[trained])) == 1:
            # All items of the rarer label are in this fold: there is nothing to tell apart.
            codes[judged] = labels[trained[0]]
            confidence[judged] = 1.0
            continue
        model = _model(kind)
        model.fit(features(trained), labels[trained])
        for first in range(0, len(judged), CHUNK):
            part = judged[first : first + CHUNK]
            probabilities = model.predict_proba(features(part))
            codes[part] = model.classes_[probabilities.argmax(axis=1)]
            confidence[part] = probabilities.max(axis=1)
            done += len(part)
            if progress is not None:
                progress("training a cheap model", done / len(data))
    return codes, confidence


def _model(kind: str) -> Any:
    """Make an untrained pipeline of scikit-learn's."""
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
    """Return a function from the places of items to their features: texts, or rows of numbers."""
    if data.inputs is None or column not in data.inputs.columns:
        raise DataError(
            f"the data has no column {column!r} of texts", hint="read it with inputs=[...]"
        )

    def texts(places: Ints) -> Iterator[str]:
        for place in places.tolist():
            yield data.item(place).inputs[column]

    if kind == "text":
        # One word is added, so that there is a word to learn even where the texts have none.
        return lambda places: [f"{text} anything" for text in texts(places)]
    folder = folder_of(data.source)
    measure = sound_features
    if kind == "image":
        measure = image_features
    return lambda places: np.array([measure(folder / name) for name in texts(places)])


def _require_file(file: Path, kind: str) -> None:
    """Raise for what is no file: a pipe or a device may never come to its end."""
    try:
        there = file.is_file()
    except (OSError, ValueError):
        there = False
    if not there:
        raise DataError(
            f"the {kind} {file} does not exist, or is not a file",
            hint=f"give names of {kind} files, relative to the folder of the data",
        )


def image_features(file: Path) -> Floats:
    """Describe an image by a thumbnail and a histogram of each colour channel."""
    try:
        from PIL import Image
    except ImportError as exc:
        raise MissingPackageError(
            "images need Pillow", hint="pip install 'masa-shift[difficulty]'"
        ) from exc
    _require_file(file, "image")
    try:
        with Image.open(file) as image:
            pixels = np.asarray(image.convert("RGB").resize((SIDE, SIDE)), np.float64) / 255.0
    except Exception as exc:  # Decoders of damaged images fail in ways of their own.
        raise DataError(
            f"the image {file} cannot be read: {exc}",
            hint="give names of image files, relative to the folder of the data",
        ) from exc
    tones = [
        np.histogram(pixels[:, :, channel], bins=8, range=(0.0, 1.0))[0] / SIDE**2
        for channel in range(3)
    ]
    return np.concatenate((pixels.ravel(), *tones))


def sound_features(file: Path) -> Floats:
    """Describe the first half minute of a sound by its length and the loudness of each band.

    Of the logarithms of a band's power in each frame: mean, maximum and standard deviation.
    """
    import wave

    _require_file(file, "sound")
    try:
        with wave.open(str(file)) as sound:
            rate, width, channels = sound.getframerate(), sound.getsampwidth(), sound.getnchannels()
            raw = sound.readframes(min(sound.getnframes(), 30 * rate))
    except Exception as exc:  # A damaged file fails in many ways, a RuntimeError among them.
        raise DataError(
            f"the sound {file} cannot be read: {exc}",
            hint="give names of WAV files, relative to the folder of the data",
        ) from exc
    if rate < 1:
        raise DataError(f"the sound {file} has no sampling rate", hint="save it again as WAV")
    if width not in (1, 2, 4):
        raise DataError(
            f"the sound {file} has {8 * width} bits per sample",
            hint="give WAV files of 8, 16 or 32 bits",
        )
    whole_samples = len(raw) // (width * channels) * width * channels
    samples = np.frombuffer(raw[:whole_samples], {1: "u1", 2: "<i2", 4: "<i4"}[width])
    mono = samples.reshape(-1, channels).mean(axis=1) / 2.0 ** (8 * width - 1)
    if width == 1:  # Samples of 8 bits are unsigned: 128 is silence.
        mono = mono - 1.0
    padded = np.pad(mono, (0, max(0, FRAME - len(mono))))
    frames = padded[: len(padded) // FRAME * FRAME].reshape(-1, FRAME) * np.hanning(FRAME)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    edges = np.unique(np.geomspace(1, power.shape[1], BANDS + 1).astype(int))
    loudness = np.log10(np.add.reduceat(power, edges[:-1], axis=1) + 1e-9)
    length = np.log10(len(mono) / rate + 1e-3)
    return np.concatenate(
        (loudness.mean(axis=0), loudness.max(axis=0), loudness.std(axis=0), [length])
    )


def save(data: Dataset, found: Cheap, file: Path) -> None:
    """Write the answers and confidences as CSV, by id, or by row from 1 without ids."""
    import csv

    first_column, names = "row", np.arange(1, len(data) + 1).tolist()
    if data.ids is not None:
        first_column, names = "id", data.ids.tolist()
    answers = np.array(found.answers.values, object)[found.answers.codes].tolist()
    try:
        with file.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow((first_column, "cheap.prediction", "cheap.confidence"))
            writer.writerows(zip(names, answers, found.confidence.tolist(), strict=True))
    except OSError as exc:
        raise UsageError(
            f"{file} cannot be written: {exc}", hint="choose another place with --out"
        ) from exc
