"""The machines of generate_own_store.py: which cells they measure in a night, and what they find."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from machmeter import backends
from machmeter.backends.grid import parameters
from machmeter.workload import models
from machmeter.workload.cells import Cell
from own_runs import Timed

BATCHES = (1, 8)  # of the nights between
RARE = ("aot", "max-autotune", "pageable")  # options that only the weekly grid has

# Seconds of a call of ResNet50 in fp32 at batch 1 on the first machine, and what other cells take of that.
SECONDS = {"eager": 0.055, "inductor": 0.045, "onnxruntime": 0.028, "openvino": 0.027, "torchao": 0.03, "ipex": 0.04}
SECONDS |= {"cuda.eager": 0.004, "cuda.inductor": 0.002, "cuda.onnxruntime": 0.0017, "cuda.tensorrt": 0.001}
SECONDS |= {"null": 2e-7, "cuda.transfer": 1e-4}
PRECISIONS = {"fp32": 1.0, "tf32": 0.7, "bf16": 0.5, "fp16": 0.4, "int8": 0.3, "int8-dynamic": 0.9}
MODELS = {"ResNet50": 1.0, "ViTB16": 3.5}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One machine: what asv notes of it, and how fast it is."""

    name: str
    cpu: str
    slowness: float
    features: tuple[str, ...] = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16")
    gpu: str | None = None
    sweeps: tuple[str, ...] = ()  # libraries

    @property
    def stack(self) -> str:
        """Return the stack that it measures every night."""
        return "cuda" if self.gpu else "cpu"

    def facts(self) -> dict[str, str]:
        """Return what asv notes of it."""
        described = {"arch": "x86_64", "cpu": self.cpu, "machine": self.name, "num_cpu": "8", "os": "Linux 6.18.44"}
        return described | {"ram": "32000000000"}


MACHINES = (
    Machine(name="xeon-amx", cpu="Generated Xeon", slowness=1.0, sweeps=("openvino", "onnxruntime")),
    Machine(name="epyc", cpu="Generated EPYC", slowness=0.8, sweeps=("openvino",)),
    Machine(name="old", cpu="Generated Core", slowness=2.2, features=("avx2",)),
    Machine(name="gpu", cpu="Generated host", slowness=1.0, gpu="Generated GPU"),
)


def seconds(cell: Cell, machine: Machine, night: int, seed: int) -> float:
    """Return what a call of `cell` takes: now and then a backend has become faster or slower."""
    rng = np.random.default_rng([seed, *f"{machine.name} {cell.runtime}".encode()])
    level = 1.0
    for _ in range(3):
        start, factor = int(rng.integers(5, 400)), float(rng.choice([0.85, 0.92, 1.08, 1.2]))
        level *= factor if night >= start else 1.0
    option = 1.0 + 0.1 * len("".join(cell.options.values())) / 10
    share = PRECISIONS[cell.precision] * MODELS[cell.model] * option * level * machine.slowness
    return SECONDS[cell.runtime] * share * float(cell.batch**0.9)


def why_not(cell: Cell, machine: Machine, night: int) -> tuple[str, str] | None:
    """Return status and reason of a cell that has no number here, None where it has one."""
    if cell.precision == "bf16" and not machine.gpu and "avx512_bf16" not in machine.features:
        return "n/a", "this CPU has no bf16 instructions"
    if cell.runtime == "torchao" and cell.batch == 8 and night % 50 in (31, 32):
        return "failed", "out of memory (DefaultCPUAllocator: not enough memory); the peak was 1214 MB"
    return None


def cells_of(names: tuple[str, ...], chosen: tuple[str, ...], weekly: bool) -> list[Cell]:
    """Return what is measured of the backends `names` and the models `chosen`."""
    found = []
    for name, model in itertools.product(names, chosen):
        backend = backends.get(name)
        axes, values = parameters(backend, models.get(model))
        for precision, *options, batch in itertools.product(*values):
            if weekly or (batch in BATCHES and not set(options) & set(RARE)):
                found.append(
                    Cell(
                        device=backend.device,
                        backend=backend.name.rpartition(".")[2],
                        model=model,
                        precision=str(precision),
                        batch=int(str(batch)),
                        options=dict(zip(axes[1:-1], map(str, options), strict=True)),
                    )
                )
    return found


def measured(cells: list[Cell], machine: Machine, night: int, seed: int, rng: np.random.Generator) -> list[Timed]:
    """Return what a run finds of `cells`."""
    found = []
    for cell in cells:
        absent = why_not(cell, machine, night)
        middle = seconds(cell, machine, night, seed)
        count = int(np.clip(10.0 / middle, 5, 1000))
        samples = np.round(middle * np.exp(0.01 * rng.standard_normal(count) + 0.005 * rng.standard_normal()), 9)
        if rng.random() < 0.01:  # the first calls of some processes are slow
            samples[:3] *= 1.5
        quartiles = tuple(np.quantile(samples, (0.25, 0.5, 0.75)).tolist())
        kept = () if absent else tuple(samples.tolist())
        found.append(Timed(cell=cell, samples=kept, quartiles=quartiles, absent=absent))
    return found
