"""Let Python look for unreachable objects seldom while many calls are under way.

What lives is looked at again and again, and hardly any of it is ever unreachable: with 256 calls
at once that is half the work.
"""

import gc
from dataclasses import dataclass

COLLECT_EVERY = 50_000
"""New objects after which Python looks for unreachable ones during a run; usually 700 to 2,000."""


@dataclass(slots=True)
class SeldomCollected:
    """Holds while at least one run is under way in this process; then all is as it was."""

    runs: int = 0
    before: tuple[int, int, int] = (0, 0, 0)

    def __enter__(self) -> None:
        """Begin a run."""
        self.runs += 1
        if self.runs == 1:
            self.before = gc.get_threshold()
            # 0 means never: who wants that knows why.
            if self.before[0]:
                gc.set_threshold(max(self.before[0], COLLECT_EVERY), *self.before[1:])

    def __exit__(self, *_: object) -> None:
        """End a run."""
        self.runs -= 1
        if not self.runs:
            gc.set_threshold(*self.before)


SELDOM_COLLECTED = SeldomCollected()
