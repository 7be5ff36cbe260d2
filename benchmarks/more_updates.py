"""Two more real updates, from packages of the index: sentences, and a classifier of files.

    python benchmarks/more_updates.py FOLDER

downloads (about 250 MB) and writes

    FOLDER/sentences.parquet   tweets and product reviews, rated by people, as VADER 3.2.1 and 3.3.2
                               answer (columns vader-V.prediction and vader-V.confidence)
    FOLDER/files.parquet       files of a dozen packages, labelled by the endings of their names, as
                               Magika 0.5.1, 0.6.1 and 0.6.3 answer (magika-V.prediction, .confidence)

No constant of masa was chosen on them. They hold no texts: `benchmarks/sharper.py` reads them.
"""

import io
import json
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

SENTIMENT = ("3.2.1", "3.3.2")
MAGIKA = ("0.5.1", "0.6.1", "0.6.3")
SOURCES = ("Pygments==2.18.0", "Sphinx==8.1.3", "Django==5.1.4")
WHEELS = (
    "ansible==10.7.0",
    "jupyterlab==4.3.4",
    "bokeh==3.6.2",
    "matplotlib==3.9.4",
    "scikit-learn==1.5.2",
    "scipy==1.14.1",
    "notebook==7.3.2",
    "nltk==3.9.1",
    "mercurial==6.9",
)
FEWEST, MOST = 12, 300
"""An ending needs so many files, and so many of them are taken."""

KINDS = {
    "bat": "batch",
    "docker": "dockerfile",
    "gz": "gzip",
    "h": "c",
    "j2": "jinja",
    "js": "javascript",
    "md": "markdown",
    "ps1": "powershell",
    "pxd": "python",
    "py": "python",
    "pyi": "python",
    "pyx": "python",
    "rb": "ruby",
    "rs": "rust",
    "sh": "shell",
    "so": "elf",
    "ts": "typescript",
    "yml": "yaml",
}
"""What Magika calls the kinds of files with these endings; the others are called by their ending."""

LONGEST = 200_000
"""Longer files are left out."""

RATED = ("tweets_GroundTruth.txt", "amazonReviewSnippets_GroundTruth.txt")
NEUTRAL = 0.4
"""Ratings go from -4 to 4; nearer to 0 than this is neutral, as is a compound score below 0.05."""

SCORE = """
import json, sys
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
judge = SentimentIntensityAnalyzer()
json.dump([judge.polarity_scores(text)["compound"] for text in json.load(sys.stdin)], sys.stdout)
"""
IDENTIFY = """
import json, sys
from pathlib import Path
from magika import Magika
judge, said = Magika(), []
for path in json.load(sys.stdin):
    found = judge.identify_bytes(Path(path).read_bytes())
    output = found.output
    said.append([str(getattr(output, "ct_label", None) or output.label), float(getattr(output, "score", None) or found.score)])
json.dump(said, sys.stdout)
"""


def fetched(requirement: str, folder: Path, kind: str) -> Path:
    """Download one package."""
    into = folder / requirement.replace("==", "-")
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(into)]
    subprocess.run([*pip, kind, ":all:", requirement], check=True)
    return next(into.iterdir())


def environment(requirement: str, folder: Path) -> Path:
    """Install a package in an environment of its own and give its Python."""
    where = folder / f"env-{requirement.replace('==', '-')}"
    venv.create(where, with_pip=True)
    python = where / "bin" / "python"
    # VADER imports requests and does not say so.
    subprocess.run([python, "-m", "pip", "install", "-q", requirement, "requests"], check=True)
    return python


def asked(python: Path, code: str, items: Iterable[object]) -> list[object]:
    """Let a program in another environment answer."""
    given = json.dumps(list(items))
    done = subprocess.run(
        [python, "-c", code], input=given, check=True, capture_output=True, text=True
    )
    return list(json.loads(done.stdout))


