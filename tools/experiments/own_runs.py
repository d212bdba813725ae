"""What one run of ours leaves as evidence: the records of generate_own_store.py, shaped as the recorder writes them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import store_files
from machmeter import json_shape
from machmeter.workload import rungs
from machmeter.workload.cells import Cell

OPERATIONS = {"ResNet50": 8.178e9, "ViTB16": 35.13e9}  # per image
PACKAGES = {f"package-{number:03}": f"{number % 9}.{number % 7}.{number % 5}" for number in range(110)}
PACKAGES |= {"torch": "2.12.0", "openvino": "2026.2.0", "onnxruntime": "1.30.0", "numpy": "2.4.6", "asv": "0.6.6"}
UPGRADES = ((60, "torch", "2.13.0"), (140, "openvino", "2026.3.0"), (220, "onnxruntime", "1.31.0"))
_SQNR = {"fp32": 112.5, "tf32": 60.0, "bf16": 38.0, "fp16": 55.0, "int8": 12.6, "int8-dynamic": 20.0}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One call of asv, as the evidence describes it."""

    machine: str
    facts: dict[str, str]
    features: tuple[str, ...]
    gpu: str | None
    commit: str
    environment: str
    stack: str | None
    started: float
    night: int
    swept: dict[str, str] | None

    def described(self) -> dict[str, Any]:
        """Return the run without its cells."""
        return {
            "asv": {"ASV_COMMIT": self.commit, "ASV_ENV_NAME": self.environment},
            "host": {
                "affinity": list(range(8)),
                "architecture": "x86_64",
                "cpu": {
                    "features": list(self.features),
                    "logical_cpus": 8,
                    "model": self.facts["cpu"],
                    "physical_cores": 4,
                },
                "governor": None,
                "kernel": "6.18.44" if self.night < 180 else "6.19.2",
                "limits": {"cpu_quota": None, "memory_bytes": None, "throttled_periods": 0},
                "memory_bytes": 32000000000,
                "system": "Linux",
                "thread_budget": 4,
                "transparent_huge_pages": "always [madvise] never",
                "turbo_disabled": None,
                "virtualized": True,
                **({"gpu": {"name": self.gpu, "driver": "580.65.06"}} if self.gpu else {}),
            },
            "versions": self.versions(),
            "stack": self.stack,
            "stack_mismatches": None if self.swept else [],
            "started": _utc(self.started),
            "uncommitted_changes": False,
            **({"swept": self.swept} if self.swept else {}),
        }

    def versions(self) -> dict[str, str]:
        """Return what is installed: libraries were upgraded in some nights."""
        if self.swept:
            return {self.swept["library"]: self.swept["version"], "numpy": "2.4.6", "asv": "0.6.6"}
        return PACKAGES | {name: version for night, name, version in UPGRADES if night <= self.night}


@dataclass(frozen=True, kw_only=True)
class Timed:
    """What a run found of one cell: samples, or why there are none."""

    cell: Cell
    samples: tuple[float, ...]
    quartiles: tuple[float, ...]
    absent: tuple[str, str] | None  # status and reason

    def facts(self) -> dict[str, float]:
        """Return what is measured once."""
        cell = self.cell
        jitter = 1.0 + 0.05 * (cell.batch % 3) / 3
        found = {
            "track_artifact_size": 102_541_119.0 * (0.25 if "int8" in cell.precision else 1.0),
            "track_first_inference_time": 0.09 * jitter,
            "track_load_time": 0.25 * jitter,
            "track_prepare_time": 8.5 * jitter,
            "track_sqnr": _SQNR[cell.precision],
            "track_top1_agreement": 0.75 if cell.precision == "int8" else 1.0,
        }
        if cell.batch >= 32 and self.samples:
            found["track_throughput_offline"] = 1.3 * cell.batch / self.median()
        if cell.device == "cuda":
            found["track_device_memory"] = 1.2e9
        return found

    def median(self) -> float:
        """Return the median of the samples, in seconds."""
        return self.quartiles[1]

    def number(self, method: str) -> float | None:
        """Return asv's result of the benchmark `method`: null where it failed, NaN where it is not available."""
        if self.absent:
            return None if self.absent[0] == "failed" else float("nan")
        if method == "time_forward":
            return self.median()
        if method == "peakmem_forward":
            return 333_959_168 + 1_000_000 * self.cell.batch
        return self.facts().get(method, float("nan"))


def evidence_of(run: Run, timed: Iterable[Timed], climbed: Iterable[dict[str, Any]], rng: np.random.Generator) -> Any:
    """Return the evidence of `run`: what it timed, and the rungs that it climbed."""
    cells: dict[str, dict[str, Any]] = {}
    order, at = 1, run.started
    for item in timed:
        for benchmark in ("time_forward",) if item.cell.backend == "null" else ("peakmem_forward", "time_forward"):
            record = _record(item, benchmark, run, order, at, rng)
            cells.setdefault(item.cell.key(), {})[record["process"]] = record
            order, at = order + 1, at + 6.0
            if item.absent:
                break
    for number, record in enumerate(climbed):
        begun = _begun("track_throughput", run, order + number, at + 3600 + 30 * number, rng)
        cells[f"tuning.ResNet50({record['rung']['name']})"] = {begun["process"]: {**begun, **record}}
    return store_files.evidence_file(
        run.commit,
        run.machine,
        run.environment,
        run.stack,
        {_digits(rng, 16): {**run.described(), "cells": cells}},
    )


