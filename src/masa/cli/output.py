"""What commands print: results on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from masa.cli.options import Given
    from masa.records import Progress


def say(given: "Given", notes: Iterable[str]) -> None:
    """Print notes where they do not mix with results, after what was printed before."""
    sys.stdout.flush()
    if given.quiet:
        return
    from masa.report.words import plain

    for note in notes:
        lines = [plain(line) for line in note.split("\n")]
        print("note: " + "\n".join(lines), file=sys.stderr)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object."""
    print(json.dumps(content, indent=2, allow_nan=False))


def show(given: "Given", content: dict[str, Any], picture: "RenderableType") -> None:
    """Print a result, as JSON where that was asked for."""
    from masa.report import terminal

    if given.as_json:
        print_json(content)
    else:
        terminal.show(picture)


@contextmanager
def running(given: "Given", *, calculates: bool = False) -> "Iterator[Progress | None]":
    """Show progress while something long runs, and log as much as was asked for.

    What calculates is compiled by its first run.
    """
    import logging

    if calculates and not given.quiet:
        from masa.sampling.kernels import compiled_before

        if not compiled_before():
            say(given, ["the calculations are compiled, once on this machine: about 10 s"])
    if given.verbose:
        logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
        level = logging.INFO if given.verbose == 1 else logging.DEBUG
        logging.getLogger("masa").setLevel(level)
    if given.quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    from masa.report.progress import bar

    with bar(Console(stderr=True)) as progress:
        yield progress
