"""Reading asv's files and the evidence, and the table made of them: exact rows from small files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from helpers.tables import write_evidence, write_results
from machmeter.store.values import read_all
from machmeter.tables.cells_table import Row, build
from machmeter.tables.show_cells import print_table


def test_rows_have_the_digits_that_are_shown(tmp_path: Path) -> None:
    write_results(
        tmp_path / "results",
        {
            "cpu.eager.ResNet50.time_forward": [[0.4], [["'fp32'"], ["'contiguous'"], ["8"]], [[0.4] * 20]],
            "cpu.openvino.ResNet50.time_forward": [
                [0.0372, 0.1],
                [["'int8'", "'fp32'"], ["8"]],
                [[0.0372] * 20, [0.1] * 5],
            ],
            "cpu.openvino.ResNet50.track_top1_agreement": [[0.984375, 1.0], [["'int8'", "'fp32'"], ["8"]], None],
            "cpu.openvino.ResNet50.track_sqnr": [[18.043, 120.0], [["'int8'", "'fp32'"], ["8"]], None],
            "cpu.openvino.ResNet50.peakmem_forward": [[245e6, 400e6], [["'int8'", "'fp32'"], ["8"]], None],
        },
    )
    int8, fp32, eager = build(tmp_path / "results", "here").rows
    assert (int8.p50_ms, int8.p95_ms, int8.images_per_second) == (37.2, 37.2, 215.1)
    assert (int8.times_eager, int8.times_own_fp32, int8.no_gain) == (10.75, 2.69, False)
    assert tuple(int8.facts[key] for key in ("top1_agreement", "sqnr_db", "peak_memory_mb")) == (0.984, 18.0, 245.0)
    assert (fp32.p95_ms, fp32.samples) == (None, 5)  # M22: five samples have no 95th percentile
    assert (eager.options, eager.times_eager) == ("contiguous", 1.0)


def test_a_gpu_is_compared_with_eager_on_the_gpu_and_its_own_peak(tmp_path: Path) -> None:
    """Both devices have an eager fp32: neither is the other's baseline. Transfers say nothing of a model."""
    eager, tensorrt = [["'fp32'"], ["'contiguous'"], ["8"]], [["'fp16'"], ["8"]]
    write_results(
        tmp_path / "results",
        {
            "cpu.eager.ResNet50.time_forward": [[0.4], eager, None],
            "cuda.eager.ResNet50.time_forward": [[0.008], eager, None],
            "cuda.tensorrt.ResNet50.time_forward": [[0.002], tensorrt, None],
            "cuda.tensorrt.ResNet50.track_device_memory": [[1.5e9], tensorrt, None],
            "cuda.transfer.ResNet50.time_forward": [[0.0001], [["'fp32'"], ["'pinned'"], ["8"]], None],
        },
    )
    record = {
        "status": "ok", "started_at": 1_700_000_000.0, "operations_per_image": 8e9, "device": {"peak_rate": 4e14},
        "samples": 20, "median_seconds": 0.002, "device_median_seconds": 0.00187,
    }  # fmt: skip
    write_evidence(tmp_path / "results", {"cuda.tensorrt.ResNet50(fp16, 8)": record})
    found = {row.backend: row for row in build(tmp_path / "results", "here").rows}
    assert list(found) == ["cuda.tensorrt", "cuda.eager", "eager"]
    assert [found[name].times_eager for name in found] == [4.0, 1.0, 1.0]
    gpu = found["cuda.tensorrt"]
    assert (gpu.images_per_second, gpu.percent_of_peak) == (4000.0, 8.0)
    assert (gpu.facts["device_memory_mb"], gpu.device_p50_ms, gpu.p50_ms) == (1500.0, 1.87, 2.0)
    assert found["cuda.eager"].percent_of_peak is None


