"""The sites of two tiny stores, byte by byte: with `--update` what is expected is written anew.

pytest tests/site/test_golden.py --update
"""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from helpers import stores
from machmeter.site import build

GOLDEN = Path(__file__).parents[1] / "data" / "golden"

# Pages whose words are compared; all data files are.
PAGES = ("index", "benchmarks", "changes", "failures", "machines", "model/*/*", "history/*time_sum*", "versions")


def words_of(page: str) -> str:
    """Return what a reader sees of a page, a line for each block."""
    body = page[page.index("<main") :]
    body = re.sub(r"</(?:p|tr|li|h\d|caption|figcaption|dt|dd|legend|button|text|section)>", "\n", body)
    lines = (" ".join(unescape(re.sub(r"<[^>]+>", " ", line)).split()) for line in body.splitlines())
    return "\n".join(filter(None, lines)) + "\n"


def golden_files(site: Path) -> dict[str, str]:
    """Return name and content of what is compared."""
    found = {
        path.relative_to(site).as_posix(): path.read_text("utf-8") for path in sorted(site.rglob("data/**/*.json"))
    }
    found["changes.atom"] = (site / "changes.atom").read_text("utf-8")
    for pattern in PAGES:
        for path in sorted(site.glob(f"{pattern}.html")):
            found[path.relative_to(site).with_suffix(".txt").as_posix()] = words_of(path.read_text("utf-8"))
    return found


@pytest.mark.parametrize("name", ["foreign", "own"])
def test_the_site_of_a_tiny_store_is_what_it_was(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name == "foreign":
        stores.foreign(tmp_path / "results", 24)
    else:
        stores.own(tmp_path / "results")
    build.run(build.Request(results=tmp_path / "results", output=tmp_path / "html", title="suite"), lambda *_: None)
    files = golden_files(tmp_path / "html")
    if request.config.getoption("--update"):
        shutil.rmtree(GOLDEN / name, ignore_errors=True)
        for file, content in files.items():
            (GOLDEN / name / file).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / name / file).write_text(content, "utf-8")
    expected = {
        path.relative_to(GOLDEN / name).as_posix(): path.read_text("utf-8")
        for path in (GOLDEN / name).rglob("*")
        if path.is_file()
    }
    assert sorted(files) == sorted(expected)
    for file, content in files.items():
        assert content == expected[file], f"{file} changed: if wanted, run pytest tests/site/test_golden.py --update"
