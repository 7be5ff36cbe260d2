"""Files that are meant to break what reads them: endless, huge, damaged."""

import os
import time
from pathlib import Path

import duckdb
import pytest

from masa.data.cheap_model import cheap_model
from masa.data.dataset import Dataset, read
from masa.data.files import MOST_PROFILED, Table
from masa.errors import DataError


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_the_place_of_an_image_is_refused_at_once(tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(20)]
    for name in names:
        os.mkfifo(tmp_path / name)
    rows = "".join(f"{'yes' if i % 2 else 'no'},{name}\n" for i, name in enumerate(names))
    (tmp_path / "d.csv").write_text(f"label,image\n{rows}")
    data = read(tmp_path / "d.csv", label="label", inputs=["image"])
    with pytest.raises(DataError, match="does not exist, or is not a file"):
        cheap_model(data, "image", kind="image")
    with pytest.raises(DataError, match="does not exist, or is not a file"):
        cheap_model(data, "image", kind="sound")


def test_fifty_thousand_columns_are_read_in_seconds(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    cells = ",".join(["1"] * 50_000)
    header = ",".join(f"c{number}" for number in range(50_000))
    file.write_text(f"label,old,{header}\nyes,no,{cells}\nno,no,{cells}\n")
    began = time.monotonic()
    table = Table.open(file)
    with table.load(texts=["label", "old"], numbers=[]) as rows:
        assert rows.ask("SELECT count(*) FROM rows")[0][0] == 2
    profiles = table.profile()
    assert len(profiles) == MOST_PROFILED
    # Labels are mostly in one of the first columns or in one of the last.
    assert (profiles[0].name, profiles[-1].name) == ("label", "c49999")
    # With the square of the number of columns it took hours.
    assert time.monotonic() - began < 60


def test_a_tiny_file_of_very_many_rows_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masa.data.files._memory", lambda: 2.0**30)
    file = tmp_path / "bomb.parquet"
    rows = "(SELECT 'yes' AS label, 'no' AS old FROM range(20000000))"
    duckdb.sql(f"COPY {rows} TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 20000000)")
    assert file.stat().st_size < 2_000
    began = time.monotonic()
    with pytest.raises(DataError, match=r"rows, for which masa needs about [0-9,]+ GB of memory"):
        read(file, label="label", predictions=["old"])
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("damage", ["cut off", "no archive", "other shape", "codes out of range"])
def test_a_damaged_cache_is_made_again(tmp_path: Path, damage: str) -> None:
    import numpy as np

    label = ["yes", "no"] * 30
    data = Dataset.of(label, inputs={"text": [f"{one} {i}" for i, one in enumerate(label)]})
    before = cheap_model(data, "text", folder=tmp_path)
    (cached,) = tmp_path.glob("cheap-*.npz")
    if damage == "cut off":
        cached.write_bytes(cached.read_bytes()[:-50])
    elif damage == "no archive":
        cached.write_bytes(b"x" * 1000)
    elif damage == "other shape":
        np.savez_compressed(cached, codes=np.zeros((60, 2), int), confidence=np.zeros(60))
    else:
        np.savez_compressed(cached, codes=np.full(60, 7), confidence=np.zeros(60))
    again = cheap_model(data, "text", folder=tmp_path)
    assert (again.answers.codes == before.answers.codes).all()
