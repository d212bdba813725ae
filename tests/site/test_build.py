"""Building: hostile names, broken stores, what is kept when a build fails, the same bytes everywhere."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from helpers import asv_files, stores
from helpers.site_pages import Parsed, built, pages, silent
from machmeter.errors import MachmeterError, NoResults, SiteUnbuildable
from machmeter.site import build, serve, swap
from machmeter.site.render import find_folder

ROOT = Path(__file__).parents[2]


EVIL = "<img src=x onerror=1>"


LONG = "virtualenv-py3.11-" + "very/long?name#of&an'environment\"" * 6


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    results = folder / "results"
    name = f"suite.{EVIL}.time_x"
    for number in range(3):
        for environment in (LONG, LONG + "2", EVIL):
            told = hashlib.sha256(environment.encode()).hexdigest()[:8]
            stores.write_result(
                results,
                number,
                {name: ([[f"'{EVIL}'", "'a/b?c#d'", "'a/b?c'", "'=1+1'"]], [1.0, 2.0, 3.0, 4.0])},
                machine=EVIL,
                environment=environment,
                file=f"{number}-{told}.json",
            )
    asv_files.write_catalogue(results, {name: {"params": [[f"'{EVIL}'", "'a/b?c#d'"]], "param_names": [EVIL]}})
    (results / "<b>.json").write_text("{")
    (results / EVIL.replace("/", "_")).mkdir(exist_ok=True)
    (results / EVIL.replace("/", "_") / f"{EVIL}.json").write_text("{")
    output = folder / "html"
    build.run(build.Request(results=results, output=output, title=EVIL, base=f'http://x/"{EVIL}/'), silent)
    return output


def test_html_in_a_name_is_text(hostile: Path) -> None:
    """R13: as benchmark, parameter, environment, machine, file and project."""
    count = 0
    for name, text in pages(hostile).items():
        for tag, attributes in Parsed(text).elements:
            assert tag not in ("img", "b"), name
            assert not [key for key in attributes if key.startswith("on")], f"{name}: {tag}"
        count += text.count("&lt;img src=x onerror=1&gt;")
    assert count > 20
    ElementTree.fromstring((hostile / "changes.atom").read_text(encoding="utf-8"))


def test_every_file_name_is_safe_and_no_two_are_one(hostile: Path) -> None:
    """R5: environment names over 128 characters, and what a link or a file system takes for its own."""
    names = [path.relative_to(hostile).as_posix() for path in hostile.rglob("*") if path.is_file()]
    assert all(re.fullmatch(r"[A-Za-z0-9._/-]+", name) for name in names)
    assert max(len(part) for name in names for part in name.split("/")) < 128
    assert len({name.casefold() for name in names}) == len(names)
    assert len(list((hostile / "data/series").iterdir())) == 12


@pytest.mark.parametrize("value", ["hello", True, [[1, 2]], math.inf, 1e308, -math.inf, {}])
def test_a_result_that_is_no_number_does_not_stop_the_site(tmp_path: Path, value: object) -> None:
    """R1: it is listed, and the others are shown."""
    stores.foreign(tmp_path / "results", 4)
    stores.write_result(tmp_path / "results", 4, {"suite.Time.time_sort": ([], [value])})
    site, _ = built(tmp_path)
    page = next(text for name, text in pages(site).items() if "time_sort" in name)
    assert 'class="badge unreadable"' in page or "1.000e+308 s" in page or "1e+308" in page


def test_older_versions_of_a_benchmark_are_greyed_and_not_joined(tmp_path: Path) -> None:
    """R14."""
    for number in range(8):
        version = "old" if number < 4 else "1"
        stores.write_result(
            tmp_path / "results", number, {"s.time_x": ([], [1.0 if number < 4 else 3.0])}, version=version
        )
    asv_files.write_catalogue(tmp_path / "results", {"s.time_x": {}})
    site, summary = built(tmp_path)
    (page,) = [text for name, text in pages(site).items() if name.startswith("history/")]
    assert summary.changes == 0  # a version break is no regression
    assert len(re.findall(r'<path class="line c1 old" d="M[^M]*"', page)) == 1
    assert len(re.findall(r'<path class="line c1" d="M[^M]*"', page)) == 1
    assert page.count('<td class="quiet">') == 4


def test_an_empty_store_is_one_line_and_keeps_the_old_site(tmp_path: Path) -> None:
    stores.foreign(tmp_path / "results", 4)
    site, _ = built(tmp_path)
    before = (site / "index.html").read_bytes()
    shutil.rmtree(tmp_path / "results")
    (tmp_path / "results").mkdir()
    with pytest.raises(NoResults, match="there are no results in"):
        built(tmp_path)
    assert (site / "index.html").read_bytes() == before


@pytest.mark.parametrize(
    ("prepare", "code", "message"),
    [
        (lambda folder: None, 8, "there is no folder nowhere: name asv's results folder with --results"),
        (lambda folder: (folder / "nowhere").mkdir(), 8, "there are no results in nowhere yet"),
        (
            lambda folder: (folder / "html").mkdir() or (folder / "html/x").write_text(""),
            20,
            "html holds something that is",
        ),
        (lambda folder: (folder / "html").write_text(""), 20, "html is a file: name another folder"),
    ],
)
def test_what_cannot_be_built_is_one_line(tmp_path: Path, prepare: object, code: int, message: str) -> None:
    prepare(tmp_path)  # type: ignore[operator]
    done = machmeter(tmp_path, "site", "build", "--results", "nowhere")
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("machmeter: ")
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def machmeter(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = "from machmeter.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools"), **variables}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_templates_that_are_nowhere_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(SiteUnbuildable, match="--templates"):
        find_folder(tmp_path)


def test_a_failure_leaves_the_old_site_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores.foreign(tmp_path / "results", 4)
    site, _ = built(tmp_path)
    before = pages(site)
    stores.foreign(tmp_path / "results", 5)

    def fail(*_: object) -> None:
        raise MachmeterError("no more")

    monkeypatch.setattr("machmeter.site.pages.machines.context", fail)
    with pytest.raises(MachmeterError, match="no more"):
        built(tmp_path)
    assert pages(site) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["html", "results"]


def test_a_new_site_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    with swap.beside(tmp_path / "site") as new:
        (new / "old.html").write_text("old")
    with swap.beside(tmp_path / "site") as new:
        (new / "new.html").write_text("new")
        assert (tmp_path / "site/old.html").is_file()
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [swap.MARKER, "new.html"]


def test_the_same_bytes_whatever_the_time_zone_and_the_locale(tmp_path: Path) -> None:
    stores.own(tmp_path / "results")
    found = []
    for name, variables in (("a", {"TZ": "UTC"}), ("b", {"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7"})):
        done = machmeter(tmp_path, "site", "build", "--output", name, "--title", "t", **variables)
        assert (done.returncode, done.stderr) == (0, "")
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        found.append({path.relative_to(tmp_path / name).as_posix(): path.read_bytes() for path in files})
    assert found[0] == found[1]
    assert len(found[0]) > 40


def test_the_summary_says_what_was_read_and_left_out(tmp_path: Path) -> None:
    stores.foreign(tmp_path / "results", 4)
    (tmp_path / "results/box/broken.json").write_text('{"version": 2')
    lines = built(tmp_path)[1].lines()
    assert lines[0] == (
        "read 4 result files: 3 benchmarks, 6 series, 17 numbers over 4 commits "
        "ordered by date, as there is no repository"
    )
    assert [line for line in lines if line.startswith("left out: box/broken.json")]
    assert re.fullmatch(r"wrote .*html: \d+ files, \d+\.\d MB, in \d+\.\d s", lines[-1])


def test_serving_what_was_not_built_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoResults, match="run 'machmeter site build' first"):
        serve.server(tmp_path, "127.0.0.1", 0)


ARCHIVE = ROOT.parent / "shared/data/asv-results.tar.xz"


@pytest.mark.skipif(
    not ARCHIVE.is_file(), reason="the real stores are not here: the generated ones above stand for them"
)
@pytest.mark.parametrize(("name", "files"), [("sunpy", 1396), ("metpy", 59)])
def test_real_stores_build_and_their_pages_are_light(tmp_path: Path, name: str, files: int) -> None:
    """A first visit of a page costs 100 KB at most, without the data of its series."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(
            tmp_path, members=[item for item in archive if f"/{name}/" in f"/{item.name}"], filter="data"
        )
    (results,) = [path for path in tmp_path.rglob("results") if path.is_dir()]
    output = tmp_path / "html"
    summary = build.run(build.Request(results=results, output=output), silent)
    assert summary.history.files == files

    def packed(path: str) -> int:
        return len(gzip.compress((output / path).read_bytes(), 9)) if (output / path).is_file() else 0

    static = sum(packed(path.relative_to(output).as_posix()) for path in (output / "static").rglob("*.js"))
    static += packed("static/site.css") + packed("static/uplot/uPlot.min.css") + packed("data/timeline.json")
    pages_of = {path: packed(path) for path in pages(output)}
    heaviest = max(pages_of, key=lambda path: pages_of[path])
    assert static + pages_of[heaviest] <= 100_000, heaviest
    assert (
        packed("compare.html") + packed("data/index.json") + packed("data/runs.json") + packed("static/site.css")
        <= 85_000
    )
