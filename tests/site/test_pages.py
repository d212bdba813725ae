"""The history site: pages from small stores, hostile names, one swap, the same bytes everywhere."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from helpers import stores
from machmeter.changes.judge import Change as Judged
from machmeter.errors import MachmeterError, NoResults, SiteUnbuildable
from machmeter.history.read import read
from machmeter.site import build, history_plot, plots, serve, svg, swap
from machmeter.site.render import POLICY, find_folder
from machmeter.text import numbers as numbers_module

ROOT = Path(__file__).parents[2]


def silent(step: str, done: int, of: int) -> None:
    """Hear of progress and say nothing."""


def built(folder: Path, **more: object) -> tuple[Path, build.Summary]:
    """Build the site of the store in `folder`/results, and return where it is."""
    request = build.Request(results=folder / "results", output=folder / "html", title="suite", **more)  # type: ignore[arg-type]
    return folder / "html", build.run(request, silent)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign")
    stores.foreign(folder / "results")
    return built(folder)[0]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    stores.own(folder / "results")
    return built(folder)[0]


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


# ---------------------------------------------------------------------------------------------- any project


def test_a_foreign_project_has_every_page_but_those_of_models(foreign: Path) -> None:
    top = {"benchmarks", "changes", "compare", "data", "failures", "index", "machines", "method"}
    assert {path.stem for path in foreign.glob("*.html")} == top
    assert len(list((foreign / "history").glob("*.html"))) == 3
    assert not (foreign / "model").exists()
    assert "Versions" not in (foreign / "index.html").read_text()


def test_a_change_is_good_or_bad_only_where_the_direction_is_known(foreign: Path) -> None:
    """Seconds are better lower; nobody said which way points are better (J1)."""
    listed = rows((foreign / "changes.html").read_text(), "changes")
    assert [row.partition(" ms")[0].partition(" points")[0] for row in listed[1:]] == [
        "regression +50.0 % suite.Time.time_sum small, n=1 10.00",
        "change +20.0 % suite.Track.track_score 10.00",
    ]
    data = json.loads((foreign / "data/changes.json").read_text())["changes"]
    assert [(row["verdict"], row["first"], row["commit"]) for row in data] == [
        ("regression", "00000013c0ff", "00000014c0ff"),
        ("change", "00000013c0ff", "00000014c0ff"),
    ]


def test_the_newest_number_of_each_series(foreign: Path) -> None:
    page = next(text for name, text in pages(foreign).items() if "suite.Time.time_sum" in name)
    assert rows(page, "all-series") == [
        "Parameters Newest 99 % interval Date State Points Last change Data",
        "small, n=1 15.06 ms ± 2.0 % 2023-12-23 ok 40 regression +50.0 % JSON",
        "small, n=10 2.000 ms ± 2.0 % 2023-12-23 ok 40 – JSON",
        "large, n=1 502.0 ms ± 2.0 % 2023-12-23 ok 40 – JSON",
    ]
    assert "1 combinations more" in page  # NaN: n/a or not run, never a failure (R7)


def test_a_failure_has_its_reason_and_since_when(foreign: Path) -> None:
    page = (foreign / "failures.html").read_text()
    (row,) = [row for row in rows(page, "series-without") if "time_sort" in row]
    assert row == "failed virtualenv-py3.11 suite.Time.time_sort asv keeps no reason 2023-12-21 00000025 2023-12-20"


def test_every_link_of_every_page_leads_somewhere(foreign: Path, own: Path) -> None:
    for site in (foreign, own):
        for name, text in pages(site).items():
            for _, attributes in Parsed(text).elements:
                target = attributes.get("href") or attributes.get("src") or ""
                if not target or target.startswith("#"):
                    continue
                path = unquote(re.split("[#?]", target)[0])
                assert not path.startswith(("/", "http")), f"{name}: {target} is not relative"
                assert ((site / name).parent / path).resolve().is_file(), f"{name}: {target}"


def test_every_page_has_the_policy_and_nothing_that_it_forbids(foreign: Path, own: Path) -> None:
    for site in (foreign, own):
        for name, text in pages(site).items():
            page = Parsed(text)
            policies = [
                a.get("content") for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
            ]
            assert policies == [POLICY], name
            assert page.inline == [], name
            for tag, attributes in page.elements:
                assert "style" not in attributes, f"{name}: <{tag} style>"
                assert not [key for key in attributes if key.startswith("on")], f"{name}: <{tag} on...>"


def test_every_data_file_is_strict_json(foreign: Path, own: Path) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    for site in (foreign, own):
        files = list((site / "data").rglob("*.json"))
        assert len(files) > 5
        for path in files:
            json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_the_feed_is_well_formed_and_names_an_entry_by_series_and_commit(foreign: Path) -> None:
    feed = ElementTree.fromstring((foreign / "changes.atom").read_text(encoding="utf-8"))
    atom = "{http://www.w3.org/2005/Atom}"
    entries = feed.findall(f"{atom}entry")
    assert sorted(entry.findtext(f"{atom}title") or "" for entry in entries) == [
        "change +20.0 %: suite.Track.track_score",
        "regression +50.0 %: suite.Time.time_sum small, n=1",
    ]
    for entry in entries:
        assert re.fullmatch(r"urn:machmeter:change:[0-9a-f]{12}:00000014c0ff", entry.findtext(f"{atom}id") or "")
        assert entry.findtext(f"{atom}updated") == "2023-12-04T22:13:20Z"


def test_points_are_named_by_hash_and_the_command_measures_one_again(foreign: Path) -> None:
    """R12: nothing on a page depends on how many commits there are."""
    page = next(text for name, text in pages(foreign).items() if "time_sum" in name)
    assert "asv run -b" in page
    assert "00000027c0ff^!" in page
    assert rows(page, "points-static")[1].startswith("00000027 2023-12-23 15.06 ms")


# ---------------------------------------------------------------------------------------------- our own store


def test_our_own_store_has_pages_of_models_and_versions(own: Path) -> None:
    assert (own / "model/box/ResNet50.html").is_file()
    assert (own / "versions.html").is_file()


def test_the_home_page_says_what_is_fastest_and_what_keeps_its_answers(own: Path) -> None:
    card = re.sub(r"<[^>]+>", " ", (own / "index.html").read_text().partition('class="card"')[2].partition("</li>")[0])
    words_of = " ".join(card.split())
    assert "×5.45 over eager fp32 openvino int8 batch 1" in words_of
    assert "181.8 images/s, p50 5.50 ms top-1 agreement 0.797, SQNR 6.3 dB" in words_of
    assert "same answers openvino fp32 batch 8: 57.1 images/s" in words_of
    assert "5 ok, 1 failed" in words_of


def test_the_table_of_a_model(own: Path) -> None:
    page = (own / "model/box/ResNet50.html").read_text()
    table = rows(page, "cells")
    assert table[1].startswith("openvino int8 – 1 – 181.8 5.45 3.27 5.50 – 0.797 6.3 ")
    assert len(table) == 6
    assert [row for row in rows(page, "without") if "failed" in row] == ["failed openvino int8 8 crashed (signal 11)"]


def test_many_disturbed_timings_are_said_once_and_marked(tmp_path: Path) -> None:
    stores.own(tmp_path / "results")
    (file,) = (tmp_path / "evidence/box").glob(f"{stores.commit(2)[:8]}-env.json")
    content = json.loads(file.read_text())
    for cell in ("eager.ResNet50(fp32, contiguous, 1)", "openvino.ResNet50(fp32, 1)", "openvino.ResNet50(int8, 1)"):
        seconds = {"median_seconds": 0.01, "sample_seconds": [0.01] * 5, "samples": 5}
        record = {"status": "ok", "benchmark": "time_forward", "started_at": 9e9, "order": 9, "disturbed_share": 0.4}
        content["runs"]["r"]["cells"][f"cpu.{cell}"] = {"p": record | seconds}
    file.write_text(json.dumps(content))
    site, _ = built(tmp_path)
    page = (site / "model/box/ResNet50.html").read_text()
    assert [banner for banner in re.findall(r'class="banner">([^<]*)<', page) if "disturbed" in banner] == [
        "3 of 5 timings were disturbed: other programs had more than a tenth of the CPUs meanwhile. "
        "They are marked in the table, and no gain is claimed from or over them."
    ]
    assert sum(" disturbed " in row for row in rows(page, "cells")) == 3


def test_the_ladder_marks_what_made_it_slower(own: Path) -> None:
    page = (own / "model/box/ResNet50.html").read_text()
    assert [re.split(" eager | openvino ", row)[0] for row in rows(page, "rungs")[1:4]] == [
        "PyTorch eager, fp32, batch 1 –",
        "batch 8 PyTorch eager, fp32, batch 1",
        "OpenVINO, the precision it chooses batch 8",
    ]
    assert "slower 0.91" in rows(page, "rungs")[2]
    assert "×2.00 on batch 8" in page


def test_published_claims_are_judged_by_what_was_measured_on_the_machine(own: Path, tmp_path: Path) -> None:
    """The CPU's ladder answers two; those about a GPU are told where there is one, with what is missing."""
    on_cpu = rows((own / "model/box/ResNet50.html").read_text(), "claims-table")
    assert len(on_cpu) == 3
    assert on_cpu[1].endswith("33.0 to 60.0 images/s (openvino), 1.8 times, over 3 rungs no")
    assert on_cpu[2].endswith("1 of 2 steps gain; slower: batch-8 0.91 × no")

    stores.gpu(tmp_path / "results")
    page = (built(tmp_path)[0] / "model/box/ResNet50.html").read_text()
    on_gpu = rows(page, "claims-table")
    assert on_gpu[1].startswith("TensorRT is ahead of PyTorch at every batch (published comparison")
    assert on_gpu[1].endswith(
        "batch 1: 2.00 × (1000 to 500 images/s); batch 8: 2.00 × (4000 to 2000 images/s); batch 32: 2.50 × (10000 to "
        "4000 images/s); batch 64: 3.00 × (12000 to 4000 images/s); batch 128: 4.00 × (16000 to 4000 images/s) yes"
    )
    assert on_gpu[2].endswith(" yes")
    assert on_gpu[3].endswith(
        "Missing: cuda.onnxruntime fp32 cuda batch 1; cuda.onnxruntime fp32 cuda batch 8; cuda.eager fp32 batch 1; "
        "and 1 more cannot say"
    )
    assert rows(page, "cells")[1].startswith("cuda.tensorrt fp16 – 128 ")
    assert 'benchmarks.html">cuda.tensorrt' not in page  # each cell leads to its own history


