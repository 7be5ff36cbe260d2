"""How to assess: the settings of one assessment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from masa.errors import UsageError
from masa.settings.objective import Objective
from masa.settings.tolerance import Tolerance

METHODS = (
    "auto",
    "predictive",
    "paired",
    "adaptive",
    "masa",
    "post-stratified",
    "stratified",
    "uniform",
)

FAIL_ON = ("any", "worse")

SUREST = 0.999999
"""The largest confidence: of what is surer than that no number of answers tells."""

"""Which changes end a command with exit code 1."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to assess; what makes two commands the same."""

    method: str = "auto"
    levels: int = 3
    seed: int = 0
    mix: Mapping[str, float] | None = None
    tolerance: Tolerance = field(default_factory=Tolerance)
    confidence: float = 0.95
    difficulty: str = ""
    """what the data's difficulty is, in words"""
    old_confidence: str | None = None
    """the data's column with the confidence of the old answers, where those are a column too"""
    also: tuple[str, ...] = ()
    """columns with answers that are free, a cheap model's first"""
    objective: Objective = field(default_factory=Objective)
    target_error: float | None = None
    decide: bool = False
    canary: int = 0
    """queries after which to go on only if something changed"""
    fail_on: str = "any"
    canary_ok: bool = False
    strict: bool = False
    """whether intervals are to hold at all times at once"""
    cheap: tuple[str, str] | None = None
    """text, image or sound, and the column of it: a cheap model is trained where nothing tells easy items from hard ones"""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(
                f"there is no method {self.method!r} for live queries",
                hint=f"there are {', '.join(METHODS)}",
            )
        if not (isinstance(self.seed, int) and -(2**63) <= self.seed < 2**63):
            raise UsageError(
                f"seed is {self.seed}", hint="give a whole number of at most 18 digits"
            )
        if not 0.5 <= self.confidence <= SUREST:
            raise UsageError(
                f"confidence is {self.confidence}",
                hint=f"give a share from 0.5 to {SUREST}, such as 0.95 or 95%",
            )
        if self.method == "uniform" and self.mix is not None:
            raise UsageError(
                "the method uniform knows no other mix of labels",
                hint="use post-stratified, or leave out the mix",
            )
        if self.fail_on not in FAIL_ON:
            raise UsageError(f"fail_on is {self.fail_on!r}", hint=f"give {' or '.join(FAIL_ON)}")
        if self.canary < 0:
            raise UsageError(
                f"canary is {self.canary}", hint="give a number of queries, such as 40"
            )
        if self.canary_ok and not self.canary:
            raise UsageError(
                "canary-ok means nothing without a canary", hint="give --canary 40, say, as well"
            )
        if "cost" in self.tolerance.limits and (
            not self.objective.linear or self.objective.accuracy
        ):
            raise UsageError(
                "a tolerance on the cost of mistakes needs to know what they cost",
                hint='give --weights FILE with {"cost": {"label": {"prediction": 5}}}',
            )
