"""Measure the measuring: what the harness costs, and whether its numbers are those of the runtimes' own tools.

Run it with `make bench-harness`. It prints, from one run on one machine, the compared programs in turn:

(a) seconds per call that asv reports for the null backend           goal: below 20 µs
(b) OpenVINO int8 ResNet50, our images/s over benchmark_app's        goal: 0.98 or better
(c) ONNX Runtime fp32 ResNet50, our images/s over a bare loop's      goal: 0.98 or better
(d) share of `machmeter bench` spent in warm-up and timed calls      goal: 60 % or more
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from machmeter import asv_names, backends
from machmeter.backends import grid
from machmeter.json_shape import Json
from machmeter.machine import host
from machmeter.measure import dead_processes
from machmeter.workload import cells, models
from machmeter.workload.artifacts import Artifact, Store

ROOT = Path(__file__).resolve().parents[2]
BATCH = 8
SECONDS = 8

# What asv starts for one benchmark and one parameter combination, without asv around it.
OURS = """
import sys
from asv_runner._aux import update_sys_path
from asv_runner.discovery import get_benchmark_from_name
root, name = sys.argv[1:]
update_sys_path(root)
benchmark = get_benchmark_from_name(root, name)
assert not benchmark.do_setup(), "n/a"
samples = sorted(benchmark.do_run()["samples"])
benchmark.do_teardown()
print(samples[len(samples) // 2])
"""

BARE_ONNXRUNTIME = """
import sys, time
import numpy, onnxruntime
path, batch, threads, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
images = numpy.random.default_rng(0).standard_normal((batch, 3, 224, 224), dtype=numpy.float32)
name, samples = session.get_inputs()[0].name, []
warm = time.perf_counter() + 1.0
while time.perf_counter() < warm:
    session.run(None, {name: images})
end = time.perf_counter() + seconds
while time.perf_counter() < end:
    start = time.perf_counter()
    session.run(None, {name: images})
    samples.append(time.perf_counter() - start)
print(sorted(samples)[len(samples) // 2])
"""


def main() -> None:
    """Print the four figures; `--rounds` and `--skip-share` make it shorter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5, help="how often each pair of programs is run in turn")
    parser.add_argument("--skip-share", action="store_true", help="leave out (d), which takes as long as `make bench`")
    options = parser.parse_args()
    print(f"{host.cpu().model}, {host.thread_budget()} threads, batch {BATCH}, {options.rounds} rounds in turn")

    overhead = [_ours("control.Null.time_forward-0") for _ in range(options.rounds)]
    _print("a", "overhead per call of the null backend", statistics.median(overhead) * 1e6, "µs", "below 20 µs", 20)

    int8 = _cell("openvino", "int8")
    _compare(
        "b",
        "OpenVINO int8, ours over benchmark_app",
        lambda: BATCH / _ours(_name(int8)),
        lambda: _benchmark_app(_artifact(int8)),
        options.rounds,
    )
    fp32 = _cell("onnxruntime", "fp32")
    _compare(
        "c",
        "ONNX Runtime fp32, ours over a bare loop",
        lambda: BATCH / _ours(_name(fp32)),
        lambda: BATCH / _bare_loop(_artifact(fp32)),
        options.rounds,
    )
    if not options.skip_share:
        _share()


def _print(letter: str, what: str, value: float, unit: str, goal: str, bound: float) -> None:
    met = value < bound if goal.startswith("below") else value >= bound
    print(f"({letter}) {what}: {value:.3g} {unit}  (goal {goal}: {'met' if met else 'MISSED'})", flush=True)


def _compare(letter: str, what: str, ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> None:
    """Run both in turn, changing who goes first, and print the ratio of each round and their median."""
    pairs = []
    for number in range(rounds):
        if number % 2:
            second = theirs()
            pairs.append((ours(), second))
        else:
            pairs.append((ours(), theirs()))
    ratios = [a / b for a, b in pairs]
    a, b = (statistics.median(values) for values in zip(*pairs, strict=True))
    print(f"    medians {a:.1f} and {b:.1f} images/s; ratios {' '.join(f'{ratio:.3f}' for ratio in ratios)}")
    _print(letter, what, statistics.median(ratios), "times", "0.98 or better", 0.98)


def _cell(backend: str, precision: str) -> cells.Cell:
    every = grid.all_cells(backends.get(backend), models.get("ResNet50"))
    return next(cell for cell in every if (cell.precision, cell.batch) == (precision, BATCH))


def _name(cell: cells.Cell) -> str:
    """Return asv's name of the latency benchmark of `cell`: the number counts the parameter combinations."""
    every = grid.all_cells(backends.get(cell.backend), models.get(cell.model))
    return f"{cell.series}.time_forward-{[other.key() for other in every].index(cell.key())}"


def _artifact(cell: cells.Cell) -> Artifact:
    backend = backends.get(cell.backend)
    return backend.prepare(models.get(cell.model), cell.precision, Store(), batch=cell.batch, **cell.options)


def _run(*command: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _ours(name: str) -> float:
    return float(_run(sys.executable, "-c", OURS, str(ROOT / "benchmarks"), name).split()[-1])


def _bare_loop(artifact: Artifact) -> float:
    arguments = (str(artifact.path("model.onnx")), str(BATCH), str(host.thread_budget()), str(SECONDS))
    return float(_run(sys.executable, "-c", BARE_ONNXRUNTIME, *arguments).split()[-1])


def _benchmark_app(artifact: Artifact) -> float:
    """Return the images/s of OpenVINO's own tool on the same IR, batch and threads, by its median latency."""
    command = [str(Path(sys.executable).parent / "benchmark_app"), "-m", str(artifact.path("model.xml")), "-d", "CPU"]
    command += ["-hint", "latency", "-api", "sync", "-shape", f"[{BATCH},3,224,224]", "-t", str(SECONDS)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as settings:
        # It refuses -nthreads beside -hint; a configuration file may have both.
        settings.write(json.dumps({"CPU": {"INFERENCE_NUM_THREADS": str(host.thread_budget())}}))
        settings.flush()
        output = _run(*command, "-load_config", settings.name)
    found = re.search(r"Median:\s+([\d.]+) ms", output)
    if not found:
        sys.exit(f"benchmark_app printed no median latency:\n{output[-2000:]}")
    return BATCH / (float(found[1]) / 1e3)


def _share() -> None:
    """Run `machmeter bench`, and add up what its processes say of their calls.

    The figure is about a run whose artifacts exist: where this run had to make some, it says so.
    """
    command = [sys.executable, "-c", "from machmeter.cli import main; main()", "bench", "--project", str(ROOT)]
    before = set(Store().root.glob("*/*/"))
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    wall = time.perf_counter() - start
    if made := len(set(Store().root.glob("*/*/")) - before):
        print(f"    this run made {made} artifacts: run it again for the share once they exist")
    folder = asv_names.evidence_folder(asv_names.results_folder(ROOT)) / asv_names.machine_name()
    files = [dead_processes.read(path) or {"runs": {}} for path in folder.glob("*.json")]
    runs = [run for file in files for run in file["runs"].values()]
    newest = max(runs, key=lambda run: max(_records(run), key=lambda record: record["started_at"])["started_at"])
    warm_up = sum(record.get("warm_up", {}).get("seconds", 0.0) for record in _records(newest))
    timed = sum(sum(record.get("sample_seconds", [])) for record in _records(newest))
    print(f"    {wall:.0f} s in all: {warm_up:.0f} s warm-up, {timed:.0f} s timed, {len(_records(newest))} processes")
    _print("d", "share of warm-up and timed calls", 100 * (warm_up + timed) / wall, "%", "60 % or more", 60)


def _records(run: Json) -> list[Json]:
    return [record for processes in run["cells"].values() for record in processes.values()]


if __name__ == "__main__":
    main()
