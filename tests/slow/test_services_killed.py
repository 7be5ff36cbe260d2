"""Each service's double failing a third of all calls, and masa killed midway: nothing is lost."""

from pathlib import Path

import pytest

from doubled import SERVICES, case, killed_midway

BUDGET = 400


@pytest.mark.parametrize("service", SERVICES)
def test_killed_midway_the_budget_is_met_to_the_call(service: str, tmp_path: Path) -> None:
    with case(service, count=240, faults=0.3, seed=5) as found:
        found.double.delay = 0.02
        left = killed_midway(found, tmp_path, budget=BUDGET, after=(40, 120, 200))
        # Written down before it was sent: what was killed in between was never seen.
        made = len(left.rows)
        assert made - left.under_way <= found.double.asked <= made
        assert left.reported["queries"] == left.spent <= BUDGET
        items = [item for item, _ in left.answers]
        assert len(items) == len(set(items)) == left.reported["answers"] == 240
        truth = sorted(found.truth(text, updated=False) for text, _ in found.made)
        assert sorted(str(said) for _, said in left.answers) == truth
