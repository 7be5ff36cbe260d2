"""Each service's double failing a third of all calls, and masa killed midway: nothing is lost."""

from collections import Counter
from pathlib import Path

import pytest

from doubled import SERVICES, case, killed_midway

ITEMS = 240


@pytest.mark.parametrize("budget", [150, 800])
@pytest.mark.parametrize("service", SERVICES)
def test_killed_midway_the_budget_is_met_to_the_call(
    service: str, budget: int, tmp_path: Path
) -> None:
    with case(service, count=ITEMS, faults=0.3, seed=5) as found:
        found.double.delay = 0.02
        left = killed_midway(found, tmp_path, budget=budget, after=(30, 60, 90))
        # Written down before it was sent: what was killed in between was never seen.
        made = len(left.rows)
        assert made - left.under_way <= found.double.asked <= made
        assert left.reported["queries"] == left.spent <= budget
        items = [item for item, _ in left.answers]
        assert len(items) == len(set(items)) == left.reported["answers"]
        assert left.said <= Counter(found.truth(text, updated=False) for text, _ in found.made)
        if budget > ITEMS:
            assert len(items) == ITEMS
        else:
            assert left.spent == budget
