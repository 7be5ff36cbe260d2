"""Strata: items of one label, one difficulty level and, where known, one baseline answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np

from masa.data.dataset import Dataset
from masa.data.features import Features
from masa.errors import UsageError
from masa.records import UNLABELLED, Codes, Column, Floats, Ints

FEW = 10
"""With fewer items per level than this, items are not split into levels.

Each stratum costs two queries before it tells anything.
"""

MAX_LEVELS = 100

PAIRED_ITEMS = 30
"""A label and a baseline answer need this many items in common for a stratum of their own."""

PAIRED_SHARE = 500
"""They also need this share of all items: one in 500."""


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """A partition of the items.

    The items are laid out so that each stratum is a range of positions, and the strata of one
    label are next to each other.
    """

    labels: tuple[str, ...]
    label: Codes
    """(S,) the label of each stratum, ascending"""
    level: Codes
    """(S,) its difficulty level from 0, which grows with the number that is the difficulty"""
    weight: Floats
    """(S,) its weight: its share of the estimate; they sum to 1"""
    start: Ints
    """(S + 1,) stratum s holds the positions start[s] to start[s + 1]"""
    items: Codes
    """(N,) the item at each position"""
    kind: Codes
    """(S,) the value of the column that the items were also split by

    It is -1 where the stratum has several values, or where there is no such column.
    """
    each: Floats | None = None
    """(N,) the weight of each item, where the items of a stratum have different weights"""

    def __len__(self) -> int:
        return len(self.label)

    @property
    def size(self) -> Ints:
        """(S,) the number of items."""
        return np.diff(self.start)

    @property
    def of_position(self) -> Codes:
        """(N,) the stratum at each position."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.size)

    def of(self, places: Ints) -> Codes:
        """Return the stratum of each of these items (n,)."""
        position = np.empty(len(self.items), np.int64)
        position[self.items] = np.arange(len(self.items))
        return self.of_position[position[places]]

    @property
    def item_weight(self) -> Floats:
        """(N,) the weight of each item: its share of the estimate."""
        if self.each is not None:
            return self.each
        weight = np.empty(len(self.items))
        weight[self.items] = (self.weight / self.size)[self.of_position]
        return weight

    @property
    def label_weight(self) -> Floats:
        """(L,) the weight of each label."""
        return np.bincount(self.label, self.weight, len(self.labels)).astype(np.float64)

    def weighing(self, each: Floats) -> "Strata":
        """Return the same strata with these weights of the items (N,), which sum to 1."""
        return replace(self, weight=np.add.reduceat(each[self.items], self.start[:-1]), each=each)

    @classmethod
    def build(
        cls,
        label: Column,
        *,
        difficulty: Floats | None = None,
        levels: int = 3,
        mix: Mapping[str, float] | None = None,
        by: Column | None = None,
        few: int = FEW,
        mix_by: bool = False,
        all_items: bool = False,
    ) -> "Strata":
        """Split the items by label, by the values of another column, then by level of difficulty.

        The levels have equal sizes, except that items of equal difficulty stay together, at the
        level of the middle of their ranks; empty levels are left out. Items that would have fewer
        than `few` per level stay in one level, and values of the other column that fewer than
        `few` items of a label have are put together.

        The weights are the shares of the data, or those of the mix. The mix names labels, or with
        `mix_by` the values of the other column, which are then never put together. Items without
        a label have weight zero, unless `all_items` shall count.

        >>> column = Column("label", ("cat", "dog"), np.array([0, 1, 0, 1, 0], np.int32))
        >>> Strata.build(column).size.tolist()
        [3, 2]
        >>> Strata.build(column, mix={"cat": 1, "dog": 3}).weight.tolist()
        [0.25, 0.75]
        """
        if not 1 <= levels <= MAX_LEVELS:
            raise UsageError(
                f"levels is {levels}", hint=f"give a whole number from 1 to {MAX_LEVELS}"
            )
        # One number for each stratum: the label, then the kind (from -1), then the level.
        part = label.codes.astype(np.int64)
        width = 1
        if by is not None:
            width = len(by.values) + 1
            part = part * width + _kinds(label.codes, by.codes, 0 if mix_by else few) + 1
        level = np.zeros(len(part), np.int64)
        if difficulty is not None and levels > 1:
            level = _levels(part, difficulty, levels, few)
        key = part * levels + level
        items = np.argsort(key, kind="stable").astype(np.int32)
        keys, size = np.unique(key, return_counts=True)
        ends = np.cumsum(size)
        label_of = (keys // levels // width).astype(np.int32)
        kind_of = keys // levels % width - 1
        # All items of a stratum have the same weight: take that of its last one.
        item_weight = _item_weights(label, by if mix_by else None, mix, all_items=all_items)
        return cls(
            labels=label.values,
            label=label_of,
            level=(keys % levels).astype(np.int32),
            weight=item_weight[items[ends - 1]] * size,
            start=np.concatenate(([0], ends)).astype(np.int64),
            items=items,
            kind=kind_of.astype(np.int32),
        )


def mixed(
    data: Dataset,
    difficulty: Floats | None,
    *,
    levels: int,
    mix: Mapping[str, float] | None,
    weight: Floats | None = None,
    all_items: bool = False,
) -> Strata:
    """Split a data set by label and difficulty, for a mix of its labels or of its groups.

    Where the items are a sample of a larger data set, `weight` (N,) is the share of all items
    that each represents. With a mix it is scaled to the share of the item's label or group.
    """
    group = data.group
    if mix is None or group is None or not set(mix) <= set(group.values) - set(data.labels):
        group = None
    strata = Strata.build(
        data.label,
        difficulty=difficulty,
        levels=levels,
        mix=mix,
        by=group,
        mix_by=group is not None,
        all_items=all_items,
    )
    if weight is None:
        return strata
    part = np.zeros(len(data), np.int32)
    if group is not None:
        part = group.codes
    elif mix is not None:
        part = data.label.codes
    equal = strata.item_weight
    given = np.where(equal > 0.0, weight, 0.0)
    total = np.bincount(part, given)
    scale = np.bincount(part, equal) / np.where(total > 0.0, total, 1.0)
    return strata.weighing(given * scale[part])


def paired_strata(
    label: Column, features: Features, *, levels: int = 3, mix: Mapping[str, float] | None = None
) -> Strata:
    """Split the items by label, baseline answer and the confidence of the baseline answer."""
    few = max(PAIRED_ITEMS, len(label.codes) // PAIRED_SHARE)
    return Strata.build(
        label, difficulty=features.confidence, levels=levels, mix=mix, by=features.old, few=few
    )


def adaptive_strata(
    label: Column,
    cheap: Column | None,
    *,
    difficulty: Floats | None,
    levels: int = 3,
    mix: Mapping[str, float] | None = None,
) -> Strata:
    """Split the items by label, by whether a cheap model is right about them, and by difficulty."""
    if cheap is None:
        return Strata.build(label, difficulty=difficulty, levels=levels, mix=mix)
    code = {name: place for place, name in enumerate(cheap.values)}
    right_answer = np.array([code.get(name, -1) for name in label.values], np.int64)[label.codes]
    right = right_answer == cheap.codes
    by = Column(cheap.name, ("wrong", "right"), right.astype(np.int32))
    return Strata.build(
        label, difficulty=difficulty, levels=min(levels, 2), mix=mix, by=by, few=FEW
    )


def _kinds(label: Codes, by: Codes, few: int) -> Ints:
    """Return the code of each item (N,), or -1 if fewer than `few` items of its label share it."""
    width = int(by.max()) + 1
    pair = label.astype(np.int64) * width + by
    _, inverse, count = np.unique(pair, return_inverse=True, return_counts=True)
    return np.where(count[inverse] < few, -1, by).astype(np.int64)


def _levels(part: Ints, difficulty: Floats, levels: int, few: int) -> Ints:
    """Return the difficulty level of each item (N,) within its part of the data (N,)."""
    codes = np.unique(part, return_inverse=True)[1]
    order = np.lexsort((difficulty, codes))
    sorted_codes = codes[order]
    sorted_difficulty = difficulty[order]
    new_part = np.concatenate(([True], sorted_codes[1:] != sorted_codes[:-1]))
    new_value = np.concatenate(([True], sorted_difficulty[1:] != sorted_difficulty[:-1]))
    new_tie = new_part | new_value
    # A tie is the items of one part and one difficulty: positions first to last in the order.
    first = np.flatnonzero(new_tie)
    last = np.concatenate((first[1:], [len(order)]))
    tie = np.cumsum(new_tie) - 1
    first_of_part = np.flatnonzero(new_part)[np.cumsum(new_part) - 1]
    # Ranks of a tie run from `below` to `upto` inside its part; integers keep the levels exact.
    below = first[tie] - first_of_part
    upto = last[tie] - first_of_part
    size = np.bincount(codes)[sorted_codes]
    level = np.where(size < few * levels, 0, levels * (below + upto) // (2 * size))
    result = np.empty(len(order), np.int64)
    result[order] = np.minimum(level, levels - 1)
    return result


def _item_weights(
    label: Column, mix_by: Column | None, mix: Mapping[str, float] | None, *, all_items: bool
) -> Floats:
    """Return the weight of each item (N,), by the data or by a mix of labels or of `mix_by`."""
    counted = np.array([name != UNLABELLED or all_items for name in label.values])[label.codes]
    column = mix_by or label
    known = np.bincount(column.codes[counted], minlength=len(column.values))
    if mix is None:
        return np.where(counted, 1.0 / known.sum(), 0.0)
    names = [name for name, count in zip(column.values, known, strict=True) if count]
    _check_mix(mix, names, column.name)
    shares = np.array([float(mix.get(name, 0.0)) for name in column.values])
    shares = shares / shares.max()  # Before the sum, which huge shares would overflow.
    weight = shares / shares.sum() * (1.0 / np.maximum(known, 1))
    return np.where(counted, weight[column.codes], 0.0)


def _check_mix(mix: Mapping[str, float], names: Sequence[str], column: str) -> None:
    """Raise unless a mix gives every name a share of 0 or more, and at least one above 0."""
    for name in mix:
        if name not in names:
            hint = f"there are {_listed(names)}"
            if close := get_close_matches(name, names, 1):
                hint = f"did you mean {close[0]!r}?"
            raise UsageError(f"mix names {name!r}, which no item has in {column!r}", hint=hint)
    missing = [name for name in names if name not in mix]
    if missing:
        raise UsageError(
            f"mix gives no share for {_listed(missing)}",
            hint="give every one a share; it may be 0",
        )
    for name in names:
        share = float(mix[name])
        if not (np.isfinite(share) and share >= 0):
            raise UsageError(
                f"mix gives {name!r} the share {mix[name]}", hint="shares are numbers of 0 or more"
            )
    if not any(float(share) for share in mix.values()):
        raise UsageError(
            "mix gives everything the share 0", hint="at least one share must be above 0"
        )


def _listed(names: Sequence[str], most: int = 8) -> str:
    listed = ", ".join(repr(name) for name in names[:most])
    if len(names) > most:
        listed += f" and {len(names) - most} more"
    return listed
