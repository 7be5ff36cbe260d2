"""What a few runs tell of errors, and of what is noticed, against what many replays count."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom

from masa.data.baseline_answers import from_column
from masa.data.dataset import Dataset
from masa.inference.method import Method
from masa.replays.expected import expected_curve
from masa.replays.learned_change import probabilities
from masa.replays.made_up_change import made_up_change
from masa.replays.noticing import AskedUnchanged, smallest_beyond_noise, smallest_change
from masa.replays.replay import replay
from masa.replays.simulate import NewAnswers
from masa.settings import Objective, Settings

NAMES = np.array(["bad", "fair", "good", "none"])


def graded(items: int = 3000, *, changed: float = 0.06, rewrite: bool = False) -> Dataset:
    rng = np.random.default_rng(3)
    label, sure = rng.integers(0, 3, items), rng.random(items)
    old = np.where(rng.random(items) < 0.6 + 0.4 * sure, label, rng.integers(0, 4, items))
    hit = rng.random(items) < 2.0 * changed * (1.0 - sure)
    new = np.where(hit, rng.integers(0, 4, items), old)
    if rewrite:
        new = label
    return Dataset.of(
        NAMES[label].tolist(),
        predictions={"old": NAMES[old].tolist(), "new": NAMES[new].tolist()},
        numbers={"sure": sure.tolist()},
    )


@pytest.mark.parametrize("linear", [False, True])
def test_few_runs_tell_the_error_that_many_replays_count(linear: bool) -> None:
    data, budgets = graded(), (60, 200, 800, 2000)
    objective = Objective(linear=linear, accuracy=linear)
    known = from_column(data, data.predictions["old"], "sure")
    settings = Settings(weights=objective)
    method = Method.of(data, known, settings, name="predictive", new_answers=tuple(NAMES))
    found = expected_curve(
        method,
        NewAnswers(data.predictions["new"]),
        budgets=budgets,
        error=0.001,
        confidence=0.95,
    )
    assert found is not None
    counted = replay(
        data,
        new="new",
        old="old",
        old_confidence="sure",
        methods=("predictive",),
        budgets=budgets,
        runs=200,
        target_error=0.5,
        weights=objective,
    ).curves[0]
    ratio = np.array(found.error_quantile) / np.array(counted.error_quantile)
    # 200 runs tell a quantile to some 7%.
    assert (ratio > 0.75).all(), ratio
    assert (ratio < 1.35).all(), ratio
    errors = [point.error_quantile for point in found.path]
    assert errors == sorted(errors, reverse=True) or np.diff(errors).max() < 0.1 * max(errors)


def test_nothing_is_expected_of_a_run_that_switches_to_strata() -> None:
    data = graded(rewrite=True)
    known = from_column(data, data.predictions["old"], "sure")
    settings = Settings(target_error=0.02)
    method = Method.of(data, known, settings, name="auto", new_answers=tuple(NAMES))
    new = NewAnswers(data.predictions["new"])
    assert expected_curve(method, new, budgets=(500,), error=0.02, confidence=0.95) is None
    case = made_up_change(data, known, settings, runs=20, methods=("auto",))
    # A plan then replays such runs.
    assert case.curve(method, 0.05, budgets=(500,), error=0.02).error_quantile[0] > 0.0


def test_what_is_noticed_is_what_replays_notice() -> None:
    data, budgets = graded(), (1, 4, 20, 100, 400)
    known = from_column(data, data.predictions["old"], "sure")
    case = made_up_change(data, known, Settings(), runs=40, methods=("auto",))
    asked = AskedUnchanged.of(case.laid_out(0.01), budgets[-1])
    for share in (0.003, 0.03):
        hit = probabilities(case.log_odds(), round(share * len(data)))
        told = np.array(asked.noticed(hit, budgets))
        counted = np.mean(
            [
                case.replay(share, methods=("auto",), budgets=budgets, error=0.5, variant=variant)
                .curves[0]
                .noticed
                for variant in range(8)
            ],
            axis=0,
        )
        # 320 runs of eight changes.
        assert np.abs(told - counted).max() < 0.12, (told, counted)
        assert (np.diff(told) >= 0.0).all()


@pytest.mark.parametrize(("asked", "items"), [(1, 1), (1, 30), (4, 30), (20, 400), (300, 400)])
def test_the_smallest_change_that_is_noticed_is_that_of_the_textbook(
    asked: int, items: int
) -> None:
    found = smallest_change(asked, items)
    assert found is not None
    changed = round(found * items)
    assert hypergeom.sf(0, items, changed, asked) >= 0.95 - 1e-9
    assert changed == 1 or hypergeom.sf(0, items, changed - 1, asked) < 0.95


def test_noise_hides_small_changes_and_more_queries_show_them() -> None:
    quiet = [smallest_beyond_noise(n / 3, n, contradicted=0, repeated=500) for n in (20, 100, 900)]
    noisy = [smallest_beyond_noise(n / 3, n, contradicted=40, repeated=500) for n in (20, 100, 900)]
    assert [2.0 if one is None else one for one in quiet] == sorted(
        (2.0 if one is None else one for one in quiet), reverse=True
    )
    for without, with_noise in zip(quiet, noisy, strict=True):
        assert with_noise is None or (without is not None and without < with_noise)


def test_a_change_that_leans_to_doubtful_answers_hits_those_of_low_confidence() -> None:
    data = graded()
    known = from_column(data, data.predictions["old"], "sure")
    case = made_up_change(data, known, Settings(), runs=10, methods=("auto",))
    confidences = []
    for lean in (0.0, 1.0, 3.0):
        new = replace(case, lean=lean).changed(0.05).predictions["new"]
        hit = new.codes != data.predictions["old"].on(new.values).codes
        confidences.append(float(data.numbers["sure"][hit].mean()))
    assert abs(confidences[0] - 0.5) < 0.08
    assert confidences[0] > confidences[1] > confidences[2]
