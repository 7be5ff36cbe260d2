"""The entry: run a command, and turn what goes wrong into an exit code that is no verdict."""

import errno
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated

import typer
from typer.exceptions import TyperException

from masa.cli.commands.importing import take_in
from masa.cli.commands.preparing import clients, difficulty, init, validate
from masa.cli.commands.replaying import demo, replay
from masa.cli.commands.research import reproduce
from masa.cli.commands.running import assess, baseline, compare, plan
from masa.cli.commands.stored import (
    accept,
    answers,
    export_baseline,
    history,
    import_baseline,
    report,
    verify,
)
from masa.cli.output import print_json
from masa.errors import MasaError

BROKEN_PIPE = 141
"""As of programs that die of SIGPIPE: whoever read the output has gone."""
DEFECT = 70
INTERRUPTED = 130


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


COMMANDS = (
    init,
    validate,
    baseline,
    export_baseline,
    import_baseline,
    plan,
    assess,
    accept,
    compare,
    report,
    verify,
    answers,
    history,
    replay,
    take_in,
    reproduce,
    difficulty,
    clients,
    demo,
)


def make_app(arguments: list[str]) -> typer.Typer:
    """Make the parser; only a command that is named gets its options, or starting would be slow."""
    app = typer.Typer(
        help="Did the model behind an ML API change, how, and is that better or worse for you?",
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(start)
    for command in COMMANDS:
        command.add_to(app, with_options=command.name in arguments)
    return app


def joined(arguments: list[str]) -> list[str]:
    """Join the words of a command that has two of them.

    >>> joined(["baseline", "export", "b.txt"]), joined(["baseline", "data.csv"])
    (['baseline export', 'b.txt'], ['baseline', 'data.csv'])
    """
    two = " ".join(arguments[:2])
    if two in {command.name for command in COMMANDS}:
        return [two, *arguments[2:]]
    return arguments


def main(arguments: list[str] | None = None) -> int:
    """Run a command and give its exit code; a failure never looks like a verdict."""
    given = joined(sys.argv[1:] if arguments is None else arguments)
    _open_closed_streams()
    as_json = "--json" in given
    try:
        # Not app(): it would end an interrupt or a broken pipe with an exit code that is a verdict.
        parser = typer.main.get_command(make_app(given))
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
        command = "masa" if context is None else context.command_path
        return fail("usage", exc.format_message(), f"see {command} --help", 2, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        return fail("interrupted", "interrupted", "", INTERRUPTED, as_json=as_json)
    except BrokenPipeError:
        stop_printing()
        return BROKEN_PIPE
    except BaseException as exc:
        # SystemExit too: somebody else's exit code must not pass for a verdict.
        return _unexpected(exc, as_json=as_json)


def _open_closed_streams() -> None:
    """Let what is printed to a stream that was closed go nowhere; show what cannot be encoded."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - it is to stay open
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _unexpected(exc: BaseException, *, as_json: bool) -> int:
    """Tell a full disk from a defect of ours."""
    full = isinstance(exc, OSError) and exc.errno == errno.ENOSPC
    if full or "No usable temporary directory" in str(exc):
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
        DEFECT,
        as_json=as_json,
    )


def fail(kind: str, message: str, hint: str, code: int, *, as_json: bool) -> int:
    """Say what went wrong, in JSON where results would be JSON, and give the exit code."""
    from masa.report.words import plain

    with suppress(OSError):
        print(f"masa: {plain(message)}", file=sys.stderr)
        if hint:
            print(f"  {plain(hint)}", file=sys.stderr)
    try:
        if as_json:
            print_json({"error": {"kind": kind, "message": message, "hint": hint}})
        sys.stdout.flush()
    except OSError:
        stop_printing()
    return code


def stop_printing() -> None:
    """Send what is still to be printed nowhere, or the interpreter would fail on it at its end."""
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
        return "what is printed above"
    return file.name
