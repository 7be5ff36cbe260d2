"""How right answers changed in each group, and the gap between groups."""

import json

import numpy as np
import pytest

import masa
from masa.data.dataset import Dataset
from masa.replays.replay import replay


def test_groups_allow_for_what_failed() -> None:
    label = ["ham", "spam"] * 200
    texts = [str(place) for place in range(400)]
    data = Dataset.of(
        label, predictions={"old": label}, inputs={"text": texts}, group=["g"] * 200 + ["h"] * 200
    )

    def api(text: str) -> str:
        if int(text) < 40:
            raise ValueError("not today")
        return label[int(text)]

    found = masa.assess(
        data, api, baseline="old", budget=900, store=None, limits=masa.Limits(tries=1, failures=1.0)
    )
    change = found.groups[0].change
    assert change is not None
    assert change.low == pytest.approx(-0.2)
    assert change.high == pytest.approx(0.0, abs=1e-12)
    assert found.gap is not None
    assert found.gap.change.low <= 0.0 <= found.gap.change.high + 1e-12


def grouped() -> Dataset:
    """A small group that got worse among a large one that did not."""
    rng = np.random.default_rng(0)
    items = 4000
    small = rng.random(items) < 0.1
    label = rng.integers(0, 2, items)
    old = np.where(rng.random(items) < np.where(small, 0.8, 0.9), label, 1 - label)
    new = np.where(small & (rng.random(items) < 0.25), 1 - label, old)
    return Dataset.of(
        [f"l{i}" for i in label],
        predictions={"old": [f"l{i}" for i in old], "new": [f"l{i}" for i in new]},
        group=["small" if one else "large" for one in small],
    )


def test_the_data_may_be_mixed_anew_by_groups() -> None:
    data = grouped()
    assert data.group is not None
    plain, even = (
        masa.assess(data, "replay:new", baseline="old", budget=4000, store=None, mix=mix)
        for mix in (None, {"small": 0.5, "large": 0.5})
    )
    assert plain.accuracy_change is not None
    assert even.accuracy_change is not None
    by_group = [report.change for report in even.groups]
    assert all(change is not None for change in by_group)
    assert even.accuracy_change.estimate == pytest.approx(
        np.mean([change.estimate for change in by_group if change]), abs=1e-6
    )
    assert plain.accuracy_change.estimate > even.accuracy_change.estimate
    with pytest.raises(masa.UsageError, match="no share for 'large'"):
        masa.assess(data, "replay:new", baseline="old", budget=10, store=None, mix={"small": 1.0})


def test_replays_tell_how_well_each_group_is_known() -> None:
    data = grouped()
    found = replay(data, new="new", old="old", budgets=[300, 4000], runs=40, target_error=0.02)
    assert found.groups == ("large", "small")
    (curve,) = found.curves
    assert curve.method == "predictive"
    large, small = curve.group_errors
    assert large[0] < 1e-6, "nothing changed there"
    assert small[0] < 0.06, "of random items there would be 30, which are off by 0.08"
    assert max(large[1], small[1]) < 1e-6
    assert found.to_dict()["methods"]["predictive"]["group_errors"] == {
        "large": list(large),
        "small": list(small),
    }
    with pytest.raises(masa.UsageError, match="masa does not know groups"):
        replay(data, new="new", old="old", methods=["masa"], runs=2)


def test_groups_are_known_alike_and_the_gap_between_them_is_told() -> None:
    data, items = grouped(), 4000
    assert data.group is not None
    label, old, new = (
        np.array(column.values)[column.codes]
        for column in (data.label, data.predictions["old"], data.predictions["new"])
    )
    small = data.group.codes == data.group.values.index("small")
    truth = [
        (new[part] == label[part]).mean() - (old[part] == label[part]).mean()
        for part in (small, ~small)
    ]
    inside = []
    for seed in range(14):
        found = masa.assess(data, "replay:new", baseline="old", budget=500, store=None, seed=seed)
        many, few = found.groups
        assert (few.group, many.group, few.items + many.items) == ("small", "large", items)
        assert few.answers > 120  # A tenth of the items, and far more than a tenth of the answers.
        assert few.change is not None
        assert many.change is not None
        assert found.gap is not None
        assert (found.gap.best, found.gap.worst) == ("large", "small")
        assert found.gap.change.estimate == pytest.approx(
            many.change.estimate - few.change.estimate
        )
        inside += [
            few.change.low <= truth[0] <= few.change.high,
            many.change.low <= truth[1] <= many.change.high,
        ]
        inside.append(found.gap.change.low <= truth[1] - truth[0] <= found.gap.change.high)
        assert found.gap.change.low > 0.0
    assert np.mean(inside) >= 0.92
    again = masa.Assessment.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (again.groups, again.gap) == (found.groups, found.gap)
    with pytest.raises(masa.UsageError, match="does not know groups"):
        masa.assess(data, "replay:new", baseline="old", budget=500, store=None, method="paired")
