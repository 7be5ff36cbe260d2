"""A bar that shows how far something long is: in a terminal, and in a notebook."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from masa.records import Progress


@contextmanager
def bar(console: Console) -> Iterator[Progress]:
    """Show a bar until the work is done; give what is to be called with how far it is."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True) as shown:
        task = shown.add_task("reading", total=1.0)
        yield lambda what, done: shown.update(task, description=what, completed=done)


def in_notebook() -> bool:
    """Say whether this runs in a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def notebook_bar() -> Iterator[Progress]:
    """Show a bar in the output of a cell until the work is done."""
    from IPython.display import HTML, display

    shown = display(HTML(""), display_id=True)

    def update(what: str, done: float) -> None:
        shown.update(HTML(f'<progress max="1" value="{done:.3f}"></progress> {escape(what)}'))

    try:
        yield update
    finally:
        shown.update(HTML(""))
