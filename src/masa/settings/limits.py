"""How hard an API may be pressed, and how long a failing one is tolerated."""

from dataclasses import dataclass

from masa.settings.kinds import number, rate, whole
from masa.settings.setting import NO_OPTION, Section, setting

RATE = rate()
SECONDS = number("S", "give a number of seconds above 0", low=0.0, high=1e9, above=True)


@dataclass(frozen=True, eq=False, repr=False)
class Limits(Section):
    """How hard an API may be pressed, and how long a failing one is tolerated: `[limits]`."""

    concurrency: int = setting(
        64, whole("N", 1, 10_000), "Calls under way at most; below that it adapts to the API."
    )
    rate: float | None = setting(None, RATE, "Calls per second at most: 5, 500/s or 600/min.")
    tries: int = setting(
        6,
        whole("N", 1, 100),
        "Calls about one item that may fail before the item counts as failed.",
        option=NO_OPTION,
    )
    patience: float = setting(
        300.0,
        SECONDS,
        "Seconds without any answer after which a run stops.",
        option=NO_OPTION,
        default_words="300",
    )
    failures: float = setting(
        0.3,
        number("F", "give a share above 0, such as 0.3", low=0.0, high=1.0, above=True),
        "Share of the last 50 items failing for good that stops a run.",
        option=NO_OPTION,
    )
    first_wait: float = 0.5
    """seconds before the first retry; doubled for each one after it"""
    longest_wait: float = 60.0
    """seconds before a retry at most"""
    longest_call: float = 3700.0
    """seconds after which a client without a time limit of its own is given up"""
