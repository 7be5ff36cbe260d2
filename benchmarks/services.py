"""Named services against their doubles: the same shift, the same money, nothing lost, and costs.

    python benchmarks/services.py            # all of it, some minutes
    python benchmarks/services.py wire       # 200 queries each, beside a replay of the same answers
    python benchmarks/services.py faults     # a third of all calls fails, and masa is killed thrice
    python benchmarks/services.py costs      # what a typical assessment costs, by the table of prices

The doubles are servers on this machine that speak each service's documented format; the calls go
through the vendor's own package where masa uses it. Speech needs espeak-ng (make system).
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import masa
from doubled import QUICK, SERVICES, case, killed_midway
from masa.clients.catalogue import CATALOGUE
from masa.clients.prices import MODELS, TARIFFS, Tokens
from masa.records import BILLION

QUERIES = 200
"""The queries of an assessment whose shift is compared with that of a replay."""

BUDGETS = (150, 800)
"""Of a baseline of 240 items of which a third of all calls fails: too little, and enough."""

BASELINE, ASSESSED = 2_000, 1_000
"""The calls of a typical assessment."""

CHARACTERS, SECONDS, SENT, RECEIVED = 250, 2, 100, 5
"""A typical text, sound, and prompt and answer in tokens."""


def table(heads: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print()


def through(service: str) -> str:
    return CATALOGUE[service].package or "HTTP"


def money(billionths: int) -> str:
    return f"{billionths / BILLION:.9f}".rstrip("0").rstrip(".")


def wire() -> None:
    """Compare each service's assessment with a replay, and what is counted with what is billed."""
    heads = ("service", "through", "calls", "answers that differ", "shift as replayed")
    table((*heads, "billed by the double", "counted by masa"), map(_wired, SERVICES))


def _wired(service: str) -> Sequence[object]:
    with case(service) as found:
        found.double.updated = True
        client = found.client()
        keywords = {"baseline": "old", "budget": QUERIES, "store": None, "seed": 3}
        live = masa.assess(found.data, client, limits=QUICK, **keywords)  # type: ignore[arg-type]
        replayed = masa.assess(found.data, "replay:new", **keywords)  # type: ignore[arg-type]
        assert live.shift is not None
        assert replayed.shift is not None
        same = np.array_equal(live.shift.values, replayed.shift.values)
        billed = counted = "no price"
        if live.cost is not None:
            billed, counted = money(round(found.double.money * BILLION)), f"{live.cost:.9f}"
            counted = counted.rstrip("0").rstrip(".")
        calls = f"{live.answers} in {len(found.double.calls)}"
        differing = f"{live.differing} of {live.answers}"
        return service, through(service), calls, differing, _yes(same), billed, counted


def faults() -> None:
    """Fail a third of all calls in each service's own ways, and kill masa three times."""
    heads = ("service", "ways of failing", "budget", "the server saw", "written down")
    more = ("of these under way when killed", "counted", "answers of 240", "all right")
    table((*heads, *more), (_failed(service, budget) for service in SERVICES for budget in BUDGETS))


def _failed(service: str, budget: int) -> Sequence[object]:
    with (
        tempfile.TemporaryDirectory() as name,
        case(service, count=240, faults=0.3, seed=5) as found,
    ):
        found.double.delay = 0.02
        left = killed_midway(found, Path(name), budget=budget, after=(30, 60, 90))
        truth = Counter(found.truth(text, updated=False) for text, _ in found.made)
        items = {item for item, _ in left.answers}
        right = len(items) == len(left.answers) and left.said <= truth
        seen = (found.double.asked, len(left.rows), left.under_way)
        counted = (left.spent, len(left.answers), _yes(right and left.spent <= budget))
        return service, len(found.double.kinds), budget, *seen, *counted


def costs() -> None:
    """Say what a baseline and an assessment of the usual size cost by the table of prices."""
    heads = ("service", f"{BASELINE + ASSESSED:,} queries of", "currency", "baseline", "assessment")
    table(heads, _costs())


def _costs() -> Iterator[Sequence[object]]:
    quantities = {"sentiment": (CHARACTERS, "characters"), "spoken commands": (SECONDS, "seconds")}
    for service, tariff in TARIFFS.items():
        quantity, what = quantities.get(CATALOGUE[service].task, (1, "image"))
        if tariff.unit == "call":
            quantity, what = 1, "call"
        if tariff.price is None:
            yield service, f"{quantity} {what}", "", "no price known", ""
            continue
        one = tariff.cost(quantity)
        yield service, f"{quantity} {what}", tariff.currency, *_both(one)
    tokens = Tokens(SENT, RECEIVED)
    for model, prices in MODELS.items():
        yield model, f"{SENT} tokens, {RECEIVED} back", "USD", *_both(prices.cost(tokens))


def _both(one: int) -> tuple[str, str]:
    return _money(BASELINE * one), _money(ASSESSED * one)


def _money(billionths: int) -> str:
    """Write an amount to the hundredth, and a small one to the thousandth."""
    amount = billionths / BILLION
    return f"{amount:.2f}" if amount >= 0.1 else f"{amount:.3f}"


def _yes(true: bool) -> str:
    return "yes" if true else "NO"


PARTS: dict[str, Callable[[], None]] = {"wire": wire, "faults": faults, "costs": costs}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    for part in parser.parse_args().parts or PARTS:
        PARTS[part]()
