"""The command that takes in what other tools recorded: import."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from masa.cli.options import OUTPUT, Given, command, own
from masa.cli.output import print_json, running, say
from masa.errors import UsageError
from masa.settings.kinds import columns, flag, number, one_of, text

if TYPE_CHECKING:
    from masa.graded import Grades

OF_GRADES = ("score", "human", "pass_at", "label_by")
OF_TABLES = ("label", "id", "answers", "name", "input", "partial")


@command(
    own(
        "",
        "layout",
        text("LAYOUT"),
        "promptfoo, langfuse, table, frugalml, hapi or llmdrift.",
        required=True,
        argument=True,
    ),
    own(
        "",
        "path",
        text("PATH"),
        "What you exported or downloaded: a file, or a folder.",
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
        "Data",
        "input",
        columns(),
        "Of a table: keep a column that the API is shown; may be repeated.",
    ),
    own("Grades", "score", text("NAME"), "The score that is the judge's grade."),
    own("Grades", "human", text("NAME"), "The score that people gave, if it is called otherwise."),
    own(
        "Grades",
        "pass_at",
        number("S", "give a number", -1e9, 1e9),
        "Grades that are numbers: those of at least S pass.",
    ),
    own(
        "Grades",
        "label_by",
        one_of("WHO", "human", "judge"),
        "Whose grades are the labels.",
        default="human, if a person graded any",
    ),
    own(
        "Output",
        "baselines",
        flag(),
        "Also keep each API's earliest answers as a baseline, in FOLDER/masa.db.",
        option="--baselines/--no-baselines",
        default="baselines",
    ),
    own("Output", "force", flag(), "Of grades: replace a configuration that exists."),
    OUTPUT,
    name="import",
)
def take_in(given: Given) -> None:
    """Turn answers that others recorded into labelled data. Nothing is asked.

    What a judge graded (promptfoo, langfuse) becomes items to be graded again; published
    predictions and tables become recorded APIs and baselines.
    """
    if given.read("layout") in ("promptfoo", "langfuse"):
        take_in_grades(given)
        return
    take_in_published(given)


def take_in_published(given: Given) -> None:
    """Turn published predictions into recorded APIs and baselines."""
    from masa.research import published

    refuse_options_of_grades(given)

    out = Path(given.read("out", "masa-data"))
    wanted = published.Columns(
        given.read("label", "label"),
        given.read("id"),
        named_columns(given.read("answers", ())),
        given.read("name"),
        given.read("input", ()),
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
                    "inputs": list(wanted.inputs),
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


def take_in_grades(given: Given) -> None:
    """Turn what a judge graded into labelled items, and write how to ask it again."""
    from masa.cli import draft, judge_draft
    from masa.graded import LAYOUTS, Wanted, save

    for name in OF_TABLES:
        if name in given:
            option = f"--{name}"
            raise UsageError(f"{option} is for other layouts", hint=f"leave out {option}")
    layout, out = given.read("layout"), Path(given.read("out", "masa-data"))
    wanted = Wanted(
        given.read("score"), given.read("human"), given.read("pass_at"), given.read("label_by")
    )
    found = LAYOUTS[layout](Path(given.read("path")), wanted)
    label_by = found.labelled_by(wanted.label_by)
    data, config = out / f"{found.name}.jsonl", out / f"{found.name}.toml"
    written = judge_draft.written(found, data.name, layout=layout, label_by=label_by)
    save(found, data, label_by=label_by)
    draft.save(written, config, force="force" in given)
    _show_grades(given, found, data, config, label_by)


def _show_grades(given: Given, found: "Grades", data: Path, config: Path, label_by: str) -> None:
    from masa.cli.judge_draft import next_steps

    said = {
        "file": str(data),
        "config": str(config),
        "items": len(found.grades),
        "graded_by_people": found.by_people,
        "labels": label_by,
        "judge": found.judge.model or None,
        "as_asked": found.as_asked,
    }
    if given.as_json:
        print_json({"data": [said], "notes": list(found.notes)})
        return
    people = f", {found.by_people:,} of them by a person, too" if found.by_people else ""
    print(f"{data}: {len(found.grades):,} graded outputs{people}; the labels are the {label_by}'s")
    print("\n".join(next_steps(found, config)))
    say(given, found.notes)


def refuse_options_of_grades(given: Given) -> None:
    """Raise for options that only grades have."""
    for name in (*OF_GRADES, "force"):
        if name in given:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option} is for what a judge graded", hint="the layouts are promptfoo, langfuse"
            )
