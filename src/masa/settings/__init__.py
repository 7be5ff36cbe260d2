"""Every setting a user can make, each defined once.

A setting is a field of a dataclass: its name, type, range, default, help text and key in masa.toml
stand there and nowhere else. The options of every command, the keys of masa.toml, the keywords of
the library and the tables in the docs are derived from these fields. Nothing here computes, and
nothing here is slow to import.
"""

from masa.settings.assess import Settings
from masa.settings.baseline import BaselineSettings
from masa.settings.budget import BudgetSettings
from masa.settings.columns import Columns, RecordedColumns
from masa.settings.limits import Limits
from masa.settings.objective import Objective
from masa.settings.replay import PlanSettings, ReplaySettings
from masa.settings.run import RunSettings
from masa.settings.tolerance import Tolerance

__all__ = [
    "BaselineSettings",
    "BudgetSettings",
    "Columns",
    "Limits",
    "Objective",
    "PlanSettings",
    "RecordedColumns",
    "ReplaySettings",
    "RunSettings",
    "Settings",
    "Tolerance",
]
