"""What runs against the doubles share: the data, the client, what the double truly answers."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import masa
from command_line import MASA
from masa import clients
from masa.cli.service_demo import configuration
from masa.clients import Client, Context
from masa.doubles.catalogue import DOUBLES, Doubled, inputs, make
from masa.doubles.made_up import can_speak
from masa.doubles.server import Double
from masa.settings import Limits
from server import database

SERVICES = tuple(DOUBLES)

QUICK = Limits(concurrency=8, first_wait=0.01, longest_wait=0.05)

NO_OTHERS = {
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
}
"""Keeps Amazon's package from the credentials of whoever runs the tests."""

SHORT = {"positive": "pos", "negative": "neg", "neutral": "neu"}


@cache
def _made(reads: str, count: int) -> tuple[Path, list[tuple[str, str]]]:
    """Make inputs once for all tests of a process: speaking takes a while."""
    folder = Path(tempfile.mkdtemp(prefix="masa-doubled-"))
    service = next(name for name, entry in DOUBLES.items() if entry.reads == reads)
    return folder, inputs(service, count, folder)


class Case:
    """A double with labelled inputs, and what it answers in both of its versions."""

    def __init__(self, service: str, double: Double, count: int = 240) -> None:
        self.service, self.double = service, double
        self.entry: Doubled = DOUBLES[service]
        if self.entry.reads == "sound" and not can_speak():
            pytest.skip("needs espeak-ng (make system)")
        self.folder, self.made = _made(self.entry.reads, count)
        answers = {
            name: [self.truth(text, updated=updated) for text, _ in self.made]
            for name, updated in (("old", False), ("new", True))
        }
        self.data = masa.Dataset.of(
            [label for _, label in self.made],
            inputs={"input": [text for text, _ in self.made]},
            predictions=answers,
        )

    def truth(self, text: str, *, updated: bool) -> str:
        """Give what the service says about an input, as the data would call it."""
        shown: Any = text
        if self.entry.reads in ("image", "sound"):
            shown = (self.folder / text).read_bytes()
        known: dict[Any, str] = _TRUTH.setdefault((type(self.double), updated), {})
        if shown not in known:
            known[shown] = self.double.truth(shown, updated=updated)  # type: ignore[attr-defined]
        said = known[shown]
        labels = {label for _, label in self.made}
        return SHORT[said] if SHORT.get(said) in labels else said

    def client(self, **more: Any) -> Client:
        """Make the client that reaches the double; None takes an option out."""
        given = {**self.entry.options(self.double.url), **more}
        context = Context(
            self.data.labels,
            ("input",),
            {name: os.environ.get(name, "") for name in self.entry.secrets},
            folder=self.folder,
        )
        options = {key: value for key, value in given.items() if value is not None}
        return clients.make(self.service, options, context)


_TRUTH: dict[tuple[type, bool], dict[Any, str]] = {}


@contextmanager
def variables(given: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment until the end of the block."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**NO_OTHERS, **given}.items():
            patch.setenv(name, value)
        yield


@contextmanager
def case(service: str, *, count: int = 240, **options: Any) -> Iterator[Case]:
    """Start a double, and set the variables through which its client reaches it."""
    if DOUBLES[service].reads == "sound" and not can_speak():
        pytest.skip("needs espeak-ng (make system)")
    with (
        make(service, **options) as double,
        variables(DOUBLES[service].environment(double.url)),
    ):
        yield Case(service, double, count)


@dataclass(frozen=True, slots=True)
class Survived:
    """What was left of a baseline that was killed again and again, and then ran to its end."""

    reported: dict[str, Any]
    """what the last command printed"""
    rows: list[tuple[int, str | None, str | None]]
    """item, outcome and prediction of each call in the store"""

    @property
    def under_way(self) -> int:
        """How many calls were written down, but perhaps not sent, when masa was killed."""
        return sum(outcome is None for _, outcome, _ in self.rows)

    @property
    def spent(self) -> int:
        """How many calls count in the budget."""
        return sum(outcome not in ("free", "unsent") for _, outcome, _ in self.rows)

    @property
    def answers(self) -> list[tuple[int, str | None]]:
        """The items that were answered, and the answers."""
        return [(item, said) for item, outcome, said in self.rows if outcome == "answer"]

    @property
    def said(self) -> Counter[str | None]:
        """How often each answer was given."""
        return Counter(said for _, said in self.answers)


def killed_midway(found: Case, folder: Path, *, budget: int, after: Sequence[int]) -> Survived:
    """Run `masa baseline` in a folder, killed with SIGKILL once the server saw so many inputs."""
    for name, _ in found.made:
        if found.entry.reads in ("image", "sound"):
            (folder / name).write_bytes((found.folder / name).read_bytes())
    lines = [
        json.dumps({"id": number, "input": text, "label": label})
        for number, (text, label) in enumerate(found.made)
    ]
    (folder / "items.jsonl").write_text("\n".join(lines))
    options = found.entry.options(found.double.url)
    text = configuration(found.service, options, found.entry.secrets)
    (folder / "masa.toml").write_text(f"{text}\n[limits]\nconcurrency = 4\ntries = 20\n")
    command = [*MASA, "baseline", "--budget", str(budget), "--quiet"]
    for stop in after:
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
        deadline = time.monotonic() + 120
        while found.double.asked < stop and running.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)
        running.wait()
    done = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, check=False, timeout=300, cwd=folder
    )
    with database(folder / ".masa" / "masa.db") as connection:
        rows = connection.execute("SELECT item, outcome, prediction FROM call").fetchall()
    return Survived(json.loads(done.stdout), rows)
