"""promptfoo: `promptfoo eval -o results.json`, or `promptfoo export eval ID -o results.json`.

Each output that a model graded by a rubric is an item. Files of promptfoo 0.120 and newer also have
what the judge was asked, word by word: it can be asked the same again.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

from masa.errors import DataError, UsageError
from masa.graded.exports import content_of
from masa.graded.grades import Grade, Grades, Judge, Wanted, as_shown, columns_of, named

RUBRICS = ("llm-rubric", "search-rubric", "agent-rubric")
"""Assertions whose judge answers {"reason": ..., "pass": ..., "score": ...}."""

OTHER_JUDGES = (
    "model-graded-closedqa",
    "model-graded-factuality",
    "factuality",
    "g-eval",
    "answer-relevance",
    "context-recall",
    "context-relevance",
    "context-faithfulness",
    "conversation-relevance",
)
"""Assertions of other judges, whose answers have other forms."""

HUMAN = "human"
"""The assertion that promptfoo adds where a person rates an output."""

JSON = "export it as JSON: promptfoo export eval ID -o results.json"

CLIENTS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "azure": "azure-openai",
    "azureopenai": "azure-openai",
    "bedrock": "bedrock",
}
"""The client of masa for the first word of a provider's name."""


@dataclass(slots=True)
class _Seen:
    """What was found on the way."""

    judges: Counter[str] = field(default_factory=Counter)
    systems: Counter[str | None] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def read_promptfoo(path: Path, wanted: Wanted) -> Grades:
    """Read the outputs that a model graded by a rubric."""
    if wanted.pass_at is not None or wanted.human is not None:
        raise UsageError(
            "promptfoo's rubrics pass or fail, and people rate with its own thumbs",
            hint="leave out --pass-at and --human",
        )
    if path.is_dir():
        raise DataError(f"{path} is a folder", hint="give the file results.json")
    if path.exists() and path.suffix.lower() not in (".json", ".jsonl"):
        raise DataError(f"{path} has grades without what was graded", hint=JSON)
    results, config = _results(path)
    seen = _Seen()
    grades = tuple(_grades(results, config, wanted, seen))
    if not grades:
        raise _none(path, wanted, seen)
    system = _system(seen)
    if len(seen.systems) > 1:
        # What was asked is not the same without them.
        grades = tuple(replace(one, asked=None) for one in grades)
    judge = _judge(seen, system)
    return Grades(
        named(path.name.split(".")[0]), str(path), judge, grades, tuple(_notes(grades, seen))
    )


def _results(path: Path) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """Give the results in a file, and the configuration beside them."""
    content = content_of(path)
    config: Any = {}
    if isinstance(content, dict):
        config = content.get("config")
        content = content.get("results", content)
    if isinstance(content, dict):
        content = content.get("results")
    if not isinstance(content, list):
        raise DataError(f"{path} is no result of promptfoo", hint=JSON)
    results = [one for one in content if isinstance(one, dict)]
    if not any("gradingResult" in one for one in results):
        raise DataError(f"{path} is no result of promptfoo: nothing in it was graded", hint=JSON)
    return results, config if isinstance(config, Mapping) else {}


def _grades(
    results: list[dict[str, Any]], config: Mapping[str, Any], wanted: Wanted, seen: _Seen
) -> Iterator[Grade]:
    for number, result in enumerate(results):
        parts = list(_parts(result.get("gradingResult")))
        rubrics = [part for part in parts if _kind(part) in RUBRICS]
        for part in parts:
            kind = _kind(part)
            if kind in OTHER_JUDGES or kind.removeprefix("not-") in (*RUBRICS, *OTHER_JUDGES):
                seen.left_out[f"by {kind}"] += kind not in RUBRICS
        if wanted.score is not None:
            rubrics = [part for part in rubrics if part["assertion"].get("metric") == wanted.score]
        human = _human(parts, alone=len(rubrics) == 1)
        for at, part in enumerate(rubrics):
            if not isinstance(part.get("pass"), bool):
                seen.left_out["without pass or fail"] += 1
                continue
            key = str(result.get("id") or f"test-{result.get('testIdx', number)}-{number}")
            yield _grade(result, part, key if len(rubrics) == 1 else f"{key}/{at + 1}", human, seen)
            seen.judges[_provider(result, part, config)] += 1


def _grade(
    result: Mapping[str, Any], part: Mapping[str, Any], key: str, human: str | None, seen: _Seen
) -> Grade:
    metadata = part.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    rubric = metadata.get("renderedAssertionValue", part["assertion"].get("value"))
    system, asked = _asked(metadata.get("renderedGradingPrompt"))
    if asked is not None:
        seen.systems[system] += 1
    response = result.get("response")
    shown = {
        "output": as_shown(response.get("output") if isinstance(response, Mapping) else None),
        "rubric": as_shown(rubric),
    }
    variables = result.get("vars")
    if isinstance(variables, Mapping):
        shown |= columns_of(variables, tuple(shown))
    passed = bool(part["pass"])
    return Grade(
        key,
        shown,
        "pass" if passed else "fail",
        human,
        _confidence(part.get("score"), passed=passed),
        asked,
    )


