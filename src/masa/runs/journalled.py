"""A journal read back: its keys as places in the data, its rows as queries and answers."""

from collections.abc import Collection, Iterator

import numpy as np

from masa.data.dataset import Dataset
from masa.errors import DataError
from masa.records import Answer, Ints, Query
from masa.sampling.asked import Asked
from masa.storage.journal import Past


def keys(data: Dataset) -> Ints:
    """Give the keys of the items."""
    if data.keys is None:
        raise DataError("the data has no keys", hint="make it with masa.read or Dataset.of")
    return data.keys


def places(data: Dataset, wanted: Collection[int]) -> dict[int, int]:
    """Give the places of the items that have these keys, by key; the others are left out."""
    if not wanted or data.keys is None:
        return {}
    given = np.fromiter(wanted, np.int64, len(wanted))
    order = np.argsort(data.keys, kind="stable")
    at = np.minimum(np.searchsorted(data.keys[order], given), len(order) - 1)
    found = order[at]
    have = data.keys[found] == given
    return dict(zip(given[have].tolist(), found[have].tolist(), strict=True))


def query(place: int, drawn: tuple[int, float, int] | None) -> Query:
    """Give a query of the journal as it was."""
    return Query(place, -1) if drawn is None else Query(place, -1, *drawn)


def answered(data: Dataset, past: Past) -> Iterator[tuple[Query, Answer]]:
    """Give the queries about items of this data that have an answer, in the order of sending."""
    place = places(data, past.answers)
    for key, recorded in past.answers.items():
        if key in place:
            yield (
                query(place[key], past.draws.get(key)),
                Answer(place[key], recorded.prediction, recorded.confidence),
            )


def unanswered(data: Dataset, past: Past) -> Iterator[Query]:
    """Give the queries that were sent and have no answer."""
    place = places(data, past.unanswered)
    for key in past.unanswered:
        yield query(place[key], past.draws.get(key))


def asked(data: Dataset, past: Past) -> Asked:
    """Fold the answers of a journal."""
    found = Asked()
    for sent, answer in answered(data, past):
        found.sent(sent)
        found.tell(answer)
    return found


def version(past: Past) -> str | None:
    """Give what the provider called its model, all names if it changed during a run."""
    named = dict.fromkeys(answer.version for answer in past.answers.values() if answer.version)
    return ", ".join(named) or None
