"""What is said of an assessment: the sentences that every kind of report shares.

Made from the facts in the records; nobody reads them back.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import isnan

from masa.records import (
    ERROR,
    INVALID,
    Assessment,
    Baseline,
    Interval,
    Matrix,
    Surprise,
)
from masa.report.judged import Judged, judged
from masa.report.words import brief, counted, percent, plain, points
from masa.settings import Tolerance

STOPPED = {
    "budget": "the budget was spent",
    "exhausted": "every item was asked",
    "interrupted": "it was interrupted",
    "failures": "too many calls failed",
    "canary": "the canary found no change",
    "target": "the error is small enough",
    "decided": "the verdict is certain",
}
"""Why a run ended."""

COMPARED_WORDS = {"changed": "DIFFERENT", "unchanged": "ALIKE"}
"""The words where two APIs are compared, and not one with its past."""

TOTAL_ERROR = (
    "The total error of the matrix is the root of the sum of the squared errors of its entries "
    "(the Frobenius norm)."
)

SMALLEST_REACH = 1e-9
"""A smaller one is what rounding leaves of a census."""

FEW_ANSWERS = 30
"""With fewer answers about a label, that is said."""

LONGEST_NAME = 40
"""The most characters of a label in a sentence."""

MOST_NAMED = 6
"""The most labels that a sentence lists."""


def is_over_time(found: Assessment) -> bool:
    """Say whether an API is compared with its past, and not with another API."""
    return found.sides == ("before", "now")


def word(found: Assessment) -> str:
    """Give the verdict as one word."""
    if is_over_time(found):
        return found.verdict.upper()
    return COMPARED_WORDS.get(found.verdict, found.verdict.upper())


def tone(found: Assessment) -> str:
    """Say what a reader should feel: worse, better, changed, fine, or unknown."""
    if found.verdict == "changed":
        return found.direction or "changed"
    return "fine" if found.verdict == "unchanged" else "unknown"


def headline(found: Assessment) -> str:
    """Tell the verdict and its reason in one sentence."""
    return f"{word(found)}  {reason(found)}"


def reason(found: Assessment) -> str:
    """Write the numbers that the verdict is based on."""
    shift, change = found.shift, found.accuracy_change
    if shift is None or change is None:
        return f"there is no answer to judge by: {STOPPED[found.stopped]}"
    tolerance = Tolerance.read(found.tolerance)
    allowed = tolerance.words
    if list(tolerance.limits) == ["accuracy"]:
        allowed = points(tolerance.limits["accuracy"], sign=False)
    told = "; ".join(_told(one) for one in judged(found)[:2])
    interval = f"{percent(found.confidence)} interval"
    return f"{meaning(found)}{told} ({interval}; tolerance {allowed})"


def _told(one: Judged) -> str:
    """Write a quantity before and after, and its change."""
    if one.kind == "cost":
        ends = f"between {one.interval.low:+.3g} and {one.interval.high:+.3g}"
        return f"{one.name} {one.interval.estimate:+.3g}, {ends}"
    if one.kind == "answers":
        ends = f"between {percent(one.interval.low)} and {percent(one.interval.high)}"
        return f"{one.name} {percent(one.interval.estimate)}, {ends}"
    sides = ""
    if one.old is not None:
        sides = f" {percent(one.old)} -> {percent(max(0.0, one.old + one.interval.estimate))}"
    return f"{one.name}{sides}: {between(one.interval)}"


def accuracy(found: Assessment) -> str | None:
    """Tell how right answers changed, where the verdict is about something else."""
    if found.shift is None or found.accuracy_change is None:
        return None
    if "accuracy" in Tolerance.read(found.tolerance).limits:
        return None
    sides = f"{percent(found.shift.accuracy.old)} -> {percent(found.shift.accuracy.new)}"
    return f"Right answers {sides}: {between(found.accuracy_change)}."


def meaning(found: Assessment) -> str:
    """Say what the verdict and a proven change mean together."""
    if not is_over_time(found):
        return ""
    if found.verdict == "changed":
        return f"for the {found.direction}: " if found.direction else ""
    if found.moved != "yes":
        return ""
    if found.verdict == "unchanged":
        return "within the tolerance, though the model behind it is another one: "
    return "the model behind it is another one, but whether that matters is not certain: "


def between(change: Interval) -> str:
    """Write a change of a share with its ends, in points."""
    ends = f"between {100 * change.low:+.1f} and {100 * change.high:+.1f}"
    return f"{points(change.estimate)}, {ends}"


def over_budget(found: "Assessment | Baseline") -> str:
    """Say by how much the budget was exceeded; nothing where it was kept."""
    if not found.over_budget:
        return ""
    return f". {found.over_budget:.6g} OVER THE BUDGET"


def what_it_would_take(found: Assessment) -> Iterator[str]:
    """Say how an undecided verdict could be decided."""
    if found.verdict != "undecided" or found.shift is None or not is_over_time(found):
        return
    if found.more_queries is None:
        if found.stopped == "exhausted":
            yield "Every item was asked: the notes say why that was not enough."
        return
    left = found.items - found.answers - found.errors
    if found.more_queries >= 0.95 * left:
        yield f"It would take about all of the {left:,} items that are left to decide it."
    else:
        more = counted(found.more_queries, "more query")
        yield f"About {more} would decide it."


def any_change(found: Assessment) -> str:
    """Say whether any answer changed beyond the API's own noise."""
    if not found.compared and not found.answers:
        return "Nothing was answered that could be compared with the baseline."
    if not found.compared:
        return "The baseline and the new answers are not about the same items."
    share = f"{found.differing:,} of {found.compared:,} answers differ"
    if not is_over_time(found):
        return f"{plain(found.sides[0])} -> {plain(found.sides[1])}: {share}."
    why = f"{share} from the baseline"
    if found.moved == "noise":
        why = found.proof or f"{why}; that may be the API contradicting itself"
    elif found.moved == "yes" and not found.differing:
        why = found.proof
    said = f"Any change: {found.moved} ({why})."
    old, new = found.api_version.old, found.api_version.new
    if old and new and old != new:
        said += f" The provider's version changed from {plain(old)} to {plain(new)}."
    return said


