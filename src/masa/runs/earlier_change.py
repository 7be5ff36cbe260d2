"""Learn from an assessment in the store which answers an update changes."""

from masa.data.baseline_answers import BaselineAnswers, from_column
from masa.data.dataset import Dataset
from masa.errors import DataError, UsageError
from masa.replays.learned_change import LearnedChange, learned
from masa.runs import session as live
from masa.runs.conclude import drawn
from masa.runs.stored_baseline import lay_over
from masa.settings import Settings
from masa.storage import history, journal
from masa.storage.history import Run
from masa.storage.store import Store


def from_run(
    store: Store, data: Dataset, now: BaselineAnswers, settings: Settings, run: Run
) -> LearnedChange | None:
    """Learn from an assessment in the store for those who plan from the old answers of now, if both know all of these items'.

    Of an API that contradicts itself nothing is learned: what of its answers is change, nobody can tell of one of them.
    """
    try:
        if run.baseline is not None:
            same, then = (
                (data, now)
                if run.baseline == now.run
                else lay_over(store, data, history.find(store, run.baseline))
            )
        elif run.settings.get("old") in data.predictions:
            same, then = (
                data,
                from_column(
                    data, data.predictions[run.settings["old"]], run.settings.get("old_confidence")
                ),
            )
        else:
            return None
    except (DataError, UsageError):  # Other items, or no answers.
        return None
    if (
        len(same) < len(data)
        or len(then.places) < len(data)
        or not (then.repeats_itself and now.repeats_itself)
    ):
        return None
    past = journal.past(store, run.id)
    places, answers = live.known(data, past)
    if not len(places):
        return None
    return learned(
        data,
        then,
        now,
        settings,
        places,
        answers,
        drawn(data, past, places) if _alike(data, settings, run) else None,
    )


def _alike(data: Dataset, settings: Settings, run: Run) -> bool:
    """Say whether a run asked as one with these settings would."""
    mix = None if settings.mix is None else dict(settings.mix)
    mine = {
        "mix": mix,
        "also": list(settings.also),
        "weights": settings.objective.identity(),
        "strict": False,
    }
    same = all(
        (run.settings.get(key) or None) == (value or None) for key, value in mine.items()
    )  # What is not set is not kept.
    return same and run.data == data.fingerprint()
