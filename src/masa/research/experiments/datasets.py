"""The data sets and APIs: sizes, classes, prices, and how often each API is right."""

from collections.abc import Sequence
from typing import Any

from masa.data.dataset import read
from masa.data.strata import Strata
from masa.inference.counts import true_matrix
from masa.research.finding import Finding, Sheet
from masa.research.published import PREDICTION, Stored
from masa.research.study import PaperStudy

SETS = {
    "yelp": ("SA", 20_000, 2),
    "imdb": ("SA", 25_000, 2),
    "waimai": ("SA", 11_987, 2),
    "shop": ("SA", 62_774, 2),
    "ferplus": ("FER", 6_358, 7),
    "rafdb": ("FER", 15_339, 7),
    "expw": ("FER", 31_510, 7),
    "afnet": ("FER", 87_401, 7),
    "digit": ("STT", 2_000, 10),
    "amnist": ("STT", 30_000, 10),
    "command": ("STT", 64_727, 31),
    "fluent": ("STT", 30_043, 31),
}
"""The paper's data sets: task, items and classes as it prints them."""

PRICES = {
    "SA": {"google": 2.5, "amazon": 0.75, "baidu": 3.5},
    "FER": {"google": 15.0, "microsoft": 10.0, "facepp": 5.0},
    "STT": {"google": 60.0, "microsoft": 41.0, "ibm": 25.0},
}
"""US dollars for 10,000 queries, by task and API, as the paper prints them."""

HEAD = (
    "data set",
    "task",
    "items",
    "items in the paper",
    "classes",
    "classes in the paper",
    "recorded answers",
    "USD for 10,000 queries",
    "accuracy (%)",
    "answers that are no label",
)
NAME, ITEMS, PAPER_ITEMS = (
    HEAD.index(column) for column in ("data set", "items", "items in the paper")
)


def datasets(study: PaperStudy) -> Finding:
    """Compare sizes with the paper's, and list prices and the accuracy of each API."""
    rows: list[Sequence[Any]] = []
    for number, found in enumerate(study.sets):
        study.show_progress(f"datasets: {found.name}", number / len(study.sets))
        rows += _rows(found)
    words = ["Prices are those of the download where it has them, else the paper's."]
    in_the_paper = [row for row in rows if row[PAPER_ITEMS] is not None]
    differing = sorted({row[NAME] for row in in_the_paper if row[ITEMS] != row[PAPER_ITEMS]})
    if differing:
        words.append(f"Sizes differ from the paper's: {', '.join(differing)}.")
    elif in_the_paper:
        words.append("Sizes are the paper's.")
    absent = [name for name in SETS if name not in study.by_name]
    if absent:
        words.append(f"Not in the data: {', '.join(absent)}.")
    sheet = Sheet("datasets", HEAD, tuple(rows))
    return Finding("datasets", "The data sets and APIs", tuple(words), (sheet,))


def _rows(found: Stored) -> list[Sequence[Any]]:
    """Describe a data set: one row per recording."""
    task, items, classes = SETS.get(found.name, (found.task.upper(), None, None))
    columns = [name + PREDICTION for name in found.recorded]
    data = read(found.path, label="label", id="id", predictions=columns)
    strata = Strata.build(data.label)
    rows: list[Sequence[Any]] = []
    for name in found.recorded:
        api = name.partition("@")[0]
        matrix = true_matrix(strata, data.predictions[name + PREDICTION])
        rows.append(
            (
                found.name,
                task,
                len(data),
                items,
                len(data.labels),
                classes,
                name,
                found.prices.get(api, PRICES.get(task, {}).get(api)),
                100 * matrix.accuracy,
                len(set(matrix.predictions) - set(data.labels)),
            )
        )
    return rows