def test_what_nothing_beats_in_both_is_on_the_front() -> None:
    assert plots.pareto([(1, 5), (2, 4), (2, 3), (3, 1), (1, 5)]) == {0, 1, 3, 4}


def test_versions_are_in_their_order_with_their_change(own: Path) -> None:
    page = re.sub(r"<[^>]+>", " ", (own / "versions.html").read_text())
    assert re.search(r"2025\.0\.0\s+2025-02-06\s+125\.0.*2026\.1\.0\s+2025-02-06\s+166\.7\s+\+33\.3 %", page, re.DOTALL)


def test_a_change_of_a_library_is_marked_where_it_happened(own: Path) -> None:
    page = next(text for name, text in pages(own).items() if "openvino.ResNet50.time_forward" in name)
    assert "openvino 2026.1.0 → 2026.2.0" in page or "openvino 2026.1.0 -&gt; 2026.2.0" in page
    assert 'class="event"' in page


def test_the_method_is_that_of_the_metrics(own: Path) -> None:
    table = rows((own / "method.html").read_text(), "metrics-table")
    assert "top-1 agreement with fp32 track_top1_agreement fraction higher images with the same first class" in table[7]


# ---------------------------------------------------------------------------------------------- bad input

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
    stores.write_catalogue(results, {name: {"params": [[f"'{EVIL}'", "'a/b?c#d'"]], "param_names": [EVIL]}})
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
    stores.write_catalogue(tmp_path / "results", {"s.time_x": {}})
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


