"""Tables as every report draws them: no lines, numbers on the right."""

from rich.table import Table


def table(*columns: str, wrap: bool = False) -> Table:
    """Make a table; the first column is aligned left, the others right."""
    made = Table(header_style="dim", box=None, pad_edge=False, padding=(0, 1))
    for place, name in enumerate(columns):
        made.add_column(name, no_wrap=not wrap, justify="right" if place else "left")
    return made


def listing() -> Table:
    """Make a table without a header."""
    return Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
