"""The 12 cases of the paper on the real predictions of 2020: the queries each method needs, against known figures."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from frugalml import CASES, Case, needed

# Queries for a Frobenius error of 1% in 95% of runs, measured by an independent prototype with 4,000 runs: with replacement
# uniform, post-stratified, masa, optimal; then masa asking each item once.
KNOWN = {
    "amazon yelp": (18_775, 7_051, 5_740, 5_321, 4_387),
    "amazon imdb": (19_379, 9_747, 9_055, 9_131, 6_450),
    "amazon waimai": (18_203, 9_111, 8_831, 9_051, 5_159),
    "amazon shop": (18_812, 5_758, 5_679, 5_489, 5_272),
    "microsoft ferplus": (17_512, 5_329, 4_975, 5_068, 2_779),
    "google expw": (17_910, 7_735, 7_936, 8_273, 6_238),
    "ibm digit": (15_593, 4_878, 3_945, 3_559, 1_229),
    "ibm amnist": (16_349, 751, 503, 433, 495),
    "google digit": (15_360, 6_903, 6_713, 6_416, 1_535),
    "google amnist": (16_242, 3_364, 2_748, 2_465, 2_390),
    "google command": (13_739, 2_832, 2_272, 2_110, 2_158),
    "microsoft digit": (16_360, 4_142, 3_043, 2_628, 1_084),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_figure_is_within_a_tenth_of_the_known_one(frugalml: Path, case: Case) -> None:
    found = needed(frugalml, case, runs=4000)
    order = ("uniform", "post-stratified", "masa", "optimal", "masa, each item once")
    assert [found[name] for name in order] == pytest.approx(KNOWN[str(case)], rel=0.10)
