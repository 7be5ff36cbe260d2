"""Commands on recorded answers, and the demo: replay, demo."""

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
    with running(given) as progress:
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
    tell(case.STORY + "\n")
    result = case.run(seed=given.read("seed", 0), say=tell, quiet=given.quiet or given.as_json)
    if save is not None:
        case.save(result.data, save)
        say(given, [f"wrote {save}"])
    if given.as_json:
        print_json(result.to_dict())
    else:
        terminal.show(case.shown(result))
