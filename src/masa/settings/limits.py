"""How hard an API may be pressed, and how long a failing one is tolerated."""

from dataclasses import dataclass

from masa.errors import UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard an API may be pressed, and for how long a failing one is borne with."""

    concurrency: int = 64
    """calls under way at the most"""
    rate: float | None = None
    """calls a second at the most"""
    tries: int = 6
    """calls about one item that may fail before it counts as failed for good"""
    patience: float = 300.0
    """seconds without any answer after which a run stops"""
    failures: float = 0.3
    """the share of items failing for good that stops a run"""
    first_wait: float = 0.5
    """seconds before the first retry; doubled for each one after it"""
    longest_wait: float = 60.0
    longest_call: float = 3700.0
    """seconds after which a client that has no time limit of its own is not waited for any longer"""

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.tries < 1 or (self.rate is not None and not self.rate > 0):
            raise UsageError(
                "limits that cannot be kept",
                hint="concurrency and tries are 1 or more, a rate is above 0",
            )
