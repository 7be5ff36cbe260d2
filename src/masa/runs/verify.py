"""Compute the result of an assessment again from its evidence, offline."""

import json
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
from masa.inference.estimate import uniform_queries
from masa.inference.groups import by_group
from masa.inference.method import Method
from masa.inference.spread import normal
from masa.inference.stopping import Stopping
from masa.inference.trial import Conclusion, conclusion
from masa.inference.verdict import judged
from masa.records import Answer, Assessment, Column, Query, Versions, in_order
from masa.runs import bundle, course
from masa.runs.bundle import Evidence
from masa.sampling.asked import Asked
from masa.sampling.predictive import Predictive
from masa.sampling.switch import Switch
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


CHECKED = (
    *("schema", "verdict", "moved", "proof", "direction", "items", "answers", "errors", "method"),
    *("seed", "confidence", "tolerance", "fail_on", "canary_ok", "more_queries", "accuracy"),
    *("frobenius", "intervals", "labels", "predictions", "old", "new", "delta", "strata"),
    *("surprises", "changed", "api_version", "uniform_queries", "groups", "gap", "steps"),
    "label_queries",
)
"""The keys of a result that are computed again; of the others it is said that they are not."""


def verify(path: "str | Path") -> Verified:
    """Compute the verdict, the intervals and the choice of items of a bundle again."""
    evidence = bundle.read(Path(path))
    try:
        return _verified(evidence)
    except MasaError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as exc:
        raise DataError(
            f"{path} holds what masa never writes: {type(exc).__name__}: {exc}",
            hint="it must be the whole file that masa report --format bundle wrote",
        ) from exc


