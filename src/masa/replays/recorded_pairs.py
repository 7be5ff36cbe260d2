"""Old and new recorded answers, laid out for the kernel that estimates from pairs."""

from dataclasses import dataclass

import numpy as np

from masa.data.strata import Strata
from masa.inference.counts import true_matrix
from masa.records import Bools, Codes, Column
from masa.sampling.kernels import paired as pairs_kernel
from masa.settings import Objective


@dataclass(frozen=True, slots=True, eq=False)
class PairsView:
    """Old and new answers, laid out for the estimate from pairs."""

    record: pairs_kernel.RecordedPairs
    right: Bools
    """(E,) which entries are right answers"""

    @classmethod
    def of(cls, strata: Strata, old: Column, new: Column, objective: Objective) -> "PairsView":
        """Lay answers out on strata."""
        names = tuple(dict.fromkeys((*old.values, *new.values)))
        width, labels = len(names), strata.labels
        stratum = strata.of_position.astype(np.int64)
        old_cell, new_cell = (
            stratum * width + coded(column, names)[strata.items] for column in (old, new)
        )
        cells = np.unique(np.concatenate((old_cell, new_cell)))
        cell_stratum, cell_answer = cells // width, cells % width
        cell_entry = strata.label[cell_stratum].astype(np.int64) * width + cell_answer
        entries = np.unique(cell_entry)
        place = {name: code for code, name in enumerate(names)}
        right = np.full(len(labels), -1, np.int64)
        for row, label in enumerate(labels):
            entry = row * width + place.get(label, -1)
            at = int(np.searchsorted(entries, entry))
            if label in place and at < len(entries) and entries[at] == entry:
                right[row] = at
        before, truth = (
            true_matrix(strata, column).on(names).values.ravel()[entries] for column in (old, new)
        )
        record = pairs_kernel.RecordedPairs(
            stratum=strata.of_position.astype(np.int32),
            old_cell=np.searchsorted(cells, old_cell).astype(np.int32),
            new_cell=np.searchsorted(cells, new_cell).astype(np.int32),
            cell_entry=np.searchsorted(entries, cell_entry).astype(np.int32),
            cell_stratum=cell_stratum.astype(np.int32),
            row=np.searchsorted(entries, np.arange(len(labels) + 1) * width),
            right=right,
            before=before,
            truth=truth,
            weight=objective.table(labels, names).ravel()[entries],
            linear=objective.linear,
            stratum_weight=strata.weight,
            stratum_size=strata.size,
            stratum_label=strata.label,
        )
        is_right = np.zeros(len(entries), np.bool_)
        is_right[right[right >= 0]] = True
        return cls(record, is_right)


def coded(column: Column, names: tuple[str, ...]) -> Codes:
    """Give the answers of a column as places in these names (N,)."""
    place = {name: code for code, name in enumerate(names)}
    return np.array([place[name] for name in column.values], np.int32)[column.codes]
