"""The sampling methods: one row each, from which every list of methods is made."""

from typing import NamedTuple


class MethodRow(NamedTuple):
    """What is known of a method by its name."""

    name: str
    in_paper: bool = False
    """whether the paper compares it"""
    can_ask: bool = True
    """whether it can ask an API; one that must know the answers can only be replayed"""
    needs_old: bool = False
    """whether it cannot do without the baseline answers"""
    slow: bool = False
    """whether it is replayed only where it is named, because it takes longer"""
    strict: bool = False
    """whether it has intervals that hold at all times at once"""
    groups: bool = False
    """whether it measures groups of items"""
    adaptive: bool = False
    """whether it chooses strata by their answers, which its interval does not allow for"""


TABLE = (
    MethodRow("uniform", in_paper=True),
    MethodRow("post-stratified", in_paper=True),
    MethodRow("stratified", in_paper=True),
    MethodRow("masa", in_paper=True, adaptive=True),
    MethodRow("optimal", in_paper=True, can_ask=False),
    MethodRow("adaptive", adaptive=True),
    MethodRow("paired", needs_old=True, adaptive=True),
    MethodRow("predictive", needs_old=True, slow=True, strict=True, groups=True),
    MethodRow("auto", slow=True, strict=True, groups=True),
)
"""In the order in which replays show them."""

REPLAYED = tuple(row.name for row in TABLE)
LIVE = tuple(row.name for row in reversed(TABLE) if row.can_ask)
PAPER = tuple(row.name for row in TABLE if row.in_paper)
NEED_OLD = tuple(row.name for row in TABLE if row.needs_old)
SLOW = tuple(row.name for row in TABLE if row.slow)
STRICT = tuple(row.name for row in TABLE if row.strict)
GROUPS = tuple(row.name for row in TABLE if row.groups)
ADAPTIVE = tuple(row.name for row in TABLE if row.adaptive)

MOST_EXPLORATION = 1e12
"""More exploration in the paper's rule would let a score overtake strata not yet asked twice."""
