"""How to assess: the settings of one assessment."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from masa.errors import UsageError
from masa.settings.kinds import Kind, flag, mix, number, one_of, whole
from masa.settings.methods import LIVE
from masa.settings.objective import Objective
from masa.settings.setting import Section, setting
from masa.settings.tolerance import Tolerance

MIX = mix()
LEVELS = whole("K", 1, 100)
SEED = whole("S", 0, 2**63 - 1)
CONFIDENCE = number(
    "P", "give a share from 0.5 to 0.999999, such as 0.95 or 95%", low=0.5, high=0.999999
)
"""Beyond 0.999999 no number of answers that can be paid for says anything."""
TARGET_ERROR = number(
    "E", "give a share from 0.000001 to less than 1, such as 0.01 or 1%", low=1e-6, high=0.999999
)


@dataclass(frozen=True, eq=False, repr=False)
class Shared(Section):
    """What assessments and replays of them share."""

    levels: int = setting(3, LEVELS, "Difficulty levels inside each label.")
    seed: int = setting(0, SEED, "Same seed, same choice of items.", default_words="0")
    mix: Mapping[str, float] | None = setting(
        None, MIX, "Mix of labels to estimate for: label=share,... or a JSON file."
    )
    weights: Objective = setting(
        Objective,
        Kind("W", Objective.read, reads_none=True),
        "What to measure: 'accuracy', or a JSON file of weights or costs by label and prediction.",
        default_words="all entries of the matrix alike",
    )
    tolerance: Tolerance = setting(
        Tolerance,
        Kind("T", Tolerance.read, reads_none=True),
        "Change that does not matter: 1% of accuracy; or recall=, precision=, entry=, answers=, "
        "cost=.",
        default_words="0.01",
    )
    confidence: float = setting(
        0.95, CONFIDENCE, "Confidence of intervals; share of replays within an error: 0.95 or 95%."
    )
    strict: bool = setting(
        False, flag(), "Intervals that hold at all times at once; takes about twice the queries."
    )


@dataclass(frozen=True, eq=False, repr=False)
class Settings(Shared):
    """How to assess: what `[assess]` in masa.toml and the options of `masa assess` say.

    >>> Settings(tolerance="recall=5%").tolerance.limits
    {'recall': 0.05}
    >>> Settings(levels=0)
    Traceback (most recent call last):
    masa.errors.UsageError: levels is 0
    """

    seed: int | None = setting(  # type: ignore[assignment]
        None, SEED, "Repeat the choice of items of a run with this seed.", default_words="a new one"
    )
    method: str = setting(
        "auto", one_of("NAME", *LIVE), f"How items are chosen: {', '.join(LIVE)}."
    )
    target_error: float | None = setting(
        None, TARGET_ERROR, "Stop once the error of the shift is at most this: 0.005 or 0.5%."
    )
    decide: bool = setting(False, flag(), "Stop as soon as the verdict is certain.")
    canary: int = setting(
        0, whole("N", 0), "Ask the N most telling items first; go on only if one of them changed."
    )
    canary_ok: bool = setting(False, flag(), "A canary that saw no change is exit code 0, not 3.")
    fail_on: str = setting(
        "any",
        one_of("WHAT", "any", "worse", "moved"),
        "Changes that are exit code 1: any that matters, worse alone, or moved: any at all.",
    )
    difficulty: str = ""
    """what the data's difficulty is, in words"""
    old_confidence: str | None = None
    """the column with the confidence of the baseline answers, where those are a column too"""
    also: tuple[str, ...] = ()
    """columns with answers that are free, a cheap model's first"""
    cheap: tuple[str, str] | None = None
    """text, image or sound, and the column of it that a cheap model may be trained on"""

    def to_dict(self) -> dict[str, Any]:
        """Give all settings as JSON."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return plain | {
            "mix": None if self.mix is None else dict(self.mix),
            "weights": self.weights.to_json(),
            "tolerance": self.tolerance.to_json(),
            "also": list(self.also),
            "cheap": None if self.cheap is None else list(self.cheap),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Settings":
        """Read what `to_dict` gives; what an earlier masa did not have is the default.

        >>> given = Settings(tolerance="recall=5%", also=("cheap",), weights="accuracy")
        >>> Settings.from_dict(given.to_dict()) == given
        True
        """
        known = {one.name: content[one.name] for one in fields(cls) if one.name in content}
        known["also"] = tuple(known.get("also", ()))
        if known.get("cheap"):
            known["cheap"] = tuple(known["cheap"])
        return cls(**known)

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        if self.method == "uniform" and self.mix is not None:
            raise UsageError(
                "the method uniform cannot estimate for another mix of labels",
                hint="use post-stratified, or leave out the mix",
            )
        if self.canary_ok and not self.canary:
            raise UsageError(
                "canary-ok means nothing without a canary", hint="give --canary 40, say, as well"
            )
        costs_known = self.weights.linear and not self.weights.accuracy
        if "cost" in self.tolerance.limits and not costs_known:
            raise UsageError(
                "a tolerance on the cost of mistakes needs to know what they cost",
                hint='give --weights FILE with {"cost": {"label": {"prediction": 5}}}',
            )
