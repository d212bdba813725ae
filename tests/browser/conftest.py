"""A browser, and sites to show in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from helpers import finding_browser as finding
from helpers import stores
from machmeter.site import build, serve

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser, or one clear line: in CI a missing one fails the run."""
    found = finding.find(finding.here())
    if found.path is None:
        (pytest.fail if found.fails else pytest.skip)(f"{found.problem}; the pages were not tried in one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found.path, args=list(FLAGS))
        yield running
        running.close()


@dataclass
class Shown:
    """A built site, its folder, and its address below a path."""

    folder: Path
    address: str
    history: dict[str, str] = field(default_factory=dict)  # page of each benchmark


def _shown(folder: Path, write: Any) -> Iterator[Shown]:
    write(folder / "results")
    output = folder / "served" / "below" / "a path"
    output.parent.mkdir(parents=True)
    build.run(build.Request(results=folder / "results", output=output, title="suite"), lambda *_: None)
    # Served from a folder above, as on a host that has other pages too.
    (folder / "served" / serve.MARKER).write_text("")
    server = serve.server(folder / "served", "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages = {path.stem: f"history/{path.name}" for path in (output / "history").glob("*.html")}
    yield Shown(folder=output, address=f"http://127.0.0.1:{server.server_port}/below/a%20path/", history=pages)
    server.shutdown()


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The site of a project that is not machmeter."""
    yield from _shown(tmp_path_factory.mktemp("foreign"), stores.foreign)


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The site of machmeter's own results."""
    yield from _shown(tmp_path_factory.mktemp("own"), stores.own)
