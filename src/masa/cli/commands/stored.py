"""Commands about the runs in a store: accept, report, history."""

from pathlib import Path

from masa.cli.options import JSON, QUIET, RUN, Given, command, only, own
from masa.cli.output import print_json, say, show
from masa.errors import UsageError
from masa.settings.kinds import whole

NUMBER = own("", "run", whole("RUN", 0), "Number of a run.", required=True, argument=True)
STORE = only(RUN, "config store")


def _store(given: Given) -> Path:
    from masa.runs.config import store_of

    return store_of(given.read("config"), given.read("store"))


@command(NUMBER, STORE, JSON, QUIET)
def accept(given: Given) -> None:
    """Make a finished run the new baseline. Nothing is asked or paid again."""
    from masa.runs.config import OLD_COMES_FIRST, old_column_of
    from masa.runs.past_runs import accepted
    from masa.storage.store import opened

    with opened(_store(given), make=False) as store:
        found = accepted(store, given.read("run"))
    if given.as_json:
        told = {"run": found.run.id, "name": found.run.name, "baseline": True}
        more = {"updates": found.updates, "at_best": found.at_best}
        print_json({**told, "items": found.items, "answers": found.answers, **more})
        return
    notes = [f"run {found.run.id} is now the baseline of {found.run.name!r}: {found.words}"]
    if old := old_column_of(given.read("config")):
        notes.append(OLD_COMES_FIRST.format(old))
    say(given, notes)


@command(NUMBER, STORE, JSON)
def report(given: Given) -> None:
    """Show a finished assessment again. Asks nothing."""
    from masa.records import Assessment
    from masa.report import terminal
    from masa.storage import history
    from masa.storage.damage import readable
    from masa.storage.store import opened_to_read

    run = given.read("run")
    with opened_to_read(_store(given)) as store:
        found = history.find(store, run)
    if found.result is None:
        raise UsageError(
            f"run {run} is not finished",
            hint="masa report shows finished runs; run its command again to finish it",
        )
    if found.kind not in ("assess", "compare"):
        raise UsageError(
            f"run {run} is a baseline", hint="masa report shows assessments and comparisons"
        )
    stored = {key: value for key, value in found.result.items() if key != "estimate"}
    with readable(store.path, run):
        shown = terminal.assessment(Assessment.from_dict(found.result))
    show(given, stored, shown)


@command(STORE, JSON)
def history(given: Given) -> None:
    """List the runs and which is the baseline."""
    from masa.report import terminal
    from masa.storage import history as past
    from masa.storage.store import opened_to_read

    with opened_to_read(_store(given)) as store:
        runs = past.runs(store)
        damaged = past.damaged_runs(store)
        current = [past.current(store, name) for name in past.names(store)]
    baselines = {run.id for run in current if run is not None}
    keys = ("id", "kind", "name", "created", "finished", "stopped")
    listed = [
        {**{key: getattr(run, key) for key in keys}, "baseline": run.id in baselines}
        for run in runs
    ]
    show(given, {"runs": listed, "damaged": damaged}, terminal.runs(runs, baselines))
    if damaged:
        names = ", ".join(map(str, damaged))
        say(given, [f"runs that were edited or damaged, and cannot be read: {names}"])
