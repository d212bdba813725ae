"""The peak of the machine: which windows count, which kernel wins, what has no peak, and what the command prints."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from machmeter import errors, json_shape
from machmeter.machine import host
from machmeter.measure import peak
from machmeter.measure.evidence_shape import Run
from machmeter.store.values import ResultFile, Value
from machmeter.tables import peaks
from machmeter.workload import models, shared_artifacts
from machmeter.workload.names import peak_key

pytestmark = pytest.mark.quiet


def trial(rate: float, size: int) -> peak._Trial:
    return peak._Trial(rate=rate, kernel="k", size=size, call=lambda: None)


def test_the_smallest_product_that_is_as_good_as_the_best_is_sampled() -> None:
    """A short product passes between two interruptions where a long one cannot."""
    assert peak._shortest_of_the_best([trial(99.0, 512), trial(100.0, 1024), trial(97.0, 256)]).size == 512


def test_disturbed_windows_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = iter([(9.0, False), (1.0, True), (9.0, False), *[(1.0, True)] * 40])
    monkeypatch.setattr(peak, "_window", lambda call, seconds: next(windows))
    assert peak._undisturbed(lambda: None) == [1.0] * peak.WINDOWS


def test_a_busy_machine_has_no_peak_rather_than_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "LONGEST_SECONDS", 0.01)
    monkeypatch.setattr(peak, "_window", lambda call, seconds: (1.0, False))
    with pytest.raises(errors.CellFailed, match=r"other programs used the CPUs in \d+ of \d+ windows"):
        peak._undisturbed(lambda: None)


def test_a_disturbed_trial_does_not_let_a_poorer_kernel_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial waits for an undisturbed window, and fails where there is none."""
    windows = iter([(9.0, False), (8.0, False), (1.0, True)])
    monkeypatch.setattr(peak, "_window", lambda call, seconds: next(windows))
    assert peak._trial(lambda: None) == 1.0
    monkeypatch.setattr(peak, "LONGEST_TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(peak, "_window", lambda call, seconds: (1.0, False))
    with pytest.raises(errors.CellFailed, match="other programs used the CPUs"):
        peak._trial(lambda: None)


def test_without_torch_there_is_no_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for precision in peak.PRECISIONS:
        with pytest.raises(errors.Unsupported, match="not installed: torch"):
            peak.matrix_product(precision)


@pytest.mark.parametrize(
    ("features", "precision", "reason"),
    [
        (("avx2",), "fp32", None),
        (("avx2",), "bf16", "this CPU has no bf16 instructions"),
        (("avx2",), "int8", "this CPU has no int8 dot products"),
        (("avx_vnni", "avx512_bf16"), "bf16", None),
        (("avx_vnni", "avx512_bf16"), "int8", None),
    ],
)
def test_a_precision_that_the_cpu_lacks_has_no_peak(
    monkeypatch: pytest.MonkeyPatch, features: tuple[str, ...], precision: str, reason: str | None
) -> None:
    cpu = host.Cpu(model="Test CPU", features=features, physical_cores=2, logical_cpus=2)
    monkeypatch.setattr(host, "cpu", lambda: cpu)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: "found")
    assert peak.unsupported(precision) == reason


