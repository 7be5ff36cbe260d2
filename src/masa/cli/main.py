"""The command line: parse, one call, print."""

import errno
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from masa.errors import MasaError, UsageError

if TYPE_CHECKING:
    from masa.clients import Client
    from masa.records import Baseline, Progress
    from masa.runs.task import Task

app = typer.Typer(
    help="Did the model behind an ML API change, how, and is that better or worse for you?",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV, JSON-lines or Parquet file, a glob of them in quotes, or a folder.",
    ),
]
Label = Annotated[str, typer.Option(metavar="COL", help="Column with the true labels.")]
New = Annotated[
    str, typer.Option(metavar="COL", help="Column with the predictions of the API that is asked.")
]
Old = Annotated[
    str | None, typer.Option(metavar="COL", help="Column with what the API answered before.")
]
Id = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="Column with ids: none may stand twice, and items come in their order."
    ),
]
OldConfidence = Annotated[
    str | None, typer.Option(metavar="COL", help="Column with the confidence of the old answers.")
]
NewConfidence = Annotated[
    str | None, typer.Option(metavar="COL", help="Column with the confidence of the new answers.")
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL",
        help="Column with free answers: a cheap model's first, other vendors'; may be repeated.",
    ),
]
TextOf = Annotated[
    str | None,
    typer.Option(
        "--text", metavar="COL", help="Column with texts, whose words may tell what changed."
    ),
]
ImageOf = Annotated[
    str | None, typer.Option("--image", metavar="COL", help="Column with names of image files.")
]
SoundOf = Annotated[
    str | None, typer.Option("--sound", metavar="COL", help="Column with names of WAV files.")
]
CostOf = Annotated[
    str | None,
    typer.Option("--cost", metavar="COL", help="Column with the price of each item, to any scale."),
]
GroupOf = Annotated[
    str | None,
    typer.Option(
        "--group", metavar="COL", help="Column with groups, each to be known as well as the others."
    ),
]
Unlabelled = Annotated[
    bool | None,
    typer.Option(
        "--unlabelled",
        help="Keep rows without a label: they help to tell whether anything changed.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="W",
        help="What is to be known: 'accuracy', or a JSON file of weights or costs by label and prediction.",
    ),
]
Difficulty = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column with a number that tells easy items from hard ones."),
]
Levels = Annotated[int, typer.Option(metavar="K", help="Difficulty levels inside each label.")]
Method = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="uniform, post-stratified, stratified, masa, optimal, adaptive, paired, predictive or auto; may be repeated. "
        "[default: all but the last two, which take longer]",
    ),
]
Budgets = Annotated[
    str | None,
    typer.Option(metavar="N,N,...", help="Numbers of queries to report. [default: 500,1000,2000]"),
]
Runs = Annotated[int, typer.Option(metavar="R", help="Assessments a method.")]
TargetError = Annotated[
    str, typer.Option(metavar="E", help="Largest error (Frobenius norm) wanted: 0.01 or 1%.")
]
Confidence = Annotated[
    str, typer.Option(metavar="P", help="Share of runs that must be within it: 0.95 or 95%.")
]
Replacement = Annotated[
    bool, typer.Option("--with-replacement", help="Items may be asked again, as in the paper.")
]
Exploration = Annotated[
    str, typer.Option("--a", metavar="A", help="Exploration of masa: a number, or 'theory'.")
]
Mix = Annotated[
    str | None,
    typer.Option(
        metavar="MIX", help="Mix of labels to estimate for: label=share,... or a JSON file."
    ),
]
Seed = Annotated[int, typer.Option(metavar="S", help="Same seed, same numbers.")]
OptionalData = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA", help="A CSV, JSON-lines or Parquet file, a glob in quotes, or a folder."
    ),
]
OptionalLabel = Annotated[
    str | None, typer.Option("--label", metavar="COL", help="Column with the true labels.")
]
Input = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL", help="Column that the API is shown; may be repeated or separated by commas."
    ),
]
ApiName = Annotated[
    str | None,
    typer.Option(
        metavar="CLIENT",
        help="replay:COL, python:module:function, http or openai (with masa.toml), ...",
    ),
]
PriceOf = Annotated[str | None, typer.Option(metavar="P", help="Money a call, or 'queries-only'.")]
BudgetOf = Annotated[
    int | None,
    typer.Option("--budget", metavar="N", min=1, help="Calls that may be sent at the most."),
]
Money = Annotated[
    str | None, typer.Option(metavar="M", help="Money that may be spent at the most.")
]
LiveMethod = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="auto, predictive, paired, adaptive, masa, post-stratified, stratified or uniform. [default: auto]",
    ),
]
OptionalLevels = Annotated[
    int | None,
    typer.Option("--levels", metavar="K", help="Difficulty levels inside each label. [default: 3]"),
]
OptionalSeed = Annotated[
    int | None,
    typer.Option("--seed", metavar="S", help="Same seed, same choice of items. [default: 0]"),
]
Tolerance = Annotated[
    str | None,
    typer.Option(
        metavar="T",
        help="Change that does not matter: 0.01 or 1% of accuracy; or recall=, precision=, entry=, cost=.",
    ),
]
OptionalConfidence = Annotated[
    str | None, typer.Option("--confidence", metavar="P", help="How sure: 0.95 or 95%.")
]
StopAt = Annotated[
    str | None,
    typer.Option(
        "--target-error",
        metavar="E",
        help="Stop once the error of the shift is at most 0.005 or 0.5%, say.",
    ),
]
Decide = Annotated[
    bool | None, typer.Option("--decide", help="Stop as soon as the verdict is certain.")
]
Canary = Annotated[
    int | None,
    typer.Option(
        "--canary",
        metavar="N",
        help="Ask N telling items first, and go on only if one of them changed.",
    ),
]
CanaryOk = Annotated[
    bool | None,
    typer.Option("--canary-ok", help="A canary that saw nothing is exit code 0, not 3."),
]
StrictOf = Annotated[
    bool | None,
    typer.Option(
        "--strict", help="Intervals that hold at all times at once; takes about twice the queries."
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(metavar="WHAT", help="Changes that are exit code 1: any or worse. [default: any]"),
]
Concurrency = Annotated[
    int | None, typer.Option(metavar="N", help="Calls under way at the most. [default: 64]")
]
RateOf = Annotated[
    str | None,
    typer.Option("--rate", metavar="R", help="Calls a second at the most: 5, 500/s or 600/min."),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Configuration. [default: masa.toml, if there]"),
]
StoreFile = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="Where runs are kept. [default: .masa/masa.db]"),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="What this API and data are called, where a store holds several."
    ),
]
Resume = Annotated[int | None, typer.Option(metavar="RUN", help="Go on with this run.")]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Begin a new run even if one was not finished.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before paid calls.")]
RunNumber = Annotated[int, typer.Argument(metavar="RUN", help="Number of a run.")]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a chart: .html, .svg or .png.")
]
Save = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the recorded predictions as CSV.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose", "-v", count=True, show_default=False, help="Say more; twice for all."
    ),
]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print the version or the help when there is nothing else to do."""
    if version:
        import masa

        typer.echo(f"masa {masa.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def replay(
    data: Data,
    label: Label,
    new: New,
    old: Old = None,
    id: Id = None,
    old_confidence: OldConfidence = None,
    new_confidence: NewConfidence = None,
    also: Also = None,
    text: TextOf = None,
    cost: CostOf = None,
    group: GroupOf = None,
    difficulty: Difficulty = None,
    levels: Levels = 3,
    method: Method = None,
    budgets: Budgets = None,
    runs: Runs = 1000,
    target_error: TargetError = "0.01",
    confidence: Confidence = "0.95",
    with_replacement: Replacement = False,
    a: Exploration = "1.0",
    mix: Mix = None,
    weights: Weights = None,
    stop: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Also run whole assessments, until they stop by themselves: target, decide or budget.",
        ),
    ] = None,
    tolerance: Tolerance = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="In those, old and new answers contradict themselves: 0.01 or 1% of them.",
        ),
    ] = None,
    noise_where: Annotated[
        str,
        typer.Option(
            metavar="WHERE", help="evenly, or unsure: only among the least confident fifth."
        ),
    ] = "evenly",
    repeat: Annotated[
        int, typer.Option(metavar="N", help="Items asked twice, by which the noise is known.")
    ] = 500,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="In those, intervals that hold at all times at once (auto)."),
    ] = False,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    """Tell what each method would have cost. Assesses recorded predictions many times."""
    from masa.replays.replay import read_recorded
    from masa.replays.whole_runs import Noise, check, with_whole_runs
    from masa.report import chart, terminal

    if plot is not None:
        chart.check(plot)
    with running(quiet=quiet, verbose=verbose) as progress:
        recorded = read_recorded(
            data,
            label=label,
            id=id,
            new=new,
            old=old,
            old_confidence=old_confidence,
            new_confidence=new_confidence,
            also=names(also),
            text=text,
            cost=cost,
            group=group,
            difficulty=difficulty,
            progress=progress,
        )
        if stop is None and (tolerance is not None or noise is not None or strict):
            raise UsageError(
                "only whole assessments have a tolerance or noise",
                hint="play them with --stop target, decide or budget",
            )
        wild = None if noise is None else Noise(share(noise, "--noise"), noise_where, repeat)
        if stop is not None:
            check(
                recorded,
                stop=stop,
                replacement=with_replacement,
                noise=wild,
                strict=strict,
                methods=names(method),
            )
        spent = whole_numbers(budgets)
        result = recorded.replay(
            levels=levels,
            methods=names(method) or (["auto"] if strict else None),
            budgets=spent,
            runs=runs,
            target_error=share(target_error, "--target-error"),
            confidence=share(confidence, "--confidence"),
            replacement=with_replacement,
            a=number_or_word(a),
            mix=shares(mix),
            weights=weights,
            seed=seed,
            progress=progress,
        )
        if stop is not None:
            result = with_whole_runs(
                result,
                recorded,
                stop=stop,
                tolerance=tolerance,
                noise=wild,
                strict=strict,
                budget=max(spent) if spent else None,
                levels=levels,
                mix=shares(mix),
                weights=weights,
                progress=progress,
            )
    if plot is not None:
        chart.save(chart.replay(result, title=f"{Path(data).name}: {new}"), plot)
    say(() if quiet else (*result.notes, *([f"wrote {plot}"] if plot else [])))
    print_json(result.to_dict()) if as_json else terminal.show(terminal.replay(result, source=data))


def assess(
    data: OptionalData = None,
    label: OptionalLabel = None,
    id: Id = None,
    input: Input = None,
    api: ApiName = None,
    price: PriceOf = None,
    old: Old = None,
    old_confidence: OldConfidence = None,
    also: Also = None,
    text: TextOf = None,
    image: ImageOf = None,
    sound: SoundOf = None,
    cost: CostOf = None,
    group: GroupOf = None,
    unlabelled: Unlabelled = None,
    baseline: Annotated[
        int | None,
        typer.Option(metavar="RUN", help="Compare with this run. [default: the newest baseline]"),
    ] = None,
    difficulty: Difficulty = None,
    levels: OptionalLevels = None,
    method: LiveMethod = None,
    budget: BudgetOf = None,
    money: Money = None,
    tolerance: Tolerance = None,
    confidence: OptionalConfidence = None,
    target_error: StopAt = None,
    decide: Decide = None,
    canary: Canary = None,
    canary_ok: CanaryOk = None,
    fail_on: FailOn = None,
    strict: StrictOf = None,
    mix: Mix = None,
    weights: Weights = None,
    seed: OptionalSeed = None,
    concurrency: Concurrency = None,
    rate: RateOf = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    name: Name = None,
    resume: Resume = None,
    fresh: Fresh = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare with a baseline that is not comparable.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> int:
    """Query the API and judge whether it changed. The same command goes on where it was interrupted."""
    from masa.report import terminal
    from masa.runs.assess import assess as run

    task = prepared(locals())
    limits = spending(task, yes=yes)
    with running(quiet=quiet, verbose=verbose) as progress:
        found = run(
            task.data,
            task.client,
            baseline=task.old if task.old is not None and baseline is None else baseline,
            settings=task.settings,
            **limits,
            **engagement(task, resume=resume, fresh=fresh, progress=progress),
            force=force,
        )
    print_json(found.to_dict()) if as_json else terminal.show(terminal.assessment(found))
    say(() if quiet else (*found.notes, *how_to_go_on(found.run, found.stopped)))
    return found.exit_code


def plan(
    data: OptionalData = None,
    label: OptionalLabel = None,
    id: Id = None,
    input: Input = None,
    api: ApiName = None,
    price: Annotated[
        str | None, typer.Option(metavar="P", help="Money a query, where the API's is not known.")
    ] = None,
    old: Old = None,
    old_confidence: OldConfidence = None,
    also: Also = None,
    text: TextOf = None,
    image: ImageOf = None,
    sound: SoundOf = None,
    cost: CostOf = None,
    group: GroupOf = None,
    baseline: Annotated[
        int | None,
        typer.Option(metavar="RUN", help="Plan from this run. [default: the newest baseline]"),
    ] = None,
    difficulty: Difficulty = None,
    levels: OptionalLevels = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Methods to compare; may be repeated. [default: auto, masa, post-stratified]",
        ),
    ] = None,
    changed: Annotated[
        str | None,
        typer.Option(
            metavar="C",
            help="Share of answers that may have changed. [default: as earlier runs found, or 3%]",
        ),
    ] = None,
    target_error: Annotated[
        list[str] | None,
        typer.Option(
            metavar="E",
            help="Errors of the shift to price: 1%,0.5%; may be repeated. [default: 2%,1%,0.5%,0.25%]",
        ),
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Numbers of queries to tell the worth of. [default: 100,500,2000]",
        ),
    ] = None,
    confidence: OptionalConfidence = None,
    mix: Mix = None,
    seed: OptionalSeed = None,
    runs: Annotated[
        int, typer.Option(metavar="R", help="Assessments a method that are played.")
    ] = 100,
    config: ConfigFile = None,
    store: StoreFile = None,
    name: Name = None,
    force: Annotated[
        bool, typer.Option("--force", help="Plan from a baseline that is not comparable.")
    ] = False,
    plot: Plot = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    """Tell what a precision costs and what a budget buys. Asks nothing, spends nothing."""
    from masa.records import amount, billionths
    from masa.report import chart, terminal
    from masa.runs.plan import plan as run

    if plot is not None:
        chart.check(plot)
    given = {**locals(), "budget": None, "money": None, "concurrency": None, "rate": None}
    task = prepared(given | {"method": None, "target_error": None}, asks=False)
    with running(quiet=quiet, verbose=verbose) as progress:
        found = run(
            task.data,
            task.client,
            baseline=task.old if task.old is not None and baseline is None else baseline,
            settings=task.settings,
            changed=None if changed is None else share(changed, "--changed"),
            errors=[share(error, "--target-error") for error in names(target_error)] or None,
            budgets=whole_numbers(budgets),
            methods=names(method) or None,
            price=None if price is None or price == "queries-only" else amount(billionths(price)),
            runs=runs,
            name=task.config.name,
            store=task.config.store,
            force=force,
            progress=progress,
        )
    if plot is not None:
        chart.save(
            chart.replay(
                found.replay, title=f"If {100 * found.changed:.2g}% of the answers changed"
            ),
            plot,
        )
    print_json(found.to_dict()) if as_json else terminal.show(terminal.forecast(found))
    say(() if quiet else (*found.notes, *([f"wrote {plot}"] if plot else [])))


def baseline(
    data: OptionalData = None,
    label: OptionalLabel = None,
    id: Id = None,
    input: Input = None,
    api: ApiName = None,
    price: PriceOf = None,
    take: Annotated[
        str | None,
        typer.Option(
            "--import", metavar="COL", help="Take the answers from this column; ask nothing."
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="File that the imported column is in, with the same --id column.",
        ),
    ] = None,
    import_confidence: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with the confidence of those answers.")
    ] = None,
    unlabelled: Unlabelled = None,
    repeat: Annotated[
        int,
        typer.Option(
            metavar="N", help="Ask N items twice: how often does the API contradict itself?"
        ),
    ] = 0,
    difficulty: Difficulty = None,
    levels: OptionalLevels = None,
    budget: BudgetOf = None,
    money: Money = None,
    seed: OptionalSeed = None,
    concurrency: Concurrency = None,
    rate: RateOf = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    name: Name = None,
    resume: Resume = None,
    fresh: Fresh = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> int:
    """Record what the API answers today. On all items, within a budget, or from answers that are known."""
    from masa.report import terminal
    from masa.runs.baseline import baseline as run

    given = locals()
    if take is not None:
        found = imported(given)
    else:
        task = prepared(given)
        limits = spending(task, yes=yes, repeat=repeat)
        with running(quiet=quiet, verbose=verbose) as progress:
            found = run(
                task.data,
                task.client,
                repeat=repeat,
                levels=task.settings.levels,
                seed=task.settings.seed,
                **limits,
                **engagement(task, resume=resume, fresh=fresh, progress=progress),
            )
    print_json(found.to_dict()) if as_json else terminal.show(terminal.baseline(found))
    say(() if quiet else (*found.notes, *how_to_go_on(found.run, found.stopped)))
    return found.exit_code


def compare(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", help="replay:COL, a client, 'api' or a name in [apis] of masa.toml."
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The other one, likewise.")],
    data: OptionalData = None,
    label: OptionalLabel = None,
    id: Id = None,
    input: Input = None,
    difficulty: Difficulty = None,
    levels: OptionalLevels = None,
    budget: BudgetOf = None,
    money: Money = None,
    tolerance: Tolerance = None,
    confidence: OptionalConfidence = None,
    seed: OptionalSeed = None,
    concurrency: Concurrency = None,
    rate: RateOf = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    name: Name = None,
    fresh: Fresh = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> int:
    """Put two APIs side by side on the same items. Or two columns of recorded answers: should I migrate?"""
    from masa.report import terminal
    from masa.runs.compare import compare as run
    from masa.runs.config import Config
    from masa.runs.task import made, task

    found_config = Config.load(config, flags_of({**locals(), "api": None, "price": None}))
    apis = found_config.named(a), found_config.named(b)
    ready = task(found_config.model_copy(update={"api": apis[1]}), also=apis[:1])
    other = made(apis[0], ready.data, found_config.data.input)
    limits = spending(ready, yes=yes, other=other)
    with running(quiet=quiet, verbose=verbose) as progress:
        engaged = engagement(ready, resume=None, fresh=fresh, progress=progress)
        del engaged["resume"]
        found = run(
            ready.data,
            apis[0].client if apis[0].client.startswith("replay:") else other,
            ready.client,
            settings=ready.settings,
            sides=(a, b),
            **limits,
            **engaged,
        )
    print_json(found.to_dict()) if as_json else terminal.show(terminal.assessment(found))
    say(() if quiet else (*found.notes, *how_to_go_on(found.run, found.stopped, resume=False)))
    return found.exit_code


def accept(
    run: RunNumber,
    config: ConfigFile = None,
    store: StoreFile = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a finished run the new baseline. Nothing is asked or paid again."""
    from masa.runs.config import where
    from masa.storage import history, journal
    from masa.storage.store import opened

    with opened(where(config, store), make=False) as kept:
        accepted = history.accept(kept, run)
        items, answers = len(history.keys(kept, accepted)), len(journal.past(kept, run).answers)
    if as_json:
        print_json(
            {
                "run": accepted.id,
                "name": accepted.name,
                "baseline": True,
                "items": items,
                "answers": answers,
            }
        )
    else:
        part = (
            f": {answers:,} of {items:,} items, which alone are asked from now on"
            if answers < items
            else ""
        )
        say(() if quiet else [f"run {accepted.id} is now the baseline of {accepted.name!r}{part}"])


