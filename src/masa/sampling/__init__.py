"""Which items are asked next.

A source is a pure state machine: `ask(n)` gives queries, `tell(answer)` takes an answer, and it can
be rebuilt by telling it a journal. `stratified` holds the paper's methods, `shrunken` strata with
shrunken variances, `predictive` batches drawn by a model of change, `sequential` single draws for
strict intervals, `switch` the change from predictive to stratified sampling during a run. The loops
that run once a query are compiled, in `kernels`. What the answers mean is not decided here.
"""

from masa.sampling.predictive import Predictive
from masa.sampling.sequential import Sequential
from masa.sampling.shrunken import Shrunken
from masa.sampling.stratified import Sampler

__all__ = ["Predictive", "Sampler", "Sequential", "Shrunken"]
