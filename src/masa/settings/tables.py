"""The tables of settings in the docs, derived from the settings."""

import re
from pathlib import Path

from masa.settings.assess import Settings
from masa.settings.budget import BudgetSettings
from masa.settings.columns import Columns
from masa.settings.limits import Limits
from masa.settings.setting import NO_OPTION, settings_of

SECTIONS: dict[str, type] = {
    "data": Columns,
    "budget": BudgetSettings,
    "limits": Limits,
    "assess": Settings,
}
"""The tables of masa.toml whose keys are settings."""


def table(name: str) -> str:
    """Write the keys of a table of masa.toml as Markdown.

    >>> print(table("budget").splitlines()[2])
    | `queries` | Calls that may be sent at most. | `--budget` |  |
    """
    rows = [f"| `[{name}]` | meaning | option | default |", "|---|---|---|---|"]
    for one in settings_of(SECTIONS[name]):
        option = "" if one.option == NO_OPTION else f"`{one.option}`"
        rows.append(f"| `{one.name}` | {one.setting.help} | {option} | {one.default_words} |")
    return "\n".join(rows)


def with_tables(page: str) -> str:
    """Give a page with its tables of settings as they are now.

    A table stands between `<!-- settings: NAME -->` and `<!-- end -->`.
    """

    def derived(match: "re.Match[str]") -> str:
        return f"<!-- settings: {match[1]} -->\n{table(match[1])}\n<!-- end -->"

    return re.sub(r"<!-- settings: (\w+) -->.*?<!-- end -->", derived, page, flags=re.DOTALL)


def update(page: Path) -> None:
    """Bring the tables of a page up to date."""
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