def init(
    data: Data,
    label: OptionalLabel = None,
    id: Id = None,
    input: Input = None,
    difficulty: Difficulty = None,
    old: Old = None,
    api: Annotated[
        str,
        typer.Option(metavar="CLIENT", help="http, openai, python:module:function or replay:COL."),
    ] = "http",
    budget: BudgetOf = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write.")] = Path("masa.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look at a data file and write a masa.toml. Asks what it cannot tell, unless it is told."""
    from masa.cli import draft
    from masa.data.files import Table

    table = Table.open(data)
    profiles = table.profile()
    seen = draft.looked_at(table, profiles)
    say(() if quiet else [seen])
    asking = sys.stdin.isatty() and sys.stderr.isatty() and not yes
    found = draft.guess(profiles)
    known = [profile.name for profile in profiles]
    chosen = draft.Guess(
        label=decide("Column with the true labels", label, found.label, known, asking=asking),
        id=decide("Column with ids (empty for none)", id, found.id, known, asking=asking),
        input=tuple(names(input)) or decide_input(found.input, known, asking=asking),
        predictions=found.predictions,
        difficulty=decide(
            "Column that tells easy items from hard ones (empty for none)",
            difficulty,
            found.difficulty,
            known,
            asking=asking,
        ),
    )
    if chosen.label is None:
        raise UsageError(
            f"no column of {data} looks like labels",
            hint=f"name it with --label COL; there are {', '.join(known[:20])}",
        )
    path = data if Path(data).is_absolute() else os.path.relpath(data, out.parent)
    draft.save(draft.written(path, chosen, api=api, budget=budget, old=old), out, force=force)
    if as_json:
        print_json(
            {
                "wrote": str(out),
                "label": chosen.label,
                "id": chosen.id,
                "input": list(chosen.input),
                "difficulty": chosen.difficulty,
            }
        )
    say(() if quiet else [f"wrote {out}: look it over, then masa validate"])


def validate(
    data: OptionalData = None,
    label: OptionalLabel = None,
    id: Id = None,
    input: Input = None,
    api: ApiName = None,
    price: PriceOf = None,
    old: Old = None,
    old_confidence: OldConfidence = None,
    also: Also = None,
    cost: CostOf = None,
    group: GroupOf = None,
    unlabelled: Unlabelled = None,
    difficulty: Difficulty = None,
    levels: OptionalLevels = None,
    method: LiveMethod = None,
    budget: BudgetOf = None,
    money: Money = None,
    mix: Mix = None,
    weights: Weights = None,
    seed: OptionalSeed = None,
    concurrency: Concurrency = None,
    rate: RateOf = None,
    config: ConfigFile = None,
    store: StoreFile = None,
    name: Name = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check settings, data and client. Nothing is asked or spent."""
    from masa.runs.validate import validated

    found = validated(prepared(locals()))
    say(() if quiet else found.notes)
    print_json(found.to_dict()) if as_json else print(found.text)


def difficulty(
    data: Data,
    label: Label,
    text: TextOf = None,
    image: ImageOf = None,
    sound: SoundOf = None,
    id: Id = None,
    old: Old = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write its answers and confidences as CSV.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    """Train a cheap model on the labelled data. Its confidence tells easy items from hard ones; nothing is asked."""
    from masa.data.cheap_model import KINDS, cheap_model, save
    from masa.data.dataset import read
    from masa.replays.savings import saved_queries
    from masa.storage.store import DEFAULT

    given = [
        (kind, name)
        for kind, name in zip(KINDS, (text, image, sound), strict=True)
        if name is not None
    ]
    if len(given) != 1:
        raise UsageError(
            "a cheap model is trained on one column", hint="give --text, --image or --sound COL"
        )
    kind, column = given[0]
    with running(quiet=quiet, verbose=verbose) as progress:
        found = read(data, label=label, id=id, predictions=[old] if old else [], inputs=[column])
        cheap = cheap_model(
            found, column, kind=kind, folder=DEFAULT.parent / "cache", progress=progress
        )
    saved = None if old is None else saved_queries(cheap, found, found.predictions[old])
    if out is not None:
        save(found, cheap, out)
    if as_json:
        print_json(
            {
                "items": len(found),
                "labels": len(found.label.values),
                "right": cheap.right,
                "saves": saved,
            }
        )
        return
    print(
        f"The cheap model is right about {cheap.right:.1%} of {len(found):,} items that it was not trained on."
    )
    if saved is not None:
        worth = f"take about {saved:.0%} fewer queries than" if saved >= 0.005 else "do not beat"
        print(f"On the answers in {old!r} strata made of it {worth} one level a label.")
    say(
        ()
        if quiet or out is None
        else [
            f"wrote {out}: join it to the data, and name its columns with --also and --difficulty"
        ]
    )


def clients(as_json: Json = False) -> None:
    """List the clients that can be named with --api."""
    from masa.clients import offered

    found = offered()
    print_json({"clients": found}) if as_json else print(
        "\n".join(f"{name}  ({who})" for name, who in found.items())
    )


def history(config: ConfigFile = None, store: StoreFile = None, as_json: Json = False) -> None:
    """List the runs and which is the baseline."""
    from masa.report import terminal
    from masa.runs.config import where
    from masa.storage import history as past
    from masa.storage.store import opened

    with opened(where(config, store), make=False) as kept:
        runs = past.runs(kept)
        baselines = {
            found.id for name in past.names(kept) if (found := past.current(kept, name)) is not None
        }
    if as_json:
        keys = ("id", "kind", "name", "created", "finished", "stopped")
        print_json(
            {
                "runs": [
                    {**{key: getattr(run, key) for key in keys}, "baseline": run.id in baselines}
                    for run in runs
                ]
            }
        )
    else:
        terminal.show(terminal.runs(runs, baselines))


def report(
    run: RunNumber, config: ConfigFile = None, store: StoreFile = None, as_json: Json = False
) -> None:
    """Show a finished assessment again. Asks nothing."""
    from masa.records import Assessment
    from masa.report import terminal
    from masa.runs.config import where
    from masa.storage import history
    from masa.storage.store import opened

    with opened(where(config, store), make=False) as kept:
        found = history.find(kept, run)
    if found.result is None:
        raise UsageError(
            f"run {run} is not finished",
            hint="masa report shows finished runs; run its command again to finish it",
        )
    if found.kind not in ("assess", "compare"):
        raise UsageError(
            f"run {run} is a baseline", hint="masa report shows assessments and comparisons"
        )
    shown = {key: value for key, value in found.result.items() if key != "estimate"}
    print_json(shown) if as_json else terminal.show(
        terminal.assessment(Assessment.from_dict(found.result))
    )


def take_in(
    layout: Annotated[
        str, typer.Argument(metavar="LAYOUT", help="frugalml, hapi, llmdrift or table.")
    ],
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="What you downloaded: a folder, or a file.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")] = Path(
        "masa-data"
    ),
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out what is missing instead of refusing it.")
    ] = False,
    label: Annotated[
        str, typer.Option(metavar="COL", help="Of a table: the column with the true labels.")
    ] = "label",
    id: Annotated[
        str | None, typer.Option(metavar="COL", help="Of a table: the column with ids.")
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="API@DATE=COL",
            help="Of a table: a column with answers. [default: those named API.prediction]",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a table: what the data set is called.")
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option(
            help="Also keep each API's earliest answers as a baseline, in FOLDER/masa.db."
        ),
    ] = True,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    """Turn published predictions into recorded APIs and baselines. Reads what you downloaded; asks nothing."""
    from masa.research import published

    columns = published.Columns(label, id, pairs(answers), name)
    made: list[dict[str, Any]] = []
    notes: list[str] = []
    with running(quiet=quiet, verbose=verbose) as progress:
        for collection in published.collections(layout, path, partial=partial, columns=columns):
            notes += collection.notes
            if not collection.recordings:
                continue
            if progress is not None:
                progress(collection.name, 0.5)
            kept = published.save(collection, out)
            known = published.baselines(kept, out / "masa.db") if baselines else []
            made.append(
                {
                    "name": kept.name,
                    "file": str(kept.path),
                    "items": len(collection.ids),
                    "recorded": list(kept.recorded),
                    "baselines": known,
                }
            )
    if as_json:
        print_json({"data": made, "notes": notes})
    else:
        for one in made:
            print(f"{one['file']}: {one['items']:,} items, answers of {', '.join(one['recorded'])}")
        print(published.how_to_use(made, out) if made else "nothing to import")
    say(() if quiet or as_json else notes)


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="datasets, overview, case-study, table1, tradeoffs, levels, convergence, shifts, speed or all.",
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="A folder that masa import made, or a download of FrugalML or HAPI."
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write tables, charts and pages.")
    ] = Path("masa-paper"),
    runs: Annotated[
        int, typer.Option(metavar="R", help="Runs a figure; the paper has 1,500.")
    ] = 1_500,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    """Carry out the paper's study. Writes its tables and figures, with the published numbers beside ours."""
    from masa.report import terminal
    from masa.research import book, summary
    from masa.research.paper import data_sets, find, wanted
    from masa.research.study import Study

    chosen = wanted(what)
    book.check(out)
    findings = []
    with running(quiet=quiet, verbose=verbose) as progress:
        sets, notes = data_sets(data, out)
        study = Study(sets, out / "parts", runs=runs, seed=seed, progress=progress)
        try:
            for name in chosen:
                findings.append(find(study, name))
                book.write(findings[-1], out, origin=f"{runs:,} runs, seed {seed}, data of {data}")
        except KeyboardInterrupt:
            say(
                ()
                if quiet
                else [f"what is done is kept in {out}; the same command goes on from there"]
            )
            raise
        finally:
            first = book.contents(findings, out)
    print_json({one.what: one.to_dict() for one in findings}) if as_json else terminal.show(
        summary.findings(findings)
    )
    say(
        ()
        if quiet
        else [
            *notes,
            f"wrote {first} and what it leads to: pages, charts (SVG, PNG) and tables (CSV)",
        ]
    )


