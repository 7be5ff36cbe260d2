"""promptfoo: `promptfoo eval -o results.json`, or `promptfoo export eval ID -o results.json`.

Each output that a model graded by a rubric is an item. Files of promptfoo 0.120 and newer also have
what the judge was asked, word by word: it can be asked the same again.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeGuard

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

FAILED = re.compile(
    r"\s*(API (call )?error|No output|Could not extract JSON|.{0,40}malformed response)",
    re.IGNORECASE,
)
"""How the reason begins where the judge did not answer, or not in its form."""

KINDS_OF_API = ("chat", "responses", "completion", "completions", "messages", "converse")
"""What may stand between a provider and a model, as in openai:chat:gpt-4o."""

JSON = "export it as JSON: promptfoo export eval ID -o results.json"

OF_RUBRICS = f": masa reads those of {RUBRICS[0]}"

REASONS = {
    "below a threshold": ": they fail whatever the judge itself said, which is not known",
    "that the judge failed to give": ": promptfoo counts them as fails",
    "without pass or fail": "",
}

VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")

CLIENTS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "azure": "azure-openai",
    "azureopenai": "azure-openai",
    "bedrock": "bedrock",
}
"""The client of masa for the first word of a provider's name."""


SENT = ("top_p", "top_k", "seed", "frequency_penalty", "presence_penalty", "reasoning_effort")
"""Settings of a provider that promptfoo sends as they are."""

SCALAR = (str, int, float)


@dataclass(frozen=True, slots=True)
class _Provider:
    """The model that graded, as promptfoo names it."""

    name: str = ""
    url: str = ""
    key: str = ""
    """the variable of the environment that holds its key"""
    temperature: float | None = None
    max_tokens: int | None = None
    more: tuple[tuple[str, Any], ...] = ()
    """what else it was set up with"""


@dataclass(slots=True)
class _Seen:
    """What was found on the way."""

    judges: Counter["_Provider"] = field(default_factory=Counter)
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
    rendered = any(
        _metadata(part).get("renderedGradingPrompt")
        for result in results
        for part in _parts(result.get("gradingResult"))
    )
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
            if why := _unknown(part, rendered=rendered):
                seen.left_out[why] += 1
                continue
            key = str(result.get("id") or f"test-{result.get('testIdx', number)}-{number}")
            yield _grade(result, part, key if len(rubrics) == 1 else f"{key}/{at + 1}", human, seen)
            seen.judges[_provider(result, part, config)] += 1


def _unknown(part: Mapping[str, Any], *, rendered: bool) -> str:
    """Say why it is not known whether the judge said that an output passes; empty if it is."""
    passed, score = part.get("pass"), part.get("score")
    if not isinstance(passed, bool):
        return "without pass or fail"
    if passed:
        return ""
    metadata = _metadata(part)
    # promptfoo writes "fail" where the judge did not answer.
    unasked = rendered and not score and not metadata.get("renderedGradingPrompt")
    if metadata.get("graderError") or unasked or FAILED.match(str(part.get("reason") or "")):
        return "that the judge failed to give"
    threshold = part["assertion"].get("threshold")
    if threshold is None or (_is_number(score) and _is_number(threshold) and score >= threshold):
        return ""
    # A score below the threshold fails, whatever the judge said.
    return "below a threshold"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _metadata(part: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = part.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _grade(
    result: Mapping[str, Any], part: Mapping[str, Any], key: str, human: str | None, seen: _Seen
) -> Grade:
    metadata = _metadata(part)
    rubric = metadata.get("renderedAssertionValue", part["assertion"].get("value"))
    images = metadata.get("renderedGradingPromptImages")
    system, asked = _asked(None if images else metadata.get("renderedGradingPrompt"))
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
    inside = grading.get("componentResults")
    for part in inside if isinstance(inside, list) else ():
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
    if not _is_number(score) or not 0 <= score <= 1:
        return None
    return round(score if passed else 1 - score, 6)


def _provider(
    result: Mapping[str, Any], part: Mapping[str, Any], config: Mapping[str, Any]
) -> _Provider:
    """Find the model that graded: of the assertion, of the test, or of all tests."""
    places = (
        part["assertion"].get("provider"),
        _option(result.get("testCase"), "provider"),
        _option(config.get("defaultTest"), "provider"),
    )
    found = (_named(place) for place in places)
    return next((one for one in found if one.name), _Provider())


def _option(test: object, name: str) -> object:
    options = test.get("options") if isinstance(test, Mapping) else None
    return options.get(name) if isinstance(options, Mapping) else None


def _named(provider: object) -> _Provider:
    """Read how a provider is named and set up."""
    if isinstance(provider, str):
        return _Provider(provider)
    if not isinstance(provider, Mapping):
        return _Provider()
    if "text" in provider:
        return _named(provider["text"])
    config = provider.get("config")
    config = config if isinstance(config, Mapping) else {}
    key, temperature = str(config.get("apiKeyEnvar") or ""), config.get("temperature")
    most = config.get("max_completion_tokens", config.get("max_tokens"))
    return _Provider(
        str(provider.get("id") or ""),
        str(config.get("apiBaseUrl") or ""),
        key if VARIABLE.fullmatch(key) else "",
        float(temperature) if _is_number(temperature) else None,
        most if isinstance(most, int) and most > 0 else None,
        tuple((name, config[name]) for name in SENT if isinstance(config.get(name), SCALAR)),
    )


def _judge(seen: _Seen, system: str | None) -> Judge:
    """Give the judge that graded most; without a model where masa has no client for it."""
    provider = seen.judges.most_common(1)[0][0]
    maker, _, model = provider.name.partition(":")
    kind, _, rest = model.partition(":")
    if kind in KINDS_OF_API:
        model = rest
    judge = Judge(
        CLIENTS.get(maker, "openai"),
        model if maker in CLIENTS else "",
        provider.url,
        system,
        "pass",
        {"true": "pass", "false": "fail"},
        key=provider.key,
        temperature=provider.temperature,
        max_tokens=provider.max_tokens,
        more=dict(provider.more),
    )
    if judge.client == "openai" and kind == "responses":
        return replace(judge, api="responses")
    return judge


def _notes(grades: tuple[Grade, ...], seen: _Seen) -> Iterator[str]:
    for why, times in seen.left_out.items():
        if times:
            yield f"{times:,} grades {why} are left out{REASONS.get(why, OF_RUBRICS)}"
    judge = seen.judges.most_common(1)[0][0].name
    if judge.partition(":")[0] not in CLIENTS:
        yield (
            f"masa has no client for the model that graded, {judge!r}: "
            if judge
            else "the export does not say which model graded: "
        ) + "name the client and the model in masa.toml"
    if len(seen.judges) > 1:
        some = ", ".join(f"{one.name or 'unknown'} ({n:,})" for one, n in seen.judges.most_common())
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