def sentences(work: Path) -> Iterator[dict[str, object]]:
    """Give the rated sentences and what both versions say."""
    source = fetched(f"vaderSentiment=={SENTIMENT[1]}", work, "--no-binary")
    with tarfile.open(source) as outer:
        inner = next(name for name in outer.getnames() if name.endswith("hutto_ICWSM_2014.tar.gz"))
        content = outer.extractfile(inner)
        assert content is not None
        with tarfile.open(fileobj=io.BytesIO(content.read())) as rated:
            rows = [row for name in RATED for row in _rated(rated, name)]
    texts = [text for _, _, text in rows]
    said = {}
    for version in SENTIMENT:
        python = environment(f"vaderSentiment=={version}", work)
        said[version] = [float(str(score)) for score in asked(python, SCORE, texts)]
    for number, (key, rating, _) in enumerate(rows):
        row: dict[str, object] = {"id": key, "label": _sentiment(rating / 4.0, NEUTRAL / 4.0)}
        for version in SENTIMENT:
            compound = said[version][number]
            row[f"vader-{version}.prediction"] = _sentiment(compound, 0.05)
            row[f"vader-{version}.confidence"] = abs(compound)
        yield row


def _rated(rated: tarfile.TarFile, name: str) -> Iterator[tuple[str, float, str]]:
    inside = next(one for one in rated.getnames() if one.endswith(f"/{name}") and "/._" not in one)
    content = rated.extractfile(inside)
    assert content is not None
    for line in content.read().decode("utf-8", "replace").splitlines():
        key, rating, text = line.split("\t", 2)
        yield f"{name.split('_', maxsplit=1)[0]}-{key}", float(rating), text


def _sentiment(score: float, limit: float) -> str:
    if score >= limit:
        return "positive"
    return "negative" if score <= -limit else "neutral"


def files(work: Path) -> Iterator[dict[str, object]]:
    """Give the files by their endings and what all versions say."""
    packages = [fetched(one, work, "--no-binary") for one in SOURCES]
    packages += [fetched(one, work, "--only-binary") for one in WHEELS]
    found: dict[str, dict[bytes, str]] = defaultdict(dict)
    for package in packages:
        for name, content in _members(package):
            ending = Path(name).suffix.lower()
            if ending and 0 < len(content) <= LONGEST:
                found[ending].setdefault(content, f"{package.name}/{name}")
    chosen: list[tuple[str, str, Path]] = []
    for ending, contents in sorted(found.items()):
        if len(contents) < FEWEST:
            continue
        every = sorted(contents.items(), key=lambda one: one[1])
        step = max(1.0, len(every) / MOST)
        for number in range(min(MOST, len(every))):
            content, name = every[int(number * step)]
            path = work / "files" / f"{len(chosen)}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            chosen.append((name, ending, path))
    said = {}
    for version in MAGIKA:
        python = environment(f"magika=={version}", work)
        said[version] = asked(python, IDENTIFY, (str(path) for _, _, path in chosen))
    for number, (name, ending, _) in enumerate(chosen):
        row: dict[str, object] = {"id": name, "label": KINDS.get(ending[1:], ending[1:])}
        for version in MAGIKA:
            answer = said[version][number]
            assert isinstance(answer, list)
            row[f"magika-{version}.prediction"], row[f"magika-{version}.confidence"] = answer
        yield row


def _members(package: Path) -> Iterator[tuple[str, bytes]]:
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
        return
    with tarfile.open(package) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content.read()


def written(rows: Iterator[dict[str, object]], path: Path) -> None:
    """Write rows to a Parquet file."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as lines:
        for row in rows:
            lines.write(json.dumps(row) + "\n")
        lines.flush()
        duckdb.sql(
            f"COPY (SELECT * FROM read_json('{lines.name}', format = 'newline_delimited', sample_size = -1)) TO '{path}' (FORMAT parquet)"
        )
    print(f"{path}: {duckdb.read_parquet(str(path)).shape[0]:,} items")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        written(sentences(Path(work)), folder / "sentences.parquet")
        written(files(Path(work)), folder / "files.parquet")


if __name__ == "__main__":
    main()