def demo(seed: Seed = 0, save: Save = None, as_json: Json = False, quiet: Quiet = False) -> None:
    """See it work on this machine. An API is changed silently, and masa finds out: no key, no file."""
    from masa.cli import demo as case
    from masa.report import terminal

    if save is not None and not save.parent.is_dir():
        raise UsageError(
            f"there is no folder {save.parent} to write {save.name} into", hint="make it first"
        )
    told = terminal.show if not as_json else lambda _: None
    told(case.STORY + "\n")
    result = case.run(seed=seed, say=told, quiet=quiet or as_json)
    if save is not None:
        case.save(result.data, save)
        say(() if quiet else [f"wrote {save}"])
    if as_json:
        print_json(result.to_dict())
        return
    told(terminal.assessment(result.found))
    if result.found.shift is not None:
        told("\nThe truth, which masa did not see\n")
        told(
            terminal.estimate(
                result.found.shift,
                result.true,
                queries=result.found.queries,
                items=result.found.items,
            )
        )


for command in (
    *(init, validate, baseline, plan, assess, accept, compare, report, history, replay),
    *(take_in, reproduce, difficulty, clients, demo),
):
    app.command("import" if command is take_in else None)(command)


def prepared(given: dict[str, Any], *, asks: bool = True) -> "Task":
    """Turn the options of a command, over what masa.toml says, into data and a client.

    One that asks nothing needs no API where the old answers are a column.
    """
    from masa.runs.config import Config
    from masa.runs.task import task

    flags = flags_of(given)
    if not asks and given["api"] is None:
        flags["api.price"] = None
    config = Config.load(given["config"], flags)
    if config.api is None and config.data.old is not None and not asks:
        config = Config.load(given["config"], flags | {"api.client": f"replay:{config.data.old}"})
    return task(config)


