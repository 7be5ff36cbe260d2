"""What several tests use."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def frugalml() -> Path:
    """Real API predictions; they are not part of the project."""
    folder = SHARED / "frugalml"
    if not folder.is_dir():
        pytest.skip(f"needs the recorded predictions in {folder}")
    return folder
