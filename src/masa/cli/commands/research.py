"""Commands for the paper's study: import, reproduce."""

from pathlib import Path
from typing import Any

from masa.cli.options import HOW_SURE, OUTPUT, Given, command, only, own
from masa.cli.output import print_json, running, say, show
from masa.errors import UsageError
from masa.settings.kinds import columns, flag, text, whole
from masa.settings.run import FILE

STUDY = "datasets, overview, case-study, table1, tradeoffs, levels, convergence, shifts, speed"


@command(
    own(
        "",
        "layout",
        text("LAYOUT"),
        "frugalml, hapi, llmdrift or table.",
        required=True,
        argument=True,
    ),
    own(
        "",
        "path",
        text("PATH"),
        "What you downloaded: a folder, or a file.",
        required=True,
        argument=True,
    ),
    own("Output", "out", text("FOLDER"), "Where to write.", default="masa-data"),
    own("Data", "partial", flag(), "Leave out what is missing instead of refusing it."),
    own(
        "Data",
        "label",
        text("COL"),
        "Of a table: the column with the true labels.",
        default="label",
    ),
    own("Data", "id", text("COL"), "Of a table: the column with ids."),
    own(
        "Data",
        "answers",
        columns("API@DATE=COL"),
        "Of a table: a column with answers.",
        default="those named API.prediction",
    ),
    own("Data", "name", text("NAME"), "Of a table: what the data set is called."),
    own(
        "Output",
        "baselines",
        flag(),
        "Also keep each API's earliest answers as a baseline, in FOLDER/masa.db.",
        option="--baselines/--no-baselines",
        default="baselines",
    ),
    OUTPUT,
    name="import",
)
def take_in(given: Given) -> None:
    """Turn published predictions into recorded APIs and baselines.

    Reads what you downloaded; asks nothing.
    """
    from masa.research import published

    out = Path(given.read("out", "masa-data"))
    wanted = published.Columns(
        given.read("label", "label"),
        given.read("id"),
        named_columns(given.read("answers", ())),
        given.read("name"),
    )
    made: list[dict[str, Any]] = []
    notes: list[str] = []
    with running(given) as progress:
        for collection in published.collections(
            given.read("layout"),
            Path(given.read("path")),
            partial="partial" in given,
            columns=wanted,
        ):
            notes += collection.notes
            if not collection.recordings:
                continue
            if progress is not None:
                progress(collection.name, 0.5)
            kept = published.save(collection, out)
            known = []
            if given.wanted("baselines"):
                known = published.baselines(kept, out / "masa.db")
            made.append(
                {
                    "name": kept.name,
                    "file": str(kept.path),
                    "items": len(collection.ids),
                    "recorded": list(kept.recorded),
                    "baselines": known,
                }
            )
    _show_imported(given, made, notes, out)


def _show_imported(given: Given, made: list[dict[str, Any]], notes: list[str], out: Path) -> None:
    from masa.research import published

    if given.as_json:
        print_json({"data": made, "notes": notes})
        return
    for one in made:
        print(f"{one['file']}: {one['items']:,} items, answers of {', '.join(one['recorded'])}")
    print(published.how_to_use(made, out) if made else "nothing to import")
    say(given, notes)


def named_columns(given: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=COLUMN pairs.

    >>> named_columns(("gpt-4@0613=june answers",))
    {'gpt-4@0613': 'june answers'}
    """
    found = {}
    for pair in given:
        name, equals, column = pair.partition("=")
        if not (name.strip() and equals and column):
            raise UsageError(f"--answers is {pair!r}", hint="give API=COLUMN or API@DATE=COLUMN")
        found[name.strip()] = column
    return found


@command(
    own("", "what", text("WHAT"), f"{STUDY} or all.", required=True, argument=True),
    own(
        "Data",
        "data",
        FILE,
        "A folder that masa import made, or a download of FrugalML or HAPI.",
        required=True,
    ),
    own("Output", "out", FILE, "Where to write tables, charts and pages.", default="masa-paper"),
    own("How sure", "runs", whole("R", 1), "Runs per figure; the paper has 1,500.", default="1500"),
    only(HOW_SURE, "seed"),
    OUTPUT,
)
def reproduce(given: Given) -> None:
    """Carry out the paper's study.

    Writes its tables and figures, with the published numbers beside ours.
    """
    from masa.research import book, summary
    from masa.research.experiments import data_sets, find, wanted
    from masa.research.study import PaperStudy

    chosen, out = wanted(given.read("what")), given.read("out", Path("masa-paper"))
    runs, seed, data = given.read("runs", 1500), given.read("seed", 0), given.read("data")
    book.check(out)
    findings = []
    with running(given) as progress:
        sets, notes = data_sets(data, out)
        study = PaperStudy(sets, out / "parts", runs=runs, seed=seed, progress=progress)
        try:
            for name in chosen:
                findings.append(find(study, name))
                origin = f"{runs:,} runs, seed {seed}, data of {data}"
                book.write(findings[-1], out, origin=origin)
        except KeyboardInterrupt:
            say(given, [f"what is done is kept in {out}; the same command resumes there"])
            raise
        finally:
            first = book.contents(findings, out)
    show(given, {one.what: one.to_dict() for one in findings}, summary.findings(findings))
    wrote = f"wrote {first} and what it leads to: pages, charts (SVG, PNG) and tables (CSV)"
    say(given, [*notes, wrote])