def flags_of(given: dict[str, Any]) -> dict[str, Any]:
    """Give the options of a command by the keys of masa.toml that they override."""
    return {
        "name": given["name"],
        "store": given["store"],
        "data.path": given["data"],
        "data.label": given["label"],
        "data.id": given["id"],
        "data.input": tuple(names(given["input"])),
        "data.difficulty": given["difficulty"],
        "data.old": given.get("old"),
        "data.old_confidence": given.get("old_confidence"),
        "data.also": tuple(names(given.get("also"))),
        "data.cost": given.get("cost"),
        "data.group": given.get("group"),
        "data.unlabelled": given.get("unlabelled"),
        **{f"data.{kind}": given.get(kind) for kind in ("text", "image", "sound")},
        "api.client": given["api"],
        "api.price": given["price"],
        "budget.queries": given["budget"],
        "budget.money": given["money"],
        "assess.method": given.get("method"),
        "assess.levels": given["levels"],
        "assess.seed": given["seed"],
        "assess.mix": shares(given.get("mix")),
        "assess.weights": given.get("weights"),
        "assess.tolerance": given.get("tolerance"),
        "assess.confidence": _optional_share(given, "confidence"),
        "assess.target_error": _optional_share(given, "target_error"),
        **{
            f"assess.{key}": given.get(key)
            for key in ("decide", "canary", "canary_ok", "fail_on", "strict")
        },
        "limits.concurrency": given["concurrency"],
        "limits.rate": given["rate"],
    }


