"""The versions table: exact rows from a small evidence folder."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from helpers import evidence
from helpers.tables import write_results
from machmeter.tables import cells_table
from machmeter.tables.show_versions import least_width, print_versions
from machmeter.tables.versions_table import Series, Versions, build

CELL = "cpu.openvino.ResNet50(int8, 8)"
HOST = {"cpu": {"model": "X", "physical_cores": 2, "features": []}, "thread_budget": 2, "kernel": "6.1"}
OLD_NUMPY = {"openvino": "2025.0.0", "numpy": "1.26.4"}


def measured(milliseconds: float, digest: str = "d" * 64, **more: Any) -> dict[str, dict[str, Any]]:
    """Return the records of a measured cell, by process."""
    shared = {
        "status": "ok",
        "artifact": {"digest": digest, "kind": "openvino"},
        "effective": {"threads": 2},
        "allocator": "system",
        "started_at": 1.0,
        **more,
    }
    return {
        "p1": {
            **shared,
            "benchmark": "peakmem_forward",
            "order": 1,
            "facts": {"track_top1_agreement": 0.796875, "track_sqnr": 6.31},
            "peak_resident_bytes": 245_400_000,
        },
        "p2": {
            **shared,
            "benchmark": "time_forward",
            "order": 2,
            "samples": 20,
            "median_seconds": milliseconds / 1e3,
            "sample_seconds": [milliseconds / 1e3] * 20,
        },
    }


def disturbed(milliseconds: float, **more: Any) -> dict[str, dict[str, Any]]:
    return measured(milliseconds, disturbed_share=0.35, **more)


def failed(reason: str) -> dict[str, dict[str, Any]]:
    return {"p": {"status": "failed", "reason": reason, "benchmark": "install", "order": 1, "started_at": 1.0}}


def write(
    folder: Path,
    version: str,
    records: dict[str, dict[str, Any]],
    *,
    released: str | None = None,
    installed: str | None = None,
    run: str = "r",
    commit: str = "a" * 40,
    key: str = CELL,
    **described: Any,
) -> None:
    """Write what a sweep left of one version, beside what is there already."""
    environment = f"virtualenv-py3.11-openvino{version}"
    told = {
        "host": HOST,
        "versions": {"openvino": installed or version, "numpy": "2.0.0"},
        "swept": {"library": "openvino", "version": version, "released": released},
        **described,
    }
    evidence.write(folder / "results", {key: records}, commit=commit, environment=environment, run=run, **told)


def only(folder: Path, **wanted: Any) -> Series:
    (series,) = build(folder / "results", "here", **wanted).series
    return series


def test_each_version_is_compared_with_the_one_before(tmp_path: Path) -> None:
    """J7: the first has nothing before it; a failed one is passed over, and is told with its reason."""
    write(tmp_path, "2024.0.0", measured(50.0), released="2024-03-06")
    write(tmp_path, "2024.6.0", failed("cannot load"), released="2024-12-18")
    write(tmp_path, "2025.0.0", measured(40.0), released="2025-02-05")
    write(tmp_path, "2025.1.0", measured(44.0), released="2025-04-10")
    series = only(tmp_path)
    assert (series.library, series.model, series.precision, series.batch) == ("openvino", "ResNet50", "int8", 8)
    assert [(row.version, row.images_per_second, row.change_percent, row.against) for row in series.rows] == [
        ("2024.0.0", 160.0, None, None),
        ("2024.6.0", None, None, None),
        ("2025.0.0", 200.0, 25.0, "2024.0.0"),
        ("2025.1.0", 181.8, -9.1, "2025.0.0"),
    ]
    first, broken, *_ = series.rows
    assert (first.p50_ms, *first.facts.values(), first.samples) == (
        50.0, 0.797, 6.3, 245.0, 20,
    )  # fmt: skip
    assert (broken.status, broken.reason, broken.facts["peak_memory_mb"]) == ("failed", "cannot load", None)
    assert series.notes == ()


def test_a_version_that_was_not_installed_has_no_number(tmp_path: Path) -> None:
    """Labels are proved: what ran is what the evidence says is installed."""
    write(tmp_path, "2025.0.0", measured(40.0), installed="2025.1.0")
    (row,) = only(tmp_path).rows
    assert (row.status, row.images_per_second) == ("failed", None)
    assert row.reason == "labelled openvino 2025.0.0, but 2025.1.0 is installed"


def test_a_local_build_has_the_version_it_was_built_from(tmp_path: Path) -> None:
    write(tmp_path, "2025.0.0", measured(40.0), installed="2025.0.0+cpu")
    assert only(tmp_path).rows[0].status == "ok"


def test_another_artifact_is_told_and_not_compared(tmp_path: Path) -> None:
    write(tmp_path, "2024.0.0", measured(50.0), released="2024-03-06")
    write(tmp_path, "2025.0.0", measured(40.0, digest="e" * 64), released="2025-02-05")
    series = only(tmp_path)
    assert [row.change_percent for row in series.rows] == [None, None]
    assert series.notes == (
        "the artifact differs, so there is no change between them: dddddddddddd (2024.0.0); eeeeeeeeeeee (2025.0.0)",
    )


def test_what_each_version_compiles_for_itself_is_compared(tmp_path: Path) -> None:
    for version, digit, speed in (("2.8.0", "d", 50.0), ("2.9.0", "e", 25.0)):
        records = measured(speed)
        for record in records.values():
            record["artifact"] = {"digest": digit * 64, "kind": "torch-compile-cache"}
        write(tmp_path, version, records)
    series = only(tmp_path)
    assert [row.change_percent for row in series.rows] == [None, 100.0]
    assert series.notes == ("each version compiled its own artifact",)


@pytest.mark.parametrize(
    ("more", "run", "note", "change"),
    [
        ({"effective": {"threads": 1}}, {}, "threads differs: 2 (2024.0.0); 1 (2025.0.0)", None),
        ({}, {"host": {**HOST, "cpu": {"model": "Y"}}}, "CPU differs: X (2024.0.0); Y (2025.0.0)", None),
        ({}, {"host": {**HOST, "kernel": "6.2"}}, "kernel differs: 6.1 (2024.0.0); 6.2 (2025.0.0)", 25.0),
        ({"allocator": "jemalloc"}, {}, "allocator differs: system (2024.0.0); jemalloc (2025.0.0)", 25.0),
        ({}, {"versions": OLD_NUMPY}, "NumPy differs: 2.0.0 (2024.0.0); 1.26.4 (2025.0.0)", 25.0),
    ],
)
def test_differences_beside_the_version_are_told(
    tmp_path: Path, more: dict[str, Any], run: dict[str, Any], note: str, change: float | None
) -> None:
    """J5: with another CPU or other threads there is no percentage."""
    write(tmp_path, "2024.0.0", measured(50.0))
    write(tmp_path, "2025.0.0", measured(40.0, **more), **run)
    series = only(tmp_path)
    assert series.notes == (note,)
    assert series.rows[1].change_percent == change


def test_rows_are_in_order_of_release_and_of_numbers_where_a_day_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, "1.10.0", measured(50.0), released="2025-01-01")
    write(tmp_path, "1.9.1", measured(50.0), released="2025-02-01")
    assert [row.version for row in only(tmp_path).rows] == ["1.10.0", "1.9.1"]
    write(tmp_path, "1.2.0", measured(50.0))
    assert [row.version for row in only(tmp_path).rows] == ["1.2.0", "1.9.1", "1.10.0"]


def test_the_newest_measurement_of_a_version_counts_and_an_interruption_hides_none(tmp_path: Path) -> None:
    write(tmp_path, "1.0.0", measured(50.0), run="r1")
    write(tmp_path, "1.0.0", measured(40.0, started_at=2.0), run="r2", commit="b" * 40)
    write(
        tmp_path,
        "1.0.0",
        {"p": {"status": "interrupted", "reason": "stopped", "order": 1, "started_at": 3.0}},
        run="r3",
    )
    (row,) = only(tmp_path).rows
    assert (row.p50_ms, row.commit) == (40.0, "bbbbbbbb")


def test_a_version_that_was_only_interrupted_was_not_run(tmp_path: Path) -> None:
    write(tmp_path, "1.0.0", {"p": {"status": "interrupted", "reason": "stopped", "order": 1, "started_at": 3.0}})
    (row,) = only(tmp_path).rows
    assert (row.status, row.reason) == ("not run", "stopped")


def test_only_what_was_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "1.0.0", measured(50.0))
    write(tmp_path, "1.0.0", measured(50.0), run="r2", key="cpu.openvino.ViTB16(fp32, 1)")
    everything = build(tmp_path / "results", "here")
    assert [(item.model, item.batch) for item in everything.series] == [("ResNet50", 8), ("ViTB16", 1)]
    assert only(tmp_path, wanted=["ViTB16"]).batch == 1
    assert build(tmp_path / "results", "here", ["torch"]).series == ()
    assert build(tmp_path / "results", "there").series == ()


def test_evidence_that_cannot_be_read_is_left_out_with_a_note(tmp_path: Path) -> None:
    write(tmp_path, "1.0.0", measured(50.0))
    path = tmp_path / "evidence" / "here" / "x.json"
    path.write_text('{"schema": 1, "runs": {"r"')
    built = build(tmp_path / "results", "here")
    assert (len(built.series), built.notes) == (1, (f"left out: {path} is unreadable",))


def test_a_sweep_does_not_stand_in_the_main_table(tmp_path: Path) -> None:
    """Its environments hold old versions: the newest number of a cell must not come from one of them."""
    benchmark = "cpu.openvino.ResNet50.time_forward"
    path = write_results(tmp_path / "results", {benchmark: [[0.1], [["'int8'"], ["8"]], None]})
    swept = json.loads(path.read_text())
    swept["env_name"] = "virtualenv-py3.11-openvino2024.0.0"
    swept["results"][benchmark][0], swept["results"][benchmark][3] = [0.2], 1_800_000_000_000
    path.with_name("aaaaaaaa-virtualenv-py3.11-openvino2024.0.0.json").write_text(json.dumps(swept))
    write(tmp_path, "2024.0.0", measured(200.0, started_at=1.8e9))
    (row,) = cells_table.build(tmp_path / "results", "here").rows
    assert (row.p50_ms, row.environment) == (100.0, "env")


def test_the_table_as_text_and_as_json(tmp_path: Path) -> None:
    write(tmp_path, "2024.0.0", measured(50.0), released="2024-03-06")
    write(tmp_path, "2025.0.0", measured(40.0), released="2025-02-05")
    write(tmp_path, "2025.1.0", failed("No matching distribution found"), released="2025-04-10")
    built: Versions = build(tmp_path / "results", "here")
    output = io.StringIO()
    print_versions(built, Console(file=output, width=least_width()))
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    assert lines == [
        "machine here: X, 2 threads",
        "change: of images/s, against the version above it that has an undisturbed number.",
        "",
        "versions of openvino",
        "",
        "ResNet50 openvino int8 batch 8",
        "version  released   images/s  change p50 ms top-1 SQNR dB peak MB samples",
        "2024.0.0 2024-03-06    160.0       –  50.00 0.797     6.3     245      20",
        "2025.0.0 2025-02-05    200.0 +25.0 %  40.00 0.797     6.3     245      20",
        "2025.1.0 2025-04-10   failed       –      –     –       –       –       –",
        "failed  2025.1.0: No matching distribution found",
    ]
    content = json.loads(json.dumps(built.as_json(), allow_nan=False))
    assert content["series"][0]["rows"][1]["change_percent"] == 25.0


def test_a_number_that_was_disturbed_proves_no_change(tmp_path: Path) -> None:
    """A neighbour on the machine halves the speed of one version: no percentage, neither to it nor from it."""
    write(tmp_path, "2024.0.0", measured(50.0))
    write(tmp_path, "2024.6.0", disturbed(100.0))
    write(tmp_path, "2025.0.0", measured(40.0))
    series = only(tmp_path)
    assert [(row.images_per_second, row.change_percent, row.against) for row in series.rows] == [
        (160.0, None, None),
        (80.0, None, None),
        (200.0, 25.0, "2024.0.0"),
    ]
    assert series.rows[1].reason == "disturbed: other programs had 35 % of the CPUs while it was timed"


def test_an_undisturbed_measurement_wins_over_a_newer_disturbed_one(tmp_path: Path) -> None:
    write(tmp_path, "2024.0.0", measured(50.0, disturbed_share=0.02), run="first")
    write(tmp_path, "2024.0.0", disturbed(100.0, started_at=9.0), run="second")
    (row,) = only(tmp_path).rows
    assert (row.images_per_second, row.reason) == (160.0, "")


def test_what_nobody_looked_at_does_not_win_over_a_newer_measurement(tmp_path: Path) -> None:
    """Evidence of before does not say who else was at work."""
    write(tmp_path, "2024.0.0", measured(50.0), run="first")
    write(tmp_path, "2024.0.0", disturbed(100.0, started_at=9.0), run="second")
    (row,) = only(tmp_path).rows
    assert row.images_per_second == 80.0
