"""In a notebook: a bar shows how far a run is, and is gone at the end."""

import sys
import types
from typing import Any

import pytest

import masa


class ZMQInteractiveShell:
    """The name of the shell of a notebook."""


def test_a_notebook_shows_a_bar_and_takes_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Shown:
        def update(self, content: str) -> None:
            shown.append(content)

    def display(content: str, **_: Any) -> Shown:
        shown.append(content)
        return Shown()

    ipython, place = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    place.HTML, place.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", place)
    data = masa.Dataset.of(
        ["a", "b"] * 200, predictions={"old": ["a", "b"] * 200, "new": ["a", "a"] * 200}
    )
    masa.assess(data, "replay:new", baseline="old", budget=300, store=None)
    assert shown[0] == ""
    assert any("<progress" in one and "queries" in one for one in shown)
    assert shown[-1] == ""
    count = len(shown)
    seen: list[str] = []
    masa.assess(
        data,
        "replay:new",
        baseline="old",
        budget=30,
        store=None,
        progress=lambda what, _: seen.append(what),
    )
    assert seen
    assert len(shown) == count