def _optional_share(given: dict[str, Any], name: str) -> float | None:
    """Give an option that is a share, where the command has it and it was given."""
    value = given.get(name)
    return None if value is None else share(value, f"--{name.replace('_', '-')}")


def imported(given: dict[str, Any]) -> "Baseline":
    """Take a baseline over from a column of the data, or of another file with the same ids."""
    from masa.data.dataset import read_answers
    from masa.runs.baseline import import_answers
    from masa.runs.config import Config
    from masa.runs.task import made, recorded

    config = Config.load(given["config"], flags_of(given))
    taken, source, confidence = given["take"], given["source"], given["import_confidence"]
    data = recorded(
        config, () if source else (taken,), difficulty=confidence if not source else None
    )
    if source is None:
        answers, numbers = data.predictions[taken], data.difficulty
    else:
        if config.data.id is None:
            raise UsageError(
                "answers in another file need ids", hint="name the column of ids with --id COL"
            )
        places, found = read_answers(
            source, id=config.data.id, prediction=taken, confidence=confidence
        ).over(data)
        data, answers, numbers = data.take(places), found.answers, found.confidence
    client = None if config.api is None else made(config.api, data, config.data.input)
    return import_answers(
        data, answers, confidence=numbers, client=client, name=config.name, store=config.store
    )


