"""What the answers say: the shift, how sure it is, and whether it matters.

`method` is the one place that chooses how items are drawn and how their answers are estimated from;
`trial` is one whole assessment without any input or output. Estimates are made by counting
(`counts`), from pairs of old and new answers (`paired`), by inverse inclusion probabilities
(`inverse_probability`) or as a confidence sequence; `readings` reads intervals off them, `verdict`
compares those with the tolerance, `any_change` says whether anything changed at all, `stopping`
when a run may end. No database, no network, no terminal.
"""

from masa.inference.counts import estimated_matrix, estimated_shift, true_matrix

__all__ = ["estimated_matrix", "estimated_shift", "true_matrix"]