def surprise(found: Assessment, one: Surprise) -> str:
    """Tell one surprising change: how often before and now, of the label's own items."""
    is_now = "is now"
    if not is_over_time(found):
        is_now = f"is, by {found.sides[1]},"
    ends, short = _entry_ends(found, one), one
    label, prediction = brief(one.label, LONGEST_NAME), brief(one.prediction, LONGEST_NAME)
    if (label == prediction) == (one.label == one.prediction):
        short = replace(one, label=label, prediction=prediction)
    return plain(short.told(is_now)) + (f" ({ends})" if ends else "")


def _entry_ends(found: Assessment, one: Surprise) -> str:
    """Give the interval of an entry as a share of its label's items, or nothing."""
    shift, readings = found.shift, found.readings
    if shift is None or readings is None:
        return ""
    i, j = shift.new.labels.index(one.label), shift.new.predictions.index(one.prediction)
    weight = max(float(shift.new.values[i].sum()), 1e-12)
    low = 100 * max(-1.0, float(readings.low[i, j]) / weight)
    high = 100 * min(1.0, float(readings.high[i, j]) / weight)
    ends = f"{low:+.1f} to {high:+.1f} points, with all entries read together"
    return ends if low > 0.0 or high < 0.0 else f"{ends}: not certain"


def other_readings(found: Assessment) -> Iterator[str]:
    """Tell the share of answers that differ, and the cost of mistakes."""
    readings = found.readings
    if readings is None:
        return
    share = readings.differing
    if share is not None:
        ends = f"between {percent(share.low)} and {percent(share.high)}"
        yield f"Share of all answers that differ: {percent(share.estimate)}, {ends}."
    cost = readings.cost
    if cost is not None:
        ends = f"between {cost.low:+.3g} and {cost.high:+.3g}"
        yield f"Change of the cost of mistakes per item: {cost.estimate:+.3g}, {ends}."


def ending(found: Assessment) -> str:
    """Tell what the run cost and why it ended."""
    return (
        f"Run {found.run}: {spent(found.queries, found.cost)}, "
        f"{counted(found.answers, 'answer')}; {found.items:,} items. "
        f"It ended because {STOPPED[found.stopped]}. Seed {found.seed}."
    )


