"""Measure the tables of a document again, each by the command above it, and write them.

    python benchmarks/tables.py DOCUMENT FOLDER [WORD]

DOCUMENT is docs/sure.md, say; only commands that contain the WORD are run. All of docs/sure.md
takes some hours. A table is replaced as soon as it is there.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

COMMAND = re.compile(r"`python (benchmarks/\w+\.py) FOLDER ?([^`]*)`")
TABLE = re.compile(r"^\|.*\n(?:\|.*\n)+", re.MULTILINE)


def commands(text: str) -> Iterator[tuple[str, str, re.Match[str]]]:
    """Give the scripts, their options.

    The tables below them, of those commands that have one.
    """
    found = list(COMMAND.finditer(text))
    for command, after in zip_longest(found, found[1:]):
        end = after.start() if after else len(text)
        if table := TABLE.search(text, command.end(), end):
            yield command[1], command[2], table


def replaced(text: str, script: str, options: str, printed: str) -> str:
    """Put what a command has printed in the place of its table."""
    table = next(table for *command, table in commands(text) if command == [script, options])
    new = TABLE.search(printed)
    if new is None:
        raise SystemExit(f"{script} {options} printed no table:\n{printed}")
    return text[: table.start()] + new[0] + text[table.end() :]


def main() -> None:
    document, folder, word = (
        Path(sys.argv[1]),
        sys.argv[2],
        sys.argv[3] if len(sys.argv) > 3 else "",
    )
    for script, options, _ in list(commands(document.read_text(encoding="utf-8"))):
        if word in f"{script} {options}":
            print(f"{script} {folder} {options}", file=sys.stderr, flush=True)
            run = subprocess.run(
                [sys.executable, script, folder, *options.split()],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            document.write_text(
                replaced(document.read_text(encoding="utf-8"), script, options, run.stdout),
                encoding="utf-8",
            )


if __name__ == "__main__":
    main()
