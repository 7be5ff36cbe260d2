"""Stop early when the API does not answer with the labels of the data."""

from masa.errors import DataError
from masa.records import ERROR, INVALID, Answer, Query
from masa.runs.engine import Source

TELLING = 20
"""If none of the first so many answers is a label of the data, the API's labels are other ones."""


class LabelCheck:
    """A source that stops a run when the first answers show that the API's labels are not those of the data."""

    def __init__(self, source: Source, labels: tuple[str, ...]) -> None:
        self._source = source
        self._labels = labels
        self._said: list[str] = []

    def ask(self, n: int = 1) -> list[Query]:
        """Give what the source gives."""
        return self._source.ask(n)

    def tell(self, answer: Answer) -> None:
        """Tell the source, and look at the first answers."""
        self._source.tell(answer)
        if len(self._said) < TELLING:
            self._said.append(answer.prediction)
            if len(self._said) == TELLING and not set(self._said) & {*self._labels, ERROR}:
                raise strangers(self._said, self._labels)


def strangers(said: list[str], labels: tuple[str, ...]) -> DataError:
    """Say that the API and the data do not speak of the same labels."""
    if set(said) == {INVALID}:
        return DataError(
            f"none of the first {len(said)} answers could be read as a label",
            hint="look at what the API answers; does the prompt ask for one of the labels, is max_tokens large enough?",
        )
    heard = ", ".join(repr(name[:40]) for name in list(dict.fromkeys(said))[:4])
    pairs = [
        (name, label)
        for name in dict.fromkeys(said)
        for label in labels
        if name.strip().casefold() == label.casefold()
    ]
    example = f'{{ "{pairs[0][0]}" = "{pairs[0][1]}" }}' if pairs else '{ THEIRS = "ours" }'
    return DataError(
        f"none of the first {len(said)} answers is a label of the data: the API says {heard}; "
        f"the labels are {', '.join(map(repr, labels[:4]))}" + (", ..." if len(labels) > 4 else ""),
        hint=f"map them in [api]: labels = {example}; what was asked is kept",
    )
