"""What runs against the doubles share: the data, the client, what the double truly answers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import masa
from masa import clients
from masa.clients import Client, Context
from masa.doubles.catalogue import DOUBLES, inputs, make
from masa.doubles.made_up import can_speak
from masa.doubles.server import Double
from masa.settings import Limits

SERVICES = tuple(DOUBLES)

CALM = Limits(concurrency=1, first_wait=0.01, longest_wait=0.05)
MANY = Limits(concurrency=8, first_wait=0.01, longest_wait=0.05)


def missing(service: str) -> str:
    """Say why a service cannot be doubled on this machine, or nothing."""
    if DOUBLES[service].reads == "sound" and not can_speak():
        return "needs espeak-ng (make system)"
    return ""


@contextmanager
def environment(service: str, url: str) -> Iterator[dict[str, str]]:
    """Set the variables through which a client reaches a double."""
    given = {
        **DOUBLES[service].environment(url),
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield given
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class Case:
    """A double with labelled inputs, and what it answers in both of its versions."""

    def __init__(self, service: str, folder: Path, count: int = 300, **options: Any) -> None:
        self.service, self.folder = service, folder
        self.double = make(service, **options)
        self.made = inputs(service, count, folder)
        self.entry = DOUBLES[service]
        known = self.names()
        answers = {
            name: [known(self.truth(text, updated=updated)) for text, _ in self.made]
            for name, updated in (("old", False), ("new", True))
        }
        self.data = masa.Dataset.of(
            [label for _, label in self.made],
            inputs={"input": [text for text, _ in self.made]},
            predictions=answers,
        )

    def truth(self, text: str, *, updated: bool) -> str:
        shown: Any = text
        if self.entry.reads in ("image", "sound"):
            shown = (self.folder / text).read_bytes()
        truth: Any = self.double.truth  # type: ignore[attr-defined]
        return str(truth(shown, updated=updated))

    def names(self) -> Any:
        """Give what the data calls what the service says."""
        short = {"positive": "pos", "negative": "neg"}
        if any(label == "neu" for _, label in self.made):
            short["neutral"] = "neu"
        return lambda said: short.get(said, said)

    def client(self, **more: Any) -> Client:
        given = {**self.entry.options(self.double.url), **more}
        context = Context(
            self.data.labels,
            ("input",),
            {name: os.environ.get(name, "") for name in self.entry.secrets},
            folder=self.folder,
        )
        return clients.make(
            self.service, {key: value for key, value in given.items() if value is not None}, context
        )


@contextmanager
def case(service: str, folder: Path, count: int = 300, **options: Any) -> Iterator[Case]:
    """Start a double and set the environment for its client."""
    made = Case(service, folder, count, **options)
    try:
        with environment(service, made.double.url):
            yield made
    finally:
        made.double.close()


def same_answers(double: Double) -> int:
    """Give how many inputs were answered without a fault."""
    return sum(len(call.inputs) for call in double.calls if not call.fault)
