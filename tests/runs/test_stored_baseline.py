"""Baselines of which not every item's answer is known."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

import masa
from live_runs import QUICK, client, data
from masa.cli.main import main
from masa.clients.replay import ReplayClient
from masa.data.baseline_answers import BaselineAnswers, evenly_weighted, narrowed
from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.inference.counts import true_matrix
from masa.inference.method import Method
from masa.inference.readings import Reader
from masa.records import Answer, Assessment, Column, Query
from masa.runs.baseline import baseline
from masa.runs.plan import plan
from masa.sampling.draws import Draws
from masa.settings import Settings
from masa.storage import history
from masa.storage.store import opened
from server import Server, strange

ITEMS = 3000


def updates() -> Dataset:
    """An API that changed twice.

    First many doubtful answers, then some of each label, or most that were wrong.
    """
    rng = np.random.default_rng(5)
    names = np.array(["cat", "dog", "fox"])
    label = rng.choice(3, ITEMS, p=[0.6, 0.3, 0.1])
    doubt = rng.random(ITEMS)
    first = np.where(rng.random(ITEMS) < 0.3 * doubt, (label + 1) % 3, label)
    second = np.where(rng.random(ITEMS) < 0.2 * doubt, (first + 1) % 3, first)
    third = np.where(
        rng.random(ITEMS) < np.array([0.02, 0.08, 0.1])[label], (second + 2) % 3, second
    )
    mended = np.where((second != label) & (rng.random(ITEMS) < 0.9), label, second)
    answers = {"first": first, "second": second, "third": third, "mended": mended}
    columns = {name: names[codes].tolist() for name, codes in answers.items()}
    group = np.where(rng.random(ITEMS) < np.array([0.1, 0.6, 0.9])[label], "old", "young")
    return Dataset.of(
        names[label].tolist(),
        predictions=columns,
        numbers={"sure": (1.0 - doubt).tolist()},
        group=group.tolist(),
    )


def change(data: Dataset, old: str, new: str) -> float:
    strata = Strata.build(data.label)
    before, after = (true_matrix(strata, data.predictions[name]) for name in (old, new))
    return masa.Shift(before, after).accuracy.change


def accepted(data: Dataset, new: str, store: Path, seed: int) -> Assessment:
    """Assess what changed since an accepted run of chosen items, weighed by groups."""
    name = f"accepted {seed}"
    run = masa.assess(
        data,
        "replay:second",
        baseline="first",
        old_confidence="sure",
        mix={"old": 0.8, "young": 0.2},
        budget=400,
        seed=seed,
        name=name,
        store=store,
    )
    with opened(store) as kept:
        history.accept(kept, run.run)
    return masa.assess(
        data, f"replay:{new}", budget=300, seed=seed, name=name, store=store, force=True
    )


def budgeted(data: Dataset, new: str, store: Path, seed: int) -> Assessment:
    """Assess what changed since a baseline within a budget."""
    name = f"budgeted {seed}"
    masa.baseline(data, "replay:second", budget=400, seed=seed, name=name, store=store)
    return masa.assess(
        data, f"replay:{new}", budget=300, seed=seed, name=name, store=store, force=True
    )


@pytest.mark.parametrize(
    ("assessed", "new"),
    [
        (accepted, "third"),
        (budgeted, "mended"),
        pytest.param(accepted, "mended", marks=pytest.mark.slow),
        pytest.param(budgeted, "third", marks=pytest.mark.slow),
    ],
)
def test_items_that_stand_for_others_are_right_on_average_and_as_sure_as_they_say(
    assessed: Callable[[Dataset, str, Path, int], Assessment], new: str, tmp_path: Path
) -> None:
    data, seeds = updates(), range(12, 40)
    truth = change(data, "second", new)
    found = [assessed(data, new, tmp_path / "masa.db", seed) for seed in seeds]
    assert {(one.items, one.answers) for one in found} == {(400, 300)}
    intervals = [one.accuracy_change for one in found if one.accuracy_change is not None]
    errors = np.array([one.estimate - truth for one in intervals])
    halves = np.array([(one.high - one.low) / 2 for one in intervals])
    assert abs(errors.mean()) < 3 * errors.std() / len(seeds) ** 0.5
    assert 0.7 < errors.std() / (halves.mean() / 1.96) < 1.25
    assert np.mean([one.low <= truth <= one.high for one in intervals]) >= 0.9


@pytest.mark.parametrize("now", ["third", "mended"])
def test_all_known_items_leave_the_doubt_of_a_sample(now: str) -> None:
    """A census of a random sample.

    The variance is that of the sample, of whose labels alone it is known how many there are.
    """
    data = updates()
    new, old = (data.predictions[name] for name in (now, "second"))
    truth, errors, variances = change(data, "second", now), [], []
    for seed in range(150):
        places = np.sort(np.random.default_rng(seed).choice(ITEMS, 500, replace=False))
        weight, extra_variance = evenly_weighted(data, places, 3)
        assert weight.sum() == pytest.approx(1.0)
        then = Column(old.name, old.values, old.codes[places])
        kept, known = narrowed(
            data, BaselineAnswers(places, then, weight=weight, extra_variance=extra_variance)
        )
        method = Method.of(kept, known, Settings())
        source, queries = method.source(seed=seed), list[Query]()
        while some := source.ask(100):
            for query in some:
                source.tell(Answer(query.item, new.values[new.codes[places[query.item]]]))
            queries += some
        at = np.array([query.item for query in queries], np.int64)
        assert len(at) == 500
        draws = Draws.of([query.draw for query in queries if query.draw is not None])
        answers = Column(new.name, new.values, new.codes[places[at]])
        found = method.estimate(at, answers, draws, finite=True)
        errors.append(found.shift.accuracy.change - truth)
        interval = Reader(found, 0.95).accuracy()
        variances.append(((interval.high - interval.low) / 3.92) ** 2)
    assert np.std(errors) ** 2 == pytest.approx(np.mean(variances), rel=0.25)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / 150**0.5


def test_what_the_baseline_has_nothing_of_is_said(tmp_path: Path) -> None:
    label = ["rare"] * 5 + ["ham", "spam"] * 500
    group = ["few"] * 5 + ["many"] * 1000
    data = Dataset.of(
        label, predictions={"old": label}, group=group, difficulty=[0.1] * 5 + [0.5] * 1000
    )
    store = tmp_path / "masa.db"
    masa.baseline(data, "replay:old", budget=1, store=store)
    with pytest.raises(
        masa.UsageError, match="'rare', 'spam', about which the baseline has no answers"
    ):
        masa.assess(
            data, "replay:old", budget=9, store=store, mix={"rare": 0.1, "ham": 0.4, "spam": 0.5}
        )
    with pytest.raises(masa.UsageError, match="'rare', about which the baseline has no answers"):
        masa.assess(
            data, "replay:old", budget=9, store=store, weights={"cost": {"rare": {"ham": 5}}}
        )
    found = masa.assess(data, "replay:old", budget=9, store=store)
    assert (found.answers, found.verdict) == (1, "undecided")
    assert found.accuracy_change is not None
    assert found.accuracy_change.high - found.accuracy_change.low > 1.0
    assert any("no answers about 1 of the groups ('few')" in note for note in found.notes)


def test_a_baseline_of_unlabelled_items_alone_is_kept_and_cannot_be_compared_with(
    tmp_path: Path,
) -> None:
    file = tmp_path / "texts.csv"
    file.write_text(
        "id,label,old\n" + "".join(f"{i},{'cat' if i == 7 else ''},cat\n" for i in range(300))
    )
    data = masa.read(file, label="label", id="id", predictions=["old"], unlabelled=True)
    made = masa.baseline(data, "replay:old", budget=1, store=tmp_path / "masa.db")
    assert (made.answers, made.matrix) == (1, None)
    with pytest.raises(masa.MasaError, match="without a label"):
        masa.assess(data, "replay:old", budget=9, store=tmp_path / "masa.db")


def test_a_baseline_that_grew_makes_another_run(tmp_path: Path) -> None:
    data, store = updates(), tmp_path / "masa.db"
    made = masa.baseline(data, "replay:second", budget=200, store=store)
    first = masa.assess(data, "replay:second", budget=100, store=store)
    with opened(store) as kept:
        history.pause(kept, first.run, "interrupted")
        history.pause(kept, made.run, "interrupted")
    masa.baseline(data, "replay:second", budget=300, store=store)
    again = masa.assess(data, "replay:second", budget=100, store=store)
    assert (again.items, again.run > first.run) == (300, True)


def test_runs_are_accepted_again_and_again(tmp_path: Path) -> None:
    data, store, widths = updates(), tmp_path / "masa.db", []
    masa.baseline(data, "replay:second", budget=1500, store=store)
    for budget in (1000, 600, 300):
        run = masa.assess(data, "replay:third", budget=budget, store=store, force=True)
        with opened(store) as kept:
            history.accept(kept, run.run)
        assert (run.answers, run.accuracy_change is not None) == (budget, True)
        if run.accuracy_change is not None:
            widths.append(run.accuracy_change.high - run.accuracy_change.low)
    last = masa.assess(data, "replay:mended", budget=300, store=store, force=True)
    assert (last.items, last.stopped) == (300, "exhausted")
    assert last.accuracy_change is not None
    assert last.accuracy_change.low <= change(data, "third", "mended") <= last.accuracy_change.high
    assert widths[1] > 0.0


def test_precision_allows_for_labels_of_which_nothing_is_known(tmp_path: Path) -> None:
    """Items of a label that the baseline lacks were taken for another one, and now are not."""
    label = ["cat"] * 400 + ["dog"] * 400 + ["fox"] * 200
    old = ["cat"] * 400 + ["dog"] * 400 + ["cat"] * 200
    new = ["cat"] * 350 + ["dog"] * 450 + ["fox"] * 200
    data, store = Dataset.of(label, predictions={"old": old, "new": new}), tmp_path / "masa.db"
    first = masa.assess(
        data,
        "replay:old",
        baseline="old",
        budget=700,
        mix={"cat": 0.5, "dog": 0.5, "fox": 0.0},
        store=store,
    )
    with opened(store) as kept:
        history.accept(kept, first.run)
    for tolerance in ("precision=2%", "entry=10%"):
        found = masa.assess(
            data, "replay:new", budget=700, tolerance=tolerance, store=store, force=True, fresh=True
        )
        assert found.verdict == "undecided"
        assert found.readings is not None
        assert found.readings.precision["cat"].high >= 1.0 - 2 / 3
        assert found.accuracy_change is not None
        assert found.accuracy_change.high >= change(data, "old", "new")


def test_what_is_known_of_noise_outlives_an_accepted_run(tmp_path: Path) -> None:
    label, store = ["ham", "spam"] * 400, tmp_path / "masa.db"
    data = Dataset.of(label, inputs={"text": [str(place) for place in range(800)]})
    times: Counter[str] = Counter()

    def api(text: str) -> str:
        times[text] += 1
        contradicts = crc32(f"{text}, asked {times[text]} times".encode()) % 10 == 0
        return label[int(text) ^ contradicts]

    masa.baseline(data, api, budget=1000, repeat=200, store=store)
    for _ in range(2):
        found = masa.assess(data, api, budget=400, store=store)
        assert (found.moved, "asked twice" in found.proof) == ("noise", True)
        assert main(["accept", str(found.run), "--store", str(store)]) == 0


def test_accepting_a_run_says_how_many_items_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, store = updates(), str(tmp_path / "masa.db")
    run = masa.assess(data, "replay:third", baseline="second", budget=200, store=store)
    assert main(["accept", str(run.run), "--store", store]) == 0
    assert "200 of 3,000 items" in capsys.readouterr().err
    assert main(["history", "--store", store]) == 0
    assert f"{run.verdict}, baseline now" in capsys.readouterr().out


def test_a_plan_knows_that_items_which_stand_for_others_may_not_have_changed(
    tmp_path: Path,
) -> None:
    data, store = updates(), tmp_path / "masa.db"
    masa.baseline(data, "replay:second", budget=150, store=store)
    client = ReplayClient(data.predictions["second"])
    found = plan(data, client, errors=(0.05,), budgets=(150,), runs=10, store=store)
    noticed = dict(zip(found.sizes, found.buys[0].noticed, strict=True))
    assert noticed[0.001] == pytest.approx(1.0 - 0.999**150, abs=0.01)
    masa.baseline(data, "replay:second", budget=20, store=store, name="tiny")
    with pytest.raises(masa.UsageError, match="no more than 20 items"):
        plan(data, client, runs=10, store=store, name="tiny")


def test_items_without_a_label_do_not_unsettle_those_that_stand_for_others(tmp_path: Path) -> None:
    rng, file, store = np.random.default_rng(0), tmp_path / "texts.csv", tmp_path / "masa.db"
    label = np.where(rng.random(1200) < 0.3, "", np.where(rng.random(1200) < 0.5, "cat", "dog"))
    old = np.where(label == "", "cat", label)
    new = np.where(rng.random(1200) < 0.05, "dog", old)
    rows = [f"{i},{a},{b},{c}" for i, (a, b, c) in enumerate(zip(label, old, new, strict=True))]
    file.write_text("id,label,old,new\n" + "\n".join(rows) + "\n")
    data = masa.read(file, label="label", id="id", predictions=["old", "new"], unlabelled=True)
    masa.baseline(data, "replay:old", budget=500, store=store)
    found = masa.assess(data, "replay:new", budget=400, store=store, force=True)
    assert found.error_bound is not None
    assert found.error_bound < 0.1
    assert found.accuracy_change is not None
    assert found.accuracy_change.high - found.accuracy_change.low < 0.06


def test_data_that_grew_is_compared_on_the_items_both_have(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(200), client(server), budget=200, store=store, limits=QUICK)
    found = masa.assess(data(300), client(server), budget=300, store=store, limits=QUICK)
    assert (found.items, found.answers, found.stopped) == (200, 200, "exhausted")
    assert "200 items that both have (100 are new, 0 are gone)" in " ".join(found.notes)


def test_another_api_or_prompt_is_refused_with_the_reason(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    other = client(server, body={"text": "Please: {text}"})
    with pytest.raises(masa.UsageError, match="the prompt or body"):
        masa.assess(data(), other, budget=10, store=store)
    forced = masa.assess(data(), other, budget=10, store=store, force=True, limits=QUICK)
    assert "compared all the same" in " ".join(forced.notes)


def test_accepting_a_run_makes_its_answers_the_baseline_for_nothing(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    server.change = strange
    changed = masa.assess(data(), client(server), budget=300, store=store, limits=QUICK)
    assert changed.moved == "yes"
    asked = len(server.requests)
    with opened(store) as kept:
        history.accept(kept, changed.run)
    assert len(server.requests) == asked
    assert (
        masa.assess(data(), client(server), budget=300, store=store, limits=QUICK).moved
        == "no sign"
    )


def test_an_accepted_run_of_chosen_items_stands_for_all(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    server.change = lambda text, label: "neg" if "lovely" in text else label
    first = masa.assess(data(), client(server), budget=200, store=store, limits=QUICK)
    assert first.method == "predictive"
    with opened(store) as kept:
        history.accept(kept, first.run)
    same = masa.assess(data(), client(server), budget=250, store=store, limits=QUICK)
    assert (same.method, same.moved, same.items, same.answers, same.verdict) == (
        "predictive",
        "no sign",
        200,
        200,
        "undecided",
    )
    assert same.shift is not None
    assert first.shift is not None
    assert same.shift.accuracy.old == pytest.approx(first.shift.accuracy.new, abs=0.006)
    server.change = lambda _text, _label: "neu"
    other = masa.assess(data(), client(server), budget=250, store=store, limits=QUICK, seed=1)
    assert (other.moved, other.verdict) == ("yes", "changed")
    with pytest.raises(masa.UsageError, match="chose its items by their answers") as told:
        masa.assess(data(), client(server), budget=250, store=store, limits=QUICK, method="masa")
    assert told.value.exit_code == 2


def test_an_accepted_run_for_another_mix_is_weighed_anew(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    mix = {"neg": 0.9, "neu": 0.05, "pos": 0.05}
    first = masa.assess(data(), client(server), budget=150, store=store, limits=QUICK, mix=mix)
    with opened(store) as kept:
        history.accept(kept, first.run)
    for wanted in (None, mix, {"neg": 0.05, "neu": 0.05, "pos": 0.9}):
        found = masa.assess(
            data(), client(server), budget=250, store=store, limits=QUICK, mix=wanted
        )
        assert (found.moved, found.answers) == ("no sign", 150)
        assert found.shift is not None
        weight = found.shift.old.values.sum(axis=1)
        shares = np.bincount(data().label.codes) / 300 if wanted is None else list(wanted.values())
        assert weight == pytest.approx(shares)
