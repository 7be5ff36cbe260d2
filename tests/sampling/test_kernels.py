"""The compiled kernels against their slow twins."""

import shutil
from itertools import product
from math import prod, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from masa.data import compiled
from masa.data.compiled import jit
from masa.data.dataset import Dataset
from masa.data.strata import Strata
from masa.inference.counts import recorded_answers, stratum_counts, true_matrix, true_uncertainty
from masa.records import Column, Floats
from masa.sampling import stratified as sampler
from masa.sampling.kernels import drawing as kernel
from masa.settings.methods import PAPER as METHODS


@st.composite
def cases(draw: st.DrawFn) -> tuple[Strata, Column]:
    """A few labels, a few predictions (some no item's label), sizes from 1 up, sometimes a mix with a zero in it."""
    items = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=50))
    labels = [f"l{label}" for label, _ in items]
    data = Dataset.of(labels, predictions={"new": [f"l{answer}" for _, answer in items]})
    difficulty = np.array(
        draw(st.lists(st.integers(0, 5), min_size=len(items), max_size=len(items))), np.float64
    )
    mix = None
    if draw(st.booleans()):
        shares = draw(
            st.lists(
                st.sampled_from([0.0, 0.5, 1.0, 3.0]),
                min_size=len(data.label.values),
                max_size=len(data.label.values),
            )
        )
        mix = dict(zip(data.label.values, shares, strict=True)) if any(shares) else None
    return Strata.build(
        data.label, difficulty=difficulty, levels=draw(st.integers(1, 3)), mix=mix
    ), data.predictions["new"]


def twins(
    strata: Strata, answers: Column, method: str, *, replacement: bool, a: float, key: int
) -> tuple["Fast", naive.Naive]:
    scores = true_uncertainty(strata, answers, replacement=replacement)
    slow = naive.Naive(
        method=method,
        label_of=strata.label[strata.of_position].tolist(),
        stratum_of=strata.of_position.tolist(),
        weight=strata.weight.tolist(),
        answer_of=[answers.values[code] for code in answers.codes[strata.items]],
        replacement=replacement,
        a=a,
        key=key,
        uncertainty=scores.tolist(),
    )
    return Fast(strata, answers, method, replacement=replacement, a=a, key=key, scores=scores), slow