def decide_input(guessed: tuple[str, ...], known: list[str], *, asking: bool) -> tuple[str, ...]:
    """Take the columns that the user says, or else the guess."""
    if not asking:
        return guessed
    said = typer.prompt(
        "Column that the API is shown (empty for none)", default=", ".join(guessed), err=True
    )
    chosen = (said,) if said in known else tuple(names([said]))
    return tuple(name for name in chosen if decide("", name, None, known, asking=False))


def decide(
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


def spending(
    task: "Task", *, yes: bool, repeat: int = 0, other: "Client | None" = None
) -> dict[str, Any]:
    """Give the budget; without one, show what asking everything would cost and ask, or refuse where nobody can be asked."""
    from masa.records import money_text
    from masa.runs.session import free
    from masa.runs.task import worst_price

    budget = task.config.budget
    if (
        budget.queries is not None
        or budget.money is not None
        or (free(task.client) and (other is None or free(other)))
    ):
        return {"budget": budget.queries, "money": budget.money}
    asked = [client for client in (task.client, other) if client is not None and not free(client)]
    most = len(task.data) * len(asked) + repeat
    worst = sum(worst_price(client, task.data, repeat=repeat) for client in asked)
    words = f"up to {most:,} queries" + (
        f", at the most {money_text(worst)}" if all(client.priced for client in asked) else ""
    )
    if not yes:
        if not sys.stdin.isatty() or not sys.stderr.isatty():
            raise UsageError(
                f"no budget was given: this may take {words}",
                hint="give --budget N or --money M, or --yes for all",
            )
        if not typer.confirm(f"This may take {words}. Go on?", err=True):
            raise UsageError(
                "nothing was asked, nothing was spent",
                hint="give --budget N or --money M to spend less",
            )
    return {"budget": most}


def engagement(
    task: "Task", *, resume: int | None, fresh: bool, progress: "Progress | None"
) -> dict[str, Any]:
    """Give what every command that asks an API passes on."""
    return {
        "limits": task.config.limit(),
        "name": task.config.name,
        "store": task.config.store,
        "resume": resume,
        "fresh": fresh,
        "progress": progress,
        "interruptible": True,
    }


def how_to_go_on(run: int, stopped: str, *, resume: bool = True) -> list[str]:
    """Give the command that goes on with a run that did not come to its end."""
    if stopped not in ("interrupted", "failures"):
        return []
    words = [word for word in sys.argv[1:] if word != "--fresh"]
    again = shlex.join(
        ["masa", *words, *(["--resume", str(run)] if resume and "--resume" not in words else [])]
    )
    return [f"run {run} is kept; to go on: {again}"]


def names(given: list[str] | None) -> list[str]:
    """Read repeated or comma-separated names.

    >>> names(["masa,uniform", "optimal"])
    ['masa', 'uniform', 'optimal']
    """
    return [name.strip() for text in given or [] for name in text.split(",") if name.strip()]


def whole_numbers(given: str | None) -> list[int] | None:
    """Read numbers separated by commas.

    >>> whole_numbers("500, 1_000")
    [500, 1000]
    """
    if given is None:
        return None
    try:
        return [int(part) for part in given.split(",")]
    except ValueError as exc:
        raise UsageError(
            f"budgets are {given!r}",
            hint="give whole numbers separated by commas: --budgets 500,1000,2000",
        ) from exc


def share(given: str, option: str) -> float:
    """Read a share: a number, or a percentage.

    >>> share("0.01", "--target-error"), share("1%", "--target-error")
    (0.01, 0.01)
    """
    try:
        # In decimals: 99.9 / 100 is not 0.999 in binary.
        return float(Decimal(given.removesuffix("%")) / (100 if given.endswith("%") else 1))
    except ArithmeticError as exc:
        raise UsageError(
            f"{option} is {given!r}", hint="give a share such as 0.01, or a percentage such as 1%"
        ) from exc


def pairs(given: "list[str] | None") -> dict[str, str]:
    """Read NAME=COLUMN pairs.

    >>> pairs(["gpt-4@0613=june answers"])
    {'gpt-4@0613': 'june answers'}
    """
    found = {}
    for pair in given or ():
        name, equals, column = pair.partition("=")
        if not (name.strip() and equals and column):
            raise UsageError(f"--answers is {pair!r}", hint="give API=COLUMN or API@DATE=COLUMN")
        found[name.strip()] = column
    return found


def number_or_word(given: str) -> float | str:
    """Read a number, or leave a word a word."""
    try:
        return float(given)
    except ValueError:
        return given


def shares(given: str | None) -> dict[str, float] | None:
    """Read a mix of labels: label=share pairs, a JSON object, or the name of a file that holds one.

    >>> shares("spam=0.1, ham=0.9")
    {'spam': 0.1, 'ham': 0.9}
    """
    if given is None:
        return None
    hint = (
        'write label=share,label=share; for labels with commas give a JSON file: {"label": share}'
    )
    try:
        if given.endswith(".json"):
            given = Path(given).read_text(encoding="utf-8")
        if given.lstrip().startswith("{"):
            return {str(name): float(number) for name, number in json.loads(given).items()}
        for part in given.split(","):
            if "=" not in part:
                raise UsageError(f"the mix has {part!r} where label=share should be", hint=hint)
        pairs = [part.rsplit("=", 1) for part in given.split(",")]
        mix = {name.strip(): float(number) for name, number in pairs}
        if len(mix) < len(pairs):
            raise UsageError("the mix names a label twice", hint=hint)
        return mix
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as exc:
        raise UsageError(f"the mix cannot be read: {exc}", hint=hint) from exc


def say(notes: Iterable[str]) -> None:
    """Print notes where they do not mix with results, after what was printed before."""
    sys.stdout.flush()
    from masa.report.words import plain

    for note in notes:
        print("note: " + "\n".join(map(plain, note.split("\n"))), file=sys.stderr)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object."""
    print(json.dumps(content, indent=2, allow_nan=False))


@contextmanager
def running(*, quiet: bool, verbose: int) -> "Iterator[Progress | None]":
    """Show progress while something long runs, and log as much as was asked for."""
    import logging

    if verbose:
        logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
        logging.getLogger("masa").setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("reading", total=1.0)
        yield lambda what, done: shown.update(task, description=what, completed=done)


def main(arguments: list[str] | None = None) -> int:
    """Run a command and give its exit code; a failure never looks like a verdict."""
    given = sys.argv[1:] if arguments is None else arguments
    # A stream that was closed is None; what is printed there goes nowhere.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - it is to stay open
    as_json = "--json" in given
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # Not app(): it would end an interrupt or a broken pipe with exit codes of its own, one of which is a verdict.
        parser = typer.main.get_command(app)
        with parser.make_context("masa", given.copy()) as parsed:
            code = parser.invoke(parsed) or 0
        sys.stdout.flush()
        return int(code)
    except typer.Exit as exc:
        return exc.exit_code
    except MasaError as exc:
        return fail(exc.kind, exc.message, exc.hint, exc.exit_code, as_json=as_json)
    except TyperException as exc:
        context = getattr(exc, "ctx", None)
        command = context.command_path if context is not None else "masa"
        return fail("usage", exc.format_message(), f"see {command} --help", 2, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        return fail("interrupted", "interrupted", "", 130, as_json=as_json)
    except BrokenPipeError:
        stop_printing()
        return 141  # As programs that die of SIGPIPE do: whoever read the output has gone.
    except BaseException as exc:
        # SystemExit too: somebody else's exit code must not pass for a verdict.
        if isinstance(exc, OSError) and (
            exc.errno == errno.ENOSPC or "No usable temporary directory" in str(exc)
        ):
            return fail(
                "disk",
                f"no space left on the disk: {exc}",
                "free some and run the same command again",
                2,
                as_json=as_json,
            )
        return fail(
            "defect",
            f"a defect in masa: {type(exc).__name__}: {exc}",
            f"please report it with {crash_log(exc)}",
            70,
            as_json=as_json,
        )


def fail(kind: str, message: str, hint: str, code: int, *, as_json: bool) -> int:
    """Say what went wrong, in JSON where results would be JSON, and give the exit code."""
    from masa.report.words import plain

    with suppress(OSError):
        print(f"masa: {plain(message)}" + (f"\n  {plain(hint)}" if hint else ""), file=sys.stderr)
    try:
        if as_json:
            print_json({"error": {"kind": kind, "message": message, "hint": hint}})
        sys.stdout.flush()
    except OSError:
        stop_printing()
    return code


def stop_printing() -> None:
    """Send what is still to be printed nowhere, so that the interpreter does not fail on it when it ends."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def crash_log(exc: BaseException) -> str:
    """Write what is needed to mend a defect to a file and give its name."""
    import platform
    import tempfile
    import traceback

    import masa

    log = f"masa {masa.__version__}, Python {platform.python_version()}, {platform.platform()}\n\n"
    log += "".join(traceback.format_exception(exc))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="masa-defect-", suffix=".log", delete=False, encoding="utf-8"
        ) as file:
            file.write(log)
    except OSError:
        with suppress(OSError):
            print(log, file=sys.stderr)
        return "what stands above"
    return file.name
