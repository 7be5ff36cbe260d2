"""Results to report: small runs on made-up answers, with labels that try to break a page."""

from functools import cache

import numpy as np

import masa

HOSTILE = (
    "<script>document.title='broken'</script>",
    "\"quoted\" & 'both' | *stars*",
    "שלום עולם",
    "👩‍🚀 " + "x" * 190,
    "=1+1",
    "@everyone [link](http://evil.example)",
    "plain",
)


@cache
def run(labels: int, items: int, budget: int, *, changed: float = 0.1) -> masa.Assessment:
    """One assessment of a made-up API; a few labels are hostile."""
    luck = np.random.default_rng(labels)
    names = np.array([*HOSTILE[:labels], *(f"label {code}" for code in range(7, labels))], object)
    label = luck.integers(0, labels, items)
    old = np.where(luck.random(items) < 0.2, luck.integers(0, labels, items), label)
    new = np.where(luck.random(items) < changed, luck.integers(0, labels, items), old)
    data = masa.Dataset.of(
        names[label].tolist(),
        predictions={"old": names[old].tolist(), "new": names[new].tolist()},
    )
    return masa.assess(data, "replay:new", baseline="old", budget=budget, store=None, seed=1)
