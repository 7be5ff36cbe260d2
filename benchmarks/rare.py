"""How the interval for accuracy does with few changes, without an API: docs/decisions/0016.

    python benchmarks/rare.py

What got better and what got worse are two Poisson numbers. First, exactly, how often the interval
holds, over their means and for three shares of changes for the better; how wide it is beside a
textbook's that knows nothing of what is rare. Then what `--decide` makes of changes that are all for the worse, with a tolerance of 1% and a budget of 8,000: how often it
acquits an API, and after how many queries.
"""

from collections.abc import Callable, Sequence
from math import hypot, log, sqrt

import numpy as np
from scipy.stats import poisson

from masa.inference.estimate import reach
from masa.inference.moved_share import Reach, binomial_limits
from masa.inference.spread import normal, unseen_answers
from masa.inference.stopping import critical_value, look_times
from masa.records import Floats

COUNT = np.arange(150)
MEANS = np.geomspace(0.05, 60.0, 60)
RUNS = 200_000
MANY = 10_000_000.0
Z = normal(0.95)

Ends = Callable[[int, int, float], tuple[float, float]]


def earlier(better: int, worse: int, z: float) -> tuple[float, float]:
    """Give the ends of decision 0014.

    One variance with room for what was not met, and a lean once two dozen agree on it.
    """
    both, change = better + worse, better - worse
    lean = change / both * change**2 / (change**2 + 24.0 * both) if both else 0.0
    aside = z**2 * lean / 2.0
    half = sqrt(z**2 * (1.15 * both + 1.6 / (1.0 + both)) + aside**2)
    return half - aside, half + aside


def limits(count: float, far: Reach) -> tuple[float, float]:
    """Give how much less and how much more a Poisson number may be: a binomial one of many."""
    less, more = binomial_limits(count / MANY, MANY, far)
    return MANY * less, MANY * more


def now(better: int, worse: int, z: float) -> tuple[float, float]:
    """Give the ends of decision 0019."""
    less_better, more_better = limits(better, reach(0.95, z))
    less_worse, more_worse = limits(worse, reach(0.95, z))
    return hypot(less_better, more_worse), hypot(more_better, less_worse)


def textbook(better: int, worse: int, z: float) -> tuple[float, float]:
    """Give the ends of a textbook: z standard errors, as if a count were a normal number."""
    half = z * sqrt(better + worse)
    return half, half


def held(ends: Ends, share: float, means: Sequence[float] = tuple(MEANS)) -> list[float]:
    """Give how often the interval holds, by mean, if this share of changes is for the better."""
    return [holds for holds, _ in measured(ends, share, means)]


def measured(ends: Ends, share: float, means: Sequence[float]) -> list[tuple[float, float]]:
    """Give how often the interval holds, and how wide it is, by mean."""
    all_ends = np.array([[ends(i, j, Z) for j in COUNT.tolist()] for i in COUNT.tolist()])
    change = COUNT[:, None] - COUNT[None, :]
    found = []
    for mean in means:
        chance = np.outer(
            poisson.pmf(COUNT, share * mean), poisson.pmf(COUNT, (1.0 - share) * mean)
        )
        truth = (2.0 * share - 1.0) * mean
        inside = (change - all_ends[..., 0] <= truth) & (truth <= change + all_ends[..., 1])
        width = float((chance * all_ends.sum(axis=-1)).sum())
        found.append((float(chance[inside].sum()), width))
    return found


def acquitted(more: Floats, share: float) -> tuple[float, float]:
    """Give how often an API is acquitted of which this share of answers got worse.

    After how many queries on average.
    """
    luck, last = np.random.default_rng(0), 0
    met, queries = np.zeros(RUNS, np.int64), np.full(RUNS, 8_000)
    done = np.zeros(RUNS, np.bool_)
    for look in look_times(8_000):
        met += luck.poisson(share * (look - last), RUNS)
        last = look
        inside = ~done & ((met + more[np.minimum(met, len(more) - 1)]) / look < 0.01)
        queries[inside] = look
        done |= inside
    return float(done.mean()), float(queries.mean())


def main() -> None:
    print(
        "| interval | changes for the better | holds, at the least | on average |\n|---|---|---|---|"
    )
    rules: dict[str, Ends] = {"decision 0014": earlier, "now": now}
    for name, ends in rules.items():
        for share in (0.0, 0.2, 0.5):
            rates = held(ends, share)
            print(f"| {name} | {share:.0%} | {min(rates):.3f} | {np.mean(rates):.3f} |")
    print(
        "\n| changes seen, on average | for the better | ours holds | textbook's holds | ours over "
        "the textbook's |\n|---|---|---|---|---|"
    )
    means = (4.0, 8.0, 16.0, 32.0, 60.0)
    for share in (0.0, 0.2, 0.5):
        ours, usual = measured(now, share, means), measured(textbook, share, means)
        for mean, one, other in zip(means, ours, usual, strict=True):
            ratio = one[1] / other[1]
            print(f"| {mean:.0f} | {share:.0%} | {one[0]:.3f} | {other[0]:.3f} | {ratio:.2f} |")
    z = critical_value(look_times(8_000), 10**6, 0.95)
    hidden = {
        "h of z": unseen_answers(z) - log(2.0),
        "h as for one look": unseen_answers(Z) - log(2.0),
        "now": unseen_answers(Z),
    }
    found = {
        name: [limits(1.05 * k, Reach(z, h))[1] for k in range(400)] for name, h in hidden.items()
    }
    found["decision 0014"] = [earlier(0, k, z)[0] for k in range(400)]
    print("\n| interval | got worse | acquitted | queries |\n|---|---|---|---|")
    for name, more in found.items():
        for share in (0.0, 0.0101, 0.015):
            rate, queries = acquitted(np.array(more), share)
            print(f"| {name} | {share:.2%} | {rate:.1%} | {queries:,.0f} |")


if __name__ == "__main__":
    main()
