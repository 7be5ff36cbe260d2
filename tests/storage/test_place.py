"""A store that is deleted, linked, copied without its log, or on a disk that cannot be written."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import VERDICTS, configure, run, start, wait_for
from masa.errors import BusyError, StoreError
from masa.storage.store import opened
from server import Server, database


@pytest.fixture
def slow_server() -> Iterator[Server]:
    with Server(delay=0.05) as running:
        yield running


def killed(server: Server, project: Path) -> Path:
    """Start an assessment and kill it when it has some answers."""
    configure(project, server)
    running = start("assess", "--old", "label", "--budget", "200")
    wait_for(server, 40)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    return project / ".masa" / "masa.db"


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_store_that_is_deleted_during_a_run_is_saved(
    slow_server: Server, project: Path, what: str
) -> None:
    configure(project, slow_server)
    running = start("assess", "--old", "label", "--budget", "200")
    wait_for(slow_server, 40)
    store = project / ".masa" / "masa.db"
    if what == "folder":
        shutil.rmtree(store.parent)
    else:
        store.unlink()
    _, said = running.communicate(timeout=60)
    assert running.returncode == 2, said
    assert "was deleted or replaced while masa was using it" in said
    before = slow_server.answered
    assert "put back" in said
    assert {file.name for file in store.parent.iterdir()} - {".gitignore", "masa.db"} <= {
        "masa.db.run1.lock"
    }
    done = run("assess", "--old", "label", "--budget", "200")
    assert done.returncode in VERDICTS
    assert "resuming run 1" in done.stderr
    texts = slow_server.answered
    # Calls under way when it was noticed were answered to nobody.
    assert len(texts) - len(set(texts)) <= 4
    assert len(before) < 60


def test_what_stands_in_the_place_of_the_store_is_left_alone(
    slow_server: Server, project: Path
) -> None:
    configure(project, slow_server)
    running = start("assess", "--old", "label", "--budget", "200")
    wait_for(slow_server, 40)
    store = project / ".masa" / "masa.db"
    store.rename(project / "moved")
    store.write_text("mine")
    _, said = running.communicate(timeout=60)
    (saved,) = store.parent.glob("masa.db.saved-*")
    assert f"--store {saved}" in said
    assert store.read_text() == "mine"
    done = run("assess", "--old", "label", "--budget", "200", "--store", saved)
    assert done.returncode in VERDICTS
    assert "resuming run 1" in done.stderr


@pytest.mark.parametrize("put_back", [False, True])
def test_a_store_without_its_log_is_not_taken_for_whole(
    slow_server: Server, project: Path, put_back: bool
) -> None:
    store = killed(slow_server, project)
    log = store.with_name("masa.db-wal")
    log.rename(project / "kept")
    asked = len(slow_server.requests)
    done = run("assess", "--old", "label", "--budget", "200")
    assert done.returncode == 2
    assert "answers of run 1 may be missing" in done.stderr
    assert "masa.db-wal, which is gone" in done.stderr
    assert len(slow_server.requests) == asked, "nothing is paid for again"
    if put_back:
        (project / "kept").rename(log)
    done = run("assess", "--old", "label", "--budget", "200", "--resume", 1)
    assert done.returncode in VERDICTS
    texts = slow_server.answered
    again = len(texts) - len(set(texts))
    assert again <= 4 if put_back else again > 20
    with database(store) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("between", [[], ["history"]])
def test_a_store_with_its_log_is_whole(
    slow_server: Server, project: Path, between: list[str]
) -> None:
    killed(slow_server, project)
    for command in between:  # It reads the log back and leaves none.
        assert run(command).returncode == 0
    done = run("assess", "--old", "label", "--budget", "200")
    assert done.returncode in VERDICTS
    texts = slow_server.answered
    assert len(texts) - len(set(texts)) <= 4


def test_a_run_beside_one_that_was_killed_brings_the_log_in(
    slow_server: Server, project: Path
) -> None:
    """Who closes a store last deletes its log: nothing is missing then."""
    configure(project, slow_server)
    first = start("assess", "--old", "label", "--budget", "250", "--name", "one")
    wait_for(slow_server, 20)
    second = start("assess", "--old", "label", "--budget", "40", "--name", "two")
    wait_for(slow_server, 50)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    second.communicate(timeout=60)
    assert second.returncode in VERDICTS
    assert not (project / ".masa" / "masa.db-wal").exists()
    done = run("assess", "--old", "label", "--budget", "250", "--name", "one")
    assert done.returncode in VERDICTS
    assert "resuming run 1" in done.stderr


def test_a_log_that_is_missing_is_not_forgotten(slow_server: Server, project: Path) -> None:
    """Other commands on the copy make a log of their own."""
    store = killed(slow_server, project)
    store.with_name("masa.db-wal").unlink()
    assert (
        run("assess", "--old", "label", "--budget", "5", "--name", "other").returncode in VERDICTS
    )
    assert "not finished (without log)" in run("history").stdout
    assert run("assess", "--old", "label", "--budget", "200").returncode == 2


def test_all_names_of_a_store_lead_to_the_same_locks(tmp_path: Path) -> None:
    real, other = tmp_path / "s.db", tmp_path / "other"
    other.mkdir()
    with opened(real):
        pass
    (other / "s.db").symlink_to(real)
    with (
        opened(real) as one,
        opened(other / "s.db") as two,
        one.claim(1),
        pytest.raises(BusyError),
        two.claim(1),
    ):
        pass
    os.link(real, other / "t.db")
    with pytest.raises(StoreError, match="another name"), opened(other / "t.db"):
        pass


def test_a_run_is_marked_as_worked_on_while_it_is(slow_server: Server, project: Path) -> None:
    configure(project, slow_server)
    store = killed(slow_server, project)
    # Reading a store brings its log into it.
    copy = shutil.copytree(store.parent, project / "copy")
    with database(copy / store.name) as connection:
        created, touched, stopped = connection.execute(
            "SELECT created, touched, stopped FROM run"
        ).fetchone()
    assert stopped == "working"
    assert touched >= created
    assert run("history").stdout.count("interrupted") == 1


def test_what_is_on_a_disk_that_cannot_be_written_can_be_read(
    server: Server, project: Path
) -> None:
    disk = project / "disk"
    disk.mkdir()
    tmpfs = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(tmpfs, check=False).returncode:
        pytest.skip("needs to mount a disk that cannot be written, which takes root")
    try:
        configure(project, server)
        run("assess", "--old", "label", "--budget", "20", "--store", disk / "masa.db")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert "assess" in run("history", "--store", disk / "masa.db").stdout
        link = project / "link.db"
        link.symlink_to(disk / "masa.db")
        assert "assess" in run("history", "--store", link).stdout
        assert run("report", 1, "--store", disk / "masa.db").returncode == 0
        done = run("accept", 1, "--store", disk / "masa.db")
        assert done.returncode == 2
        assert "can be written" in done.stderr
    finally:
        time.sleep(0.1)
        subprocess.run(["umount", disk], check=False)
