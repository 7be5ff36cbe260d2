"""Answers that were paid for under a wrong mapping of labels: renamed, not asked again.

The first answers show that the API calls its labels otherwise, and the run stops. Once the mapping
in masa.toml is corrected, the same command resumes that run.
"""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sql

from masa.clients.language_models.reading import simplified
from masa.records import ERROR, INVALID
from masa.storage import history
from masa.storage.history import DRAWN_SEED, Draft, Run
from masa.storage.schema import call, run
from masa.storage.store import Store

FIXED = ("missing", "nothing")
"""Keys of a parser whose values are labels that no mapping changes."""


def take_over(store: Store, draft: Draft) -> str | None:
    """Rename the answers of an unfinished run that differs in the mapping of labels alone.

    It then is the unfinished run of this command. Say in words what was done, or None.
    """
    found = _unfinished(store, draft)
    if found is None or store.is_claimed(found.id):
        return None
    before, now = found.comparable["parser"], draft.comparable["parser"]
    with store.begin() as connection:
        mine = (call.c.run == found.id) & (call.c.outcome == "answer")
        said = connection.execute(sql.select(call.c.prediction).where(mine).distinct()).scalars()
        labels = {prediction: renamed(prediction, before, now) for prediction in said}
        known = {prediction: label for prediction, label in labels.items() if label is not None}
        heard = _heard(connection, mine, now["labels"])
        # What cannot be told is asked again; it stays paid for.
        unknown = mine & call.c.prediction.in_([one for one in labels if one not in known])
        unknown &= call.c.said.is_(None) | call.c.said.not_in(list(heard))
        again = {"outcome": "failed", "prediction": None, "scores": None}
        connection.execute(sql.update(call).where(unknown).values(**again))
        kept = 0
        if known:
            # In one statement: labels may change places.
            label = sql.case(known, value=call.c.prediction)
            rename = sql.update(call).where(mine).values(prediction=label, scores=None)
            told = mine & call.c.prediction.in_(list(known))
            kept = connection.execute(rename.where(told)).rowcount
        for said_so, label_now in heard.items():
            told_so = {"prediction": label_now, "reason": None, "said": None, "scores": None}
            named = mine & (call.c.prediction == INVALID) & (call.c.said == said_so)
            kept += connection.execute(sql.update(call).where(named).values(**told_so)).rowcount
        row = {"comparable": dict(draft.comparable), "identity": draft.identity}
        connection.execute(sql.update(run).where(run.c.id == found.id).values(**row))
    done = f"{kept:,} answers of run {found.id} were renamed"
    if not kept:
        done = f"what run {found.id} asked is asked again, as it is not known what was said"
    return f"the mapping of labels was corrected: {done}"


def _heard(
    connection: sql.Connection, mine: sql.ColumnElement[bool], labels: Mapping[str, str]
) -> dict[str, str]:
    """Give the label of each name that was kept because it was none before."""
    names = {simplified(name): label for name, label in labels.items()}
    unread = mine & (call.c.prediction == INVALID) & call.c.said.is_not(None)
    said = connection.execute(sql.select(call.c.said).where(unread).distinct()).scalars()
    return {one: names[simplified(one)] for one in said if simplified(one) in names}


def renamed(prediction: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Give the label that an answer has now; None where that cannot be told.

    >>> before, now = {"labels": {"good": "pos"}}, {"labels": {"good": "yes", "bad": "no"}}
    >>> [renamed(said, before, now) for said in ("pos", "bad", "good")]
    ['yes', 'no', None]
    """
    old, new = before["labels"], now["labels"]
    if prediction in (INVALID, ERROR):
        return None
    said = {name for name, label in old.items() if label == prediction}
    if prediction not in old and not said:
        said.add(prediction)
    labels = {new.get(name, name) for name in said}
    labels |= {prediction for key in FIXED if before.get(key) == prediction}
    return labels.pop() if len(labels) == 1 else None


def _unfinished(store: Store, draft: Draft) -> Run | None:
    """Find the newest unfinished run that differs from a draft in the mapping of labels alone."""
    parser = draft.comparable.get("parser")
    if not isinstance(parser, Mapping) or "labels" not in parser:
        return None
    for found in reversed(history.runs(store, most=10)):
        if (found.name, found.kind) != (draft.name, draft.kind):
            continue
        # Only the newest of its name and kind: others were left behind on purpose.
        return found if _differs_in_labels(found, draft) else None
    return None


def _differs_in_labels(found: Run, draft: Draft) -> bool:
    same = found.finished is None and history.is_recent(found)
    same &= (found.data, found.baseline) == (draft.data, draft.baseline)
    settings = {key: value for key, value in found.settings.items() if key != DRAWN_SEED}
    return (
        same
        and settings == dict(draft.settings)
        and found.identity != draft.identity
        and _without_labels(found.comparable) == _without_labels(draft.comparable)
    )


def _without_labels(comparable: Mapping[str, Any]) -> dict[str, Any]:
    parser = comparable.get("parser")
    if not isinstance(parser, Mapping):
        return dict(comparable)
    return {**comparable, "parser": {**parser, "labels": None}}
