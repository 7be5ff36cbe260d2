"""Commands that make ready for a run: init, validate, clients, difficulty."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from masa.cli.options import (
    API,
    BUDGET,
    DATA,
    HOW_SURE,
    JSON,
    OUTPUT,
    QUIET,
    RUN,
    Given,
    command,
    only,
    own,
    required,
    without,
)
from masa.cli.output import print_json, running, say
from masa.errors import ApiError, UsageError
from masa.settings.kinds import flag, text, whole
from masa.settings.run import DEFAULT_STORE, FILE

if TYPE_CHECKING:
    from masa.cli.draft import Guess
    from masa.data.cheap_model import Cheap
    from masa.data.dataset import Dataset
    from masa.runs.task import Task


@command(
    required(only(DATA, "path label id input difficulty old"), "path"),
    own(
        "API",
        "api",
        text("CLIENT"),
        "A client: amazon-comprehend, openai, http, ... (masa clients lists them).",
        default="http",
    ),
    only(BUDGET, "queries yes"),
    own("Output", "out", FILE, "Where to write.", default="masa.toml"),
    own("Output", "force", flag(), "Replace a file that exists."),
    JSON,
    QUIET,
)
def init(given: Given) -> None:
    """Look at a data file and write a masa.toml. Asks what it cannot tell, unless it is told."""
    from masa.cli import draft
    from masa.clients import offered, unknown
    from masa.data.files import Table

    data, out = given.read("path"), given.read("out", Path("masa.toml"))
    api = given.read("api", "http")
    kind = api.partition(":")[0]
    if kind not in offered():
        raise unknown(kind)
    table = Table.open(data)
    profiles = table.profile()
    say(given, [draft.looked_at(table, profiles)])
    chosen = _chosen(given, draft.guess(profiles), table.columns)
    path = data if Path(data).is_absolute() else os.path.relpath(data, out.parent)
    written = draft.written(
        path,
        chosen,
        api=api,
        budget=given.read("queries"),
        old=given.read("old"),
        labels=draft.labels_in(profiles, chosen.label),
    )
    draft.save(written, out, force="force" in given)
    if given.as_json:
        print_json({"wrote": str(out), **chosen.to_dict()})
    say(given, [f"wrote {out}: look it over, then masa validate"])


def _chosen(given: Given, found: "Guess", known: list[str]) -> "Guess":
    """Take which column is what from the options, from the user, or from the guess."""
    from masa.cli.draft import Guess

    asking = sys.stdin.isatty() and sys.stderr.isatty() and "yes" not in given

    def decide(what: str, name: str, guessed: str | None) -> str | None:
        return _decided(what, given.read(name), guessed, known, asking=asking)

    difficulty = "Column that tells easy items from hard ones (empty for none)"
    chosen = Guess(
        label=decide("Column with the true labels", "label", found.label),
        id=decide("Column with ids (empty for none)", "id", found.id),
        input=given.read("input") or _decided_input(found.input, known, asking=asking),
        predictions=found.predictions,
        difficulty=decide(difficulty, "difficulty", found.difficulty),
    )
    if chosen.label is None:
        raise UsageError(
            f"no column of {given.read('path')} looks like labels",
            hint=f"name it with --label COL; there are {', '.join(known[:20])}",
        )
    return chosen


def _decided_input(guessed: tuple[str, ...], known: list[str], *, asking: bool) -> tuple[str, ...]:
    """Take the input columns that the user says, or else the guess."""
    if not asking:
        return guessed
    what = "Column that the API is shown (empty for none)"
    said = typer.prompt(what, default=", ".join(guessed), err=True)
    names = [said] if said in known else [part.strip() for part in said.split(",")]
    return tuple(name for name in names if _decided("", name, None, known, asking=False))


def _decided(
    what: str, given: str | None, guessed: str | None, known: list[str], *, asking: bool
) -> str | None:
    """Take what was given, or what the user says, or else the guess."""
    if given is None and asking:
        given = typer.prompt(what, default=guessed or "", err=True)
    chosen = guessed if given is None else given
    if chosen and chosen not in known:
        raise UsageError(
            f"there is no column {chosen!r}", hint=f"there are {', '.join(known[:20])}"
        )
    return chosen or None


@command(
    without(DATA, "text image sound"),
    API,
    without(BUDGET, "yes"),
    only(HOW_SURE, "method levels mix weights seed"),
    own("Run", "load_client", flag(), "Import the module of a python: client, too."),
    own("Run", "ask", whole("N", 1, 20), "Also send N calls, after asking, and show the answers."),
    only(BUDGET, "yes"),
    RUN,
    JSON,
    QUIET,
)
def validate(given: Given) -> None:
    """Check settings, data and client. Without --ask nothing is asked or spent.

    No code that masa.toml names is run unless you say so: the file may be a stranger's.
    """
    from masa.report.words import plain
    from masa.runs.config import Config
    from masa.runs.task import task
    from masa.runs.validate import asked, validated

    config = Config.load(given.read("config"), given.flags)
    calls = given.read("ask", 0)
    ready = task(config, imports="load_client" in given or calls > 0)
    found = validated(ready)
    say(given, found.notes)
    answers = []
    if calls:
        confirm_calls(ready, given, calls)
        answers = asked(ready, calls)
    if given.as_json:
        print_json({**found.to_dict(), "answers": [one.to_dict() for one in answers]})
    else:
        lines = [*found.lines, *(one.text for one in answers)]
        print("\n".join([*map(plain, lines), *found.last_lines(answers)]))
    if answers and all(one.error is not None for one in answers):
        raise ApiError("no call was answered", hint="see above what each of them got")


def confirm_calls(ready: "Task", given: Given, calls: int) -> None:
    """Ask before anything is spent."""
    from masa.cli.commands.running import confirm
    from masa.records import money_text
    from masa.runs.session import costs_nothing

    if "yes" in given or costs_nothing(ready.client):
        return
    words = f"{calls} calls" if calls > 1 else "1 call"
    if ready.client.priced:
        prices = [ready.client.price(ready.data.item(place)) for place in range(calls)]
        words += f", at most {money_text(sum(prices))}"
    confirm(words, "give --yes to send them without being asked")


@command(JSON)
def clients(given: Given) -> None:
    """List the clients that can be named with --api: what they need and what they cost."""
    from masa.clients import listed
    from masa.report.words import plain

    found = listed()
    if given.as_json:
        print_json({"clients": {one.name: one.to_dict() for one in found}})
    else:
        print("\n".join(plain(line) for one in found for line in one.lines))


@command(
    required(only(DATA, "path label text image sound id old"), "path label"),
    own("Output", "out", FILE, "Write its answers and confidences as CSV."),
    OUTPUT,
)
def difficulty(given: Given) -> None:
    """Train a cheap model on the labelled data.

    Its confidence tells easy items from hard ones; nothing is asked.
    """
    from masa.data.cheap_model import KINDS, cheap_model, save
    from masa.data.dataset import read

    named = [(kind, given.read(kind)) for kind in KINDS if kind in given]
    if len(named) != 1:
        raise UsageError(
            "a cheap model is trained on one column", hint="give --text, --image or --sound COL"
        )
    kind, column = named[0]
    old = given.read("old")
    with running(given) as progress:
        data = read(
            given.read("path"),
            label=given.read("label"),
            id=given.read("id"),
            predictions=[old] if old else [],
            inputs=[column],
        )
        cache = DEFAULT_STORE.parent / "cache"
        cheap = cheap_model(data, column, kind=kind, folder=cache, progress=progress)
    if "out" in given:
        save(data, cheap, given.read("out"))
    _show_cheap_model(given, data, cheap, old)


def _show_cheap_model(given: Given, data: "Dataset", cheap: "Cheap", old: str | None) -> None:
    from masa.replays.savings import saved_queries

    saved = None if old is None else saved_queries(cheap, data, data.predictions[old])
    if given.as_json:
        labels = len(data.label.values)
        print_json({"items": len(data), "labels": labels, "right": cheap.right, "saves": saved})
        return
    print(
        f"The cheap model is right about {cheap.right:.1%} of {len(data):,} items "
        "that it was not trained on."
    )
    if saved is not None:
        worth = "do not beat"
        if saved >= 0.005:
            worth = f"take about {saved:.0%} fewer queries than"
        print(f"On the answers in {old!r} strata made of it {worth} one level per label.")
    if "out" in given:
        note = f"wrote {given.read('out')}: join it to the data, and name its columns"
        say(given, [f"{note} with --also and --difficulty"])
