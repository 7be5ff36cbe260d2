"""A case that needs no key and no file: two real models of handwritten digits as an API before and after an update."""

import csv
from dataclasses import dataclass
from pathlib import Path

from masa import estimate
from masa.dataset import Dataset
from masa.errors import MissingPackageError, UsageError
from masa.records import Answer, Progress, Replay, Shift
from masa.replay import replay
from masa.sampler import Sampler
from masa.strata import Strata

STORY = """\
An API reads handwritten digits (scikit-learn's 1,797 images). One day its provider, to save money, shrinks every image
from 8 x 8 to 4 x 4 pixels before its model sees it, and tells nobody. Both versions are real models, trained and
asked just now on images they had not seen; the confidence of a cheap model tells easy images from hard ones."""

OLD, NEW = "8x8.prediction", "4x4.prediction"
BUDGET = 400
BUDGETS = (200, 400, 800)


@dataclass(frozen=True, slots=True, eq=False)
class Demo:
    """One assessment within a budget, the truth it did not see, and many replays of it."""

    data: Dataset
    budget: int
    estimated: Shift
    true: Shift
    replay: Replay


def run(*, runs: int = 1000, seed: int = 0, progress: Progress | None = None) -> Demo:
    """Assess the update once, as a user would, and replay it many times."""
    data = digits()
    strata = Strata.build(data.label, difficulty=data.difficulty)
    old, answers = estimate.true_matrix(strata, data.predictions[OLD]), data.predictions[NEW]
    sampler = Sampler(strata, method="masa", seed=seed)
    while sampler.asked < BUDGET:
        for query in sampler.ask(1):
            sampler.tell(Answer(query.item, answers.values[answers.codes[query.item]]))
    return Demo(
        data=data,
        budget=BUDGET,
        estimated=estimate.shift(sampler.tally(), old=old, strata=strata),
        true=Shift(old=old, new=estimate.true_matrix(strata, answers)),
        replay=replay(
            data,
            new=NEW,
            old=OLD,
            difficulty="a cheap model's confidence",
            budgets=BUDGETS,
            runs=runs,
            seed=seed,
            progress=progress,
        ),
    )


def save(data: Dataset, path: Path) -> None:
    """Write the recorded answers as CSV, to try `masa replay` on."""
    columns = [data.label, *data.predictions.values()]
    texts = [[column.values[code] for code in column.codes] for column in columns]
    numbers = [] if data.difficulty is None else data.difficulty.tolist()
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["id", *(column.name for column in columns), "cheap.confidence"])
            rows.writerows(zip(range(len(data)), *texts, numbers, strict=True))
    except OSError as exc:
        raise UsageError(f"{path} cannot be written: {exc.strerror}", hint="give another place with --save") from exc


def digits() -> Dataset:
    """Train both versions of the API and the cheap model, and record what they answer on images they were not trained on."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import StratifiedKFold, cross_val_predict
        from sklearn.naive_bayes import GaussianNB
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as exc:
        raise MissingPackageError("the demo needs scikit-learn", hint="pip install scikit-learn") from exc
    images, label = load_digits(return_X_y=True)
    small = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(images), -1)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))
    cheap = GaussianNB(var_smoothing=1e-2)
    return Dataset.of(
        label.tolist(),
        predictions={
            OLD: cross_val_predict(model, images, label, cv=folds).tolist(),
            NEW: cross_val_predict(model, small, label, cv=folds).tolist(),
        },
        difficulty=cross_val_predict(cheap, images, label, cv=folds, method="predict_proba").max(axis=1),
        source="handwritten digits",
    )
