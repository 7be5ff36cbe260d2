"""How many queries each method needs, with and without old answers: the tables in docs/fewer.md.

    python benchmarks/fewer.py FOLDER [RUNS] [twelve|updates|estimates] [all|half] [paper|assess]

FOLDER holds frugalml/, vader/ and llmdrift/. Half takes every second item of each case, those on
which no constant was chosen. Methods that draw from strata are measured with the paper's own
estimate, which does not use the old answers, or with the one that `masa assess` makes.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import masa
from masa.records import Column, Curve, Replay
from masa.replays.replay import replay
from masa.research.cases import CASES, loaded
from masa.research.published import Stored

BUDGETS = (500, 1000, 2000)
METHODS = ("post-stratified", "masa", "adaptive", "paired", "predictive", "auto")
OURS = ("paired", "predictive", "auto")

Values = np.ndarray[Any, Any]
Change = Callable[[Values, Values, np.random.Generator], Values]
"""From the old answers and their confidence to the new answers."""


@dataclass(frozen=True)
class Update:
    """An API before and after, what else is known.

    An error that is at most half the norm of the change.
    """

    name: str
    data: masa.Dataset
    target: float
    old: str = "old"
    new: str = "new"
    old_confidence: str | None = None
    new_confidence: str | None = None
    also: tuple[str, ...] = ()
    text: str | None = None
    methods: tuple[str, ...] = field(default=METHODS)


def recorded(folder: Path, data: str, api: str, *others: str) -> masa.Dataset:
    """Read what an API and others answered."""
    return masa.read(
        folder / "frugalml" / f"{data}.parquet",
        label="label",
        id="id",
        predictions=[f"{name}.prediction" for name in (api, *others)],
        difficulty=f"{api}.confidence",
        numbers=[f"{api}.confidence"],
    )


def changed(data: masa.Dataset, api: str, change: Change) -> masa.Dataset:
    """Add the answers of an updated API, made from the old ones and their confidence."""
    old = data.predictions[f"{api}.prediction"]
    names = np.array(old.values, object)
    new = change(names[old.codes], data.numbers[f"{api}.confidence"], np.random.default_rng(1))
    values = tuple(sorted(set(new.tolist())))
    code = {value: j for j, value in enumerate(values)}
    column = Column("new", values, np.array([code[value] for value in new.tolist()], np.int32))
    return replace(data, predictions={**data.predictions, "old": old, "new": column})


def follows_confidence(share: float) -> Change:
    """Change a share of the answers, those of little confidence rather, to any other."""

    def change(old: Values, confidence: Values, rng: np.random.Generator) -> Values:
        rank = np.argsort(np.argsort(confidence, kind="stable")) / len(old)
        return _scattered(old, np.exp(-4 * rank), share, rng)

    return change


def spread_evenly(share: float) -> Change:
    """Change a share of the answers, any of them, to any other."""
    return lambda old, _, rng: _scattered(old, np.ones(len(old)), share, rng)


def _scattered(old: Values, likely: Values, share: float, rng: np.random.Generator) -> Values:
    new, names = old.copy(), sorted(set(old.tolist()))
    for item in rng.choice(len(old), int(share * len(old)), replace=False, p=likely / likely.sum()):
        new[item] = rng.choice([name for name in names if name != old[item]])
    return new


def one_pair(share: float) -> Change:
    """Change answers from the most frequent one to the second."""

    def change(old: Values, _: Values, rng: np.random.Generator) -> Values:
        values, counts = np.unique(old.astype(str), return_counts=True)
        first, second = values[np.argsort(-counts)[:2]]
        new = old.copy()
        new[rng.choice(np.flatnonzero(old == first), int(share * len(old)), replace=False)] = second
        return new

    return change


def as_another(share: float, other: Column) -> Change:
    """Take another vendor's answer where it disagrees."""

    def change(old: Values, _: Values, rng: np.random.Generator) -> Values:
        theirs = np.array(other.values, object)[other.codes]
        where = np.flatnonzero(theirs != old)
        new = old.copy()
        chosen = rng.choice(where, int(share * len(old)), replace=False)
        new[chosen] = theirs[chosen]
        return new

    return change


