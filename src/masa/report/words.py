"""Numbers and texts, written for people."""

ROUNDING = 1e-8
"""A share below this is a rounding error of zero."""


def percent(value: float) -> str:
    """Write a share as a percentage with three digits, or six from 99% to 100%.

    >>> percent(0.0123456), percent(0.000012), percent(0.25), percent(0.9999), percent(1e-17)
    ('1.23%', '0.0012%', '25%', '99.99%', '0%')
    """
    if abs(value) < ROUNDING:
        return "0%"
    if 0.99 <= value <= 1:
        return f"{100 * value:.6g}%"
    return f"{100 * value:.3g}%"


def points(value: float, *, sign: bool = True) -> str:
    """Write a difference of shares in percentage points.

    >>> points(0.0123), points(-0.2), points(0.01, sign=False), points(0.240892, sign=False)
    ('+1.2 points', '-20.0 points', '1 point', '24.1 points')
    """
    number = 100 * value
    if sign:
        return f"{number:+.1f} points"
    if number == 1:
        return "1 point"
    return f"{number:.3g} points"


def counted(number: int, noun: str) -> str:
    """Write a number of things.

    >>> counted(1, "query"), counted(1200, "query"), counted(2, "answer")
    ('1 query', '1,200 queries', '2 answers')
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}s"


def plain(text: str, most: int = 2000) -> str:
    r"""Escape a text from elsewhere so that it cannot control a terminal, and shorten it.

    >>> print(plain(chr(27) + "[31mred"))
    \x1b[31mred
    """
    shown = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text[:most])
    if len(text) > most:
        shown += "..."
    return shown


def brief(name: str, most: int = 12) -> str:
    """Write a name in at most so many characters.

    >>> brief("negative"), brief("a very long label", 6)
    ('negative', 'a ver…')
    """
    name = plain(name)
    if len(name) > most:
        return name[: most - 1] + "\u2026"
    return name


def written(value: object) -> str:
    """Write a value of a table for people to read.

    >>> written(18775), written(12.345), written(0.00012), written(None), written(211.4)
    ('18,775', '12.35', '1.20e-04', '-', '211')
    >>> written(True)
    'yes'
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    if 0.0 < abs(value) < 0.005:
        return f"{value:.2e}"
    if abs(value) < 100:
        return f"{value:,.2f}"
    return f"{value:,.0f}"
