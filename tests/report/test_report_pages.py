"""Pages, in a real browser: what is drawn is what was found, and nothing breaks them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import masa
from made_runs import HOSTILE, run
from masa.report import html

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SIZES = {2: (2000, 400), 7: (3000, 800), 40: (3000, 900), 1000: (6000, 1500)}

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    if CHROMIUM is None:
        pytest.skip("needs chromium (make system)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Opened:
    """A page in the browser, and what its console said."""

    def __init__(self, browser: "Browser", file: Path, **how: Any) -> None:
        self.context = browser.new_context(offline=True, **how)
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on(
            "request",
            lambda request: (
                self.said.append(request.url) if request.url.startswith("http") else None
            ),
        )
        self.page.goto(file.as_uri())

    def numbers(self, selector: str, name: str) -> np.ndarray[Any, Any]:
        found = self.page.eval_on_selector_all(
            selector, f"all => all.map(one => one.getAttribute('data-{name}'))"
        )
        return np.array([float(one) for one in found])


@pytest.mark.parametrize("labels", [2, 7, 40, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_page_works_at_every_width_in_light_and_dark(
    browser: "Browser", tmp_path: Path, labels: int
) -> None:
    file = tmp_path / "report.html"
    page = run(labels, *SIZES[labels]).to_html(file)
    assert len(page.encode()) < (400_000 if labels <= 10 else 1_000_000)
    for width in (400, 1400, 1800):
        for scheme in ("light", "dark"):
            opened = Opened(
                browser, file, viewport={"width": width, "height": 900}, color_scheme=scheme
            )
            assert opened.said == []
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
            assert opened.page.title().startswith(run(labels, *SIZES[labels]).verdict.upper())
            bottom = opened.page.locator("#verdict").bounding_box()
            assert bottom is not None
            assert bottom["y"] + bottom["height"] < 900
            opened.context.close()


def test_what_is_drawn_is_what_was_found_and_old_and_new_are_not_swapped(
    browser: "Browser", tmp_path: Path
) -> None:
    found = run(7, *SIZES[7])
    told = found.to_dict()
    file = tmp_path / "report.html"
    found.to_html(file)
    opened = Opened(browser, file)
    for title, key in (("What changed", "delta"), ("Before", "old"), ("Now", "new")):
        drawn = opened.numbers(f'table[data-matrix="{title}"] td', "value").reshape(7, 7)
        wanted = np.array(told[key])
        assert drawn == pytest.approx(
            wanted if key == "delta" else np.maximum(wanted, 0.0), abs=1e-12
        )
    cells = 'table[data-matrix="What changed"] td'
    assert opened.numbers(cells, "low").reshape(7, 7) == pytest.approx(
        np.array(told["intervals"]["delta"]["low"])
    )
    assert opened.numbers(cells, "high").reshape(7, 7) == pytest.approx(
        np.array(told["intervals"]["delta"]["high"])
    )
    # The API got worse: before is better than now, in the words and in the drawing.
    assert told["accuracy"]["old"] > told["accuracy"]["new"]
    words = opened.page.locator("#verdict p").first.inner_text()
    assert words.startswith(
        f"for the worse: right answers {100 * told['accuracy']['old']:.1f}% -> "
    )
    ends = [opened.numbers("#verdict svg", name)[0] for name in ("low", "estimate", "high")]
    assert ends == [told["accuracy"][name] for name in ("low", "change", "high")]
    before = opened.numbers('table[data-matrix="Before"] td.right', "value").sum()
    now = opened.numbers('table[data-matrix="Now"] td.right', "value").sum()
    assert (before, now) == pytest.approx((told["accuracy"]["old"], told["accuracy"]["new"]))
    box = [
        opened.page.locator(f"#verdict svg {part}").first.bounding_box()
        for part in (".dot", ".zero")
    ]
    assert box[0] is not None
    assert box[1] is not None
    assert box[0]["x"] < box[1]["x"], "a fall is left of zero"


def test_colours_stand_where_the_interval_does_not_hold_zero(
    browser: "Browser", tmp_path: Path
) -> None:
    found = run(2, 2000, 1900, changed=0.3)
    file = tmp_path / "report.html"
    found.to_html(file)
    opened = Opened(browser, file)
    tones = opened.page.eval_on_selector_all(
        'table[data-matrix="What changed"] td', "all => all.map(one => one.className.split(' ')[0])"
    )
    assert found.readings is not None
    low, high = found.readings.low.ravel(), found.readings.high.ravel()
    sure = (low > 0) | (high < 0)
    assert sure.any()
    assert [tone != "unsure" for tone in tones] == sure.tolist()
    # Fewer right answers and more mistakes are both worse.
    assert set(tones) <= {"worse", "unsure"}


def test_hostile_labels_are_text(browser: "Browser", tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    run(7, *SIZES[7]).to_html(file)
    opened = Opened(browser, file)
    names = opened.page.eval_on_selector_all(
        'table[data-matrix="What changed"] tbody th', "all => all.map(one => one.innerText)"
    )
    assert sorted(names) == sorted(HOSTILE)
    assert opened.page.locator("script").count() == 0
    assert opened.page.locator("a[href^=http]").count() == 0


def test_changed_answers_are_filtered_by_the_address_and_by_the_keyboard(
    browser: "Browser", tmp_path: Path
) -> None:
    found = run(7, *SIZES[7])
    file = tmp_path / "report.html"
    found.to_html(file)
    opened = Opened(browser, file)
    rows = opened.page.locator("tr.is-worse, tr.is-better, tr.is-other")
    assert rows.count() == found.differing > 20
    links = opened.page.locator("nav.filter a")
    links.nth(1).focus()
    opened.page.keyboard.press("Enter")
    assert opened.page.url.endswith("#changed-worse")
    assert not opened.page.locator("tr.is-better").first.is_visible()
    assert opened.page.locator("tr.is-worse").first.is_visible()
    opened.page.goto(f"{file.as_uri()}#changed-better")
    assert opened.page.locator("tr.is-better").first.is_visible()
    assert not opened.page.locator("tr.is-worse").first.is_visible()


@pytest.mark.parametrize("labels", [2, 7])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: "Browser", tmp_path: Path, labels: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    file = tmp_path / "report.html"
    run(labels, *SIZES[labels]).to_html(file)
    opened = Opened(browser, file, color_scheme=scheme)
    found = Axe().run(opened.page).response["violations"]
    serious = [
        (one["id"], one["nodes"][0]["html"][:200])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("answers", [1, 4, 20])
def test_few_answers_are_never_shown_as_certain(answers: int) -> None:
    found = run(7, 3000, answers)
    page = html.assessment(found)
    assert found.verdict == "undecided"
    assert 'class="verdict unknown"' in page
    assert 'td class="better' not in page
    assert 'td class="worse' not in page
    assert "Fewer than 30 answers were about" in page or found.shift is None


def test_nothing_measured_is_grey_and_says_so() -> None:
    def down(_: object) -> str:
        raise OSError("no network")

    data = masa.Dataset.of(["a", "b"] * 30, predictions={"old": ["a", "b"] * 30})
    found = masa.assess(data, down, baseline="old", budget=20, store=None, tries=1)
    page = html.assessment(found)
    assert 'class="verdict unknown"' in page
    assert "Not measured" in page
    assert found.exit_code == 3


@pytest.mark.slow
def test_a_page_of_a_hundred_thousand_answers_is_quick_and_small() -> None:
    import time

    found = run(7, 100_000, 100_000, changed=0.02)
    begun = time.perf_counter()
    page = html.assessment(found)
    assert time.perf_counter() - begun < 3.0
    assert len(page.encode()) < 1_000_000
    assert found.answers == 100_000
