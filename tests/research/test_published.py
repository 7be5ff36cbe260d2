"""Readers of published predictions: whole downloads are read, broken ones refused with the line."""

import csv
import json
from pathlib import Path

import pytest

from masa.cli import main as cli
from masa.errors import DataError, UsageError
from masa.research import published
from masa.research.published.frugalml import read_frugalml
from masa.research.published.hapi import read_hapi

IDS = [f"DIGIT_{number}.wav" for number in range(6)]
LABELS = [0, 1, 2, 0, 1, 2]
SAID = {"0": [0, 1, 1, 0, 10, 2], "101": [0, 0, 2, 0, 1, 2]}


@pytest.fixture
def frugal(tmp_path: Path) -> Path:
    """One data set in FrugalML's layout.

    As there, names end in a comma and the last line has no line break.
    """
    folder = tmp_path / "download" / "mlserviceperformance_AUDIOMNIST"
    folder.mkdir(parents=True)
    (folder / "meta.csv").write_text(
        "Index,MLaaS(API),Cost per 10k utterance,label number\n"
        "0,Google,60,31\n101,GitHub(DeepSpeech),0.02,31\n"
    )
    for index, said in SAID.items():
        (folder / f"Model{index}_ImageName.txt").write_text("\n".join(f"{name}," for name in IDS))
        (folder / f"Model{index}_TrueLabel.txt").write_text(
            "".join(f"{label}\n" for label in LABELS)
        )
        (folder / f"Model{index}_PredictedLabel.txt").write_text(
            "".join(f"{label}\n" for label in said)
        )
        (folder / f"Model{index}_Confidence.txt").write_text(
            "".join(f"{0.5 + 0.05 * row:.18e}\n" for row in range(6))
        )
    return folder


@pytest.fixture
def hapi(tmp_path: Path) -> Path:
    """Two data sets in HAPI's layout, one of them with several labels per item."""
    tasks = tmp_path / "hapi" / "tasks"
    rows = []
    for date, shift in (("20-03-29", 0), ("21-02-16", 1)):
        folder = tasks / "sa" / "yelp" / "google_sa"
        folder.mkdir(parents=True, exist_ok=True)
        said = [
            {
                "example_id": name,
                "predicted_label": (label + shift * (row == 3)) % 3,
                "confidence": 0.9,
            }
            for row, (name, label) in enumerate(zip(IDS, LABELS, strict=True))
        ]
        (folder / f"{date}.json").write_text(json.dumps(said[::-1]))
        rows.append(("sa", "yelp", "google_sa", date, f"sa/yelp/google_sa/{date}.json", 2.5))
    labels = [
        {"example_id": name, "true_label": label} for name, label in zip(IDS, LABELS, strict=True)
    ]
    (tasks / "sa" / "yelp" / "labels.json").write_text(json.dumps(labels, indent=1))
    (tasks / "mic" / "coco" / "google_mic").mkdir(parents=True)
    (tasks / "mic" / "coco" / "labels.json").write_text(
        json.dumps([{"example_id": 1, "true_label": ["cat", "dog"]}])
    )
    rows.append(("mic", "coco", "google_mic", "20-10-28", "mic/coco/google_mic/20-10-28.json", 15))
    with (tasks / "meta.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("task", "dataset", "api", "date", "path", "cost_per_10k"), *rows]
        )
    return tmp_path / "hapi"


def test_frugalml_becomes_recorded_apis_with_prices(frugal: Path, tmp_path: Path) -> None:
    (found,) = published.collections("frugalml", frugal.parent)
    assert (found.name, found.ids, found.labels) == (
        "amnist",
        IDS,
        [str(label) for label in LABELS],
    )
    assert [(one.name, one.price) for one in found.recordings] == [
        ("google", 60.0),
        ("github-deepspeech", 0.02),
    ]
    assert found.notes == ("amnist: google answered '10', which is no item's label, 1 times",)
    kept = published.save(found, tmp_path / "out")
    assert kept.recorded == ("google", "github-deepspeech")
    assert kept.confident == {"google", "github-deepspeech"}
    assert kept.prices == {"google": 60.0, "github-deepspeech": 0.02}
    assert published.layout_of(frugal.parent) == published.layout_of(frugal) == "frugalml"


