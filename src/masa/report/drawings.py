"""Drawings for a page, as SVG without a script.

Places across are percentages, so that a drawing is as wide as the page and its text as large as
any other text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from markupsafe import Markup, escape

from masa.records import Interval, Step

MARGIN = 0.08
"""How much wider an axis is at either end than what is drawn on it, as a share of that."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from one value to another."""

    low: float
    high: float

    @classmethod
    def of(cls, *values: float) -> "Axis":
        """Make an axis that has zero and all of these values on it."""
        low, high = min((0.0, *values)), max((0.0, *values))
        spare = MARGIN * (high - low) or 1.0
        return cls(low - spare, high + spare)

    def at(self, value: float) -> float:
        """Give the place of a value, in percent."""
        share = (value - self.low) / (self.high - self.low)
        return round(100.0 * min(1.0, max(0.0, share)), 2)


def interval(
    axis: Axis, shown: Interval, *, tolerance: float | None = None, tone: str = "", height: int = 22
) -> Markup:
    """Draw an interval: a bar between its ends, a dot at the estimate, zero, and the tolerance."""
    middle = height / 2
    parts = []
    if tolerance is not None:
        left, right = axis.at(-tolerance), axis.at(tolerance)
        parts.append(
            f'<rect class="tolerance" x="{left}%" width="{right - left:.2f}%" height="{height}"/>'
        )
    zero = axis.at(0.0)
    low, high = axis.at(shown.low), axis.at(shown.high)
    parts += [
        f'<line class="axis" x1="0" x2="100%" y1="{middle}" y2="{middle}"/>',
        f'<line class="zero" x1="{zero}%" x2="{zero}%" y1="0" y2="{height}"/>',
        f'<line class="bar" x1="{low}%" x2="{high}%" y1="{middle}" y2="{middle}"/>',
        *(
            f'<line class="end" x1="{end}%" x2="{end}%" y1="{middle - 5}" y2="{middle + 5}"/>'
            for end in (low, high)
        ),
        f'<circle class="dot" cx="{axis.at(shown.estimate)}%" cy="{middle}" r="4"/>',
    ]
    kind = escape(f"interval {tone}".strip())
    return Markup(  # noqa: S704 - numbers, and a class that was escaped
        f'<svg class="{kind}" height="{height}" aria-hidden="true" data-low="{shown.low!r}" '
        f'data-estimate="{shown.estimate!r}" data-high="{shown.high!r}">{"".join(parts)}</svg>'
    )


def course(steps: Sequence[Step], tolerance: float | None) -> Markup:
    """Draw how the interval for the change of right answers narrowed with the answers."""
    limit = tolerance or 0.0
    axis = Axis.of(-limit, limit, *(end for step in steps for end in (step.low, step.high)))
    first, last = steps[0].answers, steps[-1].answers
    height = 170.0

    def across(answers: int) -> float:
        if first == last:
            return 50.0
        return round(6.0 + 88.0 * log(answers / first) / log(last / first), 2)

    def down(value: float) -> float:
        return round(height * (1.0 - axis.at(value) / 100.0), 1)

    parts = []
    if tolerance is not None:
        top, bottom = down(tolerance), down(-tolerance)
        parts.append(
            f'<rect class="tolerance" x="0" width="100%" y="{top}" height="{bottom - top:.1f}"/>'
        )
    parts.append(f'<line class="zero" x1="0" x2="100%" y1="{down(0.0)}" y2="{down(0.0)}"/>')
    for step in steps:
        place, number = across(step.answers), f"{step.answers:,}"
        ends = f'y1="{down(step.low)}" y2="{down(step.high)}"'
        parts += [
            f'<line class="bar" x1="{place}%" x2="{place}%" {ends}/>',
            f'<circle class="dot" cx="{place}%" cy="{down(step.estimate)}" r="4"/>',
            f'<text x="{place}%" y="{height + 16:.0f}" text-anchor="middle">{number}</text>',
        ]
    return Markup(  # noqa: S704 - numbers alone
        f'<svg class="course" height="{height + 22:.0f}" aria-hidden="true">{"".join(parts)}</svg>'
    )


def allocation(got: float, best: float, most: float) -> Markup:
    """Draw how many queries went somewhere, with a mark at how many the best allocation gives."""
    scale = 98.0 / max(most, 1.0)
    mark = round(best * scale, 2)
    return Markup(  # noqa: S704 - numbers alone
        '<svg class="allocation" height="18" aria-hidden="true">'
        f'<rect class="bar" x="0" y="4" height="10" width="{got * scale:.2f}%"/>'
        f'<line class="best" x1="{mark}%" x2="{mark}%" y1="0" y2="18"/></svg>'
    )
