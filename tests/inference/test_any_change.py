"""Did anything change at all.

Proof for an API that repeats itself, a test for one that contradicts itself.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import masa
from masa.cli.main import main
from masa.data.baseline_answers import ENOUGH_REPEATS, BaselineAnswers, from_column
from masa.data.dataset import Dataset
from masa.inference.moved_confidence import moved_confidence
from masa.inference.sample import Sample
from masa.records import Column, Ints, Reply
from masa.replays.whole_runs import Noise, WholeRuns
from masa.settings import Settings

NAMES = np.array(["bad", "fine", "good"])


def reviews(
    items: int = 4000, *, changed: float = 0.0, seed: int = 0
) -> tuple[Dataset, BaselineAnswers]:
    """Three labels, 75% right; some answers became better ones, rather where the API was unsure."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, items)
    sure = rng.random(items)
    old = np.where(rng.random(items) < 0.5 + 0.5 * sure, label, rng.integers(0, 3, items))
    new = np.where(rng.random(items) < 2.0 * changed * (1.0 - sure), np.minimum(old + 1, 2), old)
    data = Dataset.of(
        NAMES[label].tolist(),
        predictions={"old": NAMES[old].tolist(), "new": NAMES[new].tolist()},
        numbers={"sure": sure.tolist()},
    )
    return data, from_column(data, data.predictions["old"], "sure")


@pytest.mark.parametrize("noise", [Noise(0.01), Noise(0.05), Noise(0.02, "unsure")])
def test_an_api_that_only_contradicts_itself_has_not_moved(noise: Noise) -> None:
    """Items are asked where answers are doubtful, and there it contradicts itself.

    That alone is no sign of change.
    """
    data, old = reviews()
    same = data.predictions["old"]
    runs = WholeRuns(data, old, same, Settings(), budget=600, noise=noise).play(40)
    assert runs.noticed <= 0.15  # 3.5% are allowed.
    assert runs.false_alarms == 0.0
    assert runs.coverage >= 0.9


def test_a_change_is_noticed_through_the_noise() -> None:
    data, old = reviews(changed=0.06)
    new = data.predictions["new"]
    runs = WholeRuns(data, old, new, Settings(), budget=800, noise=Noise(0.01)).play(20)
    assert runs.noticed >= 0.8
    quiet = WholeRuns(data, old, new, Settings(), budget=200).play(10)
    assert quiet.noticed == 1.0


def test_few_items_asked_twice_are_not_taken_for_steadiness() -> None:
    _, old = reviews(200)
    assert old.repeats_itself
    assert not replace(
        old, asked_twice=dict.fromkeys(range(ENOUGH_REPEATS - 1), False)
    ).repeats_itself
    assert replace(old, asked_twice=dict.fromkeys(range(ENOUGH_REPEATS), False)).repeats_itself
    assert not replace(
        old, asked_twice={**dict.fromkeys(range(ENOUGH_REPEATS), False), 0: True}
    ).repeats_itself


class Confident:
    """Answers with a label and how sure it is; later it is a little less sure."""

    columns: tuple[str, ...] = ()
    priced = False

    def __init__(self, data: Dataset, surer: float = 0.0, noise: float = 0.0) -> None:
        self.column, self.sure = data.predictions["old"], data.numbers["sure"]
        self.surer, self.noise = surer, np.random.default_rng(0).random if noise else None

    async def ask(self, item: masa.Item) -> Reply:
        shaken = 0.0 if self.noise is None else 1e-4 * self.noise()
        place = item.place
        return Reply(
            self.column.values[self.column.codes[place]],
            float(self.sure[place]) * (1 - self.surer) + shaken,
        )

    def price(self, _: masa.Item) -> int:
        return 0

    def describe(self) -> dict[str, object]:
        return {"client": "confident"}

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("repeat", "shaken", "moved"),
    [(ENOUGH_REPEATS, 0.0, "yes"), (ENOUGH_REPEATS, 1.0, "yes"), (20, 0.0, "no sign")],
)
def test_a_moved_confidence_is_proof_where_it_is_known_how_confidences_repeat(
    tmp_path: Path, repeat: int, shaken: float, moved: str
) -> None:
    data, _ = reviews(400)
    store = tmp_path / "masa.db"
    masa.baseline(
        data, Confident(data, noise=shaken), budget=400 + repeat, repeat=repeat, store=store
    )
    same = masa.assess(data, Confident(data, noise=shaken), budget=50, store=store)
    assert same.moved == ("no sign")
    found = masa.assess(
        data, Confident(data, surer=0.01, noise=shaken), budget=50, store=store, seed=1
    )
    assert found.moved == moved
    assert found.differing == 0
    if moved == "yes" and not shaken:
        assert "the confidence of 50 of 50 answers is not what it was" in found.proof
    elif moved == "yes":
        assert "of 50 answers moved further than that of 100 items asked twice" in found.proof
    canary = masa.assess(
        data, Confident(data, surer=0.01, noise=shaken), budget=100, canary=20, store=store, seed=2
    )
    assert canary.stopped == ("budget" if moved == "yes" else "canary")