def test_the_published_digits_are_those_of_the_parquet_file(frugalml: Path, tmp_path: Path) -> None:
    import duckdb

    raw = frugalml.parent / "frugalml-raw"
    if not raw.is_dir():
        pytest.skip(f"needs the sample of FrugalML's layout in {raw}")
    (found,) = read_frugalml(raw)
    ours = published.save(found, tmp_path).path
    compare = (
        'SELECT count(*), bool_and(a.label = b.label AND a."ibm.prediction" = b."ibm.prediction"), '
        'max(abs(a."microsoft.confidence" - b."microsoft.confidence")) '
        f"FROM read_parquet('{ours}') a "
        f"JOIN read_parquet('{frugalml / 'digit.parquet'}') b USING (id)"
    )
    count, same, off = duckdb.execute(compare).fetchall()[0]
    assert (count, same) == (2000, True)
    assert off < 1e-6


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (
            "Model0_Confidence.txt",
            None,
            r"Model0_Confidence.txt missing, of model 0 \(Google, meta.csv line 2\)",
        ),
        (
            "Model0_Confidence.txt",
            "0.5\n" * 5,
            "Model0_Confidence.txt has 5 lines where Model0_ImageName.txt has 6",
        ),
        (
            "Model101_Confidence.txt",
            "0.5\n0.5\nhalf\n0.5\n0.5\n0.5\n",
            "Model101_Confidence.txt, line 3: 'half' is not a number",
        ),
        (
            "Model0_PredictedLabel.txt",
            "0\n1\n\n0\n1\n2\n",
            "Model0_PredictedLabel.txt, line 3: '' is not the number of a label",
        ),
        (
            "Model101_TrueLabel.txt",
            "0\n1\n2\n0\n2\n2\n",
            "Model101_TrueLabel.txt, line 5: '2' where Model0_TrueLabel.txt has '1'",
        ),
        (
            "Model0_ImageName.txt",
            "a,\nb,\nc,\na,\ne,\nf,",
            "Model0_ImageName.txt, row 4: 'a' again, first in row 1",
        ),
        (
            "Model0_TrueLabel.txt",
            "version https://git-lfs.github.com/spec/v1\n",
            "Git LFS pointer",
        ),
        ("Model0_TrueLabel.txt", b"\xff\xfe0\n", "Model0_TrueLabel.txt: not UTF-8 at byte 0"),
        ("meta.csv", None, "meta.csv does not exist"),
        ("Model0_Confidence.txt", "0.5\n" * 5 + "inf\n", "line 6: 'inf' is not a number"),
        (
            "meta.csv",
            "Index,MLaaS(API),Cost\n0,Google,-1\n",
            "meta.csv, line 2: '-1' is not a price",
        ),
        (
            "meta.csv",
            "Index,MLaaS(API)\n0,Google\n101,google\n",
            "two recordings are called 'google'",
        ),
        ("meta.csv", "Index,MLaaS(API)\n0,()\n", "an API without a name"),
        ("meta.csv", "Index,Name\n0,Google\n", r"meta.csv, line 1: no column 'MLaaS\(API\)'"),
        (
            "meta.csv",
            "Index,MLaaS(API),Cost\n0,Google\n",
            "meta.csv, line 2: not the 3 fields of the header",
        ),
    ],
)
def test_a_broken_download_names_the_file_and_the_line(
    frugal: Path, file: str, content: str | bytes | None, words: str
) -> None:
    if content is None:
        (frugal / file).unlink()
    else:
        (frugal / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=words) as caught:
        list(published.collections("frugalml", frugal.parent))
    assert caught.value.hint


def test_partial_leaves_out_models_that_are_missing_and_says_so(frugal: Path) -> None:
    (frugal / "Model0_PredictedLabel.txt").unlink()
    (found,) = read_frugalml(frugal, partial=True)
    assert [one.name for one in found.recordings] == ["github-deepspeech"]
    assert "left out" in found.notes[0]
    assert "Model0_PredictedLabel.txt" in found.notes[0]


def test_hapi_becomes_two_dates_in_the_order_of_the_labels(hapi: Path, tmp_path: Path) -> None:
    yelp, coco = published.collections("hapi", hapi)
    assert [one.name for one in yelp.recordings] == ["google@20-03-29", "google@21-02-16"]
    old, new = (one.predictions for one in yelp.recordings)
    assert [row for row in range(6) if old[row] != new[row]] == [3]
    assert yelp.recordings[0].price == 2.5
    assert not coco.recordings
    assert coco.notes == (
        "left out: coco has several labels per item, and a confusion matrix needs one",
    )
    assert published.save(yelp, tmp_path).pairs == (("google@20-03-29", "google@21-02-16"),)
    assert published.layout_of(hapi) == "hapi"


