"""Strata: items of one label, one difficulty level and, where those are known, one old answer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np

from masa.data.dataset import Dataset
from masa.data.features import Features
from masa.errors import UsageError
from masa.records import UNLABELLED, Bools, Codes, Column, Floats, Ints

FEW = 10
"""What has fewer items than this a level is kept in one level: each stratum costs two queries before it tells anything."""

MAX_LEVELS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """A partition of the items; each stratum is a run of positions, those of one label side by side."""

    labels: tuple[str, ...]
    label: Codes
    """(S,) the label of each stratum, rising"""
    level: Codes
    """(S,) its difficulty level, from 0, rising with difficulty's number"""
    weight: Floats
    """(S,) the share of the estimate it stands for; together 1"""
    start: Ints
    """(S + 1,) stratum s holds the positions start[s] to start[s + 1]"""
    items: Codes
    """(N,) the item at each position"""
    kind: Codes
    """(S,) the value of the column that the items were split by besides, or -1 where it has several or there is none"""
    each: Floats | None = None
    """(N,) the share of the estimate that each item stands for, where those of a stratum are not alike"""

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
        """Give the stratum of each of these items (n,)."""
        position = np.empty(len(self.items), np.int64)
        position[self.items] = np.arange(len(self.items))
        return self.of_position[position[places]]

    @property
    def item_weight(self) -> Floats:
        """(N,) the share of the estimate that each item stands for."""
        if self.each is not None:
            return self.each
        weight = np.empty(len(self.items))
        weight[self.items] = (self.weight / self.size)[self.of_position]
        return weight

    @property
    def label_weight(self) -> Floats:
        """(L,) the share of each label."""
        return np.bincount(self.label, self.weight, len(self.labels)).astype(np.float64)

    def weighing(self, each: Floats) -> "Strata":
        """Give the same strata with these shares of the estimate (N,) that items stand for; together 1."""
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
        """Split the items by label, by the values of another column, and then into equal levels of difficulty.

        Items of equal difficulty stay together, at the level of the middle of their ranks; levels that come out empty are
        left out. What would have fewer than few items a level stays in one level, and values of the other column that have
        fewer than few items in a label are put together, unless the mix is one of that column's values. The weights are the
        data's own, or those of the given mix; items without a label weigh nothing, if not all items shall count.

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
        kind = (
            np.full(len(label.codes), -1, np.int64)
            if by is None
            else _kinds(label.codes, by.codes, 0 if mix_by else few)
        )
        width = 1 if by is None else len(by.values) + 1
        part = label.codes.astype(np.int64) * width + kind + 1
        level = np.zeros(len(part), np.int64)
        if difficulty is not None and levels > 1:
            level = _levels(part, difficulty, levels, few)
        key = part * levels + level
        items = np.argsort(key, kind="stable").astype(np.int32)
        kinds, size = np.unique(key, return_counts=True)
        of = (kinds // levels // width).astype(np.int32)
        mixed = (kinds // levels % width - 1) if by is not None and mix_by else of
        counts = np.array([name != UNLABELLED or all_items for name in label.values])[label.codes]
        weight = _shares(by if by is not None and mix_by else label, counts, mix)
        return cls(
            labels=label.values,
            label=of,
            level=(kinds % levels).astype(np.int32),
            weight=np.where(counts[items[np.cumsum(size) - 1]], weight[mixed] * size, 0.0),
            start=np.concatenate(([0], np.cumsum(size))).astype(np.int64),
            items=items,
            kind=(kinds // levels % width - 1).astype(np.int32),
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

    Where the items are part of more, each stands for a share of all (N,), or of those of its label or group that are in the mix.
    """
    group = data.group
    by_group = (
        group is not None and mix is not None and set(mix) <= set(group.values) - set(data.labels)
    )
    by = group if by_group else None
    strata = Strata.build(
        data.label,
        difficulty=difficulty,
        levels=levels,
        mix=mix,
        by=by,
        mix_by=by_group,
        all_items=all_items,
    )
    if weight is None:
        return strata
    part = (
        np.zeros(len(data), np.int32)
        if mix is None
        else data.label.codes
        if by is None
        else by.codes
    )
    counts = strata.item_weight
    mine = np.where(counts > 0.0, weight, 0.0)
    together = np.bincount(part, mine)
    return strata.weighing(
        mine * (np.bincount(part, counts) / np.where(together > 0.0, together, 1.0))[part]
    )


