#!/usr/bin/env python3
"""Try the GPU backends on a real GPU, in one run of under 8 minutes: `python3 tools/experiments/try_gpu.py`.

It needs torch and NumPy, installs nothing and uses no network. What is missing (TensorRT, onnxruntime-gpu, torchvision)
is said and left out. Where torchvision or timm is missing, a small residual network stands in for the model: then the
code is tried, and no number is that of a model of ours.

Each cell is opened as a benchmark process opens it (label proved, answers judged, batches resident), then timed. The
table at the end has host time, the GPU's own time and the synchronisation bound. Exit code 1 where a cell failed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machmeter.backends import grid

sys.path.insert(0, str(Path(__file__).parent))

from machmeter import backends
from machmeter.errors import MachmeterError
from machmeter.json_shape import encode
from machmeter.machine import gpu
from machmeter.measure import cell_record, opening
from machmeter.measure.evidence_shape import Facts
from machmeter.measure.record_parts import Part, merged
from machmeter.workload import cells, models, shared_artifacts
from machmeter.workload.artifacts import Recipe, Store, installed_version

BATCHES = (1, 32)
LEAST_CALLS, MOST_SECONDS = 20, 1.5
PACKAGES = (
    "torch", "torchvision", "timm", "torchao", "triton", "onnx", "onnxruntime-gpu", "tensorrt-cu13", "tensorrt",
    "nvidia-ml-py", "numpy",
)  # fmt: skip


def stand_in(pretrained: bool) -> Any:
    """Return a small residual network of torch's own layers."""
    import torch
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc]  # torch is not read
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
            self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

        def forward(self, images: Any) -> Any:
            inside = torch.relu(self.bn1(self.first(images)))
            return torch.relu(images + self.bn2(self.second(inside)))

    stem = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    wider = [nn.Conv2d(64, 256, 1, stride=2, bias=False), nn.BatchNorm2d(256), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000)]
    return nn.Sequential(*stem, Block(64), Block(64), *wider, Block(256), Block(256), *head)


STAND_IN = models.Model(name="StandIn", version=1, packages=("torch",), build=stand_in, family="convolutional")


def seeded_inputs(model: models.Model, store: Store) -> Any:
    """Return smooth seeded images in the place of photographs, where scikit-learn or Pillow is missing."""
    import numpy as np

    def build(folder: Path) -> None:
        random = np.random.default_rng(models.SEED)
        for name in ("calibration", "evaluation"):
            coarse = random.standard_normal((64, 3, 14, 14), dtype=np.float32)
            np.save(folder / f"{name}.npy", coarse.repeat(16, axis=2).repeat(16, axis=3))

    return store.obtain(Recipe(kind="inputs", identity={"noise": True}, given=True), build)


def replace_what_is_missing() -> list[str]:
    """Let preparation use seeded images where there are no photographs; return what was replaced."""
    if any(installed_version(name) is None for name in ("scikit-learn", "pillow")):
        shared_artifacts._inputs = seeded_inputs
        return ["images: seeded noise, as scikit-learn or Pillow is missing"]
    return []


def choose_model(name: str | None) -> models.Model:
    """Return the model called `name`; without one the first that can be built here, else the stand-in."""
    if name:
        return models.get(name)
    wanted = (models.get(item) for item in ("ResNet50", "ViTB16"))
    return next((model for model in wanted if not model.missing_packages()), STAND_IN)


def chosen_cells(model: models.Model, names: list[str]) -> Iterator[tuple[Any, cells.Cell]]:
    """Yield every cell of a GPU at the batches that are tried, cheap ones first."""
    found = [backends.get(name) for name in backends.names() if name.startswith("cuda.")]
    for batch in BATCHES:
        for backend in found:
            if names and backends.name_of(backend) not in names:
                continue
            for cell in grid.all_cells(backend, model):
                if cell.batch == batch and not set(cell.options.values()) & set(backend.on_request):
                    yield backend, cell