def vader(
    folder: Path, before: str, after: str, target: float, *, word: str | None = None
) -> Update:
    """Give a real update of VADER, or one that turns the sentiment of texts with one word."""
    columns = [f"vader-{version}" for version in ("2.5", "3.2.1", "3.3.2")]
    data = masa.read(
        folder / "vader" / "snippets.parquet",
        label="label",
        id="id",
        predictions=[f"{column}.prediction" for column in columns],
        difficulty=f"vader-{before}.confidence",
        numbers=[f"{column}.confidence" for column in columns],
        inputs=["text"],
    )
    old, new = (data.predictions[f"vader-{version}.prediction"] for version in (before, after))
    if word is not None:
        turned = {"positive": "negative", "negative": "positive", "neutral": "positive"}
        hit = np.array(
            [
                word in text.lower().replace(",", " ").replace(".", " ").split()
                for text in data.texts("text")
            ]
        )
        code = {value: j for j, value in enumerate(old.values)}
        other = np.array([code[turned[value]] for value in old.values], np.int32)
        new = Column("new", old.values, np.where(hit, other[old.codes], old.codes).astype(np.int32))
    return Update(
        f"VADER {before} -> {after}" if word is None else f"VADER, texts with '{word}'",
        replace(data, predictions={**data.predictions, "old": old, "new": new}),
        target,
        old_confidence=f"vader-{before}.confidence",
        new_confidence=None if word is not None else f"vader-{after}.confidence",
        also=() if before == "2.5" else ("vader-2.5.prediction",),
        text="text",
    )


def gpt4(folder: Path) -> Update:
    """GPT-4 of March and of June 2023: is this number prime?"""
    rows = (
        duckdb.connect()
        .execute(f"""
        SELECT query, lower(first(label)) AS label,
            max(answer) FILTER (model = 'gpt-4-0314') AS old, max(answer) FILTER (model = 'gpt-4-0613') AS new
        FROM '{folder / "llmdrift" / "prime-gpt4.parquet"}' GROUP BY query ORDER BY query""")
        .fetchall()
    )

    def said(answer: str) -> str | None:
        yes, no = answer.lower().rfind("[yes]"), answer.lower().rfind("[no]")
        return None if yes == no else "yes" if yes > no else "no"

    data = masa.Dataset.of(
        [row[1] for row in rows],
        predictions={"old": [said(row[2]) for row in rows], "new": [said(row[3]) for row in rows]},
    )
    return Update("GPT-4 March -> June", data, 0.02)


def updates(folder: Path) -> Iterator[Update]:
    """All cases with old answers."""
    yield vader(folder, "3.2.1", "3.3.2", 0.0028)
    yield vader(folder, "2.5", "3.2.1", 0.00065)
    yield vader(folder, "3.2.1", "3.3.2", 0.0048, word="bad")
    yield gpt4(folder)

    def simulated(
        what: str,
        data: str,
        api: str,
        target: float,
        change: Change,
        *,
        also: tuple[str, ...],
        share: float = 0.03,
    ) -> Update:
        return Update(
            f"{api} {data}, {100 * share:.0f}% {what}",
            changed(recorded(folder, data, api, *also), api, change),
            target,
            old_confidence=f"{api}.confidence",
            also=tuple(f"{name}.prediction" for name in also),
        )

    yield simulated(
        "evenly", "ferplus", "microsoft", 0.005, spread_evenly(0.03), also=("github-cnn",)
    )
    yield simulated(
        "by confidence",
        "ferplus",
        "microsoft",
        0.005,
        follows_confidence(0.03),
        also=("github-cnn",),
    )
    yield simulated("one pair", "ferplus", "microsoft", 0.005, one_pair(0.03), also=("github-cnn",))
    for data, api, other, target in (
        ("ferplus", "microsoft", "facepp", 0.005),
        ("expw", "google", "microsoft", 0.0036),
    ):
        read = recorded(folder, data, api, other, "github-cnn")
        made = changed(read, api, as_another(0.03, read.predictions[f"{other}.prediction"]))
        also = (f"{other}.prediction", "github-cnn.prediction")
        yield Update(
            f"{api} {data}, 3% where {other} disagrees",
            made,
            target,
            old_confidence=f"{api}.confidence",
            also=also,
        )
    yield simulated(
        "by confidence", "yelp", "amazon", 0.005, follows_confidence(0.03), also=("github-vader",)
    )
    yield simulated("evenly", "yelp", "amazon", 0.005, spread_evenly(0.03), also=("github-vader",))
    yield simulated(
        "by confidence",
        "imdb",
        "amazon",
        0.01,
        follows_confidence(0.08),
        also=("github-vader",),
        share=0.08,
    )
    yield simulated(
        "by confidence",
        "amnist",
        "google",
        0.01,
        follows_confidence(0.08),
        also=("github-deepspeech",),
        share=0.08,
    )
    for data, api, other, cheap, target in (
        ("amnist", "google", "ibm", "github-deepspeech", 0.01),
        ("yelp", "google", "amazon", "github-vader", 0.01),
        ("expw", "microsoft", "google", "github-cnn", 0.01),
    ):
        read = recorded(folder, data, api, other, cheap)
        new = read.predictions[f"{other}.prediction"]
        made = replace(
            read,
            predictions={
                **read.predictions,
                "old": read.predictions[f"{api}.prediction"],
                "new": new,
            },
        )
        name = f"{data}, {api} -> {other}"
        yield Update(
            name, made, target, old_confidence=f"{api}.confidence", also=(f"{cheap}.prediction",)
        )


