"""Stop early when the API does not answer with the labels of the data."""

from collections import Counter
from collections.abc import Callable, Sequence

from masa.errors import DataError
from masa.records import ERROR, INVALID, UNLABELLED, Answer, Query
from masa.sampling.source import Source

UNMAPPED = 0.1
"""If so large a share of the answers is no label, they may be the data's labels by other names."""

TELLING = 20
"""If none of so many first answers is a label of the data, the API uses other labels."""


class LabelCheck:
    """A source that ends a run when the first answers are none of the labels of the data."""

    def __init__(
        self, source: Source, labels: tuple[str, ...], why: Callable[[], str] = str
    ) -> None:
        """Ask `why` the answers cannot be read, where none can."""
        self._source = source
        self._labels = labels
        self._why = why
        self._said: list[str] = []

    def ask(self, n: int = 1) -> list[Query]:
        """Give what the source gives."""
        return self._source.ask(n)

    def sent(self, query: Query) -> None:
        """Tell the source."""
        self._source.sent(query)

    def delayed(self, item: int) -> None:
        """Tell the source."""
        self._source.delayed(item)

    def tell(self, answer: Answer) -> None:
        """Tell the source, and look at the first answers."""
        self._source.tell(answer)
        if len(self._said) >= TELLING:
            return
        self._said.append(answer.prediction)
        if len(self._said) == TELLING and not set(self._said) & {*self._labels, ERROR}:
            raise misread(self._said, self._labels, self._why())


def misread(said: list[str], labels: tuple[str, ...], why: str = "") -> DataError:
    """Say that the API and the data do not use the same labels."""
    if set(said) == {INVALID}:
        return DataError(
            f"none of the first {len(said)} answers could be read as a label",
            hint=why
            or "look at what the API answers; does the prompt ask for one of the labels, "
            "is max_tokens large enough?",
        )
    different = list(dict.fromkeys(said))
    heard = ", ".join(repr(name[:40]) for name in different[:4])
    known = ", ".join(map(repr, labels[:4])) + (", ..." if len(labels) > 4 else "")
    return DataError(
        f"none of the first {len(said)} answers is a label of the data: the API says {heard}; "
        f"the labels are {known}",
        hint=f"map them in [api]: labels = {_example(different, labels)}; what was asked is kept",
    )


def unmapped(said: Sequence[str], labels: tuple[str, ...]) -> list[str]:
    """Say which answers are no labels of the data, where labels are lacking in their place.

    >>> unmapped(["positive"] * 9 + ["neutral"], ("good", "neutral"))[0].partition(";")[0]
    "9 of 10 answers are no labels of the data ('positive'), and 'good' is never answered"
    """
    known = {*labels, INVALID, ERROR, UNLABELLED}
    others = Counter(one for one in said if one not in known)
    never = [label for label in labels if label not in {*said, UNLABELLED}]
    if not never or others.total() < max(UNMAPPED * len(said), 2):
        return []
    heard = ", ".join(repr(name[:40]) for name, _ in others.most_common(4))
    lacking = ", ".join(map(repr, never[:4])) + (", ..." if len(never) > 4 else "")
    verb = "is" if len(never) == 1 else "are"
    return [
        f"{others.total():,} of {len(said):,} answers are no labels of the data ({heard}), and "
        f"{lacking} {verb} never answered; if some mean the same, map them in [api] labels"
    ]


def _example(said: list[str], labels: tuple[str, ...]) -> str:
    """Give a mapping to write into masa.toml, from names that differ by case or spaces alone."""
    for name in said:
        for label in labels:
            if name.strip().casefold() == label.casefold():
                return f'{{ "{name}" = "{label}" }}'
    return '{ THEIRS = "ours" }'
