"""Screenshot for the README: the top of a report page.

make demo && .venv/bin/python -m tools.picture adapt-demo/flights.html docs/page.png

make demo && .venv/bin/python -m tools.picture adapt-demo/flights.html docs/page.png
"""

import shutil
import sys
from pathlib import Path

WIDTH, HEIGHT = 1000, 980
"""Size of the picture in pixels: the first screen of the page."""

MOST_BYTES = 150_000
"""Size limit of the picture, so that a README loads fast."""


def picture(page: Path, out: Path) -> int:
    """Take a screenshot of a page; returns its size in bytes.

    Raises:
        SystemExit: chromium is missing, or the picture is too large for a README.
    """
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        opened.goto(page.resolve().as_uri())
        size = len(opened.screenshot(path=str(out)))
        browser.close()
    if size > MOST_BYTES:
        raise SystemExit(f"{out} must be at most {MOST_BYTES:,} bytes (got {size:,})")
    return size


if __name__ == "__main__":
    print(f"{sys.argv[2]}: {picture(Path(sys.argv[1]), Path(sys.argv[2])):,} bytes")