def test_last_level_caches_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four CPUs, two of them to each L3 of 32 MB: 64 MB in all, and arrays of four times as much."""
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    assert host.last_level_cache_bytes() == 0
    assert peak.array_bytes() == peak.SMALLEST_ARRAY_BYTES
    for cpu in range(4):
        for index, level, size, shared in ((0, 1, "48K", f"{cpu}"), (3, 3, "32768K", "0-1" if cpu < 2 else "2-3")):
            folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
            folder.mkdir(parents=True)
            for name, text in (("level", level), ("size", size), ("shared_cpu_list", shared)):
                (folder / name).write_text(f"{text}\n")
    assert host.last_level_cache_bytes() == 64 << 20
    assert peak.array_bytes() == 256 << 20
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1048576 kB\n")
    assert peak.array_bytes() == 64 << 20  # a sixteenth of 1 GiB


def test_memory_bandwidth_is_positive_and_plausible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "array_bytes", lambda: 4 << 20)
    monkeypatch.setattr(peak, "UNDISTURBED", 0.0)
    monkeypatch.setattr(peak, "WINDOWS", 3)
    monkeypatch.setattr(peak, "LEAST_WINDOWS", 1)
    measured = peak.memory_bandwidth()
    assert set(measured.found.tried) == {"copy", "scale", "add"}
    assert 1e8 < min(measured.samples) <= max(measured.samples) < 1e14


@pytest.mark.models
@pytest.mark.parametrize("precision", peak.PRECISIONS)
def test_the_peak_is_of_the_precision_and_possible(monkeypatch: pytest.MonkeyPatch, precision: str) -> None:
    """What oneDNN executed is on record, every kernel was tried, and no CPU of this kind could be faster."""
    if reason := peak.unsupported(precision):
        pytest.skip(reason)
    monkeypatch.setattr(peak, "UNDISTURBED", 0.0)  # other tests may run beside this one
    monkeypatch.setattr(peak, "WINDOWS", 3)
    monkeypatch.setattr(peak, "LEAST_WINDOWS", 1)
    measured = peak.matrix_product(precision)
    found = measured.found
    assert min(found.tried.values()) > 0.0
    assert 0.0 < max(measured.samples) <= 1.0 / host.least_seconds(1.0, precision)
    assert found.threads == host.thread_budget()
    if precision != "fp32":
        assert found.executed is not None
        assert found.executed.compute == {precision: 1}


@pytest.mark.models
@pytest.mark.parametrize(("name", "multiply_adds"), [("ResNet50", 4.1e9), ("ViTB16", 17.6e9)])
def test_the_library_counts_the_operations_of_the_models(name: str, multiply_adds: float) -> None:
    """A multiplication and an addition are two operations; attention counts, fused or not."""
    import torch

    counted = shared_artifacts.count_operations(models.get(name).build(False).eval(), torch.zeros(1, 3, 224, 224))
    assert counted == pytest.approx(2 * multiply_adds, rel=0.01)


def result_file(**numbers: float | None) -> ResultFile:
    benchmark = "control.MachinePeak.track_matrix_product_peak"
    values: dict[tuple[str, tuple[str, ...]], Value] = {
        (benchmark, (precision,)): Value(number=number, started=1.0) for precision, number in numbers.items()
    }
    values["control.MachinePeak.track_memory_bandwidth", ()] = Value(number=78e9, started=1.0)
    return ResultFile(path=Path("x"), machine="here", commit="a", environment="e", values=values)


def run(**records: dict[str, Any]) -> Run:
    cells = {peak_key(what): {"p": record} for what, record in records.items()}
    return json_shape.decode(Run, {"started": "2026", "cells": cells})


def test_the_command_prints_peaks_and_what_they_mean_for_each_model() -> None:
    ok = {"status": "ok", "kernel": "torch.mm", "size": 512}
    failed = {"status": "failed", "reason": "other programs used the CPUs"}
    memory = {"status": "ok", "kernel": "add", "size": 134_000_000}
    found = peaks.limits(
        [result_file(fp32=500e9, int8=2000e9)],
        [run(fp32=ok, bf16=failed, int8=ok, memory=memory)],
        {"ResNet50": 8.2e9, "ViTB16": None},
    )
    assert [" ".join(line.split()) for line in peaks.lines(found)] == [
        "Gop/s GMAC/s",
        "fp32 500 250 torch.mm, 512 × 512",
        "bf16 – – failed: other programs used the CPUs",
        "int8 2000 1000 torch.mm, 512 × 512",
        "memory 78.0 GB/s add, arrays of 134 MB",
        "",
        "GMAC/image images/s at the peak: fp32 bf16 int8",
        "ResNet50 4.10 61.0 – 243.9",
        "ViTB16 – – – –",
    ]
    assert found.as_json()["operations_per_second"] == {"fp32": 500e9, "int8": 2000e9}
    assert found.as_json()["models"]["ResNet50"]["images_per_second_at_peak"]["bf16"] is None


@pytest.mark.parametrize(
    ("operations", "speed", "rate", "share"),
    [(8.2e9, 100.0, 1e12, 0.82), (None, 100.0, 1e12, None), (8.2e9, None, 1e12, None), (8.2e9, 100.0, None, None)],
)
def test_a_share_needs_all_three(
    operations: float | None, speed: float | None, rate: float | None, share: float | None
) -> None:
    assert peaks.share(operations, speed, rate) == pytest.approx(share)