def measure(backend: Any, model: models.Model, cell: cells.Cell) -> dict[str, Any]:
    """Open and time one cell; return what was found, or its status and reason."""
    parts: list[Part] = []
    facts: Facts = {}
    try:
        opened = opening.open_cell(backend, model, cell, record=parts.append, facts=facts)
        host: list[int] = []  # nanoseconds
        device: list[float | None] = []
        end = time.perf_counter() + MOST_SECONDS
        while len(host) < LEAST_CALLS or time.perf_counter() < end:
            batch = opened.buffers[len(host) % len(opened.buffers)]
            start = time.perf_counter_ns()
            opened.call(batch)
            host.append(time.perf_counter_ns() - start)
            if problem := opened.problem(host[-1]):
                return {"cell": cell.key(), "status": "failed", "reason": problem, "record": merged(*parts)}
            device.append(opened.device.device_seconds() if opened.device else None)
    except Exception as error:
        return {"cell": cell.key(), **merged(cell_record.failure(error)), "record": merged(*parts), "facts": facts}
    told = [seconds for seconds in device if seconds is not None]
    return {
        "cell": cell.key(),
        "status": "ok",
        "host_ms": statistics.median(host) / 1e6,
        "device_ms": 1e3 * statistics.median(told) if told else None,
        "least_ms": 1e3 * opened.least_seconds,
        "images_per_second": cell.batch / (statistics.median(host) / 1e9),
        "state": encode(opened.device.state()) if opened.device else None,
        "facts": facts,
        "record": merged(*parts),
    }


def line(found: dict[str, Any]) -> str:
    """Return one line of the table."""
    if found["status"] != "ok":
        return f"{found['cell']:<58} {found['status']}: {found['reason']}"
    fidelity = found["record"].get("fidelity", {})
    device = "–" if found["device_ms"] is None else f"{found['device_ms']:.3f}"
    agreement = f"{fidelity['top1_agreement']:.3f} {fidelity['sqnr_db']:6.1f}" if fidelity else "–"
    return (
        f"{found['cell']:<58} {found['host_ms']:9.3f} {device:>9} {found['least_ms']:9.3f} "
        f"{found['images_per_second']:10.1f}  {agreement}"
    )


def main() -> int:
    """Try every cell that there is time for, and say what could not be checked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="default: ResNet50 or ViTB16, whichever can be built here")
    parser.add_argument("--backend", action="append", default=[], help="such as cuda.eager; may be repeated")
    parser.add_argument("--seconds", type=float, default=420.0, help="begin no further cell after so long")
    parser.add_argument("--output", type=Path, help="write everything found into this JSON file")
    options = parser.parse_args()
    found = gpu.find()
    versions = {name: version for name in PACKAGES if (version := installed_version(name))}
    print(f"GPU: {found if isinstance(found, str) else f'{found.name}, compute capability {found.capability}'}")
    print(f"versions: {', '.join(f'{name} {version}' for name, version in versions.items())}")
    if isinstance(found, str):
        print("nothing was checked: there is no GPU")
        return 2
    begin, results, left = time.monotonic(), [], []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault("MACHMETER_STORE", scratch)
        try:
            model = choose_model(options.model)
        except MachmeterError as error:
            print(error)
            return error.exit_code
        notes = [*replace_what_is_missing(), *(["no model of ours can be built here"] if model is STAND_IN else [])]
        print(f"model: {model.name}" + "".join(f"\nnote: {note}" for note in notes), flush=True)
        for backend, cell in chosen_cells(model, options.backend):
            if time.monotonic() - begin > options.seconds:
                left.append(cell.key())
                continue
            done = measure(backend, model, cell)
            results.append(done)
            print(f"[{time.monotonic() - begin:5.0f} s] {line(done)}", flush=True)
    print(f"\n{'cell':<58} {'host ms':>9} {'GPU ms':>9} {'bound ms':>9} {'images/s':>10}  top-1  SQNR dB")
    for status in ("ok", "failed", "n/a"):
        print("\n".join(line(item) for item in results if item["status"] == status))
    if left:
        print(f"no time for {len(left)}: {', '.join(left)}")
    if options.output:
        content = {"gpu": dataclasses.asdict(found), "versions": versions, "results": results, "left": left}
        options.output.write_text(json.dumps(content, indent=1, default=str), encoding="utf-8")
    counts = {status: sum(item["status"] == status for item in results) for status in ("ok", "failed", "n/a")}
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