def test_a_lower_precision_that_is_slower_is_marked(tmp_path: Path) -> None:
    """M12: int8 slower than the same backend's fp32."""
    write_results(
        tmp_path / "results",
        {"cpu.onnxruntime.ResNet50.time_forward": [[0.1, 0.2], [["'fp32'", "'int8-dynamic'"], ["8"]], None]},
    )
    write_evidence(tmp_path / "results", {}, host={"cpu": {"model": "X", "physical_cores": 2, "features": ["avx2"]}})
    table = build(tmp_path / "results", "here")
    assert [(row.precision, row.times_own_fp32, row.no_gain) for row in table.rows] == [
        ("fp32", None, False),
        ("int8-dynamic", 0.5, True),
    ]
    output = io.StringIO()
    print_table(table, Console(file=output, width=140))
    assert "0.50 no gain" in output.getvalue()
    assert "CPU features: avx2" in output.getvalue()


PEAKS = "control.MachinePeak.track_matrix_product_peak"
PRECISIONS = [["'fp32'", "'bf16'", "'int8'"]]


def test_each_cell_shows_its_share_of_the_peak_of_its_precision(tmp_path: Path) -> None:
    """8.2 Gop per image at 100 images/s are 820 Gop/s; dynamic int8 multiplies in int8 too."""
    write_results(
        tmp_path / "results",
        {
            PEAKS: [[1000e9, None, 2000e9], PRECISIONS, None],
            "control.MachinePeak.track_memory_bandwidth": [[50e9], [], None],
            "cpu.onnxruntime.ResNet50.time_forward": [
                [0.08, 0.08, 0.08],
                [["'fp32'", "'int8'", "'int8-dynamic'"], ["8"]],
                None,
            ],
            "cpu.openvino.ResNet50.time_forward": [[0.08, 0.08], [["'bf16'", "'fp32'"], ["8"]], None],
        },
    )
    record = {"status": "ok", "order": 1, "operations_per_image": 8.2e9, "facts": {"track_sqnr": 9.0}}
    keys = ("onnxruntime.ResNet50(fp32, 8)", "onnxruntime.ResNet50(int8, 8)", "onnxruntime.ResNet50(int8-dynamic, 8)")
    write_evidence(
        tmp_path / "results",
        {f"cpu.{key}": record for key in (*keys, "openvino.ResNet50(bf16, 8)")}
        | {"cpu.openvino.ResNet50(fp32, 8)": {"status": "ok", "order": 1}},
        host={"cpu": {"model": "X", "physical_cores": 2, "features": []}},
    )
    table = build(tmp_path / "results", "here")
    assert {(row.backend, row.precision): row.percent_of_peak for row in table.rows} == {
        ("onnxruntime", "fp32"): 82.0,
        ("onnxruntime", "int8"): 41.0,
        ("onnxruntime", "int8-dynamic"): 41.0,
        ("openvino", "bf16"): None,  # its peak failed
        ("openvino", "fp32"): None,  # evidence from before operations were recorded
    }
    assert table.as_json()["peaks"] == {"fp32": 1000e9, "int8": 2000e9}
    output = io.StringIO()
    print_table(table, Console(file=output, width=140))
    assert "over the highest rate of this machine: fp32 1000 Gop/s, int8 2000 Gop/s." in output.getvalue()
    assert "82.0" in output.getvalue()


def test_the_newest_peak_of_this_machine_counts(tmp_path: Path) -> None:
    old = write_results(tmp_path, {PEAKS: [[1e12, 1e12, 1e12], PRECISIONS, None]}, commit="f" * 40)
    content = json.loads(old.read_text())
    content["results"][PEAKS][3] -= 1000
    old.write_text(json.dumps(content))
    write_results(tmp_path, {PEAKS: [[2e12, float("nan"), None], PRECISIONS, None]}, commit="a" * 40)
    write_results(tmp_path, {PEAKS: [[9e12, 9e12, 9e12], PRECISIONS, None]}, machine="there")
    assert build(tmp_path, "here").peaks == {"fp32": 2e12, "bf16": 1e12, "int8": 1e12}


