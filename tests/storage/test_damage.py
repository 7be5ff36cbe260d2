"""A store that was edited, or is damaged: never a defect of masa's."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from command_line import recorded
from masa.cli.main import main
from masa.storage.schema import metadata

GARBAGE = (None, "x", b"\x00\xff", "[]")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a baseline, a finished assessment and one that was interrupted."""
    folder = tmp_path_factory.mktemp("store")
    data, store = str(recorded(folder)), str(folder / "masa.db")
    columns = [data, "--label", "label", "--id", "id", "--store", store]
    assert main(["baseline", *columns, "--api", "replay:old", "--repeat", "20"]) == 0
    for seed in ("1", "2"):
        found = main(
            ["assess", *columns, "--api", "replay:old", "--budget", "60", "--seed", seed, "--quiet"]
        )
        assert found in (0, 3)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE run SET finished = NULL, result = NULL WHERE id = 3")
        connection.commit()
    return folder


COLUMNS = [(table.name, column.name) for table in metadata.sorted_tables for column in table.c]


@pytest.mark.parametrize(("table", "column"), [*COLUMNS, ("alembic_version", "version_num")])
def test_what_was_edited_is_said_to_be(
    kept: Path, tmp_path: Path, table: str, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "masa.db"
    columns = [str(kept / "d.csv"), "--label", "label", "--id", "id", "--store", str(store)]
    commands = (
        ["history", "--store", str(store)],
        ["report", "2", "--store", str(store)],
        ["accept", "2", "--store", str(store)],
        ["assess", *columns, "--api", "replay:old", "--budget", "60", "--seed", "2", "--quiet"],
    )
    for value in GARBAGE:
        shutil.copy(kept / "masa.db", store)
        with closing(sqlite3.connect(store)) as connection:
            try:
                connection.execute(
                    f"UPDATE {table} SET {column} = ? "
                    f"WHERE rowid = (SELECT max(rowid) FROM {table})",
                    [value],
                )
            except sqlite3.IntegrityError:
                continue  # SQLite itself does not let it in.
            connection.commit()
        for command in commands:
            assert main(command) != 70, (table, column, value, command, capsys.readouterr().err)


def test_the_row_that_was_edited_is_named(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "masa.db"
    shutil.copy(kept / "masa.db", store)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE call SET cost = 'much' WHERE run = 2 AND number = 7")
        connection.commit()
    assert main(["accept", "2", "--store", str(store)]) == 2
    assert "call 7 of run 2 cannot be what masa wrote" in capsys.readouterr().err


def test_a_damaged_run_does_not_lock_the_others_out(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "masa.db"
    shutil.copy(kept / "masa.db", store)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE run SET comparable = '[]' WHERE id = 3")
        connection.commit()
    assert main(["history", "--store", str(store)]) == 0
    assert "cannot be read: 3" in capsys.readouterr().err
    assert main(["report", "2", "--store", str(store)]) in (0, 1, 3)
    assert main(["accept", "2", "--store", str(store)]) == 0
    assert main(["accept", "3", "--store", str(store)]) == 2
