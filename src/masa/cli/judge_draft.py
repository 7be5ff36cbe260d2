"""The masa.toml that asks a judge to grade again what it graded before."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from masa.cli.api_drafts import quoted
from masa.graded import Grades
from masa.graded.grades import ASKED, GRADE, HUMAN, Judge

KEYS = {
    "openai": "OPENAI_API_KEY",
    "azure-openai": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
"""The usual key of a client."""

MOST_TOKENS = 1024
"""Of a judge's answer, which gives a reason: where the export does not say it."""

PROMPT = """\
Grade the output below. Answer with exactly one of these grades and nothing else: {labels}
"""


def written(found: Grades, data: str, *, layout: str, label_by: str) -> str:
    """Write the configuration for a data file."""
    lines = [
        f"# What a model graded, exported from {layout}. masa assess asks it to grade the same",
        "# outputs again: if its grades differ, the judge has changed, whatever the product does.",
        *_secrets(found),
        f"name = {quoted(found.name)}",
        "",
        "[data]",
        f"path = {quoted(data)}",
        f'label = "label"                         # the grades of {_whose(label_by)}',
        'id = "id"',
        f"input = [{', '.join(map(quoted, _inputs(found)))}]",
        *_old(found),
        *_unlabelled(found, label_by),
        "",
        "[api]",
        *_api(found),
        "",
        "[budget]                                # of one run; hard, whatever happens",
        "queries = 200",
    ]
    return "\n".join(lines) + "\n"


def next_steps(found: Grades, config: Path) -> Iterator[str]:
    """Say what to do with it."""
    file = shlex.quote(str(config))
    yield ""
    yield "What to do with it:"
    yield f"  look over {config}: the model, its key, the prompt"
    key = key_to_declare(found.judge)
    if key:
        yield f"  declare {key} there (secrets) if the address, from the export, may have it"
    yield f"  masa validate --config {file} --ask 1"
    if not found.as_asked:
        yield f"  masa baseline --config {file}"
    yield f"  masa assess --config {file}"


def _whose(label_by: str) -> str:
    return "people" if label_by == "human" else "the judge itself: accuracy is agreement with them"


def _inputs(found: Grades) -> tuple[str, ...]:
    return (ASKED,) if found.as_asked else found.columns


def key_to_declare(judge: Judge) -> str:
    """Give the key that must be declared before it is sent, or "".

    An export may be a stranger's: it must not decide which key goes to which address.
    """
    own = bool(judge.base_url or judge.key) or judge.client == "azure-openai"
    return (judge.key or KEYS[judge.client]) if own and judge.client in KEYS else ""


def _secrets(found: Grades) -> Iterator[str]:
    key = key_to_declare(found.judge)
    if key:
        yield ""
        where = found.judge.base_url or "the endpoint below"
        yield f"# The key and the address are from the export. If {where!r} may have this key:"
        yield f"# secrets = [{quoted(key)}]"


def _old(found: Grades) -> Iterator[str]:
    if found.as_asked:
        yield f"old = {quoted(GRADE)}                 # its grades then: the baseline"
        return
    yield f"# old = {quoted(GRADE)}               # its grades then, once the prompt is its own"


def _unlabelled(found: Grades, label_by: str) -> Iterator[str]:
    if label_by == "human" and found.by_people < len(found.grades):
        yield "unlabelled = true                       # the others tell whether anything changed"
    elif label_by == "judge" and found.by_people:
        yield f"# label = {quoted(HUMAN)}, with unlabelled = true: the grades of people"


def _api(found: Grades) -> Iterator[str]:
    from masa.clients.prices import model_prices

    judge = found.judge
    yield f"client = {quoted(judge.client)}"
    if judge.model:
        yield f"model = {quoted(judge.model)}"
    else:
        yield '# model = "..."                         # the model that graded: name it'
    if judge.api:
        yield f"api = {quoted(judge.api)}"
    if judge.client == "azure-openai":
        yield 'endpoint = "https://NAME.openai.azure.com"'
    elif judge.base_url:
        yield f"base_url = {quoted(judge.base_url)}"
    if judge.key and judge.client in KEYS:
        yield f"key = {quoted(f'${{{judge.key}}}')}"
    elif judge.base_url:
        yield '# key = ""                              # for an endpoint that needs none'
    if judge.system is not None and found.as_asked:
        yield f"system = {quoted(judge.system)}"
    yield from _prompt(found)
    if judge.label is not None and found.as_asked:
        yield f"label = {quoted(judge.label)}                          # the path to its grade"
        pairs = ", ".join(f"{name} = {quoted(grade)}" for name, grade in judge.names.items())
        yield f"labels = {{ {pairs} }}"
        yield f"max_tokens = {judge.max_tokens or MOST_TOKENS}"
        if judge.temperature is not None:
            yield f"temperature = {judge.temperature:g}"
        if judge.more:
            fields = ", ".join(f"{name} = {_toml(value)}" for name, value in judge.more.items())
            yield f"extra = {{ {fields} }}"
    if not judge.model or model_prices(judge.model) is None:
        yield 'price = "queries-only"                  # or input_price and output_price'


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(value) if isinstance(value, str) else str(value)


def _prompt(found: Grades) -> Iterator[str]:
    if found.as_asked:
        yield f"prompt = {quoted(f'{{{ASKED}}}')}            # what it was asked then, word by word"
        return
    yield "# Put the judge's own prompt here, with {column} where its variables are:"
    yield 'prompt = """'
    yield PROMPT.rstrip()
    for column in found.columns:
        yield ""
        yield f"{column.capitalize()}:"
        yield f"{{{column}}}"
    yield '"""'
