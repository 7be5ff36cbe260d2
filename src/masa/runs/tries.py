"""What is counted while calls are under way: what a run has done, and how often an item failed."""

from collections import Counter
from dataclasses import dataclass, field

from masa.errors import CallError
from masa.records import Reply
from masa.runs.unread import EXAMPLES


@dataclass(slots=True)
class Count:
    """What a run has done so far."""

    answers: int = 0
    errors: int = 0
    """items that failed for good"""
    overcharged: int = 0
    """calls that cost more than the worst price that was reserved for them"""
    reasons: Counter[str] = field(default_factory=Counter)
    """why calls gave no answer"""
    said: dict[str, str] = field(default_factory=dict)
    """by reason, what the API or the function said about it; shown, never stored"""
    last_trouble: str = ""
    unread: dict[str, list[str]] = field(default_factory=dict)
    """by the reason, some answers of this session that are no label; shown, never stored"""

    def answer(self, reply: Reply) -> None:
        """Count an answer, and remember it as an example if it is no label."""
        self.answers += 1
        self.last_trouble = ""
        if reply.unread and reply.said:
            some = self.unread.setdefault(reply.unread, [])
            if len(some) < EXAMPLES:
                some.append(reply.said)

    def trouble(self, exc: CallError) -> None:
        """Count a call without an answer."""
        self.last_trouble = str(exc)
        self.reasons[str(exc)] += 1
        if exc.said:
            self.said.setdefault(str(exc), exc.said)

    @property
    def in_words(self) -> str:
        """The most frequent reasons, with what was said about them."""
        parts = []
        for reason, times in self.reasons.most_common(3):
            part = f"{reason} ({times:,}x)"
            if reason in self.said:
                part += f": {self.said[reason]}"
            parts.append(part)
        return "; ".join(parts)


@dataclass(slots=True)
class Tries:
    """How often an item was asked about without an answer."""

    failed: int = 0
    refused: int = 0
    refused_alone: int = 0
    """refusals while others were answered"""
    answers_before: int = 0
    """how many answers about other items there were before the first of these tries"""
    answers_at_refusal: int = 0
    """how many there were at the last refusal"""
    last: "tuple[Call, CallError] | None" = None

    @property
    def all(self) -> int:
        """Calls without an answer."""
        return self.failed + self.refused


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is written down."""

    number: int
    began: float
    """when it was sent, on the monotonic clock"""