def wobbling(
    items: int, *, wobble: float, twice: int, moved: float = 0.0, seed: int = 0
) -> tuple[BaselineAnswers, dict[int, float]]:
    """Confidences that wobble, and new ones of which a share moved by 0.2."""
    rng = np.random.default_rng(seed)
    true = 0.5 + 0.4 * rng.random(items)
    then, again, now = (true + wobble * rng.normal(size=items) for _ in range(3))
    now = now - np.where(rng.random(items) < moved, 0.2, 0.0)
    chosen = rng.permutation(items)[:twice].tolist()
    old = BaselineAnswers(
        np.arange(items),
        Column("old", ("a", "b"), np.zeros(items, np.int32)),
        then,
        asked_twice=dict.fromkeys(chosen, False),
        confidence_twice={place: (float(then[place]), float(again[place])) for place in chosen},
    )
    return old, dict(enumerate(now.tolist()))


def asked(places: Ints) -> Sample:
    """Answers that are all the same, each with the same weight."""
    none = np.zeros(len(places), np.int64)
    weight = np.full(len(places), 1.0 / len(places))
    return Sample(
        places, none, none, none, 1.0, weight**2, weight, none, np.ones(1), groups_are_strata=False
    )


@pytest.mark.parametrize("answers", [1, 4, 20, 200])
@pytest.mark.parametrize("twice", [50, 100, 500])
def test_wobble_alone_is_no_move_from_the_first_answer_on(answers: int, twice: int) -> None:
    limit, alarms = 2.0537, 0  # Of a test with 2% of false alarms.
    for seed in range(200):
        old, now = wobbling(600, wobble=0.01, twice=twice, seed=seed)
        places = np.random.default_rng(seed).permutation(600)[:answers]
        found = moved_confidence(asked(np.sort(places)), old, now)
        assert found is not None
        alarms += found.score > limit
    assert alarms <= 11  # 4 are expected at most, and 11 are exceeded once in 3,000 tests.


def test_few_moved_confidences_are_seen_among_many_that_wobble() -> None:
    seen = 0
    for seed in range(50):
        old, now = wobbling(2000, wobble=0.01, twice=500, moved=0.06, seed=seed)
        found = moved_confidence(asked(np.arange(100)), old, now)
        assert found is not None
        seen += found.score > 2.0537
    assert seen >= 40
    old, now = wobbling(2000, wobble=0.01, twice=49, moved=0.5)
    assert moved_confidence(asked(np.arange(100)), old, now) is None


def test_confidences_that_crowd_near_one_are_compared_by_their_odds() -> None:
    old, now = wobbling(1000, wobble=0.01, twice=300, moved=0.3)
    assert old.confidence is not None

    def crowded(confidence: float) -> float:
        return float(1.0 - 10.0 ** (-7.0 * confidence))

    near_one = replace(
        old,
        confidence=np.array([crowded(one) for one in old.confidence.tolist()]),
        confidence_twice={
            place: (crowded(first), crowded(again))
            for place, (first, again) in old.confidence_twice.items()
        },
    )
    found = moved_confidence(
        asked(np.arange(100)), near_one, {place: crowded(one) for place, one in now.items()}
    )
    assert found is not None
    assert found.moved >= 20
    assert found.score > 5.0


