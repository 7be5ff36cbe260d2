"""Run masa as a program: masa, or python -m masa."""

import os
import sys

if __name__ == "__main__" and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
    # python -m puts the current folder first: a file there would be run in place of any package
    # of the same name.
    del sys.path[0]

from contextlib import suppress

from masa.cli.main import main


def run() -> None:
    """Run a command and end with its exit code."""
    code = main()
    if code == 130:
        # An interrupt inside an extension module would otherwise end the program by the signal,
        # after everything was said and done.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
