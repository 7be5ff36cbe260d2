"""Reading and checking data files."""

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import masa
from masa.data.dataset import Dataset, read
from masa.data.files import Table
from masa.errors import DataError

CSV = "id,label,new,hard,text\n1,yes,yes,0.5,a\n2,no,yes,0.25,b\n3,no,no,1,c\n"


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(path: Path, sql: str) -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({sql}) TO '{path}'")
    return path


def refusal(source: Path | str, **columns: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(source, **{"label": "label", **columns})
    return f"{caught.value.message} / {caught.value.hint}"


def test_the_same_rows_read_the_same_from_every_kind_of_file(tmp_path: Path) -> None:
    csv = write(tmp_path / "a.csv", CSV)
    rows = f"SELECT * FROM read_csv('{csv}', types={{'label': 'VARCHAR', 'new': 'VARCHAR'}})"
    files = [
        csv,
        write(tmp_path / "b.csv.gz", gzip.compress(CSV.encode())),
        write(tmp_path / "c.tsv", CSV.replace(",", "\t")),
        write(tmp_path / "d.csv", CSV.replace(",", ";").replace("\n", "\r\n")),
        write(tmp_path / "f.csv", b"\n\n" + CSV.encode("utf-8-sig")[3:]),
        write(tmp_path / "g.csv", CSV.encode("utf-8-sig")),
        table(tmp_path / "h.parquet", rows),
        table(tmp_path / "i.json", rows).rename(tmp_path / "i.jsonl"),
    ]
    data = [
        read(file, label="label", id="id", predictions=["new"], difficulty="hard") for file in files
    ]
    for one in data:
        assert [one.label.values[code] for code in one.label.codes] == ["yes", "no", "no"]
        assert [one.predictions["new"].values[code] for code in one.predictions["new"].codes] == [
            "yes",
            "yes",
            "no",
        ]
        assert one.difficulty is not None
        assert one.difficulty.tolist() == [0.5, 0.25, 1.0]
    assert len({one.fingerprint() for one in data}) == 1


def test_a_glob_and_a_folder_read_all_their_files(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "label,id\na,1\nb,2\n")
    write(tmp_path / "2.csv", "id,label\n3,c\n")
    write(tmp_path / "_SUCCESS", "")
    for source in (tmp_path, tmp_path / "*.csv", f"{tmp_path}/[12].csv"):
        data = read(source, label="label", id="id")
        assert [data.label.values[code] for code in data.label.codes] == ["a", "b", "c"]


def test_a_file_name_with_a_pattern_in_it_is_that_file(tmp_path: Path) -> None:
    name = tmp_path / "what's [1]*?.csv"
    write(name, "label\nx\n")
    write(tmp_path / "what's 1xx.csv", "label\ny\n")
    assert read(name, label="label").label.values == ("x",)


def test_labels_of_any_type_and_script_are_compared_as_text(tmp_path: Path) -> None:
    data = read(
        table(
            tmp_path / "a.parquet", "SELECT unnest([true, false]) AS label, unnest([1, 0]) AS new"
        ),
        label="label",
    )
    assert data.label.values == ("false", "true")
    texts = [
        "猫",
        "كلب",
        "007",
        "7",
        " 7",
        "null",
        "NA",
        "İ",
        "a\u0301",
        "á",
        "<b>&",
        "x'y\"z",
        "🙂",
    ]
    content = "label\n" + "".join('"' + text.replace('"', '""') + '"\n' for text in texts)
    assert set(read(write(tmp_path / "b.csv", content), label="label").label.values) == set(texts)


def test_whole_floats_are_whole_numbers_and_a_hole_is_no_answer(tmp_path: Path) -> None:
    """A column of integers with a missing value reaches many files as 0.0, 1.0, NaN."""
    file = table(
        tmp_path / "a.parquet",
        "SELECT unnest([0, 1, 2]) AS label, unnest([0.0::DOUBLE, 123456789, 'nan']) AS new",
    )
    data = read(file, label="label", predictions=["new"])
    assert data.predictions["new"].values == ("0", "123456789", "<invalid>")
    assert any("no prediction for 1 of 3 items" in note for note in data.notes)


def test_whole_floats_in_csv_are_whole_numbers_too(tmp_path: Path) -> None:
    """One file written with integers, one with floats, as happens when a prediction is missing."""
    write(tmp_path / "1.csv", "label,new\n1,0\n0,0\n")
    write(tmp_path / "2.csv", "label,new\n1.0,0.0\n0.0,\n-3.0,2.5\n")
    data = read(tmp_path, label="label", predictions=["new"])
    assert data.label.values == ("-3", "0", "1")
    assert data.predictions["new"].values == ("0", "2.5", "<invalid>")


def test_columns_in_memory_follow_the_rules_of_files() -> None:
    import pandas as pd

    answers = [
        1.0,
        2,
        True,
        np.float64(3),
        np.bool_(False),
        "x",
        "",
        None,
        float("nan"),
        pd.NA,
        pd.NaT,
        np.str_("y"),
    ]
    column = Dataset.of(["a"] * len(answers), predictions={"p": answers}).predictions["p"]
    texts = [column.values[code] for code in column.codes]
    assert texts == ["1", "2", "true", "3", "false", "x", *["<invalid>"] * 5, "y"]


def test_whole_numbers_sort_by_size() -> None:
    assert Dataset.of([10, 9, -1]).label.values == ("-1", "9", "10")


def test_fingerprints_tell_contents_apart_but_not_orders_of_rows(tmp_path: Path) -> None:
    lines = [f"{i},{'ab'[i % 2]},{i / 7}" for i in range(50)]
    shuffled = random.Random(0).sample(lines, len(lines))
    head = "id,label,hard\n"

    def fingerprint(rows: list[str], name: str, **columns: Any) -> str:
        file = write(tmp_path / name, head + "\n".join(rows) + "\n")
        return read(file, label="label", difficulty="hard", **columns).fingerprint()

    same = fingerprint(lines, "a.csv", id="id")
    assert fingerprint(shuffled, "b.csv", id="id") == same
    assert fingerprint(shuffled, "c.csv") != fingerprint(lines, "d.csv")
    for place, other in ((0, "0,b,0.0"), (7, "7,b,1.0000001"), (3, "99,b,0.42857142857142855")):
        assert fingerprint([*lines[:place], other, *lines[place + 1 :]], "e.csv", id="id") != same
    assert fingerprint(lines[:-1], "f.csv", id="id") != same


def test_names_that_differ_only_in_case_or_mean_something_to_the_database_are_columns_like_others(
    tmp_path: Path,
) -> None:
    names = [
        "Label",
        "label",
        "LABEL",
        "rowid",
        "place",
        "t0",
        "n0",
        "rows",
        'a"b',
        "x'y",
        "select",
    ]
    rows = [[f"{column}{row}" for column in range(len(names))] for row in range(3)]
    header = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    file = write(tmp_path / "a.csv", "\n".join([header, *(",".join(row) for row in rows)]) + "\n")
    for ids in (None, "rowid"):
        data = read(file, label="Label", id=ids, predictions=names[1:])
        for place, name in enumerate(names[1:], start=1):
            column = data.predictions[name]
            assert [column.values[code] for code in column.codes] == [row[place] for row in rows]
    assert "row 2: no value in column 'Label'" in refusal(
        write(tmp_path / "b.csv", "Label,rowid\na,x\n,y\n"), label="Label"
    )
    twins = write(tmp_path / "c.jsonl", '{"Label": "a", "label": "b"}\n')
    assert "differs only in case" in refusal(twins)
    assert "differs only in case" in refusal(twins, label="Label")
    assert read(
        write(tmp_path / "d.jsonl", '{"x": "a", "X_1": "b"}\n'), label="X_1"
    ).label.values == ("b",)


def test_json_keys_are_columns_however_many_and_whatever_they_are_called(tmp_path: Path) -> None:
    wide = {"label": "a", **{f"k{place}": "v" for place in range(400)}}
    assert len(Table.open(write(tmp_path / "a.jsonl", json.dumps(wide) + "\n")).columns) == 401
    array = '[{"label": "a", "new": "b", "new_2": "c"},\n {"label": "b", "new": "b", "new_2": "b"}]'
    for content in (
        array,
        "\n" * 3 + array,
        '{"label": "a", "new": "x"}\n' * 1500 + '{"label": "a", "new_2": "c"}\n',
    ):
        data = read(write(tmp_path / "b.json", content), label="label", predictions=["new_2"])
        assert "c" in data.predictions["new_2"].values
    packed = gzip.compress('{"label": "a"}\n'.encode("utf-8-sig"))
    assert read(write(tmp_path / "c.jsonl", packed), label="label").label.values == ("a",)


def test_whole_floats_beside_text_in_json_are_whole_numbers(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"label": 1, "new": "none"}\n{"label": 2, "new": 2.0}\n')
    assert read(file, label="label", predictions=["new"]).predictions["new"].values == ("2", "none")


def test_a_folder_named_like_a_column_is_only_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "label=zzz"
    folder.mkdir()
    table(folder / "a.parquet", "SELECT 'a' AS label")
    write(folder / "b.jsonl", '{"label": "a"}\n')
    write(folder / "c.csv", "label\na\n")
    for name in ("a.parquet", "b.jsonl", "c.csv"):
        assert read(folder / name, label="label").label.values == ("a",)


def test_an_empty_text_is_no_answer_in_every_kind_of_file(tmp_path: Path) -> None:
    files = [
        table(tmp_path / "a.parquet", "SELECT 'a' AS label, '' AS new"),
        write(tmp_path / "b.jsonl", '{"label": "a", "new": ""}\n'),
        write(tmp_path / "c.csv", 'label,new\na,""\n'),
    ]
    data = [read(file, label="label", predictions=["new"]) for file in files]
    assert {one.predictions["new"].values for one in data} == {("<invalid>",)}
    assert len({one.fingerprint() for one in data}) == 1


def test_complaints_do_not_quote_what_stands_in_the_file(tmp_path: Path) -> None:
    secret = "my card is 4111"
    texts = "".join(f'"{secret} {row}",a\n' for row in range(1100))
    assert secret not in refusal(write(tmp_path / "a.csv", "label,new\n" + texts))
    assert secret not in refusal(write(tmp_path / "b.csv", f'label,new\n"{secret}",a,b\n'))
    twice = write(tmp_path / "e.jsonl", f'{{"label": "a", "text": "{secret}", "label": "b"}}\n')
    assert secret not in refusal(twice)
    broken = (
        table(tmp_path / "c.parquet", f"SELECT '{secret} xyz' AS label FROM range(3)")
        .read_bytes()
        .replace(b"xyz", b"x\xffz")
    )
    assert secret not in refusal(write(tmp_path / "d.parquet", broken))


def test_items_are_numbered_by_their_ids(tmp_path: Path) -> None:
    """The same rows in another order are the same items: a journal of items stays true."""
    lines = [f"{i},{'ab'[i % 2]}" for i in range(200)]
    one = write(tmp_path / "a.csv", "id,label\n" + "\n".join(lines) + "\n")
    other = write(tmp_path / "b.csv", "id,label\n" + "\n".join(reversed(lines)) + "\n")
    first, second = (read(file, label="label", id="id") for file in (one, other))
    assert first.ids is not None
    assert second.ids is not None
    assert first.ids.tolist() == second.ids.tolist() == sorted(map(str, range(200)))
    assert first.label.codes.tolist() == second.label.codes.tolist()


def test_a_missing_column_suggests_the_nearest(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", CSV)
    assert "no column 'lable' / did you mean 'label'?" in refusal(file, label="lable")
    assert "did you mean 'label'?" in refusal(file, label="LABEL")
    assert "its columns are 'id', 'label', 'new', 'hard', 'text'" in refusal(file, label="zzzzzz")
    assert Table.open(file).columns == ["id", "label", "new", "hard", "text"]


@pytest.mark.parametrize(
    ("content", "columns", "said"),
    [
        ("", {}, "a.csv is empty"),
        ("id,label\n", {}, "no rows"),
        (
            "id,label\n1,a\n2,\n3,\n",
            {},
            "a.csv, row 2: no value in column 'label' (2 rows have none)",
        ),
        (
            "id,label\n1,a\n2,b\n1,c\n",
            {"id": "id"},
            "a.csv, row 3: column 'id' has '1' again, first in",
        ),
        ("id,label\n1,a\n2,<error>\n", {}, "a.csv, row 2: column 'label' has the value '<error>'"),
        (
            "label,d\na,0.5\nb,abc\n",
            {"difficulty": "d"},
            "a.csv, row 2: column 'd' has 'abc', which is not a number",
        ),
        (
            "label,d\na,0.5\nb,NaN\n",
            {"difficulty": "d"},
            "a.csv, row 2: column 'd' has 'NaN', which is not a number",
        ),
        ("label,d\na,0.5\nb,\n", {"difficulty": "d"}, "a.csv, row 2: column 'd' has no value"),
        (
            "label,d\na,0.5\nb,-1\n",
            {"cost": "d"},
            "row 2: column 'd' has '-1', which is not a number of 0 or more",
        ),
        (
            "label,d\na,0.5\nb,inf\n",
            {"cost": "d"},
            "row 2: column 'd' has 'inf', which is not a number of 0 or more",
        ),
        (
            "id,label\n1,a\n2,b,c\n",
            {},
            "a.csv, near line 3: 3 columns where the header has 2 / quote texts",
        ),
        (
            "id,label\n1,a\n2\n",
            {},
            "a.csv, near line 3: 1 columns where the header has 2 / fill in",
        ),
        ('label,d\na,"0,5"\n', {"difficulty": "d"}, "write decimals with a point"),
        ('id,label\n1,"a\n2,b\n', {}, "a.csv, near line 2: a quote is opened and not closed"),
        ("label,label\na,b\n", {}, "column 'label' of"),
        (b"id,label\n1,caf\xe9\n", {}, "UTF-8"),
        (b"id,label\n" + b"1,a\n" * 50_000 + b"2,\xff\n", {}, "a.csv, near line 50,002: not UTF-8"),
        (
            "label\n" + "\n".join(f"l{i}" for i in range(1001)),
            {},
            "more than 1,000 different values",
        ),
    ],
)
def test_bad_files_are_refused_with_the_place(
    tmp_path: Path, content: str | bytes, columns: dict[str, str], said: str
) -> None:
    assert said in refusal(write(tmp_path / "a.csv", content), **columns)


def test_the_place_is_right_in_the_second_file_too(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "label,id\na,1\nb,2\n")
    write(tmp_path / "2.csv", "id,label\n3,c\n4,\n")
    write(tmp_path / "3.csv", "id,label\n5,c\n")
    assert f"{tmp_path / '2.csv'}, row 2: no value" in refusal(tmp_path)


def test_files_that_are_not_what_their_name_says_are_refused(tmp_path: Path) -> None:
    assert "magic bytes" in refusal(write(tmp_path / "a.parquet", "PAR1 not really"))
    assert "b.jsonl, line 2: not JSON" in refusal(
        write(tmp_path / "b.jsonl", '{"label": "x"}\n{"label": \n')
    )
    assert "c.jsonl, line 2: not UTF-8" in refusal(
        write(tmp_path / "c.jsonl", b'{"label": "x"}\n{"label": "\xff"}\n')
    )
    assert "d.jsonl, line 1: not a JSON object" in refusal(write(tmp_path / "d.jsonl", "3\n"))
    assert "cannot be read" in refusal(write(tmp_path / "c.csv.gz", b"\x1f\x8b\x08\x00broken"))
    assert "kind of file" in refusal(write(tmp_path / "d.xlsx", "x"))
    assert "does not exist / did you mean" in refusal(tmp_path / "d.xls")
    assert "no file matches" in refusal(tmp_path / "x*.csv")
    assert "is not a file" in refusal("/dev/null")
    assert "is in UTF-16" in refusal(write(tmp_path / "g.csv", CSV.encode("utf-16")))
    for content in ("", "\n", "[]", "[1, 2]"):
        assert "holds no JSON objects" in refusal(write(tmp_path / "h.jsonl", content))
    assert "several kinds" in refusal(tmp_path)
    odd = os.fsdecode(b"\xff\xfe.csv")
    assert "not UTF-8" in refusal(write(tmp_path / odd, CSV))
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no data files" in refusal(empty)
    assert "lists, objects or bytes" in refusal(
        table(tmp_path / "e.parquet", "SELECT [1] AS label")
    )
    assert "lists, objects or bytes" in refusal(
        write(tmp_path / "f.jsonl", '{"label": {"a": 1}}\n')
    )


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", CSV)
    file.chmod(0)
    if os.access(file, os.R_OK):
        file.unlink()
        file.symlink_to(
            tmp_path / "nowhere.csv"
        )  # Root may read anything; a dangling link it may not.
        assert "does not exist" in refusal(file)
    else:
        assert "cannot be read" in refusal(file)


def test_predictions_that_only_look_like_labels_are_pointed_out(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "label,case,float,other\nyes,Yes,1.0,x\nno,no,0.0,y\n")
    notes = " ".join(read(file, label="label", predictions=["case", "other"]).notes)
    assert "'case' has the prediction 'Yes', which is not the label 'yes'" in notes
    assert "no prediction in 'other' is one of the labels" in notes


def test_a_label_seen_once_is_pointed_out(tmp_path: Path) -> None:
    data = read(write(tmp_path / "a.csv", "label\na\na\nb\n"), label="label")
    assert data.notes == ("only one item has the label 'b'; it is a stratum of its own",)


def test_only_the_named_columns_are_read(tmp_path: Path) -> None:
    """Invalid values elsewhere do not matter, and a column may serve twice."""
    file = write(tmp_path / "a.csv", "label,junk,n\n3,\n".replace("3,", "3,,") + "1,x,nan\n")
    data = read(file, label="label", difficulty="label")
    assert data.difficulty is not None
    assert data.difficulty.tolist() == [3.0, 1.0]


def test_columns_in_memory_are_checked_too() -> None:
    for label, difficulty in (
        ([], None),
        (["a", None], None),
        (["<error>"], None),
        (["a", "b"], [1.0]),
        (["a"], [float("nan")]),
    ):
        with pytest.raises(DataError):
            Dataset.of(label, difficulty=difficulty)
    assert len(Dataset.of(np.array([1, 2]).tolist(), predictions={"p": [1, 3]})) == 2


def test_a_reserved_name_is_no_answer() -> None:
    data = Dataset.of(
        ["a", "b"] * 30, predictions={"old": ["a", "<unlabelled>"] * 30, "new": ["a", "b"] * 30}
    )
    assert data.predictions["old"].values == ("a", "<invalid>")
    assert masa.assess(data, "replay:new", baseline="old", budget=30, store=None).shift is not None
