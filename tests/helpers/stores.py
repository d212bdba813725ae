"""Small asv stores for the tests of the site: result files as asv writes them, bare NaN and Infinity included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers import asv_files, evidence
from machmeter import json_shape
from machmeter.workload import rungs

COLUMNS = asv_files.COLUMNS[:7]
DAY = asv_files.DAY
BEGIN = 1_700_000_000_000  # 2023-11-14
FACTS = {"arch": "x86_64", "cpu": "Some CPU", "machine": "", "num_cpu": "2", "os": "Linux", "ram": "8000000000"}


def commit(number: int) -> str:
    """Return the hash of the commit `number`."""
    return f"{number:08x}" + "c0ffee" * 5 + "00"


def write_result(
    results: Path,
    number: int,
    rows: dict[str, tuple[list[list[str]], list[Any]]],
    *,
    machine: str = "box",
    environment: str = "virtualenv-py3.11",
    file: str | None = None,
    version: str = "1",
) -> Path:
    """Write the file of one commit: `rows` maps a benchmark to its parameters and results."""
    results_of_all = {
        name: asv_files.result(
            values, params, version, started=BEGIN + number * DAY,
            low=_around(values, 0.98), high=_around(values, 1.02),
        )[: len(COLUMNS)]
        for name, (params, values) in rows.items()
    }  # fmt: skip
    return asv_files.write(
        results, commit(number), results_of_all,
        date=BEGIN + number * DAY,
        params={**FACTS, "machine": machine},
        folder=machine.replace("/", "_"),
        environment=environment,
        file=file or f"{commit(number)[:8]}-{environment[:60]}.json",
        result_columns=COLUMNS,
    )  # fmt: skip


def _around(values: Sequence[Any], factor: float) -> list[Any]:
    return [value * factor if isinstance(value, float) else None for value in values]


def foreign(results: Path, commits: int = 40) -> None:
    """Write a store of a project that is not machmeter: a step of 50 %, parameters, a failure, n/a, an unknown unit."""
    for number in range(commits):
        wobble = 1.0 + 0.004 * ((number * 7) % 5 - 2)
        level = 0.010 if number < commits // 2 else 0.015
        rows = {
            "suite.Time.time_sum": (
                [["'small'", "'large'"], ["1", "10"]],
                [level * wobble, 2e-3, 0.5 * wobble, float("nan")],
            ),
            "suite.Time.time_sort": ([], [None if number >= commits - 3 else 0.2 * wobble]),
            "suite.Track.track_score": ([], [10.0 * wobble if number < commits // 2 else 12.0 * wobble]),
        }
        write_result(results, number, rows)
    asv_files.write_catalogue(
        results,
        {
            "suite.Time.time_sum": {"params": [["'small'", "'large'"], ["1", "10"]], "param_names": ["size", "n"]},
            "suite.Time.time_sort": {},
            "suite.Track.track_score": {"type": "track", "unit": "points"},
        },
    )


HOST = {
    "cpu": {"model": "Some CPU", "physical_cores": 2, "logical_cpus": 2, "features": ["avx2", "avx512_vnni"]},
    "thread_budget": 2,
    "kernel": "6.1",
    "limits": {"cpu_quota": None},
}


def own(results: Path) -> None:
    """Write a store of machmeter: a model in two backends and batches, a failed cell, a ladder, a sweep, an event."""
    batches = ["1", "8"]
    for number in range(3):
        rows: dict[str, tuple[list[list[str]], list[Any]]] = {
            "cpu.eager.ResNet50.time_forward": ([["'fp32'"], ["'contiguous'"], batches], [0.030, 0.280]),
            "cpu.eager.ResNet50.track_top1_agreement": ([["'fp32'"], ["'contiguous'"], batches], [1.0, 1.0]),
            "cpu.eager.ResNet50.track_sqnr": ([["'fp32'"], ["'contiguous'"], batches], [116.0, 116.0]),
            "cpu.openvino.ResNet50.time_forward": ([["'fp32'", "'int8'"], batches], [0.018, 0.140, 0.0055, None]),
            "cpu.openvino.ResNet50.track_top1_agreement": ([["'fp32'", "'int8'"], batches], [1.0, 1.0, 0.797, 0.797]),
            "cpu.openvino.ResNet50.track_sqnr": ([["'fp32'", "'int8'"], batches], [111.8, 111.8, 6.3, 6.3]),
        }
        write_result(results, number, rows, environment="env")
    seconds, better = {"type": "time"}, {"type": "track"}
    grid = {"params": [["'fp32'", "'int8'"], batches], "param_names": ["precision", "batch"]}
    eager = {"params": [["'fp32'"], ["'contiguous'"], batches], "param_names": ["precision", "layout", "batch"]}
    asv_files.write_catalogue(
        results,
        {
            "cpu.eager.ResNet50.time_forward": seconds | eager,
            "cpu.eager.ResNet50.track_top1_agreement": better | eager | {"unit": "fraction"},
            "cpu.eager.ResNet50.track_sqnr": better | eager | {"unit": "dB"},
            "cpu.openvino.ResNet50.time_forward": seconds | grid,
            "cpu.openvino.ResNet50.track_top1_agreement": better | grid | {"unit": "fraction"},
            "cpu.openvino.ResNet50.track_sqnr": better | grid | {"unit": "dB"},
        },
    )
    now = (BEGIN + 3 * DAY) / 1000
    failed = {"p": {"status": "failed", "reason": "crashed (signal 11)", "started_at": now, "order": 1}}
    for number, version in ((1, "2026.1.0"), (2, "2026.2.0")):
        cells = {"cpu.openvino.ResNet50(int8, 8)": failed}
        speeds = {"eager": 33.0, "batch-8": 30.0, "openvino": 60.0} if number == 2 else {}
        cells |= {f"tuning.ResNet50({name})": {"p": _rung(name, speed)} for name, speed in speeds.items()}
        write_evidence(results, number, "env", cells, versions={"openvino": version, "torch": "2.13.0"})
    for version, seconds_per_call in (("2025.0.0", 0.008), ("2026.1.0", 0.006)):
        swept = {"library": "openvino", "version": version, "released": "2025-02-06"}
        write_evidence(
            results,
            2,
            f"openvino{version}",
            {"cpu.openvino.ResNet50(int8, 1)": _swept(seconds_per_call)},
            versions={"openvino": version},
            swept=swept,
        )


def gpu(results: Path) -> None:
    """Write a store of a machine with a GPU: TensorRT's lead over eager grows with the batch. Invented numbers."""
    batches = [1, 8, 32, 64, 128]
    grids = {
        "cuda.tensorrt.ResNet50.time_forward": ([["'fp16'"]], [1000.0, 4000.0, 10000.0, 12000.0, 16000.0]),
        "cuda.eager.ResNet50.time_forward": (
            [["'fp16'"], ["'channels_last'"]],
            [500.0, 2000.0, 4000.0, 4000.0, 4000.0],
        ),
    }
    rows = {
        name: (
            [*params, list(map(str, batches))],
            [batch / speed for batch, speed in zip(batches, speeds, strict=True)],
        )
        for name, (params, speeds) in grids.items()
    }
    write_result(results, 0, rows, environment="env")
    asv_files.write_catalogue(results, {name: {"type": "time"} for name in rows})
    tried = {"cuda.tensorrt.ResNet50(fp16, 1)": {"p": {"status": "ok", "started_at": 1.0, "order": 1}}}
    write_evidence(results, 0, "env", tried)


