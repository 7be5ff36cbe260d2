"""What people read."""

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console, RenderableType

from command_line import configure, run
from masa.errors import UsageError
from masa.records import Curve, Matrix, Point, Replay, Shift
from masa.report import chart, terminal
from server import Server


def shown(content: RenderableType) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=100).print(content)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def matrix(right: float) -> Matrix:
    return Matrix(("a", "b"), ("a", "b"), np.array([[right, 0.5 - right], [0.0, 0.5]]))


@pytest.fixture
def result() -> Replay:
    def curve(method: str, needed: int | None) -> Curve:
        path = tuple(Point(n, 1 / n, 2 / n) for n in (10, 100, 200, 300, 10_000))
        return Curve(
            method,
            (100, 200),
            (0.01**2, 0.005**2),
            (0.02, 0.01),
            (0.0, None),
            (0.0, 0.0),
            needed,
            (needed, None),
            1e6,
            path,
        )

    curves = (curve("uniform", 200), curve("masa", 150), curve("optimal", None))
    return Replay(
        items=1000,
        labels=2,
        predictions=2,
        strata=6,
        difficulty="'hard'",
        runs=50,
        seed=0,
        replacement=False,
        target_error=0.01,
        confidence=0.95,
        shift=Shift(matrix(0.5), matrix(0.4)),
        no_change_error=0.1 * 2**0.5,
        curves=curves,
        notes=(),
    )


def test_a_replay_shows_each_number_in_its_place(result: Replay) -> None:
    lines = shown(terminal.replay(result, source="data.csv"))
    cells = {
        line.split()[0]: line.split()[1:]
        for line in lines
        if line.split()[:1] in (["uniform"], ["masa"], ["optimal"])
    }
    assert cells == {
        "uniform": ["200", "200-?", "-"],
        "masa": ["150", "150-?", "25%", "-"],
        "optimal": ["not", "reached", "-", "-"],
    }
    assert "masa                       1%     2%   0.5%     1%" in lines
    assert "What changed: right answers 100% -> 90%; 'a' taken for 'b' 0% -> 20%" in lines
    assert "saying nothing changed  14.1%  14.1%  14.1%  14.1%" in lines


def test_an_estimate_stands_between_before_and_truth() -> None:
    found, true = Shift(matrix(0.5), matrix(0.45)), Shift(matrix(0.5), matrix(0.4))
    lines = shown(terminal.estimate(found, true, queries=10, items=100))
    assert lines[1].split() == ["right", "answers", "100%", "95%", "90%"]
    assert lines[2].split() == ["'a'", "taken", "for", "'b'", "0%", "10%", "20%"]
    assert "7.07%; of saying nothing changed: 14.1%" in lines[-1]


def test_the_chart_draws_what_its_axis_says(result: Replay) -> None:
    """The error that 95% of runs stay below, in percent, down to a third of the target."""
    drawn = chart.replay(result, title="t").to_dict()
    (rows,) = (rows for rows in drawn["datasets"].values() if "queries" in rows[0])
    masa = [(row["queries"], row["error"]) for row in rows if row["method"] == "masa"]
    assert masa == [
        (100, pytest.approx(2.0)),
        (200, pytest.approx(1.0)),
        (300, pytest.approx(2 / 3)),
        (10_000, pytest.approx(1 / 3)),
    ]


def test_a_chart_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    for name in ("a.pdf", "nowhere/a.svg", "."):
        with pytest.raises(UsageError, match=r"chart|folder"):
            chart.check(tmp_path / name)


def test_labels_cannot_steer_the_terminal(server: Server, project: Path) -> None:
    configure(project, server)
    server.change = lambda text, label: "\x1b[31mred\x07" if "lovely" in text else label
    for words in (("baseline",), ("assess", "--old", "label"), ("history",)):
        done = run(*words)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr
