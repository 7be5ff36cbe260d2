"""What the experiments found, as files: CSV for every table, charts, and pages that need nothing else to be read."""

import csv
import html
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

from masa.errors import UsageError
from masa.report import chart
from masa.report.words import written
from masa.research import figures
from masa.research.finding import Finding, Sheet

MOST_ROWS = 60
"""Longer tables are in their CSV file only."""

CSS = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } p { max-width: 46rem; }
.wide { overflow-x: auto; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; vertical-align: bottom; }
th { font-weight: 600; } th:first-child, td:first-child { text-align: left; white-space: nowrap; }
.skipped { background: #fff4d6; padding: .6rem 1rem; border-left: 4px solid #e69f00; }
"""


def check(folder: Path) -> None:
    """Refuse a place that cannot be written to and a missing package, before any long work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise UsageError(
            f"{folder} cannot be made: {exc.strerror or exc}", hint="give another folder with --out"
        ) from exc
    chart.check(folder / "chart.svg")


def write(finding: Finding, folder: Path, *, origin: str = "") -> list[Path]:
    """Write an experiment's tables, its chart and its page, in place of those of before, and give what was written."""
    try:
        for old in (*folder.glob(f"{finding.what}.*"), *folder.glob(f"{finding.what}-*.csv")):
            old.unlink(missing_ok=True)
        files = [
            _put(folder / _csv_name(finding, sheet), as_csv(sheet)) for sheet in finding.sheets
        ]
        drawn = figures.draw(finding)
        picture = ""
        if drawn is not None:
            for ending in (".svg", ".png"):
                # Beside and then into its place: a reader never sees half a file.
                unfinished = folder / f".{finding.what}.{os.getpid()}{ending}"
                chart.save(drawn, unfinished)
                files.append(unfinished.replace(folder / f"{finding.what}{ending}"))
            picture = (folder / f"{finding.what}.svg").read_text(encoding="utf-8")
        return [
            *files,
            _put(folder / f"{finding.what}.html", page(finding, picture, origin=origin)),
        ]
    except OSError as exc:
        raise UsageError(
            f"{folder} cannot be written to: {exc.strerror or exc}",
            hint="give another folder with --out",
        ) from exc


def contents(findings: Sequence[Finding], folder: Path) -> Path:
    """Write the page that leads to these experiments, and to those of before that are in the folder."""
    titles = {
        finding.what: finding.title + (" (skipped)" if finding.skipped else "")
        for finding in findings
    }
    try:
        for path in sorted(folder.glob("*.html")):
            if path.stem in figures.DRAWN and (
                found := re.search(r"<title>(.*?)</title>", path.read_text(encoding="utf-8"))
            ):
                titles.setdefault(path.stem, html.unescape(found[1]))
        listed = sorted(titles, key=list(figures.DRAWN).index)
        lines = "".join(
            f'<li><a href="{html.escape(what)}.html">{html.escape(titles[what])}</a></li>'
            for what in listed
        )
        return _put(
            folder / "index.html",
            _whole("Did the Model Change? The study, reproduced", f"<ul>{lines}</ul>"),
        )
    except OSError as exc:
        raise UsageError(
            f"{folder} cannot be written to: {exc.strerror or exc}",
            hint="give another folder with --out",
        ) from exc


def _put(path: Path, text: str) -> Path:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="")
        return unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _csv_name(finding: Finding, sheet: Sheet) -> str:
    return (
        f"{finding.what}.csv" if sheet.name == finding.what else f"{finding.what}-{sheet.name}.csv"
    )


def page(finding: Finding, picture: str = "", *, origin: str = "") -> str:
    """Write an experiment as a page: words, the chart (SVG), the tables."""
    parts = (
        [f'<p class="skipped">Skipped. {html.escape(finding.skipped)}</p>']
        if finding.skipped
        else []
    )
    parts += [f'<div class="wide">{picture}</div>'] if picture else []
    parts += [f"<p>{html.escape(words)}</p>" for words in finding.words]
    for sheet in finding.sheets:
        file = html.escape(_csv_name(finding, sheet))
        link = f'<a href="{file}">{file}</a>'
        if len(sheet.rows) > MOST_ROWS:
            parts.append(f"<p>{len(sheet.rows):,} rows: {link}</p>")
        else:
            parts.append(f"<h2>{link}</h2>{_table(sheet)}")
    parts += [f"<p>Made by masa: {html.escape(origin)}.</p>"] if origin else []
    return _whole(
        finding.title, "\n".join(parts) + '<p><a href="index.html">All experiments</a></p>'
    )


def as_csv(sheet: Sheet) -> str:
    """Write a table as CSV.

    >>> print(as_csv(Sheet("x", ("case", "queries"), (("a, b", None), ("c", 3)))), end="")
    case,queries
    "a, b",
    c,3
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.strip() for column in sheet.head])
    writer.writerows(sheet.rows)
    return text.getvalue()


def _table(sheet: Sheet) -> str:
    head = "".join(f"<th>{html.escape(column.strip())}</th>" for column in sheet.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(written(value))}</td>" for value in row) + "</tr>"
        for row in sheet.rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _whole(title: str, body: str) -> str:
    name = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{name}</title><style>{CSS}</style></head><body><h1>{name}</h1>{body}</body></html>\n"
    )
