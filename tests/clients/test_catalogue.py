"""masa clients: what there is, what it needs, what it costs; never the value of a key."""

import json
import subprocess
import sys
from importlib import import_module

import pytest

from command_line import run
from doubled import variables
from masa.clients import listed
from masa.clients.catalogue import CATALOGUE
from masa.clients.prices import MODELS, TARIFFS
from masa.clients.services.service import SPELLINGS

SECRET = "sk-never-shown-0123456789"


def test_keys_are_said_to_be_set_or_not_and_never_shown() -> None:
    with variables({"OPENAI_API_KEY": SECRET, "GEMINI_API_KEY": ""}):
        words = run("clients").stdout
        found = json.loads(run("clients", "--json").stdout)["clients"]
    assert "OPENAI_API_KEY is set" in words
    assert "GEMINI_API_KEY is not set" in words
    assert SECRET not in words + json.dumps(found)
    assert found["openai"]["variables"] == {"OPENAI_API_KEY": True}
    assert found["gemini"]["variables"] == {"GEMINI_API_KEY": False}
    assert set(CATALOGUE) <= set(found)
    comprehend = found["amazon-comprehend"]
    assert (comprehend["batch"], comprehend["price"]["amount"]) == (25, 0.0001)
    assert comprehend["price"]["date"] in words
    assert found["anthropic"]["models"]["claude-haiku-4-5"]["output"] == 5.0
    assert max(map(len, words.splitlines())) <= 100


def test_what_is_not_installed_says_how_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("masa.clients.catalogue.find_spec", lambda _: None)
    lines = "\n".join(line for entry in listed() for line in entry.lines)
    for extra in ("amazon", "google", "ibm"):
        assert f"is not installed: pip install 'masa-shift[{extra}]'" in lines
    assert not CATALOGUE["ibm-speech"].to_dict()["installed"]


def test_the_tables_agree() -> None:
    assert set(TARIFFS) <= set(CATALOGUE)
    for entry in CATALOGUE.values():
        assert set(entry.says) <= set(SPELLINGS)
        if entry.module:
            assert callable(import_module(entry.module).make)
    beginnings = tuple(entry.models for entry in CATALOGUE.values() if entry.models)
    assert all(name.startswith(beginnings) for name in MODELS)


def test_listing_imports_no_package_of_a_vendor() -> None:
    code = (
        "import sys\n"
        "from masa.clients import listed\n"
        "[entry.lines for entry in listed()]\n"
        "heavy = {'boto3', 'botocore', 'ibm_watson', 'aiohttp', 'duckdb'} & set(sys.modules)\n"
        "print(sorted(heavy), any(name.startswith('google.cloud.') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False"
