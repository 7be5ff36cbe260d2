"""A baseline in git: what is exported is what was recorded, wherever it is read back."""

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import inside as run
from masa.data.dataset import read
from masa.runs.stored_baseline import lay_over
from masa.storage import history
from masa.storage.store import opened

CONFIG = """
[data]
path = "data.csv"
label = "label"
id = "id"
input = "text"

[api]
client = "replay:{}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    luck, items = np.random.default_rng(0), 900
    names = np.array(["a\ttab", 'a "quote"', "<plain>"])
    label = luck.integers(0, 3, items)
    old = np.where(luck.random(items) < 0.2, luck.integers(0, 3, items), label)
    new = np.where(luck.random(items) < 0.1, luck.integers(0, 3, items), old)
    rows = [
        {
            "id": i,
            "text": f"secret words {i}",
            "label": names[label[i]],
            "old": names[old[i]],
            "new": names[new[i]],
        }
        for i in range(items)
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "masa.toml").write_text(CONFIG.format("old").replace("data.csv", "data.jsonl"))
    return tmp_path


def use_new_answers(folder: Path) -> None:
    text = (folder / "masa.toml").read_text()
    (folder / "masa.toml").write_text(text.replace("replay:old", "replay:new"))


@pytest.mark.parametrize(
    "how", [("--budget", 2000), ("--budget", 500), ("--budget", 620, "--repeat", 120)]
)
def test_a_baseline_is_read_back_as_it_was(folder: Path, how: tuple[object, ...]) -> None:
    assert run("baseline", *how, cwd=folder).returncode == 0
    assert run("baseline", "export", "pinned.txt", cwd=folder).returncode == 0
    text = (folder / "pinned.txt").read_text()
    assert "secret words" not in text
    lines = text.splitlines()
    assert lines[3:] == sorted(lines[3:])
    done = run("baseline", "import", "pinned.txt", "--store", "other.db", cwd=folder)
    assert done.returncode == 0, done.stderr
    told = run("report", "--store", "other.db", cwd=folder)
    assert told.returncode == 0, told.stderr
    assert (
        "imported from a baseline of"
        in run("report", "--store", "other.db", "--json", cwd=folder).stdout
    )
    data = read(folder / "data.jsonl", label="label", id="id", inputs=["text"])
    known = []
    for store in (".masa/masa.db", "other.db"):
        with opened(folder / store) as kept:
            found = history.current(kept, "default")
            assert found is not None
            known.append(lay_over(kept, data, found)[1])
    one, other = known
    assert one.places.tolist() == other.places.tolist()
    said = [np.array(it.answers.values, object)[it.answers.codes].tolist() for it in known]
    assert said[0] == said[1]
    assert one.asked_twice == other.asked_twice
    assert (one.noise_counts, one.drawn_evenly) == (other.noise_counts, other.drawn_evenly)
    for name in ("weight", "extra_variance"):
        before, after = getattr(one, name), getattr(other, name)
        assert (before is None) == (after is None)
        if before is not None:
            assert after == pytest.approx(before)


def test_an_assessment_with_a_file_needs_no_store_and_says_the_same(folder: Path) -> None:
    assert run("baseline", "--budget", 500, cwd=folder).returncode == 0
    assert run("baseline", "export", "pinned.txt", cwd=folder).returncode == 0
    use_new_answers(folder)
    words = ("assess", "--budget", 200, "--seed", 5, "--force", "--json")
    told = []
    for more in ((), ("--baseline", "pinned.txt", "--store", "fresh.db")):
        done = run(*words, *more, cwd=folder)
        assert done.returncode in (0, 1, 3), done.stderr
        told.append(json.loads(done.stdout))
    for key in ("verdict", "moved", "changed", "answers"):
        assert told[0][key] == told[1][key], key
    assert told[0]["accuracy"] == pytest.approx(told[1]["accuracy"])
    assert np.array(told[0]["delta"]) == pytest.approx(np.array(told[1]["delta"]))
    again = run(*words, "--baseline", "pinned.txt", "--store", "fresh.db", cwd=folder)
    assert json.loads(again.stdout)["made"]["baseline"] == told[1]["made"]["baseline"], "taken once"


def test_one_changed_answer_is_one_changed_line(folder: Path) -> None:
    assert run("baseline", "--budget", 2000, cwd=folder).returncode == 0
    assert run("baseline", "export", "one.txt", cwd=folder).returncode == 0
    rows = [json.loads(line) for line in (folder / "data.jsonl").read_text().splitlines()]
    rows[7]["old"] = "<plain>" if rows[7]["old"] != "<plain>" else "a\ttab"
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("baseline", "--budget", 2000, "--fresh", cwd=folder).returncode == 0
    assert run("baseline", "export", "other.txt", cwd=folder).returncode == 0
    one, other = ((folder / name).read_text().splitlines()[2:] for name in ("one.txt", "other.txt"))
    assert len(set(one) ^ set(other)) == 2


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text.replace("# masa baseline 1", "# something"), "not a baseline"),
        (lambda text: text.replace("\n", "\nnonsense\n", 4), "cannot be read"),
        (lambda text: text + text.splitlines()[-1] + "\n", "listed twice"),
        (lambda _: "", "not a baseline"),
    ],
)
def test_a_damaged_file_is_refused(folder: Path, damage: object, says: str) -> None:
    assert run("baseline", "--budget", 100, cwd=folder).returncode == 0
    assert run("baseline", "export", "b.txt", cwd=folder).returncode == 0
    path = folder / "b.txt"
    path.write_text(damage(path.read_text()))  # type: ignore[operator]
    done = run("baseline", "import", "b.txt", cwd=folder)
    assert done.returncode == 2
    assert says in done.stderr