def _verified(evidence: Evidence) -> Verified:
    claimed, case = Assessment.from_dict(evidence.result), _Again.of(evidence)
    found = case.conclusion()
    differs = [
        *_keys(evidence),
        *case.draws_that_differ(),
        *case.too_few_answers(claimed),
        *_results(evidence.result, claimed, case, found),
    ]
    agreed = [] if differs else _agreed(case, claimed)
    return Verified(
        claimed.run,
        claimed.verdict,
        len(case.asked.answers),
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
                if call["answer"] is not None:
                    asked.tell(Answer(here, str(call["answer"]), call["confidence"]))
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
        """Say whether an answer came after the next batch was begun."""
        begun: dict[int, float] = {}
        for call in self.evidence.calls:
            if call["batch"] is not None and call["answer"] is not None:
                first = begun.get(call["batch"], call["sent"])
                begun[call["batch"]] = min(first, call["sent"])
        for call in self.evidence.calls:
            after = begun.get(max(call["batch"] or 0, 1) + 1)
            if after is not None and call["answer"] is not None and call["ended"] > after:
                return True
        return False

    def unchecked(self) -> Iterator[str]:
        """Say what could not be checked."""
        if self.why_not_drawn:
            yield self.why_not_drawn
        others = sorted(set(self.evidence.result) - set(CHECKED) - {"notes", "changed_items"})
        yield f"what else the result says: {', '.join(others)}"
        yield "that the API gave these answers, at these times"
        yield "that the labels are right, and that these were all items of the data"

    def draws_that_differ(self) -> Iterator[str]:
        """Draw the batches again and compare: none but the last may lack an item that was drawn."""
        if not self.redraws:
            return
        source = self.method.source(seed=self.evidence.run["settings"]["seed"])
        if not isinstance(source, Predictive | Switch):
            return
        for query in self.asked.queries.values():
            source.sent(query)
        for answer in self.asked.answers.values():
            source.tell(answer)
        asked: dict[int, list[Query]] = {}
        for query in self.asked.queries.values():
            asked.setdefault(query.batch or 0, []).append(query)
        last = max(asked, default=0)
        wrong: list[str] = []
        for number, drawn in enumerate(source.drawn_again()):
            # The canaries are asked with the first batch.
            whole = number < last and not (number == 0 and last <= 1)
            wrong += self._of_batch(number, drawn, asked.get(number, []), whole=whole)
        yield from wrong[:MOST_NAMED]
        if len(wrong) > MOST_NAMED:
            yield f"and {len(wrong) - MOST_NAMED:,} more items of batches"

    def _of_batch(
        self, number: int, drawn: list[Query], asked: list[Query], *, whole: bool
    ) -> Iterator[str]:
        """Compare what a batch draws with what was asked of it."""
        if whole and len(asked) < len(drawn):
            yield f"{len(drawn) - len(asked):,} items that batch {number} draws were left out"
        wanted = {query.item: query.probability or 0.0 for query in drawn[: len(asked)]}
        for query in asked:
            key = self.evidence.items[query.item]["key"]
            if query.item not in wanted:
                yield f"item {key} is not what batch {number} draws next"
            elif not isclose(wanted[query.item], query.probability or 0.0, rel_tol=1e-6):
                yield (
                    f"item {key} had the inclusion probability {wanted[query.item]:.6g} in batch "
                    f"{number}, not {query.probability:.6g}"
                )

    def too_few_answers(self, claimed: Assessment) -> Iterator[str]:
        """Say whether answers are missing for what is said of why the run ended."""
        calls = sum(call["calls"] for call in self.evidence.calls)
        budget = self.evidence.run["budget"]
        if calls > claimed.queries:
            yield f"{calls:,} calls are listed, and the result says {claimed.queries:,}"
        spent_all = budget is not None and claimed.stopped == "budget" and claimed.cost is None
        if spent_all and calls < budget:
            yield f"the budget of {budget:,} was spent, and only {calls:,} calls are listed"
        if claimed.stopped == "exhausted" and len(self.asked.answers) < len(self.method.data):
            yield "every item was asked, and not all of them have an answer"


def _results(
    told: Mapping[str, Any], claimed: Assessment, case: _Again, found: Conclusion
) -> Iterator[str]:
    """Compare what follows from the answers with what is claimed."""
    settings, method, estimate = case.settings, case.method, found.estimate
    groups, gap, uniform = (), None, None
    if estimate is not None:
        groups, gap = by_group(  # type: ignore[assignment]
            estimate,
            method.data,
            case.old,
            found.places,
            settings.confidence,
            found.looks or normal,
        )
        if case.old.weight is None:
            uniform = uniform_queries(estimate, method.strata, finite=case.old.repeats_itself)
    fields = judged(
        estimate,
        method.strata,
        found.places,
        finished=True,
        tolerance=settings.tolerance,
        confidence=settings.confidence,
        objective=settings.weights,
        looks=found.looks,
    )
    versions = dict.fromkeys(one["version"] for one in case.evidence.calls if one.get("version"))
    again = replace(
        claimed,
        **fields,
        moved=found.any_change.said,
        proof=found.any_change.proof,
        compared=len(found.compared),
        differing=len(found.differing),
        answers=len(found.places) - case.asked.failed,
        errors=case.asked.failed,
        method=method.name,
        seed=int(case.evidence.run["settings"]["seed"]),
        items=len(method.data),
        fail_on=settings.fail_on,
        canary_ok=settings.canary_ok,
        api_version=Versions(case.old.version, ", ".join(versions) or None),
        uniform_queries=uniform,
        groups=groups,
        gap=gap,
        steps=course.steps(method, case.asked, estimate, settings.confidence),
        label_queries=course.label_queries(method, estimate, found.places),
    ).to_dict()
    wrong = [
        line
        for key in CHECKED
        for line in _differences(key, told.get(key), json.loads(json.dumps(again[key])))
    ]
    yield from wrong[:MOST_NAMED]
    if len(wrong) > MOST_NAMED:
        yield f"and {len(wrong) - MOST_NAMED:,} more numbers of the result"


def _differences(where: str, claimed: Any, again: Any) -> Iterator[str]:
    """Find the numbers and words that are not the same."""
    if isinstance(claimed, dict) and isinstance(again, dict) and claimed.keys() == again.keys():
        for key in claimed:
            yield from _differences(f"{where}.{key}", claimed[key], again[key])
    elif isinstance(claimed, list) and isinstance(again, list) and len(claimed) == len(again):
        for number, pair in enumerate(zip(claimed, again, strict=True)):
            yield from _differences(f"{where}[{number}]", *pair)
    elif _is_number(claimed) and _is_number(again):
        if not isclose(claimed, again, rel_tol=CLOSE, abs_tol=CLOSE):
            yield f"{where} is {again:.9g}, not {claimed:.9g}"
    elif claimed != again:
        yield f"{where} is {str(again)[:80]}, not {str(claimed)[:80]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