def _begun(benchmark: str, run: Run, order: int, at: float, rng: np.random.Generator) -> dict[str, Any]:
    process = _digits(rng, 16)
    return {
        "benchmark": benchmark,
        "order": order,
        "pid": 4000 + 9 * order,
        "process": process,
        "started": _utc(at),
        "started_at": at,
        "status": "ok",
        "timeout": 1200.0,
        "trace": f"/home/runner/work/project/evidence/{run.machine}/.traces/{process}.txt",
    }


def _record(item: Timed, benchmark: str, run: Run, order: int, at: float, rng: np.random.Generator) -> dict[str, Any]:
    begun = _begun(benchmark, run, order, at, rng)
    cell = item.cell
    if item.absent:
        return begun | {"status": item.absent[0], "reason": item.absent[1], "peak_resident_bytes": 47_853_568}
    artifact = f"{cell.runtime} {cell.model} {cell.precision} {run.versions().get(cell.backend)}"
    opened = {
        "allocator": "system",
        "artifact": {
            "built_on": run.facts["cpu"],
            "digest": _digest(artifact),
            "key": _digest(artifact)[:20],
            "kind": cell.backend,
            "made_with": {"torch": run.versions().get("torch", "")},
        },
        "effective": {
            "compute": {cell.precision: 54},
            "kernels": {f"convolution {name}": number for number, name in enumerate(("1x1", "3x3", "depthwise"), 9)},
            "layout": "contiguous",
            "threads": 4,
        },
        "fidelity": {"images": 64, "sqnr_db": _SQNR[cell.precision], "top1_agreement": 1.0},
        "inputs": {
            "buffers": 8,
            "includes_transfer": False,
            "layout": "contiguous",
            "resident": "device" if run.gpu else "host",
            "rotating": True,
            "source": "photographs",
        },
        "operations_per_image": OPERATIONS[cell.model],
        "peak_resident_bytes": 355_782_656 + 1_000_000 * cell.batch,
        "threads": 4,
        "warm_up": {"calls": 64, "seconds": 1.9},
        "weights": "seeded",
    }
    if run.gpu:
        opened["device"] = {"device": "cuda", "name": run.gpu, "peak_bytes": 1_200_000_000, "peak_rate": 6e13}
    if benchmark == "peakmem_forward":
        return begun | opened | {"facts": item.facts()}
    timed = {
        "disturbed_share": float(round(rng.exponential(0.02), 6)),
        "median_seconds": item.median(),
        "opening_seconds": {"track_first_inference_time": 0.09, "track_load_time": 0.25},
        "sample_seconds": item.samples,
        "samples": len(item.samples),
        "throttled_periods": 0,
    }
    if run.gpu:
        on_device = [round(0.9 * sample, 9) for sample in item.samples]
        timed |= {"device_sample_seconds": on_device, "device_median_seconds": round(0.9 * item.median(), 9)}
    return begun | opened | timed


def ladder_of(model: str, slowness: float, run: Run, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the records of the rungs of `model`, without how each began; some rungs cannot run here."""
    known = rungs.load()
    found = []
    speed = 18.0 / slowness
    for name, rung in known.items():
        settings = json_shape.encode(rungs.settings(rung, known))
        around = {"rung": {"name": name, "on": rung.on, "title": rung.title}, "settings": settings}
        if "ipex" in name:
            found.append(around | {"status": "n/a", "reason": "not installed: intel_extension_for_pytorch"})
            continue
        speed *= float(np.exp(0.15 + 0.1 * rng.standard_normal()))
        calls = np.round(settings["batch"] / speed * np.exp(0.01 * rng.standard_normal(12)), 9)
        facts = {
            "track_throughput": [settings["batch"] / float(call) for call in calls],
            "track_sqnr": _SQNR.get(settings["precision"], 112.5),
            "track_top1_agreement": 1.0,
        }
        count = settings.get("instances", 1)
        found.append(
            around
            | {
                "call_seconds": calls.tolist(),
                "disturbed_share": 0.01,
                "facts": facts,
                "images_per_second": speed,
                "instances": [_instance(settings, run) for _ in range(count if isinstance(count, int) else 1)],
                "instances_peak_resident_bytes": 1_285_300_224,
                "median_seconds": float(np.median(calls)),
                "peak_resident_bytes": 43_425_792,
                "rates": facts["track_throughput"],
                "window_seconds": 9.5,
            }
        )
    return found


def _instance(settings: dict[str, Any], run: Run) -> dict[str, Any]:
    return {
        "allocator": settings.get("allocator", "system"),
        "artifact": {"built_on": run.facts["cpu"], "digest": _digest("w"), "key": _digest("w")[:20], "kind": "weights"},
        "effective": {"compute": {"fp32": 54}, "threads": 4},
        "precision": "fp32" if settings["precision"] == "default" else settings["precision"],
        "proof": {
            "allocator": "system",
            "cpus": [0, 1, 2, 3],
            "huge_page_bytes": 16_777_216,
            "launcher": "none",
            "memory_binding": {"bound": False, "policy": "default", "why": "nothing asked for it"},
            "variables": {},
        },
        "threads": 4,
    }


def _digits(rng: np.random.Generator, count: int) -> str:
    return rng.bytes(count // 2).hex()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _utc(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