def write_evidence(results: Path, number: int, environment: str, cells: dict[str, Any], **run: Any) -> None:
    """Write the evidence of one run on the machine `box`."""
    told = {"started": f"2026-01-0{number + 1}T00:00:00Z", "host": HOST, **run}
    evidence.write(results, cells, commit=commit(number), machine="box", environment=environment, **told)


def _rung(name: str, speed: float) -> dict[str, Any]:
    known = rungs.load()
    proof = {"huge_page_bytes": 0, "memory_binding": {"bound": False}, "cpus": [0, 1], "variables": {}}
    return {
        "status": "ok",
        "started_at": 1.0,
        "settings": json_shape.encode(rungs.settings(known[name], known)),
        "images_per_second": speed,
        "median_seconds": 1 / speed,
        "call_seconds": [1 / speed] * 5,
        "facts": {"track_top1_agreement": 1.0, "track_sqnr": 100.0},
        "instances": [{"proof": proof, "threads": 2, "artifact": {"kind": "weights", "key": "k"}}],
    }


def _swept(seconds: float) -> dict[str, Any]:
    shared = {
        "status": "ok",
        "artifact": {"digest": "d" * 64, "kind": "openvino"},
        "effective": {"threads": 2},
        "started_at": 1.0,
    }
    return {
        "p1": {
            **shared,
            "benchmark": "peakmem_forward",
            "order": 1,
            "facts": {"track_top1_agreement": 0.797, "track_sqnr": 6.3},
            "peak_resident_bytes": 245_400_000,
        },
        "p2": {
            **shared,
            "benchmark": "time_forward",
            "order": 2,
            "samples": 20,
            "median_seconds": seconds,
            "sample_seconds": [seconds] * 20,
        },
    }