def precision(found: Assessment) -> Iterator[str]:
    """Tell what failed, and how precise the result is."""
    if found.errors:
        yield (
            f"{found.errors:,} items failed for good ({ERROR}); "
            "they are a column of the matrix, not wrong answers."
        )
    if found.error_bound is not None:
        bound = (
            f"The total error of the matrix of changes is at most {percent(found.error_bound)} "
            f"({percent(found.confidence)} confidence)"
        )
        if found.uniform_queries:
            bound += (
                "; post-stratified uniform sampling would have needed about "
                f"{found.uniform_queries:,} queries for that"
            )
        yield f"{bound}."
    if found.shift is not None:
        unreadable = _unreadable(found.shift.new)
        if unreadable > 0.0:
            yield f"{percent(unreadable)} of the answers could not be read as a label ({INVALID})."


def _unreadable(matrix: Matrix) -> float:
    if INVALID not in matrix.predictions:
        return 0.0
    return float(matrix.values[:, matrix.predictions.index(INVALID)].sum())


def spent(queries: int, cost: float | None) -> str:
    """Write a number of queries and what they cost."""
    words = counted(queries, "query")
    if cost is not None:
        words += f" for {cost:.6g}"
    return words


def not_seen(found: Assessment) -> list[str]:
    """Say what a run of this size could not see."""
    told = []
    change, readings = found.accuracy_change, found.readings
    if found.shift is None or change is None:
        return ["Nothing: there is no answer to judge by."]
    reach = max(change.estimate - change.low, change.high - change.estimate)
    if reach > SMALLEST_REACH:
        told.append(
            f"A change of right answers that is smaller than about {points(reach, sign=False)} "
            "could not be told from none."
        )
    if readings is not None:
        if readings.differing is not None and found.answers < found.items:
            told.append(
                f"Up to {percent(readings.differing.high)} of all answers may differ; "
                "changes in a smaller share could be missed altogether."
            )
        unknown = [
            label
            for label, interval in readings.recall.items()
            if isnan(interval.estimate) or interval.high - interval.low >= 0.5
        ]
        if unknown:
            told.append(
                f"How the recall of {_named(unknown)} changed is known to no better than 25 points."
            )
    few = [one.label for one in found.label_queries if one.answers < min(FEW_ANSWERS, one.items)]
    if few:
        told.append(f"Fewer than {FEW_ANSWERS} answers were about {_named(few)}.")
    if found.answers < found.items:
        told.append(
            f"{found.items - found.answers - found.errors:,} of {found.items:,} items were not "
            "asked; which of their answers changed is not known."
        )
    return told or ["Every item was asked; nothing of this data was left out."]


def _named(labels: list[str]) -> str:
    named = ", ".join(repr(brief(label, 30)) for label in labels[:MOST_NAMED])
    hidden = len(labels) - MOST_NAMED
    return f"{named} and {hidden:,} more labels" if hidden > 0 else named


def how_made(found: Assessment) -> list[tuple[str, str]]:
    """Tell how the result was made, as names and values."""
    rows = [
        ("run", str(found.run)),
        ("method", found.method),
        ("seed", str(found.seed)),
        ("confidence", percent(found.confidence)),
        ("tolerance", Tolerance.read(found.tolerance).words),
        ("queries", spent(found.queries, found.cost)),
        ("ended because", STOPPED[found.stopped]),
    ]
    old, new = found.api_version.old, found.api_version.new
    if old or new:
        rows.append(("provider's version", f"{old or 'not told'} -> {new or 'not told'}"))
    made = found.made
    if made is not None:
        rows += [
            ("name", made.name),
            ("API", made.api),
            ("compared with", made.baseline),
            ("data", f"{made.source}, {found.items:,} items"),
            ("fingerprint of the data", made.data),
            ("began", made.began),
            ("ended", made.ended),
            ("masa", made.masa),
        ]
    return rows


def next_step(found: Assessment) -> str | None:
    """Say what can be done now."""
    if found.stopped in ("interrupted", "failures") or found.shift is None:
        return None
    if not is_over_time(found):
        return f"masa report {found.run} --output report.html writes it as a page"
    if found.verdict == "undecided" and found.stopped != "exhausted":
        return None
    what = "the new baseline" if found.verdict == "changed" else "part of the baseline"
    return (
        f"masa accept {found.run} makes these answers {what}; "
        f"masa report {found.run} --output report.html writes a page"
    )
