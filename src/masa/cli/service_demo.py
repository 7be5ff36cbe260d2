"""A case for a named service: its double is changed silently, and masa finds out."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masa.cli.api_drafts import quoted
from masa.cli.demo import run_masa
from masa.records import Assessment

ITEMS = 300
BUDGET = 150


@dataclass(frozen=True, slots=True, eq=False)
class ServiceDemo:
    """What masa found, and what the double counted."""

    found: Assessment
    calls: int
    """calls that the double saw in both runs"""
    money: float
    """what the double would have billed for both runs"""

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa demo --service NAME --json` prints."""
        return {**self.found.to_dict(), "double": {"calls": self.calls, "money": self.money}}


def run(
    service: str, *, seed: int = 0, say: Callable[[str], None] = lambda _: None, quiet: bool = False
) -> ServiceDemo:
    """Serve a double, record a baseline, change it, assess, by what a user would type."""
    from masa.doubles.catalogue import DOUBLES, inputs, make

    with tempfile.TemporaryDirectory(prefix="masa-demo-") as name, make(service) as double:
        folder, entry = Path(name), DOUBLES.get(service)
        assert entry is not None  # noqa: S101 - it was made
        say(f"started the double of {service}: a server on this machine that speaks like it")
        rows = inputs(service, ITEMS, folder)
        written = "".join(
            json.dumps({"id": number, "input": text, "label": label}, ensure_ascii=False) + "\n"
            for number, (text, label) in enumerate(rows)
        )
        (folder / "items.jsonl").write_text(written, encoding="utf-8")
        config = configuration(service, entry.options(double.url), entry.secrets)
        (folder / "masa.toml").write_text(config, encoding="utf-8")
        say(f"$ cat masa.toml\n{config}")
        with environment(entry.environment(double.url)):
            run_masa(folder, "baseline", "--budget", str(2 * ITEMS), say=say, quiet=quiet)
            double.updated = True
            words = ["--budget", str(BUDGET), "--seed", str(seed)]
            done = run_masa(folder, "assess", *words, say=say, quiet=quiet, as_json=True)
        found = Assessment.from_dict(json.loads(done.stdout))
        return ServiceDemo(found, len(double.calls), float(double.money))


def configuration(service: str, options: Mapping[str, Any], secrets: tuple[str, ...]) -> str:
    """Write a masa.toml that reaches a double."""
    lines = []
    if secrets:
        lines += [f"secrets = [{', '.join(map(quoted, secrets))}]", ""]
    lines += ["[data]", 'path = "items.jsonl"', 'label = "label"', 'id = "id"', 'input = "input"']
    lines += ["", "[api]", f"client = {quoted(service)}"]
    for name, value in options.items():
        lines.append(f"{name} = {quoted(value) if isinstance(value, str) else value}")
    return "\n".join(lines) + "\n"


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment until the end of the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
