"""Measure one cell in many fresh processes of identical code, as base and head alternately: a real A/A comparison.

    MACHMETER_STORE=... .venv/bin/python tools/experiments/compare_real.py 'cpu.openvino.ResNet50(int8, 1)' --rounds 8

Prints what was measured as a document (`machmeter compare --measurements` takes it); each process has a line on the
error stream.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time

import msgspec
import numpy as np
from scipy import stats

from machmeter import backends
from machmeter.compare.documents import Measurements, Process, Row, Side
from machmeter.machine import disturbance
from machmeter.measure import cell_process
from machmeter.workload import cells, models


def measure_here(key: str, seconds: float) -> None:
    """Measure the cell `key` in this process, as a benchmark process does, and print what was found."""
    cell = cells.parse(key)
    assert cell is not None, f"{key!r} is no cell"
    values = (cell.precision, *cell.options.values(), cell.batch)
    backend, model = backends.get(cell.backend), models.get(cell.model)
    measurement = cell_process.enter(backend, model, values, 600.0)
    measurement.prepare_timing()
    samples: list[float] = []
    watch, end = disturbance.Watch(), time.perf_counter() + seconds
    while (start := time.perf_counter()) < end or len(samples) < 5:
        measurement.forward()
        samples.append(time.perf_counter() - start)
    measurement.check()
    print(json.dumps({"samples": samples, "disturbed": watch.share()}))


def measure_all(key: str, rounds: int, seconds: float) -> Measurements:
    """Return what `rounds` pairs of fresh processes found, base and head in balanced order."""
    began = time.time()
    found: dict[str, list[Process]] = {"base": [], "head": []}
    pooled: dict[str, list[list[float]]] = {"base": [], "head": []}
    for number in range(rounds):
        order = ("base", "head") if number % 2 == 0 else ("head", "base")
        for place, label in enumerate(order):
            command = [sys.executable, __file__, key, "--process", "--seconds", str(seconds)]
            told = json.loads(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
            )
            process = Process(
                round=number,
                order=2 * number + place,
                value=float(np.median(told["samples"])),
                samples=len(told["samples"]),
                disturbed=told["disturbed"],
            )
            found[label].append(process)
            pooled[label].append(told["samples"])
            spread = float(np.std(np.log(told["samples"])))
            print(
                f"{label} {number}: {1e3 * process.value:.3f} ms, {process.samples} samples that vary by "
                f"{100 * spread:.1f} %, others had {100 * (process.disturbed or 0.0):.0f} % of the CPUs",
                file=sys.stderr,
            )
    for line in summary(found, pooled):
        print(line, file=sys.stderr)
    sides = [
        Side(
            label=label,
            rows=[Row(cell=key, metric="time_forward", unit="seconds", better="lower", processes=processes)],
        )
        for label, processes in found.items()
    ]
    return Measurements(
        machine="this",
        base=sides[0],
        head=sides[1],
        rounds=rounds,
        interleaved=True,
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        seconds=time.time() - began,
    )


def summary(found: dict[str, list[Process]], pooled: dict[str, list[list[float]]]) -> list[str]:
    """Return how much processes vary, how much of it both of a round share, and what asv's rule says of them."""
    base, head = (np.log([process.value for process in found[label]]) for label in ("base", "head"))
    everything = np.concatenate([base, head])
    lines = [
        f"medians of {len(everything)} processes vary by {100 * everything.std(ddof=1):.2f} % (standard deviation)"
    ]
    if len(base) > 1:
        own = float((head - base).std(ddof=1)) / 2**0.5
        lines.append(f"of that, {100 * own:.2f} % are each process's own: the rest is common to both of a round")
    samples = [one for label in ("base", "head") for one in pooled[label]]
    pairs = list(itertools.combinations(range(len(samples)), 2))
    different = [stats.mannwhitneyu(samples[one], samples[other]).pvalue < 0.002 for one, other in pairs]
    far = [abs(everything[one] - everything[other]) > np.log(1.1) for one, other in pairs]
    both = np.mean(np.array(different) & np.array(far))
    lines.append(
        f"asv's rule, any two of them: {100 * np.mean(different):.0f} % differ by Mann-Whitney on samples, "
        f"{100 * both:.1f} % with the factor 1.1"
    )
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cell")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.5, help="of samples in each process")
    parser.add_argument("--process", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.process:
        measure_here(chosen.cell, chosen.seconds)
    else:
        print(msgspec.json.encode(measure_all(chosen.cell, chosen.rounds, chosen.seconds)).decode())


if __name__ == "__main__":
    main()
