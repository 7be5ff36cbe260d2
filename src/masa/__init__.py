"""Did the model behind an API change, how, and is that better or worse for me?"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from masa.assess import assess, assess_async
    from masa.baseline import baseline, baseline_async
    from masa.clients import Client
    from masa.config import Config, assess_config
    from masa.dataset import Dataset, read
    from masa.engine import Limits
    from masa.errors import (
        ApiError,
        BusyError,
        CallError,
        ConfigError,
        DataError,
        Failed,
        Fatal,
        MasaError,
        MissingPackageError,
        Refused,
        Rejected,
        StoreError,
        UsageError,
    )
    from masa.estimate import matrix, shift, true_matrix
    from masa.records import (
        ERROR,
        INVALID,
        Answer,
        Assessment,
        Baseline,
        Change,
        Column,
        Curve,
        Interval,
        Item,
        Matrix,
        Query,
        Replay,
        Reply,
        Shift,
        Tally,
    )
    from masa.replay import replay, replay_file
    from masa.sampler import METHODS, Sampler
    from masa.strata import Strata

_HOME = {
    "assess": ["assess", "assess_async"],
    "baseline": ["baseline", "baseline_async"],
    "clients": ["Client"],
    "config": ["Config", "assess_config"],
    "dataset": ["Dataset", "read"],
    "engine": ["Limits"],
    "errors": [
        "ApiError",
        "BusyError",
        "CallError",
        "ConfigError",
        "DataError",
        "Failed",
        "Fatal",
        "MasaError",
        "MissingPackageError",
        "Refused",
        "Rejected",
        "StoreError",
        "UsageError",
    ],
    "estimate": ["matrix", "shift", "true_matrix"],
    "records": [
        "ERROR",
        "INVALID",
        "Answer",
        "Assessment",
        "Baseline",
        "Change",
        "Column",
        "Curve",
        "Interval",
        "Item",
        "Matrix",
        "Query",
        "Replay",
        "Reply",
        "Shift",
        "Tally",
    ],
    "replay": ["replay", "replay_file"],
    "sampler": ["METHODS", "Sampler"],
    "strata": ["Strata"],
}

__all__ = [
    "ERROR",
    "INVALID",
    "METHODS",
    "Answer",
    "ApiError",
    "Assessment",
    "Baseline",
    "BusyError",
    "CallError",
    "Change",
    "Client",
    "Column",
    "Config",
    "ConfigError",
    "Curve",
    "DataError",
    "Dataset",
    "Failed",
    "Fatal",
    "Interval",
    "Item",
    "Limits",
    "MasaError",
    "Matrix",
    "MissingPackageError",
    "Query",
    "Refused",
    "Rejected",
    "Replay",
    "Reply",
    "Sampler",
    "Shift",
    "StoreError",
    "Strata",
    "Tally",
    "UsageError",
    "__version__",
    "assess",
    "assess_async",
    "assess_config",
    "baseline",
    "baseline_async",
    "matrix",
    "read",
    "replay",
    "replay_file",
    "shift",
    "true_matrix",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for: the compiled parts take longer to load than `masa --help` may."""
    if name == "__version__":
        from importlib.metadata import version

        return version("masa-shift")
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"masa.{module}"), name)
    raise AttributeError(f"module 'masa' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keep `masa.replay` the function after somebody imported the module of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