class Fast:
    """The kernels, driven one query at a time."""

    def __init__(
        self,
        strata: Strata,
        answers: Column,
        method: str,
        *,
        replacement: bool,
        a: float,
        key: int,
        scores: Floats,
    ) -> None:
        self.scheme = sampler.scheme(
            strata, method, replacement=replacement, a=a, uncertainty=scores
        )
        self.recorded = recorded_answers(
            strata, answers, group=self.scheme.group, factor=self.scheme.factor
        )
        self.state = kernel.new_state(
            self.scheme.design, len(strata.items), len(self.recorded.cell_entry)
        )
        self.key = np.uint64(key)
        self.seen = np.zeros(len(self.state.counts) + 1, np.int32)
        kernel.plant(self.scheme.design, self.scheme.rule, self.state)

    def step(self) -> int:
        return kernel.advance(
            self.scheme.design, self.recorded, self.scheme.rule, self.state, self.seen, self.key, 1
        )

    def entries(self) -> Floats:
        entries = np.zeros(len(self.recorded.truth))
        kernel.add_up(self.scheme.design, self.recorded, self.state, self.seen, entries)
        return entries


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(
    case=cases(),
    replacement=st.booleans(),
    a=st.sampled_from([0.0, 0.3, 1.0, 20.0]),
    seed=st.integers(0, 2**63 - 1),
)
def test_kernels_equal_their_twins_draw_by_draw(
    method: str, case: tuple[Strata, Column], replacement: bool, a: float, seed: int
) -> None:
    strata, answers = case
    key = naive.run_key(seed, 3)
    assert kernel.run_key(seed, 3) == key
    fast, slow = twins(strata, answers, method, replacement=replacement, a=a, key=key)
    for _ in range(min(60, len(strata.items) + 5)):
        assert fast.step() == slow.step()
        found = slow.matrix()
        entries = np.zeros(len(fast.recorded.truth))
        for cell in range(len(fast.recorded.cell_entry)):
            position = int(np.flatnonzero(fast.recorded.cell == cell)[0])
            entries[fast.recorded.cell_entry[cell]] = found[
                slow.label_of[position], slow.answer_of[position]
            ]
        np.testing.assert_allclose(fast.entries(), entries, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("a", [0.1, 1.0, 15.0])
def test_long_runs_of_the_papers_rule_equal_their_twin(
    case: tuple[Strata, Column], replacement: bool, a: float
) -> None:
    fast, slow = twins(*case, "masa", replacement=replacement, a=a, key=naive.run_key(0, 0))
    assert [fast.step() for _ in range(300)] == [slow.step() for _ in range(300)]


@given(st.lists(st.sampled_from("abcd"), min_size=2, max_size=40))
def test_uncertainty_is_the_share_of_differing_pairs(answers: list[str]) -> None:
    counts = [answers.count(letter) for letter in set(answers)]
    pairs = sum(count * (count - 1) for count in counts)
    assert kernel.uncertainty(pairs, len(answers)) == pytest.approx(
        naive.share_of_differing_pairs(answers), abs=1e-15
    )


def test_the_papers_update_as_printed_is_biased_and_the_corrected_one_is_the_definition() -> None:
    """Over all sequences of five answers of three kinds.

    With 1/n the score is too small by (n - 1)/n, with 2/n it is exact.
    """
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    truth = 1 - sum(share**2 for share in shares.values())
    printed_mean = 0.0
    for answers in product(shares, repeat=5):
        printed = corrected = 0.0
        for n, answer in enumerate(answers[1:], start=2):
            news = 1 - answers[: n - 1].count(answer) / (n - 1)
            printed += (news - printed) / n
            corrected += 2 * (news - corrected) / n
            assert corrected == pytest.approx(naive.share_of_differing_pairs(list(answers[:n])))
        printed_mean += prod(shares[answer] for answer in answers) * printed
    assert printed_mean == pytest.approx(truth * 4 / 5)


def test_an_unknown_uncertainty_is_never_taken_for_certainty() -> None:
    assert kernel.uncertainty(0, 0) == kernel.uncertainty(0, 1) == 1.0


def test_simulate_gives_the_errors_of_the_steps(case: tuple[Strata, Column]) -> None:
    strata, answers = case
    stops = [1, 2, 5, 11, 12, 30]
    for method in METHODS:
        scores = true_uncertainty(strata, answers, replacement=False)
        keys = np.array([kernel.run_key(9, run) for run in range(3)], np.uint64)
        errors = np.zeros((3, len(stops)), np.float32)
        checkpoints = np.array([(stop, row if row < 2 else -1) for row, stop in enumerate(stops)])
        fresh = Fast(strata, answers, method, replacement=False, a=1.0, key=0, scores=scores)
        sums = np.zeros((2, len(fresh.recorded.truth)))
        asked = kernel.simulate(
            fresh.scheme.design,
            fresh.recorded,
            fresh.scheme.rule,
            fresh.state,
            keys,
            checkpoints,
            errors,
            sums,
        )
        assert asked == 3 * stops[-1]
        totals = np.zeros_like(sums)
        for run, key in enumerate(keys):
            fast = Fast(
                strata, answers, method, replacement=False, a=1.0, key=int(key), scores=scores
            )
            step = 0
            for place, stop in enumerate(stops):
                while step < stop:
                    fast.step()
                    step += 1
                entries = fast.entries()
                assert errors[run, place] == pytest.approx(
                    np.linalg.norm(entries - fast.recorded.truth), abs=1e-6
                )
                if place < 2:
                    totals[place] += entries
        np.testing.assert_allclose(sums, totals, rtol=1e-12)


@pytest.fixture
def case() -> tuple[Strata, Column]:
    rng = np.random.default_rng(5)
    label = rng.integers(0, 4, 400)
    answer = np.where(rng.random(400) < 0.7, label, rng.integers(0, 6, 400))
    data = Dataset.of(
        label.tolist(), predictions={"new": answer.tolist()}, difficulty=rng.random(400)
    )
    return Strata.build(data.label, difficulty=data.difficulty), data.predictions["new"]


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("method", ["uniform", "stratified", "optimal"])
def test_mean_squared_errors_agree_with_closed_forms(
    case: tuple[Strata, Column], method: str, replacement: bool
) -> None:
    """Two-sided: within four standard errors of the mean over 4,000 runs, at three numbers of queries."""
    strata, answers = case
    runs, stops = 4000, [40, 100, 300]
    scores = true_uncertainty(strata, answers, replacement=replacement)
    fast = Fast(strata, answers, method, replacement=replacement, a=1.0, key=0, scores=scores)
    keys = np.array([kernel.run_key(1, run) for run in range(runs)], np.uint64)
    errors = np.zeros((runs, len(stops)), np.float32)
    checkpoints = np.array([(stop, -1) for stop in stops])
    kernel.simulate(
        fast.scheme.design,
        fast.recorded,
        fast.scheme.rule,
        fast.state,
        keys,
        checkpoints,
        errors,
        np.zeros((0, len(fast.recorded.truth))),
    )
    for place, stop in enumerate(stops):
        squared = errors[:, place].astype(np.float64) ** 2
        expected = closed_form(strata, answers, method, replacement=replacement, queries=stop)
        assert abs(squared.mean() - expected) < 4 * squared.std() / sqrt(runs)


def closed_form(
    strata: Strata, answers: Column, method: str, *, replacement: bool, queries: int
) -> float:
    """The sum over blocks of weight^2 s2 / n, less the part of the block already asked where each item is asked once."""
    counts = stratum_counts(strata, answers).astype(np.float64)
    if method == "uniform":
        truth = true_matrix(strata, answers).values
        blocks, size, draws = (
            np.array([1.0 - np.sum(truth**2)]),
            np.array([len(strata.items)]),
            np.array([queries]),
        )
        weight = np.ones(1)
    else:
        if method == "stratified":
            counts = np.array(
                [counts[strata.label == label].sum(axis=0) for label in range(len(strata.labels))]
            )
        size, weight = counts.sum(axis=1), counts.sum(axis=1) / counts.sum()
        blocks = 1.0 - np.sum((counts / size[:, None]) ** 2, axis=1)
        spread = blocks if replacement else blocks * size / (size - 1)
        draws = np.zeros(len(size), np.int64)
        for _ in range(queries):
            gain = np.full(len(size), np.inf) if method == "optimal" else 1.0 / (draws + 1.0)
            if method == "optimal":
                asked = draws > 0
                gain[asked] = (weight**2 * spread)[asked] / (draws * (draws + 1.0))[asked]
            if not replacement:
                gain[draws == size] = -1.0
            draws[np.argmax(gain)] += 1
    per_draw = (
        blocks / draws if replacement else blocks * size / (size - 1) * (1 / draws - 1 / size)
    )
    return float(np.sum(weight**2 * per_draw))


def test_the_optimal_allocation_asks_certain_strata_once() -> None:
    rng = np.random.default_rng(0)
    data = Dataset.of(
        [0] * 100 + [1] * 100, predictions={"new": [0] * 100 + rng.integers(0, 2, 100).tolist()}
    )
    strata, answers = Strata.build(data.label), data.predictions["new"]
    scores = true_uncertainty(strata, answers, replacement=False)
    fast = Fast(strata, answers, "optimal", replacement=False, a=1.0, key=0, scores=scores)
    for _ in range(101):
        fast.step()
    assert fast.state.issued.tolist() == [1, 100]


def test_the_optimal_allocation_reaches_its_bound(case: tuple[Strata, Column]) -> None:
    """With many queries the loss comes to (sum of weight times root score)^2 over the number of queries."""
    strata, answers = case
    s = np.sqrt(true_uncertainty(strata, answers, replacement=True))
    bound = float(np.sum(strata.weight * s)) ** 2 / 20_000
    assert closed_form(
        strata, answers, "optimal", replacement=True, queries=20_000
    ) == pytest.approx(bound, rel=0.001)


def test_draws_without_replacement_are_uniform_over_orders() -> None:
    """Each of the 6 orders of 3 items is as frequent as the others (chi-square below its 99.99% point)."""
    trials = 6000
    seen: dict[tuple[int, ...], int] = {}
    for run in range(trials):
        order, key = np.arange(3, dtype=np.int32), np.uint64(kernel.run_key(0, run))
        drawn = tuple(
            kernel.pick(order, 0, 3, draw, kernel.uniform(key, 0, draw)) for draw in range(3)
        )
        seen[drawn] = seen.get(drawn, 0) + 1
    assert len(seen) == 6
    assert sum((count - trials / 6) ** 2 / (trials / 6) for count in seen.values()) < 25.7


def test_neighbouring_streams_do_not_resemble_each_other() -> None:
    keys = [np.uint64(kernel.run_key(0, run)) for run in range(2000)]
    for block, draw in ((0, 0), (1, 0), (0, 1)):
        one = np.array([kernel.uniform(key, block, draw) for key in keys])
        other = np.array([kernel.uniform(key, block + 1, draw) for key in keys])
        assert abs(one.mean() - 0.5) < 4 * sqrt(1 / 12 / 2000)
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / sqrt(2000)


def test_a_package_that_cannot_be_written_beside_still_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numba refuses to cache where no directory is writable; the kernels must then do without."""
    import numba

    def njit(**options: bool) -> object:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    assert jit(abs)(-1) == 1


KERNELS = Path(kernel.__file__).parent


def test_what_is_kept_of_a_kernel_is_named_by_all_of_them(tmp_path: Path) -> None:
    """An edited callee, or a record that was renamed, must not meet what was kept before."""
    shutil.copytree(KERNELS, tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    before = compiled._digest(tmp_path / "kernels")
    compiled._digest.cache_clear()
    assert compiled._digest(tmp_path / "kernels") == before
    with (tmp_path / "kernels" / "margins.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    compiled._digest.cache_clear()
    assert compiled._digest(tmp_path / "kernels") != before
    compiled._digest.cache_clear()
    kept = compiled.kept_file(kernel.mix)
    assert kept is not None
    assert compiled._digest(KERNELS) in kept.name
