"""What may be spent, exact to the call and the billionth: reserved before, settled after."""

from dataclasses import dataclass


@dataclass(slots=True)
class Budget:
    """Queries and money, neither of which is ever exceeded.

    A call takes its worst price from the budget before it is sent. Afterwards the difference to its
    real price comes back, or all of it where the API refused to work. A call whose end is unknown
    stays paid for.
    """

    queries: int | None = None
    money: int | None = None
    """in billionths"""
    spent_queries: int = 0
    spent_money: int = 0
    held_queries: int = 0
    held_money: int = 0

    def reserve(self, price: int) -> "Hold | None":
        """Take one call from the budget, if it fits beside those under way."""
        if not self._fits(price, self.held_queries, self.held_money):
            return None
        self.held_queries += 1
        self.held_money += price
        return Hold(self, price)

    def hopeless(self, price: int) -> bool:
        """Say that a call would not fit even if those under way turned out to be free."""
        return not self._fits(price, 0, 0)

    def _fits(self, price: int, queries: int, money: int) -> bool:
        enough_queries = self.queries is None or self.spent_queries + queries < self.queries
        return enough_queries and (
            self.money is None or self.spent_money + money + price <= self.money
        )


@dataclass(slots=True)
class Hold:
    """What is reserved for one call."""

    budget: Budget
    price: int
    worst: int = 0
    """the client's own worst price; what is reserved may be more"""
    sent: bool = False
    """whether the call may have left"""
    open: bool = True

    def settle(self, cost: int | None) -> None:
        """Pay what the call cost, None where it was not billed, and give the rest back.

        A second time does nothing.
        """
        if not self.open:
            return
        self.open = False
        self.budget.held_queries -= 1
        self.budget.held_money -= self.price
        if cost is not None:
            self.budget.spent_queries += 1
            self.budget.spent_money += cost

    def close(self) -> None:
        """Settle a call of which nothing more is known: if it may have left, it is paid for."""
        self.settle(self.price if self.sent else None)
