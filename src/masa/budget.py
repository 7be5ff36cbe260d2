"""What may be spent, held to the call and the billionth: reserved before a call, settled after it."""

import asyncio
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal, InvalidOperation

from masa.errors import UsageError

BILLION = 1_000_000_000


def billionths(amount: "str | float | Decimal") -> int:
    """Turn an amount of money into whole billionths, rounded up so that nothing is understated.

    >>> billionths("0.0015"), billionths(2), billionths("0.0000000001")
    (1500000, 2000000000, 1)
    """
    try:
        exact = Decimal(str(amount))
        whole = int((exact * BILLION).to_integral_value(ROUND_CEILING))
    except (InvalidOperation, OverflowError, ValueError) as exc:
        raise UsageError(f"{amount!r} is not an amount of money", hint="give a number such as 0.0015") from exc
    if not 0 <= whole < 2**62:
        raise UsageError(f"{amount} is not an amount that can be spent", hint="give a number such as 0.0015")
    return whole


def amount(whole: int) -> float:
    """Give the amount that so many billionths are."""
    return whole / BILLION


@dataclass(slots=True)
class Budget:
    """Queries and money, neither of which is ever exceeded.

    A call takes its worst price from the budget before it is sent. Afterwards the difference to its real price comes back,
    or all of it where the API refused to work. A call whose end is unknown stays paid for.
    """

    queries: int | None = None
    money: int | None = None
    """in billionths"""
    spent_queries: int = 0
    spent_money: int = 0
    _held_queries: int = 0
    _held_money: int = 0
    _settled: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def reserve(self, price: int) -> bool:
        """Take one call from the budget, waiting for calls under way to settle where that may make room; say whether it fits."""
        async with self._settled:
            while not self._fits(price, self._held_queries, self._held_money):
                if not self._held_queries or not self._fits(price, 0, 0):
                    return False
                await self._settled.wait()
            self._held_queries += 1
            self._held_money += price
            return True

    async def settle(self, price: int, *, cost: int | None) -> None:
        """Close a call that was reserved at this price: what it cost, or None where it was not billed."""
        async with self._settled:
            self._held_queries -= 1
            self._held_money -= price
            if cost is not None:
                self.spent_queries += 1
                self.spent_money += cost
            self._settled.notify_all()

    @property
    def used_up(self) -> bool:
        """Whether not even a call for nothing fits any more."""
        return not self._fits(0, 0, 0)

    def _fits(self, price: int, queries: int, money: int) -> bool:
        enough_queries = self.queries is None or self.spent_queries + queries < self.queries
        return enough_queries and (self.money is None or self.spent_money + money + price <= self.money)
