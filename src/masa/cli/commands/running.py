"""Commands that ask an API, or plan to: baseline, plan, assess, compare."""

import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from masa.cli.options import (
    API,
    BASELINE,
    BUDGET,
    DATA,
    FORCE,
    HOW_SURE,
    OUTPUT,
    PLOT,
    RESUME,
    RUN,
    Given,
    command,
    of_section,
    only,
    own,
    without,
)
from masa.cli.output import running, say, show
from masa.errors import UsageError
from masa.settings import BaselineSettings, PlanSettings
from masa.settings.kinds import text

if TYPE_CHECKING:
    from pathlib import Path

    from masa.clients import Client
    from masa.records import Baseline, Forecast, Progress
    from masa.runs.task import Task


@command(DATA, API, BUDGET, HOW_SURE, BASELINE, RUN, RESUME, FORCE, OUTPUT)
def assess(given: Given) -> int:
    """Query the API and judge whether it changed.

    The same command resumes where it was interrupted.
    """
    from masa.report import terminal
    from masa.runs.assess import assess as run

    task = prepared(given)
    spending = budget(task, given)
    with running(given, calculates=True) as progress:
        found = run(
            task.data,
            task.client,
            baseline=compared_with(task, given),
            settings=task.settings,
            **spending,
            **of_run(task, given, progress),
        )
    show(given, found.to_dict(), terminal.assessment(found))
    say(given, [*found.notes, *how_to_resume(found.run, found.stopped)])
    return found.exit_code


@command(
    without(DATA, "unlabelled"),
    own("API", "api", text("CLIENT"), "The client.", key="api.client"),
    own("API", "price", text("P"), "Money per query, where the API's price is not known."),
    only(HOW_SURE, "levels confidence mix seed"),
    of_section("How sure", PlanSettings),
    replace(
        BASELINE,
        named=replace(
            BASELINE.named, setting=replace(BASELINE.named.setting, help="Plan from this run.")
        ),
    ),
    RUN,
    FORCE,
    PLOT,
    OUTPUT,
)
def plan(given: Given) -> None:
    """Tell what a precision costs and what a budget buys. Asks nothing, spends nothing."""
    from masa.report import chart, terminal
    from masa.runs.plan import plan as run

    _check_plot(given)
    wanted = given.section(PlanSettings)
    task = prepared(given, asks=False)
    with running(given, calculates=True) as progress:
        found = run(
            task.data,
            task.client,
            baseline=compared_with(task, given),
            settings=task.settings,
            wanted=wanted,
            price=_price(given),
            name=task.config.name,
            store=task.config.store,
            force="force" in given,
            progress=progress,
            early=None if progress is None else lambda first: _show_early(given, first),
        )
    title = f"If {100 * found.changed:.2g}% of the answers changed"
    if "plot" in given and found.replay is not None:
        chart.save(chart.replay(found.replay, title=title), given.read("plot"))
    show(given, found.to_dict(), terminal.forecast(found))
    say(given, [*found.notes, *_wrote(given)])


def _show_early(given: Given, found: "Forecast") -> None:
    """Show what is known of a plan, where somebody waits for it."""
    from masa.report import terminal

    if sys.stdout.isatty() and not given.as_json:
        terminal.show(terminal.forecast(found))


@command(
    only(DATA, "path label id input difficulty unlabelled"),
    API,
    BUDGET,
    only(HOW_SURE, "levels seed"),
    of_section("Run", BaselineSettings),
    RUN,
    RESUME,
    OUTPUT,
)
def baseline(given: Given) -> int:
    """Record what the API answers today.

    On all items, within a budget, or from answers that are known.
    """
    from masa.report import terminal
    from masa.runs.baseline import baseline as run
    from masa.runs.config import OLD_COMES_FIRST, old_column_of

    wanted = given.section(BaselineSettings)
    if wanted.take is not None:
        found = imported(given, wanted)
    else:
        task = prepared(given)
        spending = budget(task, given, repeat=wanted.repeat, refresh=wanted.refresh)
        with running(given) as progress:
            found = run(
                task.data,
                task.client,
                repeat=wanted.repeat,
                refresh=wanted.refresh,
                levels=task.settings.levels,
                seed=task.settings.seed,
                **spending,
                **of_run(task, given, progress),
            )
    show(given, found.to_dict(), terminal.baseline(found))
    old = old_column_of(given.read("config"))
    notes = [OLD_COMES_FIRST.format(old)] if old else []
    say(given, [*found.notes, *notes, *how_to_resume(found.run, found.stopped)])
    return found.exit_code


A_SIDE = "replay:COL, a client, 'api' or a name in [apis] of masa.toml."


@command(
    own("", "a", text("A"), A_SIDE, required=True, argument=True),
    own("", "b", text("B"), "The other one, likewise.", required=True, argument=True),
    only(DATA, "path label id input difficulty"),
    only(API, "concurrency rate"),
    BUDGET,
    only(HOW_SURE, "levels tolerance confidence seed"),
    RUN,
    only(RESUME, "fresh"),
    OUTPUT,
)
def compare(given: Given) -> int:
    """Put two APIs side by side on the same items.

    Or two columns of recorded answers: should I migrate?
    """
    from masa.report import terminal
    from masa.runs.compare import compare as run
    from masa.runs.config import Config
    from masa.runs.task import made_client, task

    config = Config.load(given.read("config"), given.flags)
    names = given.read("a"), given.read("b")
    apis = config.named(names[0]), config.named(names[1])
    ready = task(config.with_api(apis[1]), also=apis[:1])
    other = made_client(apis[0], ready.data, ready.context)
    spending = budget(ready, given, other=other)
    recorded = apis[0].client.startswith("replay:")
    with running(given, calculates=True) as progress:
        found = run(
            ready.data,
            apis[0].client if recorded else other,
            ready.client,
            settings=ready.settings,
            sides=names,
            **spending,
            **of_run(ready, given, progress),
        )
    show(given, found.to_dict(), terminal.assessment(found))
    say(given, [*found.notes, *how_to_resume(found.run, found.stopped, by_number=False)])
    return found.exit_code


