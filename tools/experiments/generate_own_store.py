"""Write a large store of our own results, evidence beside them, to measure the site of a machmeter project on.

    python tools/experiments/generate_own_store.py DIR [--nights 300] [--seed 1]

Four machines (three with CPUs alone, one of them without bf16; one with a GPU) measure ResNet50 every night, and every
seventh night the whole grid, a second model and the tuning ladder; the CPU machines measure the stack `ipex` then,
and two of them once sweep libraries. 300 nights are 1,352 result files and 1,478 files of evidence (one for each run):
as many results and series as generate_store.py writes for a foreign project, so that the evidence is what tells the
two apart. They lie as `machmeter results pull` brings them. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import store_files
from generate_store import COLUMNS, DAY
from machmeter import backends, suite
from machmeter.backends.grid import parameters
from machmeter.measure import ladder_classes
from machmeter.results_branch import paths
from machmeter.workload import models, rungs
from machmeter.workload.cells import Cell
from own_machines import MACHINES, Machine, cells_of, measured
from own_runs import Run, Timed, evidence_of, ladder_of

FIRST_DATE = 1_770_000_000_000  # 2026-02-02
WEEK = 7
NIGHTLY = "ResNet50"
WEEKLY = ("ResNet50", "ViTB16")

CPU_BACKENDS = ("eager", "inductor", "onnxruntime", "openvino", "torchao")
GPU_BACKENDS = ("cuda.eager", "cuda.inductor", "cuda.onnxruntime", "cuda.tensorrt", "cuda.transfer")
SWEPT = {
    "openvino": tuple(f"{year}.{minor}.0" for year in (2024, 2025) for minor in range(5)),
    "onnxruntime": tuple(f"1.{minor}.0" for minor in range(20, 26)),
}


def commit(night: int, seed: int) -> str:
    """Return the hash of what was measured in `night`."""
    return hashlib.sha1(f"own {seed} {night}".encode()).hexdigest()


class Writer:
    """Writes the files of a store below `folder`."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed, self.bytes, self.files = folder, seed, 0, 0
        self.described: dict[str, Any] = {}

    def night(self, machine: Machine, night: int) -> None:
        """Write what `machine` measured in one night."""
        weekly = night % WEEK == WEEK - 1
        names = GPU_BACKENDS if machine.gpu else CPU_BACKENDS
        cells = cells_of(("null",), (NIGHTLY,), True) + cells_of(names, WEEKLY if weekly else (NIGHTLY,), weekly)
        self._run(machine, night, f"virtualenv-py3.11-STACK{machine.stack}", names, cells, ladder=weekly)
        if weekly and not machine.gpu:
            self._run(machine, night, "virtualenv-py3.11-STACKipex", ("ipex",), cells_of(("ipex",), WEEKLY, True))

    def sweep(self, machine: Machine, night: int) -> None:
        """Write what `machine` measured of many versions of some libraries."""
        for library, version in ((name, version) for name in machine.sweeps for version in SWEPT[name]):
            told = {"library": library, "version": version, "released": "2025-06-01"}
            cells = cells_of((library,), (NIGHTLY,), False)
            self._run(machine, night, f"virtualenv-py3.11-{library}{version}", (library,), cells, swept=told)

    def _run(
        self,
        machine: Machine,
        night: int,
        environment: str,
        names: tuple[str, ...],
        cells: list[Cell],
        *,
        ladder: bool = False,
        swept: dict[str, str] | None = None,
    ) -> None:
        rng = np.random.default_rng([self.seed, night, *f"{machine.name} {environment}".encode()])
        date = FIRST_DATE + night * DAY
        run = Run(
            machine=machine.name,
            facts=machine.facts(),
            features=machine.features,
            gpu=machine.gpu,
            commit=commit(night, self.seed),
            environment=environment,
            stack=None if swept else environment.partition("STACK")[2],
            started=date / 1000 + 3600,
            night=night,
            swept=swept,
        )
        timed = measured(cells, machine, night, self.seed, rng)
        climbed = ladder_of(WEEKLY[0], machine.slowness, run, rng) if ladder and not machine.gpu else []
        rows = self._rows(names, timed, date)
        if not swept:
            rows |= self._controls(machine, date, rng)
        if climbed:
            rows |= self._ladder(WEEKLY[0], climbed, date)
        content = store_files.result_file(
            run.commit,
            environment,
            date,
            rows,
            COLUMNS,
            {**run.facts, "python": "3.11", **({swept["library"]: swept["version"]} if swept else {})},
            requirements={swept["library"]: swept["version"]} if swept else None,
            variables=None if swept else {"STACK": run.stack},
        )
        self._write("result", run, content)
        self._write("evidence", run, evidence_of(run, timed, (), rng))
        if climbed:
            self._write("evidence", run, evidence_of(run, (), climbed, rng))

    def _rows(self, names: tuple[str, ...], timed: list[Timed], date: int) -> dict[str, Any]:
        """Return asv's rows: every parameter that there is, NaN where it was not measured."""
        by_key = {item.cell.key(): item for item in timed}
        rows: dict[str, Any] = {}
        for name, model in dict.fromkeys((item.cell.runtime, item.cell.model) for item in timed):
            backend = backends.get(name)
            axes, values = parameters(backend, models.get(model))
            series = f"{backend.device}.{backend.name.rpartition('.')[2]}.{model}"
            made = suite.benchmark_classes("generated", backend, [models.get(model)])[model]
            if name == "null":
                made = suite.null_class("generated")
            grid = [[repr(value) for value in choices] for choices in values]
            keys = [f"{series}({', '.join(map(str, combination))})" for combination in itertools.product(*values)]
            chosen = [by_key.get(key) for key in keys]
            series = "control.Null" if name == "null" else series
            for method in sorted(vars_of(made)):
                if method == "track_throughput_offline" and all(not item or item.cell.batch < 32 for item in chosen):
                    continue
                row = _row(method, grid, made.version, date + 3_600_000, chosen)
                rows[f"{series}.{method}"] = row
                self._describe(f"{series}.{method}", getattr(made, method), axes, grid, made.version)
        return rows

    def _controls(self, machine: Machine, date: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the rows of the machine itself."""
        noise = np.exp(0.01 * rng.standard_normal(6)) / machine.slowness
        peaks = [float(4e11 * noise[0]), float(6e11 * noise[1]), float(6e12 * noise[2])]
        if "avx512_bf16" not in machine.features:
            peaks[1] = float("nan")
        started = date + 3_600_000
        precisions = [["'fp32'", "'bf16'", "'int8'"]]
        rows = {
            "control.MachinePeak.track_matrix_product_peak": [peaks, precisions, "1", started, 11.8],
            "control.MachinePeak.track_memory_bandwidth": [[float(2e10 * noise[3])], [], "1", started, 17.0],
            "control.Machine.time_matrix_product": [[float(0.05 / noise[4])], [], "1", started, 3.5],
        }
        for name, unit in (("track_matrix_product_peak", "operations/s"), ("track_memory_bandwidth", "bytes/s")):
            self.described[f"control.MachinePeak.{name}"] = {"type": "track", "unit": unit, "version": "1"}
        self.described["control.Machine.time_matrix_product"] = {"type": "time", "unit": "seconds", "version": "1"}
        return rows

    def _ladder(self, model: str, climbed: list[Any], date: int) -> dict[str, Any]:
        names = list(rungs.load())
        made = ladder_classes.ladder_classes("tuning", [models.get(model)])[model]
        grid = [[repr(name) for name in names]]
        by_rung = {item["rung"]["name"]: item for item in climbed}
        rows = {}
        for method in ("track_throughput", "track_top1_agreement", "track_sqnr"):
            facts = [by_rung.get(name, {}).get("facts", {}).get(method) for name in names]
            numbers = [
                float("nan") if fact is None else float(np.median(fact)) if isinstance(fact, list) else fact
                for fact in facts
            ]
            rows[f"tuning.{model}.{method}"] = [numbers, grid, made.version, date + 7_200_000, 224.8]
            self._describe(f"tuning.{model}.{method}", getattr(made, method), ["rung"], grid, made.version)
        return rows

    def _describe(self, name: str, method: Any, axes: list[str], grid: list[list[str]], version: str) -> None:
        kind = {"time": "time", "peakmem": "peakmemory", "track": "track"}[name.rpartition(".")[2].partition("_")[0]]
        told = {"type": kind, "unit": method.unit, "param_names": axes, "params": grid, "version": version}
        self.described[name] = told

    def _write(self, kind: paths.Kind, run: Run, content: Any) -> None:
        encoded = msgspec.json.encode(_bare(content) if kind == "result" else content, order="sorted")
        stem = f"{run.commit[:8]}-{run.environment}"
        target = self.folder / paths.path_of(kind, run.machine, stem, encoded)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(encoded)
        self.bytes, self.files = self.bytes + len(encoded), self.files + 1


_NAN = msgspec.Raw(b"NaN")


def _bare(value: Any) -> Any:
    """Return `value` with what strict JSON lacks as asv writes it."""
    if isinstance(value, float):
        return value if value == value else _NAN
    if isinstance(value, list) and not (value and isinstance(value[0], tuple)):
        return [_bare(item) for item in value]
    return {key: _bare(item) for key, item in value.items()} if isinstance(value, dict) else value


def vars_of(made: type) -> list[str]:
    """Return the names of the benchmarks of an asv class."""
    return [name for name in dir(made) if name.partition("_")[0] in ("time", "track", "peakmem")]


def _row(method: str, grid: list[list[str]], version: str, started: int, chosen: list[Timed | None]) -> list[Any]:
    results = [float("nan") if item is None else item.number(method) for item in chosen]
    row: list[Any] = [results, grid, version, started, 56.686]
    if method != "time_forward":
        return row
    there = [item is not None and bool(item.samples) for item in chosen]
    for quartile, factor in ((1, 0.997), (1, 1.003), (0, 1.0), (2, 1.0)):
        row.append([factor * item.quartiles[quartile] if item and item.samples else None for item in chosen])
    row.append([1 if ok else None for ok in there])
    row.append([len(item.samples) if ok and item else None for item, ok in zip(chosen, there, strict=True)])
    row.append([item.samples if ok and item else None for item, ok in zip(chosen, there, strict=True)])
    return row


def generate(folder: Path, nights: int = 300, seed: int = 1) -> tuple[int, int]:
    """Write `results` and `evidence` into `folder`; return how many files that are, and how many bytes."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("fork")) as pool:
        written = list(pool.map(partial(_of_machine, folder, nights, seed), MACHINES))
    described: dict[str, Any] = {}
    for writer in written:
        described |= writer.described
    listed = {
        name: {"name": name, "code": f"def {name.rpartition('.')[2]}(self): ...", "params": [], "param_names": []}
        | told
        for name, told in sorted(described.items())
    }
    (folder / "results" / "benchmarks.json").write_text(json.dumps({**listed, "version": 2}, indent=4))
    return sum(writer.files for writer in written), sum(writer.bytes for writer in written)


def _of_machine(folder: Path, nights: int, seed: int, machine: Machine) -> Writer:
    writer = Writer(folder, seed)
    for night in range(nights):
        writer.night(machine, night)
    if nights:
        writer.sweep(machine, nights - 1)
    (folder / "results" / machine.name / "machine.json").write_text(json.dumps({**machine.facts(), "version": 1}))
    return writer


def main() -> None:
    """Generate a store as the command line says."""
    parser = argparse.ArgumentParser(description="Write a large store of our own results and evidence.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nights", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    files, size = generate(options.folder, options.nights, options.seed)
    print(f"{files} files, {size / 1e6:.0f} MB in {options.folder}, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
