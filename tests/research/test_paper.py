"""The paper's study: its parts are right, it resumes, and it says what it cannot do."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from masa.cli import main as cli
from masa.data.strata import Strata
from masa.errors import DataError, UsageError
from masa.inference.counts import recorded_answers, true_matrix, true_uncertainty
from masa.records import Column
from masa.research import book
from masa.research.cases import CASES, PaperCase, loaded, told
from masa.research.experiments import EXPERIMENTS, data_sets, find, wanted
from masa.research.experiments.paper_bound import stopped
from masa.research.experiments.speed import plain
from masa.research.finding import Finding, Sheet
from masa.research.published import Collection, Recording, save, stored
from masa.research.study import PaperStudy, one_run
from masa.sampling import stratified as sampler
from masa.sampling.kernels import drawing as kernel


def made(
    folder: Path,
    name: str,
    *,
    dates: bool = False,
    labels: tuple[str, ...] = ("0", "1"),
    items: int = 400,
) -> None:
    """Write a data set of APIs that are right about four items of five.

    They are right more often where a cheap model is sure.
    """
    rng = np.random.default_rng(len(name))
    truth = [labels[place] for place in rng.integers(0, len(labels), items)]
    sure = rng.random(items)

    def answers(right: float) -> list[str | None]:
        wrong = rng.random(items) > right * (0.8 + 0.2 * sure)
        return [
            labels[(labels.index(label) + 1) % len(labels)] if off else label
            for label, off in zip(truth, wrong, strict=True)
        ]

    apis = ("amazon", "google", "ibm")
    recordings = [
        Recording(api, answers(0.9 - 0.1 * at), sure.round(3).tolist(), date=date)
        for date, at in ((("20-03-29", 0), ("21-03-29", 1)) if dates else (("", 0),))
        for api in apis
    ]
    recordings.append(Recording("github-small", answers(0.7), sure.tolist(), price=0.001))
    save(
        Collection(
            name, "sa", [f"{name}-{n}" for n in range(items)], truth, tuple(recordings), "made"
        ),
        folder,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made(tmp_path / "data", "yelp")
    made(tmp_path / "data", "digit", labels=("0", "1", "2"))
    return tmp_path / "data"


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> PaperStudy:
    return PaperStudy(stored(folder), tmp_path / "parts", runs=40)


def test_the_trace_is_what_simulating_gives(study: PaperStudy) -> None:
    it = study.load(CASES[0])
    strata = Strata.build(it.data.label, difficulty=it.data.difficulty, levels=2)
    grid = np.array([20, 60, 200])
    traces, spread = study.trace(strata, it.answers, grid)
    curve = study.replay(it.data, it, ["masa"], replacement=True, levels=2, budgets=[20, 60, 200])[
        "masa"
    ]
    assert np.mean(traces[:, :, 0] ** 2, axis=0) == pytest.approx(
        curve.mean_squared_error, rel=1e-5
    )
    assert spread.sum(axis=1) == pytest.approx(grid)
    # One run by hand: the losses of the queries that it spent.
    scheme = sampler.scheme(strata, "masa", replacement=True)
    recorded = recorded_answers(strata, it.answers, group=scheme.group, factor=scheme.factor)
    state = kernel.new_state(scheme.design, len(strata.items), len(recorded.cell_entry))
    kernel.plant(scheme.design, scheme.rule, state)
    seen = np.zeros(len(state.counts) + 1, np.int32)
    kernel.advance(scheme.design, recorded, scheme.rule, state, seen, kernel.run_key(0, 0), 60)
    n, p = state.issued, strata.weight
    true = true_uncertainty(strata, it.answers, replacement=True)
    guessed = np.array(
        [kernel.uncertainty(pairs, count) for pairs, count in zip(state.pairs, n, strict=True)]
    )
    assert traces[0, 1, 1:] == pytest.approx(
        [np.sum(p**2 * true / n), np.sum(p**2 * guessed / n), np.sum(p**2 * n**-1.5)], rel=1e-12
    )


def test_the_plain_version_and_one_run_estimate_the_same_matrix(study: PaperStudy) -> None:
    it = study.load(CASES[0])
    strata = Strata.build(it.data.label, difficulty=it.data.difficulty, levels=2)
    truth = true_matrix(strata, it.answers).values
    found = np.zeros((2, *truth.shape))
    for seed in range(200):
        for key, value in plain(strata, it.answers, 100, seed=seed).items():
            found[0][key] += value / 200
        found[1] += one_run(strata, it.answers, 100, seed=seed, replacement=True) / 200
    assert found[0] == pytest.approx(truth, abs=0.012)
    assert found[1] == pytest.approx(truth, abs=0.012)


def test_the_bound_stops_where_it_is_small_enough() -> None:
    grid = np.array([100, 200, 400])
    traces = np.zeros((2, 3, 4))
    traces[:, :, 0] = [[0.02, 0.005, 0.001], [0.02, 0.02, 0.001]]
    traces[:, :, 2] = 2e-4, 0.9e-4, 0.1e-4
    assert stopped(traces, grid, 0.0) == {"queries": 200, "coverage": 50.0}
    traces[:, :, 3] = 1e-4, 0.5e-4, 0.1e-4
    assert stopped(traces, grid, 1.0) == {"queries": 400, "coverage": 100.0}
    assert stopped(traces, grid, 1e6) is None


def test_told_changes_are_as_many_as_the_paper_says() -> None:
    label = Column("label", ("0", "1"), np.repeat([0, 1], 500).astype(np.int32))
    said = Column("new", ("0", "1"), np.tile([0, 0, 1, 0, 0], 200).astype(np.int32))
    case = PaperCase("a", "d", 0, 0, 0, (("1", "0", "=", 0.1), ("0", "=", "9", 0.05)))
    now = told(label, said, case, np.random.default_rng(0))
    text = np.array(now.values)[now.codes]
    before = np.array(said.values)[said.codes]
    moved = np.flatnonzero(text != before)
    assert len(moved) == 150
    assert (text[moved[moved >= 500]] == "1").all()
    assert (text[moved[moved < 500]] == "9").all()


def test_of_two_dates_the_later_one_is_asked(tmp_path: Path) -> None:
    made(tmp_path, "yelp", dates=True)
    (found,) = stored(tmp_path)
    it = loaded(CASES[0], found)
    assert (it.old, it.new) == ("amazon@20-03-29.prediction", "amazon@21-03-29.prediction")
    assert it.difficulty == "the confidence of github-small"


def test_everything_is_written_and_nothing_is_done_twice(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = [
        "reproduce",
        "all",
        "--data",
        str(folder),
        "--runs",
        "20",
        "--out",
        str(out),
        "--json",
        "-q",
    ]
    assert cli.main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert list(first) == list(EXPERIMENTS)
    assert "two dates" in first["shifts"]["skipped"]
    assert [row["case"] for row in first["table1"]["tables"]["table1"]] == [
        "amazon yelp",
        "ibm digit",
        "google digit",
    ]
    for what, found in first.items():
        assert (out / f"{what}.html").is_file()
        if "skipped" not in found:
            assert (out / f"{what}.svg").is_file()
            assert (out / f"{what}.png").read_bytes()[:4] == b"\x89PNG"
            assert list(out.glob(f"{what}*.csv"))
    assert 'href="table1.html"' in (out / "index.html").read_text()
    kept = {path: path.stat().st_mtime_ns for path in (out / "parts").iterdir()}
    assert cli.main(words) == 0
    second = json.loads(capsys.readouterr().out)
    assert {path: path.stat().st_mtime_ns for path in (out / "parts").iterdir()} == kept
    del first["speed"], second["speed"]
    assert first == second


def test_an_interrupted_study_resumes_where_it_stopped(study: PaperStudy, tmp_path: Path) -> None:
    whole = find(replace(study, folder=tmp_path / "other", workers=1), "levels")

    def interrupt(what: str, done: float) -> None:
        if what.startswith("levels") and done > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find(replace(study, progress=interrupt), "levels")
    kept = len(list(study.folder.iterdir()))
    assert kept >= 1
    again = replace(study)
    assert find(again, "levels") == whole
    assert again.made == len(again.cases) - kept


def test_a_damaged_part_is_made_again(study: PaperStudy) -> None:
    first = find(study, "levels")
    for path in study.folder.iterdir():
        path.write_text(path.read_text()[:50])
    assert find(replace(study), "levels") == first


def test_other_data_other_runs_and_other_seeds_are_other_parts(
    study: PaperStudy, folder: Path
) -> None:
    find(study, "levels")
    assert find(replace(study, made=0, seed=1), "levels") != find(study, "levels")
    made(folder, "yelp", items=500)
    again = PaperStudy(stored(folder), study.folder, runs=40)
    find(again, "levels")
    assert again.made == 1


def test_two_dates_give_the_overview_and_the_shifts(tmp_path: Path) -> None:
    made(tmp_path / "data", "yelp", dates=True)
    study = PaperStudy(stored(tmp_path / "data"), tmp_path / "parts", runs=10)
    (sheet,) = find(study, "overview").sheets
    assert {row[2] for row in sheet.rows} == {"2020 to 2021"}
    found = find(study, "shifts")
    rows, entries = found.sheets
    truth, nothing, masa, auto = rows.rows[:4]
    assert (truth[3], nothing[3], masa[3], auto[3]) == (
        "the truth",
        "nothing changed",
        "masa",
        "auto",
    )
    assert truth[5] == pytest.approx(sheet.rows[0][-2])
    assert nothing[-1] > auto[-1] > 0
    assert len(entries.rows) == 3 * 4
    assert book.write(found, tmp_path)


class Scripts(HTMLParser):
    """Collects the elements of a page that could run anything."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "img", "iframe") or any(name.startswith("on") for name, _ in attrs):
            self.found.append(tag)


