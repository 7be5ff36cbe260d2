"""Peak memory of a replay and a live sampler: 1,000 labels and predictions, 50,000 queries."""

import resource
import subprocess
import sys

import numpy as np

ITEMS, LABELS, BUDGET = 150_000, 1_000, 50_000


def data() -> "Dataset":
    from masa.data.dataset import Dataset
    from masa.records import Column

    rng = np.random.default_rng(0)
    label = rng.integers(0, LABELS, ITEMS)
    answer = np.where(rng.random(ITEMS) < 0.6, label, rng.integers(0, LABELS, ITEMS))
    names = tuple(f"{i:03}" for i in range(LABELS))
    new = Column("new", names, answer.astype(np.int32))
    return Dataset(
        "memory",
        Column("label", names, label.astype(np.int32)),
        {"new": new},
        difficulty=rng.random(ITEMS),
    )


def replay() -> str:
    from masa.replays.replay import replay as run

    result = run(data(), new="new", runs=20, budgets=[BUDGET], target_error=0.005)
    return f"{result.strata:,} strata, {result.runs} runs of {len(result.curves)} methods"


def live() -> str:
    from masa.data.strata import Strata
    from masa.inference.counts import estimated_matrix
    from masa.records import Answer
    from masa.sampling.stratified import Sampler

    known = data()
    strata = Strata.build(known.label, difficulty=known.difficulty)
    sampler, new = Sampler(strata), known.predictions["new"]
    while sampler.asked < BUDGET:
        for query in sampler.ask(32):
            sampler.tell(Answer(query.item, new.values[new.codes[query.item]]))
    return f"{len(strata):,} strata, accuracy {estimated_matrix(sampler.tally()).accuracy:.3f}"


def main() -> None:
    if len(sys.argv) > 1:
        what = {"replay": replay, "live": live}[sys.argv[1]]()
        print(
            f"{sys.argv[1]}: {what}: peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, aim 500 MB"
        )
        return
    print(__doc__)
    for name in ("replay", "live"):
        subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    from masa.data.dataset import Dataset

    main()
