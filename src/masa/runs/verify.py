"""Compute the result of an assessment again from its evidence, offline."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset
from masa.data.features import Words
from masa.errors import DataError, MasaError
from masa.inference.method import Method
from masa.inference.stopping import Stopping
from masa.inference.trial import Conclusion, conclusion
from masa.inference.verdict import judged
from masa.records import Answer, Assessment, Column, Query, in_order
from masa.runs import bundle
from masa.runs.bundle import Evidence
from masa.sampling.asked import Asked
from masa.sampling.predictive import Predictive
from masa.settings import Settings

CLOSE = 1e-9
"""Numbers that differ by no more, relative to the larger, are the same: machines round."""

MOST_NAMED = 5
"""The most differences of a kind that are listed."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of computing a result again."""

    run: int
    verdict: str
    answers: int
    agreed: tuple[str, ...]
    """what was computed again and is the same"""
    differs: tuple[str, ...]
    """what is not"""
    unchecked: tuple[str, ...]
    """what could not be checked, and why"""

    @property
    def exit_code(self) -> int:
        """What the command exits with."""
        return 1 if self.differs else 0

    def to_dict(self) -> dict[str, Any]:
        """Return what `masa verify --json` prints."""
        return {
            "verified": not self.differs,
            "run": self.run,
            "verdict": self.verdict,
            "answers": self.answers,
            "agreed": list(self.agreed),
            "differs": list(self.differs),
            "unchecked": list(self.unchecked),
        }


def verify(path: "str | Path") -> Verified:
    """Compute the verdict, the intervals and the choice of items of a bundle again."""
    evidence = bundle.read(Path(path))
    try:
        claimed = Assessment.from_dict(evidence.result)
        case = _Again.of(evidence)
    except MasaError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as exc:
        raise DataError(
            f"{path} lacks something: {type(exc).__name__}: {exc}",
            hint="it must be the whole file that masa report --format bundle wrote",
        ) from exc
    found = case.conclusion()
    differs = [*_keys(evidence), *case.draws_that_differ(), *_results(claimed, case, found)]
    agreed = [] if differs else _agreed(case, claimed)
    return Verified(
        claimed.run,
        claimed.verdict,
        len(evidence.calls),
        tuple(agreed),
        tuple(differs),
        tuple(case.unchecked()),
    )


def _agreed(case: "_Again", claimed: Assessment) -> list[str]:
    told = [
        f"the verdict: {claimed.verdict}",
        "the matrix, its changes, and every interval",
        f"whether any answer changed: {claimed.moved}",
    ]
    if case.redraws:
        told.append("which items were drawn, and with what inclusion probabilities")
    return told


def _keys(evidence: Evidence) -> Iterator[str]:
    """Find what does not fit together among the keys."""
    items = [item["key"] for item in evidence.items]
    calls = [call["key"] for call in evidence.calls]
    if len(set(items)) < len(items):
        yield "an item is listed twice"
    if len(set(calls)) < len(calls):
        yield "an item has two answers"
    unknown = set(calls) - set(items)
    if unknown:
        yield f"{len(unknown):,} answers are about items that are not listed"
    wanted = evidence.result.get("items")
    if wanted != len(items):
        yield f"{len(items):,} items are listed, and the result is about {wanted:,}"


