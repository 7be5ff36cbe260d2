"""Look at a data file and write a commented masa.toml for it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masa.cli.api_drafts import COMMENT_AT, above, api_draft, quoted
from masa.data.files import MOST_PROFILED, Profile, Table
from masa.errors import UsageError
from masa.settings import Columns, Limits, Settings, Tolerance
from masa.settings.setting import settings_of

LABEL = re.compile(
    r"^(label|labels|class|target|category|sentiment|y|gold|truth|ground_?truth|true_?label|answer_?key)$",
    re.IGNORECASE,
)
ID = re.compile(r"^(id|uid|uuid|guid|key|item|index|.*[_. -]id|.*Id)$")
INPUT = re.compile(
    r"text|review|sentence|content|message|input|comment|body|tweet|utterance|question|title|path|file|url|image|audio",
    re.IGNORECASE,
)
PREDICTION = re.compile(
    r"(^|[._ -])(pred|prediction|predicted|answer|output|response|old|new)([._ -]|$)", re.IGNORECASE
)
CONFIDENCE = re.compile(r"conf|score|prob|certainty|difficulty", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Guess:
    """Which column is probably what."""

    label: str | None
    id: str | None
    input: tuple[str, ...]
    predictions: tuple[str, ...]
    difficulty: str | None

    def to_dict(self) -> dict[str, Any]:
        """Give what `masa init --json` prints."""
        return {
            "label": self.label,
            "id": self.id,
            "input": list(self.input),
            "difficulty": self.difficulty,
        }


def guess(profiles: list[Profile]) -> Guess:
    """Tell from names and contents which column is what; a column is at most one thing."""
    predictions = tuple(
        column.name
        for column in profiles
        if PREDICTION.search(column.name) and not CONFIDENCE.search(column.name)
    )
    confidences = [
        column.name for column in profiles if CONFIDENCE.search(column.name) and column.numeric
    ]
    free = [column for column in profiles if column.name not in (*predictions, *confidences)]
    known = [
        c for c in free if 2 <= c.distinct <= 1_000 and c.filled == c.rows and c.longest <= 100
    ]
    named = [c for c in free if 2 <= c.distinct <= 1_000 and c.longest <= 100]
    few = [c for c in known if c.distinct <= max(2, c.rows // 3)]
    label = (
        next((c.name for c in named if LABEL.match(c.name) and not c.unique), None)
        or min(
            (c for c in few if not ID.match(c.name)),
            key=lambda c: (c.numeric, c.distinct),
            default=_NONE,
        ).name
    )
    free = [column for column in free if column.name != label]
    id_ = next((c.name for c in free if c.unique and ID.match(c.name)), None)
    texts = [
        c for c in free if c.name != id_ and not c.numeric and c.mean_length >= 5 and c.distinct > 1
    ]
    text = max(texts, key=lambda c: (bool(INPUT.search(c.name)), c.mean_length), default=_NONE).name
    return Guess(
        label or None,
        id_,
        (text,) if text else (),
        predictions,
        confidences[0] if confidences else None,
    )


_NONE = Profile("", 0, 0, 0, 0.0, 0, numeric=False, frequent=())


def labels_in(profiles: list[Profile], label: str | None) -> tuple[str, ...]:
    """Give the most frequent labels of the data."""
    return next((tuple(one.frequent) for one in profiles if one.name == label), ())


def looked_at(table: Table, profiles: list[Profile]) -> str:
    """Say in a few lines what is in a file."""
    lines = [f"{table.source}: {profiles[0].rows if profiles else 0:,} rows looked at"]
    for column in profiles:
        kind = (
            "numbers" if column.numeric else f"texts of about {column.mean_length:.0f} characters"
        )
        missing = f", {column.rows - column.filled:,} empty" if column.filled < column.rows else ""
        some = (
            ", ".join(repr(value[:20]) for value in column.frequent[:4])
            if column.distinct <= 1000
            else ""
        )
        each = "all different" if column.unique else f"{column.distinct:,} different"
        lines.append(
            f"  {column.name}: {kind}, {each}{missing}"
            + (f": {some}" if some and not column.unique else "")
        )
    if len(table.columns) > MOST_PROFILED:
        lines.append(
            f"  of {len(table.columns):,} columns the first and the last "
            f"{MOST_PROFILED // 2:,} were looked at"
        )
    return "\n".join(lines)


EXAMPLES = {
    "seed": 0,
    "id": "id",
    "input": "text",
    "difficulty": "cheap.confidence",
    "old": "old.prediction",
    "rate": "500/s",
}
"""Values to show for keys that have no default."""


def written(
    data: str,
    found: Guess,
    *,
    api: str = "http",
    budget: int | None = None,
    old: str | None = None,
    label: str = "",
    labels: Sequence[str] = (),
    about: str = "",
) -> str:
    """Write the text of a configuration; the comments are the help texts of the settings.

    `labels` are those of the data, as far as they are known.
    """
    client = api_draft(api, labels)
    chosen = {"id": found.id, "input": found.input, "difficulty": found.difficulty, "old": old}
    lines = [
        "# What masa assesses. masa validate checks it, masa baseline records what the API",
        "# answers today, masa assess tells whether that has changed.",
        *(f"# {line}" for line in about.splitlines()),
        "",
        *above(api),
        "[data]",
        f"path = {quoted(data)}",
        f"label = {quoted(label or found.label or '')}",
        *_keys(Columns, "id input difficulty old", chosen),
        "",
        "[api]",
        client,
        "",
        "[budget]                                # of one run; hard, whatever happens",
        f"queries = {budget or 1000}",
        "# money = 5.00",
        "",
        "[limits]",
        *_keys(Limits, "concurrency rate tries failures"),
        "",
        "[assess]",
        *_keys(Settings, "method levels tolerance confidence seed"),
    ]
    return "\n".join(lines) + "\n"


def _keys(section: type, names: str, values: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Write keys of a table; those without a value are commented out, with their help."""
    known = {one.name: one for one in settings_of(section)}
    for name in names.split():
        value = (values or {}).get(name)
        if value:
            yield f"{name} = {_toml(value)}"
            continue
        one = known[name]
        example = EXAMPLES.get(name, one.default)
        if isinstance(example, Tolerance):
            example = example.to_json()
        yield f"{f'# {name} = {_toml(example)}':<{COMMENT_AT}}# {one.setting.help}"


def _toml(value: Any) -> str:
    """Write a value as TOML does."""
    if isinstance(value, tuple):
        if len(value) == 1:
            return quoted(value[0])
        return "[" + ", ".join(map(quoted, value)) + "]"
    return quoted(value) if isinstance(value, str) else str(value)


def save(text: str, path: Path, *, force: bool) -> None:
    """Write a configuration, but not over another one."""
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as exc:
        raise UsageError(
            f"{path} exists", hint="give another place with --out, or --force to replace it"
        ) from exc
    except OSError as exc:
        raise UsageError(
            f"{path} cannot be written: {exc.strerror}", hint="give another place with --out"
        ) from exc