def test_a_truncated_or_mismatched_hapi_file_is_named(hapi: Path) -> None:
    file = hapi / "tasks/sa/yelp/google_sa/21-02-16.json"
    whole = file.read_text()
    file.write_text(whole[:100])
    with pytest.raises(DataError, match=r"21-02-16.json, line 1, column \d+: not JSON"):
        list(read_hapi(hapi))
    records = json.loads(whole)
    file.write_text(json.dumps(records[1:]))
    with pytest.raises(
        DataError, match=r"21-02-16.json: no answer about 1 items of .*labels.json: 'DIGIT_5.wav'"
    ):
        list(read_hapi(hapi))
    (found, _) = read_hapi(hapi, partial=True)
    assert list(found.ids) == IDS[:5]
    file.write_text(json.dumps([*records, records[0]]))
    with pytest.raises(DataError, match=r"row 7: 'DIGIT_5.wav' again, first in row 1"):
        list(read_hapi(hapi))
    file.write_text(json.dumps([{"example_id": "x"}]))
    with pytest.raises(DataError, match="record 1: no 'predicted_label'"):
        list(read_hapi(hapi))
    file.unlink()
    with pytest.raises(DataError, match=r"21-02-16.json is missing, which .*meta.csv line 3 names"):
        list(read_hapi(hapi))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[{"example_id": "x", "true_label": ' + "9" * 5000 + "}]", "not JSON that can be read"),
        ([{"example_id": "x", "true_label": "<invalid>"}], "'<invalid>' cannot be a label"),
        ([{"example_id": "x", "true_label": "\ud800"}], "cannot be written as UTF-8"),
        ([{"example_id": "x", "true_label": None}], "'' cannot be a label"),
        ([], "not a list of records"),
    ],
)
def test_labels_that_cannot_be_are_refused_before_anything_is_written(
    hapi: Path, content: object, words: str
) -> None:
    (hapi / "tasks/sa/yelp/labels.json").write_text(
        content if isinstance(content, str) else json.dumps(content)
    )
    for date in ("20-03-29", "21-02-16"):
        said = [{"example_id": "x", "predicted_label": 1, "confidence": 10**400}]
        (hapi / f"tasks/sa/yelp/google_sa/{date}.json").write_text(json.dumps(said))
    with pytest.raises(DataError, match=words):
        list(published.collections("hapi", hapi))
    (hapi / "tasks/sa/yelp/labels.json").write_text(
        json.dumps([{"example_id": "x", "true_label": 1}])
    )
    assert next(iter(published.collections("hapi", hapi))).recordings[0].confidences == [None]


def test_an_index_may_begin_with_a_byte_order_mark_and_must_list_something(hapi: Path) -> None:
    meta = hapi / "tasks" / "meta.csv"
    meta.write_text(meta.read_text(), encoding="utf-8-sig")
    assert published.layout_of(hapi) == "hapi"
    assert len(list(read_hapi(hapi))) == 2
    meta.write_text(meta.read_text(encoding="utf-8-sig").splitlines()[0] + "\n")
    with pytest.raises(DataError, match="lists no predictions"):
        list(read_hapi(hapi))


def test_dates_come_in_the_order_of_the_table_not_of_the_alphabet(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "model,id,label,answer\n"
        + "\n".join(f"gpt-{date},{n},yes,[yes]" for date in ("0613", "0125") for n in range(4))
        + "\n"
    )
    (found,) = published.collections("llmdrift", tmp_path / "t.csv")
    assert published.save(found, tmp_path).pairs == (("gpt@0613", "gpt@0125"),)


def test_dates_that_are_none_come_in_the_order_of_the_index(hapi: Path) -> None:
    meta, folder = hapi / "tasks" / "meta.csv", hapi / "tasks/sa/yelp/google_sa"
    for old, new in (("20-03-29", "mar20"), ("21-02-16", "feb21")):
        (folder / f"{old}.json").rename(folder / f"{new}.json")
        meta.write_text(meta.read_text().replace(old, new))
    (found, _) = published.collections("hapi", hapi)
    assert [one.date for one in found.recordings] == ["mar20", "feb21"]
    assert "are not like 20-03-29" in found.notes[0]


def test_partial_leaves_out_data_sets_of_which_nothing_is_whole(hapi: Path, frugal: Path) -> None:
    for file in (hapi / "tasks/sa/yelp/google_sa").iterdir():
        file.write_text(file.read_text()[:40])
    yelp, _ = published.collections("hapi", hapi, partial=True)
    assert not yelp.recordings
    assert "not JSON" in yelp.notes[0]
    for file in frugal.glob("*_Confidence.txt"):
        file.unlink()
    (found,) = published.collections("frugalml", frugal, partial=True)
    assert not found.recordings
    assert "no whole model" in found.notes[-1]


