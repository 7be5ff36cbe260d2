"""The page of each named service: its keys are those of the client, its masa.toml works."""

import re
import tomllib
from pathlib import Path

import pytest

import masa
from doubled import variables
from masa.clients import Context, make
from masa.clients.catalogue import CATALOGUE
from masa.clients.tables import options_of, table, with_tables

DOCS = Path(masa.__file__).parents[2] / "docs"
NAMED = [name for name, entry in CATALOGUE.items() if "." in entry.module[len("masa.clients.") :]]

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="needs the docs of a checkout")


@pytest.mark.parametrize("page", ["config.md", *(f"services/{name}.md" for name in NAMED)])
def test_the_tables_of_keys_are_those_of_the_clients(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert "<!-- keys: " in text
    assert with_tables(text) == text


@pytest.mark.parametrize("client", [*NAMED, "http", "python"])
def test_every_key_of_a_client_is_explained(client: str) -> None:
    rows = table(client).splitlines()[2:]
    assert {row.split("`")[1] for row in rows} == set(options_of(client).model_fields)


@pytest.mark.parametrize("service", NAMED)
def test_the_configuration_on_the_page_makes_the_client(service: str, tmp_path: Path) -> None:
    text = (DOCS / "services" / f"{service}.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    found = tomllib.loads(block[1])
    entry = CATALOGUE[service]
    given = dict.fromkeys(entry.variables, "https://1.example.com")
    labels = {"sentiment": ("positive", "negative"), "facial emotion": ("joy", "anger")}
    options = dict(found["api"])
    if entry.extra == "google":
        given, options["key"] = {"GOOGLE_API_KEY": "k-123456789"}, "${GOOGLE_API_KEY}"
    with variables(given):
        declared = {name: given[name] for name in found.get("secrets", given)}
        context = Context(
            labels.get(entry.task, ("yes", "no")),
            (found["data"]["input"],),
            declared,
            folder=tmp_path,
        )
        client = make(options.pop("client"), options, context)
    assert client.describe()["api"]
    assert found["budget"]["queries"] > 0


def test_the_list_of_services_has_every_page() -> None:
    text = (DOCS / "services" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", text)) == set(NAMED)
