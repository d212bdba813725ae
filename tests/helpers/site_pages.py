"""Pages of a built site, parsed, for the tests of the site."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from machmeter.site import build


def silent(step: str, done: int, of: int) -> None:
    """Hear of progress and say nothing."""


def built(folder: Path, **more: object) -> tuple[Path, build.Summary]:
    """Build the site of the store in `folder`/results, and return where it is."""
    request = build.Request(results=folder / "results", output=folder / "html", title="suite", **more)  # type: ignore[arg-type]
    return folder / "html", build.run(request, silent)


class Parsed(HTMLParser):
    """The elements of a page, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style") and data.strip():
            self.inline.append(data)


def pages(site: Path) -> dict[str, str]:
    return {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))
    }


def rows(page: str, table: str) -> list[str]:
    """Return the text of the rows of the table `table`."""
    found = re.search(rf'<table id="{table}".*?</table>', page, re.DOTALL)
    assert found, f"no table {table}"
    cells = [re.sub(r"<[^>]+>", " ", row) for row in re.findall(r"<tr.*?</tr>", found[0], re.DOTALL)]
    return [" ".join(row.split()) for row in cells]
