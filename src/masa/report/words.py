"""Numbers and texts, written for people."""

LEAST = 1e-8
"""Below this an error is rounding."""


def percent(value: float) -> str:
    """Write a share as a percentage with three digits, near 100% with six.

    >>> percent(0.0123456), percent(0.000012), percent(0.25), percent(0.9999), percent(1e-17)
    ('1.23%', '0.0012%', '25%', '99.99%', '0%')
    """
    return (
        "0%"
        if abs(value) < LEAST
        else f"{100 * value:.3g}%"
        if value < 0.99 or value > 1
        else f"{100 * value:.6g}%"
    )


def points(value: float, *, sign: bool = True) -> str:
    """Write a difference of shares in percentage points.

    >>> points(0.0123), points(-0.2), points(0.01, sign=False)
    ('+1.2 points', '-20.0 points', '1 point')
    """
    number = 100 * value
    if not sign:
        return f"{number:g} point" + ("" if number == 1 else "s")
    return f"{number:+.1f} points"


def counted(number: int, noun: str) -> str:
    """Write a number of things.

    >>> counted(1, "query"), counted(1200, "query"), counted(2, "answer")
    ('1 query', '1,200 queries', '2 answers')
    """
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"


def plain(text: str, most: int = 2000) -> str:
    r"""Write what came from elsewhere so that it cannot steer a terminal.

    >>> print(plain(chr(27) + "[31mred"))
    \x1b[31mred
    """
    shown = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text[:most])
    return shown + ("..." if len(text) > most else "")


def written(value: object) -> str:
    """Write a value of a table for people to read.

    >>> written(18775), written(12.345), written(0.00012), written(None), written(True), written(211.4)
    ('18,775', '12.35', '1.20e-04', '-', 'yes', '211')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    return (
        f"{value:.2e}"
        if 0.0 < abs(value) < 0.005
        else f"{value:,.2f}"
        if abs(value) < 100
        else f"{value:,.0f}"
    )
