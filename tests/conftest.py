"""What several tests use."""

import csv
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from masa.doubles.made_up import reviews
from server import KEY, Server

# A shell starts what runs in the background with interrupts ignored, and so would every masa
# that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def one_seed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the same items in every run of a test, unless it is about runs that differ."""
    if request.node.get_closest_marker("new_seeds") is None:
        monkeypatch.setattr("masa.runs.case.new_seed", lambda: 0)


@pytest.fixture(scope="session")
def frugalml() -> Path:
    """Real API predictions; they are not part of the project."""
    folder = SHARED / "frugalml"
    if not folder.is_dir():
        pytest.skip(f"needs the recorded predictions in {folder}")
    return folder


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with labelled texts, as a user has it, and the key in the environment."""
    with (tmp_path / "reviews.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "label", "text"])
        rows.writerows(
            (f"r{number:04}", label, text) for number, (text, label) in enumerate(reviews(300))
        )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SENTIMENT_KEY", KEY)
    return tmp_path
