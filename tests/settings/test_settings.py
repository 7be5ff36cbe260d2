"""Settings: one definition each, read alike wherever a value comes from."""

from dataclasses import fields
from pathlib import Path

import pytest
import typer

import masa
from masa.cli.main import COMMANDS, make_app
from masa.runs.config import Config
from masa.settings import Columns, Limits, ReplaySettings, Settings
from masa.settings.kinds import mix, number
from masa.settings.setting import NO_OPTION, settings_of
from masa.settings.tables import SECTIONS, with_tables


def test_a_mix_is_read_from_pairs_json_and_files(tmp_path: Path) -> None:
    (tmp_path / "mix.json").write_text('{"a,b": 1, "c=d": 2}')
    assert mix().read(str(tmp_path / "mix.json")) == {"a,b": 1.0, "c=d": 2.0}
    assert mix().read('{"x": 0.5}') == {"x": 0.5}
    assert mix().read("a=b=3,c=1e-3") == {"a=b": 3.0, "c": 0.001}


def test_percentages_are_the_shares_they_say() -> None:
    share = number("P", "give a share", 0.0, 1.0)
    for tenths in range(1, 1000):
        assert share.read(f"{tenths / 10}%") == tenths / 1000
    with pytest.raises(ValueError, match="give a share"):
        share.read("%")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("levels", 0),
        ("levels", 101),
        ("levels", "three"),
        ("seed", -1),
        ("seed", 2**63),
        ("confidence", 0.4),
        ("confidence", 1.0),
        ("method", "optimal"),
        ("canary", -1),
        ("decide", "yes"),
        ("target_error", 0.0),
    ],
)
def test_a_range_is_the_same_in_python_in_toml_and_on_the_command_line(
    name: str, value: object, tmp_path: Path
) -> None:
    with pytest.raises(masa.UsageError, match=name):
        Settings(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(masa.MasaError, match="--" + name.replace("_", "-")):
        Config.load(None, {"data.path": "d.csv", "data.label": "y", f"assess.{name}": value})
    written = f'"{value}"' if isinstance(value, str) else str(value)
    file = tmp_path / "masa.toml"
    file.write_text(f'[data]\npath = "d.csv"\nlabel = "y"\n[assess]\n{name} = {written}\n')
    with pytest.raises(masa.ConfigError, match=f"assess.{name}"):
        Config.load(file)


def test_replays_and_assessments_share_what_they_share() -> None:
    """Levels, mixes and confidences have one default and one range."""
    first = {one.name: one for one in settings_of(Settings)}
    for one in settings_of(ReplaySettings):
        if one.name in first and one.name not in ("target_error", "seed"):
            assert one.setting is first[one.name].setting, one.name


def test_every_key_of_masa_toml_is_an_option_of_some_command() -> None:
    keys = {option.key for command in COMMANDS for option in command.options if option.key}
    for section, settings in SECTIONS.items():
        for one in settings_of(settings):
            assert (f"{section}.{one.name}" in keys) is (one.option != NO_OPTION)


def test_the_tables_in_the_docs_are_those_of_the_settings() -> None:
    page = (Path(masa.__file__).parents[2] / "docs" / "config.md").read_text()
    assert "| `levels` |" in page
    assert with_tables(page) == page


def test_help_shows_the_options_in_groups_with_their_defaults() -> None:
    parser = typer.main.get_command(make_app(["assess"]))
    with parser.make_context("masa", ["assess"], resilient_parsing=True) as context:
        command = parser.get_command(context, "assess")  # type: ignore[attr-defined]
        text = command.get_help(context)
    headings = [line for line in text.splitlines() if line.endswith(":") and line[0].isalpha()]
    assert headings == ["Arguments:", "Data:", "API:", "Budget:", "How sure:", "Run:", "Output:"]
    assert "[default: 3]" in text


def test_loose_options_override_settings_that_are_given_whole(tmp_path: Path) -> None:
    """`assess_config(path, tolerance=0.05)` once dropped the 0.05 without a word."""
    rows = "\n".join(
        f"{'ab'[i % 2]},{'ab'[i % 2]},{'ab'[(i + (i % 50 == 0)) % 2]}" for i in range(400)
    )
    (tmp_path / "d.csv").write_text("label,old,new\n" + rows + "\n")
    file = tmp_path / "masa.toml"
    file.write_text(
        '[data]\npath = "d.csv"\nlabel = "label"\nold = "old"\n[api]\nclient = "replay:new"\n'
    )
    found = masa.assess_config(file, store=None)
    assert (found.tolerance, found.verdict) == (0.01, "changed")
    wider = masa.assess_config(file, store=None, tolerance=0.05)
    assert (wider.tolerance, wider.verdict) == (0.05, "unchanged")
    with pytest.raises(masa.UsageError, match="there is no setting 'tolerence'"):
        masa.assess_config(file, store=None, tolerence=0.05)


def test_settings_are_frozen_and_have_help() -> None:
    for section in (Settings, Limits, Columns, ReplaySettings):
        for one in settings_of(section):
            assert one.setting.help.endswith("."), one.name
        assert all(field.init for field in fields(section))
