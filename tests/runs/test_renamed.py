"""A corrected mapping of labels renames what was paid for; differences are shown where they are."""

from pathlib import Path

import pytest

import masa
from doubled import QUICK, case
from live_runs import client, data
from masa.doubles.language_models import LanguageModel, Spoken
from masa.records import INVALID
from masa.runs.renamed import renamed
from masa.storage.history import differences
from server import Server, database


def test_after_a_corrected_mapping_nothing_is_paid_for_again(
    server: Server, tmp_path: Path
) -> None:
    theirs = {"pos": "POSITIVE", "neg": "NEGATIVE", "neu": "NEUTRAL"}
    server.change = lambda _text, label: theirs[label]
    store, items = tmp_path / "s.db", data(60)
    with pytest.raises(masa.DataError, match="is a label of the data"):
        masa.baseline(items, client(server), budget=60, store=store, limits=QUICK)
    asked = len(server.answered)
    assert 20 <= asked < 60
    with database(store) as connection:
        before = connection.execute("SELECT item, prediction FROM call").fetchall()
    right = {"POSITIVE": "pos", "NEGATIVE": "neg", "NEUTRAL": "neu"}
    done = masa.baseline(items, client(server, labels=right), budget=80, store=store, limits=QUICK)
    assert (done.answers, len(server.answered)) == (60, 60)
    assert any(f"{asked} answers of run 1 were renamed" in note for note in done.notes)
    with database(store) as connection:
        now = dict(connection.execute("SELECT item, prediction FROM call").fetchall())
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (1,)
    assert all(now[item] == right[said] for item, said in before if said is not None)


def test_labels_that_change_places_are_not_mixed_up() -> None:
    before = {"labels": {"GOOD": "neg", "BAD": "pos"}, "missing": "neu"}
    now = {"labels": {"GOOD": "pos", "BAD": "neg"}, "missing": "neu"}
    said = ("neg", "pos", "neu", "odd", "GOOD", INVALID)
    assert [renamed(one, before, now) for one in said] == ["pos", "neg", "neu", "odd", None, None]
    both = {"labels": {"GOOD": "pos", "FINE": "pos"}}
    assert renamed("pos", both, {"labels": {"GOOD": "pos", "FINE": "neu"}}) is None


@pytest.mark.parametrize("service", ["google-speech", "openai"])
def test_names_that_were_no_labels_are_kept_until_the_mapping_has_them(
    service: str, tmp_path: Path
) -> None:
    with case(service, count=60) as found:
        kept = {label: f"command-{label}" for label in found.data.labels}
        strange = [kept[label] for _, label in found.made]
        found.data = masa.Dataset.of(strange, inputs={"input": [name for name, _ in found.made]})
        if isinstance(found.double, LanguageModel):
            names = {"pos": "favourable", "neg": "bad", "neu": "so-so"}
            said = {text: names[label] for text, label in found.made}
            found.double.says = lambda text, _label: Spoken(said[text])
            kept = {names[label]: strange for label, strange in kept.items()}
        store = tmp_path / "s.db"
        with pytest.raises(masa.DataError, match="could be read as a label"):
            masa.baseline(found.data, found.client(), budget=100, store=store, limits=QUICK)
        first = found.double.asked
        client = found.client(labels=kept)
        done = masa.baseline(found.data, client, budget=100, store=store, limits=QUICK)
        again = found.double.asked - 60
        # What was heard and is in no mapping, such as a wrong word, is asked again.
        assert (done.answers, again <= 0.4 * first) == (60, True)
        if service == "openai":
            assert done.matrix is not None
            assert (again, done.matrix.accuracy) == (0, 1.0)


def test_a_comparison_says_which_api_failed(server: Server) -> None:
    good = client(server)
    bad = client(server, label="result.nowhere")
    with pytest.raises(masa.ApiError, match=r"^B: the API refuses to work: no answer has"):
        masa.compare(data(60), good, bad, budget=100, store=None, limits=QUICK)
    with pytest.raises(masa.ApiError, match=r"^mine: "):
        masa.compare(
            data(60), bad, good, budget=100, store=None, limits=QUICK, sides=("mine", "theirs")
        )


def test_two_prompts_are_shown_where_they_differ() -> None:
    long = "Classify the text below, as carefully as you can. " * 5
    old = {"api": "x", "prompt": {"system": None, "prompt": f"{long} Say one word.", "seed": 1}}
    new = {"api": "x", "prompt": {"system": None, "prompt": f"{long} Say two words.", "seed": 2}}
    prompt, seed = differences(old, new)
    assert "Say one word." in prompt
    assert "Say two words." in prompt
    assert len(prompt) < 260
    assert seed == "the prompt or body, 'seed': 1 then, 2 now"
