"""Write report pages of runs with 2, 7, 40 and 1,000 labels, and take pictures of them.

    python benchmarks/pages.py FOLDER [LABELS,...]

Each page at 1,400 and 400 pixels, light and dark, by Debian's chromium (`make system`), and how large
it is and how long it takes to write. The API is made up; a few of its labels try to break a page.
"""

import shutil
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from made_runs import run

SIZES = {2: (2000, 400), 7: (3000, 800), 40: (4000, 1500), 1000: (6000, 1500)}
WIDTHS, SCHEMES = (1400, 400), ("light", "dark")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [int(one) for one in sys.argv[2].split(",")] if len(sys.argv) > 2 else list(SIZES)
    for labels in wanted:
        found = run(labels, *SIZES[labels])
        begun = time.perf_counter()
        page = found.to_html(folder / f"{labels}.html")
        seconds = time.perf_counter() - begun
        print(f"{labels:,} labels: {found.verdict}, {len(page.encode()):,} bytes, {seconds:.2f} s")
    chromium = shutil.which("chromium") or "chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for labels in wanted:
            for width in WIDTHS:
                for scheme in SCHEMES:
                    size = {"width": width, "height": 900}
                    page_of = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
                    page_of.goto((folder / f"{labels}.html").absolute().as_uri())
                    page_of.screenshot(path=folder / f"{labels}-{width}-{scheme}.png")
                    page_of.close()
        browser.close()


if __name__ == "__main__":
    main()
