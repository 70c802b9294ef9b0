"""The picture of the README: the head of a page that `adapt report --html` wrote, in a real browser.

make demo && .venv/bin/python -m tools.picture adapt-demo/flights.html docs/page.png
"""

import shutil
import sys
from pathlib import Path

WIDTH, HEIGHT = 1000, 980
"""Of the picture, in pixels: what a reader sees of the page before scrolling."""

MOST_BYTES = 150_000
"""A README is to open at once."""


def picture(page: Path, out: Path) -> int:
    """Draw the head of a page; the bytes of the picture.

    Raises:
        SystemExit: there is no chromium, or the picture is too large for a README.
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
        raise SystemExit(f"{out} has {size:,} bytes, more than {MOST_BYTES:,}")
    return size


if __name__ == "__main__":
    print(f"{sys.argv[2]}: {picture(Path(sys.argv[1]), Path(sys.argv[2])):,} bytes")