def test_labels_and_words_cannot_run_anything_on_a_page(tmp_path: Path) -> None:
    made(
        tmp_path / "data",
        "yelp",
        dates=True,
        labels=("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'),
    )
    study = PaperStudy(stored(tmp_path / "data"), tmp_path / "parts", runs=4)
    for what in ("shifts", "datasets"):
        book.write(find(study, what), tmp_path)
        looked = Scripts()
        looked.feed((tmp_path / f"{what}.html").read_text())
        assert not looked.found
    page = book.page(Finding("x", "<b>", ("<script>",), (Sheet("<i>", ("<u>",), (("<img>",),)),)))
    assert "<script>" not in page
    assert "&lt;img&gt;" in page


def test_bad_words_are_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="nothing called 'table2'"):
        wanted("table2")
    with pytest.raises(DataError, match="is not a folder"):
        data_sets(tmp_path / "nowhere", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no data sets"):
        data_sets(tmp_path / "empty", tmp_path)
    with pytest.raises(UsageError, match="runs is 1"):
        PaperStudy(stored(folder), tmp_path, runs=1)
    (tmp_path / "file").write_text("")
    assert (
        cli.main(
            [
                "reproduce",
                "datasets",
                "--data",
                str(folder),
                "--out",
                str(tmp_path / "file" / "x"),
                "-q",
            ]
        )
        == 2
    )
    assert "cannot be made" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "items", "right"),
    [
        (("0",), 300, 0.9),
        (("0", "1"), 300, 2.0),
        (("0", "1"), 3, 0.9),
        (("a\0b", "1"), 300, 0.9),
        (tuple(map(str, range(300))), 900, 0.9),
    ],
    ids=["one label", "always right", "three items", "a sign that no SVG may hold", "300 labels"],
)
def test_strange_data_is_no_defect(
    tmp_path: Path,
    labels: tuple[str, ...],
    items: int,
    right: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    truth = [labels[place % len(labels)] for place in range(items)]
    said = [
        label if place % 10 < 10 * right else labels[(place + 1) % len(labels)]
        for place, label in enumerate(truth)
    ]
    recordings = (
        Recording("amazon", said, date="20-01-01"),
        Recording("amazon", said, date="21-01-01"),
    )
    save(
        Collection("yelp", "sa", [str(place) for place in range(items)], truth, recordings, "made"),
        tmp_path / "data",
    )
    words = [
        "reproduce",
        "all",
        "--data",
        str(tmp_path / "data"),
        "--runs",
        "4",
        "--out",
        str(tmp_path / "out"),
        "-q",
        "--json",
    ]
    assert cli.main(words) == 0, capsys.readouterr().err
    assert list(json.loads(capsys.readouterr().out)) == list(EXPERIMENTS)


def test_what_the_data_does_not_have_is_skipped_with_the_reason(tmp_path: Path) -> None:
    made(tmp_path / "data", "reviews")
    study = PaperStudy(stored(tmp_path / "data"), tmp_path / "parts", runs=4)
    for what in ("case-study", "table1", "tradeoffs", "levels", "convergence", "speed"):
        assert find(study, what).skipped
    assert "paper's." not in "".join(find(study, "datasets").words[1:2])


def test_one_experiment_leaves_the_others_in_the_index(folder: Path, tmp_path: Path) -> None:
    for what in ("levels", "datasets"):
        assert (
            cli.main(
                [
                    "reproduce",
                    what,
                    "--data",
                    str(folder),
                    "--runs",
                    "4",
                    "--out",
                    str(tmp_path / "out"),
                    "-q",
                ]
            )
            == 0
        )
    index = (tmp_path / "out" / "index.html").read_text()
    assert index.index("datasets.html") < index.index("levels.html")
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def test_answers_that_one_date_has_not_are_no_defect(tmp_path: Path) -> None:
    truth = ["0", "1"] * 100
    old = ["neutral" if place == 7 else label for place, label in enumerate(truth)]
    new = [label if place % 9 else "0" for place, label in enumerate(truth)]
    recordings = (
        Recording("amazon", old, date="20-01-01"),
        Recording("amazon", new, date="21-01-01"),
    )
    save(
        Collection("yelp", "sa", [str(place) for place in range(200)], truth, recordings, "made"),
        tmp_path,
    )
    found = find(PaperStudy(stored(tmp_path), tmp_path / "parts", runs=4), "case-study")
    kinds = {row[0] for row in found.sheets[2].rows}
    assert {"old", "true shift", "estimated shift"} <= kinds
    assert "neutral" in {row[2] for row in found.sheets[2].rows}


def test_a_page_tells_where_it_comes_from_and_old_files_go(
    study: PaperStudy, tmp_path: Path
) -> None:
    (tmp_path / "levels-old.csv").write_text("of before")
    book.write(find(study, "levels"), tmp_path, origin="40 runs, seed 0, data of <here>")
    assert not (tmp_path / "levels-old.csv").exists()
    assert "data of &lt;here&gt;" in (tmp_path / "levels.html").read_text()
    book.write(Finding("levels", "Levels", (), (), skipped="nothing"), tmp_path)
    assert not list(tmp_path.glob("levels*.csv")) + list(tmp_path.glob("levels.svg"))


@pytest.mark.parametrize("content", ["x", "[1]", '{"task": 3, "prices": {"amazon": "dear"}}'])
def test_what_a_file_says_of_itself_need_not_make_sense(tmp_path: Path, content: str) -> None:
    import duckdb

    duckdb.execute(
        "COPY (SELECT 'a' AS id, '0' AS label, '0' AS \"amazon.prediction\") "
        f"TO '{tmp_path}/yelp.parquet' (FORMAT parquet, KV_METADATA {{masa: '{content}'}})"
    )
    assert find(PaperStudy(stored(tmp_path), tmp_path / "parts", runs=4), "datasets").sheets[0].rows
