"""The command for the paper's study: reproduce."""

from pathlib import Path

from masa.cli.options import HOW_SURE, OUTPUT, Given, command, only, own
from masa.cli.output import running, say, show
from masa.settings.kinds import text, whole
from masa.settings.run import FILE

STUDY = "datasets, overview, case-study, table1, tradeoffs, levels, convergence, shifts, speed"


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
