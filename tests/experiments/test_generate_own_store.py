"""The generated store of our own results: of the shape that the code writes, so that every reader of ours shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

import generate_own_store
from machmeter.history.read import read
from machmeter.results_branch import collect
from machmeter.site import build
from machmeter.tables import cells_table, ladder_table, versions_table
from machmeter.workload import rungs

NIGHTS = 7  # one of them measures everything


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    generate_own_store.generate(folder, NIGHTS)
    return folder


def test_it_is_always_the_same(store: Path, tmp_path: Path) -> None:
    generate_own_store.generate(tmp_path, NIGHTS)
    paths = sorted(path.relative_to(store) for path in store.rglob("*.json"))
    assert len(paths) == 2 * (4 * NIGHTS + 3 + 26) + 3 + 5  # three ladders; notes of four machines and benchmarks.json
    for path in paths:
        assert (store / path).read_bytes() == (tmp_path / path).read_bytes()


def test_the_results_branch_would_take_every_file(store: Path) -> None:
    found = collect.collect([collect.in_folder(store)])
    assert (found.problems, found.notes) == ([], [])
    assert len(found.files) == 2 * (4 * NIGHTS + 3 + 26) + 3


def test_tables_ladders_and_versions_show_it(store: Path) -> None:
    results = store / "results"
    table = cells_table.build(results, "xeon-amx")
    assert (table.notes, set(table.peaks)) == ((), {"fp32", "bf16", "int8"})
    assert {row.model for row in table.rows} == {"ResNet50", "ViTB16"}
    assert {row.backend for row in table.rows} == {"eager", "inductor", "ipex", "onnxruntime", "openvino", "torchao"}
    assert {row.status for row in table.rows} == {"ok"}
    best = table.rows[0]
    assert None not in (
        best.p95_ms,
        best.times_eager,
        best.percent_of_peak,
        best.facts["sqnr_db"],
        best.facts["peak_memory_mb"],
    )
    assert any(row.facts["offline_images_per_second"] for row in table.rows)
    assert "n/a" in {row.status for row in cells_table.build(results, "old").rows}
    gpu = cells_table.build(results, "gpu")
    assert {row.backend.partition(".")[0] for row in gpu.rows} == {"cuda"}
    assert all(row.facts["device_memory_mb"] and row.device_p50_ms for row in gpu.rows)
    ladder = ladder_table.build(results, "xeon-amx", "ResNet50", rungs.load().values())
    assert sum(row.status == "ok" for row in ladder.rows) == len(rungs.load()) - 3  # ipex has a stack of its own
    swept = versions_table.build(results, "xeon-amx")
    assert {item.library: len(item.rows) for item in swept.series} == {"openvino": 10, "onnxruntime": 6}
    assert {row.status for item in swept.series for row in item.rows} == {"ok"}


def test_the_site_has_models_a_ladder_and_a_sweep(store: Path, tmp_path: Path) -> None:
    history = read(store / "results")
    assert history.left_out == ()
    assert any(item.reasons for item in history.series)
    request = build.Request(results=store / "results", output=tmp_path / "html", title="own")
    build.run(request, lambda *_: None)
    assert {path.relative_to(tmp_path / "html/model").as_posix() for path in tmp_path.glob("html/model/*/*.html")} == {
        f"{machine}/{model}.html" for machine in ("xeon-amx", "epyc", "old", "gpu") for model in ("ResNet50", "ViTB16")
    }
    page = (tmp_path / "html/model/xeon-amx/ResNet50.html").read_text()
    assert "The tuning ladder of ResNet50" in page
    assert "2025.4.0" in (tmp_path / "html/versions.html").read_text()
