"""A range of numbers in words."""

from collections.abc import Iterable


def number_range(values: Iterable[float | None], style: str = ".3g", unit: str = "") -> str:
    """Write the smallest and the largest of the numbers that are known.

    >>> number_range([3.0, None, 1.25]), number_range([49.2, 97.1], ".0f", "%")
    ('1.25 to 3', '49% to 97%')
    """
    known = [value for value in values if value is not None]
    if not known:
        return "unknown"
    return f"{min(known):{style}}{unit} to {max(known):{style}}{unit}"
