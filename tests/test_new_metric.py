"""A metric is one entry of `metrics.py`: with its measurements on record it is in every table, page and comparison."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from helpers import stores
from helpers.measurements import measured, row
from machmeter import metrics
from machmeter.compare import judge, limits, markdown, terminal
from machmeter.metrics import Column, Limit, Metric
from machmeter.recommend import candidates, described
from machmeter.running import sweep
from machmeter.site import build
from machmeter.tables import cells_table, ladder_table, show_cells, show_ladder, show_versions, versions_table
from machmeter.workload import rungs

ENERGY = Metric(
    benchmark="track_energy",
    title="energy of one image",
    unit="joules",
    better="lower",
    formula="joules of the package over images",
    short="energy",
    limit=Limit(relative=0.25),
    column=Column(
        key="energy_mj",
        heading="energy mJ",
        unit="mJ",
        one=1e-3,
        digits=1,
        tables=("cells", "ladder", "versions"),
        page="at first",
        words="{:.1f} mJ",
    ),
)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a store in which asv and the evidence have the metric wherever they have the SQNR."""
    monkeypatch.setattr(metrics, "METRICS", (*metrics.METRICS, ENERGY))
    folder = tmp_path / "results"
    stores.own(folder)
    for path in folder.rglob("*.json"):
        content = json.loads(path.read_text())
        for benchmarks in (content, content.get("results", {})):
            for name in [name for name in benchmarks if name.endswith(".track_sqnr")]:
                benchmarks[name.replace("track_sqnr", "track_energy")] = _energy(name, benchmarks[name])
        path.write_text(json.dumps(content))
    for path in (tmp_path / "evidence").rglob("*.json"):
        path.write_text(re.sub(r'("track_sqnr": [\d.]+)', r'\1, "track_energy": 0.0375', path.read_text()))
    return folder


def _energy(name: str, benchmark: Any) -> Any:
    """Return what asv has of a benchmark, a result or its entry in the catalogue, as that of the energy."""
    if isinstance(benchmark, dict):
        return {**benchmark, "name": name.replace("track_sqnr", "track_energy"), "unit": "joules"}
    return [[0.0421 for _ in benchmark[0]], *benchmark[1:]]


def printed(show: Any, table: Any) -> str:
    console = Console(file=io.StringIO(), width=200)
    show(table, console)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_the_table_of_cells_has_it_in_the_terminal_and_in_json(results: Path) -> None:
    table = cells_table.build(results, "box")
    text = printed(show_cells.print_table, table)
    assert re.search(r"SQNR dB +peak MB +energy mJ$", text, re.MULTILINE)
    assert re.search(r"openvino +fp32 +8 .*42\.1$", text, re.MULTILINE)
    measured_rows = [item for item in table.as_json()["rows"] if item["status"] == "ok"]
    assert {item["energy_mj"] for item in measured_rows} == {42.1}


def test_json_has_it_beside_the_numbers_that_were_measured_once(results: Path) -> None:
    (first, *_) = cells_table.build(results, "box").as_json()["rows"]
    names = list(first)
    assert names[names.index("percent_of_peak") :] == [
        "percent_of_peak", "top1_agreement", "sqnr_db", "peak_memory_mb", "device_memory_mb", "device_p50_ms",
        "prepare_s", "load_s", "first_inference_s", "energy_mj", "samples", "threads", "artifact", "commit",
        "environment", "stack",
    ]  # fmt: skip


def test_the_ladder_and_the_versions_have_it(results: Path) -> None:
    ladder = ladder_table.build(results, "box", "ResNet50", rungs.load().values())
    assert re.search(r"^batch-8 .* 37\.5$", printed(show_ladder.print_ladder, ladder), re.MULTILINE)
    assert [item["energy_mj"] for item in ladder.as_json()["rows"] if item["status"] == "ok"] == [37.5] * 3
    versions = versions_table.build(results, "box")
    assert re.search(r"^2025\.0\.0 .* 37\.5 +20$", printed(show_versions.print_versions, versions), re.MULTILINE)
    assert [item["energy_mj"] for item in versions.as_json()["series"][0]["rows"]] == [37.5, 37.5]
    assert "|track_energy)" in sweep._methods()


def test_advice_names_it(results: Path) -> None:
    ladder = ladder_table.build(results, "box", "ResNet50", rungs.load().values())
    found = candidates.measured(cells_table.build(results, "box"), ladder)
    assert [described.described(item).endswith(", 37.5 mJ") for item in found if "rung" in item.name] == [True] * 3


def test_the_site_has_it_on_every_page(results: Path, tmp_path: Path) -> None:
    build.run(build.Request(results=results, output=tmp_path / "html", title="suite"), lambda *_: None)
    pages = {path.name.partition(".")[0]: path.read_text() for path in (tmp_path / "html").glob("*.html")}
    model = (tmp_path / "html/model/box/ResNet50.html").read_text()
    for table, number in (("cells", "42.1"), ("rungs", "37.5")):
        body = model[model.index(f'<table id="{table}"') :]
        body = body[: body.index("</table>")]
        assert 'title="energy of one image, mJ">energy mJ</th>' in body
        assert f">{number}</td>" in body
    assert ">energy mJ</th>" in pages["versions"]
    assert "joules of the package over images" in pages["method"]
    versions = json.loads((tmp_path / "html/data/versions.json").read_text())
    assert [item for item in versions["metrics"] if item["title"] == "energy of one image"] == [
        {"title": "energy of one image", "unit": "mJ", "direction": "lower", "smallest": {"relative": 0.25}}
    ]
    assert len(list((tmp_path / "html/history").glob("*track_energy*.html"))) == 2


def test_a_comparison_and_a_comment_call_it_by_its_name_and_judge_it_by_its_limit(results: Path) -> None:
    values = [1.000, 1.001, 0.999, 1.002, 0.998, 1.001, 1.000, 0.999]
    told = {"metric": "track_energy", "unit": "joules"}
    worse = measured([row(values, **told)], [row([1.4 * value for value in values], side="head", **told)])
    found = judge.compare(worse)
    assert [item.verdict for item in found.findings] == ["regression"]
    assert re.search(r" energy +1\.000.joules +1\.400.joules +1\.400 ", printed(terminal.print_comparison, found))
    assert "| energy of one image | 1.000 joules | 1.400 joules |" in markdown.render(found)
    assert limits.limit("track_energy", "joules") == Limit(relative=0.25)
    below = measured([row(values, **told)], [row([1.1 * value for value in values], side="head", **told)])
    assert [item.verdict for item in judge.compare(below).findings] == ["no change"]
