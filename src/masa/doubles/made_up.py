"""Made-up labelled inputs for the doubles: English and Chinese reviews, drawn faces, spoken words.

All differ, and all are the same on every machine: they are drawn with a seed.
"""

import io
import random
import shutil
import subprocess
import tempfile
import wave
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masa.errors import MissingPackageError

SUBJECTS = (
    "The food",
    "This film",
    "My room",
    "The staff",
    "That phone",
    "Her lecture",
    "The battery",
    "Our flight",
    "The sound",
    "It",
)
FEELINGS: Mapping[str, tuple[str, ...]] = {
    "pos": (
        "was great",
        "was lovely",
        "made me happy",
        "is excellent",
        "was a wonderful surprise",
        "is good",
    ),
    "neg": (
        "was awful",
        "was terrible",
        "made me angry",
        "is bad",
        "was a horrible mess",
        "disappointed me",
    ),
    "neu": (
        "was on the table",
        "came on Monday",
        "is made in two parts",
        "has a door",
        "was there before",
        "is blue",
    ),
}
ENDS = ("", "!", ", as they said", " and that is that", ", not more", " :)", " but slow")

CHINESE_SUBJECTS = (
    "这个酒店",
    "这本书",
    "手机",
    "快递",
    "服务",
    "味道",
    "房间",
    "屏幕",
    "质量",
    "物流",
)
CHINESE_FEELINGS: Mapping[str, tuple[str, ...]] = {
    "pos": ("非常好", "很满意", "值得推荐", "真的很赞", "让人惊喜", "很不错"),
    "neg": ("太差了", "很失望", "非常糟糕", "完全不值", "让人生气", "有很多问题"),
}
CHINESE_ENDS = ("", "！", "，下次还会再来", "，就这样", "，朋友也这么说", "。")

EMOTIONS = ("anger", "disgust", "fear", "happiness", "neutral", "sadness", "surprise")

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")

VOICES = ("en-us", "en-gb", "en-us+f3", "en-gb+m3", "en-us+m5", "en-gb+f2")


def reviews(count: int) -> list[tuple[str, str]]:
    """Make English texts with the labels pos, neg and neu."""
    chance = random.Random(7)  # noqa: S311
    made: dict[str, str] = {}
    while len(made) < count:
        label = chance.choice(tuple(FEELINGS))
        feeling, end = chance.choice(FEELINGS[label]), chance.choice(ENDS)
        made.setdefault(f"{chance.choice(SUBJECTS)} {feeling}{end} ({len(made)})", label)
    return list(made.items())


def chinese_reviews(count: int) -> list[tuple[str, str]]:
    """Make Chinese texts with the labels pos and neg."""
    chance = random.Random(7)  # noqa: S311
    made: dict[str, str] = {}
    while len(made) < count:
        label = chance.choice(tuple(CHINESE_FEELINGS))
        feeling, end = chance.choice(CHINESE_FEELINGS[label]), chance.choice(CHINESE_ENDS)
        made.setdefault(f"{chance.choice(CHINESE_SUBJECTS)}{feeling}{end}{len(made)}", label)
    return list(made.items())


def face_files(count: int, folder: Path) -> list[tuple[str, str]]:
    """Draw faces into a folder; give the names of the files and the emotions."""
    rng = np.random.default_rng(7)
    made = []
    for number in range(count):
        label = EMOTIONS[int(rng.integers(len(EMOTIONS)))]
        name = f"face-{number:04}.png"
        (folder / name).write_bytes(draw_face(label, rng))
        made.append((name, label))
    return made


def draw_face(emotion: str, rng: np.random.Generator) -> bytes:
    """Draw a face of 48 x 48 pixels; no two are alike."""
    try:
        from PIL import Image, ImageDraw
    except ImportError as exc:
        raise MissingPackageError(
            "drawn faces need Pillow", hint="pip install 'masa-shift[doubles]'"
        ) from exc

    def about(value: float, spread: float = 1.5) -> float:
        return float(value + rng.normal(0.0, spread))

    image = Image.new("L", (48, 48), int(rng.integers(20, 60)))
    pen = ImageDraw.Draw(image)
    skin, ink = int(rng.integers(150, 235)), int(rng.integers(0, 60))
    pen.ellipse((about(5), about(3), about(43), about(45)), fill=skin)
    brow, eye, mouth = _features(emotion)
    for side in (-1, 1):
        middle = 24 + side * about(8, 0.7)
        height = about(18, 0.7)
        pen.ellipse((middle - 2, height - eye, middle + 2, height + eye), fill=ink)
        inner, outer = middle - side * 4, middle + side * 4
        slope = about(brow, 0.8)
        pen.line((inner, height - 6 + slope, outer, height - 6 - slope), fill=ink, width=1)
    low = about(33, 1.0)
    if emotion == "surprise" or (emotion == "fear" and rng.random() < 0.5):
        size = about(4, 0.7)
        pen.ellipse((24 - size, low - size, 24 + size, low + size), fill=ink)
    else:
        curve = about(mouth, 1.2)
        points = [(24 + x, low + curve * (1 - (x / 8) ** 2)) for x in range(-8, 9, 2)]
        pen.line(points, fill=ink, width=2)
    noise = rng.normal(0.0, 14.0, (48, 48))
    pixels = np.clip(np.asarray(image, np.float64) + noise, 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def _features(emotion: str) -> tuple[float, float, float]:
    """Give the slope of the brows, the size of the eyes and the curve of the mouth."""
    return {
        "anger": (2.5, 2.0, -2.0),
        "disgust": (1.5, 1.5, -3.5),
        "fear": (-2.0, 3.5, -1.0),
        "happiness": (0.0, 2.0, 5.0),
        "neutral": (0.0, 2.0, 0.5),
        "sadness": (-2.5, 2.0, -4.5),
        "surprise": (-0.5, 4.0, 0.0),
    }[emotion]


def can_speak() -> bool:
    """Say whether this machine has a speaking program."""
    return shutil.which("espeak-ng") is not None


def sound_files(count: int, folder: Path) -> list[tuple[str, str]]:
    """Let a speaking program say words into files of 16 kHz; give the names and the words."""
    if not can_speak():
        raise MissingPackageError(
            "spoken words need espeak-ng", hint="make system, or apt-get install espeak-ng"
        )
    rng = np.random.default_rng(7)
    made = []
    for number in range(count):
        word = WORDS[int(rng.integers(len(WORDS)))]
        name = f"word-{number:04}.wav"
        _speak(
            word,
            folder / name,
            voice=VOICES[int(rng.integers(len(VOICES)))],
            speed=int(rng.integers(90, 170)),
            pitch=int(rng.integers(25, 75)),
            noise=float(rng.uniform(50, 900)),
            seed=number,
        )
        made.append((name, word))
    return made


def _speak(
    word: str, path: Path, *, voice: str, speed: int, pitch: int, noise: float, seed: int
) -> None:
    """Write one word, with some noise over it."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said.wav"
        command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch)]
        subprocess.run([*command, "-w", str(said), word], check=True, capture_output=True)  # noqa: S603
        with wave.open(str(said)) as file:
            rate = file.getframerate()
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float64)
    length = int(len(samples) * 16_000 / rate)
    at_16k = np.interp(np.arange(length) * rate / 16_000, np.arange(len(samples)), samples)
    at_16k += np.random.default_rng(seed).normal(0.0, noise, length)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.clip(at_16k, -32768, 32767).astype("<i2").tobytes())
