"""Take the pictures of the README: the demo's page of a model, and a comment as GitHub shows it. Needs Chromium.

.venv/bin/python tools/docs/take_pictures.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import cmarkgfm

from machmeter.site import build

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTH = 1280  # CSS pixels
MOST_BYTES = 150_000

MACHINE = "xeon-amx"  # whose page of ResNet50 is shown

COMMENT = ROOT / "docs" / "comments" / "regression.md"
# GitHub's look, as far as a comment needs it.
STYLE = """
body { margin: 24px; background: #fff; color: #1f2328; font: 14px/1.5 "DejaVu Sans", sans-serif; }
main { border: 1px solid #d1d9e0; border-radius: 6px; padding: 8px 20px; }
table { border-collapse: collapse; } td, th { border: 1px solid #d1d9e0; padding: 5px 12px; }
code { background: #eff1f3; border-radius: 6px; padding: 2px 5px; font: 12px "DejaVu Sans Mono", monospace; }
a { color: #0969da; text-decoration: none; }
"""


def main() -> int:
    """Take both pictures, or say in one line what is missing."""
    browser_path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser_path is None:
        print("no browser: install Chromium (Debian: apt install chromium)", file=sys.stderr)
        return 1
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--headless", "--no-sandbox"])
        _model(browser, Path(temporary) / "site", PICTURES / "model.png")
        _comment(browser, Path(temporary) / "comment.html", PICTURES / "comment.png")
        browser.close()
    too_large = [path.name for path in PICTURES.glob("*.png") if path.stat().st_size > MOST_BYTES]
    for name in too_large:
        print(f"{name} has more than {MOST_BYTES:,} bytes: show less", file=sys.stderr)
    return 1 if too_large else 0


def _model(browser: Any, folder: Path, picture: Path) -> None:
    """Take the top of the page of ResNet50, as `make demo` shows it."""
    request = build.Request(results=ROOT / "examples" / "results", repository=ROOT, output=folder)
    build.run(request, lambda *_: None)
    _shot(browser, folder / "model" / MACHINE / "ResNet50.html", picture, height=780)


def _comment(browser: Any, page: Path, picture: Path) -> None:
    """Take a sample comment, rendered by GitHub's own Markdown library, its details folded."""
    body = cmarkgfm.github_flavored_markdown_to_html(
        COMMENT.read_text(encoding="utf-8"), cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE
    )
    page.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{STYLE}</style><main>{body}</main></html>',
        encoding="utf-8",
    )
    _shot(browser, page, picture)


def _shot(browser: Any, page: Path, picture: Path, height: int | None = None) -> None:
    """Take a page in light colours: `height` pixels from its top, or all of it."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": height or 400}, color_scheme="light", reduced_motion="reduce"
    )
    opened = context.new_page()
    opened.goto(page.as_uri())
    opened.wait_for_load_state("load")
    opened.screenshot(path=picture, full_page=height is None, animations="disabled")
    context.close()


if __name__ == "__main__":
    sys.exit(main())
