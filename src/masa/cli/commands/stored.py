"""Commands about the runs in a store: accept, report, answers, history."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from masa.cli.options import JSON, QUIET, RUN, Given, command, only, own
from masa.cli.output import print_json, say, show
from masa.errors import UsageError
from masa.report.formats import FORMATS
from masa.settings.kinds import flag, one_of, text, whole
from masa.settings.run import FILE

if TYPE_CHECKING:
    from masa.runs.finished import Finished

NUMBER = own("", "run", whole("RUN", 0), "Number of a run.", required=True, argument=True)
ANY_NUMBER = own("", "run", whole("RUN", 0), "Number of a run; the latest without.", argument=True)
STORE = only(RUN, "config store")


def _store(given: Given) -> Path:
    from masa.runs.config import store_of

    return store_of(given.read("config"), given.read("store"))


def _output(given: Given, name: str = "output") -> Path | None:
    """Give the file to write, which must be none that masa reads."""
    from masa.report.formats import refuse_to_replace
    from masa.runs.config import FILE as CONFIG
    from masa.runs.config import data_of

    output: Path | None = given.read(name)
    config = given.read("config") or CONFIG
    refuse_to_replace(output, [_store(given), config, *data_of(config)])
    return output


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


@command(
    ANY_NUMBER,
    STORE,
    own(
        "Output",
        "format",
        one_of("FORMAT", *FORMATS),
        f"One of {', '.join(FORMATS)}.",
        default="by the ending of --output",
    ),
    own("Output", "output", FILE, "Write to this file instead of the terminal."),
    own("Output", "texts", flag(), "Show the texts of changed items in files, too."),
    JSON,
    QUIET,
)
def report(given: Given) -> None:
    """Show a finished run again, as a text, a page, for a pull request, ... Asks nothing."""
    from masa.report import formats

    output, wanted = _output(given), given.read("format")
    if given.as_json and (wanted or output):
        raise UsageError("--json prints a report", hint="--output FILE.json writes it to a file")
    kind = "json" if given.as_json else formats.chosen(wanted, output)
    texts = "texts" in given or (kind == "text" and output is None)
    found = _read_back(given, texts=texts)
    if kind == "bundle":
        _bundle(given, found.run.id, output)
    else:
        _write(found, kind, output)
    say(given, [*found.notes, *([f"wrote {output}"] if output is not None else [])])


def _write(found: "Finished", kind: str, output: Path | None) -> None:
    """Print a report, or write it to a file."""
    from masa.report import formats

    if kind in formats.PICTURES:
        _picture(found, kind, output)
    elif kind == "text":
        _text(found, output)
    elif output is not None:
        formats.save(formats.written(found.result, kind), output)
    else:
        sys.stdout.write(formats.written(found.result, kind))


def _read_back(given: Given, *, texts: bool) -> "Finished":
    from masa.runs import finished
    from masa.storage.store import opened_to_read

    with opened_to_read(_store(given)) as store:
        run = finished.find(store, given.read("run"))
        if run.kind not in finished.JUDGED:
            return finished.read_back(store, run, None)
        data, notes = finished.data_at_hand(given.read("config"), run)
        return finished.read_back(store, run, data, texts=texts, notes=notes)


def _text(found: "Finished", output: Path | None) -> None:
    from masa.records import Baseline
    from masa.report import formats, terminal

    result = found.result
    picture = (
        terminal.baseline(result) if isinstance(result, Baseline) else terminal.assessment(result)
    )
    if output is None:
        terminal.show(picture)
    else:
        formats.save(terminal.as_text(picture), output)


def _picture(found: "Finished", kind: str, output: Path | None) -> None:
    from masa.records import Assessment
    from masa.report import chart

    if output is None:
        raise UsageError(f"a picture as {kind} needs a file", hint="give --output FILE")
    if not isinstance(found.result, Assessment):
        raise UsageError("a baseline has no change to draw", hint="report an assessment")
    chart.check(output)
    chart.save(chart.shift(found.result), output)


def _bundle(given: Given, run: int, output: Path | None) -> None:
    from masa.runs.bundle import save

    if output is None:
        raise UsageError("a bundle needs a file", hint="give --output FILE.zip")
    save(_store(given), run, output, config=given.read("config"), words="texts" in given)


@command(
    ANY_NUMBER,
    STORE,
    own(
        "Output",
        "output",
        FILE,
        "Write to this file: .csv, .jsonl or .parquet.",
        default="CSV, printed",
    ),
    own("Output", "texts", flag(), "Add the input columns, where the data is at hand."),
    JSON,
    QUIET,
)
def answers(given: Given) -> None:
    """Show everything that was paid for in a run: a row for each answer. Asks nothing."""
    from masa.report import listed
    from masa.runs import finished
    from masa.storage.store import opened_to_read

    output = _output(given)
    with opened_to_read(_store(given)) as store:
        run = finished.any_run(store, given.read("run"))
        data, notes = finished.data_at_hand(given.read("config"), run)
        table, more = finished.answers_of(store, run, data, texts="texts" in given)
    if output is not None:
        listed.save_answers(table, output)
        notes += (f"wrote {len(table):,} answers to {output}",)
    elif given.as_json:
        print_json({"run": table.run, "answers": list(table.records())})
    else:
        sys.stdout.write(listed.answers(table, "csv"))
    say(given, [*notes, *more])


@command(
    own("Run", "name", text("NAME"), "Only runs of this name."),
    own(
        "Run",
        "kind",
        one_of("KIND", "assess", "baseline", "import", "compare"),
        "Only runs of this kind.",
    ),
    own("Run", "since", text("DATE"), "Only runs that began on this day or later: 2026-11-20."),
    own("Run", "most", whole("N", 1), "The newest N runs.", default="50"),
    STORE,
    JSON,
)
def history(given: Given) -> None:
    """List the runs, what came of them, and which is the baseline."""
    from masa.report import terminal
    from masa.runs.past_runs import listed
    from masa.storage import history as past
    from masa.storage.store import opened_to_read

    with opened_to_read(_store(given)) as store:
        runs, baselines = listed(
            store,
            name=given.read("name"),
            kind=given.read("kind"),
            since=given.read("since"),
            most=given.read("most", 50),
        )
        damaged = past.damaged_runs(store)
    told = [one.to_dict(is_baseline=one.id in baselines) for one in runs]
    show(given, {"runs": told, "damaged": damaged}, terminal.runs(runs, baselines))
    if damaged:
        names = ", ".join(map(str, damaged))
        say(given, [f"runs that were edited or damaged, and cannot be read: {names}"])


@command(
    own(
        "", "bundle", FILE, "What masa report --format bundle wrote.", required=True, argument=True
    ),
    JSON,
)
def verify(given: Given) -> int:
    """Compute the result in an evidence bundle again, offline. Exit code 1 where it differs."""
    from masa.report import terminal
    from masa.runs.verify import verify as run

    found = run(given.read("bundle"))
    show(given, found.to_dict(), terminal.verified(found.to_dict()))
    return found.exit_code


@command(
    own("", "file", FILE, "Where to write.", required=True, argument=True),
    own("Run", "run", whole("RUN", 0), "Export this run.", default="the baseline of the name"),
    RUN,
    QUIET,
    name="baseline export",
)
def export_baseline(given: Given) -> None:
    """Write a baseline as a text file for git: keys, labels and answers, no texts."""
    from masa.report import formats
    from masa.runs.baseline_file import written
    from masa.runs.config import Config
    from masa.runs.finished import the_baseline
    from masa.runs.task import labelled_data
    from masa.storage.store import opened_to_read

    config, file = Config.load(given.read("config"), given.flags), _output(given, "file")
    with opened_to_read(_store(given)) as store:
        run = the_baseline(store, given.read("run"), config.name)
        text = written(store, run, labelled_data(config))
    assert file is not None  # noqa: S101 - it is required
    formats.save(text, file)
    say(given, [f"wrote run {run.id} to {file}"])


@command(
    own("", "file", FILE, "What masa baseline export wrote.", required=True, argument=True),
    RUN,
    JSON,
    QUIET,
    name="baseline import",
)
def import_baseline(given: Given) -> None:
    """Make a baseline from git the baseline of its name. Nothing is asked."""
    from masa.runs.baseline_file import imported
    from masa.storage.store import opened

    with opened(_store(given)) as store:
        run = imported(store, given.read("file"), name=given.read("name"), accept=True)
    if given.as_json:
        print_json({"run": run.id, "name": run.name, "baseline": True})
    else:
        answers = (run.result or {}).get("answers", 0)
        say(given, [f"run {run.id} is now the baseline of {run.name!r}: {answers:,} answers"])
