"""What the package promises as a package."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import masa

ROOT = Path(__file__).resolve().parents[1]


def test_public_names_are_listed_and_exist() -> None:
    assert sorted(masa.__all__) == sorted({*masa.__all__})
    for name in masa.__all__:
        assert getattr(masa, name) is not None
    assert dir(masa) == sorted(masa.__all__)
    home = [name for names in masa._HOME.values() for name in names.split()]
    assert sorted([*home, "__version__"]) == sorted(masa.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        masa.nonsense  # noqa: B018


def test_the_wheel_works_outside_the_checkout(tmp_path: Path) -> None:
    """Built here, unpacked elsewhere.

    Run from there with nothing of the checkout on the path.
    """
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("masa_shift-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert "masa/py.typed" in names
    assert any(name.endswith("LICENSE") for name in names)
    assert not [name for name in names if not name.startswith(("masa/", "masa_shift-"))]
    (tmp_path / "d.csv").write_text("label,new\n" + "a,a\nb,a\n" * 30)
    code = (
        "import sys; sys.path = [p for p in sys.path if 'src' not in p.split('/')]; sys.path.insert(0, 'site');"
        "import masa; assert 'site' in masa.__file__, masa.__file__; from masa.cli.main import main;"
        "sys.exit(main(['replay', 'd.csv', '--label', 'label', '--new', 'new', '--runs', '5', '--json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"items": 60' in done.stdout


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    table = page[: page.index("## From data")]
    for name in masa.__all__:
        assert f"`{name}`" in table, name