def _parts(grading: object) -> Iterator[dict[str, Any]]:
    """Give the results of all assertions, those of sets of assertions, too."""
    if not isinstance(grading, Mapping):
        return
    for part in grading.get("componentResults") or ():
        if isinstance(part, dict):
            if isinstance(part.get("assertion"), Mapping):
                yield part
            yield from _parts(part)


def _kind(part: Mapping[str, Any]) -> str:
    return str(part["assertion"].get("type", ""))


def _human(parts: list[dict[str, Any]], *, alone: bool) -> str | None:
    """Give what a person said of the output. That it fails says not which of several rubrics."""
    said = [part.get("pass") for part in parts if _kind(part) == HUMAN]
    if not said or not isinstance(said[-1], bool):
        return None
    if said[-1]:
        return "pass"
    return "fail" if alone else None


def _asked(rendered: object) -> tuple[str | None, str | None]:
    """Split what the judge was asked into the system's part and the rest."""
    if not isinstance(rendered, str) or not rendered.strip():
        return None, None
    try:
        messages = json.loads(rendered)
    except (ValueError, RecursionError):
        return None, rendered
    if not isinstance(messages, list):
        return None, rendered
    said: dict[str, list[str]] = {}
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), str):
            return None, None  # Images, or another form: it cannot be asked again as it was.
        said.setdefault(str(message.get("role")), []).append(message["content"])
    if not {*said} <= {"system", "user"} or len(said.get("user", ())) != 1:
        return None, None
    return "\n\n".join(said["system"]) if "system" in said else None, said["user"][0]


def _system(seen: _Seen) -> str | None:
    """Give the system's part, if it is one for all."""
    return next(iter(seen.systems)) if len(seen.systems) == 1 else None


def _confidence(score: object, *, passed: bool) -> float | None:
    """Give how far the score, from 0 to 1, lies on the side of the grade."""
    if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
        return None
    return round(score if passed else 1 - score, 6) if 0 <= score <= 1 else None


def _provider(result: Mapping[str, Any], part: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Name the model that graded: of the assertion, of the test, or of all tests."""
    test = result.get("testCase")
    default = config.get("defaultTest")
    places = (
        part["assertion"].get("provider"),
        _option(test, "provider"),
        _option(default, "provider"),
    )
    for place in places:
        named_ = _name(place)
        if named_:
            return named_
    return ""


def _option(test: object, name: str) -> object:
    options = test.get("options") if isinstance(test, Mapping) else None
    return options.get(name) if isinstance(options, Mapping) else None


def _name(provider: object) -> str:
    """Give the name of a provider, and the address of its endpoint behind a space."""
    if isinstance(provider, str):
        return provider
    if not isinstance(provider, Mapping):
        return ""
    if "text" in provider:
        return _name(provider["text"])
    config = provider.get("config")
    url = config.get("apiBaseUrl") if isinstance(config, Mapping) else None
    return f"{provider.get('id') or ''} {url or ''}".strip()


def _judge(seen: _Seen, system: str | None) -> Judge:
    """Give the judge that graded most."""
    provider, _, url = (seen.judges.most_common(1)[0][0]).partition(" ")
    client, model = "openai", ""
    words = provider.split(":")
    if words[0] in CLIENTS and len(words) > 1:
        client, model = CLIENTS[words[0]], words[-1]
    if client == "bedrock":
        model = provider.partition(":")[2]
    return Judge(client, model, url, system, "pass", {"true": "pass", "false": "fail"})


def _notes(grades: tuple[Grade, ...], seen: _Seen) -> Iterator[str]:
    for why, times in seen.left_out.items():
        if times:
            yield f"{times:,} grades {why} are left out: masa reads those of {RUBRICS[0]}"
    if len(seen.judges) > 1:
        some = ", ".join(f"{name or 'unknown'} ({n:,})" for name, n in seen.judges.most_common())
        yield f"several models graded: {some}; masa.toml names the first"
    if len(seen.systems) > 1:
        yield "the instructions of the judge differ from row to row: they are left out"
    elif any(one.asked is None for one in grades):
        yield (
            "not every row has what the judge was asked (promptfoo 0.120 and newer export it), so "
            "the old grades are no baseline for a prompt of masa's"
        )


def _none(path: Path, wanted: Wanted, seen: _Seen) -> DataError:
    if wanted.score is not None:
        return DataError(
            f"{path}: no {RUBRICS[0]} has the metric {wanted.score!r}",
            hint="leave out --score, or name one that the assertions have",
        )
    found = ", ".join(f"{n:,} {why}" for why, n in seen.left_out.items() if n)
    return DataError(
        f"{path}: no output was graded by {RUBRICS[0]}" + (f" ({found})" if found else ""),
        hint="masa import table reads any table of grades",
    )