def test_without_a_peak_the_table_says_how_to_get_one(tmp_path: Path) -> None:
    benchmark = {"cpu.eager.ResNet50.time_forward": [[0.4], [["'fp32'"], ["'x'"], ["8"]], None]}
    write_results(tmp_path / "results", benchmark)
    write_evidence(tmp_path / "results", {}, host={"cpu": {"model": "X", "physical_cores": 2, "features": []}})
    output = io.StringIO()
    print_table(build(tmp_path / "results", "here"), Console(file=output, width=140))
    assert "not measured yet, run 'machmeter peak'" in output.getvalue()


def test_ratios_are_taken_at_the_same_batch_only(tmp_path: Path) -> None:
    """M23: a gain at batch 8 says nothing about batch 1."""
    write_results(
        tmp_path / "results",
        {
            "cpu.eager.ResNet50.time_forward": [[0.4], [["'fp32'"], ["'contiguous'"], ["8"]], None],
            "cpu.openvino.ResNet50.time_forward": [[0.01], [["'fp32'"], ["1"]], None],
        },
    )
    one = next(row for row in build(tmp_path / "results", "here").rows if row.batch == 1)
    assert one.times_eager is None


def test_not_available_failed_and_not_run_differ(tmp_path: Path) -> None:
    """R7: null is failed; NaN is n/a only where the evidence says so, otherwise it was not run."""
    write_results(
        tmp_path / "results",
        {
            "cpu.openvino.ResNet50.time_forward": [
                [float("nan"), None, float("nan")],
                [["'bf16'", "'fp32'", "'int8'"], ["8"]],
                None,
            ]
        },
    )
    write_evidence(
        tmp_path / "results",
        {"cpu.openvino.ResNet50(bf16, 8)": {"status": "n/a", "reason": "no bf16", "order": 1, "started_at": 1.0}},
    )
    rows = build(tmp_path / "results", "here").rows
    assert [(row.precision, row.status, row.reason) for row in rows] == [
        ("fp32", "failed", "no reason on record"),
        ("bf16", "n/a", "no bf16"),
    ]


def test_cells_of_an_interrupted_run_are_kept(tmp_path: Path) -> None:
    """R8: asv wrote no file; what was finished is in the evidence."""
    record = {
        "status": "ok",
        "order": 1,
        "started_at": 100.0,
        "samples": 20,
        "median_seconds": 0.1,
        "sample_seconds": [0.1] * 20,
        "facts": {"track_top1_agreement": 1.0, "track_sqnr": 99.0},
    }
    write_evidence(tmp_path / "results", {"cpu.openvino.ResNet50(fp32, 8)": record})
    (row,) = build(tmp_path / "results", "here").rows
    assert (row.status, row.images_per_second, row.p95_ms, row.top1_agreement) == ("ok", 80.0, 100.0, 1.0)
    assert "interrupted" in row.reason


def test_an_interrupted_measurement_replaces_an_older_one(tmp_path: Path) -> None:
    write_results(tmp_path / "results", {"cpu.openvino.ResNet50.time_forward": [[0.2], [["'fp32'"], ["8"]], None]})
    record = {"status": "ok", "order": 1, "samples": 20, "median_seconds": 0.1, "sample_seconds": [0.1] * 20}
    for started, speed in ((1_700_000_000.5, 40.0), (1_700_000_100.0, 80.0)):  # in asv's run, and after it
        write_evidence(tmp_path / "results", {"cpu.openvino.ResNet50(fp32, 8)": {**record, "started_at": started}})
        (row,) = build(tmp_path / "results", "here").rows
        assert row.images_per_second == speed


