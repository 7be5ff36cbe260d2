"""Do two checkouts compute the same? Run every method of both and compare results and journals.

    python benchmarks/same_results.py ../shared/data OTHER_CHECKOUT [CASE ...]

Compared are all numbers of `--json` (notes are text for people and may be reworded) and the journal of
recorded answers: which items were asked, in which order, with which inclusion probability, and what their answers weigh. Results are kept in
a temporary folder named after the state of the source files, so that a second comparison runs only what
changed.
"""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
METHODS = [
    "auto",
    "predictive",
    "paired",
    "adaptive",
    "masa",
    "post-stratified",
    "stratified",
    "uniform",
]
WORDS = {"notes", "proof", "words", "why", "cannot_see", "draws_per_second", "difficulty", "text"}
"""Keys whose values are text for people, or a speed."""

SETS = {
    "vader": (
        "vader/snippets.parquet --label label --id id --input text",
        "vader-3.2.1.prediction",
        "vader-3.3.2.prediction",
    ),
    "ferplus": (
        "frugalml/ferplus.parquet --label label --id id",
        "facepp.prediction",
        "microsoft.prediction",
    ),
    "digit": (
        "frugalml/digit.parquet --label label --id id",
        "google.prediction",
        "ibm.prediction",
    ),
}


def cases() -> dict[str, list[str]]:
    """Give the commands of each case, one after the other on one store."""
    found: dict[str, list[str]] = {}
    for name, (data, old, new) in SETS.items():
        known = f"{data} --old {old} --api replay:{new}"
        for method in METHODS:
            found[f"{name}-{method}"] = [f"assess {known} --method {method} --budget 400 --seed 3"]
        extra = {
            "decide": "--budget 1500 --decide",
            "target": "--budget 1500 --target-error 2%",
            "canary": "--budget 300 --canary 40",
            "strict": "--budget 500 --strict",
            "recall": "--budget 500 --tolerance recall=5%,accuracy=2% --confidence 0.9",
            "accuracy": "--budget 500 --weights accuracy",
            "levels": "--budget 500 --method masa --levels 5",
            "few": "--budget 4",
        }
        for what, options in extra.items():
            found[f"{name}-{what}"] = [f"assess {known} {options}"]
        first = f"{data} --api replay:{old}"
        second = f"{data} --api replay:{new}"
        found[f"{name}-stored"] = [
            f"baseline {first} --repeat 120",
            f"assess {second} --budget 300 --force",
            f"assess {second} --budget 300 --force --method adaptive --seed 5",
        ]
        found[f"{name}-partial"] = [
            f"baseline {first} --budget 900 --repeat 100",
            f"assess {second} --budget 300 --force",
            "accept 2",
            f"assess {second} --budget 200 --force --seed 2",
            f"assess {second} --budget 4 --force --seed 4",
        ]
        found[f"{name}-compare"] = [
            f"compare replay:{old} replay:{new} {data} --budget 300",
            f"compare replay:{old} replay:{new} {data} --budget 300 --seed 1",
        ]
        found[f"{name}-plan"] = [f"plan {known} --runs 10 --budgets 200"]
        found[f"{name}-validate"] = [f"validate {known} --budget 10 --method masa"]
        rows = data.replace(" --input text", " --text text")
        found[f"{name}-replay"] = [
            f"replay {rows} --old {old} --new {new} --runs 60",
            f"replay {rows} --old {old} --new {new} --runs 20 --method auto,predictive",
            f"replay {rows} --old {old} --new {new} --runs 20 --method auto,masa --stop decide",
            f"replay {rows} --old {old} --new {new} --runs 20 --method auto --stop target --strict"
            " --budgets 800 --target-error 2%",
            f"replay {rows} --old {old} --new {new} --runs 10 --method auto --stop budget --noise 2% --repeat 200 --budgets 300",
        ]
    vader, old, new = SETS["vader"]
    found["vader-group"] = [
        f"assess {vader} --old {old} --api replay:{new} --budget 400 --group vader-2.5.prediction"
    ]
    found["vader-mix"] = [
        f"assess {vader} --old {old} --api replay:{new} --budget 400 --mix positive=0.5,neutral=0.3,negative=0.2"
    ]
    found["vader-also"] = [
        f"assess {vader} --old {old} --api replay:{new} --budget 400 --also vader-2.5.prediction"
    ]
    return found


def run(checkout: Path, data: Path, commands: list[str]) -> list[Any]:
    """Run commands on a new store; give what each printed, and the journal at the end."""
    told: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "masa.db")
        for command in commands:
            words = [
                str(data / word) if word.endswith(".parquet") else word for word in command.split()
            ]
            if words[0] != "replay":
                words += ["--store", str(store)]
            ran = subprocess.run(
                [sys.executable, "-m", "masa", *words, "--json", "--quiet"],
                capture_output=True,
                text=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(checkout / "src")},
                check=False,
            )
            try:
                told.append({"exit": ran.returncode, "json": without_words(json.loads(ran.stdout))})
            except ValueError:
                told.append({"exit": ran.returncode, "stdout": ran.stdout, "stderr": ran.stderr})
        if store.is_file():
            columns = (
                "run, number, item, repeat, reserved, outcome, prediction, confidence, cost, "
                "batch, chance, batch_size, stands, adds"
            )
            with sqlite3.connect(store) as connection:
                rows = connection.execute(f"SELECT {columns} FROM call ORDER BY run, number")
                told.append([list(row) for row in rows])
    return told


def without_words(content: Any) -> Any:
    """Leave out what is text for people."""
    if isinstance(content, dict):
        return {key: without_words(value) for key, value in content.items() if key not in WORDS}
    return [without_words(value) for value in content] if isinstance(content, list) else content


def kept(checkout: Path) -> Path:
    """Give the folder for the results of a checkout as it is."""
    files = sorted((checkout / "src").rglob("*.py"))
    state = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    folder = Path(tempfile.gettempdir(), "masa-same-results", state)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def main() -> int:
    """Compare."""
    data, other, wanted = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]

    def results(checkout: Path, name: str, commands: list[str]) -> Any:
        file = kept(checkout) / f"{name}.json"
        if not file.is_file():
            file.write_text(json.dumps(run(checkout, data, commands)))
        return json.loads(file.read_text())

    def same(case: tuple[str, list[str]]) -> tuple[str, list[str]]:
        name, commands = case
        before, after = results(other, name, commands), results(HERE, name, commands)
        return name, [*differences(before, after, "")][:5]

    chosen = {
        name: commands
        for name, commands in cases().items()
        if not wanted or any(part in name for part in wanted)
    }
    apart = 0
    with ThreadPoolExecutor(2) as pool:
        for name, found in pool.map(same, chosen.items()):
            print(f"{name:24} {'the same' if not found else 'DIFFERENT'}", flush=True)
            for line in found:
                print("   ", line)
            apart += bool(found)
    print(f"{len(chosen) - apart} passed, {apart} failed")
    return bool(apart)


def differences(before: Any, after: Any, where: str) -> list[str]:
    """Say where two results are not the same, to the last bit."""
    if isinstance(before, dict) and isinstance(after, dict) and set(before) == set(after):
        return [
            line
            for key in before
            for line in differences(before[key], after[key], f"{where}.{key}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [line for i, pair in pairs for line in differences(*pair, f"{where}[{i}]")]
    return [] if before == after else [f"{where}: {str(before)[:200]} -> {str(after)[:200]}"]


if __name__ == "__main__":
    sys.exit(main())
