"""masa import: what a judge graded is graded again; tables keep what an API is shown."""

import json
import re
from pathlib import Path

import pytest

from command_line import run
from doubled import variables
from masa.doubles.language_models import OpenAI, Spoken
from masa.doubles.server import KEY
from masa.graded import LAYOUTS, Wanted

EXPORT = Path(__file__).parents[1] / "graded" / "exports" / "promptfoo-0.121.20.json"


def test_a_judge_that_changed_is_told_from_one_that_did_not(tmp_path: Path) -> None:
    graded = {one.asked: one.grade for one in LAYOUTS["promptfoo"](EXPORT, Wanted()).grades}
    content = json.loads(EXPORT.read_text())
    with OpenAI() as judge, variables({"OPENAI_API_KEY": KEY}):

        def grade(prompt: str, _: str) -> Spoken:
            strict = judge.updated and "gift" not in prompt
            said = {"reason": "{so}", "pass": graded[prompt] == "pass" and not strict}
            return Spoken(f"```json\n{json.dumps(said)}\n```")

        judge.says = grade
        content["config"]["defaultTest"]["options"]["provider"]["config"]["apiBaseUrl"] = (
            f"{judge.url}/v1"
        )
        for result in content["results"]["results"]:
            del result["testCase"]["options"]
        (tmp_path / "shop.json").write_text(json.dumps(content))
        done = run("import", "promptfoo", "shop.json", "--out", "graded", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "16 graded outputs, 12 of them by a person, too" in done.stdout
        again = run("import", "promptfoo", "shop.json", "--out", "graded", cwd=tmp_path)
        assert (again.returncode, "--force" in again.stderr) == (2, True)
        words = ["--config", "graded/shop.toml", "--json"]
        refused = run("validate", *words, "--ask", "1", "--yes", cwd=tmp_path)
        assert refused.returncode == 2
        assert "OPENAI_API_KEY is not declared" in refused.stdout
        assert not judge.calls
        config = tmp_path / "graded" / "shop.toml"
        config.write_text(config.read_text().replace("# secrets =", "secrets ="))
        asked = run("validate", *words, "--ask", "1", "--yes", cwd=tmp_path)
        assert json.loads(asked.stdout)["answers"][0]["prediction"] in ("pass", "fail")
        same = json.loads(run("assess", *words, cwd=tmp_path).stdout)
        assert (same["moved"], same["changed"]["differing"]) == ("no sign", 0)
        judge.updated = True
        now = json.loads(run("assess", *words, "--fresh", cwd=tmp_path).stdout)
        assert now["moved"] == "yes"
        assert now["verdict"] != "unchanged"
        assert now["changed"]["differing"] > 2


def test_options_of_other_layouts_are_refused(tmp_path: Path) -> None:
    for words in (
        ("promptfoo", str(EXPORT), "--name", "x"),
        ("promptfoo", str(EXPORT), "--pass-at", "1"),
        ("table", str(EXPORT), "--score", "x"),
    ):
        done = run("import", *words, cwd=tmp_path)
        assert (done.returncode, "leave out" in done.stderr or "layouts are" in done.stderr) == (
            2,
            True,
        ), done.stderr
    assert not (tmp_path / "masa-data").exists()


def test_the_configuration_for_a_judge_whose_prompt_is_not_known_says_so(tmp_path: Path) -> None:
    rows = [
        {"id": f"t{n}", "input": f"q{n}", "output": "a", "scores": [score]}
        for n, score in enumerate(
            {"name": "help", "value": 1 + n % 5, "source": "EVAL", "dataType": "NUMERIC"}
            for n in range(20)
        )
    ]
    (tmp_path / "traces.json").write_text(json.dumps({"data": rows}))
    done = run("import", "langfuse", "traces.json", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["data"][0]["as_asked"] is False
    text = (tmp_path / "masa-data" / "help.toml").read_text()
    assert '\n# old = "judge.prediction"' in text
    assert '# model = "..."' in text
    assert 'name = "help"' in text
    refused = run("validate", "--config", "masa-data/help.toml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "[api] needs 'model'" in refused.stderr
    config = tmp_path / "masa-data" / "help.toml"
    config.write_text(text.replace('# model = "..."', 'model = "judge-1"'))
    with variables({"OPENAI_API_KEY": KEY}):
        done = run("validate", "--config", "masa-data/help.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"data +20 items, 5 labels", done.stdout)


@pytest.mark.parametrize("keep", [True, False])
def test_a_table_keeps_the_columns_that_are_named(tmp_path: Path, keep: bool) -> None:
    lines = [
        "id,label,question,judge.prediction",
        "1,pass,What is it?,pass",
        "2,fail,Why is it?,pass",
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    words = ("--input", "question") if keep else ()
    done = run("import", "table", "t.csv", "--id", "id", *words, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file = json.loads(done.stdout)["data"][0]["file"]
    done = run("init", file, "--api", "openai", "--yes", cwd=tmp_path)
    assert ('input = "question"' in (tmp_path / "masa.toml").read_text()) == keep


def test_a_table_of_grades_says_how_its_judge_is_asked_again(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("id,human,output,grade\n1,pass,Hi,pass\n2,fail,Go,fail\n")
    words = ("--label", "human", "--id", "id", "--answers", "judge=grade", "--input", "output")
    done = run("import", "table", "g.csv", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if "masa init" in line)
    done = run(*line.split()[1:], "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with variables({"OPENAI_API_KEY": KEY}):
        done = run("validate", cwd=tmp_path)
    assert "the column 'judge.prediction'" in done.stdout