# ---------------------------------------------------------------------------------------------- the build


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


# ---------------------------------------------------------------------------------------------- small functions


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0.0372, "seconds", "37.20 ms"),
        (1.2e-7, "seconds", "120.0 ns"),
        (0.0, "seconds", "0 ns"),
        (245_400_000, "bytes", "245.4 MB"),
        (0.796875, "fraction", "0.797"),
        (219.34, "images/s", "219.3 images/s"),
        (1.022e12, "operations/s", "1.022 Top/s"),
        (-12.5, "dB", "-12.50 dB"),
        (None, "seconds", "–"),
        (math.nan, "seconds", "–"),
        (1e300, "points", "1.000e+300 points"),
    ],
)
def test_values_are_written_with_their_unit(number: float | None, unit: str, text: str) -> None:
    assert numbers_module.value(number, unit) == text


def test_file_names_are_the_name_where_that_is_safe() -> None:
    assert numbers_module.files(["ResNet50", "resnet50", "a/b", "index", "ViTB16"]) == {
        "ResNet50": numbers_module.slug("ResNet50"),
        "resnet50": numbers_module.slug("resnet50"),
        "a/b": numbers_module.slug("a/b"),
        "index": numbers_module.slug("index"),
        "ViTB16": "ViTB16",
    }
    assert re.fullmatch(r"a-b-[0-9a-f]{8}", numbers_module.slug("a/b"))


