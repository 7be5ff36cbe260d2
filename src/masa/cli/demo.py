"""A case that needs no key and no file: a model behind an HTTP API is swapped silently."""

import asyncio
import csv
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.errors import MissingPackageError, UsageError
from masa.inference.counts import true_matrix
from masa.records import Assessment, Floats, Shift

if TYPE_CHECKING:
    from rich.console import RenderableType

STORY = """\
An API on this machine reads handwritten digits (scikit-learn's), for 0.001 per call, up to 300
calls per second. Now and then it says 429, or nothing at all. One day its provider, to save money,
shrinks every image from 8 x 8 to 4 x 4 pixels before the model sees it, and tells nobody."""

BUDGET = 300
RATE = 300.0

CONFIG = """\
[data]
path = "digits.csv"
label = "label"
id = "id"
input = "pixels"

[api]
client = "http"
url = "{url}"
body = {{ pixels = "{{pixels}}" }}
label = "digit"
confidence = "confidence"
price = 0.001
timeout = 1

[limits]
rate = "{rate:g}/s"
"""


@dataclass(frozen=True, slots=True, eq=False)
class Demo:
    """What masa found, and the truth it did not see."""

    found: Assessment
    true: Shift
    data: Dataset

    @property
    def error(self) -> float:
        """The Frobenius error of the estimated shift."""
        if self.found.shift is None:
            raise UsageError("the demo's API gave no answer", hint="run it again")
        return self.found.shift.error(self.true)

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa demo --json` prints: the assessment, and the truth."""
        accuracy = {
            "old": self.true.accuracy.old,
            "new": self.true.accuracy.new,
            "change": self.true.accuracy.change,
        }
        return {
            **self.found.to_dict(),
            "truth": {"accuracy": accuracy, "frobenius": self.true.norm, "error": self.error},
        }


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """Both versions of the API, trained on some of the images, and the others to ask about."""

    images: Floats
    labels: list[int]
    old: Any
    new: Any

    def answer(self, images: Floats, *, updated: bool) -> Floats:
        """Give the probability of each digit for each image (n, 10)."""
        return np.asarray(
            self.new.predict_proba(_smaller(images)) if updated else self.old.predict_proba(images)
        )


def run(*, seed: int = 0, say: Callable[[str], None] = lambda _: None, quiet: bool = False) -> Demo:
    """Train, serve, record a baseline, swap the version, assess, by what a user would type."""
    say("training two versions of a model")
    models = trained()
    with tempfile.TemporaryDirectory(prefix="masa-demo-") as name, serving(models) as server:
        folder = Path(name)
        _write_images(models, folder / "digits.csv")
        (folder / "masa.toml").write_text(
            CONFIG.format(url=server.url, rate=RATE), encoding="utf-8"
        )
        run_masa(folder, "baseline", "--budget", str(2 * len(models.labels)), say=say, quiet=quiet)
        server.updated = True
        words = ["--budget", str(BUDGET), "--seed", str(seed)]
        done = run_masa(folder, "assess", *words, say=say, quiet=quiet, as_json=True)
    data = answered(models)
    strata = Strata.build(data.label)
    old, new = (
        true_matrix(strata, data.predictions[name]) for name in ("old.prediction", "new.prediction")
    )
    return Demo(Assessment.from_dict(json.loads(done.stdout)), Shift(old, new), data)


def shown(result: Demo) -> "RenderableType":
    """Lay out the assessment, and the truth beside it."""
    from rich.console import Group

    from masa.report import terminal

    found = result.found
    parts = [terminal.assessment(found)]
    if found.shift is not None:
        parts.append("\nThe truth, which masa did not see\n")
        truth = terminal.estimate(
            found.shift, result.true, queries=found.queries, items=found.items
        )
        parts.append(truth)
    return Group(*parts)


def run_masa(
    folder: Path, *words: str, say: Callable[[str], None], quiet: bool, as_json: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user would, in the folder of the demo."""
    say(f"$ masa {' '.join(words)}")
    more = [*(["--json"] if as_json else []), *(["--quiet"] if quiet else [])]
    command = [sys.executable, "-m", "masa", *words, *more]
    done = subprocess.run(  # noqa: S603 - it runs masa itself
        command,
        cwd=folder,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode not in (0, 1, 3):
        raise UsageError(
            f"masa {words[0]} ended with exit code {done.returncode}",
            hint="its own message stands above",
        )
    if not as_json and not quiet:
        say(done.stdout.rstrip())
    return done


class Server:
    """An HTTP API with a rate limit and a bad day now and then."""

    def __init__(self, models: Models) -> None:
        self.updated = False
        self.url = ""
        self._models = models
        self._chance = random.Random(0)  # noqa: S311
        self._recent: deque[float] = deque()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def start(self) -> None:
        """Serve in the background."""
        self._thread.start()
        self._ready.wait(30)

    def close(self) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        from aiohttp import web

        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application()
        app.router.add_post("/digits", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/digits"
        self._ready.set()
        await self._closing.wait()
        await runner.cleanup()

    async def _answer(self, request: Any) -> Any:
        from aiohttp import web

        now = time.monotonic()
        while self._recent and self._recent[0] < now - 1.0:
            self._recent.popleft()
        if len(self._recent) > 1.1 * RATE or self._chance.random() < 0.02:
            return web.Response(status=429, headers={"Retry-After": "0.05"})
        self._recent.append(now)
        pixels = (await request.json())["pixels"]
        if self._chance.random() < 0.002:
            await asyncio.sleep(3)
        image = np.array(pixels.split(), np.float64)[None, :]
        chances = self._models.answer(image, updated=self.updated)[0]
        return web.json_response(
            {"digit": int(chances.argmax()), "confidence": float(chances.max())}
        )


@contextmanager
def serving(models: Models) -> Iterator[Server]:
    """Serve the models until the end of the block."""
    server = Server(models)
    server.start()
    try:
        yield server
    finally:
        server.close()


def trained() -> Models:
    """Train both versions on every other image."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import train_test_split
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as exc:
        raise MissingPackageError(
            "the demo needs scikit-learn", hint="pip install scikit-learn"
        ) from exc
    images, labels = load_digits(return_X_y=True)
    known, asked, truth, label = train_test_split(
        images, labels, train_size=0.4, stratify=labels, random_state=0
    )
    old, new = (
        make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300)) for _ in range(2)
    )
    return Models(asked, label.tolist(), old.fit(known, truth), new.fit(_smaller(known), truth))


def answered(models: Models) -> Dataset:
    """Ask both versions about every image: the truth, which an assessment does not see."""
    chances = [models.answer(models.images, updated=updated) for updated in (False, True)]
    answers = {
        name: probability.argmax(axis=1).tolist()
        for name, probability in zip(("old", "new"), chances, strict=True)
    }
    return Dataset.of(
        models.labels,
        predictions={f"{name}.prediction": column for name, column in answers.items()},
        difficulty=chances[0].max(axis=1),
        source="handwritten digits",
    )


def save(data: Dataset, path: Path) -> None:
    """Write the answers of both versions as CSV, to try `masa replay` on."""
    columns = [data.label, *data.predictions.values()]
    texts = [[column.values[code] for code in column.codes] for column in columns]
    numbers = [] if data.difficulty is None else data.difficulty.tolist()
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["id", *(column.name for column in columns), "old.confidence"])
            rows.writerows(zip(range(len(data)), *texts, numbers, strict=True))
    except OSError as exc:
        raise UsageError(
            f"{path} cannot be written: {exc.strerror}", hint="give another place with --save"
        ) from exc


def _write_images(models: Models, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "label", "pixels"])
        for number, (image, label) in enumerate(
            zip(models.images.astype(int), models.labels, strict=True)
        ):
            rows.writerow([f"image-{number:04}", label, " ".join(map(str, image))])


def _smaller(images: Floats) -> Floats:
    """Shrink images from 8 x 8 to 4 x 4 pixels."""
    return np.asarray(
        images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(images), -1), np.float64
    )
