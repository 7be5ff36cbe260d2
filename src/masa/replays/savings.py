"""What the strata of a cheap model would have saved on recorded answers."""

import numpy as np

from masa.data.cheap_model import Cheap
from masa.data.dataset import Dataset
from masa.data.strata import Strata, adaptive_strata
from masa.inference.counts import true_uncertainty
from masa.records import Column


def saved_queries(cheap: Cheap, data: Dataset, old: Column) -> float:
    """Give the share of queries that a cheap model's strata would have saved over one level."""
    with_it = adaptive_strata(data.label, cheap.answers, difficulty=cheap.confidence)
    need = [_need(strata, old) for strata in (Strata.build(data.label), with_it)]
    return 1.0 - need[1] / need[0] if need[0] > 0.0 else 0.0


def _need(strata: Strata, answers: Column) -> float:
    """Give a number that the queries for any error are proportional to, at best."""
    return (
        float(np.sum(strata.weight * np.sqrt(true_uncertainty(strata, answers, replacement=True))))
        ** 2
    )