def test_what_import_suggests_compares_two_dates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text(
        "id,label,a,b1,b2\n" + "".join(f"{n},x,x,x,{'xy'[n % 2]}\n" for n in range(40))
    )
    words = [
        "import",
        "table",
        str(tmp_path / "t.csv"),
        "--id",
        "id",
        "--out",
        str(tmp_path / "out"),
        "-q",
    ]
    assert cli.main([*words, "--answers", "a=a", "--answers", "b@1=b1", "--answers", "b@2=b2"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "masa assess" in line)
    assert cli.main([*line.split()[1:], "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["moved"] == "yes"


def test_two_data_sets_of_one_name_do_not_overwrite_each_other(hapi: Path) -> None:
    import shutil

    shutil.copytree(hapi / "tasks/sa", hapi / "tasks/fer")
    meta = hapi / "tasks" / "meta.csv"
    rows = meta.read_text().splitlines()
    meta.write_text(
        "\n".join(
            [*rows, *(row.replace("sa,", "fer,", 1).replace("sa/", "fer/", 1) for row in rows[1:3])]
        )
        + "\n"
    )
    with pytest.raises(DataError, match="are both called 'yelp'"):
        list(published.collections("hapi", hapi))


def test_names_that_look_like_versions_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,vader-2.5.prediction,vader-3.2.1.prediction\na,a,b\n")
    (found,) = published.collections("table", tmp_path / "t.csv")
    assert (
        "--answers vader@2.5=vader-2.5.prediction --answers vader@3.2.1=vader-3.2.1.prediction"
        in found.notes[-1]
    )


def test_an_index_cannot_lead_outside_its_folder(hapi: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("[]")
    meta = hapi / "tasks" / "meta.csv"
    meta.write_text(
        meta.read_text().replace("sa/yelp/google_sa/21-02-16.json", "../../secret.json")
    )
    (found, _) = read_hapi(hapi)
    assert len(found.recordings) == 2
    meta.write_text(meta.read_text().replace("sa,yelp", "sa,../../.."))
    with pytest.raises(DataError, match="leads outside of the download"):
        list(read_hapi(hapi))


def test_free_text_is_parsed_to_the_last_label_in_brackets(tmp_path: Path) -> None:
    with (tmp_path / "PRIME.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["model", "dataset", "id", "query", "ref_answer", "answer"])
        for model, answers in {
            "openaichat/gpt-4-0314": ["It is [Yes]", "first\n[yes], no: [No]", "perhaps"],
            "openaichat/gpt-4-0613": ["no", "[No]", "[No]"],
        }.items():
            rows.writerows(
                (model, "prime", number, "?", right, said)
                for number, (right, said) in enumerate(
                    zip(["yes", "no", "Yes"], answers, strict=True)
                )
            )
    (found,) = published.collections("llmdrift", tmp_path / "PRIME.csv")
    assert (found.name, found.labels) == ("prime", ["yes", "no", "yes"])
    assert {one.name: list(one.predictions) for one in found.recordings} == {
        "gpt-4@0314": ["yes", "no", None],
        "gpt-4@0613": ["no", "no", "no"],
    }
    assert found.notes == ("gpt-4@0314: 1 of 3 answers name no label",)


def test_import_makes_baselines_that_assess_compares_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "answers.csv"
    rows = [
        f"i{n},{'no' if n % 2 else 'yes'},{'no' if n % 2 else 'yes'},{'no' if n % 4 else 'yes'}"
        for n in range(80)
    ]
    data.write_text("key,gold,march,june\n" + "\n".join(rows) + "\n")
    out = tmp_path / "out"
    words = [
        "import",
        "table",
        str(data),
        "--label",
        "gold",
        "--id",
        "key",
        "--out",
        str(out),
        "--json",
    ]
    assert cli.main([*words, "--answers", "gpt@03=march", "--answers", "gpt@06=june"]) == 0
    (made,) = json.loads(capsys.readouterr().out)["data"]
    assert made["recorded"] == ["gpt@03", "gpt@06"]
    assert made["baselines"] == ["answers/gpt"]
    asked = [
        "assess",
        made["file"],
        "--label",
        "label",
        "--id",
        "id",
        "--api",
        "replay:gpt@06.prediction",
    ]
    assert (
        cli.main([*asked, "--name", "answers/gpt", "--store", str(out / "masa.db"), "--json"]) == 1
    )
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"]["change"] == pytest.approx(-0.25)


def test_bad_words_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no layout 'kaggle'"):
        list(published.collections("kaggle", tmp_path))
    with pytest.raises(DataError, match="does not exist"):
        list(published.collections("hapi", tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="no parts that could be missing"):
        list(published.collections("table", tmp_path, partial=True))
    with pytest.raises(UsageError, match="says which column is what"):
        list(published.collections("hapi", tmp_path, columns=published.Columns(label="gold")))
    (tmp_path / "file").write_text("")
    collection = published.Collection(
        "x", "", ["1"], ["a"], (published.Recording("api", ["a"]),), "made"
    )
    with pytest.raises(UsageError, match="cannot be written"):
        published.save(collection, tmp_path / "file")
    with pytest.raises(DataError, match="holds no data set in FrugalML's layout"):
        list(published.collections("frugalml", tmp_path))
    (tmp_path / "t.csv").write_text("label,x\na,b\n")
    with pytest.raises(UsageError, match=r"named NAME.prediction"):
        list(published.collections("table", tmp_path / "t.csv"))
