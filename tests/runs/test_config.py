"""masa.toml."""

import json
from pathlib import Path

import pytest

from command_line import run


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[data]\npath = "reviews.csv"\nlable = "label"\n',
            ("unknown key 'data.lable'", "did you mean 'label'?"),
        ),
        ("[dta]\n", ("unknown key 'dta'", "did you mean 'data'?")),
        ('[data]\npath = "reviews.csv"\n', ("no column of labels",)),
        ('[data]\npath = "reviews.csv"\nlabel = "label"\n', ("no API was given",)),
        (
            '[data]\npath = "nowhere.csv"\nlabel = "label"\n[api]\nclient = "http"\n',
            ("nowhere.csv does not exist",),
        ),
        (
            '[data]\npath = "reviews.csv"\nlabel = "label"\n[api]\nclient = "htp"\n',
            ("no client 'htp'", "did you mean 'http'?"),
        ),
        (
            '[data]\npath = "reviews.csv"\nlabel = "label"\n[api]\nclient = "http"\n'
            'url = "http://x/{text}"\nlabel = "a"\nprice = 1\n',
            ("{text}",),
        ),
        ("[data\n", ("is not TOML",)),
        (
            '[budget]\nqueries = 0\n[data]\npath = "reviews.csv"\nlabel = "label"\n',
            ("budget.queries", "1 or more"),
        ),
        (
            '[limits]\nrate = "fast"\n[data]\npath = "reviews.csv"\nlabel = "label"\n',
            ("limits.rate", "600/min"),
        ),
    ],
)
def test_bad_configurations_are_explained(project: Path, text: str, words: tuple[str, ...]) -> None:
    (project / "masa.toml").write_text(text)
    done = run("validate", "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    for word in words:
        assert word in error["message"] + error["hint"]
    assert error["hint"]
