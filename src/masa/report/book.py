"""What the experiments found, as files: CSV for every table, charts, and pages that need nothing else to be read."""

import csv
import html
import io
from collections.abc import Sequence
from pathlib import Path

from masa.errors import MissingPackageError, UsageError
from masa.records import Finding, Sheet
from masa.report import chart, figures, written

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
        raise UsageError(f"{folder} cannot be made: {exc.strerror or exc}", hint="give another folder with --out") from exc
    chart.check(folder / "chart.svg")


def write(finding: Finding, folder: Path) -> list[Path]:
    """Write an experiment's tables, its chart and its page, and give what was written."""
    written = []
    try:
        for sheet in finding.sheets:
            path = folder / (f"{finding.what}.csv" if sheet.name == finding.what else f"{finding.what}-{sheet.name}.csv")
            path.write_text(as_csv(sheet), encoding="utf-8", newline="")
            written.append(path)
        drawn = figures.draw(finding)
        picture = ""
        if drawn is not None:
            for ending in (".svg", ".png"):
                path = folder / f"{finding.what}{ending}"
                chart.save(drawn, path)
                written.append(path)
            picture = (folder / f"{finding.what}.svg").read_text(encoding="utf-8")
        path = folder / f"{finding.what}.html"
        path.write_text(page(finding, picture), encoding="utf-8")
        written.append(path)
    except OSError as exc:
        raise UsageError(f"{folder} cannot be written to: {exc.strerror or exc}", hint="give another folder with --out") from exc
    except ImportError as exc:
        raise MissingPackageError("charts need a package that is not there", hint="pip install altair vl-convert-python") from exc
    return written


def contents(findings: Sequence[Finding], folder: Path) -> Path:
    """Write the page that leads to the others."""
    lines = []
    for finding in findings:
        name = html.escape(finding.title)
        lines.append(f'<li><a href="{html.escape(finding.what)}.html">{name}</a>{" (skipped)" if finding.skipped else ""}</li>')
    path = folder / "index.html"
    path.write_text(_whole("Did the Model Change? The study, reproduced", f"<ul>{''.join(lines)}</ul>"), encoding="utf-8")
    return path


def page(finding: Finding, picture: str = "") -> str:
    """Write an experiment as a page: words, the chart (SVG), the tables."""
    parts = [f'<p class="skipped">Skipped. {html.escape(finding.skipped)}</p>'] if finding.skipped else []
    parts += [f'<div class="wide">{picture}</div>'] if picture else []
    parts += [f"<p>{html.escape(words)}</p>" for words in finding.words]
    for sheet in finding.sheets:
        file = f"{finding.what}.csv" if sheet.name == finding.what else f"{finding.what}-{sheet.name}.csv"
        link = f'<a href="{html.escape(file)}">{html.escape(file)}</a>'
        if len(sheet.rows) > MOST_ROWS:
            parts.append(f"<p>{len(sheet.rows):,} rows: {link}</p>")
        else:
            parts.append(f"<h2>{link}</h2>{_table(sheet)}")
    return _whole(finding.title, "\n".join(parts) + '<p><a href="index.html">All experiments</a></p>')


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
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(written(value))}</td>" for value in row) + "</tr>" for row in sheet.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _whole(title: str, body: str) -> str:
    name = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{name}</title><style>{CSS}</style></head><body><h1>{name}</h1>{body}</body></html>\n"
    )
