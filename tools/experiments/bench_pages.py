"""What a visitor of a built site waits for: bytes of a first visit, bytes of a long series, time until it is drawn."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import threading
from pathlib import Path

POINTS = 10_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]

# What a page requests as soon as it is there, beside the data of series and runs.
_REQUESTED = {"history/": ("data/timeline.json",), "compare.html": ("data/index.json", "data/runs.json")}


def compressed(path: Path) -> int:
    """Return how many bytes a file is when a server compresses it."""
    return len(gzip.compress(path.read_bytes(), 9))


def first_visit(site: Path) -> tuple[int, str]:
    """Return how many compressed bytes the heaviest page costs a first visitor, and which page that is."""
    static = {path.relative_to(site).as_posix(): compressed(path) for path in (site / "static").rglob("*.*")}
    heaviest = (0, "")
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site).as_posix()
        needed = set(re.findall(r'(?:src|href)="(?:\.\./)*(static/[^"]+)"', page.read_text(encoding="utf-8")))
        needed |= {other for one in needed if one.endswith(".js") for other in _imported(site, one)}
        more = next((files for start, files in _REQUESTED.items() if name.startswith(start)), ())
        total = compressed(page) + sum(static.get(file, 0) for file in needed)
        total += sum(compressed(site / file) for file in more)
        heaviest = max(heaviest, (total, name))
    return heaviest


def _imported(site: Path, module: str) -> set[str]:
    """Return the modules that a module imports, and those that they import."""
    found: set[str] = set()
    text = (site / module).read_text(encoding="utf-8")
    for name in re.findall(r'from "\./([^"]+)"', text):
        other = f"static/js/{name}"
        found |= {other} | _imported(site, other)
    return found


def long_series(folder: Path) -> Path:
    """Build the site of a store with one series of 10,000 noisy points, and return where it is."""
    import numpy as np

    import generate_store
    import store_files
    from machmeter.site import build

    noise = np.random.default_rng(1)
    results = folder / "results"
    (results / "box").mkdir(parents=True)
    for number in range(POINTS):
        level = (0.01 if number < POINTS // 2 else 0.013) * float(np.exp(0.03 * noise.standard_normal()))
        ends = [level * float(1 + sign * noise.uniform(0.002, 0.03)) for sign in (-1, 1)]
        row = [[level], [], "1", generate_store.FIRST_DATE, 1.0, [ends[0]], [ends[1]]]
        commit = f"{number:040x}"
        content = store_files.result_file(
            commit,
            "env",
            generate_store.FIRST_DATE + number * generate_store.DAY // 4,
            {"suite.time_long": row},
            generate_store.COLUMNS[: len(row)],
            {"machine": "box"},
            python="3.12",
        )
        (results / "box" / f"{number:08x}-env.json").write_text(json.dumps(content))
    build.run(build.Request(results=results, output=folder / "html", title="long"), lambda *_: None)
    return folder / "html"


def drawn_after(site: Path) -> float | None:
    """Return after how many milliseconds the only series of a site was drawn once its data were there; None if no
    browser is installed."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        return None
    from playwright.sync_api import sync_playwright

    from machmeter.site import serve

    server = serve.server(site, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (page,) = (site / "history").glob("*.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        times = []
        for _ in range(3):
            tab = browser.new_page()
            tab.goto(f"http://127.0.0.1:{server.server_port}/history/{page.name}")
            chart = tab.locator("[data-chart][data-draw-ms]")
            chart.wait_for()
            times.append(float(chart.get_attribute("data-draw-ms") or "nan"))
            tab.close()
        browser.close()
    server.shutdown()
    return sorted(times)[1]
