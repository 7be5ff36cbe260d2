"""How often a change is noticed by confidences that wobble, and how often a false one: docs/sure.md.

    python benchmarks/confidences.py FOLDER [RUNS] [all|half]

FOLDER holds frugalml/ and vader/. Runs of `auto` against an API that answers a share of all items
with any other label, and whose confidences wobble; how much is known from 500 items that were asked
twice. Half takes every second item.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from masa.data.baseline_answers import BaselineAnswers
from masa.data.dataset import Dataset, read
from masa.inference.any_change import any_change
from masa.inference.method import Method
from masa.inference.noise_alone import wrong_before
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Column, in_order
from masa.replays.whole_runs import NOISE_STREAM, Noise, drive
from masa.settings import Settings

BUDGETS = (4, 8, 20, 50, 100, 200, 500)
TWICE = 500
Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Setting:
    """An API before and now, and its noise."""

    name: str
    file: str
    old: str
    new: str
    labels: float
    """the share of answers that are any other label"""
    wobble: float
    """the standard deviation of a confidence"""
    how: str = "evenly"
    """evenly; `unsure`, more where the confidence is low; or `tails`, now and then ten times as far"""
    log_odds: bool = False
    """whether the API's confidences crowd near 1, as those of a language model do"""


def settings() -> Iterator[Setting]:
    vader = ("vader/snippets", "vader-3.2.1")
    for labels in (0.01, 0.0):
        for wobble in (0.005, 0.01, 0.02):
            yield Setting("VADER 3.2.1 -> 3.3.2", *vader, "vader-3.3.2", labels, wobble)
    for how in ("evenly", "unsure", "tails"):
        for labels in (0.01, 0.0):
            yield Setting("VADER, the same again", *vader, "vader-3.2.1", labels, 0.01, how)
            yield Setting(
                "amazon yelp, the same again",
                "frugalml/yelp",
                "amazon",
                "amazon",
                labels,
                0.01,
                how,
            )
    ferplus = ("frugalml/ferplus", "microsoft", "microsoft")
    yield Setting("microsoft ferplus, the same again", *ferplus, 0.05, 0.02)
    yield Setting("the same, as a language model", *ferplus, 0.01, 0.3, log_odds=True)


def loaded(
    setting: Setting, folder: Path, half: bool
) -> tuple[Dataset, Column, Values, Column, Values]:
    """Give the data, and the answers and confidences of both versions."""
    names = list(dict.fromkeys((setting.old, setting.new)))
    data = read(
        folder / f"{setting.file}.parquet",
        label="label",
        predictions=[f"{name}.prediction" for name in names],
        difficulty=f"{setting.old}.confidence",
        numbers=[f"{name}.confidence" for name in names],
    )
    if half:
        data = data.take(np.arange(1, len(data), 2))
    values = in_order(tuple(v for n in names for v in data.predictions[f"{n}.prediction"].values))
    old, new = (data.predictions[f"{n}.prediction"].on(values) for n in (setting.old, setting.new))
    before, now = (data.numbers[f"{n}.confidence"] for n in (setting.old, setting.new))
    if setting.log_odds:
        before, now = (1.0 - 10.0 ** (-1.0 - 7.0 * np.clip(c, 0.0, 1.0)) for c in (before, now))
    return data, old, before, new, now


def wobbled(confidence: Values, setting: Setting, luck: np.random.Generator) -> Values:
    """Give confidences as they come in another call."""
    step = setting.wobble * luck.normal(size=len(confidence))
    if setting.how == "unsure":
        step *= 3.0 * (1.0 - confidence)
    if setting.how == "tails":
        step *= np.where(luck.random(len(confidence)) < 0.02, 10.0, 1.0)
    if setting.log_odds:
        odds = np.log(confidence) - np.log1p(-confidence)
        return 1.0 / (1.0 + np.exp(-(odds + step)))
    return np.clip(confidence + step, 0.0, 1.0)


def noticed(setting: Setting, folder: Path, half: bool, seeds: range) -> Values:
    """Play runs; give by budget how often a change was said, by all and by labels alone."""
    data, old, before, new, now = loaded(setting, folder, half)
    noise, counts = Noise(setting.labels or 1e-9), np.zeros((len(BUDGETS), 2))
    rates = np.full(len(data), setting.labels)
    settings = Settings()
    for seed in seeds:
        luck = np.random.default_rng((seed, NOISE_STREAM))
        then, again, today = (noise.of(side, rates, luck) for side in (old, old, new))
        sure, sure_again, sure_today = (wobbled(c, setting, luck) for c in (before, before, now))
        twice = luck.permutation(len(data))[:TWICE].tolist()
        known = BaselineAnswers(
            np.arange(len(data)),
            then,
            sure,
            asked_twice={place: bool(then.codes[place] != again.codes[place]) for place in twice},
            confidence_twice={
                place: (float(sure[place]), float(sure_again[place])) for place in twice
            },
        )
        method = Method.of(replace(data, difficulty=sure), known, settings)
        trial = Trial(method, known, Stopping.of(settings), budget=BUDGETS[-1], seed=seed)
        for row, budget in enumerate(BUDGETS):
            drive(trial, today, until=budget, confidence=sure_today)
            found = trial.conclusion()
            counts[row, 0] += found.any_change.said == "yes"
            labels = any_change(
                found.estimate,
                replace(known, confidence_twice={}),
                found.compared,
                found.differing,
                wrong=wrong_before(method.data, known),
                confidence=trial.asked.confidence(found.places.tolist()),
                looks=found.looks,
            )
            counts[row, 1] += labels.said == "yes"
    return counts


def main() -> None:
    folder = Path(sys.argv[1])
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    half = "half" in sys.argv
    print(f"{runs} runs{', every second item' if half else ''}; said 'yes' (by labels alone)\n")
    print("| case | labels | wobble | " + " | ".join(f"{n} queries" for n in BUDGETS) + " |")
    print("|---" * (3 + len(BUDGETS)) + "|")
    with ProcessPoolExecutor(2) as pool:
        for setting in settings():
            play = partial(noticed, setting, folder, half)
            parts = list(
                pool.map(
                    play, [range(first, min(first + 25, runs)) for first in range(0, runs, 25)]
                )
            )
            shares = np.sum(parts, axis=0) / runs
            cells = " | ".join(f"{both:.1%} ({alone:.1%})" for both, alone in shares.tolist())
            how = "" if setting.how == "evenly" else f" {setting.how}"
            print(
                f"| {setting.name} | {setting.labels:.0%} | {setting.wobble:g}{how} | {cells} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
