"""How the values of settings are read: from a text, from TOML or from Python, to the same value.

A reader raises ValueError; the message says what to give instead. Modules that only readers need
are imported there: every start of the program imports this one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PER = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "min": 60.0,
    "m": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
}
"""Seconds in each unit of time that a rate may be given per."""

MIX_HINT = (
    'write label=share,label=share; for labels with commas give a JSON file: {"label": share}'
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: what stands for it in help texts, and how it is read."""

    metavar: str
    read: Callable[[Any], Any]
    flag: bool = False
    """whether the option takes no value"""
    several: bool = False
    """whether the option may be repeated"""
    reads_none: bool = False
    """whether None stands for the default"""


def whole(metavar: str, low: int, high: int | None = None) -> Kind:
    """Make the kind of whole numbers within a range.

    >>> whole("K", 1, 100).read("3")
    3
    """
    words = f"give a whole number of {low} or more"
    if high is not None:
        words = f"give a whole number from {low} to {high}"

    def read(given: Any) -> int:
        if isinstance(given, bool) or not isinstance(given, int | str):
            raise ValueError(words)
        try:
            value = int(given)
        except ValueError:
            raise ValueError(words) from None
        if value < low or (high is not None and value > high):
            raise ValueError(words)
        return value

    return Kind(metavar, read)


def number(metavar: str, words: str, low: float, high: float, *, above: bool = False) -> Kind:
    """Make the kind of numbers within a range; above leaves out its lower end.

    A text may be a percentage. It is read in decimals, because 99.9 / 100 is not 0.999 in binary.

    >>> number("E", "give a share", 0.0, 1.0).read("1%")
    0.01
    """

    def read(given: Any) -> float:
        from decimal import Decimal

        if isinstance(given, bool) or not isinstance(given, int | float | str | Decimal):
            raise ValueError(words)
        text = str(given).strip()
        try:
            value = float(Decimal(text.removesuffix("%")) / (100 if text.endswith("%") else 1))
        except (ArithmeticError, ValueError):
            raise ValueError(words) from None
        if not low <= value <= high or (above and value == low):
            raise ValueError(words)
        return value

    return Kind(metavar, read)


def text(metavar: str) -> Kind:
    """Make the kind of texts."""

    def read(given: Any) -> str:
        if not isinstance(given, str):
            raise ValueError("give a text")
        return given

    return Kind(metavar, read)


def names(metavar: str) -> Kind:
    """Make the kind of several names: a list, or one text with commas.

    >>> names("COL").read(["masa,uniform", "optimal"])
    ('masa', 'uniform', 'optimal')
    """

    def read(given: Any) -> tuple[str, ...]:
        listed = [given] if isinstance(given, str) else given
        if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
            raise ValueError("give a name, or a list of names")
        return tuple(part.strip() for one in listed for part in one.split(",") if part.strip())

    return Kind(metavar, read, several=True)


def columns(metavar: str = "COL") -> Kind:
    """Make the kind of several columns: a name, or a list of names, which may hold commas."""

    def read(given: Any) -> tuple[str, ...]:
        listed = [given] if isinstance(given, str) else given
        if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
            raise ValueError("give a column, or a list of columns")
        return tuple(listed)

    return Kind(metavar, read, several=True)


def numbers(metavar: str = "N,N,...") -> Kind:
    """Make the kind of several whole numbers of 1 or more: a list, or a text with commas.

    >>> numbers().read("500, 1_000")
    (500, 1000)
    """
    words = "give whole numbers of 1 or more, separated by commas: 500,1000,2000"

    def read(given: Any) -> tuple[int, ...]:
        listed = given.split(",") if isinstance(given, str) else given
        try:
            found = tuple(int(one) for one in listed)
        except (TypeError, ValueError):
            raise ValueError(words) from None
        if not found or min(found) < 1:
            raise ValueError(words)
        return found

    return Kind(metavar, read)


def shares(metavar: str, words: str, low: float, high: float) -> Kind:
    """Make the kind of several shares: a list, or texts with commas."""
    one = number(metavar, words, low, high).read

    def read(given: Any) -> tuple[float, ...]:
        listed = [given] if isinstance(given, str | float | int) else given
        parts = [part for text in listed for part in str(text).split(",") if part.strip()]
        return tuple(one(part) for part in parts)

    return Kind(metavar, read, several=True)


def flag() -> Kind:
    """Make the kind of yes and no."""

    def read(given: Any) -> bool:
        if not isinstance(given, bool):
            raise ValueError("give true or false")
        return given

    return Kind("", read, flag=True)


def run_or_file() -> Kind:
    """Make the kind of the number of a run, or of the name of a file.

    >>> run_or_file().read("3"), run_or_file().read("pinned.baseline").name
    (3, 'pinned.baseline')
    """

    def read(given: Any) -> "int | Path":
        if isinstance(given, int) or str(given).isdecimal():
            return int(given)
        return Path(str(given))

    return Kind("RUN|FILE", read)


def one_of(metavar: str, *choices: str) -> Kind:
    """Make the kind of a choice.

    >>> one_of("WHAT", "any", "worse").read("wrse")
    Traceback (most recent call last):
    ValueError: did you mean 'worse'? there are any, worse
    """

    def read(given: Any) -> str:
        if given in choices:
            return str(given)
        from difflib import get_close_matches

        close = get_close_matches(str(given), choices, 1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"{guess}there are {', '.join(choices)}")

    return Kind(metavar, read)


def rate() -> Kind:
    """Make the kind of rates: calls per second, or a number per unit of time.

    >>> [rate().read(given) for given in (5, "500/s", "600/min")]
    [5.0, 500.0, 10.0]
    """

    def read(given: Any) -> float:
        amount, _, unit = str(given).partition("/")
        try:
            value = float(amount) / PER[unit.strip() or "s"]
        except (KeyError, ValueError):
            raise ValueError("write it as 5 (per second), '500/s' or '600/min'") from None
        if not 1e-6 <= value <= 1e6:
            raise ValueError("a rate is more than nothing and at most a million per second")
        return value

    return Kind("R", read)


def mix() -> Kind:
    """Make the kind of a mix of labels: label=share pairs, a JSON object, or the name of a file.

    >>> mix().read("spam=0.1, ham=0.9")
    {'spam': 0.1, 'ham': 0.9}
    """

    def read(given: Any) -> dict[str, float]:
        try:
            return _mix(given)
        except (OSError, TypeError, AttributeError, OverflowError, RecursionError) as exc:
            raise ValueError(f"it cannot be read ({exc}); {MIX_HINT}") from exc

    return Kind("MIX", read)


def _mix(given: Any) -> dict[str, float]:
    if isinstance(given, Mapping):
        return {str(name): float(share) for name, share in given.items()}
    content = given
    if given.endswith(".json"):
        content = Path(given).read_text(encoding="utf-8")
    if content.lstrip().startswith("{"):
        import json

        return _mix(json.loads(content))
    pairs = [part.rpartition("=") for part in content.split(",")]
    for _, equals, share in pairs:
        if not equals:
            raise ValueError(f"it has {share!r} where label=share should be; {MIX_HINT}")
    found = {name.strip(): float(share) for name, _, share in pairs}
    if len(found) < len(pairs):
        raise ValueError(f"it names a label twice; {MIX_HINT}")
    return found