def _kinds(label: Codes, by: Codes, few: int) -> Ints:
    """Give the code of each item (N,), or -1 for those that too few items of its label share."""
    width = int(by.max()) + 1
    _, inverse, count = np.unique(
        label.astype(np.int64) * width + by, return_inverse=True, return_counts=True
    )
    return np.where(count[inverse] < few, -1, by).astype(np.int64)


def _levels(part: Ints, difficulty: Floats, levels: int, few: int) -> Ints:
    """Give the level of each item (N,) within its part of the data (N,)."""
    codes = np.unique(part, return_inverse=True)[1]
    order = np.lexsort((difficulty, codes))
    mine, value = codes[order], difficulty[order]
    new_part = np.concatenate(([True], mine[1:] != mine[:-1]))
    new_value = new_part | np.concatenate(([True], value[1:] != value[:-1]))
    size = np.bincount(codes)
    first_of_part = np.flatnonzero(new_part)[np.cumsum(new_part) - 1]
    first = np.flatnonzero(new_value)
    last = np.concatenate((first[1:], [len(order)]))
    tie = np.cumsum(new_value) - 1
    # Ranks of a tie run from below to upto inside its part; whole numbers keep the boundaries exact.
    below, upto = first[tie] - first_of_part, last[tie] - first_of_part
    count = size[mine]
    level = np.where(count < few * levels, 0, levels * (below + upto) // (2 * count))
    result = np.empty(len(order), np.int64)
    result[order] = np.minimum(level, levels - 1)
    return result


def _shares(column: Column, counts: Bools, mix: Mapping[str, float] | None) -> Floats:
    """Give what an item of each label or group weighs (V,), by the data or a mix that names all; counts (N,) says which do."""
    known = np.bincount(column.codes[counts], minlength=len(column.values))
    each = 1.0 / np.maximum(known, 1)
    if mix is None:
        return np.full(len(known), 1.0 / known.sum())
    names = [name for name, count in zip(column.values, known, strict=True) if count]
    for name in mix:
        if name not in names:
            close = get_close_matches(name, names, 1)
            raise UsageError(
                f"mix names {name!r}, which no item has in {column.name!r}",
                hint=f"did you mean {close[0]!r}?" if close else f"there are {_some(names)}",
            )
    missing = [name for name in names if name not in mix]
    if missing:
        raise UsageError(
            f"mix gives no share for {_some(missing)}", hint="name every one; a share may be 0"
        )
    shares = np.array([float(mix.get(name, 0.0)) for name in column.values])
    bad = [
        name
        for name, share in zip(column.values, shares, strict=True)
        if not (np.isfinite(share) and share >= 0)
    ]
    if bad:
        raise UsageError(
            f"mix gives {bad[0]!r} the share {mix[bad[0]]}", hint="shares are numbers of 0 or more"
        )
    largest = shares.max()
    if largest == 0.0:
        raise UsageError(
            "mix gives everything the share 0", hint="at least one share must be above 0"
        )
    shares = shares / largest  # Before the sum, which huge shares would overflow.
    return np.asarray(shares / shares.sum() * each)


def _some(names: "list[str] | tuple[str, ...]", most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


LEAST, SHARE = 30, 500
"""Items that a label and an old answer must share for a stratum of their own: so many, and one in so many of all."""


def paired_strata(
    label: Column, features: Features, *, levels: int = 3, mix: Mapping[str, float] | None = None
) -> Strata:
    """Split the items by label, old answer and the confidence of the old answer."""
    least = max(LEAST, len(label.codes) // SHARE)
    return Strata.build(
        label, difficulty=features.confidence, levels=levels, mix=mix, by=features.old, few=least
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
    right = (
        np.array([code.get(name, -1) for name in label.values], np.int64)[label.codes]
        == cheap.codes
    )
    by = Column(cheap.name, ("wrong", "right"), right.astype(np.int32))
    return Strata.build(
        label, difficulty=difficulty, levels=min(levels, 2), mix=mix, by=by, few=FEW
    )
