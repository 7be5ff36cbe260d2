"""Commands on recorded answers, and the demo: replay, demo."""

from collections.abc import Callable
from pathlib import Path

from masa.cli.options import (
    HOW_SURE,
    JSON,
    OUTPUT,
    PLOT,
    QUIET,
    RECORDED,
    REPLAY,
    Given,
    command,
    only,
    own,
)
from masa.cli.output import print_json, running, say, show
from masa.errors import UsageError
from masa.settings import RecordedColumns, ReplaySettings
from masa.settings.kinds import text
from masa.settings.run import FILE


@command(RECORDED, REPLAY, PLOT, OUTPUT)
def replay(given: Given) -> None:
    """Tell what each method would have cost. Assesses recorded predictions many times."""
    from masa.replays.replay import read_recorded, replayed
    from masa.report import chart, terminal

    columns, settings = given.section(RecordedColumns), given.section(ReplaySettings)
    settings.check_columns(old=columns.old, group=columns.group)
    if "plot" in given:
        chart.check(given.read("plot"))
    with running(given, calculates=True) as progress:
        recorded = read_recorded(columns.path, columns, progress=progress)
        result = replayed(recorded, settings, progress=progress)
    notes = list(result.notes)
    if "plot" in given:
        title = f"{Path(columns.path).name}: {columns.new}"
        chart.save(chart.replay(result, title=title), given.read("plot"))
        notes.append(f"wrote {given.read('plot')}")
    say(given, notes)
    show(given, result.to_dict(), terminal.replay(result, source=columns.path))


@command(
    only(HOW_SURE, "seed"),
    own("Data", "service", text("NAME"), "Play it with the double of a service (masa clients)."),
    own("Output", "save", FILE, "Write the recorded predictions as CSV."),
    JSON,
    QUIET,
)
def demo(given: Given) -> None:
    """See it work on this machine.

    An API is changed silently, and masa finds out: no key, no file.
    """
    from masa.cli import demo as case
    from masa.report import terminal

    save = given.read("save")
    if save is not None and not save.parent.is_dir():
        raise UsageError(
            f"there is no folder {save.parent} to write {save.name} into", hint="make it first"
        )
    tell = (lambda _: None) if given.as_json else terminal.show
    if "service" in given:
        _service_demo(given, tell)
        return
    tell(case.STORY + "\n")
    result = case.run(seed=given.read("seed", 0), say=tell, quiet=given.quiet or given.as_json)
    if save is not None:
        case.save(result.data, save)
        say(given, [f"wrote {save}"])
    if given.as_json:
        print_json(result.to_dict())
    else:
        terminal.show(case.shown(result))


def _service_demo(given: Given, tell: "Callable[[str], None]") -> None:
    """Play the case of a named service."""
    from masa.cli import service_demo
    from masa.report import terminal

    quiet = given.quiet or given.as_json
    seed = given.read("seed", 0)
    result = service_demo.run(given.read("service"), seed=seed, say=tell, quiet=quiet)
    if given.as_json:
        print_json(result.to_dict())
        return
    terminal.show(terminal.assessment(result.found))
    words = f"The double counted {result.calls:,} calls in both runs"
    if result.money:
        words += f" and would have billed {result.money:.6g}"
    say(given, [words])
