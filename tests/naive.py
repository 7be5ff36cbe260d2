"""Slow, obvious twins of the kernels: lists, loops, no cleverness."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import permutations
from math import sqrt

WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def scramble(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def run_key(seed: int, run: int) -> int:
    return scramble((scramble((seed + GOLDEN) & WORD) + run) & WORD)


def random(key: int, block: int, draw: int) -> float:
    return (scramble((key + ((block << 36) + draw + 1) * GOLDEN) & WORD) >> 11) / 2**53


def share_of_differing_pairs(answers: list[str]) -> float:
    """The uncertainty score as its definition has it.

    Over all ordered pairs of two different draws.
    """
    pairs = list(permutations(range(len(answers)), 2))
    equal = sum(answers[s] == answers[t] for s, t in pairs)
    return 1.0 - equal / len(pairs)


@dataclass
class Naive:
    """One assessment on recorded answers, by the book."""

    method: str
    label_of: list[int]
    stratum_of: list[int]
    """both by position, which are sorted by stratum, and strata by label"""
    weight: list[float]
    """by stratum"""
    answer_of: list[str]
    """by position"""
    replacement: bool
    a: float
    key: int
    uncertainty: list[float]
    """the true score of each stratum, for `optimal`"""
    asked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        block_of = {
            "uniform": [0] * len(self.label_of),
            "post-stratified": [0] * len(self.label_of),
            "stratified": self.label_of,
        }
        self.block_of = block_of.get(self.method, self.stratum_of)
        self.blocks = max(self.block_of) + 1
        self.left = [
            [p for p, b in enumerate(self.block_of) if b == block] for block in range(self.blocks)
        ]
        self.size = [len(block) for block in self.left]

    def weight_of(self, block: int) -> float:
        if self.method in ("uniform", "post-stratified"):
            return 1.0
        strata = {self.stratum_of[p] for p, b in enumerate(self.block_of) if b == block}
        return sum(self.weight[s] for s in strata)

    def wish(self, block: int) -> float:
        answers = [self.answer_of[p] for p in self.asked if self.block_of[p] == block]
        n, weight = len(answers), self.weight_of(block)
        if weight == 0 or (n == self.size[block] and not self.replacement):
            return -1.0
        if self.method == "masa":
            if n < 2:
                return 1e6 * (2 - n) + weight
            return weight / n * (sqrt(share_of_differing_pairs(answers)) + sqrt(sqrt(self.a / n)))
        if self.method == "optimal":
            known = max(weight * sqrt(self.uncertainty[block]), 1e-300)
            return 1e6 + known if n < 1 else known / sqrt(n * (n + 1))
        return 1 / (n + 1)

    def step(self) -> int:
        wishes = [self.wish(block) for block in range(self.blocks)]
        if max(wishes) < 0:
            return -1
        block = wishes.index(max(wishes))
        draw = sum(self.block_of[p] == block for p in self.asked)
        u = random(self.key, block, draw)
        left = self.left[block]
        if self.replacement:
            position = left[int(u * len(left))]
        else:
            # The shuffle puts the first one left where the drawn one was.
            place = draw + int(u * (self.size[block] - draw))
            left[draw], left[place] = left[place], left[draw]
            position = left[draw]
        self.asked.append(position)
        return position

    def matrix(self) -> dict[tuple[int, str], float]:
        """The estimate by label and prediction."""
        result: dict[tuple[int, str], float] = defaultdict(float)
        if self.method == "uniform":
            items = len(self.label_of)
            for p in self.asked:
                size = self.stratum_of.count(self.stratum_of[p])
                result[self.label_of[p], self.answer_of[p]] += (
                    self.weight[self.stratum_of[p]] / (size / items) / len(self.asked)
                )
            return result
        group_of = self.label_of if self.method == "stratified" else self.stratum_of
        owner = {group_of[p]: self.label_of[p] for p in range(len(group_of))}
        groups = sorted(owner)
        share = {
            g: sum(
                self.weight[s]
                for s in {self.stratum_of[p] for p in range(len(group_of)) if group_of[p] == g}
            )
            for g in groups
        }
        counts = {
            g: Counter(self.answer_of[p] for p in self.asked if group_of[p] == g) for g in groups
        }
        for g in groups:
            total = sum(share[h] for h in groups if owner[h] == owner[g])
            covered = sum(share[h] for h in groups if owner[h] == owner[g] and counts[h])
            for prediction, count in counts[g].items():
                if covered:
                    result[owner[g], prediction] += (
                        share[g] * (total / covered) * count / counts[g].total()
                    )
        return result
