"""Did the model behind an API change, how, and is that better or worse for me?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from masa.clients import Client
    from masa.data.dataset import Dataset, read
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
    from masa.records import (
        ERROR,
        INVALID,
        Assessment,
        Baseline,
        Forecast,
        Interval,
        Item,
        Matrix,
        Replay,
        Reply,
        Shift,
    )
    from masa.replays.replay import replay
    from masa.runs.assess import assess, assess_async
    from masa.runs.baseline import baseline, baseline_async
    from masa.runs.compare import compare, compare_async
    from masa.runs.config import Config
    from masa.runs.past_runs import accept, history
    from masa.runs.plan import plan
    from masa.runs.task import assess_config
    from masa.settings import Limits, Settings

_HOME = {
    "clients": "Client",
    "data.dataset": "Dataset read",
    "errors": "ApiError BusyError CallError ConfigError DataError Failed Fatal MasaError "
    "MissingPackageError Refused Rejected StoreError UsageError",
    "records": "ERROR INVALID Assessment Baseline Forecast Interval Item Matrix Replay Reply Shift",
    "replays.replay": "replay",
    "runs.assess": "assess assess_async",
    "runs.baseline": "baseline baseline_async",
    "runs.compare": "compare compare_async",
    "runs.config": "Config",
    "runs.past_runs": "accept history",
    "runs.plan": "plan",
    "runs.task": "assess_config",
    "settings": "Limits Settings",
}

__all__ = [
    "ERROR",
    "INVALID",
    "ApiError",
    "Assessment",
    "Baseline",
    "BusyError",
    "CallError",
    "Client",
    "Config",
    "ConfigError",
    "DataError",
    "Dataset",
    "Failed",
    "Fatal",
    "Forecast",
    "Interval",
    "Item",
    "Limits",
    "MasaError",
    "Matrix",
    "MissingPackageError",
    "Refused",
    "Rejected",
    "Replay",
    "Reply",
    "Settings",
    "Shift",
    "StoreError",
    "UsageError",
    "__version__",
    "accept",
    "assess",
    "assess_async",
    "assess_config",
    "baseline",
    "baseline_async",
    "compare",
    "compare_async",
    "history",
    "plan",
    "read",
    "replay",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for: the compiled parts take longer to load than `masa --help` may."""
    if name == "__version__":
        from importlib.metadata import version

        return version("masa-shift")
    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"masa.{module}"), name)
    raise AttributeError(f"module 'masa' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
