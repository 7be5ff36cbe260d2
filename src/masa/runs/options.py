"""The options of a run that the library takes as keywords, besides its settings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from masa.records import Progress
from masa.settings import Limits, RunSettings, Settings
from masa.settings.setting import split


@dataclass(frozen=True, slots=True)
class RunOptions(RunSettings):
    """Where a run is kept, how it is begun, and who watches."""

    progress: Progress | None = None
    """called with what is being done and how much of it is done, from 0 to 1"""
    tell: Callable[[str], None] | None = None
    """called with what should be known before anything is paid"""
    interruptible: bool = False
    """whether Ctrl-C ends the run cleanly; for programs, not for libraries inside programs"""
    sides: tuple[str, str] = ("before", "now")
    """what is compared with what, in words"""
    batch: int = 1
    """how many items a function is given at once; with more than one it is given a list"""
    close: Callable[[], Any] | None = None
    """called once nothing more is asked of a function"""


class Options(NamedTuple):
    """Everything that can be set for a run."""

    settings: Settings
    limits: Limits
    run: RunOptions


def options(
    settings: Settings | None = None, limits: Limits | None = None, **given: Any
) -> Options:
    """Sort keywords into settings, limits and options of the run.

    They override what is given whole.

    >>> options(Settings(levels=2), tolerance=0.05, tries=3).settings.tolerance.limits
    {'accuracy': 0.05}
    """
    of_settings, of_limits, of_run = split(given, Settings, Limits, RunOptions)
    return Options(
        replace(settings or Settings(), **of_settings),
        replace(limits or Limits(), **of_limits),
        RunOptions(**of_run),
    )
