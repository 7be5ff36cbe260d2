"""Run masa as a module: python -m masa."""

import sys

from masa.cli import main

if __name__ == "__main__":
    sys.exit(main())
