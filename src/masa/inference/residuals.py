"""Residuals of changed answers around the means of their groups, and the variances they give."""

from dataclasses import dataclass

import numpy as np

from masa.inference.spread import PRIOR_ANSWERS
from masa.records import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """Residuals of the changes (n,) of one label around the means of groups (G,).

    A change is a vector over the kinds of answers (K,): plus 1 for the new answer and minus 1 for
    the old one, zero if they are equal.
    """

    variance_weight: Floats
    """(n,) what a squared residual of 1 adds to the variance"""
    new: Ints
    """(n,)"""
    old: Ints
    """(n,)"""
    mean: Floats
    """(G, K) of the changes"""
    contributions: Floats
    """(n,) what each answer adds to the variance of the matrix"""
    weighted_changes: Floats
    """(G, K) the sum of the changes, by variance weight"""
    group_variance_weight: Floats
    """(G,) the sum of the variance weights"""

    @classmethod
    def of(
        cls, variance_weight: Floats, new: Ints, old: Ints, group: Ints, mean: Floats
    ) -> "Residuals":
        """Take the answers of one label, their groups (n,) and the means of the groups (G, K)."""
        changed = new != old
        # |change - mean|^2, where |change|^2 is 2 or 0.
        squares = (mean**2).sum(axis=1)[group] + np.where(
            changed, 2.0 - 2.0 * (mean[group, new] - mean[group, old]), 0.0
        )
        size = (len(mean), mean.shape[1])
        return cls(
            variance_weight,
            new,
            old,
            mean,
            contributions=variance_weight * squares,
            weighted_changes=net_changes(
                group[changed], new[changed], old[changed], variance_weight[changed], size
            ),
            group_variance_weight=np.bincount(group, variance_weight, len(mean)).astype(np.float64),
        )

    @property
    def total(self) -> float:
        """The sum of all variance weights."""
        return float(self.group_variance_weight.sum())

    @property
    def changes(self) -> Ints:
        """(K,) how many answers changed to or from each kind."""
        changed, kinds = self.new != self.old, self.mean.shape[1]
        return np.bincount(self.new[changed], minlength=kinds) + np.bincount(
            self.old[changed], minlength=kinds
        )

    @property
    def entries(self) -> Floats:
        """(K,) the variance of each kind of answer."""
        changed, kinds = self.new != self.old, self.mean.shape[1]
        weight = self.variance_weight[changed]
        square = np.bincount(self.new[changed], weight, kinds) + np.bincount(
            self.old[changed], weight, kinds
        )
        # The sum of g (change - mean)^2 is expanded: most answers did not change, and the squares
        # and products of their changes are zero.
        return np.asarray(
            square
            - 2.0 * (self.weighted_changes * self.mean).sum(axis=0)
            + (self.group_variance_weight[:, None] * self.mean**2).sum(axis=0)
        )

    def covariance(self) -> Floats:
        """Give the covariance of the kinds (K, K)."""
        changed, kinds = self.new != self.old, self.mean.shape[1]
        new, old, weight = self.new[changed], self.old[changed], self.variance_weight[changed]
        squares = np.diag(np.bincount(new, weight, kinds) + np.bincount(old, weight, kinds))
        np.add.at(squares, (new, old), -weight)
        np.add.at(squares, (old, new), -weight)
        cross = self.weighted_changes.T @ self.mean
        means = (self.mean * self.group_variance_weight[:, None]).T @ self.mean
        return np.asarray(squares - cross - cross.T + means)


def net_changes(group: Ints, new: Ints, old: Ints, amount: Floats, size: tuple[int, int]) -> Floats:
    """Add up amounts by group and kind (G, K): plus for the new answer, minus for the old one."""
    result = np.zeros(size)
    np.add.at(result, (group, new), amount)
    np.add.at(result, (group, old), -amount)
    return result


def entry_variances(parts: list[Residuals]) -> Floats:
    """Give the variance of each entry (K,) of one label, shrunk towards what its changes suggest.

    The few changes of an entry may all have been asked with certainty, and then show no variance.
    The entry still varies as if they had been met by chance.
    """
    total = sum(part.total for part in parts)
    seen = np.sum([part.entries for part in parts], axis=0)
    changes, answers = parts[0].changes, len(parts[0].new)
    expected = total * (changes + 0.5) / (answers + 1.0)
    shrunk = (changes * np.maximum(seen, 0.0) + PRIOR_ANSWERS * expected) / (
        changes + PRIOR_ANSWERS
    )
    return np.asarray(shrunk)
