"""The 12 cases of the paper's Table 1: what the paper says about each, and loading its data."""

from dataclasses import dataclass, replace

import numpy as np

from masa.data.dataset import Dataset, read
from masa.records import Column, Floats
from masa.research.published import CONFIDENCE, PREDICTION, Stored

ANY = "*"
"""In a described change: any true label."""
RIGHT = "="
"""In a described change: the right answer."""
NOTHING = "10"
"""The answer of a speech API that recognised nothing."""

CHEAP = "github"
"""The beginning of the names of the cheap open-source models."""

DescribedChange = tuple[str, str, str, float]
"""True label (or ANY), old answer (or RIGHT), new answer (or RIGHT), share of all items."""


@dataclass(frozen=True, slots=True)
class PaperCase:
    """One of the paper's 12 cases: an API whose accuracy on a data set changed by more than 1%."""

    api: str
    data: str
    masa: int
    """queries that MASA needs, from the paper's Table 1"""
    uniform: int
    """queries that uniform or stratified sampling needs (U/S), from the same table"""
    saved: int
    """the saving that the table prints, in percent"""
    told: tuple[DescribedChange, ...] = ()
    """the changes of answers that the paper's text describes"""
    says: str = ""
    """the same in words, including what we had to guess"""

    def __str__(self) -> str:
        return f"{self.api} {self.data}"


CASES = (
    PaperCase(
        "amazon",
        "yelp",
        masa=4_500,
        uniform=19_700,
        saved=77,
        told=(("1", "0", RIGHT, 0.027), ("0", "0", "1", 0.006)),
        says="2.7% of all items, negative texts, became right and 0.6%, positive ones, wrong",
    ),
    PaperCase(
        "amazon",
        "imdb",
        masa=10_300,
        uniform=20_800,
        saved=51,
        told=(("0", "0", "1", 0.05), ("1", "0", RIGHT, 0.039)),
        says=(
            "5% (of all items, we take it) are positive texts that became wrong; 1.1% less in all, "
            "so that 3.9% became right"
        ),
    ),
    PaperCase("amazon", "waimai", masa=7_800, uniform=18_000, saved=57),
    PaperCase("amazon", "shop", masa=4_800, uniform=20_800, saved=77),
    PaperCase("microsoft", "ferplus", masa=2_600, uniform=19_900, saved=87),
    PaperCase("google", "expw", masa=4_200, uniform=17_900, saved=77),
    PaperCase("ibm", "digit", masa=3_600, uniform=17_000, saved=79),
    PaperCase(
        "ibm",
        "amnist",
        masa=2_400,
        uniform=18_500,
        saved=87,
        told=(("4", RIGHT, "5", 0.035), (ANY, RIGHT, NOTHING, 0.035)),
        says=(
            "7% less accuracy, one factor being fours taken for fives (we guess: half of it, the "
            "rest empty answers)"
        ),
    ),
    PaperCase(
        "google",
        "digit",
        masa=4_200,
        uniform=17_000,
        saved=75,
        told=((ANY, NOTHING, RIGHT, 0.24),),
        says="empty answers, 24% of all items, became right",
    ),
    PaperCase("google", "amnist", masa=1_100, uniform=18_500, saved=94),
    PaperCase("google", "command", masa=1_600, uniform=15_200, saved=89),
    PaperCase("microsoft", "digit", masa=3_300, uniform=17_000, saved=81),
)


@dataclass(frozen=True, slots=True, eq=False)
class LoadedCase:
    """A case with its data."""

    case: PaperCase
    data: Dataset
    """with a cheap model's confidence as the difficulty, else the API's own on the first date"""
    new: str
    """the column of answers that is asked"""
    old: str | None
    """the column of baseline answers, if the API was asked on two dates"""
    cheap: str | None
    """the column of the cheap model's answers"""
    difficulty: str
    """what the difficulty is, in words"""
    own: Floats | None
    """the API's own confidence on the first date"""

    @property
    def answers(self) -> Column:
        """The answers of the API that is asked."""
        return self.data.predictions[self.new]

    @property
    def by_itself(self) -> Dataset:
        """The data with the API's own confidence as the difficulty."""
        return replace(self.data, difficulty=self.own)


def loaded(case: PaperCase, found: Stored) -> LoadedCase:
    """Read the data of a case.

    Of several dates the first is the baseline and the second is asked.
    """
    dates = found.apis[case.api]
    old = None
    new = dates[0]
    if len(dates) > 1:
        old, new = dates[0], dates[1]
    cheap = next((name for name in found.recorded if name.startswith(CHEAP)), None)
    # Of the first date: a difficulty must be known before the API is asked.
    confidences = [
        name + CONFIDENCE
        for name in (cheap, dates[0])
        if name is not None and name in found.confident
    ]
    answers = [name + PREDICTION for name in (old, new, cheap) if name is not None]
    data = read(found.path, label="label", id="id", predictions=answers, numbers=confidences)
    own = data.numbers.get(dates[0] + CONFIDENCE)
    difficulty, difficulty_words = own, "none"
    if cheap is not None and cheap + CONFIDENCE in data.numbers:
        difficulty = data.numbers[cheap + CONFIDENCE]
        difficulty_words = f"the confidence of {cheap}"
    elif own is not None:
        difficulty_words = f"the confidence of {dates[0]}"
    return LoadedCase(
        case,
        replace(data, difficulty=difficulty),
        new=new + PREDICTION,
        old=_prediction_column(old),
        cheap=_prediction_column(cheap),
        difficulty=difficulty_words,
        own=own,
    )


def _prediction_column(name: str | None) -> str | None:
    if name is None:
        return None
    return name + PREDICTION


def told(label: Column, answers: Column, case: PaperCase, rng: np.random.Generator) -> Column:
    """Change answers as the paper describes for a case: as many as it says, chosen at random.

    Where fewer answers fit the description than the paper says, all of them change.
    """
    truth = np.array(label.values, object)[label.codes]
    before = np.array(answers.values, object)[answers.codes]
    after = before.copy()
    for true_label, old, new, share in case.told:
        # No item changes twice, so those that an earlier change took are left out.
        eligible = after == before
        if true_label != ANY:
            eligible &= truth == true_label
        if old == RIGHT:
            eligible &= before == truth
        else:
            eligible &= before == old
        places = np.flatnonzero(eligible)
        # The share is one of all items, not of those that fit.
        count = min(len(places), round(share * len(after)))
        chosen = rng.choice(places, count, replace=False)
        if new == RIGHT:
            after[chosen] = truth[chosen]
        else:
            after[chosen] = new
    # Some new answers may not occur before, so the values are numbered anew.
    values, codes = np.unique(after.astype(str), return_inverse=True)
    return Column(answers.name, tuple(values.tolist()), codes.astype(np.int32))
