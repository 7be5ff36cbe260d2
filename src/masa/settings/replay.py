"""How recorded answers are replayed, and how a plan is made."""

from dataclasses import dataclass
from typing import Any

from masa.errors import UsageError
from masa.settings.assess import TARGET_ERROR, Shared
from masa.settings.kinds import Kind, flag, names, number, numbers, one_of, shares, whole
from masa.settings.methods import GROUPS, MOST_EXPLORATION, NEED_OLD, PAPER, REPLAYED, SLOW, STRICT
from masa.settings.setting import Section, setting
from masa.settings.tolerance import Tolerance


def _exploration(given: Any) -> "float | str":
    if given == "theory":
        return "theory"
    words = f"give a number from 0 to {MOST_EXPLORATION:g}, or 'theory'"
    return float(number("A", words, 0.0, MOST_EXPLORATION).read(given))


def _methods(given: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = names("NAME").read(given)
    one = one_of("NAME", *REPLAYED)
    for name in found:
        one.read(name)
    if not found:
        raise ValueError(f"name one of {', '.join(REPLAYED)}")
    if len(set(found)) < len(found):
        raise ValueError("a method is named twice; name each once")
    return found


METHODS_KIND = Kind("NAME", _methods, several=True)


@dataclass(frozen=True, eq=False, repr=False)
class ReplaySettings(Shared):
    """How recorded answers are assessed many times: the options of `masa replay`."""

    methods: tuple[str, ...] | None = setting(
        None,
        METHODS_KIND,
        f"{', '.join(REPLAYED)}; may be repeated.",
        option="--method",
        default_words=f"all but {' and '.join(SLOW)}, which take longer",
    )
    budgets: tuple[int, ...] | None = setting(
        None, numbers(), "Numbers of queries to report.", default_words="500,1000,2000"
    )
    runs: int = setting(1000, whole("R", 1, 100_000), "Assessments per method.")
    target_error: float = setting(
        0.01, TARGET_ERROR, "Largest error (Frobenius norm) wanted: 0.01 or 1%."
    )
    replacement: bool = setting(
        False,
        flag(),
        "Items may be asked again, as in the paper.",
        option="--with-replacement",
    )
    a: "float | str" = setting(
        1.0, Kind("A", _exploration), "Exploration of masa: a number, or 'theory'."
    )
    stop: str | None = setting(
        None,
        one_of("RULE", "target", "decide", "budget"),
        "Also play whole assessments until they stop by themselves: target, decide or budget.",
    )
    noise: float | None = setting(
        None,
        number("R", "give a share such as 0.01", low=0.0, high=1.0),
        "In whole assessments, this share of old and new answers contradicts itself.",
    )
    noise_where: str = setting(
        "evenly",
        one_of("WHERE", "evenly", "unsure"),
        "evenly, or unsure: only among the least confident fifth.",
    )
    repeat: int = setting(500, whole("N", 1), "Items asked twice, by which the noise is known.")

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        alone = self.tolerance != Tolerance() or self.noise is not None or self.strict
        if self.stop is None and alone:
            raise UsageError(
                "only whole assessments have a tolerance or noise",
                hint="play them with --stop target, decide or budget",
            )
        if self.stop is not None and self.replacement:
            raise UsageError("assessments ask each item once", hint="leave out --with-replacement")
        if self.strict and self.methods and not set(self.methods) & set(STRICT):
            raise UsageError(
                f"the method {self.methods[0]} has no strict intervals",
                hint=f"give --method {' or '.join(STRICT)}",
            )
        if self.replacement:
            for name in self.methods or ():
                if name not in PAPER:
                    raise UsageError(
                        f"the method {name} asks each item once",
                        hint="leave out --with-replacement",
                    )

    def check_columns(self, *, old: str | None, group: str | None = None) -> None:
        """Raise for what these columns cannot do, before any data is read."""
        if old is None and self.stop is not None:
            raise UsageError(
                "without old answers there is no change to stop at",
                hint="name their column with --old COL",
            )
        for name in self.methods or ():
            if old is None and name in NEED_OLD:
                raise UsageError(
                    f"the method {name} needs the old answers",
                    hint="name their column with --old COL",
                )
            if group is not None and name not in GROUPS:
                raise UsageError(
                    f"the method {name} does not know groups",
                    hint="use predictive, which needs --old COL",
                )


@dataclass(frozen=True, eq=False, repr=False)
class PlanSettings(Section):
    """What a plan is to tell: the options of `masa plan` besides those of an assessment."""

    methods: tuple[str, ...] | None = setting(
        None,
        METHODS_KIND,
        "Methods to compare; may be repeated.",
        option="--method",
        default_words="auto, masa, post-stratified",
    )
    changed: float | None = setting(
        None,
        number(
            "C",
            "give the share of answers that may have changed, such as 0.03 or 3%",
            low=0.0,
            high=1.0,
            above=True,
        ),
        "Share of answers that may have changed.",
        default_words="as earlier runs found, or 3%",
    )
    errors: tuple[float, ...] | None = setting(
        None,
        shares("E", "give a share from 0.000001 to less than 1, such as 1%", 1e-6, 0.999999),
        "Errors of the shift to price: 1%,0.5%; may be repeated.",
        option="--target-error",
        default_words="2%,1%,0.5%,0.25%",
    )
    budgets: tuple[int, ...] | None = setting(
        None, numbers(), "Numbers of queries to tell the worth of.", default_words="100,500,2000"
    )
    runs: int = setting(100, whole("R", 1, 100_000), "Assessments played per method.")