@dataclass(frozen=True, slots=True, eq=False)
class _Again:
    """What an assessment began with and was answered, made again from its evidence."""

    evidence: Evidence
    settings: Settings
    old: BaselineAnswers
    method: Method
    asked: Asked

    @classmethod
    def of(cls, evidence: Evidence) -> "_Again":
        """Make it from the rows."""
        settings = Settings.from_dict(evidence.run["settings"])
        data, old = _data(evidence, settings)
        lately = _values(evidence.items, "asked_lately", bool)
        words = _words(evidence.items)
        method = Method.of(data, old, settings, asked_lately=lately, words=words)
        place = {item["key"]: number for number, item in enumerate(evidence.items)}
        asked = Asked()
        for call in evidence.calls:
            if call["key"] in place:
                here = place[call["key"]]
                draw = call["batch"], call["probability"], call["batch_size"]
                asked.sent(Query(here, -1) if None in draw else Query(here, -1, *draw))
                asked.tell(Answer(here, call["answer"], call["confidence"]))
        return cls(evidence, settings, old, method, asked)

    def conclusion(self) -> Conclusion:
        """Say what follows from the answers."""
        items = len(self.method.data)
        budget = self.evidence.run["budget"]
        looks = Stopping.of(self.settings).looks(min(items, budget or items), items)
        return conclusion(self.method, self.old, self.asked, looks)

    @property
    def redraws(self) -> bool:
        """Whether the choice of items can be made again."""
        return not self.why_not_drawn

    @property
    def why_not_drawn(self) -> str:
        """Say why the choice of items cannot be made again; nothing where it can."""
        if self.method.name != "predictive":
            return (
                f"the choice of items: what the method {self.method.name} asks next depends on "
                "the order in which answers came"
            )
        features = self.method.features
        if self.evidence.run["words"] and features is not None and features.words is None:
            return (
                "the choice of items: it depends on the words of the texts, which are not in the "
                "bundle (masa report --texts adds their codes)"
            )
        if any(query.probability == 0.0 for query in self.asked.queries.values()):
            return "the choice of items: the run switched to strata"
        if self._late():
            return "the choice of items: answers came after the next batch was drawn"
        return ""

    def _late(self) -> bool:
        """Say whether an answer came after a later batch was begun, or an item failed."""
        begun: dict[int, float] = {}
        for call in self.evidence.calls:
            if call["batch"] is not None:
                first = begun.get(call["batch"], call["sent"])
                begun[call["batch"]] = min(first, call["sent"])
        for call in self.evidence.calls:
            after = begun.get(max(call["batch"] or 0, 1) + 1)
            if after is not None and call["ended"] > after:
                return True
        return False

    def unchecked(self) -> Iterator[str]:
        """Say what could not be checked."""
        if self.why_not_drawn:
            yield self.why_not_drawn
        yield "that the API gave these answers, at these times"
        yield "that the labels are right, and that these were all items of the data"

    def draws_that_differ(self) -> Iterator[str]:
        """Draw the batches again and compare."""
        if not self.redraws:
            return
        source = self.method.source(seed=self.evidence.run["settings"]["seed"])
        while not isinstance(source, Predictive):
            source = source._first  # type: ignore[attr-defined]
        for query in self.asked.queries.values():
            source.sent(query)
        for answer in self.asked.answers.values():
            source.tell(answer)
        wrong: list[str] = []
        for number, drawn in enumerate(source.drawn_again(), 1):
            for item, query in self.asked.queries.items():
                if max(query.batch or 0, 1) != number:
                    continue
                key = self.evidence.items[item]["key"]
                if item not in drawn:
                    wrong.append(f"item {key} is not what batch {number} draws")
                elif not isclose(drawn[item], query.probability or 0.0, rel_tol=1e-6):
                    wrong.append(
                        f"item {key} had the inclusion probability {drawn[item]:.6g} in batch "
                        f"{number}, not {query.probability:.6g}"
                    )
        yield from wrong[:MOST_NAMED]
        if len(wrong) > MOST_NAMED:
            yield f"and {len(wrong) - MOST_NAMED:,} more items of batches"


