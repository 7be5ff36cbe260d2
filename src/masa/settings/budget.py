"""What one run may spend."""

from dataclasses import dataclass
from typing import Any

from masa.settings.kinds import Kind, whole
from masa.settings.setting import Section, setting


def _money(given: Any) -> "float | str":
    """Check an amount; it stays as it was given, because money is counted exactly."""
    from decimal import Decimal

    try:
        amount = Decimal(str(given))
    except ArithmeticError:
        amount = Decimal(0)
    if isinstance(given, bool) or not amount.is_finite() or amount <= 0:
        raise ValueError("give an amount above 0, such as 5.00")
    return given  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False, repr=False)
class BudgetSettings(Section):
    """What one run may spend, in calls and in money: `[budget]`."""

    queries: int | None = setting(
        None, whole("N", 1), "Calls that may be sent at most.", option="--budget"
    )
    money: "float | str | None" = setting(
        None, Kind("M", _money), "Money that may be spent at most, in the unit of the prices."
    )