def test_a_series_is_thinned_to_the_ends_of_every_pixel() -> None:
    x, y = np.arange(1000) / 10, np.arange(1000) % 7.0
    across, down = history_plot.thin(x, y, 100)
    assert len(across) == len(down) == 200
    assert (down.min(), down.max()) == (0.0, 6.0)
    assert [len(column) for column in history_plot.thin(x[:50], y[:50], 100)] == [50, 50]


def test_thinning_keeps_the_gaps_of_a_series() -> None:
    x, y = np.arange(12) / 4, np.array([1.0, 3, 2, np.nan, 2, 1, 3, 2, np.nan, np.nan, 5, 5])
    across, down = history_plot.thin(x, y, 3)
    assert across.tolist()[:2] == [0.0, 0.25]
    assert [str(value) for value in down] == ["1.0", "3.0", "nan", "1.0", "3.0", "nan", "5.0"]


def test_a_long_line_is_drawn_in_whole_pixels_with_its_gaps() -> None:
    y = np.array([10.4] * 61)
    y[[0, 2]] = np.nan
    assert svg.line(np.arange(61.0), y).startswith("M1 10M3 10l1 0l1 0")
    assert svg.line(np.arange(61.0), y).count("l1 0") == 57
    assert svg.line(np.arange(3.0), y[1:4]) == "M0 10.4M2 10.4"


def test_the_changes_of_a_series_are_those_that_were_judged(tmp_path: Path) -> None:
    stores.foreign(tmp_path / "results", 6)
    history = read(tmp_path / "results")
    series = history.series[0]
    judged = Judged(
        index=3,
        last_before=2,
        before=1.0,
        after=2.0,
        p=0.0,
        verdict="regression",
        ratio=2.0,
        importance=2.0,
        words="+100.0 %",
    )
    (change,) = build.shown(history, {series.key: [judged]})
    assert (change.point, change.previous, change.size, change.words) == (3, 2, math.log(2.0), "+100.0 %")


def test_days_below_a_plot_do_not_overlap() -> None:
    days = [(float(at), f"2026-01-{at + 1:02}") for at in range(28)]
    line = history_plot.Curve(x=np.arange(28.0), y=np.ones(28))
    drawn = str(history_plot.history([line], unit="s", label="", dates=days))
    labels = re.findall(r'<text x="([\d.]+)" y="310"( text-anchor="middle")?>2026', drawn)
    assert len(labels) >= 6
    ends = [(float(x) - 36, float(x) + 36) if centred else (float(x), float(x) + 72) for x, centred in labels]
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(ends))