def prepared(given: Given, *, asks: bool = True) -> "Task":
    """Turn the options of a command, over what masa.toml says, into data and a client.

    A command that asks nothing needs no API where the old answers are a column.
    """
    from masa.runs.config import Config
    from masa.runs.task import task

    config = Config.load(given.read("config"), given.flags)
    if not asks and config.api is None and config.data.old is not None:
        flags = {**given.flags, "api.client": f"replay:{config.data.old}"}
        config = Config.load(given.read("config"), flags)
    return task(config, imports=asks)


def compared_with(task: "Task", given: Given) -> Any:
    """Give the baseline: the run that is named, else the column of old answers.

    None stands for the newest baseline of the store.
    """
    if "baseline" not in given:
        return task.old
    named = given.read("baseline")
    return named if isinstance(named, int) else run_of_file(task, named)


def run_of_file(task: "Task", file: "Path") -> int:
    """Take a baseline file into the store; the same file is taken once."""
    from masa.runs.baseline_file import imported as taken
    from masa.storage.store import opened

    with opened(task.config.store) as store:
        return taken(store, file, name=task.config.name).id


def imported(given: Given, wanted: BaselineSettings) -> "Baseline":
    """Take a baseline from a column of the data, or of another file with the same ids."""
    from masa.data.dataset import read_answers
    from masa.runs.baseline import import_answers
    from masa.runs.config import Config
    from masa.runs.task import context_of, made_client, recorded_data

    config = Config.load(given.read("config"), given.flags)
    column, confidence = wanted.take or "", wanted.import_confidence
    if wanted.source is None:
        data = recorded_data(config, (column,), difficulty=confidence)
        answers, numbers = data.predictions[column], data.difficulty
    else:
        data = recorded_data(config, ())
        if config.data.id is None:
            raise UsageError(
                "answers in another file need ids", hint="name the column of ids with --id COL"
            )
        read = read_answers(
            wanted.source, id=config.data.id, prediction=column, confidence=confidence
        )
        places, found = read.over(data)
        data, answers, numbers = data.take(places), found.answers, found.confidence
    client = None
    if config.api is not None:
        # It is only described.
        client = made_client(config.api, data, context_of(config, data, imports=False))
    return import_answers(
        data, answers, confidence=numbers, client=client, name=config.name, store=config.store
    )


def budget(
    task: "Task",
    given: Given,
    *,
    repeat: int = 0,
    refresh: int = 0,
    other: "Client | None" = None,
) -> dict[str, Any]:
    """Give the budget; without one, ask the user whether to spend what asking everything costs.

    Where nobody can be asked it is refused.
    """
    from masa.records import money_text
    from masa.runs.session import costs_nothing
    from masa.runs.validate import worst_price

    wanted = task.config.budget
    paid = [one for one in (task.client, other) if one is not None and not costs_nothing(one)]
    if wanted.queries is not None or wanted.money is not None or refresh or not paid:
        return {"budget": wanted.queries, "money": wanted.money}
    most = len(task.data) * len(paid) + repeat
    words = f"up to {most:,} queries"
    if all(client.priced for client in paid):
        worst = sum(worst_price(client, task.data, repeat=repeat) for client in paid)
        words += f", at most {money_text(worst)}"
    if "yes" not in given:
        confirm(words, "give --budget N or --money M, or --yes for all")
    return {"budget": most}


def confirm(words: str, hint: str) -> None:
    """Ask before anything is paid; where nobody can be asked, refuse."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise UsageError(f"nobody can be asked whether to go on: this may take {words}", hint=hint)
    if not typer.confirm(f"This may take {words}. Go on?", err=True):
        raise UsageError("nothing was asked, nothing was spent", hint=hint)


def of_run(task: "Task", given: Given, progress: "Progress | None") -> dict[str, Any]:
    """Give what every command that asks an API passes on."""
    return {
        "limits": task.config.limits,
        "name": task.config.name,
        "store": task.config.store,
        "keep": task.config.keep,
        "resume": given.read("resume"),
        "fresh": "fresh" in given,
        "force": "force" in given,
        "progress": progress,
        "tell": lambda note: say(given, [note]),
        "interruptible": True,
    }


def how_to_resume(run: int, stopped: str, *, by_number: bool = True) -> list[str]:
    """Give the command that resumes a run that did not come to its end."""
    if stopped not in ("interrupted", "failures"):
        return []
    words = [word for word in sys.argv[1:] if word != "--fresh"]
    if by_number and "--resume" not in words:
        words += ["--resume", str(run)]
    return [f"run {run} is kept; to resume it: {shlex.join(['masa', *words])}"]


def _price(given: Given) -> float | None:
    """Read the price of a query, where one was given."""
    from masa.records import amount, billionths

    price = given.read("price")
    if price in (None, "queries-only"):
        return None
    return amount(billionths(price))


def _check_plot(given: Given) -> None:
    """Refuse a chart that cannot be written, before any long work is done."""
    from masa.report import chart

    if "plot" in given:
        chart.check(given.read("plot"))


def _wrote(given: Given) -> list[str]:
    return [f"wrote {given.read('plot')}"] if "plot" in given else []
