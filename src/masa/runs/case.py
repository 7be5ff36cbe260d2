"""What an assessment begins with: data, baseline and method, the same however often it is made."""

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from masa.clients import Client
from masa.data.baseline_answers import BaselineAnswers, narrowed
from masa.data.cheap_model import CHEAP, CHEAP_CONFIDENCE, helped
from masa.data.dataset import Dataset
from masa.inference.at_best import narrowest
from masa.inference.method import Method
from masa.inference.stopping import Stopping
from masa.inference.trial import Trial
from masa.records import Bools, Progress
from masa.runs.journalled import keys
from masa.runs.options import Options
from masa.runs.session import Spending
from masa.runs.stored_baseline import comparable
from masa.settings import Settings
from masa.storage import history
from masa.storage.history import Draft
from masa.storage.store import Store

LARGEST_NEW_SEED = 999_999
"""Seeds are drawn up to this: few digits to type again."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """What an assessment begins with."""

    whole: Dataset
    """the items that the data and the baseline have in common"""
    data: Dataset
    """those of them with a baseline answer, which alone are asked"""
    old: BaselineAnswers
    settings: Settings
    method: Method
    asked_lately: Bools | None
    """(N,) whether the run before this one asked the item"""

    @classmethod
    def of(cls, store: Store, whole: Dataset, old: BaselineAnswers, chosen: Options) -> "Case":
        """Choose the method for the items that the data and the baseline have in common."""
        whole, settings = with_cheap_model(
            whole, old, chosen.settings, folder=cache(store, chosen), progress=chosen.run.progress
        )
        part, old = narrowed(whole, old)
        lately = _asked_lately(store, part, chosen)
        method = Method.of(part, old, settings, asked_lately=lately)
        return cls(whole, part, old, settings, method, lately)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What cannot be decided however much is asked."""
        old, limit = self.old, self.settings.tolerance.limits.get("accuracy")
        if old.weight is None or old.extra_variance is None or limit is None:
            return ()
        adds = self.method.baseline_variance
        at_best = narrowest(float(adds.sum()), float((adds**2).sum()), self.settings.confidence)
        if at_best <= limit:
            return ()
        return (
            f"this baseline of {len(old.places):,} items cannot show that nothing changed: with "
            f"all of them asked, accuracy is known to {100 * at_best:.2g} points, and the "
            f"tolerance is {100 * limit:.2g}; masa baseline --refresh N adds items",
        )

    def trial(self, spending: Spending, seed: int) -> Trial:
        """Make the assessment without input and output."""
        return Trial(
            self.method,
            self.old,
            Stopping.of(self.settings),
            budget=spending.queries,
            canary=self.settings.canary,
            seed=seed,
        )

    def draft(self, client: Client, chosen: Options) -> Draft:
        """Give what the run is, before it has a number."""
        return Draft(
            name=chosen.run.name,
            kind="assess",
            settings=_identity(self.settings, self.method, self.old),
            comparable=comparable(client, self.data),
            keys=keys(self.whole),
            data=self.whole.fingerprint(),
            baseline=self.old.run,
            # Where the command names no seed, every run asks other items.
            drawn_seed=new_seed() if self.settings.seed is None else None,
        )


def _asked_lately(store: Store, data: Dataset, chosen: Options) -> Bools | None:
    """Say of each item (N,) whether the run before this one asked it.

    A run that is resumed, or repeated by its seed, goes by what was known when it began. A seed
    that belongs to no run is drawn as if it were the first.
    """
    name, before = chosen.run.name, chosen.run.resume
    if before is None and chosen.settings.seed is not None:
        before = history.with_seed(store, name, chosen.settings.seed)
        if before is None:
            return None
    return np.isin(keys(data), history.asked_lately(store, name, before=before))


def new_seed() -> int:
    """Draw a seed."""
    return 1 + secrets.randbelow(LARGEST_NEW_SEED)


def cache(store: Store, chosen: Options) -> Path | None:
    """Give the folder for what can be made again, where the run is kept."""
    return None if chosen.run.store is None else store.path.parent / "cache"


def with_cheap_model(
    data: Dataset,
    old: BaselineAnswers,
    settings: Settings,
    *,
    folder: Path | None,
    progress: Progress | None,
) -> tuple[Dataset, Settings]:
    """Train a cheap model, where one may be and nothing else tells easy items from hard ones."""
    if settings.cheap is None:
        return data, settings
    if not data.labelled.all():
        note = "no cheap model was trained: some items have no label"
        return replace(data, notes=(*data.notes, note)), settings
    if settings.also or data.difficulty is not None or old.confidence is not None:
        return data, settings
    kind, column = settings.cheap
    data = helped(data, column, kind=kind, folder=folder, progress=progress)
    return data, replace(settings, also=(CHEAP,), difficulty=CHEAP_CONFIDENCE)


def _identity(settings: Settings, method: Method, old: BaselineAnswers) -> dict[str, Any]:
    """Give the settings by which the store recognises the same command.

    Its keys are part of the schema.
    """
    same: dict[str, Any] = {
        "method": method.name,
        "levels": settings.levels,
        "seed": settings.seed,
        "mix": None if settings.mix is None else dict(settings.mix),
        "difficulty": method.difficulty,
    }
    more: dict[str, Any] = {
        "also": list(settings.also),
        "weights": settings.weights.identity(),
        "turns": method.may_switch,
        "decide": settings.decide,
        "strict": settings.strict,
    }
    if old.weight is not None:
        more["known"] = len(old.places)
    if old.run is None:
        more["old"] = old.answers.name
        more["old_confidence"] = settings.old_confidence
    return same | {key: value for key, value in more.items() if value}
