"""masa init for every client: what it writes can be read, and names keys that there are."""

import re
import tomllib
from pathlib import Path

import pytest

from command_line import run
from doubled import variables
from masa.cli.api_drafts import api_draft
from masa.clients import Context, make
from masa.clients.catalogue import CATALOGUE
from masa.clients.tables import options_of
from masa.runs.config import Config

CLIENTS = [name for name, entry in CATALOGUE.items() if entry.module]
ROWS = {
    "sentiment": "label,text\npos,a good thing\nneg,a bad thing\n",
    "facial emotion": "label,file\nhappy,a.png\nsad,b.png\n",
    "spoken commands": "label,file\nyes,a.wav\nno,b.wav\n",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_written_makes_the_client(client: str, tmp_path: Path) -> None:
    entry = CATALOGUE[client]
    (tmp_path / "d.csv").write_text(ROWS.get(entry.task, ROWS["sentiment"]))
    name = f"{client}:mine:classify" if client == "python" else client
    done = run("init", "d.csv", "--api", name, "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = tomllib.loads((tmp_path / "masa.toml").read_text())
    given = dict.fromkeys((*entry.variables, *written.get("secrets", ())), "https://1.example.com")
    options = dict(written["api"])
    if entry.extra == "google":
        given, options["key"] = {"GOOGLE_API_KEY": "k-123456789"}, "${GOOGLE_API_KEY}"
    with variables(given):
        api = Config.load(tmp_path / "masa.toml").api
        assert api is not None
        assert api.client == name
        context = Context(("pos", "neg", "happy"), ("text",), given, folder=tmp_path, imports=False)
        assert make(options.pop("client"), options, context)


@pytest.mark.parametrize("client", CLIENTS)
def test_every_key_that_is_written_as_a_comment_is_one_of_the_clients(client: str) -> None:
    draft = api_draft(client, ("pos", "neg"))
    keys = set(re.findall(r"^(?:# )?(\w+) = ", draft, re.MULTILINE))
    assert keys <= {"client", *options_of(client).model_fields}
    assert "<" not in re.sub(r"#.*", "", draft)
    if CATALOGUE[client].task == "language model":
        assert '# prompt = "Classify ... {labels} ... {input}"' in draft


def test_a_client_that_there_is_not_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(ROWS["sentiment"])
    done = run("init", "d.csv", "--api", "amazon-comprehnd", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'amazon-comprehend'?" in done.stderr
    assert not (tmp_path / "masa.toml").exists()


def test_a_column_called_sentiment_is_the_label_in_a_small_file_too(tmp_path: Path) -> None:
    rows = "".join(f"{i},thing {i},{('pos', 'neg', 'neu')[i % 3]}\n" for i in range(6))
    (tmp_path / "d.csv").write_text(f"id,text,sentiment\n{rows}")
    assert run("init", "d.csv", "--yes", cwd=tmp_path).returncode == 0
    data = tomllib.loads((tmp_path / "masa.toml").read_text())["data"]
    assert data == {"path": "d.csv", "label": "sentiment", "id": "id", "input": "text"}