def run(update: Update, *, runs: int, estimator: str = "paper") -> Replay:
    return replay(
        update.data,
        estimator=estimator,
        new=update.new,
        old=update.old,
        old_confidence=update.old_confidence,
        new_confidence=update.new_confidence,
        also=update.also,
        text=update.text,
        methods=update.methods,
        budgets=[budget for budget in BUDGETS if budget <= len(update.data)],
        runs=runs,
        target_error=update.target,
    )


def needed(curve: Curve) -> str:
    low, high = curve.queries_range
    if curve.queries_for_target is None:
        return "-"
    return f"{curve.queries_for_target:,} ({'-' if low is None else f'{low:,}'} to {'-' if high is None else f'{high:,}'})"


def table_of_updates(folder: Path, *, runs: int, half: bool, estimator: str) -> None:
    after = f"squared error at {', '.join(map(str, BUDGETS))}: paired; predictive; auto | bias: paired; predictive; auto"
    first = "first change: post-stratified; auto"
    print(
        f"| case | changed | no-change error | error | {' | '.join(METHODS)} | {after} | {first} |"
    )
    print("|---" * (len(METHODS) + 7) + "|")
    for given in updates(folder):
        update = (
            replace(given, data=given.data.take(np.arange(1, len(given.data), 2)))
            if half
            else given
        )
        found = run(update, runs=runs, estimator=estimator)
        curves = {curve.method: curve for curve in found.curves}
        old, new = update.data.predictions[update.old], update.data.predictions[update.new]
        share = np.mean(
            np.array(old.values, object)[old.codes] != np.array(new.values, object)[new.codes]
        )
        squared = "; ".join(
            " ".join(f"{x:.2g}" for x in curves[name].mean_squared_error) for name in OURS
        )
        bias = "; ".join(f"{max(x or 0.0 for x in curves[name].bias_share):.1%}" for name in OURS)
        first = "; ".join(
            "/".join(map(str, curves[name].first_change or ()))
            for name in ("post-stratified", "auto")
        )
        cells = [needed(curves[name]) for name in METHODS]
        print(
            f"| {update.name} | {share:.1%} | {found.no_change_error:.2%} | {update.target:.3%} | {' | '.join(cells)} "
            f"| {squared} | {bias} | {first} |",
            flush=True,
        )


def table_of_estimates(folder: Path, *, runs: int) -> None:
    """Compare the queries that strata need with the paper's estimate and with the shipped one."""
    strata = ("post-stratified", "masa", "adaptive", "paired")
    heads = [f"{name}: {estimate}" for name in strata for estimate in ("paper", "assess")]
    print(f"| case | error | {' | '.join(heads)} | auto |")
    print("|---" * (len(heads) + 3) + "|")
    for update in updates(folder):
        both = {
            estimate: {
                curve.method: curve.queries_for_target
                for curve in run(
                    replace(update, methods=strata), runs=runs, estimator=estimate
                ).curves
            }
            for estimate in ("paper", "assess")
        }
        auto = run(replace(update, methods=("auto",)), runs=runs).curves[0].queries_for_target
        cells = [both[estimate][name] for name in strata for estimate in ("paper", "assess")]
        shown = " | ".join("-" if cell is None else f"{cell:,}" for cell in (*cells, auto))
        print(f"| {update.name} | {update.target:.3%} | {shown} |", flush=True)


def table_of_twelve(folder: Path, *, runs: int, half: bool) -> None:
    methods = ("post-stratified", "masa", "adaptive", "optimal")
    print(f"| case | {' | '.join(methods)} | adaptive against masa |")
    print("|---" * (len(methods) + 2) + "|")
    for case in CASES:
        it = loaded(case, Stored.open(folder / "frugalml" / f"{case.data}.parquet"))
        data = it.data.take(np.arange(1, len(it.data), 2)) if half else it.data
        found = replay(
            data,
            new=it.new,
            also=() if it.cheap is None else (it.cheap,),
            methods=methods,
            budgets=[500],
            # The errors of two labels have few parts, so that figures vary more from run to run.
            runs=runs * (10 if len(data.labels) == 2 else 1),
        )
        saved = found.saving("adaptive", "masa")
        cells = [needed(curve) for curve in found.curves]
        print(
            f"| {case} | {' | '.join(cells)} | {'-' if saved is None else f'{-saved:+.1%}'} |",
            flush=True,
        )


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    which, half = sys.argv[3:4] or ["both"], sys.argv[4:5] == ["half"]
    estimator = sys.argv[5] if len(sys.argv) > 5 else "paper"
    if which[0] in ("twelve", "both"):
        table_of_twelve(folder, runs=runs, half=half)
        print()
    if which[0] == "estimates":
        table_of_estimates(folder, runs=runs)
    if which[0] in ("updates", "both"):
        table_of_updates(folder, runs=runs, half=half, estimator=estimator)


if __name__ == "__main__":
    main()
