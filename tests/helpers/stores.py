"""Small asv stores for the tests of the site: result files as asv writes them, bare NaN and Infinity included."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from machmeter import json_shape
from machmeter.workload import rungs

COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"]
DAY = 86_400_000
BEGIN = 1_700_000_000_000  # 2023-11-14


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
    content = {
        "commit_hash": commit(number),
        "env_name": environment,
        "date": BEGIN + number * DAY,
        "params": {
            "arch": "x86_64",
            "cpu": "Some CPU",
            "machine": machine,
            "num_cpu": "2",
            "os": "Linux",
            "ram": "8000000000",
        },
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": {
            name: [values, params, version, BEGIN + number * DAY, 1.0, _around(values, 0.98), _around(values, 1.02)]
            for name, (params, values) in rows.items()
        },
        "durations": {},
        "version": 2,
    }
    folder = results / machine.replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (file or f"{commit(number)[:8]}-{environment[:60].replace('/', '_')}.json")
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _around(values: Sequence[Any], factor: float) -> list[Any]:
    return [value * factor if isinstance(value, float) else None for value in values]


def write_catalogue(results: Path, benchmarks: dict[str, dict[str, Any]]) -> None:
    """Write asv's benchmarks.json and a machine.json for every machine."""
    described = {
        name: {
            "name": name,
            "params": [],
            "param_names": [],
            "type": "time",
            "unit": "seconds",
            "version": "1",
            "code": "",
        }
        | told
        for name, told in benchmarks.items()
    }
    results.mkdir(parents=True, exist_ok=True)
    (results / "benchmarks.json").write_text(json.dumps({**described, "version": 2}), encoding="utf-8")
    for folder in results.iterdir():
        if folder.is_dir():
            facts = {
                "arch": "x86_64",
                "cpu": "Some CPU",
                "machine": folder.name,
                "num_cpu": "2",
                "os": "Linux",
                "ram": "8000000000",
                "version": 1,
            }
            (folder / "machine.json").write_text(json.dumps(facts), encoding="utf-8")


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
    write_catalogue(
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
    write_catalogue(
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
        _write_evidence(results, number, "env", cells, versions={"openvino": version, "torch": "2.13.0"})
    for version, seconds_per_call in (("2025.0.0", 0.008), ("2026.1.0", 0.006)):
        swept = {"library": "openvino", "version": version, "released": "2025-02-06"}
        _write_evidence(
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
    write_catalogue(results, {name: {"type": "time"} for name in rows})
    tried = {"cuda.tensorrt.ResNet50(fp16, 1)": {"p": {"status": "ok", "started_at": 1.0, "order": 1}}}
    _write_evidence(results, 0, "env", tried)


def _write_evidence(results: Path, number: int, environment: str, cells: dict[str, Any], **run: Any) -> None:
    described = {"started": f"2026-01-0{number + 1}T00:00:00Z", "host": HOST, "cells": cells, **run}
    content = {
        "schema": 1,
        "machine": "box",
        "commit": commit(number),
        "environment": environment,
        "stack": "cpu",
        "runs": {"r": described},
    }
    folder = results.parent / "evidence" / "box"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{commit(number)[:8]}-{environment}.json").write_text(json.dumps(content), encoding="utf-8")


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