def _results(claimed: Assessment, case: _Again, found: Conclusion) -> Iterator[str]:
    """Compare what follows from the answers with what is claimed."""
    fields = judged(
        found.estimate,
        case.method.strata,
        found.places,
        finished=True,
        tolerance=case.settings.tolerance,
        confidence=case.settings.confidence,
        objective=case.settings.weights,
        looks=found.looks,
    )
    again = replace(
        claimed,
        **fields,
        moved=found.any_change.said,
        compared=len(found.compared),
        differing=len(found.differing),
        answers=len(found.places) - case.asked.failed,
        errors=case.asked.failed,
        method=case.method.name,
        items=len(case.method.data),
    )
    wrong = list(_differences("", claimed.to_dict(), again.to_dict()))
    yield from wrong[:MOST_NAMED]
    if len(wrong) > MOST_NAMED:
        yield f"and {len(wrong) - MOST_NAMED:,} more numbers of the result"


def _differences(where: str, claimed: Any, again: Any) -> Iterator[str]:
    """Find the numbers and words that are not the same."""
    if (
        isinstance(claimed, Mapping)
        and isinstance(again, Mapping)
        and claimed.keys() == again.keys()
    ):
        for key in claimed:
            if key not in ("made", "steps", "label_queries", "proof", "groups", "gap"):
                yield from _differences(f"{where}.{key}".lstrip("."), claimed[key], again[key])
    elif isinstance(claimed, list) and isinstance(again, list) and len(claimed) == len(again):
        for number, pair in enumerate(zip(claimed, again, strict=True)):
            yield from _differences(f"{where}[{number}]", *pair)
    elif isinstance(claimed, float) and isinstance(again, float):
        if not isclose(claimed, again, rel_tol=CLOSE, abs_tol=CLOSE):
            yield f"{where} is {again:.9g}, not {claimed:.9g}"
    elif claimed != again:
        yield f"{where} is {str(again)[:80]}, not {str(claimed)[:80]}"


def _data(evidence: Evidence, settings: Settings) -> tuple[Dataset, BaselineAnswers]:
    """Make the data and the baseline of the rows."""
    items, run = evidence.items, evidence.run
    about = run["baseline"]
    old = _column(items, "old", about["name"])
    data = Dataset(
        "the bundle",
        _column(items, "label", "label"),
        {name: _column(items, f"also.{name}", name) for name in settings.also},
        difficulty=_values(items, "difficulty", float),
        group=_column(items, "group", "group") if items and "group" in items[0] else None,
        cost=_values(items, "cost", float),
        keys=np.array([item["key"] for item in items], np.int64),
    )
    known = BaselineAnswers(
        np.arange(len(items)),
        old,
        _values(items, "old_confidence", float),
        version=about["version"],
        run=about["run"],
        asked_twice={int(place): bool(differs) for place, differs in about["asked_twice"]},
        confidence_twice={int(p): (float(a), float(b)) for p, a, b in about["confidence_twice"]},
        asked_twice_before=(
            int(about["asked_twice_before"][0]),
            int(about["asked_twice_before"][1]),
        ),
        confidence_repeats=bool(about["confidence_repeats"]),
        weight=_values(items, "weight", float),
        extra_variance=_values(items, "extra_variance", float),
        uncovered_share=float(about["uncovered_share"]),
        uncovered=tuple(about["uncovered"]),
        drawn_evenly=bool(about["drawn_evenly"]),
    )
    return data, known


def _column(items: list[dict[str, Any]], name: str, called: str) -> Column:
    said = [str(item[name]) for item in items]
    values = in_order(tuple(dict.fromkeys(said)))
    code = {value: number for number, value in enumerate(values)}
    return Column(called, values, np.array([code[one] for one in said], np.int32))


def _values(items: list[dict[str, Any]], name: str, kind: type) -> Any:
    """Give a column of numbers, where the items have it."""
    if not items or name not in items[0]:
        return None
    return np.array([item[name] for item in items], np.bool_ if kind is bool else np.float64)


def _words(items: list[dict[str, Any]]) -> Words | None:
    if not items or "words" not in items[0]:
        return None
    counts = [len(item["words"]) for item in items]
    codes = np.array([code for item in items for code in item["words"]], np.int32)
    return Words(np.concatenate(([0], np.cumsum(counts))).astype(np.int64), codes)