def test_what_one_environment_lacks_does_not_hide_what_another_measured(tmp_path: Path) -> None:
    write_results(tmp_path / "results", {"cpu.openvino.ResNet50.time_forward": [[0.1], [["'fp32'"], ["8"]], None]})
    record = {"status": "n/a", "reason": "not installed: openvino", "order": 1, "started_at": 1.8e9}
    write_evidence(tmp_path / "results", {"cpu.openvino.ResNet50(fp32, 8)": record}, environment="small")
    assert [row.status for row in build(tmp_path / "results", "here").rows] == ["ok"]
    write_evidence(tmp_path / "results", {"cpu.openvino.ResNet50(fp32, 8)": record}, environment="env")
    assert [row.status for row in build(tmp_path / "results", "here").rows] == ["n/a"]


def test_all_numbers_of_a_row_are_of_one_commit(tmp_path: Path) -> None:
    """A newer timing at another commit does not borrow the older commit's answers; its own evidence has them."""
    params = [["'fp32'"], ["8"]]
    write_results(
        tmp_path / "results",
        {
            "cpu.openvino.ResNet50.time_forward": [[0.2], params, None],
            "cpu.openvino.ResNet50.track_top1_agreement": [[0.99], params, None],
        },
        commit="b" * 40,
    )
    write_results(tmp_path / "results", {"cpu.openvino.ResNet50.time_forward": [[0.1], params, None]})
    record = {"status": "ok", "order": 1, "samples": 1, "median_seconds": 0.1, "started_at": 1_700_000_000.5}
    write_evidence(tmp_path / "results", {"cpu.openvino.ResNet50(fp32, 8)": record})
    (row,) = build(tmp_path / "results", "here").rows
    assert (row.commit, row.p50_ms, row.top1_agreement) == ("aaaaaaaa", 100.0, None)


@pytest.mark.parametrize(
    ("record", "status", "reason"),
    [
        ({"status": "ok", "facts": {"track_sqnr": 30.0}}, "not run", "its latency was not timed"),
        (
            {"status": "interrupted", "reason": "stopped (signal 15) after 3 s"},
            "not run",
            "stopped (signal 15) after 3 s",
        ),
        ({"status": "running", "pid": 0}, "failed", "killed (signal 9)"),
    ],
)
def test_a_cell_without_a_timing_is_not_failed_unless_it_failed(
    tmp_path: Path, record: dict[str, Any], status: str, reason: str
) -> None:
    write_evidence(tmp_path / "results", {"cpu.openvino.ResNet50(fp32, 8)": {"order": 1, "started_at": 1.0, **record}})
    (row,) = build(tmp_path / "results", "here").rows
    assert row.status == status
    assert row.reason.startswith(reason)


def test_an_interrupted_attempt_does_not_hide_an_earlier_number(tmp_path: Path) -> None:
    write_results(tmp_path / "results", {"cpu.openvino.ResNet50.time_forward": [[0.1], [["'fp32'"], ["8"]], None]})
    record = {"status": "interrupted", "reason": "stopped", "order": 1, "started_at": 1.8e9}
    write_evidence(tmp_path / "results", {"cpu.openvino.ResNet50(fp32, 8)": record})
    assert [row.status for row in build(tmp_path / "results", "here").rows] == ["ok"]


@pytest.mark.parametrize(
    "text", ["[]", "null", '{"schema": 1}', '{"schema": 1, "runs": {"r": {"cells": {"c": {"p": 1}}}}}']
)
def test_evidence_of_another_shape_is_left_out_with_a_note(tmp_path: Path, text: str) -> None:
    path = tmp_path / "evidence" / "here" / "x.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    table = build(tmp_path / "results", "here")
    assert table.notes == (f"left out: {path} is unreadable",)


def test_a_half_written_file_is_left_alone_and_named(tmp_path: Path) -> None:
    """R8, R10: skipped loudly, never overwritten; the rest is shown."""
    write_results(tmp_path / "results", {"cpu.openvino.ResNet50.time_forward": [[0.1], [["'fp32'"], ["8"]], None]})
    half = tmp_path / "results" / "here" / "bbbbbbbb-env.json"
    half.write_text('{"version": 2, "results": {"cpu.op')
    table = build(tmp_path / "results", "here")
    assert len(table.rows) == 1
    assert table.notes == (f"left out: {half} is not valid JSON, perhaps half-written",)
    assert half.read_text() == '{"version": 2, "results": {"cpu.op'


