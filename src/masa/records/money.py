"""Money in whole billionths, so that sums are exact."""

from decimal import ROUND_CEILING, Decimal, InvalidOperation
from math import ceil

from masa.errors import UsageError

BILLION = 1_000_000_000

MOST = 2**62
"""Amounts in billionths must be below this."""


def billionths(amount: "str | float | Decimal") -> int:
    """Convert an amount of money to billionths, rounded up so that it is never understated.

    >>> billionths("0.0015"), billionths(2), billionths("0.0000000001")
    (1500000, 2000000000, 1)
    """
    try:
        exact = Decimal(str(amount))
        whole = int((exact * BILLION).to_integral_value(ROUND_CEILING))
    except (InvalidOperation, OverflowError, ValueError) as exc:
        raise UsageError(
            f"{amount!r} is not an amount of money", hint="give a number such as 0.0015"
        ) from exc
    if not 0 <= whole < MOST:
        raise UsageError(
            f"{amount} is not an amount of money that can be spent",
            hint="give a number such as 0.0015",
        )
    return whole


def amount(whole: int) -> float:
    """Convert billionths to an amount of money."""
    return whole / BILLION


def money_text(whole: int) -> str:
    """Write an amount with the digits that matter, rounded up: what may be spent is at most that.

    >>> money_text(1_500_000), money_text(12_340_000_000), money_text(0), money_text(105_750)
    ('0.0015', '12.34', '0.00', '0.0001058')
    """
    value = amount(whole)
    if value >= 1 or not value:
        return f"{ceil(whole / (BILLION // 100)) / 100:.2f}"
    digits = 10 ** max(0, len(str(whole)) - 4)
    return f"{amount(-(-whole // digits) * digits):.4g}"