def test_replays_play_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, _ = reviews(1500)
    column = data.predictions["old"]
    rows = ["label,old.prediction,old.confidence"] + [
        f"{data.label.values[data.label.codes[i]]},{column.values[column.codes[i]]},{data.numbers['sure'][i]}"
        for i in range(len(data))
    ]
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    common = [
        "replay",
        str(path),
        "--label",
        "label",
        "--old",
        "old.prediction",
        "--new",
        "old.prediction",
    ]
    common += ["--method", "auto", "--budgets", "300", "--runs", "10"]
    assert (
        main(
            [
                *common,
                "--stop",
                "budget",
                "--noise",
                "2%",
                "--noise-where",
                "unsure",
                "--repeat",
                "300",
                "--json",
            ]
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)["methods"]["auto"]["stopping"]
    assert {"coverage", "queries_mean", "queries_p95", "false_alarms", "misses", "noticed"} <= set(
        told
    )
    assert (told["queries_mean"], told["false_alarms"]) == (300, 0.0)
    assert told["noticed"] <= 0.3
    strict = [
        *common[:-6],
        "--method",
        "auto,masa",
        "--budgets",
        "100",
        "--runs",
        "4",
        "--stop",
        "budget",
        "--strict",
        "--json",
    ]
    assert main(strict) == 0
    methods = json.loads(capsys.readouterr().out)["methods"]
    assert methods["auto"]["stopping"] is not None
    assert methods["masa"]["stopping"] is None
    for wrong, why in (
        (["--noise", "2%"], "only whole assessments"),
        (["--stop", "budget", "--noise", "2"], "--noise is '2'"),
        (["--stop", "budget", "--noise", "0.3", "--noise-where", "unsure"], "noise is 0.3"),
        (["--stop", "budget", "--noise", "0.1", "--noise-where", "here"], "noise-where"),
        (["--stop", "budget", "--noise", "0.1", "--repeat", "0"], "--repeat is '0'"),
    ):
        assert main([*common, *wrong]) == 2
        assert why in capsys.readouterr().err


def test_noise_is_what_it_says() -> None:
    data, old = reviews(20_000)
    for noise in (Noise(0.05), Noise(0.05, "unsure")):
        rates = noise.rates(data, old)
        assert rates.mean() == pytest.approx(0.05, abs=1e-3)
        said = noise.of(old.answers, rates, np.random.default_rng(9))
        apart = said.codes != old.answers.codes
        assert apart.mean() == pytest.approx(0.05, abs=0.006)
        if noise.where == "unsure":
            assert old.confidence is not None
            assert old.confidence[apart].max() < 0.21


@pytest.mark.parametrize("budget", [1, 4, 8, 20])
def test_a_few_answers_are_no_proof_against_an_api_with_noise(budget: int) -> None:
    """Canaries are rather wrong answers, which noise may have made: 25% of runs said yes once."""
    data, old = reviews()
    same = data.predictions["old"]
    runs = WholeRuns(data, old, same, Settings(), budget=budget, noise=Noise(0.01)).play(120)
    assert runs.noticed <= 0.05


def test_a_rewrite_is_noticed_by_a_few_answers_through_the_noise() -> None:
    data, old = reviews()
    turned = data.predictions["old"]
    other = Column("new", turned.values, ((turned.codes + 1) % 3).astype(np.int32))
    runs = WholeRuns(data, old, other, Settings(), budget=8, noise=Noise(0.01)).play(40)
    assert runs.noticed >= 0.9


def test_noise_alone_is_counted_exactly_where_it_is_known() -> None:
    """With the same rate everywhere and many items asked twice it is a binomial probability."""
    from scipy.stats import binom

    from masa.inference.noise_alone import by_noise

    items = 200_000
    old = BaselineAnswers(
        np.arange(items),
        Column("old", ("a", "b"), np.zeros(items, np.int32)),
        asked_twice={place: place % 50 == 0 for place in range(100_000)},
    )
    # Half of the items are wrong, so that noise made a fiftieth of the wrong ones so.
    wrong = np.arange(items) % 2 == 1
    asked = np.arange(0, 40, 2, dtype=np.int64)
    for differing in (1, 2, 4):
        wanted = float(binom.sf(differing - 1, 20, 0.01))
        assert by_noise(differing, asked, old, wrong) == pytest.approx(wanted, rel=0.02)
    assert by_noise(0, asked, old, wrong) == 1.0
    assert by_noise(1, asked + 1, old, wrong) > by_noise(1, asked, old, wrong)
