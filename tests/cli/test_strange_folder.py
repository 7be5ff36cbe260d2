"""A masa.toml from somebody else: what it can make masa run, and where it can send secrets."""

from pathlib import Path

import pytest

from command_line import VERDICTS, configure, run
from server import KEY, Server

DATA = """
[data]
path = "reviews.csv"
label = "label"
id = "id"
input = "text"
old = "label"

[budget]
queries = 20

"""


def write(folder: Path, api: str, *, secrets: str = "") -> None:
    (folder / "masa.toml").write_text(secrets + DATA + api)


def http(url: str, variable: str = "SENTIMENT_KEY", *, table: str = "api") -> str:
    return f"""
[{table}]
client = "http"
url = "{url}/classify"
headers = {{ Authorization = "Bearer ${{{variable}}}" }}
body = {{ text = "{{text}}" }}
label = "result.label"
price = "queries-only"
"""


def test_nothing_is_imported_unless_something_is_asked(project: Path) -> None:
    (project / "theirs.py").write_text(
        "from pathlib import Path\nPath('ran').touch()\ndef f(text):\n    return 'pos'\n"
    )
    write(project, '[api]\nclient = "python:theirs:f"\nprice = 0\n')
    for command in ("validate", "plan"):
        shown = run(command)
        assert shown.returncode == 0, shown.stderr
        assert not (project / "ran").exists()
    assert "theirs:f was not imported" in run("validate").stderr
    assert run("validate", "--load-client").returncode == 0
    assert (project / "ran").exists()


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:eval", "typer.main:os.getenv", "json:loads"]
)
def test_functions_of_python_itself_are_no_client(project: Path, name: str) -> None:
    write(project, f'[api]\nclient = "python:{name}"\nprice = 0\n')
    shown = run("assess", "--yes")
    assert shown.returncode == 2
    assert "is a part of Python, not an API" in shown.stderr


def test_a_file_is_never_run_in_place_of_a_package(project: Path) -> None:
    for package in ("alembic", "aiohttp", "scipy"):
        (project / f"{package}.py").write_text(f"open('ran-{package}', 'w')\nraise SystemExit(9)\n")
    (project / "mine.py").write_text("import helper\ndef f(text):\n    return helper.label\n")
    (project / "helper.py").write_text("label = 'pos'\n")
    write(project, '[api]\nclient = "python:mine:f"\nprice = 0\n')
    shown = run("assess", "--yes")
    assert shown.returncode in VERDICTS, shown.stderr
    assert not list(project.glob("ran-*"))


def test_a_variable_that_is_not_declared_is_not_sent(server: Server, project: Path) -> None:
    write(project, http(server.url))
    shown = run("assess", "--yes")
    assert shown.returncode == 2
    host = server.url.removeprefix("http://")
    assert f"SENTIMENT_KEY is not declared as a secret of {host}" in shown.stderr
    assert 'secrets = ["SENTIMENT_KEY"]' in shown.stderr
    assert not server.requests
    write(project, http(server.url), secrets='secrets = ["SENTIMENT_KEY"]\n')
    assert run("assess", "--yes").returncode in VERDICTS
    assert len(server.requests) == 20


def test_a_secret_goes_to_one_host(server: Server, project: Path) -> None:
    with Server() as other:
        apis = http(server.url) + http(other.url, table="apis.other")
        write(project, apis, secrets='secrets = ["SENTIMENT_KEY"]\n')
        shown = run("compare", "api", "other", "--yes")
        assert shown.returncode == 2
        assert "SENTIMENT_KEY would go to" in shown.stderr
        assert not server.requests
        assert not other.requests


@pytest.mark.parametrize("host", ["${SENTIMENT_KEY}.example.com", "{text}", "api.{text}.com:80"])
def test_neither_a_secret_nor_an_input_names_the_host(project: Path, host: str) -> None:
    write(project, http(f"http://{host}"), secrets='secrets = ["SENTIMENT_KEY"]\n')
    shown = run("validate")
    assert shown.returncode == 2
    assert "does not say which host it is" in shown.stderr


def test_a_key_of_openai_goes_nowhere_else(
    server: Server, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    api = '[api]\nclient = "openai"\nmodel = "tiny"\nprice = "queries-only"\n'
    write(project, api)
    assert run("validate").returncode == 0
    write(project, f'{api}base_url = "{server.url}/v1"\n')
    shown = run("assess", "--yes")
    assert shown.returncode == 2
    assert "OPENAI_API_KEY is not declared" in shown.stderr
    assert not server.requests


@pytest.mark.parametrize("given", ['"API_KEY"', "[1]", "{}"])
def test_secrets_are_a_list_of_names(server: Server, project: Path, given: str) -> None:
    configure(project, server)
    path = project / "masa.toml"
    text = path.read_text().replace('["SENTIMENT_KEY", "OTHER_KEY"]', given)
    path.write_text(text)
    shown = run("validate")
    assert shown.returncode == 2
    assert "secrets is not a list of names" in shown.stderr
