"""Findings of the experiments as files: CSV tables, charts, and pages that stand on their own."""

import csv
import html
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from masa.errors import UsageError
from masa.report import chart
from masa.report.words import written
from masa.research import figures
from masa.research.finding import Finding, Sheet

MOST_ROWS = 60
"""Rows that a page shows at most; longer tables are in their CSV file only."""

CSS = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; max-width: 70rem; margin: 2rem auto; \
padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } p { max-width: 46rem; }
.wide { overflow-x: auto; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; \
vertical-align: bottom; }
th { font-weight: 600; } th:first-child, td:first-child { text-align: left; white-space: nowrap; }
.skipped { background: #fff4d6; padding: .6rem 1rem; border-left: 4px solid #e69f00; }
"""


def check(folder: Path) -> None:
    """Refuse a folder that cannot be made and a missing chart package, before long work begins."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise UsageError(
            f"{folder} cannot be made: {exc.strerror or exc}", hint="give another folder with --out"
        ) from exc
    chart.check(folder / "chart.svg")


def write(finding: Finding, folder: Path, *, origin: str = "") -> list[Path]:
    """Write a finding's tables, chart and page, and return the files.

    Files of an earlier finding of the same name are deleted first.
    """
    with _write_errors_translated(folder):
        # An experiment that is skipped now leaves no tables of before behind.
        for old in (*folder.glob(f"{finding.what}.*"), *folder.glob(f"{finding.what}-*.csv")):
            old.unlink(missing_ok=True)
        files = [
            _write_text(folder / _csv_name(finding, sheet), as_csv(sheet))
            for sheet in finding.sheets
        ]
        files += _write_chart(finding, folder)
        picture = ""
        svg = folder / f"{finding.what}.svg"
        if svg in files:
            picture = svg.read_text(encoding="utf-8")
        text = page(finding, picture, origin=origin)
        files.append(_write_text(folder / f"{finding.what}.html", text))
        return files


def contents(findings: Sequence[Finding], folder: Path) -> Path:
    """Write the page that links to these findings and to earlier ones in the same folder."""
    titles = {}
    for finding in findings:
        titles[finding.what] = finding.title
        if finding.skipped:
            titles[finding.what] += " (skipped)"
    with _write_errors_translated(folder):
        for path in sorted(folder.glob("*.html")):
            # Other pages may lie in the folder, too: only experiments are linked.
            if path.stem not in figures.DRAWN:
                continue
            title = re.search(r"<title>(.*?)</title>", path.read_text(encoding="utf-8"))
            if title:
                titles.setdefault(path.stem, html.unescape(title[1]))
        # In the order of `masa reproduce all`.
        listed = sorted(titles, key=list(figures.DRAWN).index)
        lines = "".join(
            f'<li><a href="{html.escape(what)}.html">{html.escape(titles[what])}</a></li>'
            for what in listed
        )
        return _write_text(
            folder / "index.html",
            _document("Did the Model Change? The study, reproduced", f"<ul>{lines}</ul>"),
        )


@contextmanager
def _write_errors_translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise UsageError(
            f"{folder} cannot be written to: {exc.strerror or exc}",
            hint="give another folder with --out",
        ) from exc


def _write_text(path: Path, text: str) -> Path:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="")
        return unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write_chart(finding: Finding, folder: Path) -> list[Path]:
    """Write a finding's chart as SVG and PNG, if it has one."""
    drawn = figures.draw(finding)
    if drawn is None:
        return []
    files = []
    for ending in (".svg", ".png"):
        # Written beside and then moved into place: a reader never sees half a file.
        unfinished = folder / f".{finding.what}.{os.getpid()}{ending}"
        chart.save(drawn, unfinished)
        files.append(unfinished.replace(folder / f"{finding.what}{ending}"))
    return files


def _csv_name(finding: Finding, sheet: Sheet) -> str:
    if sheet.name == finding.what:
        return f"{finding.what}.csv"
    return f"{finding.what}-{sheet.name}.csv"


def page(finding: Finding, picture: str = "", *, origin: str = "") -> str:
    """Write a finding as a page: its chart (SVG), words and tables."""
    parts = []
    if finding.skipped:
        parts.append(f'<p class="skipped">Skipped. {html.escape(finding.skipped)}</p>')
    if picture:
        parts.append(f'<div class="wide">{picture}</div>')
    parts += [f"<p>{html.escape(words)}</p>" for words in finding.words]
    for sheet in finding.sheets:
        file = html.escape(_csv_name(finding, sheet))
        link = f'<a href="{file}">{file}</a>'
        if len(sheet.rows) > MOST_ROWS:
            parts.append(f"<p>{len(sheet.rows):,} rows: {link}</p>")
        else:
            parts.append(f"<h2>{link}</h2>{_table(sheet)}")
    if origin:
        parts.append(f"<p>Made by masa: {html.escape(origin)}.</p>")
    return _document(
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
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _document(title: str, body: str) -> str:
    name = html.escape(title)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{name}</title><style>{CSS}</style></head>"
        f"<body><h1>{name}</h1>{body}</body></html>\n"
    )
