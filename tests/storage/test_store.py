"""The store: its schema, its migrations, its locks, its place."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import masa
from command_line import run
from live_runs import ONE, QUICK, client, data
from masa.records import Column
from masa.runs.baseline import baseline
from masa.storage import history
from masa.storage.store import HEAD, opened
from server import Server, database


def test_a_second_process_on_the_same_run_is_told(server: Server, tmp_path: Path) -> None:
    store, old = tmp_path / "s.db", Column("old", ("pos",), np.zeros(300, np.int32))
    with opened(store) as kept:
        masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
        with database(store) as connection:
            connection.execute("UPDATE run SET finished = NULL")
        with kept.claim(1), pytest.raises(masa.BusyError, match=f"run 1 .*process {os.getpid()}"):
            masa.assess(data(), client(server), baseline=old, budget=5, store=store, limits=ONE)
    assert (
        masa.assess(data(), client(server), baseline=old, budget=6, store=store, limits=ONE).answers
        == 6
    )
    assert not list(tmp_path.glob("*.lock"))


def test_a_store_of_an_older_masa_is_brought_up_to_date(tmp_path: Path, server: Server) -> None:
    store = tmp_path / "s.db"
    baseline(data(), client(server), budget=300, store=store, limits=QUICK)
    with database(store) as connection:
        for column in ("batch", "chance", "batch_size", "stands", "adds", "scores", "said"):
            connection.execute(f"ALTER TABLE call DROP COLUMN {column}")
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
        connection.commit()
    found = masa.assess(data(), client(server), budget=100, store=store, limits=QUICK)
    assert (found.method, found.moved, found.answers) == ("predictive", "no sign", 100)
    with database(store) as connection:
        connection.execute(
            "UPDATE call SET stands = NULL, adds = NULL"
        )  # As an older one left them.
        connection.commit()
    with opened(store) as kept:
        history.accept(kept, found.run)
    with pytest.raises(masa.UsageError, match="does not say what they represent"):
        masa.assess(data(), client(server), budget=100, store=store, limits=QUICK)


def test_the_schema_is_what_the_migrations_make(tmp_path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    from masa.storage.store import metadata

    config = Config()
    config.set_main_option(
        "script_location", str(Path(masa.__file__).parent / "storage" / "migrations")
    )
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD
    with opened(tmp_path / "s.db") as kept, kept.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_store_of_a_newer_masa_or_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "s.db"):
        pass
    with database(tmp_path / "s.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(masa.StoreError, match="newer masa"), opened(tmp_path / "s.db"):
        pass
    with database(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(masa.StoreError, match="not one of masa's"), opened(tmp_path / "t.db"):
        pass
    (tmp_path / "u.db").write_text("this is not a database, but a letter to my aunt " * 50)
    with pytest.raises(masa.StoreError, match="not a store"), opened(tmp_path / "u.db"):
        pass


def test_of_two_processes_that_start_together_one_is_told(project: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "masa",
        "assess",
        "reviews.csv",
        "--label",
        "label",
        "--old",
        "label",
        "--api",
        "replay:label",
    ]
    for _ in range(2):
        both = [
            subprocess.Popen(
                [*words, "--budget", "200", "--rate", "2/s", "--json"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        while all(process.poll() is None for process in both):
            time.sleep(0.05)
        for process in both:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        results = [json.loads(process.communicate(timeout=120)[0]) for process in both]
        assert sorted("error" in result for result in results) == [False, True]
        assert next(result for result in results if "error" in result)["error"]["kind"] == "busy"
        (project / ".masa" / "masa.db").unlink()


@pytest.mark.parametrize("place", ["reviews.csv/x.db", "/proc/x/y.db", "a" * 300 + "/x.db"])
def test_a_store_that_cannot_be_is_explained(project: Path, place: str) -> None:
    done = run(
        "assess",
        "reviews.csv",
        "--label",
        "label",
        "--old",
        "label",
        "--api",
        "replay:label",
        "--store",
        place,
    )
    assert done.returncode == 2
    assert "can be written" in done.stderr
    assert sorted(file.name for file in project.iterdir()) == ["reviews.csv"]


def test_odd_names_of_stores_are_kept_to(project: Path) -> None:
    for place in ("a?b=c.db", ":memory:", "50% & more.db"):
        assert (
            run(
                "assess",
                "reviews.csv",
                "--label",
                "label",
                "--old",
                "label",
                "--api",
                "replay:label",
                "--store",
                place,
            ).returncode
            == 0
        )
        assert (project / place).is_file()
