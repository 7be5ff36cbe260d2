"""An error curve as the experiments keep it: squared errors at a few numbers of queries."""

from collections.abc import Sequence
from math import log

import numpy as np

from masa.records import Curve
from masa.research.study import Part

ErrorPath = Sequence[tuple[int, float]]
"""Points of a curve: the number of queries and the mean squared error."""

EXACT = 1e-9
"""A mean squared error below which an estimate counts as exact and is not shown."""


def summarised(curve: Curve) -> Part:
    """Keep what is shown of a curve: the queries it needs, and points at least a tenth apart."""
    path: list[tuple[int, float]] = []
    for point in curve.path:
        if not path or point.queries >= 1.1 * path[-1][0]:
            path.append((point.queries, point.root_mean_squared_error**2))
    return {"needed": curve.queries_for_target, "range": curve.queries_range, "path": path}


def squared_error_at(path: ErrorPath, queries: int) -> float:
    """Interpolate a curve between its points, on logarithmic scales."""
    x = np.log([point[0] for point in path])
    # An error of 0 has no logarithm.
    y = np.log([max(point[1], 1e-30) for point in path])
    return float(np.exp(np.interp(log(queries), x, y)))
