"""The real models behind the doubles. Each has a newer version, which sees less."""

import io
import threading
import wave
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from masa.doubles.made_up import EMOTIONS, WORDS, draw_face
from masa.errors import MissingPackageError
from masa.records import Floats

EXTRA = "pip install 'masa-shift[doubles]'"

SIDE = 24
"""Pixels per side of the images that the classifier of faces sees."""

RATE = 16_000


class Vader:
    """VADER: the sentiment of English texts."""

    def __init__(self) -> None:
        try:
            from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
        except ImportError as exc:
            raise MissingPackageError("this double needs vaderSentiment", hint=EXTRA) from exc
        self._model = SentimentIntensityAnalyzer()

    def score(self, text: str, *, updated: bool) -> float:
        """Give a number from -1 to 1; the newer version reads five words."""
        if updated:
            text = " ".join(text.split()[:5])
        return float(self._model.polarity_scores(text)["compound"])

    def sentiment(self, text: str, *, updated: bool) -> str:
        """Name the sentiment."""
        return named(self.score(text, updated=updated))


def named(score: float) -> str:
    """Name the sentiment of a score as VADER's authors do."""
    if abs(score) < 0.05:
        return "neutral"
    return "positive" if score > 0 else "negative"


class Snow:
    """SnowNLP: the sentiment of Chinese texts."""

    def __init__(self) -> None:
        try:
            import snownlp
        except ImportError as exc:
            raise MissingPackageError("this double needs snownlp", hint=EXTRA) from exc
        self._model: Any = snownlp.SnowNLP

    def positive(self, text: str, *, updated: bool) -> float:
        """Give the probability that it is positive; the newer version reads four characters."""
        return float(self._model(text[:4] if updated else text).sentiments)


class Faces:
    """A classifier of drawn faces, trained when it is first needed."""

    def __init__(self) -> None:
        try:
            from PIL import Image
            from sklearn.linear_model import LogisticRegression
        except ImportError as exc:
            raise MissingPackageError("this double needs scikit-learn", hint=EXTRA) from exc
        self._image: Any = Image
        rng = np.random.default_rng(1)
        labels = [EMOTIONS[number % len(EMOTIONS)] for number in range(60 * len(EMOTIONS))]
        images = [self._pixels(draw_face(label, rng)) for label in labels]
        self._models = {}
        for updated in (False, True):
            features = np.array([_seen(image, updated=updated) for image in images])
            model = LogisticRegression(C=0.3, max_iter=500)
            self._models[updated] = model.fit(features, labels)

    def emotions(self, content: bytes, *, updated: bool) -> Mapping[str, float] | None:
        """Give the probability of each emotion; None where there is no face, or no image."""
        try:
            pixels = self._pixels(content)
        except Exception:
            return None
        if pixels.std() < 0.02:
            return None
        model = self._models[updated]
        chances = model.predict_proba([_seen(pixels, updated=updated)])[0]
        return dict(zip(model.classes_.tolist(), chances.tolist(), strict=True))

    def is_image(self, content: bytes) -> bool:
        """Say whether it can be read as an image."""
        try:
            self._pixels(content)
        except Exception:
            return False
        return True

    def _pixels(self, content: bytes) -> Floats:
        with self._image.open(io.BytesIO(content)) as image:
            grey = image.convert("L").resize((SIDE, SIDE))
            return np.asarray(grey, np.float64) / 255.0


def _seen(pixels: Floats, *, updated: bool) -> Floats:
    """Give what the classifier sees: the newer version sees a quarter of the pixels."""
    if updated:
        pixels = pixels.reshape(SIDE // 2, 2, SIDE // 2, 2).mean(axis=(1, 3))
    return np.asarray(pixels.ravel())


class Recogniser:
    """PocketSphinx, which listens for one of a few words."""

    def __init__(self, words: Sequence[str] = WORDS) -> None:
        try:
            from pocketsphinx import Decoder
        except ImportError as exc:
            raise MissingPackageError("this double needs pocketsphinx", hint=EXTRA) from exc
        # Without a language model it is quick, and hears nothing but the words.
        self._decoder = Decoder(samprate=RATE, lm=None, loglevel="FATAL")
        grammar = f"#JSGF V1.0; grammar words; public <word> = {' | '.join(words)};"
        self._decoder.add_jsgf_string("words", grammar)
        self._decoder.activate_search("words")
        self._one_at_a_time = threading.Lock()

    def heard(self, content: bytes, *, updated: bool) -> tuple[str, float] | None:
        """Give the word and a confidence; None where nothing was said.

        The newer version hears half of the frequencies.
        """
        samples = sound(content)
        if samples is None or not len(samples) or np.abs(samples).max() < 200:
            return None
        if updated:
            half = samples[: len(samples) // 2 * 2].reshape(-1, 2).mean(axis=1)
            samples = np.repeat(half, 2).astype(np.int16)
        padded = np.pad(samples, 4000).tobytes()
        with self._one_at_a_time:
            self._decoder.start_utt()
            self._decoder.process_raw(padded, full_utt=True)
            self._decoder.end_utt()
            found = self._decoder.hyp()
            if found is None or not found.hypstr:
                return None
            return str(found.hypstr), float(min(1.0, max(0.0, found.prob)))


def sound(content: bytes) -> Any:
    """Read a WAV file as samples of 16 kHz, mono; None where it is none."""
    try:
        with wave.open(io.BytesIO(content)) as file:
            if file.getsampwidth() != 2 or file.getframerate() != RATE:
                return None
            channels = file.getnchannels()
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    except (wave.Error, EOFError, ValueError):
        return None
    return samples.reshape(-1, channels)[:, 0]


@cache
def faces() -> Faces:
    """Give the classifier of faces, trained once."""
    return Faces()


@cache
def recogniser() -> Recogniser:
    """Give the recogniser, loaded once."""
    return Recogniser()
