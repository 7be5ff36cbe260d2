"""A share of passes that fell: did the product change, or the model that grades it?

    python benchmarks/judge.py

A shop's replies are graded by a model, pass or fail, in week 1 and in week 2, and exported in the
form of promptfoo. In one case the judge changed between the weeks, in the other the product did:
the shares of passes fall alike. masa asks the judge again about 100 of the replies of week 1. The
judge is the double of OpenAI, behind which VADER grades the tone; the replies are made up.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from masa.doubles.language_models import OpenAI, Spoken
from masa.doubles.made_up import reviews
from masa.doubles.server import KEY

REPLIES, BUDGET = 300, 100
ASKED = "<Output>\n{reply}\n</Output>\n<Rubric>\nIs friendly\n</Rubric>"


class Judge(OpenAI):
    """A model that passes what is not unfriendly; after an update, only what is friendly."""

    def __init__(self) -> None:
        super().__init__()
        self.says = lambda prompt, _: Spoken(json.dumps({"pass": self.passes(prompt)}))

    def passes(self, asked: str) -> bool:
        reply = asked.split("<Output>\n")[1].split("\n</Output>", maxsplit=1)[0]
        return self.vader.score(reply, updated=False) > (0.05 if self.updated else -0.05)


def replies(*, worse: bool) -> list[str]:
    """Give replies of the product; a worse one is unfriendly more often."""
    made = [text for text, _ in reviews(3 * REPLIES)]
    unfriendly = [text for text, label in reviews(3 * REPLIES) if label == "neg"]
    kept = made[:REPLIES]
    if worse:
        kept[: REPLIES // 3] = unfriendly[: REPLIES // 3]
    return kept


def export(judge: Judge, shown: list[str]) -> dict[str, Any]:
    """Write what promptfoo exports of an evaluation, as far as masa reads it."""
    results = []
    for number, reply in enumerate(shown):
        asked = ASKED.format(reply=reply)
        passed = judge.passes(asked)
        part = {
            "assertion": {"type": "llm-rubric", "value": "Is friendly"},
            "pass": passed,
            "score": float(passed),
            "metadata": {"renderedGradingPrompt": asked},
        }
        results.append(
            {
                "id": f"reply-{number}",
                "response": {"output": reply},
                "gradingResult": {"pass": passed, "componentResults": [part]},
            }
        )
    provider = {"id": "openai:chat:gpt-4o", "config": {"apiBaseUrl": f"{judge.url}/v1"}}
    return {
        "results": {"results": results},
        "config": {"defaultTest": {"options": {"provider": provider}}},
    }


def share(content: dict[str, Any]) -> str:
    graded = [one["gradingResult"]["pass"] for one in content["results"]["results"]]
    return f"{sum(graded) / len(graded):.0%} of {len(graded)} replies pass"


def masa(folder: Path, *words: str) -> str:
    print(f"$ masa {' '.join(words)}")
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "NO_COLOR": "1"}
    command = [sys.executable, "-m", "masa", *words]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode in (0, 1, 3), done.stderr
    return done.stdout + done.stderr


def play(*, judge_changes: bool) -> None:
    changed = "judge" if judge_changes else "product"
    print(f"The {changed} changed between the weeks\n")
    with Judge() as judge, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = export(judge, replies(worse=False))
        judge.updated = judge_changes
        second = export(judge, replies(worse=not judge_changes))
        print(f"week 1: {share(first)}\nweek 2: {share(second)}\n")
        (folder / "week1.json").write_text(json.dumps(first))
        print(masa(folder, "import", "promptfoo", "week1.json", "--out", "judge"))
        words = ("--budget", str(BUDGET), "--seed", "0")
        print(masa(folder, "assess", "--config", "judge/week1.toml", *words))


if __name__ == "__main__":
    play(judge_changes=True)
    play(judge_changes=False)