@pytest.mark.parametrize(
    "content", ["[]", '{"version": 1}', '{"version": 2}', "null", '"x"', '{"version": 2, "results": 1}']
)
def test_files_of_another_shape_are_left_out(tmp_path: Path, content: str) -> None:
    path = tmp_path / "here" / "cccccccc-env.json"
    path.parent.mkdir()
    path.write_text(content)
    files, unreadable = read_all(tmp_path)
    assert files == []
    assert [item.path for item in unreadable] == [path]


@pytest.mark.parametrize("value", ["hello", True, [[1, 2]], float("inf")])
def test_a_value_that_is_no_number_is_no_result(tmp_path: Path, value: Any) -> None:
    write_results(tmp_path, {"cpu.openvino.ResNet50.time_forward": [[value], [["'fp32'"], ["8"]], None]})
    (row,) = build(tmp_path, "here").rows
    assert (row.status, row.images_per_second) == ("failed", None)


def test_the_newest_measurement_of_a_cell_wins(tmp_path: Path) -> None:
    benchmark = "cpu.openvino.ResNet50.time_forward"
    old = write_results(tmp_path, {benchmark: [[0.1], [["'fp32'"], ["8"]], None]}, commit="f" * 40)
    content = json.loads(old.read_text())
    content["results"][benchmark][3] -= 1000
    old.write_text(json.dumps(content))
    write_results(tmp_path, {benchmark: [[0.2], [["'fp32'"], ["8"]], None]}, commit="a" * 40)
    (row,) = build(tmp_path, "here").rows
    assert (row.p50_ms, row.commit) == (200.0, "aaaaaaaa")


def test_other_machines_are_not_mixed_in(tmp_path: Path) -> None:
    write_results(tmp_path, {"cpu.openvino.ResNet50.time_forward": [[0.1], [["'fp32'"], ["8"]], None]}, machine="there")
    assert build(tmp_path, "here").rows == ()


def test_best_first_then_failed_then_not_available() -> None:
    from machmeter.tables.cells_table import _rank

    def row(status: Any, speed: float | None) -> Row:
        return Row(
            model="ResNet50", backend="b", precision="fp32", options="", batch=1, status=status, images_per_second=speed
        )

    ordered = sorted([row("n/a", None), row("ok", 10.0), row("failed", None), row("ok", 20.0)], key=_rank)
    assert [(item.status, item.images_per_second) for item in ordered] == [
        ("ok", 20.0),
        ("ok", 10.0),
        ("failed", None),
        ("n/a", None),
    ]


def test_a_disturbed_number_proves_no_gain(tmp_path: Path) -> None:
    """A busy machine halves eager's speed; nothing becomes twice as fast by that."""
    cells = {}
    for key, seconds, share in (
        ("cpu.eager.ResNet50(fp32, contiguous, 8)", 0.8, 0.5),
        ("cpu.openvino.ResNet50(fp32, 8)", 0.1, 0.01),
        ("cpu.openvino.ResNet50(int8, 8)", 0.05, 0.01),
    ):
        cells[key] = {
            "status": "ok",
            "benchmark": "time_forward",
            "started_at": 1.0,
            "samples": 5,
            "median_seconds": seconds,
            "sample_seconds": [seconds] * 5,
            "disturbed_share": share,
        }
    write_evidence(tmp_path / "results", cells)
    rows = {(row.backend, row.precision): row for row in build(tmp_path / "results", "here").rows}
    assert rows["eager", "fp32"].times_eager is None
    assert rows["eager", "fp32"].images_per_second == 10.0
    assert "disturbed: other programs had 50 % of the CPUs" in rows["eager", "fp32"].reason
    assert rows["openvino", "int8"].times_eager is None
    assert rows["openvino", "int8"].times_own_fp32 == 2.0
