"""A cheap model of the labels, and what it is good for."""

import json
import wave
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import masa
from masa.cli.main import main
from masa.data import cheap_model as cheap
from masa.data.cheap_model import cheap_model, sound_features
from masa.doubles.made_up import reviews
from masa.records import Column


def texts(count: int = 400) -> masa.Dataset:
    rows = reviews(count)
    return masa.Dataset.of(
        [label for _, label in rows], inputs={"text": [text for text, _ in rows]}
    )


def test_it_learns_what_can_be_learnt_and_never_what_it_is_asked_about() -> None:
    data = texts()
    found = cheap_model(data, "text")
    assert found.right > 0.8
    assert found.confidence[found.answers.codes == 0].min() > 1 / 3
    rng = np.random.default_rng(0)
    luck = masa.Dataset.of(
        [str(label) for label in rng.integers(0, 2, 600)],
        inputs={"text": [f"only word{i}" for i in range(600)]},
    )
    assert (
        abs(cheap_model(luck, "text").right - 0.5) < 0.1
    )  # Each text has a word of its own: only a leak could know.


def test_it_is_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cheap_model(texts(), "text", folder=tmp_path)
    heard: list[float] = []
    monkeypatch.setattr(cheap, "_model", lambda _: pytest.fail("trained again"))
    again = cheap_model(
        texts(), "text", folder=tmp_path, progress=lambda _, done: heard.append(done)
    )
    assert (again.confidence == first.confidence).all()
    assert (again.answers.codes == first.answers.codes).all()
    assert not heard
    monkeypatch.undo()
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:100])
    mended = cheap_model(
        texts(), "text", folder=tmp_path, progress=lambda _, done: heard.append(done)
    )
    assert (mended.confidence == first.confidence).all()
    assert heard[-1] == 1.0
    assert cheap_model(texts(410), "text", folder=tmp_path).confidence.shape == (410,)


def test_texts_without_a_word_are_no_trouble() -> None:
    data = masa.Dataset.of(["a", "b"] * 20, inputs={"text": ["", "!?", "\x00", "😀"] * 10})
    assert cheap_model(data, "text").confidence.shape == (40,)


def test_one_label_or_no_items_is_a_clear_error() -> None:
    with pytest.raises(masa.DataError, match="cannot be trained"):
        cheap_model(masa.Dataset.of(["a"] * 50, inputs={"text": ["x"] * 50}), "text")
    with pytest.raises(masa.DataError, match="no column 'nothing'"):
        cheap_model(texts(), "nothing")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = ["file,label"]
    for number in range(120):
        bright = number % 2
        pixels = (rng.random((20, 30, 3)) * 100 + 100 * bright).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png,{'day' if bright else 'night'}")
    (tmp_path / "data.csv").write_text("\n".join(rows))
    return tmp_path / "data.csv"


def test_images_are_known_by_their_tones(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = masa.read(pictures, label="label", inputs=["file"])
    assert cheap_model(data, "file", kind="image").right > 0.95
    (pictures.parent / "3.png").write_bytes(b"no image")
    assert (
        main(["difficulty", str(pictures), "--label", "label", "--image", "file", "--quiet"]) == 2
    )
    assert "3.png cannot be read" in capsys.readouterr().err


def test_a_changed_file_is_looked_at_again(pictures: Path, tmp_path: Path) -> None:
    data = masa.read(pictures, label="label", inputs=["file"])
    assert cheap_model(data, "file", kind="image", folder=tmp_path / "cache").right > 0.95
    for number in range(120):
        Image.fromarray(np.full((20, 20, 3), 7, np.uint8)).save(pictures.parent / f"{number}.png")
    assert cheap_model(data, "file", kind="image", folder=tmp_path / "cache").right < 0.6


def test_a_label_that_one_item_has_and_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    data = masa.Dataset.of(["a"] * 19 + ["b"], inputs={"text": ["x y"] * 20})
    assert cheap_model(data, "text", folder=tmp_path / "file" / "cache").right == 0.95


def test_sounds_are_known_by_their_bands(tmp_path: Path) -> None:
    rows = ["file,label"]
    rng = np.random.default_rng(0)
    for number in range(60):
        high = number % 2
        beat = np.sin(np.arange(4000) * (0.5 if high else 0.05) + rng.random()) * 0.3 + rng.normal(
            0, 0.02, 4000
        )
        with wave.open(str(tmp_path / f"{number}.wav"), "wb") as sound:
            sound.setparams((1, 2, 8000, 4000, "NONE", ""))
            sound.writeframes((beat * 32767).astype("<i2").tobytes())
        rows.append(f"{number}.wav,{'high' if high else 'low'}")
    (tmp_path / "data.csv").write_text("\n".join(rows))
    data = masa.read(tmp_path / "data.csv", label="label", inputs=["file"])
    assert cheap_model(data, "file", kind="sound").right > 0.95
    with wave.open(str(tmp_path / "empty.wav"), "wb") as sound:
        sound.setparams((2, 1, 8000, 0, "NONE", ""))
    assert np.isfinite(sound_features(tmp_path / "empty.wav")).all()
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    with pytest.raises(masa.DataError, match=r"bad\.wav cannot be read"):
        sound_features(tmp_path / "bad.wav")


def test_the_command_judges_it_on_the_old_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["id,label,text,old,luck"]
    for number, (text, label) in enumerate(reviews(600)):
        hard = "lecture" in text or "lovely" in text
        old = rng.choice(["neg", "neu", "pos"]) if hard else label
        lines.append(f'{number},{label},"{text}",{old},{rng.choice(["neg", "pos"])}')
    (tmp_path / "d.csv").write_text("\n".join(lines))
    given = ["difficulty", "d.csv", "--label", "label", "--id", "id", "--text", "text", "--old"]
    assert main([*given, "luck", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["items"] == 600
    assert told["saves"] < 0.05
    assert main([*given, "old", "--out", "cheap.csv"]) == 0
    assert "items that it was not trained on" in capsys.readouterr().out
    written = (tmp_path / "cheap.csv").read_text().splitlines()
    assert written[0] == "id,cheap.prediction,cheap.confidence"
    assert len(written) == 601
    assert main(["difficulty", "d.csv", "--label", "label"]) == 2


def test_an_assessment_trains_it_where_nothing_better_is_known(tmp_path: Path) -> None:
    data = texts(300)
    old = Column("old", ("pos",), np.zeros(300, np.int32))
    found = masa.assess(
        data,
        lambda _: "pos",
        baseline=old,
        budget=120,
        store=tmp_path / "s.db",
        method="adaptive",
        cheap=("text", "text"),
    )
    assert found.shift is not None
    assert len({(stratum.label, stratum.level) for stratum in found.shift.strata}) > 3
    assert len(list((tmp_path / "cache").iterdir())) == 1
