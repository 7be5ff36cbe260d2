"""Learn from an assessment in the store which answers an update changes."""

from masa.data.baseline_answers import BaselineAnswers, from_column
from masa.data.dataset import Dataset
from masa.errors import DataError, UsageError
from masa.replays.learned_change import LearnedChange, learned_change
from masa.runs.journalled import asked
from masa.runs.stored_baseline import lay_over
from masa.settings import Settings
from masa.storage import history, journal
from masa.storage.history import Run
from masa.storage.store import Store


def learned_from_run(
    store: Store, data: Dataset, now: BaselineAnswers, settings: Settings, run: Run
) -> LearnedChange | None:
    """Learn from an assessment in the store, for a plan that starts from the present baseline.

    Both baselines must have all items. Nothing
    is learned from an API with noise: which of its answers changed cannot be told.
    """
    try:
        same, then = _baseline_of(store, data, now, run)
    except (DataError, UsageError):  # It had other items, or no answers.
        return None
    if then is None or len(same) < len(data) or len(then.places) < len(data):
        return None
    if not (then.repeats_itself and now.repeats_itself):
        return None
    known = asked(data, journal.past(store, run.id))
    places = known.places()
    if not len(places):
        return None
    draws = None
    if _asked_alike(data, settings, run):
        draws = known.draws(places.tolist())
    return learned_change(data, then, now, settings, places, known.column(places.tolist()), draws)


def _baseline_of(
    store: Store, data: Dataset, now: BaselineAnswers, run: Run
) -> tuple[Dataset, BaselineAnswers | None]:
    """Give the baseline answers that a run was compared with.

    None where the data does not have their column any more.
    """
    if run.baseline is not None:
        if run.baseline == now.run:
            return data, now
        return lay_over(store, data, history.find(store, run.baseline))
    column = run.settings.get("old")
    if column not in data.predictions:
        return data, None
    confidence = run.settings.get("old_confidence")
    return data, from_column(data, data.predictions[column], confidence)


def _asked_alike(data: Dataset, settings: Settings, run: Run) -> bool:
    """Say whether a run asked as one with these settings would."""
    if run.data != data.fingerprint():
        return False
    mine = {
        "mix": None if settings.mix is None else dict(settings.mix),
        "also": list(settings.also),
        "weights": settings.weights.identity(),
        "strict": False,
    }
    # What is not set is not stored.
    return all((run.settings.get(key) or None) == (value or None) for key, value in mine.items())
