"""What the API said that is no label: how often, why, and examples of it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from masa.clients import Client
from masa.records import ERROR, INVALID, UNREAD, Reply
from masa.storage.journal import Past

EXAMPLES = 3
"""Answers of each kind that are shown."""

SHOWN = 120
"""The most characters of an example."""

MOST = 0.5
"""If this share of the answers cannot be read for one reason, the client is asked for advice."""


FEWEST, SURE = 10, 0.001
"""Causes are compared from so many answers on each side, at this level."""

NAME_CHARACTERS, NAME_WORDS = 40, 3
"""The most characters and words of a name in place of a label."""


def is_name(reply: Reply) -> bool:
    """Say whether a reply that is no label may be the API's own name of one.

    Until the first label is read such names are kept: they tell what the mapping lacks.

    >>> is_name(Reply(None, unread="no label", said="favourable"))
    True
    """
    return (
        reply.unread in ("no label", "unknown label")
        and reply.said is not None
        and len(reply.said) <= NAME_CHARACTERS
        and 0 < len(reply.said.split()) <= NAME_WORDS
    )


def counted(past: Past) -> dict[str, int]:
    """Count the answers that are no label by the reason, the most frequent first."""
    reasons = Counter(answer.unread for answer in past.answers.values() if answer.unread)
    return {reason: times for reason, times in reasons.most_common() if reason in UNREAD}


def notes(past: Past, client: Client) -> Iterator[str]:
    """Say how many answers are no label, and why."""
    found = counted(past)
    if not found:
        return
    answers = sum(answer.prediction != ERROR for answer in past.answers.values())
    parts = [
        f"{times:,} {UNREAD[reason]}{_of(client, 'cut_short', reason)}"
        for reason, times in found.items()
    ]
    yield (
        f"{sum(found.values()):,} of {answers:,} answers cannot be read as a label: "
        f"{', '.join(parts)}"
    )
    for reason, times in found.items():
        if times >= MOST * answers and (advice := _of(client, "advice", reason)):
            yield advice


def other_causes(then: Mapping[str, int], now: Mapping[str, int]) -> Iterator[str]:
    """Say that answers which are no label have other causes than in the baseline.

    All of them are one answer in the matrix, `<invalid>`, so no verdict shows it.

    >>> list(other_causes({"refused": 200}, {"no label": 190, "refused": 10}))[0][:52]
    'answers that are no label have other causes than in '
    >>> list(other_causes({"refused": 20, "empty": 5}, {"refused": 12, "empty": 2}))
    []
    """
    causes = [cause for cause in UNREAD if then.get(cause, 0) + now.get(cause, 0)]
    table = [[side.get(cause, 0) for cause in causes] for side in (then, now)]
    if len(causes) < 2 or min(map(sum, table)) < FEWEST:
        return
    from scipy.stats import chi2_contingency

    if chi2_contingency(table).pvalue >= SURE:
        return
    sides = (
        ", ".join(f"{side[cause]:,} {UNREAD[cause]}" for cause in causes if side.get(cause))
        for side in (then, now)
    )
    before, after = sides
    yield (
        f"answers that are no label have other causes than in the baseline: {before} then; "
        f"{after} now. All of them count as one answer, {INVALID}, so the verdict does not show it"
    )


def _of(client: Client, method: str, reason: str) -> str:
    """Give what a client has to say of a reason, if it has that method."""
    tell: Any = getattr(client, method, None)
    return "" if tell is None else str(tell(reason))


def examples(past: Past, seen: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Quote some answers of each kind: those that were kept, else those of this session."""
    kept: dict[str, list[str]] = {reason: list(said) for reason, said in seen.items()}
    for answer in past.answers.values():
        if answer.unread and answer.said is not None:
            kept.setdefault(answer.unread, []).append(answer.said)
    for reason in counted(past):
        said = list(dict.fromkeys(kept.get(reason, ())))[:EXAMPLES]
        if said:
            yield f"answers that {UNREAD[reason]}: {'; '.join(map(quoted, said))}"


def quoted(said: str) -> str:
    """Write an answer in one line, cut off where it is long; the end of it matters, too.

    >>> quoted("a   b")
    "'a b'"
    """
    line = " ".join(said.split())
    line = "".join(sign if sign.isprintable() else " " for sign in line)
    if len(line) > SHOWN:
        line = f"{line[: SHOWN // 2]} ... {line[-SHOWN // 2 :]}"
    return repr(line)
